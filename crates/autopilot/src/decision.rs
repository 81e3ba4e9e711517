//! What a decision says: what to do about one object, and what to say about it.

use crate::budget::Budget;
use crate::standing::Origin;
use change::{Digest, Reason};
use serde_json::Value;
use std::collections::BTreeMap;

/// What to do, and what to say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// What to say, if it was not said before.
    pub tell: Option<Tell>,
    /// What of the user's wishes was refused; the object is then kept at its last good state.
    pub refused: Option<Reason>,
    /// When waiting alone changes the answer, in milliseconds since 1970.
    pub wake: Option<i64>,
}

impl Decision {
    /// Nothing is to be done.
    pub(crate) fn in_sync() -> Decision {
        Decision::of(Verdict::InSync)
    }

    /// It is held, and that is told.
    pub(crate) fn hold(reason: Reason) -> Decision {
        Decision { tell: Some(Tell::Held(reason.clone())), ..Decision::of(Verdict::Hold(reason)) }
    }

    /// Nothing but a verdict.
    pub(crate) fn of(verdict: Verdict) -> Decision {
        Decision { verdict, tell: None, refused: None, wake: None }
    }
}

/// The answer for one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is as it should be.
    InSync,
    /// It is left as it is, for this reason.
    Hold(Reason),
    /// Its content has to be looked at before that can be said: [`inspect`](crate::inspect) it and decide again.
    Look,
    /// It is as it should be, although we never wrote it: what it says of us is remembered as if we had.
    TakeOver {
        /// The digest of what we want.
        digest: Digest,
    },
    /// Do this; the answer tells whether it is as it should be.
    Do(Effect),
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Apply this object; on an existing one only in the version we know.
    Apply {
        /// The object.
        object: Value,
        /// The digest to remember with the answer.
        digest: Digest,
        /// What is left after it.
        budget: Budget,
        /// What is left of its budget of creations, if it is one after a deletion.
        deletions: Option<Budget>,
        /// How it came to be ours.
        origin: Option<Origin>,
        /// Whether it is somebody else's until now: a copy is kept before it is applied.
        adopts: bool,
    },
    /// Delete this very object in this version.
    Delete {
        /// Its identity.
        uid: String,
        /// Its version.
        resource_version: String,
    },
    /// Give it back: our label, our annotations and our claim go, all values stay.
    HandBack {
        /// A merge patch, guarded by the version we know.
        patch: Value,
    },
    /// Give up our claim on these fields without changing their values; the next decision applies without them.
    Release {
        /// A JSON patch on managedFields, guarded by the version we know.
        patch: Value,
    },
    /// Write these annotations and nothing else, in the version we know.
    Annotate {
        /// The annotations.
        annotations: BTreeMap<String, String>,
        /// The version.
        resource_version: String,
        /// What is left after it.
        budget: Budget,
    },
}

/// Something worth an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Tell {
    /// It was created, or what we want of it has changed.
    Applied,
    /// It was somebody else's and is ours now.
    Adopted {
        /// What that changed, in words.
        changes: Vec<String>,
    },
    /// It was our predecessor's and is ours now.
    TakenOver {
        /// What that changed, in words.
        changes: Vec<String>,
    },
    /// It was not wanted any more, and was deleted.
    Pruned {
        /// The users' wishes that were on it: key and value.
        dropped: Vec<(String, String)>,
    },
    /// A former release made it, and it was deleted.
    Buried,
    /// It was not wanted any more, and was given back.
    HandedBack,
    /// Somebody deleted it and it was created again.
    Recreated {
        /// The users' wishes that were on it: key and value.
        dropped: Vec<(String, String)>,
    },
    /// Somebody changed these fields and they were put back.
    Corrected {
        /// Who, as far as the object tells.
        actors: Vec<String>,
        /// Which fields.
        fields: Vec<String>,
    },
    /// It is held, for this reason.
    Held(Reason),
}
