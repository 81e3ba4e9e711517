//! Deletions that one edit of the HyperConverged asks for: a few go ahead, many wait together for one approval.

use super::Core;
use super::managed::{Known, Managed};
use crate::decision::{Decision, PendingWrite, Verdict};
use crate::removal::{Cause, ManyDeletions, decide_removal};
use crate::status::ObjectState;
use change::{Digest, Impact, Key, Live, Reason, Restarts};
use protocol::WatchTarget;
use std::collections::{BTreeMap, BTreeSet};

/// What waits or was agreed to.
#[derive(Debug, Default)]
pub(crate) struct Deletions {
    /// Those that wait until all are known.
    postponed: BTreeSet<Key>,
    /// Those that go ahead, each with the uid of its object: together they were few, or approved.
    started: BTreeMap<Key, String>,
}

/// Whether one of the deletions may be decided.
pub(crate) enum Together {
    /// Others may still be found.
    NotKnown {
        /// Their kinds.
        kinds: BTreeSet<String>,
        /// Whether looking for them has failed; else the answer is on its way.
        has_failed: bool,
    },
    /// It may; the deletions that wait with it, if they are many.
    Known(Option<ManyDeletions>),
}

impl Core {
    /// The deletions that belong together with that of this object.
    pub(super) fn deletions_with(&self, key: &Key) -> Together {
        let Some(object) = self.objects.get(key).filter(|object| is_edit(object)) else { return Together::Known(None) };
        if self.has_started(key, object) {
            return Together::Known(None);
        }
        let removed: Vec<(&Key, &Managed)> = self.objects.iter().filter(|(_, object)| is_edit(object)).collect();
        let is_served = |key: &Key| self.discovery.kinds.find(&key.kind).is_some();
        let unread = removed.iter().filter(|(_, object)| matches!(object.live, Known::Unknown)).map(|(key, _)| *key);
        let unfound = self.orphans.candidates().filter(|key| {
            let target = WatchTarget::of(key);
            let is_looked_for = match self.watches.is_open(&target) {
                true => self.watches.is_listed(&target),
                false => self.orphans.is_searched(&target),
            };
            self.objects.get(key).is_none() && !is_looked_for
        });
        let unknown: Vec<&Key> = unread.chain(unfound).filter(|key| is_served(key)).collect();
        let known = removed.iter().filter(|(key, object)| self.is_deleted(key, object)).count();
        if !unknown.is_empty() && known + unknown.len() > ManyDeletions::FEW {
            let has_failed = |key: &&Key| {
                let target = WatchTarget::of(key);
                self.watches.has_failed(&target) || self.orphans.has_failed(&target)
            };
            return Together::NotKnown {
                has_failed: unknown.iter().any(has_failed),
                kinds: unknown.into_iter().map(|key| key.kind.kind.clone()).collect(),
            };
        }
        let deleted =
            removed.iter().filter(|(key, object)| !self.has_started(key, object) && self.is_deleted(key, object));
        let deletions: Vec<(&Key, &str)> =
            deleted.filter_map(|(key, object)| Some((*key, object.live()?.uid.as_str()))).collect();
        Together::Known(ManyDeletions::of(&deletions))
    }

    /// Waits until all deletions are known; reported once looking for them has failed.
    pub(super) fn postpone_deletion(&mut self, key: &Key, kinds: BTreeSet<String>, has_failed: bool) {
        self.deletions.postponed.insert(key.clone());
        let reason = Reason::DeletionsUnknown { kinds: kinds.into_iter().collect() };
        if let Some(object) = self.objects.get_mut(key) {
            object.state = ObjectState::Held(reason.clone());
        }
        if has_failed {
            self.report_decision(key, &Decision::hold(reason));
        }
    }

    /// Decides about deletions that waited for others, once all are known.
    pub(super) fn resume_deletions(&mut self) {
        for key in self.deletions.postponed.clone() {
            match self.deletions_with(&key) {
                Together::NotKnown { kinds, has_failed } => self.postpone_deletion(&key, kinds, has_failed),
                Together::Known(_) => {
                    self.deletions.postponed.remove(&key);
                    self.enqueue(&key);
                }
            }
        }
    }

    /// A deletion goes ahead, and with it all that belong to it: while they are deleted, the others become fewer. If a person approved them
    /// all, that is recorded, so that they go on after a restart.
    pub(super) fn start_deletions(&mut self, key: &Key, asked: Option<Digest>) {
        if !self.objects.get(key).is_some_and(|object| is_edit(object) && !self.has_started(key, object)) {
            return;
        }
        let removed = self.objects.iter().filter(|(key, object)| is_edit(object) && self.is_deleted(key, object));
        let started: BTreeMap<Key, String> =
            removed.filter_map(|(key, object)| Some((key.clone(), object.live()?.uid.clone()))).collect();
        if let Some(digest) = asked.filter(|digest| self.platform.consent.is_approved(digest)) {
            started.iter().for_each(|(key, uid)| self.records.approve_deletion(key, uid, digest));
        }
        self.deletions.started.extend(started);
    }

    /// Forgets deletions that nobody asks for any more.
    pub(super) fn forget_deletions(&mut self) {
        let objects = &self.objects;
        self.deletions.started.retain(|key, _| objects.get(key).is_some_and(is_edit));
    }

    fn has_started(&self, key: &Key, object: &Managed) -> bool {
        let Some(Live { uid, .. }) = object.live() else { return false };
        let approved = self.records.approved_deletion(key, uid);
        self.deletions.started.get(key) == Some(uid)
            || approved.is_some_and(|digest| self.platform.consent.is_approved(digest))
    }

    /// Whether nothing but their number would keep it from being deleted.
    fn is_deleted(&self, key: &Key, object: &Managed) -> bool {
        let (Some(cause), policy) = (object.removal, self.policy(key)) else { return false };
        let none = Restarts::default();
        let decision = decide_removal(&object.removal_of(cause, policy, &none, None), self.now);
        matches!(decision.verdict, Verdict::Write(_, PendingWrite::Delete))
    }
}

/// Whether an edit of the HyperConverged asks for its deletion, and that restarts no node: such a deletion has an approval of its own.
fn is_edit(object: &Managed) -> bool {
    matches!(object.removal, Some(Cause::OptedOut | Cause::NotNamed)) && object.object.impact != Impact::High
}
