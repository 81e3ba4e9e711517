//! Objects that are not wanted any more: those that may exist, and those that were found.

use crate::removal::Cause;
use crate::unwanted::Unwanted;
use change::{Backoff, Impact, Key, Kind, Moment};
use protocol::{Search, WatchTarget};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// After a search that failed.
const RETRY: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(300) };
/// A search waits no longer than this for the writes of a start.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// Objects to remove.
#[derive(Debug, Default)]
pub(crate) struct Orphans {
    /// Objects that are not wanted, whether they exist or not.
    unwanted: BTreeMap<Key, Unwanted>,
    /// Existing objects with our label that no asset wants, as far as is known.
    found: BTreeSet<Key>,
    /// Searches that were made, each with its failures so far.
    searches: BTreeMap<Search, u32>,
    /// Searches that wait for writes to end.
    waiting: Vec<Search>,
    /// Searches that were sent and are not answered.
    sent: BTreeSet<Search>,
    /// Until when they wait.
    deadline: Option<Moment>,
}

impl Orphans {
    /// Replaces what is not wanted.
    pub(crate) fn expect(&mut self, unwanted: BTreeMap<Key, Unwanted>) {
        self.unwanted = unwanted;
    }

    /// An object with our label exists that no asset wants.
    pub(crate) fn observe(&mut self, key: &Key) {
        self.found.insert(key.clone());
    }

    /// An object is gone.
    pub(crate) fn observe_absent(&mut self, key: &Key) {
        self.found.remove(key);
    }

    /// A watch is closed; one that has listed everything need not be searched again.
    pub(crate) fn watch_closed(&mut self, target: &WatchTarget, is_listed: bool) {
        if is_listed {
            self.searches.insert(Search::Label(target.clone()), 0);
        }
    }

    /// Whether nobody has looked for this object yet.
    pub(crate) fn is_unsearched(&self, key: &Key) -> bool {
        !self.searches.contains_key(&Search::Name(key.clone()))
    }

    /// Plans a search, once.
    pub(crate) fn plan(&mut self, search: Search, now: Moment) {
        if !self.searches.contains_key(&search) {
            self.searches.insert(search.clone(), 0);
            self.waiting.push(search);
            self.deadline.get_or_insert(now.after(LONGEST_WAIT));
        }
    }

    /// A search cannot be made, because its kind is not served: it is planned again when it is.
    pub(crate) fn forget(&mut self, search: &Search) {
        self.searches.remove(search);
    }

    /// A kind is not served any more, so what its searches found is outdated.
    pub(crate) fn kind_gone(&mut self, kind: &Kind) {
        self.searches.retain(|search, _| search.kind() != kind);
        self.sent.retain(|search| search.kind() != kind);
        self.found.retain(|key| key.kind != *kind);
    }

    /// A search is sent.
    pub(crate) fn search_sent(&mut self, search: &Search) {
        self.sent.insert(search.clone());
    }

    /// A search is answered.
    pub(crate) fn search_answered(&mut self, search: &Search) {
        self.sent.remove(search);
    }

    /// The objects that an edit asks to delete, if they exist.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = &Key> {
        let is_edit = |object: &Unwanted| object.cause != Cause::Tombstone && object.object.impact != Impact::High;
        self.unwanted.iter().filter(move |(_, object)| is_edit(object)).map(|(key, _)| key)
    }

    /// Whether a search for these objects was answered.
    pub(crate) fn is_searched(&self, target: &WatchTarget) -> bool {
        let search = Search::Label(target.clone());
        self.searches.get(&search) == Some(&0) && !self.waiting.contains(&search) && !self.sent.contains(&search)
    }

    /// Whether a search for these objects has failed.
    pub(crate) fn has_failed(&self, target: &WatchTarget) -> bool {
        self.searches.get(&Search::Label(target.clone())).is_some_and(|failures| *failures > 0)
    }

    /// Until when planned searches wait for writes.
    pub(crate) fn deadline(&self) -> Option<Moment> {
        self.deadline
    }

    /// The searches to make now: they wait for writes, but not for long.
    pub(crate) fn due(&mut self, is_idle: bool, now: Moment) -> Vec<Search> {
        if !is_idle && self.deadline.is_some_and(|deadline| now < deadline) {
            return Vec::new();
        }
        self.deadline = None;
        std::mem::take(&mut self.waiting)
    }

    /// A search has succeeded.
    pub(crate) fn search_succeeded(&mut self, search: &Search) {
        self.searches.insert(search.clone(), 0);
    }

    /// A search has failed; when to make it again.
    pub(crate) fn search_failed(&mut self, search: &Search, now: Moment) -> Moment {
        let failures = self.searches.entry(search.clone()).or_default();
        let at = now.after(RETRY.pause(*failures));
        *failures += 1;
        at
    }

    /// The unwanted objects that exist and are not among the managed ones.
    pub(crate) fn to_remove(&self, is_managed: impl Fn(&Key) -> bool) -> Vec<(Key, Unwanted)> {
        let found = self.found.iter().filter(|key| !is_managed(key));
        found.filter_map(|key| Some((key.clone(), self.unwanted.get(key)?.clone()))).collect()
    }
}

#[cfg(test)]
mod tests;
