//! What goes into the state machine of jobs and runners, and what comes out of it.

use super::assign::Scale;
use super::demand::{Pool, Scope, Wait};
use super::fair::Rules;
use super::job::{JobKey, Observation, Repository};
use super::runners::{Claim, Phase, RunnerRecord, Seen, Why};
use super::table::{List, LookUp};
use crate::object::Name;
use change::Moment;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Event {
    /// A webhook or a message of a scale set says something about a job.
    Observed(Box<Observation>),
    /// A webhook says something about a job that has to be looked up before it is believed.
    Doubted(Box<Observation>),
    /// Jobs were listed.
    Listed(Box<List>),
    /// Jobs of an owner could not be listed.
    ListFailed(String),
    /// One job was looked up.
    LookedUp {
        /// The job.
        key: JobKey,
        /// When it was asked for.
        asked: Timestamp,
        /// The answer.
        answer: LookUp,
    },
    /// All runners of a scope were listed.
    Runners {
        /// The scope.
        scope: Scope,
        /// When they were asked for.
        asked: Moment,
        /// The runners, of whomever they are; nothing if they could not be listed, or not all.
        runners: Option<Vec<Seen>>,
    },
    /// A runner was registered, or not.
    Registered {
        /// The claim.
        claim: Name,
        /// The answer.
        answer: Registration,
    },
    /// A runner was looked for by its name.
    Found {
        /// The claim.
        claim: Name,
        /// Its id, if there is one; an error if that is not known.
        answer: Result<Option<u64>, ()>,
    },
    /// The configuration of a runner was delivered to its machine, or not.
    Delivered {
        /// The claim.
        claim: Name,
        /// Whether the machine has it.
        is_delivered: bool,
    },
    /// The guest of a machine says that its runner waits for a job, or runs one.
    Reported {
        /// The claim.
        claim: Name,
        /// Whether a job runs.
        is_busy: bool,
    },
    /// A runner was removed, or not.
    Removed {
        /// Where it was registered.
        scope: Scope,
        /// Its id.
        id: u64,
        /// The claim that it belongs to; nothing if it has none.
        claim: Option<Name>,
        /// The answer.
        answer: Removal,
    },
    /// How a scale set stands: how many jobs are assigned to it and have not ended, and how many are offered to it.
    Assigned {
        /// The scale set.
        scale_set: u64,
        /// The number of the session, growing, and the number of the message; 0 for what the session itself says.
        order: (u64, u64),
        /// How many are assigned.
        jobs: u32,
        /// How many are offered.
        offered: u32,
    },
    /// Jobs that were offered to a scale set are others'.
    Withdrawn {
        /// The scale set.
        scale_set: u64,
        /// The requests.
        requests: BTreeSet<u64>,
    },
    /// A scale set does not exist any more, or is not used any more.
    ScaleSetGone(u64),
    /// What is left of the limit of requests.
    Limits {
        /// The owner.
        owner: String,
        /// Requests in an hour.
        limit: u32,
        /// What is left.
        remaining: u32,
        /// When that is the limit again.
        reset: Timestamp,
    },
    /// GitHub asks for a pause.
    Paused {
        /// The owner.
        owner: String,
        /// Until when.
        until: Timestamp,
    },
}

/// What became of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Registration {
    /// The runner has this id, and its configuration is at hand.
    Done(u64),
    /// There is a runner of this name.
    NameTaken,
    /// Nothing was registered.
    Refused,
    /// No answer: it may have been registered.
    Unknown,
}

/// What became of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It is removed, or there was none.
    Removed,
    /// It has a job: it was not removed.
    Busy,
    /// It may or may not be removed.
    Unknown,
}

/// A request to GitHub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// What is left of the limit of requests; this one is free.
    Limits(String),
    /// List open jobs of an owner.
    ListJobs(String),
    /// Read one job.
    LookUp(Repository, JobKey),
    /// List all runners.
    ListRunners(Scope),
    /// Register a runner for one job.
    Register {
        /// The claim, whose pool has scope, labels and group.
        claim: Name,
        /// The name of the runner.
        name: String,
        /// The scale set that it is to belong to.
        scale_set: Option<u64>,
    },
    /// Find a runner by its name.
    Find {
        /// Where it would be registered.
        scope: Scope,
        /// The claim.
        claim: Name,
        /// The name of the runner.
        name: String,
    },
    /// Remove a runner unless it is busy.
    Remove {
        /// Where it is registered.
        scope: Scope,
        /// Its id.
        id: u64,
        /// Its claim, if it has one.
        claim: Option<Name>,
    },
}

/// An order about a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Write the runner to its status, or that there is none.
    Record(Option<RunnerRecord>),
    /// Deliver the configuration that is at hand to its machine.
    Deliver,
    /// Destroy the machine and delete the claim: no runner is left.
    End(Why),
}

/// What is to be done.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// Requests to GitHub.
    pub asks: Vec<Ask>,
    /// Orders about claims.
    pub orders: Vec<(Name, Order)>,
    /// How far each runner is.
    pub phases: BTreeMap<Name, Phase>,
    /// What each pool needs.
    pub scale: BTreeMap<Name, Scale>,
    /// Why each job waits that does.
    pub waits: BTreeMap<JobKey, Wait>,
    /// Offers to scale sets that are to be acquired.
    pub acquire: BTreeMap<u64, BTreeSet<u64>>,
    /// When to decide again if nothing happens before.
    pub wake: Moment,
}

/// What exists, as the API server has it.
#[derive(Debug, Clone, Copy)]
pub struct Objects<'a> {
    /// All pools.
    pub pools: &'a [Pool],
    /// All claims of pools.
    pub claims: &'a [Claim],
    /// Whether these are all claims: only then a runner can have none.
    pub is_complete: bool,
    /// Shares and quotas.
    pub rules: &'a Rules,
}
