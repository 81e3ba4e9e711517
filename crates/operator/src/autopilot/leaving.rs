//! What nobody wants any more and may still be there: found by our label, then parted with like any object is kept.

use super::engine::Engine;
use super::item::Item;
use super::places::Place;
use super::platform;
use autopilot::Cause;
use catalog::Tombstone;
use change::{Desired, Impact, Key, Kind};
use cluster::Server;
use cluster::kinds::Served;
use cluster::request::Failure;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::task::JoinSet;

/// A search that failed is made again after this, and then less and less often.
const SEARCH_AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));
/// A search waits no longer than this for the writes of a start.
const PATIENCE: Duration = Duration::from_secs(1);

/// What may have to go.
#[derive(Default)]
pub(super) struct Leaving {
    /// Why each would have to.
    candidates: BTreeMap<Key, Candidate>,
    /// Objects with our label that nobody wants, as far as was seen.
    strays: BTreeSet<Key>,
    /// Places that were searched, or are being.
    searched: BTreeSet<Place>,
    /// Objects of former releases that were looked for.
    looked_for: BTreeSet<Key>,
    pub(super) searches: JoinSet<Vec<Key>>,
}

/// What is looked for.
enum Search {
    /// Everything with our label in a place.
    Label(Place),
    /// One object.
    Name(Key),
}

impl Search {
    async fn ask(&self, server: &Server, served: &Served) -> Result<Vec<Key>, Failure> {
        match self {
            Search::Label(place) => {
                let label = format!("{}={}", api::MANAGED_BY.0, api::MANAGED_BY.1);
                let found = cluster::list::lives(server, served, &place.namespace, &label).await?;
                Ok(found.into_iter().map(|(key, _)| key).collect())
            }
            Search::Name(key) => {
                let found = cluster::live::read(server, served, key).await?;
                Ok(found.map(|_| key.clone()).into_iter().collect())
            }
        }
    }
}

/// Something that is not wanted.
pub(super) struct Candidate {
    pub(super) asset: String,
    pub(super) order: i64,
    pub(super) cause: Cause,
    pub(super) impact: Impact,
    pub(super) source: String,
    pub(super) stays: bool,
    pub(super) pool: Option<String>,
}

/// Objects that an asset makes or may make: whatever else is said of them, they do not go.
#[derive(Default)]
pub(super) struct SpokenFor {
    objects: BTreeSet<(String, String, String, String)>,
    /// Kinds of objects whose names are not known yet.
    kinds: BTreeSet<(String, String)>,
}

impl SpokenFor {
    /// Takes what became of an asset. What its user does not want speaks for nothing.
    pub(super) fn take(&mut self, outcome: &platform::Outcome) {
        match (&outcome.result, &outcome.key, &outcome.kind) {
            (platform::Result::Unwanted { .. }, _, _) => {}
            (_, Some(key), _) => {
                self.objects.insert(identity(key));
            }
            (platform::Result::Needs(_) | platform::Result::Error(_), None, Some(kind)) => {
                self.kinds.insert((kind.group.clone(), kind.kind.clone()));
            }
            _ => {}
        }
    }

    fn has(&self, key: &Key) -> bool {
        let identity = identity(key);
        self.kinds.contains(&(identity.0.clone(), identity.1.clone())) || self.objects.contains(&identity)
    }
}

/// An object is the same in every version of its kind.
fn identity(key: &Key) -> (String, String, String, String) {
    (key.kind.group.clone(), key.kind.kind.clone(), key.namespace.clone(), key.name.clone())
}

impl Leaving {
    /// Nothing has to go now.
    pub(super) fn expect_nothing(&mut self) {
        self.candidates.clear();
    }

    /// Takes that an object with our label was seen, of which nobody knew.
    pub(super) fn see(&mut self, key: &Key) {
        self.strays.insert(key.clone());
    }

    /// Takes that a place is not watched any more; one that has told everything need not be searched.
    pub(super) fn has_seen(&mut self, place: &Place, everything: bool) {
        if everything {
            self.searched.insert(place.clone());
        }
    }

    /// Takes that an object is gone.
    pub(super) fn miss(&mut self, key: &Key) {
        self.strays.remove(key);
    }
}

impl Engine {
    /// Takes what is not wanted, and searches where nobody has looked yet.
    pub(super) fn part_with(&mut self, mut unwanted: BTreeMap<Key, Candidate>, spoken_for: &SpokenFor) {
        let mut graves = Vec::new();
        for tombstone in &self.catalog.tombstones {
            let kind = Kind::new(&tombstone.api_version, &tombstone.kind);
            let Some(key) = self.grave(tombstone, kind) else { continue };
            let impact = Impact::implied_by(&key.kind.group, &key.kind.kind);
            let (asset, order, cause) = (tombstone.file.clone(), i64::MIN, Cause::Tombstone);
            if !self.items.contains_key(&key) {
                self.settings.metrics.tombstone(&key, 0);
            }
            graves.push(key.clone());
            let (source, stays, pool) = (String::new(), false, None);
            unwanted.entry(key).or_insert(Candidate { asset, order, cause, impact, source, stays, pool });
        }
        unwanted.retain(|key, _| !spoken_for.has(key));
        self.leaving.candidates = unwanted;
        for grave in graves {
            self.look_for(grave);
        }
        let rules = self.rules.as_ref();
        for (key, item) in self.items.iter_mut().filter(|(_, item)| item.parting == Some(Cause::Tombstone)) {
            item.frozen = self.is_frozen;
            item.excluded = rules.is_some_and(|rules| rules.excludes(key));
        }
        let unwanted = self.leaving.candidates.iter().filter(|(_, candidate)| candidate.cause != Cause::Tombstone);
        let places: BTreeSet<Place> = unwanted.map(|(key, _)| Place::of(key)).collect();
        for place in places {
            // What is watched tells by itself.
            if self.places.served(&place).is_none() {
                self.search(place);
            }
        }
        self.part_with_strays();
    }

    /// Where an object of a former release would be; nowhere, if its kind is not served.
    fn grave(&self, tombstone: &Tombstone, kind: Kind) -> Option<Key> {
        let served = self.kinds.find(&kind).filter(|_| !platform::is_never_kept(&kind))?;
        // Some name a namespace for what lives in none.
        let namespace = tombstone.namespace.clone().filter(|_| served.namespaced).unwrap_or_default();
        Some(Key { kind, namespace, name: tombstone.name.clone() })
    }

    fn search(&mut self, place: Place) {
        let Some(served) = self.kinds.find(&place.kind) else { return };
        if self.leaving.searched.insert(place.clone()) {
            self.start_search(served, Search::Label(place));
        }
    }

    /// Looks once whether an object of a former release is there, with or without our label.
    fn look_for(&mut self, key: Key) {
        let Some(served) = self.kinds.find(&key.kind) else { return };
        if self.leaving.candidates.contains_key(&key) && self.leaving.looked_for.insert(key.clone()) {
            self.start_search(served, Search::Name(key));
        }
    }

    /// Asks until the server answers, once the writes of a start are over.
    fn start_search(&mut self, served: Served, search: Search) {
        let (server, mut writes) = (self.server.clone(), self.writing.subscribe());
        self.leaving.searches.spawn(async move {
            let _ = tokio::time::timeout(PATIENCE, writes.wait_for(|writes| *writes == 0)).await;
            let mut wait = SEARCH_AGAIN.0;
            loop {
                match search.ask(&server, &served).await {
                    Ok(found) => return found,
                    // The kind went meanwhile.
                    Err(Failure::Answered { code: 404, .. }) => return Vec::new(),
                    Err(failure) => tracing::warn!("cannot look for what is left of {}: {failure}", served.kind().kind),
                }
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(SEARCH_AGAIN.1);
            }
        });
    }

    /// Takes what a search found.
    pub(super) fn take_search(&mut self, found: Vec<Key>) {
        self.leaving.strays.extend(found.into_iter().filter(|key| !self.items.contains_key(key)));
        self.part_with_strays();
    }

    /// Makes an item of everything that is there and not wanted.
    pub(super) fn part_with_strays(&mut self) {
        let found: Vec<Key> = self.leaving.strays.iter().filter(|key| self.is_to_go(key)).cloned().collect();
        for key in found {
            let Some(candidate) = self.leaving.candidates.get(&key) else { continue };
            let mut item = Item::new(Desired::of(&json!({})));
            (item.asset, item.order, item.parting) = (candidate.asset.clone(), candidate.order, Some(candidate.cause));
            (item.impact, item.stays, item.source) = (candidate.impact, candidate.stays, candidate.source.clone());
            item.restarts = platform::restarts(self.world.nodes(), candidate.pool.as_deref());
            item.frozen = self.is_frozen;
            item.excluded = self.rules.as_ref().is_some_and(|rules| rules.excludes(&key));
            self.items.insert(key.clone(), item);
            let place = Place::of(&key);
            match self.places.served(&place) {
                None => self.watch(&place),
                Some(_) if self.places.is_listed(&place) => self.read(key, Duration::ZERO),
                Some(_) => {}
            }
        }
    }

    fn is_to_go(&self, key: &Key) -> bool {
        self.leaving.candidates.contains_key(key) && !self.items.contains_key(key)
    }

    /// An object that was not wanted is none of ours any more.
    pub(super) fn forget(&mut self, key: &Key) {
        let Some(item) = self.items.remove(key) else { return };
        self.leaving.miss(key);
        self.settings.metrics.forget(key);
        if item.parting == Some(Cause::Tombstone) {
            self.settings.metrics.tombstone(key, 0);
        }
        if let Some(tell) = item.owed {
            self.say(key, &tell);
        }
        self.leave_unneeded();
    }
}
