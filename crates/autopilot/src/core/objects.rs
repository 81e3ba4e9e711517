//! All objects that are managed or to be removed, and which of them are due.

use super::managed::Managed;
use super::records::Records;
use change::{Key, Live, Moment};
use protocol::WatchTarget;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// More writes at a time only make the server slower.
const WRITES_AT_A_TIME: usize = 8;

/// A write that takes longer, because an admission webhook hangs, keeps no other waiting.
const SLOW: Duration = Duration::from_secs(1);

/// The objects that are managed or to be removed.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// Boxed, because a map keeps room for more values than it holds, and these are large.
    all: BTreeMap<Key, Box<Managed>>,
    /// Those to decide about, in the order of the catalogue.
    ready: BTreeSet<(i64, Key)>,
    /// The writes in flight, each with the moment when it was sent.
    writing: BTreeMap<Key, Moment>,
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

    /// The next object to decide about, while there is room for a write.
    pub(crate) fn next_ready(&mut self, now: Moment) -> Option<Key> {
        if self.room_at().is_some_and(|at| now < at) {
            return None;
        }
        self.ready.pop_first().map(|(_, key)| key)
    }

    /// When there is room for another write, as far as time decides that; nothing if there is nothing to decide.
    pub(crate) fn room_at(&self) -> Option<Moment> {
        let mut sent: Vec<Moment> = self.writing.values().copied().collect();
        sent.sort_unstable();
        let oldest = sent.len().checked_sub(WRITES_AT_A_TIME)?;
        Some(sent[oldest].after(SLOW)).filter(|_| !self.ready.is_empty())
    }

    /// Marks an object as due.
    pub(crate) fn enqueue(&mut self, key: &Key) {
        if let Some(object) = self.all.get(key) {
            self.ready.insert((object.order, key.clone()));
        }
    }

    /// Whether one of them is large. Which ones the next events decide about is not known before: a new render decides about all.
    pub(crate) fn is_one_large(&self) -> bool {
        self.all.values().any(|object| object.object.desired.is_large() || object.live().is_some_and(Live::is_large))
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
    pub(crate) fn write_started(&mut self, key: &Key, now: Moment) {
        self.writing.insert(key.clone(), now);
    }

    /// Whether the object has a write in flight from the time before it was dropped.
    pub(crate) fn is_abandoned(&self, key: &Key) -> bool {
        self.abandoned.contains(key)
    }

    /// When the write in flight was sent.
    pub(crate) fn sent_at(&self, key: &Key) -> Option<Moment> {
        self.writing.get(key).copied()
    }

    /// A write is answered; whether nobody waits for it any more.
    pub(crate) fn write_ended(&mut self, key: &Key) -> bool {
        self.writing.remove(key);
        self.abandoned.remove(key)
    }

    /// How many objects are due or have a write in flight.
    pub(crate) fn backlog(&self) -> usize {
        self.writing.len() + self.ready.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Objects, SLOW, WRITES_AT_A_TIME};
    use crate::budget::Budget;
    use crate::core::managed::Managed;
    use crate::core::managed::tests::managed;
    use crate::core::records::Records;
    use crate::evaluate::DesiredObject;
    use change::{Desired, Impact, Key, Kind, Moment};
    use serde_json::json;
    use std::time::Duration;

    #[test]
    fn recorded_budgets_are_taken_by_objects_without_one_and_all_are_due() {
        let (mut objects, mut records) = (Objects::default(), Records::new("n"));
        let object = managed();
        let (key, now) = (object.object.key.clone(), jiff::Timestamp::UNIX_EPOCH);
        objects.insert(object);
        let left = Budget::full(now).spend(now).unwrap();
        records.spend(&key, left);
        objects.take_recorded(&records);
        assert_eq!(objects.get(&key).unwrap().recreation, Some(left));
        assert_eq!(objects.next_ready(Moment::default()), Some(key.clone()));
        records.spend(&key, left.spend(now).unwrap());
        objects.take_recorded(&records);
        assert_eq!(objects.get(&key).unwrap().recreation, Some(left), "what is known here is newer");
    }

    #[test]
    fn writes_that_hang_keep_no_other_waiting() {
        let mut objects = Objects::default();
        for number in 0..2 * WRITES_AT_A_TIME {
            let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: format!("x{number}") };
            let desired = Desired::of(&json!({}));
            let object = DesiredObject {
                key,
                desired,
                impact: Impact::Low,
                source: String::new(),
                never_pruned: false,
                documents: Vec::new(),
                read: None,
            };
            objects.insert(Managed::new("a".into(), 0, object.into()));
        }
        objects.enqueue_all();
        let (start, mut sent) = (Moment::default(), 0);
        while let Some(key) = objects.next_ready(start) {
            objects.write_started(&key, start);
            sent += 1;
        }
        assert_eq!((sent, objects.room_at()), (WRITES_AT_A_TIME, Some(start.after(SLOW))));
        assert_eq!(objects.next_ready(start.after(SLOW - Duration::from_millis(1))), None);
        while let Some(key) = objects.next_ready(start.after(SLOW)) {
            objects.write_started(&key, start.after(SLOW));
            sent += 1;
        }
        assert_eq!((sent, objects.room_at(), objects.backlog()), (2 * WRITES_AT_A_TIME, None, 2 * WRITES_AT_A_TIME));
    }
}
