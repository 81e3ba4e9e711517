//! What is counted about jobs: each that was started or has ended, once, and how long each phase of its start took.

use super::job::{JobKey, Source, State};
use super::story::What;
use super::table::{Job, Table};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::time::Duration;

/// A part of the time from the creation of a job until a runner starts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StartPhase {
    /// Until the fleet has heard of it.
    Notice,
    /// Until it was granted a machine: no capacity, a quota, no pool.
    Admission,
    /// Until the claim of a machine existed.
    Creation,
    /// Until its runner was online.
    Boot,
    /// Until GitHub had given it to a runner.
    Assignment,
}

impl StartPhase {
    /// All, in their order.
    pub const ALL: [StartPhase; 5] =
        [StartPhase::Notice, StartPhase::Admission, StartPhase::Creation, StartPhase::Boot, StartPhase::Assignment];

    /// Its name in metrics.
    pub fn label(self) -> &'static str {
        match self {
            StartPhase::Notice => "notice",
            StartPhase::Admission => "admission",
            StartPhase::Creation => "creation",
            StartPhase::Boot => "boot",
            StartPhase::Assignment => "assignment",
        }
    }
}

/// Something that is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Milestone {
    /// A runner of ours has started a job that was seen to wait.
    Started {
        /// The job.
        key: JobKey,
        /// `OWNER/NAME`.
        repository: String,
        /// The pool of the machine.
        pool: String,
        /// How long it waited, since it was created.
        queued: Duration,
        /// How long each part of that took.
        phases: Vec<(StartPhase, Duration)>,
    },
    /// A job of ours has ended.
    Ended {
        /// The job.
        key: JobKey,
        /// `OWNER/NAME`.
        repository: String,
        /// The pool of the machine.
        pool: String,
        /// How: `success`, `failure`, `cancelled` ..., or `unknown`.
        conclusion: String,
    },
    /// A source reported a job before any other did.
    Noticed(Source),
}

/// So many runners of jobs that were forgotten are remembered at most.
const SURPLUS: usize = 1_000;

/// What was counted already. A process that begins counts nothing of what happened before.
#[derive(Debug, Clone, Default)]
pub struct Milestones {
    noticed: BTreeSet<JobKey>,
    /// By the runner, which runs one job: a scale set names the same job differently.
    started: BTreeSet<String>,
    ended: BTreeSet<String>,
}

impl Milestones {
    /// What is new in the table.
    pub fn take(&mut self, table: &Table) -> Vec<Milestone> {
        let mut found = Vec::new();
        for job in table.all() {
            let key = job.facts.key;
            let Some((state, source)) = job.story.notes().find_map(|note| match &note.what {
                What::Became { state, source, .. } => Some((*state, *source)),
                _ => None,
            }) else {
                continue;
            };
            if state < State::InProgress && self.noticed.insert(key) {
                found.push(Milestone::Noticed(source));
            }
            let (Some(pool), Some(runner)) = (pool_of(job), &job.facts.runner) else { continue };
            if self.started.insert(runner.clone()) && state < State::InProgress {
                found.push(started(job, pool.clone()));
            }
            if job.facts.state == State::Completed && self.ended.insert(runner.clone()) && state < State::Completed {
                let conclusion = job.facts.conclusion.clone().unwrap_or_else(|| "unknown".into());
                let repository = job.facts.repository.to_string();
                found.push(Milestone::Ended { key, repository, pool, conclusion });
            }
        }
        self.noticed.retain(|key| table.get(key).is_some());
        if self.started.len() > table.len().saturating_mul(2) + SURPLUS {
            let runners: BTreeSet<&String> = table.all().filter_map(|job| job.facts.runner.as_ref()).collect();
            self.started.retain(|runner| runners.contains(runner));
            self.ended.retain(|runner| runners.contains(runner));
        }
        found
    }
}

/// The pool of the machine that runs or ran a job.
fn pool_of(job: &Job) -> Option<String> {
    job.story.notes().find_map(|note| match &note.what {
        What::On { pool, .. } => Some(pool.clone()),
        _ => None,
    })
}

fn started(job: &Job, pool: String) -> Milestone {
    let begun = job.since();
    let seen = job.story.notes().find_map(|note| match &note.what {
        What::Became { state: State::InProgress | State::Completed, .. } => Some(note.at),
        _ => None,
    });
    let end = job.facts.started.or(seen).unwrap_or(job.changed).max(begun);
    let mut phases: Vec<(StartPhase, Duration)> = Vec::new();
    let (mut phase, mut since) = (StartPhase::Notice, begun);
    let mut until = |next: StartPhase, at: Timestamp| {
        let at = at.clamp(since, end);
        phases.push((phase, duration(since, at)));
        (phase, since) = (next, at);
    };
    for note in job.story.notes() {
        match &note.what {
            What::Became { .. } if note.at == job.first_seen => until(StartPhase::Admission, note.at),
            What::Waits(wait) => {
                let next = match wait.reason() {
                    "Creating" | "RateLimited" => StartPhase::Creation,
                    "Booting" => StartPhase::Boot,
                    "Idle" => StartPhase::Assignment,
                    _ => StartPhase::Admission,
                };
                until(next, note.at);
            }
            _ => {}
        }
    }
    until(StartPhase::Assignment, end);
    let total = |phase: StartPhase| phases.iter().filter(|(of, _)| *of == phase).map(|(_, time)| *time).sum();
    let phases = StartPhase::ALL.map(|phase| (phase, total(phase))).to_vec();
    let (key, repository) = (job.facts.key, job.facts.repository.to_string());
    Milestone::Started { key, repository, pool, queued: duration(begun, end), phases }
}

fn duration(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
