//! Which runner gets which job, and what the start and the end of a job change.

use crate::happening::Happening;
use crate::job::{Conclusion, Execution, Job, JobState, RanOn};
use crate::names::Scope;
use crate::runner::Runner;
use crate::stand_in::StandIn;
use std::time::Duration;

impl StandIn {
    /// Something changed that may let a job start.
    pub(crate) fn plan_assignment(&mut self) {
        let at = self.now + self.timing.assign;
        if self.assignment_planned != Some(at) {
            self.assignment_planned = Some(at);
            self.schedule(at, Happening::Assign);
        }
    }

    /// Gives queued jobs, the oldest first, to idle runners, the one that waits longest first.
    pub(crate) fn assign(&mut self, now: Duration) {
        if self.assignment_planned == Some(now) {
            self.assignment_planned = None;
        }
        let queued: Vec<u64> = self.jobs.values().filter(|job| job.is_queued()).map(|job| job.id).collect();
        for id in queued {
            let Some(job) = self.jobs.get(&id) else { continue };
            let is_due = |runner: &&Runner| now >= runner.since.max(job.created) + self.timing.assign;
            let idle = self.runners.values().filter(|runner| runner.is_idle()).filter(is_due);
            let fitting = idle.filter(|runner| self.may_run(runner, job));
            let Some(runner) = fitting.min_by_key(|runner| (runner.since, runner.id)).map(|runner| runner.id) else {
                continue;
            };
            self.start_job(id, runner, now);
        }
    }

    fn may_run(&self, runner: &Runner, job: &Job) -> bool {
        let is_meant = match (job.assigned, runner.scale_set) {
            (None, None) => runner.has_labels(&job.spec.labels),
            (Some((wanted, _)), Some(found)) => wanted == found,
            _ => false,
        };
        is_meant && self.serves(&runner.scope, runner.group, job)
    }

    /// Whether a group of a scope serves the repository of a job.
    pub(crate) fn serves(&self, scope: &Scope, group: u64, job: &Job) -> bool {
        if !scope.covers(&job.spec.repository) {
            return false;
        }
        // A repository has no groups, and its own runners always serve it.
        let Some(group) = self.groups.get(&(scope.clone(), group)) else {
            return job.spec.group.is_none();
        };
        let is_wanted = job.spec.group.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(&group.name));
        let is_public = self.repositories.get(&job.spec.repository).is_some_and(|found| found.is_public);
        is_wanted && group.serves(&job.spec.repository, is_public)
    }

    fn start_job(&mut self, id: u64, runner_id: u64, now: Duration) {
        let (Some(runner), Some(job)) = (self.runners.get_mut(&runner_id), self.jobs.get_mut(&id)) else { return };
        runner.job = Some(id);
        let group = self.groups.get(&(runner.scope.clone(), runner.group));
        let on = RanOn {
            id: runner.id,
            name: runner.name.clone(),
            group: runner.group,
            group_name: group.map_or("Default", |group| group.name.as_str()).to_owned(),
            since: now,
        };
        job.state = JobState::InProgress(on);
        let (duration, attempt, is_lost) = (job.spec.duration, job.attempt, runner.is_lost);
        let name = runner.name.clone();
        self.executions.push(Execution { job: id, attempt, runner: runner_id, name, at: now });
        if is_lost {
            self.give_up_job(id, runner_id, now);
        } else if let Some(duration) = duration {
            self.schedule(now + duration, Happening::JobDue { job: id, runner: runner_id });
        }
        self.emit(id, "in_progress", now);
        self.tell_scale_set(id, "JobStarted");
    }

    /// Nobody hears of the machine of a job any more.
    pub(crate) fn give_up_job(&mut self, job: u64, runner: u64, now: Duration) {
        let ended = Happening::JobEnded { job, runner, conclusion: Conclusion::Failure };
        self.schedule(now + self.timing.lost, ended);
    }

    /// Ends a job, wherever it is, and what depends on it.
    pub(crate) fn finish_job(&mut self, id: u64, conclusion: Conclusion, now: Duration) {
        let Some(job) = self.jobs.get_mut(&id).filter(|job| !job.is_completed()) else { return };
        let on = job.ran_on().cloned();
        job.state = JobState::Completed { conclusion, at: now, on: on.clone() };
        self.emit(id, "completed", now);
        self.tell_scale_set(id, "JobCompleted");
        let Some(runner) = on.and_then(|on| self.runners.get_mut(&on.id)) else { return };
        runner.job = None;
        runner.since = now;
        if runner.is_ephemeral {
            runner.is_online = false;
            let removed = Happening::Removed(runner.id);
            self.schedule(now + self.timing.deregister, removed);
        }
        self.plan_assignment();
    }
}
