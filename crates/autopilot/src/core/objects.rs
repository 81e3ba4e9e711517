//! All objects that are managed or to be removed, and which of them are due.

use super::managed::Managed;
use super::records::Records;
use change::Key;
use protocol::WatchTarget;
use std::collections::{BTreeMap, BTreeSet};

/// More writes at a time only make the server slower.
const WRITES_AT_A_TIME: usize = 8;

/// The objects that are managed or to be removed.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// Boxed, because a map keeps room for more values than it holds, and these are large.
    all: BTreeMap<Key, Box<Managed>>,
    /// Those to decide about, in the order of the catalogue.
    ready: BTreeSet<(i64, Key)>,
    /// How many writes are in flight.
    writing: usize,
    /// Objects that are not managed any more and have a write in flight: the next one waits for its answer.
    abandoned: BTreeSet<Key>,
}

impl Objects {
    pub(crate) fn get(&self, key: &Key) -> Option<&Managed> {
        self.all.get(key).map(Box::as_ref)
    }

    pub(crate) fn get_mut(&mut self, key: &Key) -> Option<&mut Managed> {
        self.all.get_mut(key).map(Box::as_mut)
    }

    pub(crate) fn insert(&mut self, object: Managed) {
        self.all.insert(object.object.key.clone(), Box::new(object));
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, key: &Key) -> Option<Box<Managed>> {
        let object = self.all.remove(key)?;
        if object.writes.pending.is_some() {
            self.abandoned.insert(key.clone());
        }
        Some(object)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.all.keys()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &Managed)> {
        self.all.iter().map(|(key, object)| (key, object.as_ref()))
    }

    /// The objects that a watch reports.
    pub(crate) fn keys_of(&self, target: &WatchTarget) -> Vec<Key> {
        self.all.keys().filter(|key| WatchTarget::of(key) == *target).cloned().collect()
    }

    /// The objects of an asset.
    pub(crate) fn keys_of_asset(&self, asset: &str) -> Vec<Key> {
        self.all.iter().filter(|(_, object)| object.asset == asset).map(|(key, _)| key.clone()).collect()
    }

    pub(crate) fn forget_that_they_were_desired(&mut self) {
        self.all.values_mut().for_each(|object| object.was_desired = false);
    }

    /// The next object to decide about, while there is room for a write.
    pub(crate) fn next_ready(&mut self) -> Option<Key> {
        if self.writing >= WRITES_AT_A_TIME {
            return None;
        }
        self.ready.pop_first().map(|(_, key)| key)
    }

    /// Marks an object as due.
    pub(crate) fn enqueue(&mut self, key: &Key) {
        if let Some(object) = self.all.get(key) {
            self.ready.insert((object.order, key.clone()));
        }
    }

    /// Takes the recorded budgets of recreation, and marks every object as due.
    pub(crate) fn take_recorded(&mut self, recorded: &Records) {
        for (key, object) in &mut self.all {
            object.recreation = object.recreation.or(recorded.left(key));
        }
        self.enqueue_all();
    }

    /// Marks every object as due.
    pub(crate) fn enqueue_all(&mut self) {
        self.ready.extend(self.all.iter().map(|(key, object)| (object.order, key.clone())));
    }

    /// A write is sent.
    pub(crate) fn write_started(&mut self) {
        self.writing += 1;
    }

    /// Whether the object has a write in flight from the time before it was dropped.
    pub(crate) fn is_abandoned(&self, key: &Key) -> bool {
        self.abandoned.contains(key)
    }

    /// A write is answered; whether nobody waits for it any more.
    pub(crate) fn write_ended(&mut self, key: &Key) -> bool {
        self.writing = self.writing.saturating_sub(1);
        self.abandoned.remove(key)
    }

    /// How many objects are due or have a write in flight.
    pub(crate) fn backlog(&self) -> usize {
        self.writing + self.ready.len()
    }
}
