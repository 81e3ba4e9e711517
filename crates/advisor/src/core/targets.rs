//! What watches say of the objects that plans are about.

use crate::overrides;
use change::{Digest, Entry, Key, Live};
use protocol::WatchTarget;
use std::collections::BTreeMap;

/// The objects of all kinds that plans are about, by key.
#[derive(Debug, Default)]
pub(super) struct Targets {
    seen: BTreeMap<Key, Seen>,
    /// The number of changes so far. An object that is created again does not begin anew.
    changes: u64,
}

/// One object.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// Its version.
    pub(super) version: Option<u128>,
    /// Nothing if only the answer to a write is known.
    generation: Option<i64>,
    /// Who wrote what beside its status, and when.
    writes: Digest,
    /// The same for its status.
    statuses: Digest,
    /// The number of the last change of its content.
    pub(super) content: u64,
    /// Whether users say how far it is managed.
    pub(super) is_overridden: bool,
}

impl Targets {
    /// Takes an object as it is; whether its content may have changed.
    pub(super) fn observe(&mut self, key: &Key, live: &Live, generation: Option<i64>) -> bool {
        let entries = Entry::all(&live.managed_fields.value());
        let digest = |is_status: bool| {
            let fits = |entry: &&Entry| entry.subresource.is_empty() != is_status;
            let text = format!("{:?}", entries.iter().filter(fits).collect::<Vec<_>>());
            Digest::of_bytes(text.as_bytes())
        };
        let (writes, statuses) = (digest(false), digest(true));
        let version = live.version();
        let before = self.seen.get(key);
        // Only its status has changed if nobody wrote anything else.
        let is_status = before.is_some_and(|before| {
            before.generation.is_none_or(|before| Some(before) == generation)
                && before.writes == writes
                && before.statuses != statuses
        });
        if before.is_some_and(|before| before.version >= version) {
            return false;
        }
        let content = match before.filter(|_| is_status) {
            Some(before) => before.content,
            None => {
                self.changes += 1;
                self.changes
            }
        };
        let is_overridden = overrides::are_owned(&entries);
        self.seen.insert(key.clone(), Seen { version, generation, writes, statuses, content, is_overridden });
        !is_status
    }

    /// Takes that an object is gone; whether it was known.
    pub(super) fn observe_absent(&mut self, key: &Key) -> bool {
        self.seen.remove(key).is_some()
    }

    /// An object, if it exists.
    pub(super) fn get(&self, key: &Key) -> Option<&Seen> {
        self.seen.get(key)
    }

    /// The objects of a target that fit.
    pub(super) fn of(&self, target: &WatchTarget, fits: impl Fn(&Key) -> bool) -> Vec<Key> {
        self.seen.keys().filter(|key| WatchTarget::of(key) == *target && fits(key)).cloned().collect()
    }

    /// Forgets the objects of a target.
    pub(super) fn forget(&mut self, target: &WatchTarget) {
        self.seen.retain(|key, _| WatchTarget::of(key) != *target);
    }
}
