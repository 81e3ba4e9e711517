//! The advisor as one state machine: events in, commands out. Each part does one thing; this file only connects them.

mod advertising;
mod comparing;
mod drafting;
mod holding;
mod managed;
mod observing;
mod reads;
mod settling;
mod statuses;
mod targets;
mod unwatched;
mod written;

use crate::notice::Notice;
use advertising::Advertising;
use catalog::rollout::Readings;
use catalog::{Catalog, Facts, Query};
use change::{Key, Kind, Moment, Now, PatchableKinds};
use managed::Managed;
use observe::{Discovery, Queries, Surroundings, Timers, Watches};
use protocol::{Command, Event, Never, WatchTarget};
use std::collections::{BTreeMap, BTreeSet};
use targets::Targets;

/// How the advisor is to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// The namespace of the HyperConverged.
    pub namespace: String,
    /// The version of the operator.
    pub version: String,
    /// Images by name, for templates.
    pub images: BTreeMap<String, String>,
    /// Whether metrics are served over TLS, for templates.
    pub secure_metrics: bool,
    /// Sensitive kinds that users may patch.
    pub patchable: PatchableKinds,
}

/// What happens without an event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Ask the server what it serves.
    Discover,
    /// Ask a query again.
    Query(Query),
    /// Read a pool's configuration again, if somebody still needs it.
    Read(Key),
    /// Reconcile a profile again.
    Reconcile(String),
    /// Try again what has failed for a profile.
    Retry(String),
    /// Users have paused an object of a profile until now.
    Resume(String),
    /// Read the status of an object of a profile again.
    Status(String),
    /// Publish the status of a profile that could not be published.
    Publish(String),
    /// Say which objects cannot be watched.
    Unwatched(WatchTarget),
    /// Read the state of advertising again.
    Advertise,
}

/// The state machine.
#[derive(Debug)]
pub struct Core {
    config: Config,
    catalog: Catalog,
    facts: Facts,
    /// Counts the changes of the facts.
    facts_version: u64,
    /// The HyperConverged, in the version that is served.
    hco: Key,
    /// Whether it is known whether there is one.
    is_hco_known: bool,
    discovery: Discovery,
    watches: Watches,
    surroundings: Surroundings,
    queries: Queries,
    readings: Readings,
    /// Reads of pools' configurations that are in flight, or have failed and are not due again yet.
    reading: BTreeSet<Key>,
    /// How often those that fail have failed in a row, and why the last time.
    failed_reads: BTreeMap<Key, (u32, String)>,
    /// The configurations that the plan which is being made waits for.
    unread: BTreeSet<Key>,
    targets: Targets,
    /// How many reads and dry runs of each object are on their way. Their answers name only the object, so that a comparison begins when there is
    /// none: it would take the answer to an earlier question for its own.
    asked: BTreeMap<Key, usize>,
    /// The `VirtPlatformConfig`s by name.
    profiles: BTreeMap<String, Managed>,
    /// The profiles to reconcile.
    due: BTreeSet<String>,
    advertising: Advertising,
    /// The watches that are lost, since when and why.
    lost: BTreeMap<WatchTarget, (Moment, String)>,
    timers: Timers<Timer>,
    now: Now,
    commands: Vec<Command<Notice>>,
}

/// The kind of what the advisor is asked with.
pub fn kind() -> Kind {
    Kind::new("advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig")
}

impl Core {
    /// A core that knows nothing yet.
    pub fn new(config: Config, catalog: Catalog, now: Now) -> Core {
        let mut timers = Timers::default();
        timers.set(Timer::Discover, now.monotonic);
        let mut discovery = Discovery::new(&catalog);
        discovery.is_sure_of(&kind());
        let hco_kind =
            Kind { group: api::hco::GROUP.into(), version: api::hco::VERSIONS[0].into(), kind: api::hco::KIND.into() };
        Core {
            facts: Facts { images: config.images.clone(), secure_metrics: config.secure_metrics, ..Facts::default() },
            facts_version: 0,
            hco: Key { kind: hco_kind, namespace: config.namespace.clone(), name: api::hco::NAME.into() },
            is_hco_known: false,
            discovery,
            watches: Watches::default(),
            surroundings: Surroundings::default(),
            queries: Queries::default(),
            readings: Readings::default(),
            reading: BTreeSet::new(),
            failed_reads: BTreeMap::new(),
            unread: BTreeSet::new(),
            targets: Targets::default(),
            asked: BTreeMap::new(),
            profiles: BTreeMap::new(),
            due: BTreeSet::new(),
            advertising: Advertising::default(),
            lost: BTreeMap::new(),
            timers,
            now,
            commands: Vec::new(),
            config,
            catalog,
        }
    }

    fn notify(&mut self, notice: Notice) {
        self.commands.push(Command::Notify(notice));
    }

    fn expire(&mut self, timer: Timer) {
        match timer {
            Timer::Discover => self.discover(),
            Timer::Query(query) => self.send_query(query),
            Timer::Read(key) => {
                self.reading.remove(&key);
                self.all_due();
            }
            Timer::Retry(name) => self.reconcile_again(name),
            Timer::Reconcile(name) | Timer::Resume(name) | Timer::Status(name) | Timer::Publish(name) => {
                self.due.insert(name);
            }
            Timer::Unwatched(_) => self.all_due(),
            Timer::Advertise => {
                self.read_advertised();
                self.advertise();
            }
        }
    }

    /// Something has changed that any profile may depend on.
    fn all_due(&mut self) {
        self.due.extend(self.profiles.keys().cloned());
    }

    fn facts_changed(&mut self) {
        self.facts_version += 1;
        self.all_due();
    }
}

impl protocol::Core for Core {
    type Notice = Notice;
    type Request = Never;
    type Answer = Never;

    fn handle(&mut self, events: Vec<Event>, now: Now) -> Vec<Command<Notice>> {
        self.now = now;
        for timer in self.timers.expired(now.monotonic) {
            self.expire(timer);
        }
        for event in events {
            match event {
                Event::Tick | Event::Refetched(..) | Event::Found(..) => {}
                Event::Watched(target, event) => self.watched(&target, event),
                Event::Discovered(answer) => self.discovered(answer),
                Event::Answered(query, answer) => self.answered(query, answer),
                Event::Inspected(key, found) => self.inspected(&key, &found),
                Event::Previewed(key, result) => self.previewed(&key, &result),
                Event::Written(key, result) => self.written(&key, result),
            }
        }
        if self.surroundings.update(&mut self.facts) {
            self.facts_changed();
        }
        // Reconciling one profile may make another one due, but only with news.
        while let Some(name) = self.due.pop_first() {
            self.reconcile(&name);
        }
        self.close_unneeded_watches();
        std::mem::take(&mut self.commands)
    }

    fn wake_at(&self) -> Option<Moment> {
        self.timers.next(|_| true)
    }

    fn backlog(&self) -> usize {
        self.profiles.values().filter(|managed| managed.is_writing()).count()
    }
}
