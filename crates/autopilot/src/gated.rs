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
    /// Its approvals so far; `None` for a deletion, because no object has the same uid later.
    pub(crate) approvals: Option<Approvals<'a>>,
    pub(crate) impact: Impact,
    pub(crate) restarts: &'a Restarts,
    pub(crate) needed: Needed,
    /// Whether it changes no value, or completes what went ahead before.
    pub(crate) changes_nothing: bool,
    /// Whether it goes ahead where the nodes run its result already.
    pub(crate) is_free_if_running: bool,
    /// Why what is wanted as a whole is unclear, if it is.
    pub(crate) suspended: Option<&'a str>,
}

/// The approvals of one object so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Approvals<'a> {
    /// The ConfigMap that counts them, and since when; without one nobody can be asked.
    pub state: Option<&'a str>,
    /// How many were used.
    pub used: u32,
    /// How many had been used before that of a write which is counted and was not made: it may be tried again.
    pub unused: Option<u32>,
}

/// Whether it goes ahead, and by which right.
pub(crate) enum Passage {
    /// It goes ahead; if that uses up an approval, how many were used before it.
    Free { approval: Option<u32> },
    /// This is decided instead.
    Held(Box<Decision>),
}

impl Gated<'_> {
    /// What a person would approve; `None` while it is not known what would be done, or nobody can be asked.
    pub(crate) fn approval(&self) -> Option<Digest> {
        self.digest(self.approvals.map_or(0, |approvals| approvals.used))
    }

    /// The same after so many used approvals.
    fn digest(&self, used: u32) -> Option<Digest> {
        let Gated { key, uid, wanted, .. } = *self;
        let count = match self.approvals {
            Some(approvals) => Some((approvals.state?, used)),
            None => None,
        };
        Some(Approval { key, uid, wanted, planned: self.planned.as_ref()?, count }.digest())
    }

    /// Passes the gate, or says what to do instead. Whoever is asked for an approval sees what is planned, so without a plan the object
    /// is inspected first.
    pub(crate) fn pass(self, conditions: &Conditions<'_>) -> Passage {
        if self.impact == Impact::High && !self.changes_nothing && self.planned.is_none() {
            return Passage::Held(Box::new(Decision::of(Verdict::Inspect)));
        }
        let asked = self.approval();
        let Approvals { used, unused, .. } = self.approvals.unwrap_or_default();
        let mut rights = [Some(used), unused].into_iter().flatten().map(|used| (used, self.digest(used)));
        let is_approved =
            |digest: &Option<Digest>| digest.is_some_and(|digest| conditions.consent.is_approved(&digest));
        let (used, digest) = rights.find(|(_, digest)| is_approved(digest)).unwrap_or((used, asked));
        let Gated { impact, needed, changes_nothing, is_free_if_running, .. } = self;
        let suspended = self.suspended.is_some();
        let request =
            Request { impact, digest: digest.as_ref(), needed, changes_nothing, is_free_if_running, suspended };
        let restarts = || Box::new(self.restarts.clone());
        let reason = match gate(&request, conditions) {
            Gate::Open => return Passage::Free { approval: request.uses_approval(conditions).then_some(used) },
            Gate::PoolUnknown => return Passage::Held(Box::new(Decision::of(Verdict::Estimate))),
            Gate::Suspended => Reason::Suspended { why: self.suspended.unwrap_or_default().to_owned() },
            Gate::PoolNotReady { why } => Reason::PoolNotReady { why: why.to_owned(), restarts: restarts() },
            Gate::WindowClosed { opens } => {
                let shown = opens.map(|moment| conditions.maintenance.shown(moment));
                let held = Decision::hold(Reason::WindowClosed { opens: shown, restarts: restarts() });
                return Passage::Held(Box::new(Decision { wake: opens, ..held }));
            }
            Gate::NeedsApproval => {
                // Without a plan it was inspected first.
                let planned = Box::new(self.planned.unwrap_or(Planned::Create));
                Reason::NeedsApproval { digest: asked, restarts: restarts(), planned }
            }
        };
        Passage::Held(Box::new(Decision::hold(reason)))
    }
}
