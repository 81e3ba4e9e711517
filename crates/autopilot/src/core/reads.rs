//! Single reads: queries of templates, metadata that no watch will report again, and whole objects.

use super::managed::Managed;
use super::timers::Timer;
use super::{Core, Stale};
use crate::decide::Inspected;
use crate::notice::State;
use catalog::rollout::Contribution;
use catalog::{Answer, Query};
use change::{Backoff, Impact, Key, Live, Reason, redact};
use observe::target_of;
use protocol::{Command, Content, WatchTarget};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A read that failed is repeated after this.
const AGAIN: Duration = Duration::from_secs(10);
/// The same for an inspection, which a decision waits for; an object that can never be read costs few requests.
const INSPECT_AGAIN: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(60) };
/// An inspection that has failed so often is reported.
const REPORT_AFTER: u32 = 4;

/// Records that were read are read again after this.
const RECORDS_AGAIN: Duration = Duration::from_secs(3_600);

/// Reads of objects in flight, each with the version that was known when it was sent.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    refetches: BTreeMap<Key, Option<u128>>,
    inspections: BTreeMap<Key, Option<u128>>,
}

impl Core {
    /// Adds a template's query. What it asks about is watched first, so that no change is missed.
    pub(super) fn ask(&mut self, query: Query) {
        if self.queries.are_too_many() {
            self.facts.answers.insert(query, Answer::Unknown);
            return;
        }
        if !self.queries.add(&query) {
            return;
        }
        let target = target_of(&query);
        if self.discovery.kinds.find(&target.kind).is_none() {
            if self.discovery.is_sure_of(&target.kind) {
                self.answered(query, Answer::Absent);
            } else {
                self.discover_soon();
            }
        } else if self.watches.is_listed(&target) {
            self.send_query(query);
        } else if !self.watches.is_open(&target) {
            self.watch(&target, Content::Metadata);
        }
    }

    pub(super) fn send_query(&mut self, query: Query) {
        if !self.queries.begin(&query) {
            return;
        }
        match self.discovery.kinds.find(&query.kind()) {
            Some(served) => self.commands.push(Command::Query { query, served }),
            // Where nobody can look, no record is known to be absent; what a template asks about is.
            None => self.answered(query, Answer::Unknown),
        }
    }

    /// Takes an answer. A query that cannot be answered now keeps its last answer.
    pub(super) fn answered(&mut self, query: Query, mut answer: Answer) {
        let repeat = self.queries.end(&query);
        if query == self.records.query() {
            self.take_records(&answer);
            if !self.queries.is_asked(&query) {
                if repeat {
                    self.send_query(query);
                }
                return;
            }
        }
        if self.discovery.kinds.find(&query.kind()).is_none() {
            answer = Answer::Absent;
        }
        if repeat {
            self.send_query(query.clone());
        } else if answer == Answer::Unknown {
            self.timers.set(Timer::Query(query.clone()), self.now.monotonic.after(AGAIN));
        }
        if answer == Answer::Unknown && self.facts.answers.contains_key(&query) {
            return;
        }
        if self.facts.answers.get(&query) != Some(&answer) {
            self.facts.answers.insert(query, answer);
            self.stale = self.stale.max(Stale::Answers);
        }
    }

    /// Takes the records. They are read again now and then, because somebody may delete or edit the ConfigMap.
    fn take_records(&mut self, answer: &Answer) {
        let (was_read, changes) = (self.records.is_read(), self.records.changes);
        self.records.read(answer);
        // What is not saved yet replaces what was edited anyway.
        if was_read && self.saving.has_saved(changes) && self.records.is_edited(answer) {
            self.records.changes += 1;
        }
        if self.records.is_read() && (!was_read || changes != self.records.changes) {
            self.objects.take_recorded(&self.records);
        }
        let pause = if self.records.is_read() { RECORDS_AGAIN } else { AGAIN };
        self.timers.set(Timer::Query(self.records.query()), self.now.monotonic.after(pause));
        self.report_readiness();
    }

    /// Repeats the queries about an object, or about all of its kind.
    pub(super) fn repeat_queries(&mut self, target: &WatchTarget, name: &str) {
        if self.watches.is_listed(target) {
            for query in self.queries.about(target, Some(name)) {
                self.send_query(query);
            }
        }
    }

    /// Reads the metadata of an object that its watch will not report again.
    pub(super) fn refetch(&mut self, key: &Key) {
        let Some(served) = self.watches.served(&WatchTarget::of(key)) else { return };
        let Some(object) = self.objects.get(key) else { return };
        if !self.reads.refetches.contains_key(key) {
            self.reads.refetches.insert(key.clone(), object.version());
            self.commands.push(Command::Refetch { key: key.clone(), served });
        }
    }

    pub(super) fn refetched(&mut self, key: &Key, found: Result<Option<Live>, String>) {
        let Some(known) = self.reads.refetches.remove(key) else { return };
        if !self.watches.is_open(&WatchTarget::of(key)) {
            return;
        }
        let Some(object) = self.objects.get_mut(key) else { return };
        match found {
            Ok(live) => {
                object.observe_read(known, live, self.now.wall);
                self.enqueue(key);
            }
            Err(_) => self.timers.set(Timer::Refetch(key.clone()), self.now.monotonic.after(AGAIN)),
        }
    }

    /// Reads a whole object, after which it is decided about again.
    pub(super) fn inspect(&mut self, key: &Key) {
        let Some(served) = self.watches.served(&WatchTarget::of(key)) else { return };
        let Some(object) = self.objects.get_mut(key) else { return };
        let next = object.inspected_at.map(|at| at.after(inspection_pause(object)));
        if let Some(next) = next.filter(|next| self.now.monotonic < *next) {
            return self.timers.set(Timer::Reconcile(key.clone()), next);
        }
        if !self.reads.inspections.contains_key(key) {
            object.inspected_at = Some(self.now.monotonic);
            self.reads.inspections.insert(key.clone(), object.version());
            self.commands.push(Command::Inspect { key: key.clone(), served });
        }
    }

    pub(super) fn inspected(&mut self, key: &Key, found: Result<Option<(Live, Value)>, String>) {
        let content = found.as_ref().map(|found| found.as_ref().map(|(_, content)| content));
        self.read_for_estimate(key, content.map_err(String::as_str));
        let Some(known) = self.reads.inspections.remove(key) else { return };
        if !self.watches.is_open(&WatchTarget::of(key)) {
            return;
        }
        let Some(object) = self.objects.get_mut(key) else { return };
        object.failed_inspections = if found.is_err() { object.failed_inspections.saturating_add(1) } else { 0 };
        let again = self.now.monotonic.after(inspection_pause(object));
        match found {
            Ok(Some((live, content))) => {
                let (version, resource_version) = (live.version(), live.resource_version.clone());
                object.observe_read(known, Some(live), self.now.wall);
                let is_current = object.version() == version;
                let inspected = self.inspection(key, &content);
                self.show_content(key, Ok(&content));
                if let Some(object) = self.objects.get_mut(key) {
                    object.had_documents |= inspected.as_ref().is_some_and(Inspected::has_documents);
                    object.inspected = inspected;
                    object.contribution = (object.impact() == Impact::High)
                        .then(|| (resource_version, Contribution::of(&key.kind, &content)));
                    object.is_verified |= is_current;
                }
                if is_current {
                    self.enqueue(key);
                } else {
                    // The watch was faster; the newer version is inspected in a while.
                    self.timers.set(Timer::Reconcile(key.clone()), again);
                }
            }
            // Its watch reports the deletion, or has already reported the object that was created after it.
            Ok(None) => self.timers.set(Timer::Reconcile(key.clone()), again),
            Err(why) => {
                self.show_content(key, Err(&why));
                let Some(object) = self.objects.get(key) else { return };
                let is_reported = object.failed_inspections >= REPORT_AFTER;
                self.timers.set(Timer::Reconcile(key.clone()), again);
                if is_reported {
                    self.show(key, State::Failed);
                    let message = redact::message::redact(&key.kind, &why);
                    self.report_held(key, Reason::ReadFailed { message });
                }
            }
        }
    }
}

/// How long after an inspection the object is not inspected again.
fn inspection_pause(object: &Managed) -> Duration {
    INSPECT_AGAIN.pause(object.failed_inspections.saturating_sub(1))
}
