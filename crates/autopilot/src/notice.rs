//! What is reported. The journal makes a log line, a Kubernetes event or a metric of each notice, or several of them.

use crate::evaluate::Exclusion;
use crate::removal::Cause;
use api::annotation;
use catalog::Need;
use change::reason::{Severity, names_or};
use change::{Changes, Corrections, Key, Mode, Reason, Steering};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One thing to report.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// Events are filed under this HyperConverged from now on: its key and uid.
    Subject(Key, String),
    /// Something happened to an object: its uid, if it exists.
    Object(Key, ObjectNotice, Option<String>),
    /// An object of our predecessor is as it should be, and is managed from now on without a write.
    TakenOverAsIs(Key),
    /// The state of an object, for metrics.
    State(Key, State),
    /// The overrides on an object, for metrics.
    Overridden(Key, Vec<OverrideKind>),
    /// A write of an object was answered, for metrics.
    Answered {
        /// The object.
        key: Key,
        /// How long the answer took.
        took: Duration,
        /// Whether it failed; a write that was decided from an older version of the object did not.
        is_error: bool,
    },
    /// An object stays as it is and is not managed any more, because its asset does not apply here any more.
    NotApplicable(Key, Exclusion),
    /// The user switched the autopilot off.
    SwitchedOff,
    /// The configuration, or an asset, cannot be used as it is.
    Invalid(String),
    /// Assets that somebody asked for need something that the cluster does not serve.
    Missing(Need, Vec<String>),
    /// The cluster serves now what was missing.
    Served(Need, Vec<String>),
    /// Nobody asks any more for what was missing.
    NotNeeded(Need),
    /// The API server does not serve HyperConverged.
    NoHyperConverged,
    /// The HyperConverged does not exist.
    HyperConvergedAbsent {
        /// The HyperConverged.
        key: Key,
        /// Whether it existed before: somebody deleted it.
        existed: bool,
    },
    /// The API server does not answer which kinds it serves.
    DiscoveryFailed(String),
    /// A kind cannot be watched now.
    WatchLost {
        /// The kind.
        kind: String,
        /// Why.
        why: String,
    },
    /// A search for objects to remove failed.
    SearchFailed {
        /// The kind.
        kind: String,
        /// Why.
        why: String,
    },
    /// The records could not be written: budgets of recreation and used approvals.
    RecordFailed {
        /// Why.
        why: String,
    },
    /// The report could not be written; it is tried again.
    PublishFailed {
        /// Why.
        why: String,
    },
    /// How far the rollout of a pool is.
    Rollout {
        /// The rollout.
        rollout: Rollout,
        /// Its state before; `None` if it was not known.
        before: Option<RolloutState>,
    },
    /// The API server serves what the advisor is asked with.
    AdvisorServed,
    /// A pool does not exist any more.
    PoolGone(String),
    /// A node has restarted.
    NodeRestarted {
        /// The node.
        node: String,
        /// Its pool.
        pool: String,
    },
    /// A write failed and is tried again.
    Retry {
        /// Why.
        why: String,
        /// How long until then, in milliseconds.
        wait: u128,
    },
}

/// How far a pool is with the configuration that its nodes are to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rollout {
    /// The pool.
    pub pool: String,
    /// The state.
    pub state: RolloutState,
    /// The number of machines that run the configuration.
    pub updated: i64,
    /// The number of machines.
    pub machines: i64,
}

/// The state of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RolloutState {
    /// All machines run what they should.
    Done,
    /// Machines are being updated.
    Updating,
    /// The pool is paused, and machines do not run what they should.
    Paused,
    /// A machine could not be updated, or the configuration could not be rendered.
    Degraded,
}

impl Rollout {
    /// The Kubernetes event that tells of it, if its state is another one than before.
    pub fn event(&self, before: Option<RolloutState>) -> Option<(Severity, &'static str)> {
        match (before, self.state) {
            (None, RolloutState::Done) => None,
            (Some(before), state) if before == state => None,
            (Some(RolloutState::Degraded), RolloutState::Updating | RolloutState::Paused) => None,
            (_, RolloutState::Done) => Some((Severity::Normal, "RolloutFinished")),
            (_, RolloutState::Updating) => Some((Severity::Normal, "RolloutStarted")),
            (_, RolloutState::Paused) => Some((Severity::Normal, "RolloutPaused")),
            (_, RolloutState::Degraded) => Some((Severity::Warning, "RolloutDegraded")),
        }
    }
}

impl fmt::Display for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rollout { pool, updated, machines, .. } = self;
        match self.state {
            RolloutState::Done => write!(f, "all {machines} machines of pool {pool} run its configuration"),
            // Its counts may be older than the change.
            RolloutState::Updating if updated == machines => write!(f, "pool {pool} is updating"),
            RolloutState::Updating => write!(f, "pool {pool} is updating: {updated} of {machines} machines are done"),
            RolloutState::Paused if updated == machines => {
                write!(f, "pool {pool} is paused, and its machines do not run its configuration; resume it to go on")
            }
            RolloutState::Paused => {
                write!(
                    f,
                    "pool {pool} is paused: {updated} of {machines} machines run its configuration; resume it to go on"
                )
            }
            RolloutState::Degraded => {
                write!(
                    f,
                    "pool {pool} is degraded: {updated} of {machines} machines are done; nothing else that restarts its nodes goes ahead until that is repaired"
                )
            }
        }
    }
}

/// What users change about one object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OverrideKind {
    /// A JSON patch.
    Patch,
    /// Fields that are theirs.
    Ignore,
    /// All of it.
    Unmanaged,
}

impl OverrideKind {
    /// The overrides that the annotations of an object ask for.
    pub(crate) fn of(annotations: &BTreeMap<String, String>) -> Vec<OverrideKind> {
        let is_set = |key: &str| annotations.get(key).is_some_and(|value| !value.trim().is_empty());
        let is_unmanaged = Steering::read(annotations).is_ok_and(|steering| steering.mode == Mode::Unmanaged);
        let all = [
            (OverrideKind::Patch, is_set(annotation::PATCH)),
            (OverrideKind::Ignore, is_set(annotation::IGNORE_FIELDS)),
            (OverrideKind::Unmanaged, is_unmanaged),
        ];
        all.into_iter().filter(|(_, is_set)| *is_set).map(|(kind, _)| kind).collect()
    }

    /// The predecessor's name for it.
    pub fn name(self) -> &'static str {
        match self {
            OverrideKind::Patch => "patch",
            OverrideKind::Ignore => "ignore",
            OverrideKind::Unmanaged => "unmanaged",
        }
    }
}

/// The state of an object.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It is as it should be.
    InSync,
    /// It is held.
    Held(Reason),
    /// It could not be written.
    Failed,
    /// It is not wanted, and held back from removal.
    RemovalHeld(Cause, Reason),
    /// A former release created it, and it is not deleted yet.
    TombstonePresent,
    /// A former release created it, and its deletion failed.
    TombstoneFailed,
    /// A former release would have created it, and it does not exist.
    TombstoneAbsent,
    /// It is not managed any more.
    Forgotten,
}

/// Something that happened to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum ObjectNotice {
    /// It was created, or its desired state has changed.
    Applied,
    /// It was foreign and is managed now.
    Adopted {
        /// What that changed.
        changes: Changes,
    },
    /// It was our predecessor's and is managed now.
    TakenOver {
        /// What that changed.
        changes: Changes,
    },
    /// The advisor governed it, and it is managed again.
    TakenBack {
        /// What that changed.
        changes: Changes,
    },
    /// It was not wanted any more, and was deleted.
    Pruned {
        /// The overrides that were on it: key and value.
        dropped: Vec<(String, String)>,
    },
    /// A former release created it, and it was deleted.
    TombstoneDeleted,
    /// It was not wanted any more, and was handed back.
    HandedBack,
    /// Somebody deleted it, and it was created again.
    Recreated {
        /// The overrides that were on it: key and value.
        dropped: Vec<(String, String)>,
    },
    /// Somebody changed these fields, and they were corrected.
    Corrected {
        /// The field managers, as far as the object names them.
        actors: Vec<String>,
        /// The fields.
        fields: Vec<String>,
        /// Their values, as far as they are known and may be shown.
        values: Corrections,
    },
    /// Somebody changed or deleted it, and that is not corrected now: it is held, throttled, or the write failed.
    Drifted(Drift),
    /// A setting on it has no effect, probably because of a typing error.
    Advice(String),
    /// It is held, for this reason.
    Held(Reason),
}

/// What somebody did to an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Drift {
    /// Changed it.
    Changed {
        /// The field managers, as far as the object names them.
        actors: Vec<String>,
        /// The fields.
        fields: Vec<String>,
    },
    /// Deleted it.
    Deleted,
}

impl ObjectNotice {
    /// The drift that the write behind this notice would have corrected.
    pub(crate) fn drift(&self) -> Option<Drift> {
        match self {
            ObjectNotice::Corrected { actors, fields, .. }
            | ObjectNotice::Held(Reason::Fighting { actors, fields }) => {
                Some(Drift::Changed { actors: actors.clone(), fields: fields.clone() })
            }
            ObjectNotice::Recreated { .. } => Some(Drift::Deleted),
            _ => None,
        }
    }

    /// How serious it is.
    pub fn severity(&self) -> Severity {
        match self {
            ObjectNotice::Held(reason) => reason.severity(),
            ObjectNotice::Advice(_) | ObjectNotice::Drifted(_) => Severity::Warning,
            ObjectNotice::Applied
            | ObjectNotice::Adopted { .. }
            | ObjectNotice::TakenOver { .. }
            | ObjectNotice::TakenBack { .. }
            | ObjectNotice::Pruned { .. }
            | ObjectNotice::TombstoneDeleted
            | ObjectNotice::HandedBack
            | ObjectNotice::Recreated { .. }
            | ObjectNotice::Corrected { .. } => Severity::Normal,
        }
    }

    /// The reason of the Kubernetes event.
    pub fn name(&self) -> &'static str {
        match self {
            ObjectNotice::Applied => "AssetApplied",
            ObjectNotice::Adopted { .. } => "Adopted",
            ObjectNotice::TakenOver { .. } | ObjectNotice::TakenBack { .. } => "TakenOver",
            ObjectNotice::Pruned { .. } => "Pruned",
            ObjectNotice::TombstoneDeleted => "TombstoneDeleted",
            ObjectNotice::HandedBack => "HandedBack",
            ObjectNotice::Recreated { .. } | ObjectNotice::Corrected { .. } => "DriftCorrected",
            ObjectNotice::Drifted(_) => "DriftDetected",
            ObjectNotice::Advice(_) => "InvalidAnnotation",
            ObjectNotice::Held(reason) => reason.name(),
        }
    }
}

impl fmt::Display for ObjectNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectNotice::Applied => write!(f, "applied"),
            ObjectNotice::Adopted { changes } => {
                write!(f, "adopted; a backup of the object as it was is kept. {}", changed(changes))
            }
            ObjectNotice::TakenOver { changes } => write!(f, "taken over from the predecessor. {}", changed(changes)),
            ObjectNotice::TakenBack { changes } => {
                write!(f, "taken over from the advisor, which governs it no more. {}", changed(changes))
            }
            ObjectNotice::Pruned { dropped } => write!(f, "pruned: it was not wanted any more{}", lost(dropped)),
            ObjectNotice::TombstoneDeleted => write!(f, "deleted: a former release created it"),
            ObjectNotice::HandedBack => {
                write!(f, "handed back: it is not wanted any more, and somebody else created it; its values stay")
            }
            ObjectNotice::Recreated { dropped } => write!(f, "somebody deleted it; it was recreated{}", lost(dropped)),
            ObjectNotice::Corrected { actors, fields, values } => write!(
                f,
                "{} changed {}; the drift was corrected{values}",
                names_or(actors, "somebody"),
                names_or(fields, "our managedFields entry"),
            ),
            ObjectNotice::Drifted(Drift::Changed { actors, fields }) => write!(
                f,
                "{} changed {}; the drift is not corrected now",
                names_or(actors, "somebody"),
                names_or(fields, "our managedFields entry"),
            ),
            ObjectNotice::Drifted(Drift::Deleted) => write!(f, "somebody deleted it; it is not recreated now"),
            ObjectNotice::Advice(advice) => f.write_str(advice),
            ObjectNotice::Held(reason) => reason.fmt(f),
        }
    }
}

fn lost(dropped: &[(String, String)]) -> String {
    let lost: Vec<String> = dropped.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    if lost.is_empty() { String::new() } else { format!(", without its overrides: {}", lost.join("; ")) }
}

fn changed(changes: &Changes) -> String {
    if changes.is_empty() { "Nothing was changed".to_owned() } else { format!("Changed: {changes}") }
}

#[cfg(test)]
mod tests {
    use super::{Changes, Corrections, Drift, ObjectNotice, Rollout, RolloutState, Severity};

    #[test]
    fn a_write_that_corrects_a_change_or_a_deletion_names_the_drift() {
        let (actors, fields) = (vec!["them".to_owned()], vec![".data".to_owned()]);
        let values = Corrections::default();
        let corrected = ObjectNotice::Corrected { actors: actors.clone(), fields: fields.clone(), values };
        assert_eq!(corrected.drift(), Some(Drift::Changed { actors, fields }));
        assert_eq!(ObjectNotice::Recreated { dropped: Vec::new() }.drift(), Some(Drift::Deleted));
        assert_eq!(ObjectNotice::Applied.drift(), None);
    }

    #[test]
    fn every_notice_is_an_event_of_the_reference() {
        let (none, changes) = (Vec::new, Changes::default);
        let notices = [
            ObjectNotice::Applied,
            ObjectNotice::Adopted { changes: changes() },
            ObjectNotice::TakenOver { changes: changes() },
            ObjectNotice::TakenBack { changes: changes() },
            ObjectNotice::Pruned { dropped: none() },
            ObjectNotice::TombstoneDeleted,
            ObjectNotice::HandedBack,
            ObjectNotice::Recreated { dropped: none() },
            ObjectNotice::Corrected { actors: Vec::new(), fields: Vec::new(), values: Corrections::default() },
            ObjectNotice::Drifted(Drift::Deleted),
            ObjectNotice::Advice(String::new()),
        ];
        let rollouts = [RolloutState::Done, RolloutState::Updating, RolloutState::Paused, RolloutState::Degraded];
        let rollouts = rollouts.map(|state| Rollout { pool: String::new(), state, updated: 0, machines: 1 });
        let before = |rollout: &Rollout| match rollout.state {
            RolloutState::Done => RolloutState::Updating,
            _ => RolloutState::Done,
        };
        let events = notices.iter().map(|notice| (notice.severity(), notice.name()));
        for (severity, name) in events.chain(rollouts.iter().filter_map(|rollout| rollout.event(Some(before(rollout)))))
        {
            let row = api::reference::EVENTS.iter().find(|row| row.name == name);
            assert_eq!(row.map(|row| row.warning), Some(severity == Severity::Warning), "{name}");
        }
    }

    #[test]
    fn a_rollout_says_how_many_machines_are_done_unless_its_counts_are_older_than_the_change() {
        let said = |state: RolloutState, updated: i64| {
            Rollout { pool: "worker".to_owned(), state, updated, machines: 3 }.to_string()
        };
        assert_eq!(said(RolloutState::Updating, 3), "pool worker is updating");
        assert_eq!(said(RolloutState::Updating, 1), "pool worker is updating: 1 of 3 machines are done");
        assert_eq!(
            said(RolloutState::Paused, 3),
            "pool worker is paused, and its machines do not run its configuration; resume it to go on"
        );
        assert_eq!(
            said(RolloutState::Paused, 1),
            "pool worker is paused: 1 of 3 machines run its configuration; resume it to go on"
        );
    }
}
