//! Writes the records, one write at a time; what depends on them is decided again afterwards.

use super::Core;
use super::timers::Timer;
use crate::decision::{Decision, Verdict};
use crate::notice::{Notice, State};
use change::{Backoff, Key, Moment, Reason};
use protocol::{Command, Write, WriteError, Written};
use std::collections::BTreeSet;
use std::time::Duration;

/// After records that could not be written.
const RETRY: Backoff = Backoff { first: Duration::from_millis(200), longest: Duration::from_secs(300) };

/// What of the records is written.
#[derive(Debug, Default)]
pub(crate) struct Saving {
    /// The changes that are written.
    saved: u64,
    /// The changes that are on their way.
    in_flight: Option<u64>,
    failures: u32,
    /// Why the last attempt has failed.
    why: Option<String>,
    /// Nothing is written before this.
    not_before: Option<Moment>,
    /// Objects whose next write waits.
    waiting: BTreeSet<Key>,
}

impl Saving {
    /// Whether so many changes of the records are written.
    pub(crate) fn has_saved(&self, changes: u64) -> bool {
        self.saved == changes
    }

    /// Whether this answer is awaited.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }
}

impl Core {
    /// Whether a write of an object waits until all records are written: whoever kills us then gives nobody a new budget, and leaves no
    /// approval to use again. A write that uses an approval is never made without; others only wait for an attempt.
    pub(super) fn waits_for_records(&mut self, key: &Key, uses_approval: bool) -> bool {
        if self.saving.has_saved(self.records.changes) || (!uses_approval && self.saving.why.is_some()) {
            return false;
        }
        self.saving.waiting.insert(key.clone());
        if let Some(why) = &self.saving.why {
            let message = format!("the use of its approval could not be recorded: {why}");
            self.show(key, State::Failed);
            self.report_held(key, Reason::WriteFailed { message });
        }
        true
    }

    /// Whether a person is asked as soon as the records are written: the question depends on their ConfigMap.
    pub(super) fn is_question_on_its_way(&mut self, decision: &Decision) -> bool {
        let is_unasked = matches!(&decision.verdict, Verdict::Hold(Reason::NeedsApproval { digest: None, .. }));
        if !is_unasked || !self.config.writes || !self.records.is_read() {
            return false;
        }
        if self.saving.has_saved(self.records.changes) {
            self.records.changes += 1;
        }
        self.saving.why.is_none()
    }

    /// Writes the records if they have changed. Each write replaces the one before, so none may overtake another.
    pub(super) fn save_records(&mut self) {
        let is_due = self.saving.not_before.is_none_or(|moment| moment <= self.now.monotonic);
        let is_needed = !self.saving.has_saved(self.records.changes) && !self.saving.is_in_flight();
        if !is_needed || !is_due || !self.records.is_read() || !self.config.writes {
            return;
        }
        self.saving.in_flight = Some(self.records.changes);
        let key = self.records.key.clone();
        let Some(served) = self.discovery.kinds.find(&key.kind) else {
            let message = "the API server does not serve ConfigMaps".to_owned();
            return self.records_saved(Err(WriteError::Transient { key, message }));
        };
        let (effect, attempt) = (self.records.save(self.now.wall), self.saving.failures);
        self.commands.push(Command::Write(Box::new(Write { key, served, effect, attempt, backup: None })));
    }

    /// Takes the answer.
    pub(super) fn records_saved(&mut self, result: Result<Written, WriteError>) {
        let Some(changes) = self.saving.in_flight.take() else { return };
        // What was decided before may not hold any more, such as an approval that was taken back.
        for key in std::mem::take(&mut self.saving.waiting) {
            self.enqueue(&key);
        }
        let why = match result {
            Ok(Written { live: Some(live), .. }) => {
                let counter = self.records.counter().map(str::to_owned);
                self.records.written(live.uid);
                if self.records.counter() != counter.as_deref() {
                    // Now there is something to ask.
                    self.objects.enqueue_all();
                }
                (self.saving.saved, self.saving.failures) = (changes, 0);
                (self.saving.why, self.saving.not_before) = (None, None);
                return;
            }
            Ok(_) => "the API server did not answer with the ConfigMap".to_owned(),
            Err(error) => error.to_string(),
        };
        let at = self.now.monotonic.after(RETRY.pause(self.saving.failures));
        (self.saving.failures, self.saving.not_before) = (self.saving.failures + 1, Some(at));
        self.timers.set(Timer::Save, at);
        self.notify(Notice::RecordFailed { why: why.clone() });
        if self.saving.why.replace(why).is_none() {
            // Who waits for a question says so.
            self.objects.enqueue_all();
        }
        // Somebody may have deleted or replaced the ConfigMap.
        self.send_query(self.records.query());
    }
}
