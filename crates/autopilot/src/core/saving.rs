//! Writes the records, one write at a time, and lets go what waits for them.

use super::Core;
use super::timers::Timer;
use crate::decision::{Decision, Verdict};
use crate::notice::Notice;
use change::{Backoff, Moment, Reason};
use protocol::{Command, Write, WriteError, Written};
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
    /// Nothing is written before this.
    not_before: Option<Moment>,
    /// Writes that wait.
    waiting: Vec<Waiting>,
}

/// A write that waits until what it depends on is written.
#[derive(Debug)]
struct Waiting {
    write: Box<Write>,
    /// The changes it waits for.
    changes: u64,
    /// Whether it is not made without them; else it only waits for the attempt.
    is_strict: bool,
}

impl Saving {
    /// Whether this answer is awaited.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }
}

impl Core {
    /// Sends a write once all records are written: whoever kills us then gives nobody a new budget, and leaves no approval to use again.
    pub(super) fn send_recorded(&mut self, write: Write, is_strict: bool) {
        let write = Box::new(write);
        let changes = self.records.changes;
        if self.saving.saved == changes {
            return self.commands.push(Command::Write(write));
        }
        // What was decided now is not made much later: the pauses between its attempts are its own.
        self.saving.not_before = None;
        self.saving.waiting.push(Waiting { write, changes, is_strict });
    }

    /// Whether a person is asked as soon as the records are written: the question depends on the uid of their ConfigMap.
    pub(super) fn is_question_on_its_way(&mut self, decision: &Decision) -> bool {
        let is_unasked = matches!(&decision.verdict, Verdict::Hold(Reason::NeedsApproval { digest: None, .. }));
        if !is_unasked || !self.config.writes || !self.records.is_read() {
            return false;
        }
        if self.saving.saved == self.records.changes {
            self.records.changes += 1;
        }
        self.saving.failures == 0
    }

    /// Writes the records if they have changed. Each write replaces the one before, so none may overtake another.
    pub(super) fn save_records(&mut self) {
        let Saving { saved, in_flight, not_before, .. } = &self.saving;
        let is_early = not_before.is_some_and(|moment| self.now.monotonic < moment);
        let is_saved = *saved == self.records.changes;
        if is_saved || in_flight.is_some() || is_early || !self.records.is_read() || !self.config.writes {
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
        let waiting = std::mem::take(&mut self.saving.waiting);
        let (ready, waiting): (Vec<Waiting>, Vec<Waiting>) =
            waiting.into_iter().partition(|waiting| waiting.changes <= changes);
        self.saving.waiting = waiting;
        let failure = match result {
            Ok(Written { live: Some(live), .. }) => {
                (self.saving.saved, self.saving.failures, self.saving.not_before) = (changes, 0, None);
                if self.records.uid() != Some(&live.uid) {
                    // Now there is something to ask.
                    self.objects.enqueue_all();
                }
                self.records.written(live.uid);
                None
            }
            Ok(_) => Some("the API server did not answer with the ConfigMap".to_owned()),
            Err(error) => {
                // Somebody may have deleted or replaced the ConfigMap.
                self.send_query(self.records.query());
                Some(error.to_string())
            }
        };
        if let Some(why) = &failure {
            let at = self.now.monotonic.after(RETRY.pause(self.saving.failures));
            (self.saving.failures, self.saving.not_before) = (self.saving.failures + 1, Some(at));
            self.timers.set(Timer::Save, at);
            self.notify(Notice::RecordFailed { why: why.clone() });
            if self.saving.failures == 1 {
                // Who waits for a question says so.
                self.objects.enqueue_all();
            }
        }
        for Waiting { write, is_strict, .. } in ready {
            match &failure {
                Some(why) if is_strict => self.not_sent(&write.key, why),
                _ => self.commands.push(Command::Write(write)),
            }
        }
    }
}
