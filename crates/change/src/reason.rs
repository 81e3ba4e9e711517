//! Why something is not done. Worded once: log, event, metric and status take it from here.

use crate::digest::Digest;
use serde::Serialize;
use std::fmt;

/// Why we hold back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "reason")]
pub enum Reason {
    /// The user's patch is not allowed or does not fit.
    PatchRefused {
        /// Why.
        why: String,
    },
    /// The user's list of ignored fields is not allowed.
    IgnoreFieldsRefused {
        /// Why.
        why: String,
    },
    /// The value of `mode` is neither `managed` nor `unmanaged`.
    ModeUnknown {
        /// What was written.
        value: String,
    },
    /// The user took the object out of our hands.
    Unmanaged,
    /// The object is paused, by us after a fight or by the user.
    Paused,
    /// The object is paused until a moment that cannot be read.
    PauseUnclear {
        /// What was written.
        value: String,
    },
    /// The user excluded the object.
    Excluded,
    /// Writing it restarts nodes, and nobody said yes to that.
    NeedsApproval {
        /// What a yes has to name.
        digest: Digest,
        /// The nodes it restarts, in words.
        restarts: String,
        /// What it would change, where that was looked at.
        changes: Vec<String>,
    },
    /// It is not wanted any more, and stays.
    LeftBehind {
        /// Why.
        why: String,
    },
    /// It is on its way out, and somebody keeps it.
    DeletionStuck {
        /// Who has to agree.
        finalizers: Vec<String>,
    },
    /// It is somebody else's and could not be copied before it is taken over.
    BackupFailed {
        /// Why.
        why: String,
    },
    /// Somebody writes against us again and again.
    Fighting {
        /// Who, as far as the object tells.
        actors: Vec<String>,
        /// Over which fields.
        fields: Vec<String>,
    },
    /// The API server does not take it.
    RefusedByServer {
        /// The server's words.
        words: String,
    },
    /// Somebody deletes it again and again.
    DeletedAgain,
    /// What is wanted as a whole is unclear: an annotation of the HyperConverged cannot be read.
    Frozen,
    /// Another manager applied these fields: they are theirs.
    OwnedByAnother {
        /// Who.
        manager: String,
        /// Which.
        fields: Vec<String>,
    },
}

impl Reason {
    /// Whether it says nothing new after the other: which nodes an approval is about is told, and nodes come and go.
    pub fn is_same(&self, other: &Reason) -> bool {
        match (self, other) {
            (Reason::NeedsApproval { digest: one, .. }, Reason::NeedsApproval { digest: two, .. }) => one == two,
            (one, two) => one == two,
        }
    }

    /// The word under which events and metrics file it.
    pub fn word(&self) -> &'static str {
        match self {
            Reason::PatchRefused { .. } => "InvalidPatch",
            Reason::IgnoreFieldsRefused { .. } => "InvalidIgnoreFields",
            Reason::ModeUnknown { .. } => "InvalidMode",
            Reason::Unmanaged => "UnmanagedMode",
            Reason::Paused => "Paused",
            Reason::PauseUnclear { .. } => "InvalidPause",
            Reason::Excluded => "Excluded",
            Reason::NeedsApproval { .. } => "ApprovalRequired",
            Reason::LeftBehind { .. } => "LeftBehind",
            Reason::DeletionStuck { .. } => "DeletionStuck",
            Reason::BackupFailed { .. } => "BackupFailed",
            Reason::Fighting { .. } => "ThrashingDetected",
            Reason::RefusedByServer { .. } => "ApplyFailed",
            Reason::DeletedAgain => "ThrashingDetected",
            Reason::Frozen => "InvalidConfiguration",
            Reason::OwnedByAnother { .. } => "OwnedByAnother",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::PatchRefused { why } => write!(f, "the patch is refused, the last good state is kept: {why}"),
            Reason::IgnoreFieldsRefused { why } => {
                write!(f, "ignore-fields is refused, the last good state is kept: {why}")
            }
            Reason::ModeUnknown { value } => write!(f, "mode is {value:?}; write managed or unmanaged"),
            Reason::Unmanaged => write!(f, "mode is unmanaged: it is left alone"),
            Reason::Paused => write!(f, "it is paused; remove the annotation reconcile-paused to resume"),
            Reason::PauseUnclear { value } => write!(
                f,
                "reconcile-paused is {value:?}, which counts as paused; write true, or a time such as 2027-01-31T18:00:00Z"
            ),
            Reason::Excluded => write!(f, "it is excluded by disabled-resources"),
            Reason::NeedsApproval { digest, restarts, changes } => {
                write!(f, "writing it restarts {restarts}; approve {digest} to go ahead")?;
                if changes.is_empty() { Ok(()) } else { write!(f, ". It would change {}", changes.join(", ")) }
            }
            Reason::LeftBehind { why } => write!(f, "it is not wanted any more, and stays: {why}"),
            Reason::DeletionStuck { finalizers } => {
                write!(f, "it was deleted and is kept by {}; see to whoever put that there", finalizers.join(", "))
            }
            Reason::BackupFailed { why } => {
                write!(f, "it is somebody else's, and without a backup it is not taken over: {why}")
            }
            Reason::Fighting { actors, fields } => {
                let who = if actors.is_empty() { "somebody".to_owned() } else { actors.join(", ") };
                write!(
                    f,
                    "{who} changes {} again and again; it is paused. Stop the other writer or set mode to unmanaged, \
                     then remove the annotation reconcile-paused",
                    if fields.is_empty() { "it".to_owned() } else { fields.join(", ") }
                )
            }
            Reason::DeletedAgain => write!(
                f,
                "somebody deletes it again and again, so it is created less and less often; stop whoever does, or exclude \
                 it with disabled-resources"
            ),
            Reason::Frozen => {
                write!(f, "an annotation of the HyperConverged cannot be read, so nothing new is created")
            }
            Reason::RefusedByServer { words } => write!(f, "the API server refused it: {words}"),
            Reason::OwnedByAnother { manager, fields } => {
                write!(f, "{manager} has applied {}; it is left to them", fields.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reason;
    use crate::digest::Digest;
    use serde_json::json;

    #[test]
    fn an_approval_is_asked_for_once_however_many_nodes_come() {
        let asked = |what: i64, restarts: &str| Reason::NeedsApproval {
            changes: Vec::new(),
            digest: Digest::of(&json!(what)),
            restarts: restarts.into(),
        };
        assert!(asked(1, "one node").is_same(&asked(1, "two nodes")));
        assert!(!asked(1, "one node").is_same(&asked(2, "one node")) && !asked(1, "").is_same(&Reason::Paused));
    }
}
