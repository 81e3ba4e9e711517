//! What the fleet publishes about its jobs, for people: a document of bounded size without secrets, which changes only with what it is about.
//!
//! It has no time spans but moments, so that a job that waits does not change it every second; whoever shows it computes how long.

mod find;
mod queue;
mod tale;

pub use find::{Question, find, read};
pub use queue::{Filter, Row, rows, span, why};
pub use tale::{Tale, tale};

use super::demand::{Pool, Wait};
use super::exchange::{Decision, Objects};
use super::job::{JobKey, State};
use super::runners::Phase;
use super::story::{Note, What};
use super::table::Job;
use super::{Dispatch, Source};
use crate::forge::Platform;
use crate::object::Name;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The version of the document. A change that an older reader cannot read has another one.
pub const VERSION: u32 = 1;
/// So many jobs that wait are shown, and so many that run; jobs that have ended take what is left of [`MOST`].
const MOST_WAITING: usize = 200;
const MOST_RUNNING: usize = 100;
const MOST: usize = 300;
/// A ConfigMap may have 1 MiB; every write of it goes to the log of etcd.
const MOST_BYTES: usize = 256 * 1024;
/// More pools are not shown.
const MOST_POOLS: usize = 200;
/// A longer text of somebody else is cut.
const LONGEST: usize = 120;
/// More labels of a job or a pool are not shown.
const MOST_LABELS: usize = 20;
/// The least time between two documents, and how much of a document takes another second.
const APART: Duration = Duration::from_secs(5);
const BYTES_PER_SECOND: usize = 40 * 1024;

/// The document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Its version.
    pub version: u32,
    /// Who made it.
    pub operator: Operator,
    /// How many jobs there are, whether they are shown or not.
    pub total: Total,
    /// The jobs: those that wait longest first, then those that run, then those that ended last.
    pub jobs: Vec<Line>,
    /// The pools that run jobs.
    pub pools: Vec<PoolLine>,
}

/// Who made a document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operator {
    /// The pod.
    pub pod: String,
    /// Its version.
    pub version: String,
    /// When its process started: the lease of the one that leads says the same.
    pub started: Timestamp,
}

/// How many jobs there are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Total {
    /// They wait for a runner, or for GitHub.
    pub waiting: usize,
    /// They run.
    pub running: usize,
    /// They have ended lately.
    pub ended: usize,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Which job.
    pub key: JobKey,
    /// Where it is.
    #[serde(default, skip_serializing_if = "Platform::is_github")]
    pub platform: Platform,
    /// `OWNER/NAME`.
    pub repository: String,
    /// The id of its run.
    pub run: u64,
    /// Its name in the run.
    pub name: String,
    /// What it asks of a runner.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
    /// How far it is.
    pub state: State,
    /// Since when: it waits since it was created, runs since a runner started it, or has ended.
    pub since: Timestamp,
    /// When it was reported first, on the clock of the fleet.
    pub seen: Timestamp,
    /// Who reported it first.
    pub source: Source,
    /// Why it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Wait>,
    /// The runner that has started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The pool of the machine that runs it, or that it waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The claim of the machine that runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// How it ended; `gone` if GitHub says that it does not exist any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// When it was created, as GitHub says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// When a runner started it, as GitHub says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<Timestamp>,
    /// When it ended, as GitHub says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed: Option<Timestamp>,
    /// What happened to it.
    pub story: Vec<Note>,
    /// How many entries of the story are left out, and after how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<(usize, usize)>,
}

impl Line {
    /// Whether it has ended, or does not exist any more.
    pub fn is_over(&self) -> bool {
        self.state == State::Completed || self.conclusion.is_some()
    }
}

/// One pool, as far as it concerns jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolLine {
    /// `NAMESPACE/NAME`.
    pub name: String,
    /// `OWNER` or `OWNER/NAME`.
    pub scope: String,
    /// The only repositories that it serves; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repositories: Vec<String>,
    /// Its runner group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The labels of its runners.
    pub labels: Vec<String>,
    /// How many machines it may have.
    pub max: i32,
    /// Whether it is paused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_paused: bool,
    /// How many jobs wait for it.
    pub waiting: u32,
    /// How many runners start.
    pub starting: usize,
    /// How many runners are online without a job.
    pub idle: usize,
    /// How many runners have a job.
    pub busy: usize,
    /// How long its machines take to come online, in seconds, if one has lately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usual_start_seconds: Option<u64>,
    /// What keeps it from running jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// What is known of pools beside what jobs need.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Where the jobs are.
    pub platform: Platform,
    /// How long machines of a pool take to come online.
    pub usual_starts: Option<&'a BTreeMap<Name, Duration>>,
    /// What keeps a pool from running jobs, such as a runner version that GitHub refuses.
    pub troubles: Option<&'a BTreeMap<Name, String>>,
}

/// The document about everything that is known.
pub fn report(
    operator: &Operator,
    dispatch: &Dispatch,
    objects: Objects<'_>,
    decision: &Decision,
    extras: Extras<'_>,
) -> Report {
    let twins = Twins::of(dispatch);
    let pools_of = objects.claims.iter().map(|claim| (claim.name.to_string(), claim.pool.to_string())).collect();
    let shown = dispatch.table().all().filter(|job| !twins.hidden.contains(&job.facts.key));
    let mut total = Total::default();
    let (mut waiting, mut running, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    for job in shown {
        match class(job) {
            Class::Waiting => waiting.push(job),
            Class::Running => running.push(job),
            Class::Ended => ended.push(job),
        }
    }
    (total.waiting, total.running, total.ended) = (waiting.len(), running.len(), ended.len());
    // Of thousands of jobs only those that are shown are copied.
    waiting.sort_by_key(|job| (std::cmp::Reverse(job.facts.state), job.since(), job.facts.key));
    running.sort_by_key(|job| (job.facts.started.unwrap_or(job.changed), job.facts.key));
    ended.sort_by_key(|job| (std::cmp::Reverse(job.changed), job.facts.key));
    for (jobs, most) in [(&mut waiting, MOST_WAITING), (&mut running, MOST_RUNNING), (&mut ended, MOST)] {
        jobs.truncate(most);
    }
    let line = |job: &Job| line(job, twins.of.get(&job.facts.key).copied(), dispatch, &pools_of, extras.platform);
    let all = [waiting, running, ended].map(|jobs| jobs.into_iter().map(line).collect());
    let pools = objects.pools.iter().take(MOST_POOLS).map(|pool| pool_line(pool, objects, decision, extras)).collect();
    Report { version: VERSION, operator: operator.clone(), total, jobs: bounded_jobs(all), pools }
}

/// One document of those about each GitHub.
pub fn joined<'a>(operator: &Operator, reports: impl Iterator<Item = &'a Report>) -> Report {
    let mut joined = Report { version: VERSION, operator: operator.clone(), ..Report::default() };
    let (mut waiting, mut running, mut ended) = (Vec::new(), Vec::new(), Vec::new());
    for report in reports {
        joined.total.waiting += report.total.waiting;
        joined.total.running += report.total.running;
        joined.total.ended += report.total.ended;
        joined.pools.extend(report.pools.iter().cloned());
        for line in &report.jobs {
            match line.state {
                _ if line.is_over() => ended.push(line.clone()),
                State::InProgress => running.push(line.clone()),
                _ => waiting.push(line.clone()),
            }
        }
    }
    joined.pools.truncate(MOST_POOLS);
    joined.jobs = bounded_jobs([waiting, running, ended]);
    joined
}

/// The jobs that wait, run and have ended, as many as a document may have.
fn bounded_jobs([mut waiting, mut running, mut ended]: [Vec<Line>; 3]) -> Vec<Line> {
    waiting.sort_by_key(|line| (std::cmp::Reverse(line.state), line.since, line.key));
    running.sort_by_key(|line| (line.since, line.key));
    ended.sort_by_key(|line| (std::cmp::Reverse(line.since), line.key));
    waiting.truncate(MOST_WAITING);
    running.truncate(MOST_RUNNING);
    ended.truncate(MOST - waiting.len() - running.len());
    let mut left = MOST_BYTES;
    let mut jobs = Vec::new();
    for line in waiting.into_iter().chain(running).chain(ended) {
        let bytes = serde_json::to_string(&line).map_or(usize::MAX, |text| text.len() + 1);
        match left.checked_sub(bytes) {
            Some(rest) => left = rest,
            None => break,
        }
        jobs.push(line);
    }
    jobs
}

/// Whether a document says something that the one before does not. That old jobs were forgotten is no news: a fleet that is idle writes nothing.
pub fn is_news(before: &Report, after: &Report) -> bool {
    let kept: BTreeSet<JobKey> = after.jobs.iter().map(|line| line.key).collect();
    let old = before.jobs.iter().filter(|line| !line.is_over() || kept.contains(&line.key));
    let ended = Total { ended: 0, ..after.total };
    before.version != after.version
        || before.operator != after.operator
        || before.pools != after.pools
        || Total { ended: 0, ..before.total } != ended
        || !old.eq(after.jobs.iter())
}

/// How long after a document of this size the next one may be written.
pub fn pause_after(bytes: usize) -> Duration {
    APART + Duration::from_secs(u64::try_from(bytes / BYTES_PER_SECOND).unwrap_or_default())
}

enum Class {
    Waiting,
    Running,
    Ended,
}

fn class(job: &Job) -> Class {
    match job.facts.state {
        _ if !job.is_open() => Class::Ended,
        State::Waiting | State::Queued => Class::Waiting,
        State::InProgress => Class::Running,
        State::Completed => Class::Ended,
    }
}

/// Jobs that two sources name differently.
#[derive(Default)]
struct Twins<'a> {
    /// What the scale set says of a job.
    of: BTreeMap<JobKey, &'a Job>,
    /// Those that are not shown by themselves.
    hidden: BTreeSet<JobKey>,
}

impl Twins<'_> {
    fn of(dispatch: &Dispatch) -> Twins<'_> {
        let table = dispatch.table();
        let found = super::twins::twins(table);
        let of = found.iter().filter_map(|(job, request)| Some((*job, table.get(request)?))).collect();
        Twins { of, hidden: found.into_values().collect() }
    }
}

fn line(
    job: &Job,
    request: Option<&Job>,
    dispatch: &Dispatch,
    pools_of: &BTreeMap<String, String>,
    platform: Platform,
) -> Line {
    let facts = &job.facts;
    let state = request.map_or(facts.state, |request| facts.state.max(request.facts.state));
    let of = |key: &JobKey| dispatch.waits().get(key).cloned();
    let wait = request.and_then(|request| of(&request.facts.key)).or_else(|| of(&facts.key));
    let mut wait = wait.filter(|_| state < State::InProgress && job.is_open());
    wait.iter_mut().for_each(bound);
    let mut story: Vec<Note> = job.story.notes().cloned().collect();
    let left_out = (job.story.left_out() > 0).then(|| (job.story.left_out(), job.story.beginning()));
    if let Some(request) = request {
        story.extend(request.story.notes().cloned());
        story.sort_by_key(|note| note.at);
    }
    let first = story.iter().find_map(|note| match &note.what {
        What::Became { source, .. } => Some(*source),
        _ => None,
    });
    let place = story.iter().rev().find_map(|note| match &note.what {
        What::On { claim, pool } => Some((claim.clone(), pool.clone())),
        _ => None,
    });
    let (claim, of) = place.unzip();
    let conclusion = match job.is_gone() {
        true => Some("gone".to_owned()),
        false => facts.conclusion.as_deref().map(short),
    };
    Line {
        key: facts.key,
        platform,
        repository: short(&facts.repository.to_string()),
        run: facts.run,
        name: short(&facts.name),
        labels: facts.labels.iter().take(MOST_LABELS).map(|label| short(label)).collect(),
        state,
        since: match state {
            State::Waiting | State::Queued if job.is_open() => job.since(),
            State::InProgress if job.is_open() => facts.started.unwrap_or(job.changed),
            _ => facts.completed.unwrap_or(job.changed),
        },
        seen: request.map_or(job.first_seen, |request| job.first_seen.min(request.first_seen)),
        source: first.unwrap_or(Source::Poll),
        pool: of.or_else(|| wait.as_ref().and_then(|wait| waits_for(wait, dispatch, pools_of))),
        wait,
        runner: facts.runner.as_deref().or(request.and_then(|request| request.facts.runner.as_deref())).map(short),
        claim,
        conclusion,
        created: facts.created,
        started: facts.started,
        completed: facts.completed,
        story: story.into_iter().map(bounded).collect(),
        left_out,
    }
}

/// The pool that a job waits for.
fn waits_for(wait: &Wait, dispatch: &Dispatch, pools_of: &BTreeMap<String, String>) -> Option<String> {
    let claim = match wait {
        Wait::Booting { claim, .. } => claim.clone(),
        Wait::Idle { runner, .. } => dispatch.claim_of(runner)?.to_string(),
        other => return other.pool().map(str::to_owned),
    };
    pools_of.get(&claim).cloned()
}

/// A text of somebody else, of bounded length.
fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// An entry whose texts are of bounded length.
fn bounded(mut note: Note) -> Note {
    match &mut note.what {
        What::Became { runner: Some(runner), .. } => *runner = short(runner),
        What::Waits(wait) => bound(wait),
        _ => {}
    }
    note
}

/// Labels are texts of whoever writes workflows.
fn bound(wait: &mut Wait) {
    if let Wait::NoPool { missing } = wait {
        missing.truncate(MOST_LABELS);
        missing.iter_mut().for_each(|label| *label = short(label));
    }
}

fn pool_line(pool: &Pool, objects: Objects<'_>, decision: &Decision, extras: Extras<'_>) -> PoolLine {
    let (mut starting, mut idle, mut busy) = (0, 0, 0);
    for claim in objects.claims.iter().filter(|claim| claim.pool == pool.name) {
        match decision.phases.get(&claim.name) {
            Some(Phase::Starting) => starting += 1,
            Some(Phase::Online(_)) => idle += 1,
            Some(Phase::Busy(_)) => busy += 1,
            Some(Phase::Ending) | None => {}
        }
    }
    let scope = match &pool.scope.repository {
        Some(repository) => format!("{}/{repository}", pool.scope.owner),
        None => pool.scope.owner.clone(),
    };
    PoolLine {
        name: pool.name.to_string(),
        scope,
        repositories: pool.repositories.iter().flatten().take(MOST_LABELS).map(|name| short(name)).collect(),
        group: pool.group.clone(),
        labels: pool.labels.iter().take(MOST_LABELS).map(|label| short(label)).collect(),
        max: pool.scaling.max_replicas,
        is_paused: pool.is_paused,
        waiting: decision.scale.get(&pool.name).map_or(0, |scale| scale.waiting),
        starting,
        idle,
        busy,
        usual_start_seconds: extras.usual_starts.and_then(|all| all.get(&pool.name)).map(Duration::as_secs),
        trouble: extras.troubles.and_then(|all| all.get(&pool.name)).cloned(),
    }
}

#[cfg(test)]
mod tests;
