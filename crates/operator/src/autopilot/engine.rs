//! The loop: an event in, a decision, at most one write out; objects do not wait for each other.

use super::item::{Item, Seen};
use super::{journal, platform};
use crate::metrics::Metrics;
use autopilot::{Consent, Effect, Remembered, Tell, Verdict};
use catalog::{Catalog, Facts};
use change::{Digest, Key, Kind, Reason};
use cluster::act::{self, Act, Acted};
use cluster::kinds::Served;
use cluster::watch::{self, Seen as Watched};
use cluster::{Kinds, Permit};
use jiff::Timestamp;
use kube::Client;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, watch as watch_channel};
use tokio::task::{AbortHandle, JoinSet};

/// More writes at a time only make the server slower.
const WRITES_AT_A_TIME: usize = 8;
/// A cluster without our CRD is asked this often whether it has come.
const WAIT_FOR_CRD: Duration = Duration::from_secs(5);

/// How the autopilot is to run.
pub(crate) struct Settings {
    pub(crate) namespace: String,
    pub(crate) opt_in: bool,
    pub(crate) pod: String,
    pub(crate) metrics: Arc<Metrics>,
    /// Told what is missing before everything is kept.
    pub(crate) missing: watch_channel::Sender<Vec<String>>,
}

/// One watch: a kind, in a namespace or cluster-wide.
type Place = (Kind, String);

struct Engine {
    client: Client,
    permit: Arc<Permit>,
    settings: Settings,
    kinds: Kinds,
    catalog: Catalog,
    facts: Facts,
    hco: Key,
    hco_uid: String,
    consent: Consent,
    nodes: Vec<cluster::facts::Named>,
    items: BTreeMap<Key, Item>,
    served: BTreeMap<Place, Served>,
    watches: JoinSet<()>,
    /// Each ends one watch.
    watching: BTreeMap<Place, AbortHandle>,
    /// Those that have not told everything yet.
    unlisted: BTreeSet<Place>,
    writes: JoinSet<Done>,
    slots: Arc<Semaphore>,
    seen: mpsc::Sender<(Place, Watched)>,
    again: mpsc::UnboundedSender<Key>,
    complaints: BTreeSet<String>,
}

/// A write that has ended.
struct Done {
    key: Key,
    digest: Option<Digest>,
    tell: Option<Tell>,
    outcome: Result<Acted, act::Error>,
}

/// Keeps the platform until this future is dropped.
pub(crate) async fn run(client: Client, catalog: Catalog, settings: Settings) -> anyhow::Result<()> {
    let (kinds, hco_kind) = find_hco(&client).await?;
    let (hardware, topology, nodes) = cluster::facts::look(&client, &kinds).await?;
    let (seen, mut sights) = mpsc::channel(256);
    let (again, mut repeats) = mpsc::unbounded_channel();
    let hco = Key { kind: hco_kind, namespace: settings.namespace.clone(), name: api::hco::NAME.into() };
    let mut engine = Engine {
        client,
        permit: Arc::new(Permit::unopposed()),
        settings,
        kinds,
        catalog,
        facts: Facts { hardware, topology, ..Facts::default() },
        hco: hco.clone(),
        hco_uid: String::new(),
        consent: Consent::default(),
        nodes,
        items: BTreeMap::new(),
        served: BTreeMap::new(),
        watches: JoinSet::new(),
        watching: BTreeMap::new(),
        unlisted: BTreeSet::new(),
        writes: JoinSet::new(),
        slots: Arc::new(Semaphore::new(WRITES_AT_A_TIME)),
        seen,
        again,
        complaints: BTreeSet::new(),
    };
    engine.watch(&hco.kind, &hco.namespace);
    let mut last_hco: Option<(i64, BTreeMap<String, String>)> = None;
    loop {
        tokio::select! {
            Some((place, seen)) = sights.recv() => {
                if let Watched::Present { namespace, name, live } = &seen
                    && place.0 == hco.kind && *namespace == hco.namespace && *name == hco.name
                {
                    engine.hco_uid.clone_from(&live.uid);
                    let look = (live.generation, live.annotations.clone());
                    if last_hco.as_ref() != Some(&look) {
                        last_hco = Some(look);
                        engine.read_platform().await;
                    }
                }
                engine.take(&place, seen);
            }
            Some(key) = repeats.recv() => engine.work(&key),
            Some(done) = engine.writes.join_next() => match done {
                Ok(done) => engine.finish(done),
                Err(error) => tracing::error!("a write ended unexpectedly: {error}"),
            },
        }
    }
}

/// Waits for the HyperConverged's CRD; a cluster without it is not ready, and not wrong.
async fn find_hco(client: &Client) -> anyhow::Result<(Kinds, Kind)> {
    let mut said = false;
    loop {
        let kinds = Kinds::discover(client).await?;
        if let Some((kind, _)) = kinds.newest(api::hco::GROUP, &api::hco::VERSIONS, api::hco::KIND) {
            return Ok((kinds, kind));
        }
        if !said {
            tracing::warn!("the API server does not serve HyperConverged yet; waiting until its operator is installed");
            said = true;
        }
        tokio::time::sleep(WAIT_FOR_CRD).await;
    }
}

impl Engine {
    /// Reads the HyperConverged, renders everything anew and looks at every object whose wish has changed.
    async fn read_platform(&mut self) {
        let Some(served) = self.kinds.find(&self.hco.kind) else { return };
        match served.api(&self.client, &self.hco.namespace).get_opt(&self.hco.name).await {
            Ok(Some(object)) => self.facts.hco = serde_json::to_value(object).unwrap_or_default(),
            Ok(None) => return,
            Err(error) => {
                tracing::warn!("could not read {}: {error}; what was known of it still holds", self.hco);
                return;
            }
        }
        self.facts.answers.clear();
        let source = platform::Source { client: &self.client, kinds: &self.kinds };
        let wanted = platform::want(Some(&source), &self.catalog, &mut self.facts, self.settings.opt_in).await;
        self.consent = wanted.consent;
        let mut complaints: BTreeSet<String> = wanted.held.iter().cloned().collect();
        let (mut kept, mut places) = (BTreeSet::<Key>::new(), BTreeSet::<Place>::new());
        for outcome in wanted.outcomes {
            let (object, excluded) = match outcome.result {
                platform::Result::Included(object) => (object, false),
                platform::Result::Filtered(object) => (object, true),
                platform::Result::Excluded(_) => continue,
                platform::Result::Error(why) => {
                    complaints.insert(format!("asset {}: {why}", outcome.asset));
                    // What was known of it still holds.
                    let known = self.items.iter().filter(|(_, item)| item.asset == outcome.asset);
                    kept.extend(known.map(|(key, _)| key.clone()));
                    continue;
                }
            };
            let restarts = platform::restarts(&self.nodes, &object.object);
            let item = self.items.entry(object.key.clone()).or_insert_with(Item::new);
            (item.asset, item.order, item.wanted) = (outcome.asset, outcome.order, object.object);
            (item.impact, item.excluded, item.restarts) = (object.impact, excluded, restarts);
            let is_new = matches!(item.live, Seen::Unknown);
            let place: Place = (object.key.kind.clone(), object.key.namespace.clone());
            kept.insert(object.key);
            if is_new {
                places.insert(place);
            }
        }
        for complaint in complaints.difference(&self.complaints) {
            tracing::warn!("{complaint}");
        }
        self.complaints = complaints;
        let metrics = &self.settings.metrics;
        self.items.retain(|key, _| {
            kept.contains(key) || {
                metrics.forget(key);
                false
            }
        });
        // A watch that has told everything does not tell it again: where a new object lives, a new one is begun.
        for (kind, namespace) in places {
            self.watch(&kind, &namespace);
        }
        let mut order: Vec<(i64, Key)> = self.items.iter().map(|(key, item)| (item.order, key.clone())).collect();
        order.sort();
        for (_, key) in order {
            self.work(&key);
        }
    }

    /// Starts a watch of a kind where one of our objects lives, in place of an earlier one.
    fn watch(&mut self, kind: &Kind, namespace: &str) {
        let place: Place = (kind.clone(), namespace.to_owned());
        let Some(served) = self.kinds.find(kind) else {
            tracing::warn!("the API server does not serve {} {}", kind.api_version(), kind.kind);
            return;
        };
        self.served.insert(place.clone(), served.clone());
        let (tell, mut told) = mpsc::channel(64);
        let (seen, here) = (self.seen.clone(), place.clone());
        let watch = self.watches.spawn(watch::watch(self.client.clone(), served, namespace.to_owned(), tell));
        self.unlisted.insert(place.clone());
        self.say_missing();
        if let Some(earlier) = self.watching.insert(place, watch) {
            earlier.abort();
        }
        self.watches.spawn(async move {
            while let Some(sight) = told.recv().await {
                if seen.send((here.clone(), sight)).await.is_err() {
                    return;
                }
            }
        });
        while self.watches.try_join_next().is_some() {}
    }

    /// Takes what a watch saw.
    fn take(&mut self, place: &Place, seen: Watched) {
        let key = |namespace: String, name: String| Key { kind: place.0.clone(), namespace, name };
        match seen {
            Watched::Present { namespace, name, live } => {
                let key = key(namespace, name);
                if let Some(item) = self.items.get_mut(&key) {
                    item.see(live);
                    self.work(&key);
                }
            }
            Watched::Gone { namespace, name } => {
                let key = key(namespace, name);
                if let Some(item) = self.items.get_mut(&key) {
                    item.live = Seen::Absent;
                    item.remembered = None;
                    self.work(&key);
                }
            }
            Watched::Listed { all } => {
                self.unlisted.remove(place);
                self.say_missing();
                let here: Vec<Key> =
                    self.items.keys().filter(|key| key.kind == place.0 && key.namespace == place.1).cloned().collect();
                for key in here {
                    let absent = !all.contains(&(key.namespace.clone(), key.name.clone()));
                    if absent && let Some(item) = self.items.get_mut(&key) {
                        item.live = Seen::Absent;
                        self.work(&key);
                    }
                }
            }
            Watched::Lost { why } => {
                self.unlisted.insert(place.clone());
                self.say_missing();
                tracing::warn!("cannot watch {} now: {why}", place.0.kind);
            }
        }
    }

    /// Readiness names the kinds of which nothing is known yet.
    fn say_missing(&self) {
        let kinds = self.unlisted.iter().map(|(kind, _)| kind.kind.clone());
        self.settings.missing.send_replace(kinds.collect());
    }

    /// Decides about one object and starts the write, if there is one.
    fn work(&mut self, key: &Key) {
        let now = Timestamp::now().as_millisecond();
        let Some(item) = self.items.get_mut(key) else { return };
        if item.busy {
            return;
        }
        let Some(decision) = item.decide(key, &self.consent, now) else { return };
        match decision.verdict {
            Verdict::InSync => {
                item.failures = 0;
                item.said = item.said.take().filter(|said| !matches!(said, Tell::Held(_)));
                self.settings.metrics.kept(key);
            }
            Verdict::Hold(reason) => {
                self.settings.metrics.held(key, &reason);
                self.say(key, decision.tell);
            }
            Verdict::Do(effect) => {
                item.busy = true;
                let known = match &item.live {
                    Seen::Present(live) => Some(live.resource_version.clone()),
                    _ => None,
                };
                // What was begun and had to be repaired first is told as what it was.
                let tell = item.owed.take().or(decision.tell);
                let (act, digest) = match effect {
                    Effect::Apply { object, digest } => (Act::Apply { object, resource_version: known }, Some(digest)),
                    Effect::Release { patch } => (Act::Patch(patch), None),
                    Effect::Annotate { annotations, resource_version } => {
                        (Act::Annotate { annotations, resource_version }, None)
                    }
                };
                self.start_write(key, act, digest, tell);
            }
        }
    }

    /// Says something, unless it was the last thing said.
    fn say(&mut self, key: &Key, tell: Option<Tell>) {
        let (Some(tell), Some(item)) = (tell, self.items.get_mut(key)) else { return };
        if !journal::is_news(&tell, item.said.as_ref()) {
            return;
        }
        let told = journal::told(key, &tell);
        if matches!(tell, Tell::Held(Reason::Fighting { .. })) {
            self.settings.metrics.fought(key);
        }
        item.said = Some(tell);
        let (client, hco) = (self.client.clone(), self.hco.clone());
        let (uid, pod) = (self.hco_uid.clone(), self.settings.pod.clone());
        tokio::spawn(async move {
            if let Err(error) = cluster::event::tell(&client, &hco, &uid, &pod, &told, Timestamp::now()).await {
                tracing::warn!("an event was lost: {error}");
            }
        });
    }

    fn start_write(&mut self, key: &Key, act: Act, digest: Option<Digest>, tell: Option<Tell>) {
        let Some(served) = self.served.get(&(key.kind.clone(), key.namespace.clone())).cloned() else { return };
        let (client, permit, slots, key) = (self.client.clone(), self.permit.clone(), self.slots.clone(), key.clone());
        self.writes.spawn(async move {
            let _slot = slots.acquire().await;
            let outcome = act::act(&client, &permit, &served, &key, &act).await;
            Done { key, digest, tell, outcome }
        });
    }

    /// Takes the answer to a write, says what was done, and looks again.
    fn finish(&mut self, done: Done) {
        let Some(item) = self.items.get_mut(&done.key) else { return };
        item.busy = false;
        match done.outcome {
            Ok(acted) => {
                if let Some(digest) = done.digest {
                    item.failures = 0;
                    let uid = acted.live.uid.clone();
                    item.remembered = Some(Remembered { digest, fields: acted.fields, time: acted.time, uid });
                }
                item.see(acted.live);
                self.say(&done.key, done.tell);
                self.work(&done.key);
            }
            // Once: if that does not help, it is a refusal like any other.
            Err(act::Error::KeyChanged { .. }) if item.failures == 0 => {
                item.failures = 1;
                item.busy = true;
                item.owed = done.tell;
                let wanted = item.wanted.clone();
                self.start_write(&done.key, Act::Repair(wanted), None, None);
            }
            Err(error) => {
                let refused = matches!(error, act::Error::Refused { .. } | act::Error::KeyChanged { .. });
                let wait = item.wait(refused);
                if refused {
                    self.settings.metrics.failed(&done.key);
                    tracing::warn!(asset = item.asset, "{error}; the next try is in {} s", wait.as_secs());
                } else {
                    tracing::debug!(asset = item.asset, "{error}; the next try is in {} ms", wait.as_millis());
                }
                let again = self.again.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(wait).await;
                    let _ = again.send(done.key);
                });
            }
        }
    }
}
