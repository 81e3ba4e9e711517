//! The loop: an event in, a decision, at most one write out; objects do not wait for each other.

use super::deletions::Deletions;
use super::discovery::{Discovery, definitions};
use super::item::{Item, Seen, User};
use super::leaving::Leaving;
use super::looks::Looks;
use super::missing::Missing;
use super::places::{Place, Places, Source};
use super::questions::Questions;
use super::readings::{Read, Readings};
use super::teller::Teller;
use super::waiting::discover;
use super::writing::Done;
use super::{journal, platform};
use crate::metrics::Metrics;
use anyhow::Context;
use autopilot::{Cause, Consent, Remembered, Tell, Verdict};
use catalog::{Catalog, ClusterState, Facts};
use change::{Key, Kind, Reason};
use cluster::watch::{Body, Content, Seen as Watched};
use cluster::{Kinds, Permit, Server};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch as watch_channel};
use tokio::task::JoinSet;

/// More writes at a time only make the server slower.
const WRITES_AT_A_TIME: usize = 8;
/// After a start writes wait this long for all lists, so that what comes first is written first; a list that hangs delays no more.
const WAIT_FOR_LISTS: Duration = Duration::from_millis(300);

/// At the end writes under way get this long.
const LAST_WRITES: Duration = Duration::from_secs(10);
/// What the server did not answer is asked again after this.
pub(super) const ASK_AGAIN: Duration = Duration::from_secs(10);

/// How the autopilot is to run.
pub(crate) struct Settings {
    pub(crate) namespace: String,
    pub(crate) opt_in: bool,
    /// Sensitive kinds that may be patched after all.
    pub(crate) openings: change::PatchableKinds,
    /// Whether what is not wanted any more is deleted.
    pub(crate) prune: bool,
    pub(crate) pod: String,
    pub(crate) permit: Permit,
    pub(crate) clock: fn() -> Timestamp,
    /// Images by name.
    pub(crate) images: BTreeMap<String, String>,
    pub(crate) metrics: Arc<Metrics>,
    /// Told what is missing before everything is kept.
    pub(crate) missing: watch_channel::Sender<Vec<String>>,
}

pub(super) struct Engine {
    pub(super) server: Server,
    pub(super) settings: Settings,
    pub(super) kinds: Kinds,
    pub(super) catalog: Catalog,
    pub(super) facts: Facts,
    pub(super) hco: Key,
    pub(super) hco_uid: String,
    /// When it was made, in milliseconds since 1970.
    pub(super) hco_created: Option<i64>,
    /// Whether it is unclear what is wanted as a whole.
    pub(super) is_frozen: bool,
    pub(super) consent: Consent,
    /// What was wanted as a whole when that was last clear.
    pub(super) rules: Option<platform::Rules>,
    pub(super) discovery: Discovery,
    /// All definitions were told once.
    pub(super) knows_definitions: bool,
    pub(super) world: ClusterState,
    pub(super) is_world_changed: bool,
    /// What has to be told before anything is rendered.
    pub(super) awaited: BTreeSet<Place>,
    pub(super) has_rendered: bool,
    /// Something has changed that assets depend on.
    pub(super) stale: bool,
    /// What was told to be missing.
    pub(super) missing: Missing,
    pub(super) items: BTreeMap<Key, Item>,
    pub(super) places: Places,
    pub(super) questions: Questions,
    pub(super) readings: Readings,
    pub(super) looks: Looks,
    pub(super) leaving: Leaving,
    pub(super) deletions: Deletions,
    /// What is to be looked at, what comes first first.
    pub(super) ready: BTreeSet<(i64, Key)>,
    pub(super) writes: JoinSet<Done>,
    pub(super) writing: watch_channel::Sender<usize>,
    pub(super) again: mpsc::UnboundedSender<Key>,
    pub(super) teller: Teller,
    pub(super) complaints: BTreeSet<String>,
    /// Whether it was said that everything is off.
    pub(super) is_off: bool,
}

/// Keeps the platform until `stop` resolves; a write that was begun is finished.
pub(crate) async fn run(
    server: Server,
    catalog: Catalog,
    settings: Settings,
    stop: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let mut stop = std::pin::pin!(stop);
    let (seen, mut sights) = mpsc::channel(256);
    let mut places = Places::new(server.clone(), seen);
    let begun = async {
        let kinds = discover(&server).await;
        places.watch(&kinds, &definitions(), Content::Names);
        kinds
    };
    let kinds = tokio::select! {
        kinds = begun => kinds,
        () = &mut stop => return Ok(()),
    };
    let (again, mut repeats) = mpsc::unbounded_channel();
    let (writing, written) = watch_channel::channel(0);
    let teller = Teller::new(server.client.clone(), settings.pod.clone(), written);
    let newest =
        Kind { group: api::hco::GROUP.into(), version: api::hco::VERSIONS[0].into(), kind: api::hco::KIND.into() };
    let hco = Key { kind: newest, namespace: settings.namespace.clone(), name: api::hco::NAME.into() };
    let facts = Facts { images: settings.images.clone(), ..Facts::default() };
    let mut engine = Engine {
        discovery: Discovery::new(&catalog),
        deletions: Deletions::none(&settings.namespace),
        server,
        settings,
        kinds,
        catalog,
        facts,
        hco,
        hco_uid: String::new(),
        hco_created: None,
        is_frozen: true,
        consent: Consent::default(),
        rules: None,
        knows_definitions: false,
        world: ClusterState::default(),
        is_world_changed: false,
        awaited: BTreeSet::new(),
        has_rendered: false,
        stale: false,
        missing: Missing::new(),
        items: BTreeMap::new(),
        places,
        questions: Questions::default(),
        readings: Readings::default(),
        looks: Looks::default(),
        leaving: Leaving::default(),
        ready: BTreeSet::new(),
        writes: JoinSet::new(),
        writing,
        again,
        teller,
        complaints: BTreeSet::new(),
        is_off: false,
    };
    engine.follow_kinds();
    let (server, namespace) = (engine.server.clone(), engine.settings.namespace.clone());
    tokio::select! {
        deletions = Deletions::read(&server, &engine.kinds, &namespace) => engine.deletions = deletions,
        () = &mut stop => return Ok(()),
    }
    let mut lists_in_time = std::pin::pin!(tokio::time::sleep(WAIT_FOR_LISTS));
    loop {
        tokio::select! {
            Some((source, seen)) = sights.recv() => {
                engine.take_from(&source, seen);
                // What has come meanwhile is taken at once: a hundred nodes are one change.
                while let Ok((source, seen)) = sights.try_recv() {
                    engine.take_from(&source, seen);
                }
            }
            Some(answer) = engine.discovery.next() => engine.take_groups(answer),
            Some(key) = repeats.recv() => engine.wake(&key),
            Some(Ok((query, answer))) = engine.questions.asking.join_next() => engine.learn(query, answer),
            Some(Ok(read)) = engine.readings.next() => engine.take_reading(read),
            Some(Ok(look)) = engine.looks.tasks.join_next() => engine.take_look(look),
            Some(Ok(found)) = engine.leaving.searches.join_next() => engine.take_search(found),
            () = &mut lists_in_time, if engine.places.any_silent() => engine.places.wait_no_longer(),
            // One that ended otherwise has left an object for ever under way: it is better to start anew.
            Some(done) = engine.writes.join_next() => engine.finish(done.context("a write ended unexpectedly")?),
            () = &mut stop => break,
        }
        engine.settle();
        engine.work();
    }
    let drain = async {
        while let Some(done) = engine.writes.join_next().await {
            if let Ok(done) = done {
                engine.finish(done);
            }
        }
    };
    // A pod that is to end is killed after a while, and its lease with it.
    let _ = tokio::time::timeout(LAST_WRITES, drain).await;
    engine.writing.send_replace(0);
    engine.teller.end().await;
    Ok(())
}

impl Engine {
    pub(super) fn watch(&mut self, place: &Place) {
        self.places.watch(&self.kinds, place, Content::Metadata);
        self.say_missing();
    }

    /// Takes what a watch saw, unless it has been ended.
    fn take_from(&mut self, source: &Source, seen: Watched) {
        if !self.places.is_current(source) {
            return;
        }
        let place = &source.0;
        self.take_world(place, &seen);
        let is_the_same = *place == definitions() && !self.take_definition(&seen);
        self.take(place, seen, is_the_same);
    }

    /// Takes what a watch saw.
    fn take(&mut self, place: &Place, seen: Watched, is_the_same: bool) {
        let now = (self.settings.clock)().as_millisecond();
        let key = |namespace: &str, name: &str| Key {
            kind: place.kind.clone(),
            namespace: namespace.into(),
            name: name.into(),
        };
        match seen {
            Watched::Present { namespace, name, live, body, .. } => {
                let key = key(&namespace, &name);
                if key == self.hco
                    && let Body::Whole(hco) = body
                {
                    if self.hco_uid != live.uid {
                        // Whoever made it anew did not take anything back.
                        self.items.values_mut().for_each(|item| item.was_wanted = false);
                    }
                    self.hco_uid.clone_from(&live.uid);
                    self.hco_created = live.created;
                    self.take_hco(hco);
                }
                if let Some(item) = self.items.get_mut(&key) {
                    item.see(live);
                    self.look_at(&key);
                } else if live.labelled {
                    self.leaving.see(&key);
                    self.part_with_strays();
                }
                if !is_the_same {
                    self.ask_again(place, &name);
                }
            }
            Watched::Gone { namespace, name, version } => {
                let key = key(&namespace, &name);
                if key == self.hco {
                    self.freeze();
                }
                self.leaving.miss(&key);
                if let Some(item) = self.items.get_mut(&key) {
                    item.miss(version.parse().ok(), now);
                    self.look_at(&key);
                }
                self.ask_again(place, &name);
            }
            Watched::Listed { all, version } => {
                self.places.listed(place);
                self.say_missing();
                if Place::of(&self.hco) == *place && !all.contains(&(self.hco.namespace.clone(), self.hco.name.clone()))
                {
                    self.freeze();
                }
                let mut unread = Vec::new();
                for (key, item) in self.items.iter_mut().filter(|(key, _)| Place::of(key) == *place) {
                    if !all.contains(&(key.namespace.clone(), key.name.clone())) {
                        item.miss(version.parse().ok(), now);
                        self.ready.insert((item.order, key.clone()));
                    } else if matches!(item.live, Seen::Unknown) {
                        // It was told before we wanted it.
                        unread.push(key.clone());
                    }
                }
                for key in unread {
                    self.read(key, Duration::ZERO);
                }
                for query in self.questions.about(place, None) {
                    self.send_question(query, Duration::ZERO);
                }
            }
            Watched::Lost { why, is_unserved } => {
                self.places.lost(place);
                self.say_missing();
                if is_unserved {
                    // What it said it serves is old: nobody tells of a definition that went before we came.
                    self.discovery.ask_soon(&self.server, &self.kinds);
                }
                tracing::warn!("cannot watch {} now: {why}", place.kind.kind);
            }
        }
    }

    /// Takes what was read of an object of which its watch tells nothing; a watch that was faster knows better.
    fn take_reading(&mut self, read: Read) {
        self.readings.end(&read.key);
        let now = (self.settings.clock)().as_millisecond();
        let Some(item) = self.items.get_mut(&read.key) else { return };
        if self.places.served(&Place::of(&read.key)).is_none() {
            return;
        }
        match read.found {
            Ok(live) => item.read(read.known, live, now),
            Err(_) => return self.read(read.key, ASK_AGAIN),
        }
        self.look_at(&read.key);
    }

    pub(super) fn read(&mut self, key: Key, wait: Duration) {
        let known = self.items.get(&key).and_then(Item::version);
        if let Some(served) = self.places.served(&Place::of(&key)) {
            self.readings.read(&self.server, served, key, known, wait);
        }
    }

    /// Without a HyperConverged nobody says what is wanted: nothing is created, and it is not for us to bring it back.
    pub(super) fn freeze(&mut self) {
        self.is_frozen = true;
        self.items.values_mut().for_each(|item| item.frozen = true);
        self.facts.hco = Value::Null;
    }

    /// Takes the HyperConverged, if it has changed in what anything can depend on.
    fn take_hco(&mut self, mut hco: Value) {
        if let Some(metadata) = hco.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !["managedFields", "resourceVersion", "generation"].contains(&key.as_str()));
        }
        if hco != self.facts.hco {
            self.facts.hco = hco;
            self.stale = true;
        }
    }

    /// A timer has ended.
    fn wake(&mut self, key: &Key) {
        if let Some(item) = self.items.get_mut(key) {
            item.again = item.again.filter(|again| *again > Instant::now());
        }
        self.look_at(key);
    }

    pub(super) fn look_at(&mut self, key: &Key) {
        if let Some(item) = self.items.get(key) {
            self.ready.insert((item.order, key.clone()));
        }
    }

    /// Decides about what is ready, as long as there is room for a write.
    fn work(&mut self) {
        while self.writes.len() < WRITES_AT_A_TIME && !self.places.any_silent() {
            let Some((_, key)) = self.ready.pop_first() else { break };
            self.decide(&key);
        }
        self.writing.send_if_modified(|count| std::mem::replace(count, self.writes.len() + self.ready.len()) != *count);
    }

    /// Decides about one object and starts the write, if there is one.
    fn decide(&mut self, key: &Key) {
        let now = (self.settings.clock)().as_millisecond();
        let Some(item) = self.items.get_mut(key) else { return };
        if item.busy {
            return;
        }
        let user = User {
            consent: &self.consent,
            openings: &self.settings.openings,
            prune: self.settings.prune,
            hco_created: self.hco_created,
        };
        let Some(decision) = item.decide(key, user, now) else { return };
        let (parting, is_gone) = (item.parting, item.is_gone());
        if let Some(wake) = decision.wake {
            let wait = Duration::from_millis(u64::try_from(wake.saturating_sub(now)).unwrap_or_default());
            self.look_later(key, wait);
        }
        let held = match &decision.verdict {
            Verdict::Hold(reason) => Some(reason),
            _ => decision.refused.as_ref(),
        };
        if let Some(reason) = held {
            match parting {
                None => self.settings.metrics.held(key, reason),
                Some(cause) => self.settings.metrics.kept_back(key, cause, reason),
            }
            let reason = reason.clone();
            self.say_held(key, reason);
        }
        match decision.verdict {
            Verdict::Hold(Reason::Unmanaged | Reason::Paused | Reason::PauseUnclear { .. } | Reason::Excluded) => {
                // What happens to it meanwhile is not for us to see.
                if let Some(item) = self.items.get_mut(key) {
                    item.remembered = None;
                }
            }
            Verdict::Hold(_) => {}
            Verdict::Look => self.look_into(key),
            Verdict::TakeOver { digest } => {
                if let Some(item) = self.items.get_mut(key)
                    && let Seen::Present(live) = &item.live
                {
                    let claim = live.managed_fields.claim(api::FIELD_MANAGER).unwrap_or_default();
                    let uid = live.uid.clone();
                    (item.remembered, item.inspected) = (Some(Remembered { digest, claim, uid, origin: None }), None);
                    tracing::info!(object = %key, "{key} was taken over as it is, without a write");
                }
                self.settings.metrics.kept(key);
            }
            Verdict::InSync if parting.is_some() => {
                if is_gone {
                    self.forget(key);
                } else if parting == Some(Cause::Tombstone) {
                    self.settings.metrics.tombstone(key, 1);
                }
            }
            Verdict::InSync => {
                if let Some(item) = self.items.get_mut(key) {
                    (item.failures, item.said) = (0, None);
                    item.refused.clear();
                }
                self.settings.metrics.kept(key);
            }
            Verdict::Do(effect) => self.start_write(key, effect, decision.tell),
        }
    }

    /// Looks at an object again after a while, if nothing makes us look before; one timer for each is enough.
    pub(super) fn look_later(&mut self, key: &Key, wait: Duration) {
        let Some(item) = self.items.get_mut(key) else { return };
        let moment = Instant::now() + wait;
        if item.again.is_some_and(|again| again <= moment) {
            return;
        }
        item.again = Some(moment);
        let (again, key) = (self.again.clone(), key.clone());
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let _ = again.send(key);
        });
    }

    /// Says why something is held, unless that was said last.
    pub(super) fn say_held(&mut self, key: &Key, reason: Reason) {
        let Some(item) = self.items.get_mut(key) else { return };
        if item.said.as_ref().is_some_and(|said| said.is_same(&reason)) {
            return;
        }
        item.said = Some(reason.clone());
        self.say(key, &Tell::Held(reason));
    }

    pub(super) fn say(&mut self, key: &Key, tell: &Tell) {
        if matches!(tell, Tell::Held(Reason::Fighting { .. })) {
            self.settings.metrics.fought(key);
        }
        self.tell_hco(journal::told(key, tell));
    }
}
