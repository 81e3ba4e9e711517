//! Where our objects and our questions live: one watch for each such place.

use change::{Key, Kind};
use cluster::kinds::Served;
use cluster::watch::{Content, Seen, Watch};
use cluster::{Kinds, Server};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// A kind, in a namespace or cluster-wide.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) kind: Kind,
    pub(super) namespace: String,
}

impl Place {
    /// Where an object lives.
    pub(super) fn of(key: &Key) -> Place {
        Place { kind: key.kind.clone(), namespace: key.namespace.clone() }
    }

    /// A whole kind.
    pub(super) fn all(api_version: &str, kind: &str) -> Place {
        Place { kind: Kind::new(api_version, kind), namespace: String::new() }
    }
}

/// All that are watched.
pub(super) struct Places {
    server: Server,
    watched: BTreeMap<Place, Watched>,
    /// How many watches there ever were: what an ended one has left in the channel is told from what its successor says.
    begun: u64,
    /// Those that have not told everything yet.
    unlisted: BTreeSet<Place>,
    /// Those of our objects that have never told anything: neither what there is nor that they cannot.
    silent: BTreeSet<Place>,
    seen: mpsc::Sender<(Source, Seen)>,
}

/// Which watch says something.
pub(super) type Source = (Place, u64);

/// One that is watched; the watch ends with this value.
struct Watched {
    /// How it is addressed.
    served: Served,
    number: usize,
    begun: u64,
    task: AbortHandle,
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Places {
    pub(super) fn new(server: Server, seen: mpsc::Sender<(Source, Seen)>) -> Places {
        let (watched, unlisted, silent) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Places { server, watched, begun: 0, unlisted, silent, seen }
    }

    /// How a place is addressed.
    pub(super) fn served(&self, place: &Place) -> Option<Served> {
        self.watched.get(place).map(|watched| watched.served.clone())
    }

    /// Whether this watch is the one of its place.
    pub(super) fn is_current(&self, (place, begun): &Source) -> bool {
        self.watched.get(place).is_some_and(|watched| watched.begun == *begun)
    }

    /// Whether everything there is in a place has been told.
    pub(super) fn is_listed(&self, place: &Place) -> bool {
        self.watched.contains_key(place) && !self.unlisted.contains(place)
    }

    /// Whether there is one that has never told anything.
    pub(super) fn any_silent(&self) -> bool {
        !self.silent.is_empty()
    }

    /// The kinds of which not everything is known.
    pub(super) fn missing(&self) -> Vec<String> {
        self.unlisted.iter().map(|place| place.kind.kind.clone()).collect()
    }

    /// Those that the server does not serve any more, or not as they are watched.
    pub(super) fn unserved(&self, kinds: &Kinds) -> Vec<Place> {
        let is_served = |place: &Place, watched: &Watched| kinds.find(&place.kind).as_ref() == Some(&watched.served);
        let all = self.watched.iter().filter(|(place, watched)| !is_served(place, watched));
        all.map(|(place, _)| place.clone()).collect()
    }

    /// Those that are watched and not among these.
    pub(super) fn all_but(&self, needed: &BTreeSet<Place>) -> Vec<Place> {
        self.watched.keys().filter(|place| !needed.contains(place)).cloned().collect()
    }

    /// Watches a place that is not watched yet; false if the server does not serve it.
    pub(super) fn watch(&mut self, kinds: &Kinds, place: &Place, content: Content) -> bool {
        let Some(served) = kinds.find(&place.kind) else { return false };
        let taken: BTreeSet<usize> = self.watched.values().map(|watched| watched.number).collect();
        let number = (0..).find(|number| !taken.contains(number)).unwrap_or_default();
        self.begun += 1;
        let begun = self.begun;
        let watch = Watch {
            server: self.server.clone(),
            served: served.clone(),
            namespace: place.namespace.clone(),
            content,
            number,
            place: (place.clone(), begun),
            tell: self.seen.clone(),
        };
        let task = tokio::spawn(watch.run()).abort_handle();
        self.watched.insert(place.clone(), Watched { served, number, begun, task });
        self.unlisted.insert(place.clone());
        if content == Content::Metadata {
            self.silent.insert(place.clone());
        }
        true
    }

    /// Ends a watch; nothing of it is left.
    pub(super) fn stop(&mut self, place: &Place) {
        self.watched.remove(place);
        self.unlisted.remove(place);
        self.silent.remove(place);
    }

    /// Everything there is has been told.
    pub(super) fn listed(&mut self, place: &Place) {
        self.unlisted.remove(place);
        self.silent.remove(place);
    }

    /// The server cannot be asked now.
    pub(super) fn lost(&mut self, place: &Place) {
        self.unlisted.insert(place.clone());
        self.silent.remove(place);
    }

    /// No longer waits for those that have told nothing yet.
    pub(super) fn wait_no_longer(&mut self) {
        self.silent.clear();
    }
}
