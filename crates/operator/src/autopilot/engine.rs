//! The loop: an event in, a decision, at most one write out; objects do not wait for each other.

use super::item::{Item, Seen};
use super::places::{Place, Places};
use super::questions::{Questions, place_of};
use super::readings::Readings;
use super::teller::Teller;
use super::{journal, platform};
use crate::metrics::Metrics;
use autopilot::{Consent, Effect, Refused, Remembered, Tell, Verdict};
use catalog::{Answer, Catalog, Facts, Hardware, Query, Topology};
use change::{Desired, Key, Kind, Live, Reason};
use cluster::act::{self, Act, Acted};
use cluster::request::Failure;
use cluster::watch::{Content, Seen as Watched};
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
/// A server that does not answer is asked again after this, and then less and less often.
const WAIT_FOR_SERVER: Duration = Duration::from_millis(100);
/// A cluster without our CRD is asked this often whether it has come.
const WAIT_FOR_CRD: Duration = Duration::from_secs(5);
/// After a start writes wait this long for all lists, so that what comes first is written first; a list that hangs delays no more.
const WAIT_FOR_LISTS: Duration = Duration::from_millis(300);

/// A failure that may pass is told when it has not after so many tries.
const TELL_AFTER: u32 = 4;
/// A question the server did not answer is asked again after this.
const ASK_AGAIN: Duration = Duration::from_secs(10);

/// How the autopilot is to run.
pub(crate) struct Settings {
    pub(crate) namespace: String,
    pub(crate) opt_in: bool,
    /// Sensitive kinds that may be patched after all.
    pub(crate) openings: change::Openings,
    pub(crate) pod: String,
    pub(crate) permit: Permit,
    pub(crate) clock: fn() -> Timestamp,
    pub(crate) metrics: Arc<Metrics>,
    /// Told what is missing before everything is kept.
    pub(crate) missing: watch_channel::Sender<Vec<String>>,
}

struct Engine {
    server: Server,
    settings: Settings,
    kinds: Kinds,
    catalog: Catalog,
    facts: Facts,
    hco: Key,
    hco_uid: String,
    consent: Consent,
    nodes: Vec<cluster::facts::Named>,
    items: BTreeMap<Key, Item>,
    places: Places,
    questions: Questions,
    readings: Readings,
    /// What is to be looked at, what comes first first.
    ready: BTreeSet<(i64, Key)>,
    writes: JoinSet<Done>,
    writing: watch_channel::Sender<usize>,
    again: mpsc::UnboundedSender<Key>,
    teller: Teller,
    complaints: BTreeSet<String>,
}

/// A write that has ended.
struct Done {
    key: Key,
    act: Act,
    effect: Kept,
    tell: Option<Tell>,
    outcome: Result<Acted, act::Error>,
}

/// What is to be remembered of a write that succeeded.
enum Kept {
    Applied { digest: change::Digest, budget: autopilot::Budget },
    Annotated { budget: autopilot::Budget },
    Nothing,
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
        let (kinds, kind) = find_hco(&server).await;
        let hco = Key { kind, namespace: settings.namespace.clone(), name: api::hco::NAME.into() };
        places.watch(&kinds, &Place::of(&hco), Content::Whole);
        let facts = look(&server, &kinds).await;
        (kinds, hco, facts)
    };
    let (kinds, hco, (hardware, topology, nodes)) = tokio::select! {
        begun = begun => begun,
        () = &mut stop => return Ok(()),
    };
    let (again, mut repeats) = mpsc::unbounded_channel();
    let (writing, written) = watch_channel::channel(0);
    let teller = Teller::new(server.client.clone(), settings.pod.clone(), written);
    let mut engine = Engine {
        server,
        settings,
        kinds,
        catalog,
        facts: Facts { hardware, topology, ..Facts::default() },
        hco,
        hco_uid: String::new(),
        consent: Consent::default(),
        nodes,
        items: BTreeMap::new(),
        places,
        questions: Questions::default(),
        readings: Readings::default(),
        ready: BTreeSet::new(),
        writes: JoinSet::new(),
        writing,
        again,
        teller,
        complaints: BTreeSet::new(),
    };
    let mut lists_in_time = std::pin::pin!(tokio::time::sleep(WAIT_FOR_LISTS));
    loop {
        tokio::select! {
            Some((place, seen)) = sights.recv() => engine.take(&place, seen),
            Some(key) = repeats.recv() => engine.look_at(&key),
            Some(Ok((query, answer))) = engine.questions.asking.join_next() => engine.learn(query, answer),
            Some(Ok((key, read))) = engine.readings.next() => engine.take_reading(key, read),
            () = &mut lists_in_time, if engine.places.any_silent() => engine.places.wait_no_longer(),
            Some(done) = engine.writes.join_next() => match done {
                Ok(done) => engine.finish(done),
                Err(error) => tracing::error!("a write ended unexpectedly: {error}"),
            },
            () = &mut stop => break,
        }
        engine.work();
    }
    while let Some(done) = engine.writes.join_next().await {
        if let Ok(done) = done {
            engine.finish(done);
        }
    }
    engine.writing.send_replace(0);
    engine.teller.end().await;
    Ok(())
}

/// Waits for the API server and for the HyperConverged's CRD; a cluster without it is not ready, and not wrong.
async fn find_hco(server: &Server) -> (Kinds, Kind) {
    let mut trouble = String::new();
    let mut wait = WAIT_FOR_SERVER;
    loop {
        let now = match Kinds::discover(server).await {
            Ok(kinds) => match kinds.newest(api::hco::GROUP, &api::hco::VERSIONS, api::hco::KIND) {
                Some((kind, _)) => return (kinds, kind),
                None => {
                    wait = WAIT_FOR_CRD;
                    "the API server does not serve HyperConverged yet; waiting until its operator is installed"
                        .to_owned()
                }
            },
            Err(error) => format!("could not ask the API server what it serves: {error}; trying again"),
        };
        complain_once(&mut trouble, now);
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_FOR_CRD);
    }
}

/// Waits until nodes and topology can be read.
async fn look(server: &Server, kinds: &Kinds) -> (Hardware, Topology, Vec<cluster::facts::Named>) {
    let mut trouble = String::new();
    let mut wait = WAIT_FOR_SERVER;
    loop {
        match cluster::facts::look(server, kinds).await {
            Ok(facts) => return facts,
            Err(error) => complain_once(&mut trouble, format!("could not read the nodes: {error}; trying again")),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_FOR_CRD);
    }
}

fn complain_once(before: &mut String, now: String) {
    if *before != now {
        tracing::warn!("{now}");
        *before = now;
    }
}

impl Engine {
    /// Renders everything anew, asks what templates want to know, and looks at every object.
    fn render(&mut self) {
        let wanted = platform::want(&self.catalog, &self.facts, self.settings.opt_in);
        self.consent = wanted.consent;
        let mut complaints: BTreeSet<String> = wanted.held.iter().cloned().collect();
        let (mut kept, mut places) = (BTreeSet::<Key>::new(), BTreeSet::<Place>::new());
        let mut asked = Vec::new();
        for outcome in wanted.outcomes {
            let (object, excluded) = match outcome.result {
                platform::Result::Included(object) => (object, false),
                platform::Result::Filtered(object) => (object, true),
                platform::Result::Excluded(_) => continue,
                result @ (platform::Result::Error(_) | platform::Result::Needs(_)) => {
                    match result {
                        platform::Result::Needs(queries) => asked.extend(queries),
                        platform::Result::Error(why) => {
                            complaints.insert(format!("asset {}: {why}", outcome.asset));
                        }
                        _ => {}
                    }
                    // What was known of it still holds.
                    let known = self.items.iter().filter(|(_, item)| item.asset == outcome.asset);
                    kept.extend(known.map(|(key, _)| key.clone()));
                    continue;
                }
            };
            let wanted = Desired::of(&object.object);
            let restarts = platform::restarts(&self.nodes, &object.object);
            let item = self.items.entry(object.key.clone()).or_insert_with(|| Item::new(wanted.clone()));
            if item.wanted != wanted {
                (item.wanted, item.failures, item.not_before) = (wanted, 0, None);
                item.refused.clear();
            }
            (item.asset, item.order) = (outcome.asset, outcome.order);
            (item.impact, item.excluded, item.restarts) = (object.impact, excluded, restarts);
            if matches!(item.live, Seen::Unknown) {
                let place = Place::of(&object.key);
                match self.places.served(&place) {
                    None => {
                        places.insert(place);
                    }
                    // What a watch has told before is not told again.
                    Some(served) if self.places.is_listed(&place) => {
                        self.readings.read(&self.server, served, object.key.clone(), Duration::ZERO);
                    }
                    Some(_) => {}
                }
            }
            kept.insert(object.key);
        }
        self.complain(complaints);
        let metrics = &self.settings.metrics;
        self.items.retain(|key, _| {
            kept.contains(key) || {
                metrics.forget(key);
                false
            }
        });
        for place in places {
            self.watch(&place);
        }
        for query in asked {
            self.ask(query);
        }
        self.ready.extend(self.items.iter().map(|(key, item)| (item.order, key.clone())));
    }

    fn watch(&mut self, place: &Place) {
        if !self.places.watch(&self.kinds, place, Content::Metadata) {
            tracing::warn!("the API server does not serve {} {}", place.kind.api_version(), place.kind.kind);
        }
        self.say_missing();
    }

    /// Says what is wrong with the platform as a whole, once.
    fn complain(&mut self, complaints: BTreeSet<String>) {
        for complaint in complaints.difference(&self.complaints) {
            let told = journal::complaint(complaint);
            self.teller.tell(&self.hco, &self.hco_uid, told, (self.settings.clock)());
        }
        self.complaints = complaints;
    }

    /// Takes a template's question: what it is about is watched first, so that no change is missed.
    fn ask(&mut self, query: Query) {
        if self.questions.are_too_many() {
            self.facts.answers.insert(query, Answer::Unknown);
            return;
        }
        if !self.questions.take(&query) {
            return;
        }
        let place = place_of(&query);
        if self.kinds.find(&place.kind).is_none() {
            self.learn(query, Answer::Absent);
        } else if self.places.is_listed(&place) {
            self.send_question(query, Duration::ZERO);
        } else if self.places.served(&place).is_none() {
            self.watch(&place);
        }
    }

    fn send_question(&mut self, query: Query, wait: Duration) {
        let (server, served) = (self.server.clone(), self.kinds.find(&place_of(&query).kind));
        self.questions.asking.spawn(async move {
            tokio::time::sleep(wait).await;
            let answer = match served {
                Some(served) => cluster::answer::answer(&server, &served, &query).await,
                None => Answer::Absent,
            };
            (query, answer)
        });
    }

    /// Takes an answer; what cannot be read now keeps what is known.
    fn learn(&mut self, query: Query, answer: Answer) {
        if answer == Answer::Unknown {
            self.send_question(query.clone(), ASK_AGAIN);
            if self.facts.answers.contains_key(&query) {
                return;
            }
        }
        if self.facts.answers.get(&query) != Some(&answer) {
            self.facts.answers.insert(query, answer);
            self.render();
        }
    }

    /// Takes what a watch saw.
    fn take(&mut self, place: &Place, seen: Watched) {
        let key = |namespace: &str, name: &str| Key {
            kind: place.kind.clone(),
            namespace: namespace.into(),
            name: name.into(),
        };
        match seen {
            Watched::Present { namespace, name, live, whole } => {
                let key = key(&namespace, &name);
                if key == self.hco
                    && let Some(hco) = whole
                {
                    self.hco_uid.clone_from(&live.uid);
                    self.take_hco(hco);
                }
                if let Some(item) = self.items.get_mut(&key) {
                    item.see(live);
                    self.look_at(&key);
                }
                self.ask_again(place, &name);
            }
            Watched::Gone { namespace, name } => {
                let key = key(&namespace, &name);
                if let Some(item) = self.items.get_mut(&key) {
                    item.miss();
                    self.look_at(&key);
                }
                self.ask_again(place, &name);
            }
            Watched::Listed { all } => {
                self.places.listed(place);
                self.say_missing();
                for (key, item) in self.items.iter_mut().filter(|(key, _)| Place::of(key) == *place) {
                    if !all.contains(&(key.namespace.clone(), key.name.clone())) {
                        item.miss();
                        self.ready.insert((item.order, key.clone()));
                    }
                }
                for query in self.questions.about(place, None) {
                    self.send_question(query, Duration::ZERO);
                }
            }
            Watched::Lost { why } => {
                self.places.lost(place);
                self.say_missing();
                tracing::warn!("cannot watch {} now: {why}", place.kind.kind);
            }
        }
    }

    /// Takes what was read of an object that came to a place which is watched already; a watch that was faster knows better.
    fn take_reading(&mut self, key: Key, read: Result<Option<Live>, Failure>) {
        let Some(item) = self.items.get_mut(&key).filter(|item| matches!(item.live, Seen::Unknown)) else { return };
        match read {
            Ok(Some(live)) => item.see(live),
            Ok(None) => item.miss(),
            Err(_) => {
                if let Some(served) = self.places.served(&Place::of(&key)) {
                    self.readings.read(&self.server, served, key, ASK_AGAIN);
                }
                return;
            }
        }
        self.look_at(&key);
    }

    /// Takes the HyperConverged, if it has changed in what anything can depend on.
    fn take_hco(&mut self, mut hco: Value) {
        if let Some(metadata) = hco.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.retain(|key, _| !["managedFields", "resourceVersion", "generation"].contains(&key.as_str()));
        }
        if hco != self.facts.hco {
            self.facts.hco = hco;
            self.render();
        }
    }

    /// What was asked about this object, or about all of its kind, is asked again.
    fn ask_again(&mut self, place: &Place, name: &str) {
        if self.places.is_listed(place) {
            for query in self.questions.about(place, Some(name)) {
                self.send_question(query, Duration::ZERO);
            }
        }
    }

    /// Readiness names the kinds of which nothing is known yet.
    fn say_missing(&self) {
        self.settings.missing.send_replace(self.places.missing());
    }

    fn look_at(&mut self, key: &Key) {
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
        let Some(decision) = item.decide(key, &self.consent, &self.settings.openings, now) else { return };
        if let Some(wake) = decision.wake
            && item.wake.replace(wake) != Some(wake)
        {
            let wait = Duration::from_millis(u64::try_from(wake.saturating_sub(now)).unwrap_or_default());
            look_later(&self.again, key.clone(), wait);
        }
        let held = match &decision.verdict {
            Verdict::Hold(reason) => Some(reason),
            _ => decision.refused.as_ref(),
        };
        if let Some(reason) = held {
            self.settings.metrics.held(key, reason);
            let reason = reason.clone();
            self.say_held(key, reason);
        }
        match decision.verdict {
            Verdict::Hold(_) => {}
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

    /// Says why something is held, unless that was said last.
    fn say_held(&mut self, key: &Key, reason: Reason) {
        let Some(item) = self.items.get_mut(key) else { return };
        if item.said.as_ref() == Some(&reason) {
            return;
        }
        item.said = Some(reason.clone());
        self.say(key, &Tell::Held(reason));
    }

    fn say(&mut self, key: &Key, tell: &Tell) {
        if matches!(tell, Tell::Held(Reason::Fighting { .. })) {
            self.settings.metrics.fought(key);
        }
        self.teller.tell(&self.hco, &self.hco_uid, journal::told(key, tell), (self.settings.clock)());
    }

    fn start_write(&mut self, key: &Key, effect: Effect, tell: Option<Tell>) {
        let Some(item) = self.items.get_mut(key) else { return };
        // After a failure the same is not tried again at once, whatever happens; something else is.
        let is_something_else = |effect: &Effect| match (effect, &item.failed) {
            (Effect::Apply { digest, .. }, Some(failed)) => digest != failed,
            _ => false,
        };
        if item.not_before.is_some_and(|moment| Instant::now() < moment) && !is_something_else(&effect) {
            return;
        }
        let (act, kept) = match effect {
            Effect::Apply { object, digest, budget } => {
                (Act::Apply { object, resource_version: item.version() }, Kept::Applied { digest, budget })
            }
            Effect::Release { patch } => (Act::Patch(patch), Kept::Nothing),
            Effect::Annotate { annotations, resource_version, budget } => {
                (Act::Annotate { annotations, resource_version }, Kept::Annotated { budget })
            }
        };
        self.send(key, act, kept, tell);
    }

    fn send(&mut self, key: &Key, act: Act, effect: Kept, tell: Option<Tell>) {
        let (Some(item), Some(served)) = (self.items.get_mut(key), self.places.served(&Place::of(key))) else { return };
        item.busy = true;
        let (server, permit, key, tries) =
            (self.server.clone(), self.settings.permit.clone(), key.clone(), item.failures);
        self.writes.spawn(async move {
            let outcome = act::act(&server, &permit, &served, &key, &act, tries).await;
            Done { key, act, effect, tell, outcome }
        });
    }

    /// Takes the answer to a write, says what was done, and looks again.
    fn finish(&mut self, done: Done) {
        let Done { key, act, effect, mut tell, outcome } = done;
        let Some(item) = self.items.get_mut(&key) else { return };
        item.busy = false;
        match outcome {
            Ok(acted) => {
                (item.not_before, item.failed) = (None, None);
                match effect {
                    Kept::Applied { digest, budget } => {
                        (item.failures, item.repaired, item.budget) = (0, false, Some(budget));
                        // What was begun and had to be repaired first is told as what it was.
                        tell = item.owed.take().or(tell);
                        let claim = acted.live.managed_fields.claim(api::FIELD_MANAGER).unwrap_or_default();
                        item.remembered = Some(Remembered { digest, claim, uid: acted.live.uid.clone() });
                    }
                    Kept::Annotated { budget } => item.budget = Some(budget),
                    Kept::Nothing => {}
                }
                item.see(acted.live);
                match tell {
                    Some(Tell::Held(reason)) => self.say_held(&key, reason),
                    Some(tell) => self.say(&key, &tell),
                    None => {}
                }
                self.look_at(&key);
            }
            Err(act::Error::KeyChanged { .. }) if !item.repaired => {
                (item.repaired, item.owed) = (true, tell);
                if let Act::Apply { object, .. } = act {
                    self.send(&key, Act::Repair(object), Kept::Nothing, None);
                }
            }
            Err(error) => self.fail(&key, effect, error),
        }
    }

    /// Waits before the same is tried again; what the server refused is told.
    fn fail(&mut self, key: &Key, effect: Kept, error: act::Error) {
        let Some(item) = self.items.get_mut(key) else { return };
        let refused = matches!(error, act::Error::Refused { .. } | act::Error::KeyChanged { .. });
        // What is wrong with the object itself, and not with who writes it.
        let is_wrong =
            matches!(error, act::Error::Refused { code: 400 | 413 | 422, .. } | act::Error::KeyChanged { .. });
        let wait = item.wait(refused);
        item.failed = match effect {
            Kept::Applied { digest, .. } => Some(digest),
            Kept::Annotated { .. } | Kept::Nothing => None,
        };
        if !matches!(error, act::Error::Stale(_)) {
            item.not_before = Some(Instant::now() + wait);
        }
        look_later(&self.again, key.clone(), wait);
        tracing::debug!(asset = item.asset, "{error}; the next try is in {} ms", wait.as_millis());
        let words = match error {
            act::Error::Refused { words, .. } | act::Error::KeyChanged { words, .. } => words,
            // It may pass; if it does not, somebody should know.
            act::Error::Passing { words, .. } if item.failures == TELL_AFTER => words,
            act::Error::Passing { .. } | act::Error::Stale(_) => return,
        };
        if let (Some(digest), true) = (&item.failed, is_wrong) {
            item.refuse(Refused { digest: digest.clone(), words: words.clone() });
        }
        self.settings.metrics.failed(key);
        // With the user's wishes left out it may be accepted; if not, the next decision waits.
        self.look_at(key);
        self.say_held(key, Reason::RefusedByServer { words });
    }
}

/// Looks at an object again after a while.
fn look_later(again: &mpsc::UnboundedSender<Key>, key: Key, wait: Duration) {
    let again = again.clone();
    tokio::spawn(async move {
        tokio::time::sleep(wait).await;
        let _ = again.send(key);
    });
}
