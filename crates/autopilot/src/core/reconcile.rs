//! Decides about the objects that are due, in order, while there is room for a write.

use super::managed::{Known, Managed, Policy};
use super::many_deletions::Together;
use super::timers::Timer;
use super::writes::{ApprovalUse, Pending, Repair};
use super::{Core, Previews};
use crate::decide::{Inspected, Remembered, decide};
use crate::decision::{Decision, PendingWrite, Verdict};
use crate::gated::Approvals;
use crate::notice::Notice;
use crate::removal::decide_removal;
use crate::status::ObjectState;
use change::{Effect, Key, Kind, Precondition, Reason, Restarts};
use protocol::{Backup, Command, WatchTarget, Write};
use serde_json::Value;
use std::time::Duration;

/// How long a creation waits for budgets that could not be read.
const UNREAD_PAUSE: Duration = Duration::from_secs(1);
/// What waits for a time of day is decided about again after this.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

impl Core {
    /// Marks an object as due.
    pub(super) fn enqueue(&mut self, key: &Key) {
        self.objects.enqueue(key);
    }

    /// Decides about one object and sends the write, if there is one.
    pub(super) fn reconcile(&mut self, key: &Key) {
        let Some(object) = self.objects.get(key) else { return };
        if object.writes.pending.is_some() || self.objects.is_abandoned(key) {
            return;
        }
        if matches!(object.live, Known::Unknown) || (object.removal.is_none() && object.is_read_in_another_version()) {
            return;
        }
        let outlook = self.outlook(key);
        let policy = Policy { outlook: outlook.as_ref(), ..self.policy(key) };
        let unknown = Restarts::default();
        let restarts = outlook.as_ref().map_or(&unknown, |outlook| &outlook.restarts);
        let mut asked = None;
        let decision = match object.removal {
            None => decide(&object.observed(policy, restarts), self.now),
            Some(cause) => match self.deletions_with(key) {
                Together::NotKnown { kinds, has_failed } => return self.postpone_deletion(key, kinds, has_failed),
                Together::Known(many) => {
                    asked = many.as_ref().map(|many| many.digest);
                    decide_removal(&object.removal_of(cause, policy, restarts, many.as_ref()), self.now)
                }
            },
        };
        if outlook.as_ref().is_some_and(|outlook| !outlook.is_fresh) && matches!(decision.verdict, Verdict::Write(..)) {
            if self.config.writes {
                return self.refresh_estimate(key);
            }
        } else if outlook.is_some() && matches!(decision.verdict, Verdict::Write(..)) {
            self.estimates.arrived_in_time();
        }
        if object.removal.is_none() {
            self.records.forget_deletion(key);
        }
        if matches!(decision.verdict, Verdict::Write(_, PendingWrite::Delete)) {
            self.start_deletions(key, asked);
        }
        if let Some(wake) = decision.wake {
            // Somebody may set the clock meanwhile.
            let at = self.now.moment_of(wake).min(self.now.monotonic.after(LONGEST_WAIT));
            self.timers.set(Timer::Reconcile(key.clone()), at);
        }
        if !self.is_question_on_its_way(&decision) {
            self.report_decision(key, &decision);
        }
        self.advise(key);
        let Some(object) = self.objects.get_mut(key) else { return };
        object.state = state_of(object, &decision);
        if self.config.previews == Previews::Diff {
            self.intend(key, &decision);
        }
        let Some(object) = self.objects.get_mut(key) else { return };
        match decision.verdict {
            // The advisor writes only what differs. What it has not touched is still ours when it is given back.
            Verdict::Hold(Reason::Governed { .. }) if object.is_as_applied() => {}
            // Nodes may run by then what somebody else wrote: it is not undone as if we had seen it happen.
            Verdict::Hold(reason) if reason.leaves_object_to_others() || object.removal.is_some() => {
                object.remembered = None;
            }
            Verdict::Hold(_) => {}
            Verdict::Inspect => self.inspect(key),
            Verdict::Estimate => self.request_estimate(key),
            Verdict::TakeOver { digest } => {
                if let Some(live) = object.live() {
                    let claim = live.managed_fields.claim(api::FIELD_MANAGER).unwrap_or_default();
                    let beside = live.managed_fields.claim(api::advisor::FIELD_MANAGER);
                    let uid = live.uid.clone();
                    object.remembered = Some(Remembered { digest, claim, beside, uid, origin: None });
                    object.inspected = None;
                }
                self.notify(Notice::TakenOverAsIs(key.clone()));
                self.enqueue(key);
            }
            Verdict::InSync if object.removal.is_some() => {
                if object.is_gone() && self.config.writes {
                    // A creation without an answer may have happened: the object is read before it is forgotten.
                    match std::mem::take(&mut object.writes.unanswered).is_empty() {
                        true => self.removed(key),
                        false => self.refetch(key),
                    }
                }
            }
            Verdict::InSync => {
                object.doubt_approval();
                object.writes.forget_failures();
                (object.last_reported, object.last_drift) = (None, None);
                (object.writes.repair, object.writes.deferred_notice) = (Repair::None, None);
                object.refused.clear();
            }
            Verdict::Write(effect, write) => {
                let (notice, approval) = (decision.notice, decision.approval);
                let version = object.live().map(|live| live.resource_version.clone());
                self.write(key, effect, Pending { write, notice, approval, version });
            }
        }
    }

    /// What holds for an object beside itself.
    pub(super) fn policy(&self, key: &Key) -> Policy<'_> {
        Policy {
            consent: &self.platform.consent,
            patchable: &self.config.patchable,
            prune: self.config.prune,
            suspended: self.platform.suspended.as_deref(),
            excluded: self.platform.excludes(key),
            governor: self.platform.governor(key, self.objects.get(key).map(|object| object.asset.as_str())),
            is_shared_with_advisor: self.platform.is_shared_with_advisor(key),
            exclusions_unclear: self.platform.exclusions_unclear,
            approvals: Approvals { state: self.records.counter(), used: self.records.used(key), unused: None },
            hco_created: self.platform.created,
            maintenance: &self.platform.maintenance,
            now: self.now.wall,
            outlook: None,
        }
    }

    /// What applying the effective desired state changes about this content.
    pub(super) fn inspection(&self, key: &Key, content: &Value) -> Option<Inspected> {
        self.objects.get(key)?.inspection(self.policy(key), content)
    }

    /// Sends a write, unless it is too early for another attempt.
    fn write(&mut self, key: &Key, effect: Effect, mut pending: Pending) {
        if !self.config.writes {
            return self.preview(key, effect, &pending.write);
        }
        let creates = matches!(effect, Effect::Apply { precondition: Precondition::Absent, .. });
        if (creates || pending.approval.is_some()) && !self.records.is_read() {
            // Somebody may keep deleting it, and an approval may be used already: what could not be read is not empty.
            return self.timers.set(Timer::Reconcile(key.clone()), self.now.monotonic.after(UNREAD_PAUSE));
        }
        let Some(object) = self.objects.get_mut(key) else { return };
        let is_another = match (&pending.write, &object.writes.failed) {
            (PendingWrite::Apply { digest, .. }, Some(failed)) => digest != failed,
            _ => false,
        };
        if let Some(not_before) = object.writes.not_before.filter(|moment| self.now.monotonic < *moment)
            && !is_another
        {
            return self.timers.set(Timer::Reconcile(key.clone()), not_before);
        }
        let Some(served) = self.watches.served(&WatchTarget::of(key)) else { return };
        let effect = match effect {
            // The apply after the repair succeeds.
            Effect::Apply { object: desired, precondition, .. } if object.writes.repair == Repair::Due => {
                if let PendingWrite::Apply { digest, .. } = pending.write {
                    pending.write = PendingWrite::Repair { digest };
                }
                Effect::RepairLists { object: desired, precondition }
            }
            other => other,
        };
        let (mut is_worn, mut backup) = (false, None);
        if let PendingWrite::Apply { recreation, adopts, .. } = &pending.write {
            if let Some(left) = recreation.filter(|left| left.is_worn(self.now.wall)) {
                if object.writes.spent != object.recreation {
                    self.records.spend(key, left);
                    object.writes.spent = object.recreation;
                }
                is_worn = true;
            }
            if *adopts {
                let config_maps = self.discovery.kinds.find(&Kind::new("v1", "ConfigMap"));
                let Some(config_maps) = config_maps else { return self.report_no_config_maps(key) };
                backup = Some(Backup { config_maps, namespace: self.config.namespace.clone() });
            }
        }
        if let Some(before) = pending.approval.filter(|before| *before == self.records.used(key)) {
            self.records.use_approval(key);
            object.writes.approval = ApprovalUse::Unused(before);
        }
        let deleted = object.live().map(|live| live.uid.clone()).filter(|_| pending.write == PendingWrite::Delete);
        let is_recorded =
            is_worn || deleted.as_ref().is_some_and(|uid| self.records.approved_deletion(key, uid).is_some());
        let uses_approval = pending.approval.is_some();
        if (uses_approval || is_recorded) && self.waits_for_records(key, uses_approval) {
            return;
        }
        let Some(object) = self.objects.get_mut(key) else { return };
        let attempt = object.writes.failures;
        object.deleted = deleted.or(object.deleted.take());
        object.writes.pending = Some(pending);
        self.objects.write_started(key, self.now.monotonic);
        let write = Write { key: key.clone(), served, effect, attempt, backup };
        self.commands.push(Command::Write(Box::new(write)));
    }
}

/// What the decision means for `status`.
fn state_of(object: &Managed, decision: &Decision) -> ObjectState {
    match (&decision.verdict, &decision.refused) {
        (Verdict::Hold(reason), _) | (_, Some(reason)) => ObjectState::Held(reason.clone()),
        (Verdict::Write(_, PendingWrite::Apply { digest, .. }), None)
            if let Some(message) = object.writes.refused_preview(digest) =>
        {
            ObjectState::Held(Reason::RefusedByServer { message: message.to_owned() })
        }
        (Verdict::Write(..), None) if let Some(reason) = object.writes.still_failing() => {
            ObjectState::Held(reason.clone())
        }
        (Verdict::InSync, None) if object.removal.is_some() && object.is_gone() => ObjectState::Gone,
        (Verdict::InSync, None) if object.live().is_some_and(|live| live.deleting.is_some()) => ObjectState::Deleting,
        (Verdict::InSync | Verdict::TakeOver { .. }, None) => ObjectState::InSync,
        (Verdict::Inspect | Verdict::Estimate, None) => ObjectState::Unknown,
        (Verdict::Write(_, PendingWrite::Delete), None) => ObjectState::ToDelete,
        (Verdict::Write(_, PendingWrite::HandBack), None) => ObjectState::ToHandBack,
        (Verdict::Write(..), None) if object.live().is_some_and(|live| decision.only_learns(live)) => {
            ObjectState::InSync
        }
        (Verdict::Write(..), None) if object.live().is_none() => ObjectState::ToCreate,
        (Verdict::Write(..), None) => ObjectState::ToChange,
    }
}

#[cfg(test)]
mod tests;
