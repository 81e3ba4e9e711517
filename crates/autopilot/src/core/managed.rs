//! What is known of one object that is managed, or is to be removed.

use super::conditions::conditions;
use super::estimates::Outlook;
use super::planning::Intent;
use super::writes::{ApprovalUse, Repair, Writes};
use crate::budget::Budget;
use crate::decide::{Inspected, Observed, Refused, Remembered, inspect};
use crate::evaluate::DesiredObject;
use crate::gated::Approvals;
use crate::notice::{Drift, ObjectNotice, OverrideKind, State};
use crate::removal::{Cause, ManyDeletions, Removal, overrides_of};
use crate::status::ObjectState;
use api::annotation;
use catalog::rollout::Contribution;
use change::{Consent, Impact, Kind, Live, Maintenance, Moment, PatchableKinds, Reason, Restarts};
use jiff::Timestamp;
use serde_json::Value;
use std::sync::Arc;

/// An override, the last good one and the catalogue's object are three; more refusals need not be remembered.
const MOST_REFUSED: usize = 4;

/// One object.
#[derive(Debug)]
pub(crate) struct Managed {
    pub(crate) asset: String,
    /// Its place in the order of writes.
    pub(crate) order: i64,
    /// What its asset renders.
    pub(crate) object: Arc<DesiredObject>,
    /// Why it is to be removed, if it is.
    pub(crate) removal: Option<Cause>,
    /// Whether it was wanted since the process started.
    pub(crate) was_desired: bool,
    pub(crate) live: Known,
    pub(crate) remembered: Option<Remembered>,
    pub(crate) inspected: Option<Inspected>,
    /// What it brings into the configuration of nodes, in this version, if its write may restart them.
    pub(crate) contribution: Option<(String, Contribution)>,
    /// Whether its values need not be compared although nothing in its metadata has changed.
    pub(crate) is_verified: bool,
    /// Whether the documents in it had what is wanted of them, so that anything else is drift.
    pub(crate) had_documents: bool,
    /// When its content was last read, so that an object that changes often is not read as often.
    pub(crate) inspected_at: Option<Moment>,
    /// How often reading its content has failed since it last succeeded.
    pub(crate) failed_inspections: u32,
    pub(crate) budget: Option<Budget>,
    /// Its budget of recreations, once somebody has deleted it.
    pub(crate) recreation: Option<Budget>,
    /// The overrides that were on it when it was deleted.
    pub(crate) dropped: Vec<(String, String)>,
    /// The uid of the object that we deleted ourselves.
    pub(crate) deleted: Option<String>,
    pub(crate) refused: Vec<Refused>,
    pub(crate) writes: Writes,
    /// The reason that was reported last, so that it is reported once.
    pub(crate) last_reported: Option<Reason>,
    /// The drift that was reported last as not corrected.
    pub(crate) last_drift: Option<Drift>,
    /// What was reported about settings on it that have no effect.
    pub(crate) advised: Vec<String>,
    /// The state that metrics show.
    pub(crate) shown: Option<State>,
    /// The overrides that metrics show.
    pub(crate) overrides: Vec<OverrideKind>,
    pub(crate) state: ObjectState,
    /// What would be done to it, where a plan is asked for.
    pub(crate) intent: Option<Box<Intent>>,
    /// Its content when it was last read, where a plan is asked for.
    pub(crate) content: Option<Box<Value>>,
}

/// What is known of the live object.
#[derive(Debug)]
pub(crate) enum Known {
    /// Nothing yet, so nothing is decided.
    Unknown,
    /// It does not exist, as of this version.
    Absent(Option<u128>),
    /// Its metadata.
    Present(Live),
}

/// What holds for every object.
#[derive(Clone, Copy)]
pub(crate) struct Policy<'a> {
    pub(crate) consent: &'a Consent,
    pub(crate) patchable: &'a PatchableKinds,
    pub(crate) prune: bool,
    /// Why what is wanted as a whole is unclear, if it is.
    pub(crate) suspended: Option<&'a str>,
    pub(crate) excluded: bool,
    /// The `VirtPlatformConfig` that governs it.
    pub(crate) governor: Option<&'a str>,
    /// Whether a `VirtPlatformConfig` governs other fields of it.
    pub(crate) is_shared_with_advisor: bool,
    /// Whether it is not known what the user excluded.
    pub(crate) exclusions_unclear: bool,
    /// The approvals of the object that were recorded.
    pub(crate) approvals: Approvals<'a>,
    pub(crate) hco_created: Option<Timestamp>,
    /// When nodes may restart.
    pub(crate) maintenance: &'a Maintenance,
    pub(crate) now: Timestamp,
    /// What a write of the object does to nodes, as far as that is known.
    pub(crate) outlook: Option<&'a Outlook>,
}

impl Managed {
    /// An object of which nothing is known yet.
    pub(crate) fn new(asset: String, order: i64, object: Arc<DesiredObject>) -> Managed {
        Managed {
            asset,
            order,
            object,
            removal: None,
            was_desired: false,
            live: Known::Unknown,
            remembered: None,
            inspected: None,
            contribution: None,
            is_verified: true,
            had_documents: false,
            inspected_at: None,
            failed_inspections: 0,
            budget: None,
            recreation: None,
            dropped: Vec::new(),
            deleted: None,
            refused: Vec::new(),
            writes: Writes::default(),
            last_reported: None,
            last_drift: None,
            advised: Vec::new(),
            shown: None,
            overrides: Vec::new(),
            state: ObjectState::Unknown,
            intent: None,
            content: None,
        }
    }

    /// Takes what its asset renders now; a new desired state is tried at once, whatever failed before.
    pub(crate) fn want(&mut self, asset: &str, order: i64, object: Arc<DesiredObject>) {
        if self.object.documents != object.documents {
            // What is wanted now was never there.
            (self.inspected, self.had_documents) = (None, false);
        }
        if self.object.desired != object.desired {
            self.writes.forget_failures();
            self.writes.not_before = None;
            self.refused.clear();
        }
        self.want_again();
        if self.asset != asset {
            asset.clone_into(&mut self.asset);
        }
        (self.order, self.object, self.was_desired) = (order, object, true);
    }

    /// It is not to be removed any more.
    pub(crate) fn want_again(&mut self) {
        if self.removal.take().is_some() {
            self.writes.deferred_notice = None;
        }
    }

    /// Whether nobody has written what we applied since our last apply, as far as its metadata shows.
    pub(crate) fn is_as_applied(&self) -> bool {
        let Some((live, remembered)) = self.live().zip(self.remembered.as_ref()) else { return false };
        remembered.uid == live.uid && remembered.is_still(live)
    }

    /// What writing it does to the cluster. What an object that exists has may imply more than what is wanted of it.
    pub(crate) fn impact(&self) -> Impact {
        let Kind { group, kind, .. } = &self.object.key.kind;
        let implied = if self.live().is_some() { Impact::implied_by(group, kind) } else { Impact::None };
        self.object.impact.max(implied)
    }

    /// The live object, if it exists.
    pub(crate) fn live(&self) -> Option<&Live> {
        match &self.live {
            Known::Present(live) => Some(live),
            Known::Unknown | Known::Absent(_) => None,
        }
    }

    /// Whether its asset was rendered from another version of it than the one that is known: then it is rendered again before anything is
    /// decided, so that no edit in between is lost.
    pub(crate) fn is_read_in_another_version(&self) -> bool {
        let Some(read) = &self.object.read else { return false };
        match &self.live {
            Known::Unknown => false,
            Known::Absent(_) => read.is_some(),
            Known::Present(live) => read.as_ref() != Some(&live.resource_version),
        }
    }

    /// The version of what is known.
    pub(crate) fn version(&self) -> Option<u128> {
        match &self.live {
            Known::Unknown => None,
            Known::Absent(since) => *since,
            Known::Present(live) => live.version(),
        }
    }

    /// Takes metadata from a watch or from an answer, unless it is older than what is known: the answer to a write may arrive after the
    /// event of the next change.
    pub(crate) fn observe(&mut self, live: Live) {
        if self.version().zip(live.version()).is_none_or(|(known, new)| known <= new) {
            self.live = Known::Present(live);
            self.recognise_approval();
        }
    }

    /// An approval in doubt was used if the object is as its write would have made it.
    pub(crate) fn recognise_approval(&mut self) {
        if matches!(self.writes.approval, ApprovalUse::InDoubt(_)) && self.unanswered().is_some() {
            self.writes.approval = ApprovalUse::None;
        }
    }

    /// What happens to it is not seen for a while: an approval in doubt counts as used.
    pub(crate) fn doubt_approval(&mut self) {
        let is_in_flight = self.writes.pending.as_ref().is_some_and(|pending| pending.approval.is_some());
        if is_in_flight || matches!(self.writes.approval, ApprovalUse::InDoubt(_)) {
            self.writes.approval = ApprovalUse::None;
        }
    }

    /// Takes that it does not exist as of this version; if it did, it was deleted.
    pub(crate) fn observe_absent(&mut self, version: Option<u128>, now: Timestamp) {
        if matches!(self.live, Known::Present(_))
            && self.version().zip(version).is_some_and(|(known, gone)| gone < known)
        {
            return;
        }
        let since = version.or(self.version());
        if let Known::Present(live) = std::mem::replace(&mut self.live, Known::Absent(since)) {
            if self.deleted.take().is_some_and(|uid| uid == live.uid) {
                // Our own deletion spends no budget.
                (self.recreation, self.dropped) = (None, Vec::new());
            } else {
                self.recreation.get_or_insert(Budget::full(now));
                self.dropped = overrides_of(&self.object.key.kind, &live);
            }
        }
        (self.remembered, self.budget, self.writes.repair) = (None, None, Repair::None);
    }

    /// Forgets the live object, because its kind is gone or watched anew: that it does not exist later is no deletion.
    pub(crate) fn forget_live(&mut self) {
        (self.live, self.remembered, self.budget) = (Known::Unknown, None, None);
        self.writes.repair = Repair::None;
        self.doubt_approval();
        self.dropped.clear();
    }

    /// Its changes cannot be seen or undone for a while: what restarts nodes may run on them by then.
    pub(crate) fn lose_sight(&mut self) {
        if self.impact() == Impact::High {
            (self.remembered, self.had_documents) = (None, false);
        }
    }

    /// Takes what was read while `known` was the version. If nothing arrived meanwhile, it counts whatever its version: versions go back
    /// when a cluster is restored. Else the watch was faster and knows better.
    pub(crate) fn observe_read(&mut self, known: Option<u128>, live: Option<Live>, now: Timestamp) {
        let is_undisturbed = self.version() == known || matches!(self.live, Known::Unknown);
        match live {
            Some(live) if is_undisturbed => {
                // Versions may have gone back.
                self.live = Known::Unknown;
                self.observe(live);
            }
            Some(live) => self.observe(live),
            None if is_undisturbed => self.observe_absent(None, now),
            None => {}
        }
    }

    /// The apply that made it what it is, if its answer was lost: no other write has this budget.
    pub(crate) fn unanswered(&self) -> Option<&(Budget, Option<ObjectNotice>)> {
        let written = self.live()?.annotations.get(annotation::BUDGET)?;
        self.writes.unanswered.iter().find(|(budget, _)| budget.to_string() == *written)
    }

    /// Whether it is gone, or not ours any more.
    pub(crate) fn is_gone(&self) -> bool {
        match &self.live {
            Known::Unknown => false,
            Known::Absent(_) => true,
            Known::Present(live) => !live.labelled && live.deleting.is_none(),
        }
    }

    /// What a decision about its removal depends on.
    pub(crate) fn removal_of<'a>(
        &'a self,
        cause: Cause,
        policy: Policy<'a>,
        restarts: &'a Restarts,
        many: Option<&'a ManyDeletions>,
    ) -> Removal<'a> {
        Removal {
            key: &self.object.key,
            cause,
            live: self.live(),
            impact: self.impact(),
            restarts,
            source: (!self.was_desired).then_some(&self.object.source),
            hco_created: policy.hco_created,
            never_pruned: self.object.never_pruned,
            prune: policy.prune,
            suspended: policy.suspended,
            excluded: policy.excluded,
            governor: policy.governor,
            many,
            conditions: conditions(policy),
        }
    }

    /// Compares its content with the effective desired state.
    pub(crate) fn inspection(&self, policy: Policy<'_>, content: &Value) -> Option<Inspected> {
        inspect(&self.observed(policy, &Restarts::default()), content)
    }

    /// What a decision about it depends on.
    pub(crate) fn observed<'a>(&'a self, policy: Policy<'a>, restarts: &'a Restarts) -> Observed<'a> {
        Observed {
            key: &self.object.key,
            desired: &self.object.desired,
            impact: self.impact(),
            restarts,
            source: &self.object.source,
            live: self.live(),
            remembered: self.remembered.as_ref(),
            inspected: self.inspected.as_ref(),
            is_verified: self.is_verified,
            documents: &self.object.documents,
            had_documents: self.had_documents,
            budget: self.budget,
            recreation: self.recreation,
            dropped: &self.dropped,
            refused: &self.refused,
            unanswered: self.unanswered().is_some(),
            approvals: Approvals { unused: self.writes.approval.unused(), ..policy.approvals },
            half_done: match self.writes.repair {
                Repair::Done { digest } => Some(digest),
                Repair::None | Repair::Due => None,
            },
            suspended: policy.suspended,
            excluded: policy.excluded,
            governor: policy.governor,
            is_shared_with_advisor: policy.is_shared_with_advisor,
            exclusions_unclear: policy.exclusions_unclear,
            patchable: policy.patchable,
            conditions: conditions(policy),
        }
    }

    /// Remembers what the server refused.
    pub(crate) fn refuse(&mut self, refused: Refused) {
        self.refused.retain(|earlier| earlier.digest != refused.digest);
        self.refused.push(refused);
        if self.refused.len() > MOST_REFUSED {
            self.refused.remove(0);
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
