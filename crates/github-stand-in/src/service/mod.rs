//! Scale sets: which jobs they are offered, and what their listener is told.

pub(crate) mod agents;
pub(crate) mod messages;
pub(crate) mod scale_sets;
pub(crate) mod sessions;

use crate::job::{Job, JobState};
use crate::names::Scope;
use crate::runner::contains_all;
use crate::setup::Assignment;
use crate::stand_in::StandIn;
use serde_json::{Value, json};
use std::time::Duration;

/// A moment that has not come, as the service writes it.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// A scale set.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleSet {
    /// Its id.
    pub id: u64,
    /// Its name, unique in its group.
    pub name: String,
    /// Whose jobs it runs.
    pub scope: Scope,
    /// The id of its group.
    pub group: u64,
    /// Its labels.
    pub labels: Vec<String>,
    /// How many runners its listener can have at most, as it says with each poll.
    pub max_capacity: u64,
    /// Who listens.
    pub session: Option<Session>,
    pub(crate) is_update_disabled: bool,
    pub(crate) created: Duration,
    /// What is not in a message yet.
    pub(crate) pending: Vec<Value>,
    /// Messages that were not deleted.
    pub(crate) messages: Vec<Message>,
    pub(crate) last_message: u64,
}

/// A listener of a scale set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: String,
    /// Its name for itself.
    pub owner: String,
    /// When it asked last.
    pub(crate) seen: Duration,
}

/// Something that a listener is told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Message {
    pub(crate) id: u64,
    pub(crate) items: Vec<Value>,
    pub(crate) statistics: Statistics,
}

/// A poll that waits for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Poll {
    /// The scale set.
    pub scale_set: u64,
    /// The session.
    pub session: String,
    /// The last message that the listener has.
    pub last: u64,
    /// When it is answered without a message.
    pub until: Duration,
}

/// How a scale set stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Jobs that could be acquired.
    pub available: u64,
    /// Jobs that were acquired and wait for a runner.
    pub acquired: u64,
    /// Jobs that were assigned and have not ended: how many runners are wanted.
    pub assigned: u64,
    /// Jobs that run.
    pub running: u64,
    /// Runners.
    pub registered: u64,
    /// Runners with a job.
    pub busy: u64,
    /// Runners that wait for one.
    pub idle: u64,
}

impl Statistics {
    pub(crate) fn json(&self) -> Value {
        json!({
            "totalAvailableJobs": self.available,
            "totalAcquiredJobs": self.acquired,
            "totalAssignedJobs": self.assigned,
            "totalRunningJobs": self.running,
            "totalRegisteredRunners": self.registered,
            "totalBusyRunners": self.busy,
            "totalIdleRunners": self.idle,
        })
    }
}

impl StandIn {
    /// How a scale set stands.
    pub fn statistics(&self, id: u64) -> Statistics {
        let mut found = Statistics::default();
        let Some(set) = self.scale_sets.get(&id) else { return found };
        for job in self.jobs.values() {
            let is_assigned = job.assigned.is_some_and(|(assigned, _)| assigned == id);
            match &job.state {
                JobState::Queued if is_assigned => found.acquired += 1,
                JobState::Queued if job.assigned.is_none() && self.fits(set, job) => found.available += 1,
                JobState::InProgress(_) if is_assigned => found.running += 1,
                _ => {}
            }
        }
        found.assigned = found.acquired + found.running;
        for runner in self.runners.values().filter(|runner| runner.scale_set == Some(id)) {
            found.registered += 1;
            found.busy += u64::from(runner.job.is_some());
            found.idle += u64::from(runner.is_idle());
        }
        found
    }

    /// Whether a scale set can run a job.
    fn fits(&self, set: &ScaleSet, job: &Job) -> bool {
        contains_all(&set.labels, &job.spec.labels) && self.serves(&set.scope, set.group, job)
    }

    /// Offers a new job to the scale sets that fit.
    pub(crate) fn offer(&mut self, id: u64) {
        let Some(job) = self.jobs.get(&id) else { return };
        let fitting: Vec<u64> = self.scale_sets.values().filter(|set| self.fits(set, job)).map(|set| set.id).collect();
        for set in fitting {
            match self.assignment {
                Assignment::Acquire => self.add_item(set, id, "JobAvailable"),
                Assignment::Automatic => self.assign_up_to_capacity(set),
            }
        }
    }

    /// Assigns queued jobs to a scale set as long as its listener says that it can run more.
    pub(crate) fn assign_up_to_capacity(&mut self, id: u64) {
        if self.assignment != Assignment::Automatic {
            return;
        }
        let Some(set) = self.scale_sets.get(&id).filter(|set| set.session.is_some()) else { return };
        let free = set.max_capacity.saturating_sub(self.statistics(id).assigned);
        let is_open = |job: &&Job| job.is_queued() && job.assigned.is_none() && self.fits(set, job);
        let open: Vec<u64> = self.jobs.values().filter(is_open).map(|job| job.id).collect();
        for job in open.into_iter().take(usize::try_from(free).unwrap_or(usize::MAX)) {
            self.assign_to(id, job);
        }
    }

    /// Assigns a job to a scale set, if no other has it.
    pub(crate) fn assign_to(&mut self, set: u64, id: u64) -> bool {
        let now = self.now;
        let Some(job) = self.jobs.get_mut(&id).filter(|job| job.is_queued()) else { return false };
        match job.assigned {
            Some((found, _)) => return found == set,
            None => job.assigned = Some((set, now)),
        }
        self.add_item(set, id, "JobAssigned");
        self.plan_assignment();
        true
    }

    /// Tells the scale set of a job what became of it.
    pub(crate) fn tell_scale_set(&mut self, job: u64, kind: &'static str) {
        let Some((set, _)) = self.jobs.get(&job).and_then(|job| job.assigned) else { return };
        self.add_item(set, job, kind);
        if kind == "JobCompleted" {
            self.assign_up_to_capacity(set);
        }
    }

    fn add_item(&mut self, set: u64, job: u64, kind: &'static str) {
        let Some(found) = self.jobs.get(&job) else { return };
        let item = self.item(found, set, kind);
        if let Some(set) = self.scale_sets.get_mut(&set) {
            set.pending.push(item);
        }
    }

    fn item(&self, job: &Job, set: u64, kind: &'static str) -> Value {
        let repository = &job.spec.repository;
        let (on, never) = (job.ran_on(), || NEVER.to_owned());
        let mut item = json!({
            "messageType": kind,
            "runnerRequestId": job.id,
            "repositoryName": repository.name,
            "ownerName": repository.owner,
            "jobId": format!("{:08x}-0000-4000-8000-{:012x}", job.run & 0xFFFF_FFFF, job.id),
            "jobWorkflowRef": format!("{repository}/.github/workflows/ci.yml@refs/heads/main"),
            "jobDisplayName": job.spec.name,
            "workflowRunId": job.run,
            "eventName": "push",
            "requestLabels": job.spec.labels,
            "queueTime": self.date(job.created),
            "scaleSetAssignTime": job.assigned.map_or_else(never, |(_, at)| self.date(at)),
            "runnerAssignTime": on.map_or_else(never, |on| self.date(on.since)),
            "finishTime": NEVER,
        });
        if kind == "JobAvailable" {
            let path = format!("_apis/runtime/runnerscalesets/{set}/acquirejobs");
            item["acquireJobUrl"] = format!("{}/{path}", self.service_address(set)).into();
        }
        if let JobState::Completed { conclusion, at, .. } = &job.state {
            item["finishTime"] = self.date(*at).into();
            item["result"] = conclusion.result().into();
        }
        if kind == "JobStarted" || kind == "JobCompleted" {
            item["runnerId"] = on.map_or(0, |on| on.id).into();
            item["runnerName"] = on.map_or("", |on| on.name.as_str()).into();
        }
        item
    }

    /// Where the actions service of the owner of a scale set is.
    pub(crate) fn service_address(&self, set: u64) -> String {
        let scope = self.scale_sets.get(&set).map(|set| set.scope.clone());
        self.service_of(&scope.unwrap_or(Scope::Enterprise(self.enterprise.clone())))
    }

    /// Where the actions service of a scope is.
    pub(crate) fn service_of(&self, scope: &Scope) -> String {
        format!("{}/_services/pipelines/{}", self.address, scope.path().replace('/', "-"))
    }
}
