//! What the gate's answer means for one object.

use crate::decision::{Decision, Verdict};
use change::consent::Needed;
use change::gate::{Conditions, Request};
use change::{Approval, Digest, Gate, Impact, Key, Planned, Reason, Restarts, gate};

/// A write or deletion of one object that may restart nodes.
pub(crate) struct Gated<'a> {
    pub(crate) key: &'a Key,
    /// The uid of the object, if it exists.
    pub(crate) uid: Option<&'a str>,
    /// The digest of what is wanted of it; `None` for a deletion.
    pub(crate) wanted: Option<&'a Digest>,
    /// What would be done, if that is known.
    pub(crate) planned: Option<Planned>,
    /// How many approvals were used for it before.
    pub(crate) used: u32,
    pub(crate) impact: Impact,
    pub(crate) restarts: &'a Restarts,
    pub(crate) needed: Needed,
    /// Whether the nodes run the result already.
    pub(crate) already_running: bool,
    /// Whether what is wanted as a whole is unclear.
    pub(crate) suspended: bool,
}

/// Whether it goes ahead, and by which right.
pub(crate) enum Passage {
    /// It goes ahead; whether that uses up an approval.
    Free { uses_approval: bool },
    /// This is decided instead.
    Held(Box<Decision>),
}

impl Gated<'_> {
    /// What a person would approve; `None` while it is not known what would be done.
    pub(crate) fn approval(&self) -> Option<Digest> {
        let Gated { key, uid, wanted, used, .. } = *self;
        Some(Approval { key, uid, wanted, planned: self.planned.as_ref()?, used }.digest())
    }

    /// Passes the gate, or says what to do instead. Whoever is asked for an approval sees what is planned, so without a plan the object
    /// is inspected first.
    pub(crate) fn pass(self, conditions: &Conditions<'_>) -> Passage {
        let digest = self.approval();
        let Gated { impact, needed, already_running, suspended, .. } = self;
        let request = Request { impact, digest: digest.as_ref(), needed, already_running, suspended };
        let restarts = || self.restarts.clone();
        let reason = match gate(&request, conditions) {
            Gate::Open => return Passage::Free { uses_approval: request.uses_approval(conditions) },
            Gate::Suspended => Reason::Suspended,
            Gate::PoolNotReady => Reason::PoolNotReady { restarts: restarts() },
            Gate::WindowClosed => Reason::WindowClosed,
            Gate::NeedsApproval => match digest.zip(self.planned) {
                Some((digest, planned)) => {
                    Reason::NeedsApproval { digest, restarts: self.restarts.clone(), planned: Box::new(planned) }
                }
                None => return Passage::Held(Box::new(Decision::of(Verdict::Inspect))),
            },
        };
        Passage::Held(Box::new(Decision::hold(reason)))
    }
}
