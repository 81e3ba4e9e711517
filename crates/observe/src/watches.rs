//! Which watches are open, and which of them have reported a complete list.

use protocol::{Content, Kinds, Served, WatchTarget};
use std::collections::{BTreeMap, BTreeSet};

/// The open watches.
#[derive(Debug, Default)]
pub struct Watches {
    open: BTreeMap<WatchTarget, Open>,
    /// Whether writes wait no longer for first lists: a kind that is installed later delays no other.
    has_waited: bool,
}

#[derive(Debug)]
struct Open {
    served: Served,
    is_listed: bool,
    /// Whether it has failed since it listed.
    has_failed: bool,
    /// Whether its objects are managed and it has neither listed nor failed yet.
    is_silent: bool,
}

impl Watches {
    /// Opens a watch; `None` if the server does not serve its kind.
    pub fn open(&mut self, kinds: &Kinds, target: &WatchTarget, content: Content) -> Option<Served> {
        let served = kinds.find(&target.kind)?;
        let is_silent = content == Content::Metadata;
        let open = Open { served: served.clone(), is_listed: false, has_failed: false, is_silent };
        self.open.insert(target.clone(), open);
        Some(served)
    }

    /// Forgets a watch; whether it was open.
    pub fn close(&mut self, target: &WatchTarget) -> bool {
        self.open.remove(target).is_some()
    }

    /// How the server serves the kind of an open watch.
    pub fn served(&self, target: &WatchTarget) -> Option<Served> {
        self.open.get(target).map(|open| open.served.clone())
    }

    /// Whether a watch is open.
    pub fn is_open(&self, target: &WatchTarget) -> bool {
        self.open.contains_key(target)
    }

    /// Whether a watch has reported every object.
    pub fn is_listed(&self, target: &WatchTarget) -> bool {
        self.open.get(target).is_some_and(|open| open.is_listed)
    }

    /// Whether a watch has failed, and not listed since.
    pub fn has_failed(&self, target: &WatchTarget) -> bool {
        self.open.get(target).is_some_and(|open| open.has_failed)
    }

    /// Whether the first writes wait for a watch of managed objects that has neither listed nor failed yet.
    pub fn are_awaited(&self) -> bool {
        !self.has_waited && self.open.values().any(|open| open.is_silent)
    }

    /// The kinds without a complete list.
    pub fn unlisted(&self) -> impl Iterator<Item = &str> {
        self.open.iter().filter(|(_, open)| !open.is_listed).map(|(target, _)| target.kind.kind.as_str())
    }

    /// Watches of kinds that the server does not serve any more, or serves differently.
    pub fn unserved(&self, kinds: &Kinds) -> Vec<WatchTarget> {
        let is_served = |target: &WatchTarget, open: &Open| kinds.find(&target.kind).as_ref() == Some(&open.served);
        let unserved = self.open.iter().filter(|(target, open)| !is_served(target, open));
        unserved.map(|(target, _)| target.clone()).collect()
    }

    /// Open watches that are not among these.
    pub fn except(&self, needed: &BTreeSet<WatchTarget>) -> Vec<WatchTarget> {
        self.open.keys().filter(|target| !needed.contains(target)).cloned().collect()
    }

    /// A watch has reported every object.
    pub fn listed(&mut self, target: &WatchTarget) {
        if let Some(open) = self.open.get_mut(target) {
            (open.is_listed, open.has_failed, open.is_silent) = (true, false, false);
        }
    }

    /// A watch has failed.
    pub fn lost(&mut self, target: &WatchTarget) {
        if let Some(open) = self.open.get_mut(target) {
            (open.is_listed, open.has_failed, open.is_silent) = (false, true, false);
        }
    }

    /// No longer waits for watches that have reported nothing yet.
    pub fn stop_waiting(&mut self) {
        self.has_waited = true;
    }
}
