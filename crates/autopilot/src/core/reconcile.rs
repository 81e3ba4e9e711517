//! Decides about the objects that are due, in order, while there is room for a write.

use super::Core;
use super::managed::{Known, Managed, Policy, Repair};
use super::timers::Timer;
use crate::decide::{Inspected, Remembered, decide};
use crate::decision::{Decision, PendingWrite, Verdict};
use crate::notice::{Notice, ObjectNotice, State};
use crate::removal::{Cause, decide_removal};
use crate::status::ObjectState;
use change::{Effect, Key, Kind};
use protocol::{Backup, Command, WatchTarget, Write};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// More writes at a time only make the server slower.
const WRITES_AT_A_TIME: usize = 8;

/// The objects that are managed or to be removed.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    all: BTreeMap<Key, Managed>,
    /// Those to decide about, in the order of the catalogue.
    ready: BTreeSet<(i64, Key)>,
    /// How many writes are in flight.
    writing: usize,
    /// Objects that are not managed any more and have a write in flight: the next one waits for its answer.
    abandoned: BTreeSet<Key>,
}

impl Objects {
    pub(crate) fn get(&self, key: &Key) -> Option<&Managed> {
        self.all.get(key)
    }

    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut Managed> {
        self.all.get_mut(key)
    }

    pub(crate) fn insert(&mut self, object: Managed) {
        self.all.insert(object.object.key.clone(), object);
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Managed> {
        let object = self.all.remove(key)?;
        if object.writes.pending.is_some() {
            self.abandoned.insert(key.clone());
        }
        Some(object)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.all.keys()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Managed)> {
        self.all.iter()
    }

    /// The objects that a watch reports.
    pub(crate) fn keys_of(&self, target: &WatchTarget) -> Vec<Key> {
        self.all.keys().filter(|key| WatchTarget::of(key) == *target).cloned().collect()
    }

    /// The objects of an asset.
    pub(crate) fn keys_of_asset(&self, asset: &str) -> Vec<Key> {
        self.all.iter().filter(|(_, object)| object.asset == asset).map(|(key, _)| key.clone()).collect()
    }

    pub(crate) fn forget_that_they_were_desired(&mut self) {
        self.all.values_mut().for_each(|object| object.was_desired = false);
    }

    /// The next object to decide about, while there is room for a write.
    pub(crate) fn next_ready(&mut self) -> Option<Key> {
        if self.writing >= WRITES_AT_A_TIME {
            return None;
        }
        self.ready.pop_first().map(|(_, key)| key)
    }

    /// Marks every object as due.
    pub(crate) fn enqueue_all(&mut self) {
        self.ready.extend(self.all.iter().map(|(key, object)| (object.order, key.clone())));
    }

    /// A write is answered; whether nobody waits for it any more.
    pub(crate) fn write_ended(&mut self, key: &Key) -> bool {
        self.writing = self.writing.saturating_sub(1);
        self.abandoned.remove(key)
    }

    /// How many objects are due or have a write in flight.
    pub(crate) fn backlog(&self) -> usize {
        self.writing + self.ready.len()
    }
}

impl Core {
    /// Marks an object as due.
    pub(super) fn enqueue(&mut self, key: &Key) {
        if let Some(object) = self.objects.all.get(key) {
            self.objects.ready.insert((object.order, key.clone()));
        }
    }

    /// Decides about one object and sends the write, if there is one.
    pub(super) fn reconcile(&mut self, key: &Key) {
        let Some(object) = self.objects.all.get(key) else { return };
        if object.writes.pending.is_some() || self.objects.abandoned.contains(key) {
            return;
        }
        if matches!(object.live, Known::Unknown) {
            return;
        }
        let policy = self.policy(key);
        let restarts = object.restarts(policy);
        let decision = match object.removal {
            None => decide(&object.observed(policy, &restarts), self.now),
            Some(cause) => decide_removal(&object.removal_of(cause, policy, &restarts), self.now),
        };
        if let Some(wake) = decision.wake {
            self.timers.set(Timer::Reconcile(key.clone()), self.now.moment_of(wake));
        }
        self.report_decision(key, &decision);
        let Some(object) = self.objects.all.get_mut(key) else { return };
        object.state = state_of(object, &decision);
        match decision.verdict {
            Verdict::Hold(_) => {}
            Verdict::Inspect => self.inspect(key),
            Verdict::TakeOver { digest } => {
                if let Some(live) = object.live() {
                    let claim = live.managed_fields.claim(api::FIELD_MANAGER).unwrap_or_default();
                    let uid = live.uid.clone();
                    object.remembered = Some(Remembered { digest, claim, uid, origin: None });
                    object.inspected = None;
                }
                self.notify(Notice::TakenOverAsIs(key.clone()));
            }
            Verdict::InSync if object.removal.is_some() => {
                if object.is_gone() && self.config.writes {
                    self.removed(key);
                }
            }
            Verdict::InSync => {
                (object.writes.failures, object.last_reported) = (0, None);
                (object.writes.repair, object.writes.deferred_notice) = (Repair::None, None);
                object.refused.clear();
            }
            Verdict::Write(effect, pending) => self.write(key, effect, pending, decision.notice),
        }
    }

    /// What holds for an object beside itself.
    pub(super) fn policy(&self, key: &Key) -> Policy<'_> {
        Policy {
            consent: &self.platform.consent,
            patchable: &self.config.patchable,
            prune: self.config.prune,
            suspended: self.platform.suspended,
            excluded: self.platform.excludes(key),
            hco_created: self.platform.created,
            nodes: self.surroundings.nodes(),
        }
    }

    /// What applying the effective desired state changes about this content.
    pub(super) fn inspection(&self, key: &Key, content: &Value) -> Option<Inspected> {
        self.objects.all.get(key)?.inspection(self.policy(key), content)
    }

    /// Sends a write, unless it is too early for another attempt.
    fn write(&mut self, key: &Key, effect: Effect, pending: PendingWrite, notice: Option<ObjectNotice>) {
        let Some(object) = self.objects.all.get_mut(key) else { return };
        if !self.config.writes {
            return;
        }
        let is_another = match (&pending, &object.writes.failed) {
            (PendingWrite::Apply { digest, .. }, Some(failed)) => digest != failed,
            _ => false,
        };
        if let Some(not_before) = object.writes.not_before.filter(|moment| self.now.monotonic < *moment)
            && !is_another
        {
            return self.timers.set(Timer::Reconcile(key.clone()), not_before);
        }
        let Some(served) = self.watches.served(&WatchTarget::of(key)) else { return };
        let (effect, pending) = match effect {
            // The apply after the repair succeeds.
            Effect::Apply { object: desired, precondition, .. } if object.writes.repair == Repair::Due => {
                (Effect::RepairLists { object: desired, precondition }, PendingWrite::Repair)
            }
            other => (other, pending),
        };
        let (mut record, mut backup) = (None, None);
        if let PendingWrite::Apply { recreation, adopts, .. } = &pending {
            // The record is written first: whoever kills us then gives nobody a new budget.
            if let Some(left) = recreation.filter(|left| left.is_worn(self.now.wall)) {
                record = self.recreation.record(key, left, &self.discovery.kinds, self.now.wall);
            }
            if *adopts {
                let secrets = self.discovery.kinds.find(&Kind::new("v1", "Secret"));
                let Some(secrets) = secrets else { return self.report_no_secrets(key) };
                backup = Some(Backup { secrets, namespace: self.config.namespace.clone() });
            }
        }
        let attempt = object.writes.failures;
        object.writes.pending = Some((pending, notice));
        self.objects.writing += 1;
        let write = Write { key: key.clone(), served, effect, attempt, record, backup };
        self.commands.push(Command::Write(Box::new(write)));
    }
}

/// What the decision means for `status`.
fn state_of(object: &Managed, decision: &Decision) -> ObjectState {
    match (&decision.verdict, &decision.refused) {
        (Verdict::Hold(reason), _) | (_, Some(reason)) => ObjectState::Held(reason.clone()),
        (Verdict::InSync, None) if object.removal.is_some() && object.is_gone() => ObjectState::Gone,
        (Verdict::InSync | Verdict::TakeOver { .. }, None) => ObjectState::InSync,
        (Verdict::Inspect, None) => ObjectState::Unknown,
        (Verdict::Write(_, PendingWrite::Delete), None) => ObjectState::ToDelete,
        (Verdict::Write(_, PendingWrite::HandBack), None) => ObjectState::ToHandBack,
        // After a start one apply learns our field set; it changes nothing, so there is nothing to report.
        (Verdict::Write(..), None) if decision.notice.is_none() => ObjectState::InSync,
        (Verdict::Write(..), None) if object.live().is_none() => ObjectState::ToCreate,
        (Verdict::Write(..), None) => ObjectState::ToChange,
    }
}

/// What the decision means for metrics.
pub(super) fn shown_state(object: &Managed, decision: &Decision) -> Option<State> {
    let held = match &decision.verdict {
        Verdict::Hold(reason) => Some(reason),
        _ => decision.refused.as_ref(),
    };
    match (held, object.removal, &decision.verdict) {
        (Some(reason), None, _) => Some(State::Held(reason.clone())),
        (Some(reason), Some(cause), _) => Some(State::RemovalHeld(cause, reason.clone())),
        (None, Some(Cause::Tombstone), Verdict::InSync) if !object.is_gone() => Some(State::TombstonePresent),
        (None, None, Verdict::InSync | Verdict::TakeOver { .. }) => Some(State::InSync),
        (None, _, _) => None,
    }
}
