//! Finds the objects that are not wanted any more, and forgets them once they are removed.

use super::Core;
use super::managed::{Known, Managed};
use super::timers::Timer;
use crate::notice::{Notice, State};
use crate::removal::Cause;
use crate::unwanted::Unwanted;
use change::Key;
use protocol::{Command, Content, Search, WatchTarget};
use std::collections::{BTreeMap, BTreeSet};

impl Core {
    /// Takes what is not wanted, and searches where nothing is watched.
    pub(super) fn expect_removals(&mut self, unwanted: BTreeMap<Key, Unwanted>) {
        let tombstones: Vec<Key> = unwanted
            .iter()
            .filter(|(_, object)| object.cause == Cause::Tombstone)
            .map(|(key, _)| key.clone())
            .collect();
        let others = unwanted.iter().filter(|(_, object)| object.cause != Cause::Tombstone);
        let targets: BTreeSet<WatchTarget> = others.map(|(key, _)| WatchTarget::of(key)).collect();
        self.orphans.expect(unwanted);
        for key in tombstones {
            if self.objects.get(&key).is_none() && self.orphans.is_unsearched(&key) {
                self.notify(Notice::State(key.clone(), State::TombstoneAbsent));
            }
            self.plan_search(Search::Name(key));
        }
        for target in targets {
            // An open watch reports them.
            if !self.watches.is_open(&target) {
                self.plan_search(Search::Label(target));
            }
        }
        self.remove_orphans();
    }

    fn plan_search(&mut self, search: Search) {
        let is_served = self.discovery.kinds.find(search.kind()).is_some();
        if is_served {
            self.orphans.plan(search, self.now.monotonic);
        }
    }

    /// Makes the searches that are due.
    pub(super) fn search_orphans(&mut self) {
        let is_idle = self.objects.backlog() == 0;
        for search in self.orphans.due(is_idle, self.now.monotonic) {
            self.search(search);
        }
        if let Some(deadline) = self.orphans.deadline() {
            self.timers.set(Timer::Searches, deadline);
        }
    }

    pub(super) fn search(&mut self, search: Search) {
        match self.discovery.kinds.find(search.kind()) {
            Some(served) => {
                self.orphans.search_sent(&search);
                self.commands.push(Command::Search { search, served });
            }
            None => self.orphans.forget(&search),
        }
    }

    /// Takes what a search found.
    pub(super) fn found(&mut self, search: Search, found: Result<Vec<Key>, String>) {
        self.orphans.search_answered(&search);
        match found {
            Ok(keys) => {
                self.orphans.search_succeeded(&search);
                for key in keys.iter().filter(|key| self.objects.get(key).is_none()) {
                    self.orphans.observe(key);
                }
                self.remove_orphans();
            }
            Err(why) => {
                self.notify(Notice::SearchFailed { kind: search.kind().kind.clone(), why });
                let at = self.orphans.search_failed(&search, self.now.monotonic);
                self.timers.set(Timer::Search(search), at);
            }
        }
    }

    /// Starts to decide about every object that exists and is not wanted.
    pub(super) fn remove_orphans(&mut self) {
        for (key, unwanted) in self.orphans.to_remove(|key| self.objects.get(key).is_some()) {
            let mut object = Managed::new(unwanted.asset, unwanted.order, unwanted.object);
            object.removal = Some(unwanted.cause);
            self.objects.insert(object);
            let target = WatchTarget::of(&key);
            if !self.watches.is_open(&target) {
                self.watch(&target, Content::Metadata);
            } else if self.watches.is_listed(&target) {
                self.refetch(&key);
            }
        }
    }

    /// Forgets an object that is gone, or not ours any more.
    pub(super) fn removed(&mut self, key: &Key) {
        let Some(object) = self.objects.remove(key) else { return };
        self.orphans.observe_absent(key);
        self.records.end_deletion(key);
        self.notify(Notice::State(key.clone(), State::Forgotten));
        if object.removal == Some(Cause::Tombstone) {
            self.notify(Notice::State(key.clone(), State::TombstoneAbsent));
        }
        if let Some(notice) = object.writes.deferred_notice {
            self.report_object(key, notice);
        }
        self.close_unneeded_watches();
    }

    /// Stops managing an object that no asset renders any more. It may have to be removed later, and nothing reports it again.
    pub(super) fn stop_managing(&mut self, key: &Key) {
        let Some(object) = self.objects.remove(key) else { return };
        self.notify(Notice::State(key.clone(), State::Forgotten));
        if matches!(&object.live, Known::Present(live) if live.labelled) || !object.writes.unanswered.is_empty() {
            self.orphans.observe(key);
        }
    }
}
