//! Where our objects and our questions live: one watch for each such place.

use change::{Key, Kind};
use cluster::kinds::Served;
use cluster::watch::{Content, Seen, Watch};
use cluster::{Kinds, Server};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

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
}

/// All that are watched.
pub(super) struct Places {
    server: Server,
    /// How each is addressed.
    watched: BTreeMap<Place, Served>,
    /// Those that have not told everything yet.
    unlisted: BTreeSet<Place>,
    /// Those that have never told anything: neither what there is nor that they cannot.
    silent: BTreeSet<Place>,
    tasks: JoinSet<()>,
    seen: mpsc::Sender<(Place, Seen)>,
}

impl Places {
    pub(super) fn new(server: Server, seen: mpsc::Sender<(Place, Seen)>) -> Places {
        let (watched, unlisted, silent) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Places { server, watched, unlisted, silent, tasks: JoinSet::new(), seen }
    }

    /// How a place is addressed.
    pub(super) fn served(&self, place: &Place) -> Option<Served> {
        self.watched.get(place).cloned()
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

    /// Watches a place that is not watched yet; false if the server does not serve it.
    pub(super) fn watch(&mut self, kinds: &Kinds, place: &Place, content: Content) -> bool {
        let Some(served) = kinds.find(&place.kind) else { return false };
        let watch = Watch {
            server: self.server.clone(),
            served: served.clone(),
            namespace: place.namespace.clone(),
            content,
            number: self.watched.len(),
            place: place.clone(),
            tell: self.seen.clone(),
        };
        self.tasks.spawn(watch.run());
        self.watched.insert(place.clone(), served);
        self.unlisted.insert(place.clone());
        self.silent.insert(place.clone());
        true
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
