//! What follows when kinds are installed, change their version or are removed.

use super::timers::Timer;
use super::{Core, Previews, Stale};
use crate::notice::Notice;
use catalog::Answer;
use observe::{Surroundings, target_of};
use protocol::{Command, Content, Discovered, WatchTarget};
use std::collections::BTreeSet;
use std::time::Duration;

/// After a start, writes wait this long for all lists, so that they happen in the order of the catalogue.
const WAIT_FOR_LISTS: Duration = Duration::from_millis(300);

impl Core {
    /// Asks the server what it serves.
    pub(super) fn discover(&mut self) {
        let tag = self.discovery.begin();
        self.commands.push(Command::Discover { tag });
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
            self.send_query(self.records.query());
            self.timers.set(Timer::FirstLists, self.now.monotonic.after(WAIT_FOR_LISTS));
        }
        if is_changed {
            self.follow_kinds();
        }
        for query in self.queries.all() {
            if self.discovery.kinds.find(&query.kind()).is_none() && !self.facts.answers.contains_key(&query) {
                self.facts.answers.insert(query, Answer::Absent);
                self.stale = self.stale.max(Stale::Answers);
            }
        }
    }

    /// Watches the kinds that are served now, and forgets those that are not.
    pub(super) fn follow_kinds(&mut self) {
        for target in self.watches.unserved(&self.discovery.kinds) {
            self.forget(&target);
        }
        self.follow_hco();
        for (target, is_first) in self.fact_targets() {
            // Once something was rendered, what is known holds until the list is there.
            if self.watches.is_open(&target) || !self.watch(&target, Content::Part) {
                continue;
            }
            if target == Surroundings::governing() {
                self.notify(Notice::AdvisorServed);
            }
            if is_first && !self.has_rendered {
                self.surroundings.wait_for(target);
            }
        }
        for query in self.queries.all() {
            let target = target_of(&query);
            if self.discovery.kinds.find(&target.kind).is_none() {
                self.facts.answers.insert(query, Answer::Absent);
            } else if !self.watches.is_open(&target) {
                self.watch(&target, Content::Metadata);
            }
        }
        // Objects to remove are not rendered, so nothing else watches them again after their kind was gone for a moment.
        let targets: BTreeSet<WatchTarget> = self.objects.keys().map(WatchTarget::of).collect();
        for target in targets {
            if !self.watches.is_open(&target) {
                self.watch(&target, Content::Metadata);
            }
        }
        // What is missing, and what may have to be removed, depends on what is served.
        (self.facts.absent, self.stale) = (self.discovery.absent(&self.catalog), Stale::All);
        self.report_readiness();
    }

    /// What facts are read from, each with whether nothing can be rendered before it is listed.
    fn fact_targets(&self) -> impl Iterator<Item = (WatchTarget, bool)> + use<> {
        // Before it is known what the advisor governs, everything may be.
        Surroundings::targets(self.config.previews == Previews::Diff).chain([(Surroundings::governing(), true)])
    }

    /// Follows the HyperConverged to the newest version that is served; without one nobody says what is wanted.
    fn follow_hco(&mut self) {
        let newest = self.discovery.kinds.newest(api::hco::GROUP, &api::hco::VERSIONS, api::hco::KIND);
        let Some((kind, _)) = newest else {
            if !self.facts.hco.is_null() || !self.discovery.has_listed_crds {
                self.notify(Notice::NoHyperConverged);
            }
            return self.suspend();
        };
        if kind != self.platform.key.kind {
            self.forget(&WatchTarget::of(&self.platform.key));
            self.platform.key.kind = kind;
            self.notify(Notice::Subject(self.platform.key.clone(), self.platform.uid.clone()));
        }
        let target = WatchTarget::of(&self.platform.key);
        if !self.watches.is_open(&target) {
            self.watch(&target, Content::Whole);
        }
    }

    /// Opens a watch; false if the server does not serve its kind.
    pub(super) fn watch(&mut self, target: &WatchTarget, content: Content) -> bool {
        let Some(served) = self.watches.open(&self.discovery.kinds, target, content) else { return false };
        self.commands.push(Command::Watch { target: target.clone(), served, content });
        self.report_readiness();
        true
    }

    fn unwatch(&mut self, target: &WatchTarget) {
        if self.watches.close(target) {
            self.commands.push(Command::Unwatch(target.clone()));
            self.report_readiness();
        }
    }

    /// Closes a watch of a kind that is not served any more; its objects are unknown from now on.
    fn forget(&mut self, target: &WatchTarget) {
        self.unwatch(target);
        for key in self.objects.keys_of(target) {
            if let Some(object) = self.objects.get_mut(&key) {
                object.forget_live();
            }
        }
        self.surroundings.forget(target);
        self.formers.listed(target, |_| false);
        self.orphans.kind_gone(&target.kind);
        self.stale = Stale::All;
    }

    /// Closes the watches that nothing needs any more.
    pub(super) fn close_unneeded_watches(&mut self) {
        let mut needed: BTreeSet<WatchTarget> = self.objects.keys().map(WatchTarget::of).collect();
        needed.extend(self.queries.all().iter().map(target_of));
        needed.extend([WatchTarget::of(&self.platform.key), WatchTarget::crds()]);
        needed.extend(self.fact_targets().map(|(target, _)| target));
        for target in self.watches.except(&needed) {
            self.orphans.watch_closed(&target, self.watches.is_listed(&target));
            self.unwatch(&target);
        }
    }

    /// Reports the kinds whose objects are not known. A kind that an asset needs and the server does not serve is not among them.
    pub(super) fn report_readiness(&mut self) {
        // Several watches may be of one kind, in different namespaces or groups; it is named once.
        let mut waiting: Vec<String> = Vec::new();
        for kind in self.watches.unlisted() {
            if !waiting.iter().any(|named| named == kind) {
                waiting.push(kind.to_owned());
            }
        }
        if !self.watches.is_open(&WatchTarget::of(&self.platform.key)) {
            waiting.insert(0, format!("{}, which the API server does not serve", api::hco::KIND));
        }
        if self.records.is_attempted() && !self.records.is_read() {
            waiting.push(format!("ConfigMap {}", api::STATE));
        }
        if let Some(waiting) = self.reports.readiness(waiting) {
            self.commands.push(Command::Readiness(waiting));
        }
    }
}
