//! What happens at a time, without a request.

use crate::hook::Delivery;
use crate::job::{Conclusion, JobState};
use crate::stand_in::StandIn;
use std::time::Duration;

/// Something that happens at a time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Happening {
    /// Queued jobs are given to idle runners.
    Assign,
    /// A job has run its time, if it still runs on this runner.
    JobDue { job: u64, runner: u64 },
    /// A job is ended by a cancellation or because its runner was lost, if it still runs there.
    JobEnded { job: u64, runner: u64, conclusion: Conclusion },
    /// A runner that was lost is shown as offline.
    Offline(u64),
    /// A runner is removed after its job.
    Removed(u64),
    /// A runner that was offline since this moment is removed if it still is.
    Unused { runner: u64, since: Duration },
    /// A webhook is sent.
    Send(Box<Delivery>),
}

impl StandIn {
    pub(crate) fn happen(&mut self, happening: Happening, at: Duration) {
        match happening {
            Happening::Assign => self.assign(at),
            Happening::JobDue { job, runner } => {
                let is_lost = self.runners.get(&runner).is_none_or(|runner| runner.is_lost);
                let conclusion = self.jobs.get(&job).map_or(Conclusion::Success, |job| job.spec.conclusion);
                if !is_lost && self.runs_on(job, runner) {
                    self.finish_job(job, conclusion, at);
                }
            }
            Happening::JobEnded { job, runner, conclusion } => {
                if self.runs_on(job, runner) {
                    self.finish_job(job, conclusion, at);
                }
            }
            Happening::Offline(id) => {
                if let Some(runner) = self.runners.get_mut(&id).filter(|runner| runner.is_lost && runner.is_online) {
                    runner.is_online = false;
                    runner.since = at;
                    self.remove_if_unused(id, at);
                }
            }
            Happening::Removed(id) => {
                self.runners.remove(&id);
            }
            Happening::Unused { runner: id, since } => {
                let is_unused = |runner: &crate::Runner| {
                    !runner.is_online && runner.is_ephemeral && runner.job.is_none() && runner.since == since
                };
                if self.runners.get(&id).is_some_and(is_unused) {
                    self.runners.remove(&id);
                }
            }
            Happening::Send(delivery) => self.outbox.push(*delivery),
        }
    }

    /// Plans the removal of an ephemeral runner that stays offline.
    pub(crate) fn remove_if_unused(&mut self, id: u64, now: Duration) {
        if self.runners.get(&id).is_some_and(|runner| runner.is_ephemeral) {
            self.schedule(now + self.timing.unused, Happening::Unused { runner: id, since: now });
        }
    }

    pub(crate) fn runs_on(&self, job: u64, runner: u64) -> bool {
        self.jobs.get(&job).is_some_and(|job| matches!(&job.state, JobState::InProgress(on) if on.id == runner))
    }
}
