//! The state of a line of `status` in one stable word, for people, scripts and filters.

use crate::status::{LineState, ObjectState};
use change::Reason;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The state of an asset or of its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum StateWord {
    /// The object cannot be written, read or rendered.
    Failed,
    /// Another manager applies fields that are wanted.
    Conflict,
    /// An annotation of the user on the object is refused.
    InvalidOverride,
    /// An annotation of the HyperConverged cannot be understood, so nothing changes.
    Suspended,
    /// The change waits for an approval.
    PendingApproval,
    /// The approved change waits for a maintenance window.
    PendingWindow,
    /// The approved change waits for a healthy pool.
    PendingPool,
    /// The operator is going to write the object.
    Pending,
    /// The operator is going to delete the object.
    PendingRemoval,
    /// The operator is going to hand the object back.
    PendingHandback,
    /// The object is being deleted, and that takes time.
    Deleting,
    /// Reconciliation is paused, by the user or after a fight.
    Paused,
    /// The object is not wanted any more, and stays until a person decides.
    LeftBehind,
    /// Nothing is known of the object yet.
    Unknown,
    /// The user set `mode: unmanaged`.
    Unmanaged,
    /// The user excluded the object.
    Excluded,
    /// The advisor governs the object.
    Governed,
    /// The object is as it should be.
    InSync,
    /// The asset is not switched on.
    Disabled,
    /// The asset does not apply to this cluster.
    NotApplicable,
    /// The object is gone, as it should be.
    Gone,
}

impl StateWord {
    /// All of them, the most urgent first.
    pub const ALL: [StateWord; 21] = [
        StateWord::Failed,
        StateWord::Conflict,
        StateWord::InvalidOverride,
        StateWord::Suspended,
        StateWord::PendingApproval,
        StateWord::PendingWindow,
        StateWord::PendingPool,
        StateWord::Pending,
        StateWord::PendingRemoval,
        StateWord::PendingHandback,
        StateWord::Deleting,
        StateWord::Paused,
        StateWord::LeftBehind,
        StateWord::Unknown,
        StateWord::Unmanaged,
        StateWord::Excluded,
        StateWord::Governed,
        StateWord::InSync,
        StateWord::Disabled,
        StateWord::NotApplicable,
        StateWord::Gone,
    ];

    /// Whether somebody should look at it.
    pub fn matters(self) -> bool {
        self < StateWord::InSync
    }

    /// Whether a person has to do something.
    pub fn is_problem(self) -> bool {
        self <= StateWord::Suspended
    }

    /// The word of a state.
    pub fn of(state: &LineState) -> StateWord {
        match state {
            LineState::Object(ObjectState::Held(reason)) => held(reason),
            LineState::Object(ObjectState::Unknown) => StateWord::Unknown,
            LineState::Object(ObjectState::InSync) => StateWord::InSync,
            LineState::Object(ObjectState::ToCreate | ObjectState::ToChange) => StateWord::Pending,
            LineState::Object(ObjectState::ToDelete) => StateWord::PendingRemoval,
            LineState::Object(ObjectState::ToHandBack) => StateWord::PendingHandback,
            LineState::Object(ObjectState::Deleting) => StateWord::Deleting,
            LineState::Object(ObjectState::Gone) => StateWord::Gone,
            LineState::NotWanted(_) => StateWord::Disabled,
            LineState::Unclear(_) => StateWord::Suspended,
            LineState::Governed { .. } => StateWord::Governed,
            LineState::NotApplicable(_) => StateWord::NotApplicable,
            LineState::Error(_) => StateWord::Failed,
        }
    }
}

fn held(reason: &Reason) -> StateWord {
    match reason {
        Reason::PatchRefused { .. } | Reason::IgnoreFieldsRefused { .. } | Reason::ModeUnknown { .. } => {
            StateWord::InvalidOverride
        }
        Reason::Unmanaged => StateWord::Unmanaged,
        Reason::Paused | Reason::PauseUnclear { .. } | Reason::Fighting { .. } | Reason::DeletedAgain => {
            StateWord::Paused
        }
        Reason::Excluded => StateWord::Excluded,
        Reason::Governed { .. } => StateWord::Governed,
        Reason::NeedsApproval { .. } | Reason::ManyDeletions { .. } => StateWord::PendingApproval,
        Reason::PoolNotReady { .. } => StateWord::PendingPool,
        Reason::WindowClosed { .. } => StateWord::PendingWindow,
        Reason::LeftBehind { .. } => StateWord::LeftBehind,
        Reason::OwnedByAnother { .. } => StateWord::Conflict,
        Reason::Suspended { .. } | Reason::ExclusionsUnclear | Reason::DeletionsUnknown { .. } => StateWord::Suspended,
        Reason::DeletionStuck { .. }
        | Reason::BackupFailed { .. }
        | Reason::NoSafeBackup
        | Reason::DocumentUnreadable { .. }
        | Reason::RefusedByServer { .. }
        | Reason::WriteFailed { .. }
        | Reason::ReadFailed { .. }
        | Reason::OwnersUnreadable => StateWord::Failed,
    }
}

impl fmt::Display for StateWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The variants are the words.
        f.pad(&format!("{self:?}"))
    }
}

impl std::str::FromStr for StateWord {
    type Err = String;

    fn from_str(text: &str) -> Result<StateWord, String> {
        let found = StateWord::ALL.into_iter().find(|word| word.to_string().eq_ignore_ascii_case(text));
        let names = || StateWord::ALL.map(|word| word.to_string()).join(", ");
        found.ok_or_else(|| format!("there is no such state; write one of {}", names()))
    }
}

#[cfg(test)]
mod tests {
    use super::StateWord;
    use crate::status::{LineState, ObjectState};
    use change::Reason;

    #[test]
    fn states_are_ordered_by_urgency_and_read_back() {
        assert!(StateWord::ALL.is_sorted());
        for word in StateWord::ALL {
            assert_eq!(word.to_string().to_lowercase().parse(), Ok(word));
        }
        assert!("held".parse::<StateWord>().unwrap_err().contains("PendingApproval"));
        let quiet = [StateWord::InSync, StateWord::Disabled, StateWord::NotApplicable, StateWord::Gone];
        for word in StateWord::ALL {
            assert_eq!(word.matters(), !quiet.contains(&word), "{word}");
        }
        assert_eq!(StateWord::ALL.into_iter().filter(|word| word.is_problem()).count(), 4);
    }

    #[test]
    fn every_state_is_in_the_reference_in_the_same_order() {
        let words = StateWord::ALL.map(|word| word.to_string());
        assert_eq!(words, api::reference::STATES.map(|state| state.word.to_owned()));
    }

    #[test]
    fn a_held_object_says_what_it_waits_for() {
        let word = |reason: Reason| StateWord::of(&LineState::Object(ObjectState::Held(reason)));
        let why = String::new;
        assert_eq!(word(Reason::PatchRefused { why: why() }), StateWord::InvalidOverride);
        assert_eq!(word(Reason::RefusedByServer { message: why() }), StateWord::Failed);
        assert_eq!(word(Reason::OwnedByAnother { manager: why(), fields: Vec::new() }), StateWord::Conflict);
        assert_eq!(word(Reason::Excluded), StateWord::Excluded);
        assert_eq!(word(Reason::Governed { by: why() }), StateWord::Governed);
        assert_eq!(word(Reason::Paused), StateWord::Paused);
        assert_eq!(StateWord::of(&LineState::Error(why())), StateWord::Failed);
        assert_eq!(StateWord::of(&LineState::Object(ObjectState::ToCreate)), StateWord::Pending);
    }
}
