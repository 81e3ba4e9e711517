//! What the fleet reports: a journal makes log lines, events and metrics of it.

use crate::hypervisor::{MachineId, Owner, Power};
use crate::jobs::figures::Figures;
use crate::jobs::milestones::Milestone;
use crate::machine::End;
use crate::object::Name;
use crate::versions;
use api::fleet::{ClaimPhase, FailureClass};
use std::time::Duration;

/// One report.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// A claim is in another phase, or for another reason.
    Claim {
        /// The claim.
        name: Name,
        /// Its uid.
        uid: String,
        /// The phase; nothing if the claim is gone.
        phase: Option<ClaimPhase>,
        /// Why, in one word.
        reason: String,
        /// Why, in a sentence.
        message: String,
        /// Its machine.
        machine: Option<MachineId>,
        /// How long it took from the creation of the claim until it was ready, once it is.
        ready_after: Option<Duration>,
    },
    /// A claim is deleted by the fleet.
    Ended {
        /// The claim.
        name: Name,
        /// Its uid.
        uid: String,
        /// Why.
        end: End,
    },
    /// An operation on a hypervisor has ended.
    Operation {
        /// The hypervisor.
        cluster: Name,
        /// The claim that it is for.
        claim: Option<Name>,
        /// The machine that it is about.
        machine: Option<MachineId>,
        /// The node of that machine, as far as it is known.
        node: Option<String>,
        /// What was done, in one word.
        operation: &'static str,
        /// How long it took.
        took: Duration,
        /// Why it failed, if it did.
        failure: Option<(FailureClass, String)>,
    },
    /// A hypervisor answers, or not any more.
    Cluster {
        /// The hypervisor.
        name: Name,
        /// The uid of its object.
        uid: String,
        /// Whether it can be used.
        is_ready: bool,
        /// Why, in one word.
        reason: &'static str,
        /// Why, in a sentence.
        message: String,
    },
    /// The machines of claims as the last list of a hypervisor shows them, if their numbers have changed.
    Machines {
        /// The hypervisor.
        cluster: Name,
        /// How many run, do not run, and of how many the hypervisor does not say.
        powers: [(Power, u32); 3],
    },
    /// A template can be used, or not any more.
    Template {
        /// The template.
        name: Name,
        /// Its uid.
        uid: String,
        /// Whether machines can be made from it.
        is_valid: bool,
        /// Why, in one word.
        reason: &'static str,
        /// Why, in a sentence.
        message: String,
    },
    /// A pool wants another number of machines, or has another one.
    Pool {
        /// The pool.
        name: Name,
        /// Its uid.
        uid: String,
        /// How many are wanted.
        desired: i32,
        /// How many there are.
        replicas: i32,
        /// How many are ready.
        ready: i32,
        /// Why, in a sentence.
        message: String,
    },
    /// The CI platform of a pool can be used, or not any more.
    Forge {
        /// The pool.
        pool: Name,
        /// Its uid.
        uid: String,
        /// Whether runners can be registered.
        is_connected: bool,
        /// Why, in one word.
        reason: &'static str,
        /// Why, in a sentence.
        message: String,
    },
    /// A request to a CI platform failed. It is tried again.
    ForgeFailed {
        /// What was to be done.
        what: &'static str,
        /// Why it failed.
        message: String,
    },
    /// The guest of a claim has said why it ends.
    GuestEnded {
        /// The claim.
        claim: Name,
        /// Its uid.
        uid: String,
        /// Why, in one word.
        reason: &'static str,
        /// Whether nothing went wrong.
        is_expected: bool,
        /// Why, in a sentence, with the end of the runner's output if something went wrong.
        message: String,
    },
    /// Somebody has presented the token of a claim that somebody else has used: one of them has stolen it.
    TokenReused {
        /// The claim.
        claim: Name,
        /// Its uid.
        uid: String,
    },
    /// A pool creates no claims for a while.
    PoolHeld {
        /// The pool.
        name: Name,
        /// Its uid.
        uid: String,
        /// Why, in one word.
        reason: &'static str,
        /// Why, in a sentence.
        message: String,
    },
    /// A machine of this installation that no claim refers to.
    Orphan {
        /// The hypervisor.
        cluster: Name,
        /// The machine.
        machine: MachineId,
        /// What its record says.
        owner: Owner,
        /// Whether it is destroyed now.
        is_destroyed: bool,
    },
    /// A machine that no claim refers to has the tag of the fleet, or is in its resource pool, and does not say whose it is.
    Unrecorded {
        /// The hypervisor.
        cluster: Name,
        /// The machine.
        machine: MachineId,
        /// Its name.
        name: String,
    },
    /// The image of a seed that no claim and no machine needs.
    Seed {
        /// The hypervisor.
        cluster: Name,
        /// The image.
        volume: String,
        /// The uid of the claim that it was made for.
        uid: String,
        /// Whether it is deleted now.
        is_deleted: bool,
    },
    /// Images of seeds that nobody needs cannot be found or deleted.
    SeedTrouble {
        /// The hypervisor.
        cluster: Name,
        /// Why.
        message: String,
    },
    /// A claim is deleted although its machine was not seen to be gone, because a person asked for it.
    Forced {
        /// The claim.
        name: Name,
        /// Its uid.
        uid: String,
        /// Its machine.
        machine: Option<MachineId>,
    },
    /// A job was noticed, was started or has ended.
    Job(Box<Milestone>),
    /// Numbers about jobs and runners have changed.
    JobFigures(Box<Figures>),
    /// A runner was registered without a claim, and is removed.
    OrphanRunner {
        /// A pool of its organisation or repository.
        pool: Name,
        /// The uid of its object.
        uid: String,
        /// The organisation or user.
        owner: String,
        /// Its id on GitHub.
        id: u64,
    },
    /// The runner versions of a pool have changed.
    RunnerVersion {
        /// The pool.
        pool: Name,
        /// The uid of its object.
        uid: String,
        /// How.
        news: versions::News,
    },
    /// Something is wrong with the runner versions of a pool, or will be.
    RunnerVersionTrouble {
        /// The pool.
        pool: Name,
        /// The uid of its object.
        uid: String,
        /// What.
        warning: versions::Warning,
    },
    /// Deliveries of a webhook that failed are made again, or not any more.
    WebhooksRedelivered {
        /// A pool that the webhook is for.
        pool: Name,
        /// The uid of its object.
        uid: String,
        /// How many are made again.
        asked: u64,
        /// How many are left to polls.
        given_up: u64,
    },
    /// The queue that people read could not be written.
    QueueNotWritten(String),
    /// An object cannot be read.
    Unreadable {
        /// Its kind.
        kind: String,
        /// The object.
        name: Name,
        /// Why.
        why: String,
    },
    /// An object could not be written.
    WriteFailed {
        /// The object.
        key: change::Key,
        /// Why.
        why: String,
    },
    /// It could not be found out what the server serves.
    DiscoveryFailed(String),
    /// A kind cannot be watched now.
    WatchLost {
        /// The kind.
        kind: String,
        /// Why.
        why: String,
    },
}

/// How much attention a notice needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A short step of every life: events about these would only be many.
    Step,
    /// Something that people want to find later.
    Normal,
    /// Something that needs a person.
    Warning,
}

/// The reasons of claims that need somebody's attention.
const WARNINGS: [&str; 13] = [
    "CleanupFailed",
    "CleanupStuck",
    "ClusterNotFound",
    "ClusterNotReady",
    "ConfigurationError",
    "Forced",
    "InsufficientResources",
    "MachineHalted",
    "NoFreeId",
    "OwnerRecordMissing",
    "ProvisioningStuck",
    "TemplateInvalid",
    "TemplateNotFound",
];

/// The reasons of claims that are short steps.
const STEPS: [&str; 11] = [
    "Accepted",
    "Configuring",
    "Deleting",
    "Inspecting",
    "Placed",
    "Surveying",
    "TemplateUnchecked",
    "Waiting",
    "WaitingForCloudInit",
    "WaitingForGuest",
    "WaitingForRunner",
];

impl Notice {
    /// How much attention it needs.
    pub fn weight(&self) -> Weight {
        let needs_person = match self {
            Notice::Claim { reason, .. } if STEPS.contains(&reason.as_str()) => return Weight::Step,
            Notice::Forge { reason: "Connecting", .. } => return Weight::Step,
            Notice::Cluster { reason: "Connecting", .. } | Notice::Template { reason: "Validating", .. } => {
                return Weight::Step;
            }
            Notice::Claim { phase, reason, .. } => {
                *phase == Some(ClaimPhase::Failed) || WARNINGS.contains(&reason.as_str())
            }
            Notice::Forge { is_connected: is_good, .. } | Notice::GuestEnded { is_expected: is_good, .. } => !is_good,
            Notice::TokenReused { .. } => true,
            Notice::Cluster { is_ready: is_good, .. } | Notice::Template { is_valid: is_good, .. } => !is_good,
            Notice::Orphan { .. }
            | Notice::OrphanRunner { .. }
            | Notice::Unrecorded { .. }
            | Notice::RunnerVersionTrouble { .. }
            | Notice::RunnerVersion { news: versions::News::RolledBack(..), .. }
            | Notice::Forced { .. }
            | Notice::PoolHeld { .. }
            | Notice::SeedTrouble { .. } => true,
            _ => false,
        };
        if needs_person { Weight::Warning } else { Weight::Normal }
    }
}

#[cfg(test)]
mod tests {
    use super::{STEPS, WARNINGS};
    use api::reference::FLEET_EVENTS;

    #[test]
    fn every_warning_is_in_the_reference_as_one_and_no_step_is_in_it() {
        for reason in WARNINGS {
            let row = FLEET_EVENTS.iter().find(|row| row.name == reason);
            assert!(row.is_some_and(|row| row.warning), "{reason}");
        }
        assert_eq!(FLEET_EVENTS.iter().find(|row| STEPS.contains(&row.name)), None);
    }
}
