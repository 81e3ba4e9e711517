//! Single reads: queries of templates, and the configurations of pools.

use super::{Core, Timer};
use crate::before;
use crate::health::is_made_of_kubelet_config;
use catalog::rollout::{Configuration, Contents, Unread};
use catalog::{Answer, Query};
use change::{Backoff, Key, Kind};
use observe::target_of;
use protocol::{Command, Content, WatchTarget};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// A read that failed is repeated after this.
const AGAIN: Duration = Duration::from_secs(10);
/// A configuration that could not be read is read again after this.
const READ_AGAIN: Backoff = Backoff { first: Duration::from_secs(5), longest: Duration::from_secs(60) };
/// A read that has failed so often is told.
const SEVERAL: u32 = 3;
const GROUP: &str = "machineconfiguration.openshift.io/v1";

impl Core {
    /// Adds a template's query. What it asks about is watched first, so that no change is missed.
    pub(super) fn ask(&mut self, query: Query) {
        if self.queries.are_too_many() {
            self.facts.answers.insert(query, Answer::Unknown);
            return self.facts_changed();
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
            None => self.answered(query, Answer::Unknown),
        }
    }

    /// Takes an answer. A query that cannot be answered now keeps its last answer.
    pub(super) fn answered(&mut self, query: Query, mut answer: Answer) {
        let repeat = self.queries.end(&query);
        if self.discovery.kinds.find(&query.kind()).is_none() {
            answer = Answer::Absent;
        }
        if let (Query::Object { .. }, Answer::Found(object)) = (&query, &mut answer) {
            *object = before::as_applied(object.take());
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
            self.facts_changed();
        }
    }

    /// Repeats the queries about an object, or about all of its kind.
    pub(super) fn repeat_queries(&mut self, target: &WatchTarget, name: &str) {
        if self.watches.is_listed(target) {
            for query in self.queries.about(target, Some(name)) {
                self.send_query(query);
            }
        }
    }

    /// Reads what an estimate needs.
    pub(super) fn read_unread(&mut self, unread: &BTreeSet<Unread>) {
        for unread in unread {
            match unread {
                Unread::Configuration(name) | Unread::Source(name) => self.read_configuration(name),
            }
        }
    }

    /// Reads a MachineConfig.
    pub(super) fn read_configuration(&mut self, name: &str) {
        let key = Key { kind: Kind::new(GROUP, "MachineConfig"), namespace: String::new(), name: name.to_owned() };
        let Some(served) = self.discovery.kinds.find(&key.kind) else { return };
        self.unread.insert(key.clone());
        if self.reading.insert(key.clone()) {
            *self.asked.entry(key.clone()).or_default() += 1;
            self.commands.push(Command::Inspect { key, served });
        }
    }

    /// Why the plan that is being made is not there: a configuration that it needs could not be read several times.
    pub(super) fn unreadable(&self) -> Option<String> {
        self.unread.iter().find_map(|key| {
            let (failures, why) = self.failed_reads.get(key)?;
            (*failures >= SEVERAL).then(|| format!("could not read {key}: {why}"))
        })
    }

    /// Takes a MachineConfig that was read for an estimate; false if it was read for something else.
    pub(super) fn configuration_read(&mut self, key: &Key, found: Result<Option<&Value>, &str>) {
        if !self.reading.contains(key) {
            return;
        }
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                // Until then nobody asks for it: whatever happens to a profile would make a request.
                let (failures, why) = self.failed_reads.entry(key.clone()).or_default();
                self.timers.set(Timer::Read(key.clone()), self.now.monotonic.after(READ_AGAIN.pause(*failures)));
                (*failures, *why) = (failures.saturating_add(1), error.to_owned());
                return self.all_due();
            }
        };
        self.reading.remove(key);
        self.failed_reads.remove(key);
        if key.name.starts_with("rendered-") {
            let pools = self.surroundings.pools().values();
            let named: BTreeSet<&String> =
                pools.flat_map(|pool| [&pool.wanted_configuration, &pool.running_configuration]).collect();
            self.readings.configurations.retain(|name, _| named.contains(name));
            self.readings.configurations.insert(key.name.clone(), found.map(Configuration::of));
        } else {
            let contents = found.and_then(|object| Contents::of(&key.kind, object));
            self.readings.sources.insert(key.name.clone(), contents);
        }
        self.all_due();
    }

    /// Pools have changed: what they run, or how far they are.
    pub(super) fn pools_changed(&mut self) {
        self.readings.pools.clear();
        // They are not watched.
        self.readings.sources.retain(|name, _| !is_made_of_kubelet_config(name));
        self.all_due();
    }
}
