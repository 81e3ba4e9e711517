//! What the fleet reports: a journal makes log lines, events and metrics of it.

use crate::hypervisor::{MachineId, Owner};
use crate::machine::End;
use crate::object::Name;
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
const WARNINGS: [&str; 11] = [
    "CleanupFailed",
    "CleanupStuck",
    "ClusterNotFound",
    "ClusterNotReady",
    "ConfigurationError",
    "Forced",
    "InsufficientResources",
    "NoFreeId",
    "ProvisioningStuck",
    "TemplateInvalid",
    "TemplateNotFound",
];

/// The reasons of claims that are short steps.
const STEPS: [&str; 10] = [
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
];

impl Notice {
    /// How much attention it needs.
    pub fn weight(&self) -> Weight {
        let needs_person = match self {
            Notice::Claim { reason, .. } if STEPS.contains(&reason.as_str()) => return Weight::Step,
            Notice::Cluster { reason: "Connecting", .. } | Notice::Template { reason: "Validating", .. } => {
                return Weight::Step;
            }
            Notice::Claim { phase, reason, .. } => {
                *phase == Some(ClaimPhase::Failed) || WARNINGS.contains(&reason.as_str())
            }
            Notice::Cluster { is_ready: is_good, .. } | Notice::Template { is_valid: is_good, .. } => !is_good,
            Notice::Orphan { .. } | Notice::Forced { .. } | Notice::PoolHeld { .. } | Notice::SeedTrouble { .. } => {
                true
            }
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
