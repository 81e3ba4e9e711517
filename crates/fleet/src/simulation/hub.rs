//! A small GitHub: jobs, runners, and who gets which job. It keeps what would be wrong.

use super::deliveries::Deliveries;
use super::hub_sets::{Assignment, HubSet};
use super::releases::Releases;
use crate::forge::{
    Answer, Ask, Checked, Failure, Hidden, JitConfig, Job, JobId, JobStatus, Jobs, RepositoryName, Runner, RunnerId,
    Runners,
};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// A registered runner.
#[derive(Debug, Clone)]
pub(super) struct HubRunner {
    pub(super) name: String,
    pub(super) is_online: bool,
    pub(super) job: Option<u64>,
    /// Whether GitHub gives it no job because of its version.
    pub(super) gets_no_job: bool,
    /// When GitHub sees that its machine is gone.
    pub(super) lost_at: Option<u64>,
    /// The scale set that it belongs to: it runs jobs of no other.
    pub(super) set: Option<u64>,
}

/// A job.
#[derive(Debug, Clone)]
pub(super) struct HubJob {
    pub(super) runner: Option<(u64, String)>,
    pub(super) is_done: bool,
    pub(super) ends_at: u64,
    pub(super) created: Timestamp,
    pub(super) runs: u32,
    pub(super) label: String,
    pub(super) repository: String,
    /// The scale set that it is assigned to.
    pub(super) set: Option<u64>,
    pub(super) run: u64,
    pub(super) attempt: u32,
    /// Whether its machine was lost.
    pub(super) has_failed: bool,
}

impl HubJob {
    pub(super) fn conclusion(&self) -> &'static str {
        if self.has_failed { "failure" } else { "success" }
    }
}

#[derive(Debug, Default)]
pub(super) struct Hub {
    pub(super) jobs: BTreeMap<u64, HubJob>,
    pub(super) runners: BTreeMap<u64, HubRunner>,
    pub(super) next: u64,
    pub(super) broken: Vec<String>,
    /// All names of runners that were ever registered.
    pub(super) registered: u64,
    pub(super) sets: BTreeMap<u64, HubSet>,
    pub(super) assignment: Assignment,
    /// Nothing is answered.
    pub(super) is_down: bool,
    /// The login sees no repository any more.
    pub(super) hides_repositories: bool,
    /// Nothing of scale sets is answered.
    pub(super) is_service_down: bool,
    pub(super) sessions: u64,
    pub(super) now: u64,
    pub(super) releases: Releases,
    pub(super) deliveries: Deliveries,
    /// How many requests it answers in an hour, and how many it has answered in this one.
    pub(super) limit: Option<u64>,
    pub(super) window: (u64, u64),
    /// The authorities of its certificate, if those of the system are none.
    pub(super) authorities: Option<String>,
}

pub(super) const LABEL: &str = "pve";

impl Hub {
    pub(super) fn push(&mut self, repository: &str, label: &str, created: Timestamp) -> u64 {
        self.next += 1;
        let (run, label, repository) = (self.next, label.to_owned(), repository.to_owned());
        let job = HubJob {
            runner: None,
            is_done: false,
            ends_at: 0,
            created,
            runs: 0,
            label,
            repository,
            set: None,
            run,
            attempt: 1,
            has_failed: false,
        };
        self.queue(run, job)
    }

    fn queue(&mut self, id: u64, job: HubJob) -> u64 {
        self.jobs.insert(id, job);
        self.offer(id);
        id
    }

    /// A person runs a job that has ended again: it is another one, of the same run.
    pub(super) fn rerun(&mut self, id: u64, created: Timestamp) -> u64 {
        self.next += 1;
        let before = self.jobs[&id].clone();
        let attempt = before.attempt + 1;
        let job =
            HubJob { runner: None, is_done: false, runs: 0, set: None, has_failed: false, attempt, created, ..before };
        self.queue(self.next, job)
    }

    /// Gives jobs to runners, and ends those that are due, at this millisecond.
    pub(super) fn pass_time(&mut self, now: u64, takes: u64) {
        self.now = now;
        let mut changed = Vec::new();
        for (id, job) in self.jobs.iter_mut().filter(|(_, job)| !job.is_done) {
            let fits = |runner: &HubRunner| runner.set == job.set && (job.label == LABEL || job.set.is_some());
            if let Some((runner, _)) = &job.runner {
                let lost_at = self.runners.get(runner).map_or(Some(0), |found| found.lost_at);
                if lost_at.unwrap_or(job.ends_at) <= now {
                    (job.is_done, job.has_failed) = (true, lost_at.is_some());
                    self.runners.remove(runner);
                    changed.push(*id);
                }
            } else if let Some((number, runner)) = self.runners.iter_mut().find(|(_, runner)| {
                runner.is_online
                    && !runner.gets_no_job
                    && runner.job.is_none()
                    && runner.lost_at.is_none()
                    && fits(runner)
            }) {
                (job.runner, runner.job) = (Some((*number, runner.name.clone())), Some(*id));
                (job.ends_at, job.runs) = (now + takes, job.runs + 1);
                changed.push(*id);
            }
        }
        for runner in self.runners.values_mut().filter(|runner| runner.lost_at.is_some_and(|at| at <= now)) {
            runner.is_online = false;
        }
        changed.into_iter().for_each(|job| self.tell_set(job));
    }

    /// Carries out a request.
    pub(super) fn carry_out(&mut self, ask: &Ask) -> Result<Answer, Failure> {
        if self.is_down {
            return Err(Failure::Transient("connection refused".into()));
        }
        match ask {
            Ask::Check => {
                let authorities = self.authorities.clone();
                Ok(Answer::Checked(Box::new(Checked { authorities, ..Checked::default() })))
            }
            Ask::RunnerVersions => Ok(self.releases.answer()),
            Ask::FindHook { .. } | Ask::Deliveries { .. } | Ask::Redeliver { .. } => self.deliveries.carry_out(ask),
            Ask::JitConfig(wanted) => self.register(&wanted.name, None),
            Ask::ScaleSet(ask) => self.of_set(ask),
            Ask::ListRunners { name } => {
                let is_wanted = |runner: &&HubRunner| name.as_ref().is_none_or(|name| *name == runner.name);
                let runner = |runner: &HubRunner| Runner {
                    name: runner.name.clone(),
                    is_online: runner.is_online,
                    is_busy: runner.job.is_some(),
                    labels: [LABEL.to_owned()].into(),
                };
                let found = self.runners.iter().filter(|(_, found)| is_wanted(found));
                let runners = found.map(|(id, found)| (RunnerId(*id), runner(found))).collect();
                Ok(Answer::Runners(Runners { runners, is_complete: true }))
            }
            Ask::RemoveRunner(id) => self.remove(*id),
            Ask::ListJobs { .. } if self.hides_repositories => Ok(Answer::Jobs(Jobs::default())),
            Ask::Job { .. } if self.hides_repositories => Ok(Answer::NoRepository),
            Ask::ListJobs { .. } => {
                let open = self.jobs.iter().filter(|(_, job)| !job.is_done);
                let jobs = open.map(|(id, found)| (JobId(*id), job(*id, found))).collect();
                let read = [RepositoryName { owner: "acme".into(), name: "shop".into() }].into();
                Ok(Answer::Jobs(Jobs { jobs, read, unread: BTreeMap::new() }))
            }
            Ask::Job { id, .. } => Ok(Answer::Job(self.jobs.get(&id.0).map(|found| Box::new(job(id.0, found))))),
        }
    }

    pub(super) fn register(&mut self, name: &str, set: Option<u64>) -> Result<Answer, Failure> {
        if self.runners.values().any(|runner| runner.name == name) {
            return Err(Failure::Exists(name.to_owned()));
        }
        self.next += 1;
        self.registered += 1;
        let runner =
            HubRunner { name: name.to_owned(), is_online: false, job: None, gets_no_job: false, lost_at: None, set };
        self.runners.insert(self.next, runner);
        let config = Hidden::from(format!("jit-{}", self.next));
        Ok(Answer::JitConfig(JitConfig { runner: RunnerId(self.next), config }))
    }

    pub(super) fn remove(&mut self, id: RunnerId) -> Result<Answer, Failure> {
        match self.runners.get(&id.0) {
            Some(runner) if runner.job.is_some() => Err(Failure::StillBusy(id)),
            _ => {
                self.runners.remove(&id.0);
                Ok(Answer::Done)
            }
        }
    }

    /// The machine of a runner has switched itself off in the middle of its job.
    pub(super) fn lose_job(&mut self, id: u64) {
        let job = self.runners.get(&id).and_then(|runner| runner.job);
        if let Some(job) = job.and_then(|job| self.jobs.get_mut(&job)) {
            job.ends_at = self.now + 20_000;
        }
    }

    /// The operator has ended the machine of a runner.
    pub(super) fn lose(&mut self, id: u64, name: &str, at: u64) {
        if let Some(job) = self.runners.get(&id).and_then(|runner| runner.job).filter(|job| !self.jobs[job].is_done) {
            self.broken.push(format!("the machine of {name} was ended while job {job} ran on it"));
        }
        self.crash(id, at);
    }

    /// The machine of a runner is gone: its job fails when GitHub sees that, and its registration is left.
    pub(super) fn crash(&mut self, id: u64, at: u64) {
        if let Some(runner) = self.runners.get_mut(&id) {
            runner.lost_at.get_or_insert(at);
        }
    }

    /// The program of a runner has ended.
    pub(super) fn disconnect(&mut self, id: u64) {
        if let Some(runner) = self.runners.get_mut(&id).filter(|runner| runner.job.is_none()) {
            runner.is_online = false;
        }
    }
}

fn job(id: u64, job: &HubJob) -> Job {
    Job {
        id: JobId(id),
        run: job.run,
        attempt: job.attempt.into(),
        repository: RepositoryName { owner: "acme".into(), name: job.repository.clone() },
        name: "build".into(),
        labels: [job.label.clone()].into(),
        status: match (&job.runner, job.is_done) {
            (_, true) => JobStatus::Completed(job.conclusion().into()),
            (Some(_), false) => JobStatus::InProgress,
            (None, false) => JobStatus::Queued,
        },
        runner: job.runner.as_ref().map(|(id, name)| (RunnerId(*id), name.clone())),
        created: Some(job.created),
    }
}
