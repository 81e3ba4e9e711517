//! The one table each of annotations, events and states, from which the commands and the reference pages are made.

mod advisor;
mod fleet;

pub use advisor::ADVISOR_EVENTS;
pub use fleet::FLEET_EVENTS;

use crate::annotation;

/// An annotation that users set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotation {
    /// Its key.
    pub key: &'static str,
    /// Where it is set.
    pub on: &'static str,
    /// What may be written.
    pub values: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

/// Where an annotation is set.
pub const ON_HCO: &str = "HyperConverged";
/// The same.
pub const ON_OBJECT: &str = "managed object";

/// The annotations that users set, beside those of a pack.
pub const ANNOTATIONS: [Annotation; 10] = [
    Annotation {
        key: annotation::AUTOPILOT,
        on: ON_HCO,
        values: "true, false, or names of features, groups and assets, comma-separated",
        default: "true",
        meaning: "switches the autopilot on or off, or on for some assets; a name that does not exist holds everything",
    },
    Annotation {
        key: annotation::DISABLED_RESOURCES,
        on: ON_HCO,
        values: "a YAML list of kind, name and namespace with * ? [a-z], or Kind/Name, Kind/Name; kinds in any case",
        default: "none",
        meaning: "objects that the autopilot leaves alone",
    },
    Annotation {
        key: annotation::APPROVAL,
        on: ON_HCO,
        values: "high-impact, none",
        default: "high-impact",
        meaning: "which writes wait for an approval; none means that nodes restart without one",
    },
    Annotation {
        key: annotation::APPROVED,
        on: ON_HCO,
        values: "digests, comma-separated",
        default: "none",
        meaning: "the approved changes; written by `virtpilot approve`",
    },
    Annotation {
        key: annotation::APPROVED_BY,
        on: ON_HCO,
        values: "one line for each digest",
        default: "none",
        meaning: "who approved, and when; written by `virtpilot approve`, and the operator does not read it",
    },
    Annotation {
        key: annotation::MAINTENANCE_WINDOW,
        on: ON_HCO,
        values: "such as Sat,Sun 01:00-05:00 Europe/Berlin; Wed 02:00-04:00 UTC",
        default: "at any time",
        meaning: "when approved changes may restart nodes; a value that cannot be read closes it",
    },
    Annotation {
        key: annotation::PATCH,
        on: ON_OBJECT,
        values: "a JSON patch (RFC 6902)",
        default: "none",
        meaning: "changes what the autopilot applies; `virtpilot explain patch KIND` lists the fields",
    },
    Annotation {
        key: annotation::IGNORE_FIELDS,
        on: ON_OBJECT,
        values: "JSON pointers (RFC 6901), comma-separated",
        default: "none",
        meaning: "fields that the autopilot gives up; their values stay",
    },
    Annotation {
        key: annotation::MODE,
        on: ON_OBJECT,
        values: "managed, unmanaged",
        default: "managed",
        meaning: "unmanaged: the autopilot never writes or deletes the object",
    },
    Annotation {
        key: annotation::RECONCILE_PAUSED,
        on: ON_OBJECT,
        values: "true, false, or a time such as 2027-01-31T18:00:00Z",
        default: "false",
        meaning: "pauses the object until the annotation is removed or until that time; also set after a fight with another writer",
    },
];

/// An event, by its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventReason {
    /// The reason.
    pub name: &'static str,
    /// Whether its type is Warning.
    pub warning: bool,
    /// What happened.
    pub meaning: &'static str,
    /// What to do.
    pub action: &'static str,
}

const fn normal(name: &'static str, meaning: &'static str, action: &'static str) -> EventReason {
    EventReason { name, warning: false, meaning, action }
}

const fn warning(name: &'static str, meaning: &'static str, action: &'static str) -> EventReason {
    EventReason { name, warning: true, meaning, action }
}

const NOTHING: &str = "nothing";

/// Every event that the operator publishes, all about the HyperConverged.
pub const EVENTS: [EventReason; 37] = [
    normal("AssetApplied", "an object was created, or its desired state has changed and was applied", NOTHING),
    normal(
        "Adopted",
        "an object of somebody else is managed from now on",
        "check the listed changes; `virtpilot rollback` restores it",
    ),
    normal(
        "TakenOver",
        "an object of the predecessor, or one that the advisor governed, is managed from now on",
        "check the listed changes",
    ),
    normal(
        "DriftCorrected",
        "somebody changed or deleted an object, and that was corrected",
        "to keep the change, use patch, ignore-fields or mode",
    ),
    warning(
        "DriftDetected",
        "somebody changed or deleted an object, and that is not corrected now",
        "see the event that says what it waits for",
    ),
    normal("Pruned", "an object that is not wanted any more was deleted", NOTHING),
    normal("TombstoneDeleted", "an object of a former release was deleted", NOTHING),
    normal("HandedBack", "an adopted object that is not wanted any more was left to its owner", NOTHING),
    normal(
        "LeftBehind",
        "an object is not wanted any more, and stays",
        "delete it by hand, or approve its deletion if a digest is shown",
    ),
    normal(
        "NotApplicable",
        "an object stays as it is, because its asset does not apply here any more",
        "delete it by hand if it is not needed",
    ),
    normal(
        "Disabled",
        "the autopilot was switched off; objects stay as they are",
        "`virtpilot handback` before an uninstall",
    ),
    warning(
        "ApprovalRequired",
        "a change restarts nodes, or deletes many objects",
        "`virtpilot plan`, then `virtpilot approve`",
    ),
    warning(
        "PoolNotReady",
        "an approved change waits for a healthy pool of nodes",
        "repair the pool; `virtpilot check` names the problem",
    ),
    warning("WindowClosed", "an approved change waits for a maintenance window", "wait, or change maintenance-window"),
    normal("RolloutStarted", "a pool restarts its nodes", NOTHING),
    normal("RolloutFinished", "all nodes of a pool run its configuration", NOTHING),
    normal("RolloutPaused", "a pool is paused, and its nodes do not run its configuration", "unpause the pool"),
    warning(
        "RolloutDegraded",
        "a node could not be updated",
        "repair the node; nothing else restarts nodes of the pool before that",
    ),
    normal("Paused", "the user paused an object", "remove reconcile-paused to resume"),
    normal("UnmanagedMode", "the user set mode to unmanaged", "remove mode to manage the object again"),
    normal("Excluded", "disabled-resources excludes an object", "remove the rule to manage the object again"),
    normal(
        "Governed",
        "a VirtPlatformConfig governs an object, so the autopilot leaves it alone",
        "set spec.action of the VirtPlatformConfig to Ignore and spec.handOver to true to give the object to the autopilot",
    ),
    warning(
        "InvalidPatch",
        "the annotation patch is refused; the last good state is kept",
        "`virtpilot explain patch KIND`, then correct it",
    ),
    warning(
        "InvalidIgnoreFields",
        "the annotation ignore-fields is refused; the last good state is kept",
        "correct the pointer that is named",
    ),
    warning("InvalidMode", "the annotation mode has another value than managed or unmanaged", "correct it"),
    warning(
        "InvalidPause",
        "the annotation reconcile-paused cannot be read, and counts as paused",
        "write true, or a time",
    ),
    warning(
        "InvalidAnnotation",
        "an annotation of an object has no effect, probably because of a typing error",
        "correct or remove it; `virtpilot lint` finds it before",
    ),
    warning(
        "InvalidConfiguration",
        "an annotation of the HyperConverged, or an asset, cannot be used as it is",
        "correct what is named; `virtpilot lint` finds it before",
    ),
    warning(
        "OwnedByAnother",
        "another manager applies fields that the asset sets; they are left to it",
        "let only one of them apply the fields, or use ignore-fields",
    ),
    warning(
        "ThrashingDetected",
        "another writer keeps changing or deleting an object, so it is paused",
        "stop the other writer, then remove reconcile-paused",
    ),
    warning(
        "ApplyFailed",
        "an object could not be read or written",
        "see the message; `virtpilot check` tests the rights",
    ),
    warning("BackupFailed", "an object was not adopted, because it could not be backed up", "see the message"),
    warning("DeletionStuck", "a deletion waits for finalizers", "check the controllers of the finalizers"),
    warning(
        "DocumentUnreadable",
        "a document in an object cannot be edited, and is left as it is",
        "correct the document",
    ),
    warning(
        "ListIncomplete",
        "deletions wait until all objects of a kind can be listed",
        "`virtpilot check` tests the rights",
    ),
    warning(
        "CRDMissing",
        "an asset that somebody asked for needs a kind that the cluster does not serve",
        "install the operator that provides it",
    ),
    normal("CRDDiscovered", "the cluster serves now what an asset was missing", NOTHING),
];

/// A state of an asset or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The word.
    pub word: &'static str,
    /// What it means.
    pub meaning: &'static str,
    /// What to do next.
    pub next: &'static str,
}

const fn state(word: &'static str, meaning: &'static str, next: &'static str) -> State {
    State { word, meaning, next }
}

/// Every state, the most urgent first.
pub const STATES: [State; 21] = [
    state(
        "Failed",
        "the object cannot be read, rendered or written",
        "correct what the detail names; `virtpilot check` tests the rights",
    ),
    state(
        "Conflict",
        "another manager applies fields that the asset sets",
        "let only one of them apply the fields, or use ignore-fields",
    ),
    state(
        "InvalidOverride",
        "an annotation on the object is refused; the last good state is kept",
        "correct the annotation; `virtpilot explain patch KIND` lists the fields",
    ),
    state(
        "Suspended",
        "an annotation of the HyperConverged cannot be read, so nothing is created or removed",
        "correct it; `virtpilot lint` names the line",
    ),
    state(
        "PendingApproval",
        "the change restarts nodes or deletes many objects, and waits for an approval",
        "`virtpilot plan`, then `virtpilot approve`",
    ),
    state("PendingWindow", "the approved change waits for a maintenance window", "wait, or change maintenance-window"),
    state(
        "PendingPool",
        "the approved change waits for a healthy pool of nodes",
        "repair the pool; `virtpilot check` names the problem",
    ),
    state("Pending", "the operator is going to write the object", "wait; if it stays, check that the operator runs"),
    state("PendingRemoval", "the operator is going to delete the object", "wait"),
    state("PendingHandback", "the operator is going to hand the object back", "wait"),
    state("Deleting", "the object is being deleted", "wait; if it stays, check its finalizers"),
    state(
        "Paused",
        "reconciliation is paused, by the user or after a fight",
        "remove reconcile-paused from the object",
    ),
    state(
        "LeftBehind",
        "the object is not wanted any more, and stays until a person decides",
        "delete it by hand, or approve its deletion",
    ),
    state("Unknown", "nothing is known of the object yet", "run the command again; `virtpilot check` tests the rights"),
    state("Unmanaged", "the user set mode to unmanaged", "remove mode from the object to manage it again"),
    state("Excluded", "disabled-resources excludes the object", "remove the rule to manage it again"),
    state(
        "Governed",
        "a VirtPlatformConfig governs the object, so the autopilot leaves it alone",
        "review the VirtPlatformConfig; its action Ignore with handOver true gives the object to the autopilot",
    ),
    state("InSync", "the object is as it should be", "nothing"),
    state("Disabled", "the asset is not switched on", "`virtpilot explain ASSET` names the switch"),
    state("NotApplicable", "the asset does not apply to this cluster", "`virtpilot explain ASSET` says why"),
    state("Gone", "the object is gone, as it should be", "nothing"),
];

/// Every phase of a profile of the advisor.
pub const PHASES: [State; 11] = [
    state("Pending", "nothing is known of the cluster yet", "wait; if it stays, check that the advisor runs"),
    state("Drafting", "the plan is being made", "wait"),
    state(
        "PrerequisiteFailed",
        "something that the profile needs is missing",
        "install what is named; the plan follows by itself",
    ),
    state(
        "ReviewRequired",
        "a plan waits for a person",
        "`virtpilot plan show NAME`, then `virtpilot approve NAME --digest DIGEST`",
    ),
    state(
        "InProgress",
        "an approved plan is being applied, or waits for nodes",
        "wait; the items say what they wait for",
    ),
    state("Completed", "the cluster is as the profile wants it", "nothing"),
    state(
        "CompletedWithErrors",
        "everything that could be applied was, and some items have failed",
        "correct what the failed items name",
    ),
    state(
        "CompletedWithUpgrade",
        "the cluster is as it was approved, and this version of the operator would configure it differently",
        "read the new plan; approve it, or leave it",
    ),
    state("Failed", "an item has failed, and the rest waits", "correct what the failed item names"),
    state("Drifted", "somebody has changed what was applied", "approve the plan to restore it, or edit the profile"),
    state("Ignored", "the profile is left alone", "set its action to DryRun to have it planned"),
];

#[cfg(test)]
mod tests {
    use super::{ADVISOR_EVENTS, ANNOTATIONS, EVENTS, PHASES, STATES};
    use crate::advisor::Phase;
    use crate::annotation;

    #[test]
    fn every_phase_is_a_phase() {
        for phase in PHASES {
            let read: Result<Phase, _> = serde_json::from_value(phase.word.into());
            assert!(read.is_ok(), "{}", phase.word);
        }
    }

    #[test]
    fn every_name_is_listed_once() {
        let names = |all: Vec<&str>| all.len() == all.iter().collect::<std::collections::BTreeSet<_>>().len();
        assert!(names(EVENTS.iter().map(|event| event.name).collect()));
        assert!(names(ADVISOR_EVENTS.iter().map(|event| event.name).collect()));
        assert!(names(STATES.iter().map(|state| state.word).collect()));
        assert!(names(PHASES.iter().map(|state| state.word).collect()));
        assert!(names(ANNOTATIONS.iter().map(|row| row.key).collect()));
        for key in annotation::USERS {
            assert!(ANNOTATIONS.iter().any(|row| row.key == key && row.on == super::ON_OBJECT), "{key}");
        }
    }
}
