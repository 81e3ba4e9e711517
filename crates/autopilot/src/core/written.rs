//! What follows from the answer to a write.

use super::Core;
use super::managed::Managed;
use super::timers::Timer;
use super::writes::{ApprovalUse, Pending, Repair};
use crate::decide::{Inspected, Refused, Remembered};
use crate::decision::PendingWrite;
use crate::notice::{Drift, Notice, ObjectNotice, State};
use crate::status::ObjectState;
use change::{Changes, Key, Live, Now, Reason};
use protocol::{WriteError, Written};

/// The watch usually reports a newer version at once; if it has not after so many attempts, the object is read.
const REFETCH_AFTER: u32 = 2;
/// A transient failure is reported when it persists after so many attempts.
const REPORT_AFTER: u32 = 4;

impl Core {
    /// Takes the answer to a write.
    pub(super) fn written(&mut self, key: &Key, result: Result<Written, WriteError>) {
        if *key == self.records.key && self.saving.is_in_flight() {
            return self.records_saved(result);
        }
        if *key == self.publishing.key && self.publishing.is_in_flight() {
            return self.published(&result);
        }
        if let Some(sent) = self.objects.sent_at(key).filter(|_| self.objects.get(key).is_some()) {
            let is_error = result.as_ref().is_err_and(|error| !matches!(error, WriteError::Stale(_)));
            let took = self.now.monotonic.elapsed().saturating_sub(sent.elapsed());
            self.notify(Notice::Answered { key: key.clone(), took, is_error });
        }
        if self.objects.write_ended(key) {
            // The object was dropped meanwhile; if it is managed again, its live state decides. Else it may exist now although the last
            // list did not show it.
            let may_exist = match &result {
                Ok(written) => written.live.as_ref().is_some_and(|live| live.labelled),
                Err(error) => matches!(error, WriteError::Transient { .. }),
            };
            if may_exist && self.objects.get(key).is_none() {
                self.orphans.observe(key);
                self.remove_orphans();
            }
            return self.enqueue(key);
        }
        let now = self.now;
        let before = result.as_ref().ok().and_then(|written| written.before.as_ref());
        let adopted = before.and_then(|before| self.inspection(key, before)).map(|inspected| inspected.changes);
        let Some(object) = self.objects.get_mut(key) else { return };
        let Some(Pending { write: pending, mut notice, approval, version }) = object.writes.pending.take() else {
            return;
        };
        let written = result.as_ref().ok().and_then(|written| written.live.as_ref());
        let is_unchanged = written.is_some_and(|live| version.as_ref() == Some(&live.resource_version));
        if is_unchanged {
            // The server normalizes values, so that they only seemed to differ.
            notice = notice.filter(|notice| !matches!(notice, ObjectNotice::Corrected { .. }));
        }
        if approval.is_some() {
            object.writes.approval = match (&result, &pending, object.writes.approval.unused()) {
                (Err(WriteError::Transient { .. }), PendingWrite::Apply { .. }, Some(before)) => {
                    ApprovalUse::InDoubt(before)
                }
                // After another write nothing tells whether it happened.
                (Ok(_) | Err(WriteError::Transient { .. }), _, _) => ApprovalUse::None,
                (Err(_), _, _) => object.writes.approval,
            };
        }
        let is_adoption = matches!(pending, PendingWrite::Apply { adopts: true, .. });
        match result {
            Ok(written) => {
                // It is as it was approved, whichever write did it.
                object.doubt_approval();
                // Somebody may want it again meanwhile: then it is adopted again.
                let is_handed_back = pending == PendingWrite::HandBack && object.removal.is_some();
                // The server says that nothing differs, so what was read holds with that.
                let same = object.inspected.take().filter(|_| is_unchanged);
                let notice = succeed(object, pending, notice, written.live, adopted, now);
                object.inspected = same.map(|same| Inspected { changes: Changes::default(), ..same });
                match notice {
                    Some(notice @ ObjectNotice::Held(_)) => self.report_throttled(key, notice),
                    Some(notice) => self.report_object(key, notice),
                    None => {}
                }
                if is_handed_back {
                    return self.removed(key);
                }
                self.enqueue(key);
            }
            // A foreign object is not taken apart to make room for ours, and one that does not exist has nothing to repair.
            Err(WriteError::KeyChanged { .. })
                if object.writes.repair == Repair::None && !is_adoption && object.live().is_some() =>
            {
                object.writes.repair = Repair::Due;
                // A repair that did not help is no drift of its own.
                object.writes.deferred_notice = object.writes.deferred_notice.take().or(notice);
                self.enqueue(key);
            }
            Err(error) => {
                let drift = object.writes.deferred_notice.as_ref().or(notice.as_ref()).and_then(ObjectNotice::drift);
                if let (WriteError::Transient { .. }, PendingWrite::Apply { budget, .. }) = (&error, &pending) {
                    // What an adoption changed is known only from its answer.
                    object.writes.add_unanswered(*budget, notice.filter(|_| !is_adoption));
                    // The watch may have been faster than the failure.
                    object.recognise_approval();
                }
                self.failed(key, pending, error, drift);
            }
        }
    }

    /// Reports an object that was paused instead of being corrected.
    fn report_throttled(&mut self, key: &Key, notice: ObjectNotice) {
        if let Some(drift) = notice.drift() {
            self.report_drift(key, drift);
        }
        if let ObjectNotice::Held(reason) = notice {
            self.report_held(key, reason);
        }
    }

    /// Reports a write that only somebody else can make possible, and the drift that it would have corrected.
    fn report_failed(&mut self, key: &Key, drift: Option<Drift>, reason: Reason) {
        self.show(key, State::Failed);
        if let Some(drift) = drift {
            self.report_drift(key, drift);
        }
        if let Some(object) = self.objects.get_mut(key) {
            object.state = ObjectState::Held(reason.clone());
            object.writes.reported = Some(reason.clone());
        }
        self.report_held(key, reason);
    }

    /// Waits before the next attempt, and reports what only somebody else can solve.
    fn failed(&mut self, key: &Key, pending: PendingWrite, error: WriteError, drift: Option<Drift>) {
        let Some(object) = self.objects.get_mut(key) else { return };
        let is_refusal =
            matches!(error, WriteError::Refused { .. } | WriteError::KeyChanged { .. } | WriteError::NoBackup { .. });
        // Whether the object itself is wrong, and not the permission to write it.
        let is_invalid =
            matches!(error, WriteError::Refused { code: 400 | 413 | 422, .. } | WriteError::KeyChanged { .. });
        let is_stale = matches!(error, WriteError::Stale(_));
        let pause = object.writes.fail(is_refusal);
        let failures = object.writes.failures;
        object.deleted = None;
        if is_refusal || failures >= REPORT_AFTER {
            object.lose_sight();
        }
        let at = self.now.monotonic.after(pause);
        if is_refusal && object.writes.repair != Repair::None {
            // The repair did not help; the next attempt may need another.
            object.writes.repair = Repair::None;
        }
        object.writes.failed = match pending {
            PendingWrite::Apply { digest, .. } => Some(digest),
            PendingWrite::Annotate { .. }
            | PendingWrite::Repair { .. }
            | PendingWrite::Release
            | PendingWrite::EditDocuments { .. }
            | PendingWrite::Delete
            | PendingWrite::HandBack => None,
        };
        // After a stale write the watch usually reports the newer version at once; if it does not, the object is read first.
        let is_read_first = is_stale && failures >= REFETCH_AFTER;
        if !is_stale || is_read_first {
            object.writes.not_before = Some(at);
        }
        let failed = object.writes.failed;
        self.notify(Notice::Retry { why: error.to_string(), wait: pause.as_millis() });
        let timer = if is_read_first { Timer::Refetch(key.clone()) } else { Timer::Reconcile(key.clone()) };
        self.timers.set(timer, at);
        let message = match error {
            WriteError::Stale(_) => return,
            WriteError::NoBackup { message, .. } => {
                return self.report_failed(key, drift, Reason::BackupFailed { why: message });
            }
            WriteError::Transient { .. } if failures < REPORT_AFTER => return,
            WriteError::Transient { message, .. } => {
                return self.report_failed(key, drift, Reason::WriteFailed { message });
            }
            WriteError::Refused { message, .. } | WriteError::KeyChanged { message, .. } => message,
        };
        match (failed, is_invalid) {
            // Without the user's overrides it may be accepted: the next decision says, and waits if it is the same object.
            (Some(digest), true) => {
                if let Some(object) = self.objects.get_mut(key) {
                    object.refuse(Refused { digest, message });
                }
                if let Some(drift) = drift {
                    self.report_drift(key, drift);
                }
                self.enqueue(key);
            }
            _ => self.report_failed(key, drift, Reason::RefusedByServer { message }),
        }
    }
}

/// Remembers what a successful write means; what to report now.
fn succeed(
    object: &mut Managed,
    pending: PendingWrite,
    mut notice: Option<ObjectNotice>,
    live: Option<Live>,
    adopted: Option<Changes>,
    now: Now,
) -> Option<ObjectNotice> {
    (object.writes.not_before, object.writes.failed, object.inspected_at) = (None, None, None);
    match pending {
        PendingWrite::Apply { digest, budget, recreation, origin, adopts } => {
            object.writes.forget_failures();
            (object.writes.repair, object.last_drift) = (Repair::None, None);
            object.budget = Some(budget);
            object.recreation = recreation.or(object.recreation);
            object.refused.retain(|refused| refused.digest != digest);
            // An apply that needed a repair first, or another attempt, is reported as what it was.
            let unanswered = object.unanswered().and_then(|(_, notice)| notice.clone());
            object.writes.unanswered.clear();
            notice = object.writes.deferred_notice.take().or(unanswered).or(notice);
            if adopts {
                notice = Some(ObjectNotice::Adopted { changes: adopted.unwrap_or_default() });
            }
            if let Some(live) = &live {
                let claim = live.managed_fields.claim(api::FIELD_MANAGER).unwrap_or_default();
                object.remembered = Some(Remembered { digest, claim, beside: None, uid: live.uid.clone(), origin });
            }
        }
        PendingWrite::Annotate { budget } => object.budget = Some(budget),
        PendingWrite::Repair { digest } => (object.writes.repair, notice) = (Repair::Done { digest }, None),
        PendingWrite::Release => {}
        PendingWrite::EditDocuments { budget } => {
            object.budget = Some(budget);
            // The budget on the object is no part of our apply any more, which is nobody's drift.
            if let (Some(remembered), Some(live)) = (&mut object.remembered, &live)
                && remembered.uid == live.uid
            {
                remembered.claim = live.managed_fields.claim(api::FIELD_MANAGER).unwrap_or_default();
            }
        }
        PendingWrite::HandBack => (object.remembered, object.budget) = (None, None),
        PendingWrite::Delete => {
            // It is reported once the object is gone: finalizers may delay that.
            object.writes.deferred_notice = notice.take().filter(|_| object.removal.is_some());
            if live.is_none() {
                object.observe_absent(None, now.wall);
            }
        }
    }
    if let Some(live) = live {
        object.observe(live);
    }
    notice
}
