//! Why something is not done. Log, event, metric, status and docs take name, severity, compliance and message from here.

use crate::content::Changes;
use crate::object::digest::Digest;
use crate::restart::restarts::{NodeEffect, Restarts};
use serde::Serialize;
use std::fmt;

/// Why a write is held.
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
        /// The value.
        value: String,
    },
    /// The user set `mode: unmanaged`.
    Unmanaged,
    /// The object is paused, by us after a fight or by the user.
    Paused,
    /// The object is paused until a time that cannot be read.
    PauseUnclear {
        /// The value.
        value: String,
    },
    /// The user excluded the object.
    Excluded,
    /// The advisor governs the object.
    Governed {
        /// The `VirtPlatformConfig`.
        by: String,
    },
    /// The write restarts nodes, and nobody approved it.
    NeedsApproval {
        /// The digest to approve; `None` while the operator has not written the ConfigMap that it depends on.
        digest: Option<Digest>,
        /// The nodes that restart.
        restarts: Box<Restarts>,
        /// What would be done.
        planned: Box<Planned>,
    },
    /// One edit would delete many objects, and nobody approved it.
    ManyDeletions {
        /// The digest to approve.
        digest: Digest,
        /// The objects.
        objects: Vec<String>,
    },
    /// One edit may delete many objects, and objects of these kinds could not be listed.
    DeletionsUnknown {
        /// The kinds.
        kinds: Vec<String>,
    },
    /// The write restarts nodes of a pool that cannot take a change now.
    PoolNotReady {
        /// Why not.
        why: String,
        /// The nodes that restart.
        restarts: Box<Restarts>,
    },
    /// The write restarts nodes, and no maintenance window is open.
    WindowClosed {
        /// When the next one opens, as far as is known.
        opens: Option<String>,
        /// The nodes that restart.
        restarts: Box<Restarts>,
    },
    /// The object is not wanted any more, and stays.
    LeftBehind {
        /// Why.
        why: LeftBehind,
    },
    /// The object is being deleted, and finalizers delay it.
    DeletionStuck {
        /// The finalizers.
        finalizers: Vec<String>,
    },
    /// The object is to be adopted and could not be backed up.
    BackupFailed {
        /// Why.
        why: String,
    },
    /// The object is a Secret of somebody else, and there is no safe place for its backup.
    NoSafeBackup,
    /// A document in it cannot be read or edited.
    DocumentUnreadable {
        /// Where it is.
        field: String,
        /// Why.
        why: String,
    },
    /// Another writer keeps changing it.
    Fighting {
        /// The field managers, as far as the object names them.
        actors: Vec<String>,
        /// The fields.
        fields: Vec<String>,
    },
    /// The API server does not accept it.
    RefusedByServer {
        /// The server's message.
        message: String,
    },
    /// It could not be written, and is tried again.
    WriteFailed {
        /// Why.
        message: String,
    },
    /// Somebody keeps deleting it.
    DeletedAgain,
    /// What is wanted as a whole is unclear: the HyperConverged does not exist, or one of its annotations cannot be read.
    Suspended {
        /// Which, and what follows.
        why: String,
    },
    /// The list of excluded objects cannot be read, so the object may be excluded.
    ExclusionsUnclear,
    /// Its content could not be read, and is tried again.
    ReadFailed {
        /// Why.
        message: String,
    },
    /// Its managedFields cannot be read, so it is not known who owns its fields.
    OwnersUnreadable,
    /// Another manager applied these fields.
    OwnedByAnother {
        /// The manager.
        manager: String,
        /// The fields.
        fields: Vec<String>,
    },
}

/// What an approval would let happen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "operation", content = "changes")]
pub enum Planned {
    /// The object is created.
    Create,
    /// These fields change, and these are removed.
    Change {
        /// What is wanted and is not so.
        changes: Changes,
        /// The paths of what we applied before and do not want any more.
        removed: Vec<String>,
    },
    /// The object is deleted.
    Delete,
}

/// Why an object that is not wanted any more stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LeftBehind {
    /// It does not carry our label.
    NoLabel,
    /// It does not say that we created it.
    NoOrigin,
    /// The same for an object of a former release, which a person may approve to delete.
    NoOriginUnlessApproved(Digest),
    /// No user took back what asked for it.
    NoUserAct,
    /// The operator runs with `--prune=false`.
    PruneOff,
    /// Objects of this kind or asset are never deleted.
    NeverDeleted,
    /// The advisor applied some of it, too.
    OfAdvisor,
}

/// How serious it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// It is as the user wants it.
    Normal,
    /// Somebody should look.
    Warning,
}

/// What it means for the compliance of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compliance {
    /// Something went wrong, and somebody has to act.
    Failed,
    /// It waits for a person, a time or another writer: nothing went wrong, and whether it is as it should be is not known.
    Waiting,
    /// The user took it out of our hands: it has no compliance.
    Exempt,
}

impl Reason {
    /// Whether it reports nothing new after the other: nodes that join do not ask for an approval again.
    pub fn is_same(&self, other: &Reason) -> bool {
        match (self, other) {
            (Reason::NeedsApproval { digest: one, .. }, Reason::NeedsApproval { digest: two, .. }) => one == two,
            // How far the pool is has events of its own.
            (Reason::PoolNotReady { .. }, Reason::PoolNotReady { .. }) => true,
            (Reason::WindowClosed { opens: one, .. }, Reason::WindowClosed { opens: two, .. }) => one == two,
            (one, two) => one == two,
        }
    }

    /// The digest that a person is asked to approve.
    pub fn asked(&self) -> Option<&Digest> {
        match self {
            Reason::NeedsApproval { digest, .. } => digest.as_ref(),
            Reason::ManyDeletions { digest, .. }
            | Reason::LeftBehind { why: LeftBehind::NoOriginUnlessApproved(digest) } => Some(digest),
            _ => None,
        }
    }

    /// Whether others may change the object while it is held for this reason: then nodes may run what they wrote.
    pub fn leaves_object_to_others(&self) -> bool {
        matches!(
            self,
            Reason::Unmanaged
                | Reason::Paused
                | Reason::PauseUnclear { .. }
                | Reason::ModeUnknown { .. }
                | Reason::Excluded
                | Reason::Governed { .. }
                | Reason::OwnedByAnother { .. }
                | Reason::NeedsApproval { .. }
                | Reason::PoolNotReady { .. }
                | Reason::WindowClosed { .. }
                | Reason::Suspended { .. }
                | Reason::ExclusionsUnclear
                | Reason::OwnersUnreadable
        )
    }

    /// The name under which events and metrics file it.
    pub fn name(&self) -> &'static str {
        self.class().0
    }

    /// How serious it is.
    pub fn severity(&self) -> Severity {
        self.class().1
    }

    /// What it means for the compliance of the object.
    pub fn compliance(&self) -> Compliance {
        self.class().2
    }

    /// Name, severity and compliance: one row for each reason, and no reason without a row.
    fn class(&self) -> (&'static str, Severity, Compliance) {
        use Compliance::{Exempt, Failed, Waiting};
        use Severity::{Normal, Warning};
        match self {
            Reason::PatchRefused { .. } => ("InvalidPatch", Warning, Failed),
            Reason::IgnoreFieldsRefused { .. } => ("InvalidIgnoreFields", Warning, Failed),
            Reason::ModeUnknown { .. } => ("InvalidMode", Warning, Failed),
            Reason::Unmanaged => ("UnmanagedMode", Normal, Exempt),
            Reason::Paused => ("Paused", Normal, Waiting),
            Reason::PauseUnclear { .. } => ("InvalidPause", Warning, Waiting),
            Reason::Excluded => ("Excluded", Normal, Exempt),
            Reason::Governed { .. } => ("Governed", Normal, Exempt),
            Reason::NeedsApproval { .. } => ("ApprovalRequired", Warning, Waiting),
            Reason::ManyDeletions { .. } => ("ApprovalRequired", Warning, Waiting),
            Reason::DeletionsUnknown { .. } => ("ListIncomplete", Warning, Waiting),
            Reason::PoolNotReady { .. } => ("PoolNotReady", Warning, Waiting),
            Reason::WindowClosed { .. } => ("WindowClosed", Warning, Waiting),
            Reason::LeftBehind { .. } => ("LeftBehind", Normal, Waiting),
            Reason::DeletionStuck { .. } => ("DeletionStuck", Warning, Failed),
            Reason::BackupFailed { .. } | Reason::NoSafeBackup => ("BackupFailed", Warning, Failed),
            Reason::DocumentUnreadable { .. } => ("DocumentUnreadable", Warning, Failed),
            Reason::Fighting { .. } | Reason::DeletedAgain => ("ThrashingDetected", Warning, Waiting),
            Reason::RefusedByServer { .. } | Reason::WriteFailed { .. } => ("ApplyFailed", Warning, Failed),
            Reason::Suspended { .. } | Reason::ExclusionsUnclear => ("InvalidConfiguration", Warning, Waiting),
            Reason::OwnersUnreadable | Reason::ReadFailed { .. } => ("ApplyFailed", Warning, Failed),
            Reason::OwnedByAnother { .. } => ("OwnedByAnother", Warning, Waiting),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::PatchRefused { why } => write!(f, "patch refused, the last good state is kept: {why}"),
            Reason::IgnoreFieldsRefused { why } => {
                write!(f, "ignore-fields refused, the last good state is kept: {why}")
            }
            Reason::ModeUnknown { value } => write!(f, "mode is {value:?}; write managed or unmanaged"),
            Reason::Unmanaged => write!(f, "mode is unmanaged: the object is left alone"),
            Reason::Paused => write!(f, "paused; remove the annotation reconcile-paused to resume"),
            Reason::PauseUnclear { value } => write!(
                f,
                "reconcile-paused is {value:?}, which counts as paused; write true, or a time such as 2027-01-31T18:00:00Z"
            ),
            Reason::Excluded => write!(f, "excluded by disabled-resources"),
            Reason::Governed { by } => {
                write!(
                    f,
                    "governed by VirtPlatformConfig {by}; to give it to the autopilot, set its spec.action to Ignore and its spec.handOver to true"
                )
            }
            Reason::NeedsApproval { digest, restarts, planned } => {
                let verb = match **planned {
                    Planned::Create => "creating",
                    Planned::Change { .. } => "changing",
                    Planned::Delete => "deleting",
                };
                let adopts = matches!(&**planned, Planned::Change { changes, removed } if changes.is_empty() && removed.is_empty());
                match restarts.effect {
                    NodeEffect::None if adopts => {
                        write!(f, "approval required to adopt it, as for every object of its kind; it {restarts}; ")?;
                    }
                    NodeEffect::None => {
                        write!(f, "approval required, as for every object of its kind; {verb} it {restarts}; ")?;
                    }
                    NodeEffect::Reload | NodeEffect::Restart => write!(f, "approval required: {verb} it {restarts}; ")?,
                }
                match digest {
                    Some(digest) => write!(f, "run \"virtpilot approve {digest}\"")?,
                    None => write!(
                        f,
                        "the digest to approve is not known until the operator has written ConfigMap {}, or while that cannot be read",
                        api::STATE
                    )?,
                }
                let Planned::Change { changes, removed } = &**planned else { return Ok(()) };
                match (changes.is_empty(), removed.is_empty()) {
                    (true, true) => Ok(()),
                    (false, true) => write!(f, ". It would change {changes}"),
                    (true, false) => write!(f, ". It would remove {}", few(removed)),
                    (false, false) => write!(f, ". It would remove {} and change {changes}", few(removed)),
                }
            }
            Reason::ManyDeletions { digest, objects } => write!(
                f,
                "approval required: {} objects would be deleted at once: {}; run \"virtpilot approve {digest}\", or take \
                 back the last edit of the HyperConverged",
                objects.len(),
                few(objects),
            ),
            Reason::DeletionsUnknown { kinds } => write!(
                f,
                "to be deleted, but it waits until {} can be listed: with the objects that a list may show, so many would be \
                 deleted at once that an approval is required",
                kinds.join(", "),
            ),
            Reason::PoolNotReady { why, restarts } => {
                write!(f, "it {restarts}; {why}, so it waits until the pool is healthy")
            }
            Reason::WindowClosed { opens: Some(opens), restarts } => {
                write!(f, "it {restarts}; it waits for the next maintenance window, which opens {opens}")
            }
            Reason::WindowClosed { opens: None, restarts } => {
                write!(
                    f,
                    "it {restarts}; no window is open, because the annotation maintenance-window cannot be read; write it like \"Sat,Sun 01:00-05:00 Europe/Berlin\""
                )
            }
            Reason::LeftBehind { why } => write!(f, "not wanted any more, but kept: {why}"),
            Reason::DeletionStuck { finalizers } => {
                write!(f, "deletion waits for the finalizers {}; check their controllers", finalizers.join(", "))
            }
            Reason::BackupFailed { why } => write!(f, "not adopted, because it could not be backed up: {why}"),
            Reason::NoSafeBackup => write!(
                f,
                "not adopted, because a Secret has no safe place for a backup; exclude it with disabled-resources, or save \
                 it yourself and delete it, so that it is created as the asset wants it"
            ),
            Reason::DocumentUnreadable { field, why } => {
                write!(f, "the document in {field} is left as it is, because it cannot be edited: {why}")
            }
            Reason::Fighting { actors, fields } => write!(
                f,
                "{} keeps changing {}; it is paused. Stop the other writer or set mode to unmanaged, then remove the \
                 annotation reconcile-paused",
                names_or(actors, "another writer"),
                names_or(fields, "it"),
            ),
            Reason::DeletedAgain => write!(
                f,
                "somebody keeps deleting it, so it is recreated with growing pauses; stop whoever does, or exclude it with \
                 disabled-resources"
            ),
            Reason::Suspended { why } => f.write_str(why),
            Reason::ExclusionsUnclear => write!(
                f,
                "disabled-resources of the HyperConverged cannot be read, so it may be excluded; it is left as it is until \
                 that is corrected"
            ),
            Reason::ReadFailed { message } => {
                write!(f, "its content decides what to do, and could not be read; it is tried again: {message}")
            }
            Reason::OwnersUnreadable => write!(
                f,
                "its managedFields are nested too deeply to be read, so it is not known who owns its fields; it is left as it \
                 is. Remove the deeply nested field, or exclude the object with disabled-resources"
            ),
            Reason::RefusedByServer { message } => write!(f, "the API server refused it: {message}"),
            Reason::WriteFailed { message } => write!(f, "it could not be written and is tried again: {message}"),
            Reason::OwnedByAnother { manager, fields } => {
                write!(f, "{manager} applies {}; these fields are left to it", fields.join(", "))
            }
        }
    }
}

/// More names than these are counted.
const NAMED: usize = 8;

fn few(names: &[String]) -> String {
    match names.len().checked_sub(NAMED) {
        None | Some(0) => names.join(", "),
        Some(more) => format!("{} and {more} more", names[..NAMED].join(", ")),
    }
}

/// The names, or a word where there are none.
pub fn names_or(names: &[String], word: &str) -> String {
    if names.is_empty() { word.to_owned() } else { names.join(", ") }
}

impl fmt::Display for LeftBehind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeftBehind::NoLabel => write!(f, "it does not carry our label"),
            LeftBehind::NoOrigin => write!(f, "it has no origin annotation, so we may not have created it"),
            LeftBehind::NoOriginUnlessApproved(digest) => write!(
                f,
                "it has no origin annotation, so a person has to decide; run \"virtpilot approve {digest}\" to delete it"
            ),
            LeftBehind::NoUserAct => {
                write!(f, "no user of this HyperConverged opted out of it; delete it by hand")
            }
            LeftBehind::PruneOff => write!(f, "the operator runs with --prune=false"),
            LeftBehind::NeverDeleted => write!(f, "objects like it are never deleted"),
            LeftBehind::OfAdvisor => write!(f, "the advisor applied some of it, too; delete it by hand"),
        }
    }
}

#[cfg(test)]
mod tests;
