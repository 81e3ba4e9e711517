//! Where our objects and our questions live: one watch for each such place.

use change::{Key, Kind};
use cluster::kinds::Served;
use cluster::watch::{Content, Seen, Watch};
use cluster::{Kinds, Server};
use std::collections::{BTreeMap, BTreeSet};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

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

/// One that is watched.
struct Watched {
    served: Served,
    /// Ends the watch.
    abort: AbortHandle,
    content: Content,
}

/// All that are watched.
pub(super) struct Places {
    server: Server,
    watched: BTreeMap<Place, Watched>,
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
        self.watched.get(place).map(|watched| watched.served.clone())
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

    /// Watches a place from its beginning, in the place of an earlier watch of it; false if the server does not serve it.
    pub(super) fn watch(&mut self, kinds: &Kinds, place: &Place, content: Content) -> bool {
        let Some(served) = kinds.find(&place.kind) else { return false };
        // Who once needed everything still does.
        let content = self.watched.get(place).map_or(content, |earlier| match earlier.content {
            Content::Whole => Content::Whole,
            Content::Metadata => content,
        });
        let (tell, mut told) = mpsc::channel(64);
        let (server, namespace) = (self.server.clone(), place.namespace.clone());
        let watch = Watch { server, served: served.clone(), namespace, content, number: self.watched.len(), tell };
        let abort = self.tasks.spawn(watch.run());
        let (seen, here) = (self.seen.clone(), place.clone());
        self.tasks.spawn(async move {
            while let Some(sight) = told.recv().await {
                if seen.send((here.clone(), sight)).await.is_err() {
                    return;
                }
            }
        });
        self.unlisted.insert(place.clone());
        if let Some(earlier) = self.watched.insert(place.clone(), Watched { served, abort, content }) {
            earlier.abort.abort();
        } else {
            self.silent.insert(place.clone());
        }
        while self.tasks.try_join_next().is_some() {}
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
