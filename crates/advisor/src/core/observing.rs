//! What is served and watched, and what watches report.

use super::managed::Managed;
use super::{Core, Timer, kind};
use crate::health::is_made_of_kubelet_config;
use crate::notice::Notice;
use api::advisor::{Authorship, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
use catalog::Answer;
use change::{Key, Live};
use observe::{CrdChange, Surroundings, target_of};
use protocol::{Body, Command, Content, Discovered, WatchEvent, WatchTarget};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The target of what the advisor is asked with.
pub(super) fn requests() -> WatchTarget {
    WatchTarget { kind: kind(), namespace: String::new(), name: String::new() }
}

/// What stands for a status that cannot be read: nothing is remembered but that a plan may have been shown, so that Apply alone approves none.
fn nothing_to_remember() -> VirtPlatformConfigStatus {
    VirtPlatformConfigStatus { source_snapshot_hash: Some(String::new()), ..VirtPlatformConfigStatus::default() }
}

impl Core {
    /// Asks the server what it serves.
    pub(super) fn discover(&mut self) {
        let tag = self.discovery.begin();
        self.commands.push(Command::Discover { tag });
    }

    pub(super) fn discover_soon(&mut self) {
        if let Some(at) = self.discovery.ask_soon(self.now.monotonic) {
            self.timers.set(Timer::Discover, at);
        }
    }

    /// Takes what the server serves.
    pub(super) fn discovered(&mut self, answer: Result<Discovered, String>) {
        if let Err(why) = &answer {
            self.notify(Notice::DiscoveryFailed(why.clone()));
        }
        let is_first = !self.discovery.is_complete;
        let (is_changed, again) = self.discovery.take(answer, self.now.monotonic);
        if let Some(at) = again {
            self.timers.set(Timer::Discover, at);
        }
        if !self.discovery.is_complete {
            return;
        }
        if is_first {
            self.watch(&WatchTarget::crds(), Content::Names);
        }
        if is_changed {
            self.follow_kinds();
        }
        for query in self.queries.all() {
            if self.discovery.kinds.find(&query.kind()).is_none() && !self.facts.answers.contains_key(&query) {
                self.facts.answers.insert(query, Answer::Absent);
                self.facts_changed();
            }
        }
        self.report_readiness();
    }

    /// Watches the kinds that are served now, and forgets those that are not.
    fn follow_kinds(&mut self) {
        for target in self.watches.unserved(&self.discovery.kinds) {
            self.forget(&target);
        }
        if !self.watches.is_open(&requests()) && self.watch(&requests(), Content::Whole) {
            self.read_advertised();
        }
        // Without anybody who asks, nothing else is watched.
        if self.watches.is_open(&requests()) {
            self.follow_surroundings();
        }
        for query in self.queries.all() {
            let target = target_of(&query);
            if self.discovery.kinds.find(&target.kind).is_none() {
                self.facts.answers.insert(query, Answer::Absent);
            } else if !self.watches.is_open(&target) {
                self.watch(&target, Content::Metadata);
            }
        }
        self.facts.absent = self.discovery.absent(&self.catalog);
        self.facts_changed();
    }

    fn follow_surroundings(&mut self) {
        let newest = self.discovery.kinds.newest(api::hco::GROUP, &api::hco::VERSIONS, api::hco::KIND);
        match newest {
            Some((kind, _)) => {
                if kind != self.hco.kind {
                    self.forget(&WatchTarget::of(&self.hco));
                    self.hco.kind = kind;
                }
                let target = WatchTarget::of(&self.hco);
                if !self.watches.is_open(&target) {
                    self.watch(&target, Content::Whole);
                }
            }
            None => self.hco_absent(),
        }
        // A plan says which nodes restart, so that it also waits for what nothing is rendered from.
        for (target, _) in Surroundings::targets(false).filter(|(target, _)| target.kind != kind()) {
            if !self.watches.is_open(&target) && self.watch(&target, Content::Part) {
                self.surroundings.wait_for(target);
            }
        }
    }

    /// Opens a watch; false if the server does not serve its kind.
    pub(super) fn watch(&mut self, target: &WatchTarget, content: Content) -> bool {
        let Some(served) = self.watches.open(&self.discovery.kinds, target, content) else { return false };
        self.commands.push(Command::Watch { target: target.clone(), served, content });
        true
    }

    /// Closes a watch of a kind that is not served any more.
    fn forget(&mut self, target: &WatchTarget) {
        self.lost.remove(target);
        if self.watches.close(target) {
            self.commands.push(Command::Unwatch(target.clone()));
        }
        self.targets.forget(target);
        self.surroundings.forget(target);
        if *target == requests() {
            self.profiles.clear();
        }
        self.all_due();
    }

    /// Closes the watches that nothing needs any more.
    pub(super) fn close_unneeded_watches(&mut self) {
        let mut needed: BTreeSet<WatchTarget> = self.queries.all().iter().map(target_of).collect();
        needed.extend([requests(), WatchTarget::of(&self.hco), WatchTarget::crds()]);
        needed.extend(Surroundings::targets(true).map(|(target, _)| target));
        let works = self.profiles.values().flat_map(|managed| managed.work.values());
        needed.extend(works.map(|work| WatchTarget::of(&work.key)));
        for target in self.watches.except(&needed) {
            self.targets.forget(&target);
            self.lost.remove(&target);
            if self.watches.close(&target) {
                self.commands.push(Command::Unwatch(target));
            }
        }
    }

    /// Takes one report of a watch.
    pub(super) fn watched(&mut self, target: &WatchTarget, event: WatchEvent) {
        if !self.watches.is_open(target) {
            return;
        }
        if !self.surroundings.observe(target, &event).is_empty() || target.kind.kind == "MachineConfigPool" {
            self.pools_changed();
        }
        let is_known_crd = *target == WatchTarget::crds() && !self.crd_watched(&event);
        let key = |namespace: String, name: String| Key { kind: target.kind.clone(), namespace, name };
        match event {
            WatchEvent::Present { namespace, name, live, generation, body } => {
                let key = key(namespace, name);
                match body {
                    Body::Whole(object) if *target == requests() => {
                        self.requested(&key.name, &live, generation, object);
                    }
                    Body::Whole(object) if key == self.hco => {
                        self.seen(&key, &live, generation);
                        self.hco_watched(object);
                    }
                    Body::None => self.seen(&key, &live, generation),
                    _ => {}
                }
                if !is_known_crd {
                    self.repeat_queries(target, &key.name);
                }
            }
            WatchEvent::Gone { namespace, name, .. } => {
                let key = key(namespace, name);
                self.gone(&key);
                self.repeat_queries(target, &key.name);
            }
            WatchEvent::Listed { all, .. } => self.listed(target, &all),
            WatchEvent::Unseen => {}
            WatchEvent::WentBack => {
                // What is not listed again yet is not absent.
                self.watches.lost(target);
                self.report_readiness();
                self.targets.forget(target);
                for managed in self.profiles.values_mut() {
                    managed.went_back(target);
                }
                self.all_due();
            }
            WatchEvent::Lost { why, is_unserved } => {
                self.watches.lost(target);
                self.report_readiness();
                self.note_lost(target, &why);
                if is_unserved && !self.discovery.is_in_flight() {
                    self.discover_soon();
                }
                self.notify(Notice::WatchLost { kind: target.kind.kind.clone(), why });
            }
        }
    }

    fn listed(&mut self, target: &WatchTarget, all: &BTreeSet<(String, String)>) {
        self.watches.listed(target);
        self.lost.remove(target);
        let exists = |key: &Key| all.contains(&(key.namespace.clone(), key.name.clone()));
        for key in self.targets.of(target, |key| !exists(key)) {
            self.gone(&key);
        }
        if *target == requests() {
            let gone: Vec<String> =
                self.profiles.keys().filter(|name| !all.contains(&(String::new(), (*name).clone()))).cloned().collect();
            for name in gone {
                self.withdrawn(&name);
            }
            self.advertise();
        }
        if WatchTarget::of(&self.hco) == *target && !exists(&self.hco) {
            self.hco_absent();
        }
        for query in self.queries.about(target, None) {
            self.send_query(query);
        }
        self.report_readiness();
        self.all_due();
    }

    fn seen(&mut self, key: &Key, live: &Live, generation: i64) {
        let is_changed = self.targets.observe(key, live, Some(generation));
        if key.kind.kind == "MachineConfig" {
            self.readings.sources.remove(&key.name);
        }
        self.target_changed(key, is_changed);
    }

    fn gone(&mut self, key: &Key) {
        if *key == self.hco {
            self.hco_absent();
        }
        if WatchTarget::of(key) == requests() {
            return self.withdrawn(&key.name);
        }
        self.readings.sources.remove(&key.name);
        if key.kind.kind == "KubeletConfig" {
            self.readings.sources.retain(|name, _| !is_made_of_kubelet_config(name));
        }
        if self.targets.observe_absent(key) {
            self.target_changed(key, true);
        }
    }

    /// The profiles whose plan is about an object are looked at again.
    pub(super) fn target_changed(&mut self, key: &Key, is_content: bool) {
        for (name, managed) in &mut self.profiles {
            let mut is_concerned = false;
            for work in managed.work.values_mut().filter(|work| work.key == *key) {
                is_concerned |= is_content || work.is_watched_closely || work.reads_status();
            }
            if is_concerned {
                self.due.insert(name.clone());
            }
        }
    }

    /// Takes a `VirtPlatformConfig` as it is.
    fn requested(&mut self, name: &str, live: &Live, generation: i64, mut object: Value) {
        let (spec, status) = (object["spec"].take(), object["status"].take());
        let unreadable = |error: &serde_json::Error, part: &str| {
            let why = format!("{part}: {error}");
            Notice::Unreadable { name: name.to_owned(), why }
        };
        let spec: VirtPlatformConfigSpec = match serde_json::from_value(spec) {
            Ok(spec) => spec,
            Err(error) => return self.notify(unreadable(&error, "spec")),
        };
        let status = match serde_json::from_value::<Option<VirtPlatformConfigStatus>>(status) {
            Ok(status) => status.unwrap_or_default(),
            // Somebody else wrote it. The spec is planned, and the status is written again.
            Err(error) => {
                self.notify(unreadable(&error, "status, which is written again"));
                nothing_to_remember()
            }
        };
        let only_tells = Authorship::deserialize(&object["metadata"]).is_ok_and(|metadata| metadata.only_tells());
        let is_same = self.profiles.get(name).is_some_and(|managed| managed.uid == live.uid);
        if let Some(managed) = self.profiles.get_mut(name).filter(|_| is_same) {
            managed.observe(generation, live.version(), spec, status);
        } else {
            self.profiles.insert(name.to_owned(), Managed::new(live.uid.clone(), generation, spec, status));
        }
        if let Some(managed) = self.profiles.get_mut(name) {
            managed.only_tells = only_tells;
        }
        // Another profile may want the same object.
        self.all_due();
        self.due.insert(name.to_owned());
    }

    fn withdrawn(&mut self, name: &str) {
        if let Some(managed) = self.profiles.remove(name) {
            self.notify(Notice::Withdrawn { name: name.to_owned(), uid: managed.uid });
            self.all_due();
        }
    }

    fn hco_watched(&mut self, mut hco: Value) {
        self.is_hco_known = true;
        if let Some(metadata) = hco.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !["managedFields", "resourceVersion", "generation"].contains(&key.as_str()));
        }
        if let Some(hco) = hco.as_object_mut() {
            hco.remove("status");
        }
        if hco != self.facts.hco {
            self.facts.hco = hco;
            self.facts_changed();
        }
    }

    fn hco_absent(&mut self) {
        if !self.facts.hco.is_null() || !self.is_hco_known {
            (self.facts.hco, self.is_hco_known) = (Value::Null, true);
            self.facts_changed();
        }
    }

    /// Takes what the watch of CRDs reports; whether queries about that CRD have to be repeated.
    fn crd_watched(&mut self, event: &WatchEvent) -> bool {
        let is_news = self.watches.is_listed(&WatchTarget::crds());
        match event {
            WatchEvent::Present { name, generation, live, .. } => {
                let is_known = self.discovery.knows(name, *generation);
                let change = self.discovery.observe(name, *generation, live.deleting.is_some(), is_news);
                self.crd_changed(change, name);
                !is_known
            }
            WatchEvent::Gone { name, .. } => {
                let change = self.discovery.observe_deleted(name);
                self.crd_changed(change, name);
                true
            }
            WatchEvent::Listed { all, .. } => {
                for name in self.discovery.known_except(all) {
                    let change = self.discovery.observe_deleted(&name);
                    self.crd_changed(change, &name);
                }
                if std::mem::replace(&mut self.discovery.has_listed_crds, true) {
                    self.discover_soon();
                }
                false
            }
            WatchEvent::Unseen | WatchEvent::WentBack | WatchEvent::Lost { .. } => false,
        }
    }

    fn crd_changed(&mut self, change: CrdChange, name: &str) {
        match change {
            CrdChange::None => {}
            CrdChange::MayBeServed => self.discover_soon(),
            CrdChange::Deleted => {
                if self.discovery.kinds.drop_crd(name) {
                    self.follow_kinds();
                }
            }
        }
    }

    /// Reports the kinds whose objects are not known. Where nobody can ask for anything, the advisor is ready.
    pub(super) fn report_readiness(&mut self) {
        let mut waiting: Vec<String> = self.watches.unlisted().map(str::to_owned).collect();
        waiting.dedup();
        if !self.discovery.is_complete {
            waiting.push("the API server".to_owned());
        }
        self.commands.push(Command::Readiness(waiting));
    }
}
