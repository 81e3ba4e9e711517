//! The decision about one object: what to do, and what to report.

use crate::budget::Budget;
use crate::notice::{Drift, ObjectNotice};
use crate::ownership::Origin;
use change::{Digest, Effect, Live, Reason};
use jiff::Timestamp;
use serde_json::Value;

/// What to do about one object, and what to report.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// What to report once the write is done.
    pub notice: Option<ObjectNotice>,
    /// Why an override or an apply is refused although something else is done: the object is kept at its last good state.
    pub refused: Option<Reason>,
    /// When waiting alone changes the answer.
    pub wake: Option<Timestamp>,
    /// If the write uses up a person's approval, how many were used before it.
    pub approval: Option<u32>,
    /// What somebody did to the object, if that is not corrected because it is held.
    pub drift: Option<Drift>,
}

impl Decision {
    /// There is nothing to do.
    pub(crate) fn in_sync() -> Decision {
        Decision::of(Verdict::InSync)
    }

    /// The object is held.
    pub(crate) fn hold(reason: Reason) -> Decision {
        Decision::of(Verdict::Hold(reason))
    }

    /// Why the object, or a part of what is wanted of it, is held.
    pub(crate) fn held(&self) -> Option<&Reason> {
        match &self.verdict {
            Verdict::Hold(reason) => Some(reason),
            Verdict::InSync | Verdict::Inspect | Verdict::Estimate | Verdict::TakeOver { .. } | Verdict::Write(..) => {
                self.refused.as_ref()
            }
        }
    }

    /// One write.
    pub(crate) fn write(effect: Effect, pending: PendingWrite, notice: Option<ObjectNotice>) -> Decision {
        Decision { notice, ..Decision::of(Verdict::Write(effect, pending)) }
    }

    /// Whether it is the one apply after a start that learns our field set and changes nothing: the object has everything that would be
    /// written beside its desired state, too, which is our label and annotations.
    pub(crate) fn only_learns(&self, live: &Live) -> bool {
        let (None, Verdict::Write(Effect::Apply { object, .. }, _)) = (&self.notice, &self.verdict) else {
            return false;
        };
        let applied = object.value();
        let claim = live.managed_fields.claim(api::FIELD_MANAGER).unwrap_or_default();
        let written = applied["metadata"]["annotations"].as_object().into_iter().flatten();
        let mut ours = written.filter(|(key, _)| key.starts_with(api::annotation::PREFIX));
        let is_same = |(key, value): (&String, &Value)| live.annotations.get(key).map(String::as_str) == value.as_str();
        claim.fields().covers(&applied) && ours.all(is_same)
    }

    /// A verdict without a notice.
    pub(crate) fn of(verdict: Verdict) -> Decision {
        Decision { verdict, notice: None, refused: None, wake: None, approval: None, drift: None }
    }
}

/// The answer for one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is as it should be.
    InSync,
    /// It is left as it is, for this reason.
    Hold(Reason),
    /// Its content decides: [`inspect`](crate::inspect) it and decide again.
    Inspect,
    /// What its write does to nodes decides: estimate that and decide again.
    Estimate,
    /// It is as it should be although we never wrote it: its managedFields entry counts as the answer to our apply.
    TakeOver {
        /// The digest of the desired state.
        digest: Digest,
    },
    /// Write this; the answer says whether it is as it should be.
    Write(Effect, PendingWrite),
}

/// What to remember when a write succeeds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PendingWrite {
    /// An apply.
    Apply {
        /// The digest of the desired state with overrides.
        digest: Digest,
        /// The budget of corrections that is left.
        budget: Budget,
        /// The budget of recreations that is left, if somebody had deleted the object.
        recreation: Option<Budget>,
        /// How the object came to be ours.
        origin: Option<Origin>,
        /// Whether the object is foreign until now, so that it is backed up before.
        adopts: bool,
    },
    /// A repair of lists, after which the apply follows.
    Repair {
        /// The digest of the desired state with overrides.
        digest: Digest,
    },
    /// An annotation.
    Annotate {
        /// The budget of corrections that is left.
        budget: Budget,
    },
    /// Documents are edited.
    EditDocuments {
        /// The budget of corrections that is left.
        budget: Budget,
    },
    /// The ownership of ignored fields is given up.
    Release,
    /// The object is deleted.
    Delete,
    /// The object is handed back.
    HandBack,
}
