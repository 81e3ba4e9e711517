//! The fleet as one state machine: events in, commands out. Each part does one thing; this file only connects them.

mod answers;
mod asking;
mod claims;
mod clusters;
mod entry;
mod facts;
mod forges;
mod ground;
mod guests;
mod holding;
mod jobs;
mod loads;
mod looking;
mod node_slots;
mod observing;
mod packing;
mod pools;
mod publishing;
mod room;
mod scale_sets;
mod seeds;
mod slots;
mod survey;
mod templates;
mod times;
mod turns;
mod versions;
mod webhooks;
mod written;

use crate::notice::Notice;
use crate::object::Name;
use crate::outside::{Answer, Request};
use crate::{forge, hypervisor};
use asking::Asked;
use change::{Moment, Now};
use claims::Managed;
use clusters::Hypervisor;
use observe::{Discovery, Timers, Watches};
use packing::Texts;
use pools::ManagedPool;
use protocol::{Command, Event};
use slots::Slots;
use std::collections::{BTreeMap, BTreeSet};
use templates::ManagedTemplate;

/// How the fleet is to run.
#[derive(Debug, Clone)]
pub struct Config {
    /// Which installation this is: it is in the record of every machine, and never changes. The uid of the namespace of the operator.
    pub operator: String,
    /// How much is done at a time.
    pub concurrency: Concurrency,
}

/// How much is done at a time. More would only wait in memory.
#[derive(Debug, Clone, Copy)]
pub struct Concurrency {
    /// Claims that are written.
    pub writes: usize,
    /// Machines of one hypervisor that are configured, started or destroyed.
    pub operations: usize,
}

impl Default for Concurrency {
    fn default() -> Concurrency {
        Concurrency { writes: 64, operations: 64 }
    }
}

/// One object that has to be reconciled, in the order in which that is done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Cluster(Name),
    Template(Name),
    Claim(Name),
    Pool(Name),
    /// All jobs and runners: after everything that they depend on.
    Jobs,
}

/// What happens without an event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Ask the server what it serves.
    Discover,
    /// Reconcile an object.
    Reconcile(Due),
    /// Ask a hypervisor what it is and what the credentials allow.
    Check(Name),
    /// List its machines.
    List(Name),
    /// Look up a template.
    LookUp(Name),
    /// Look for images that no machine needs.
    Seeds(Name),
    /// Log in to the CI platform of a pool.
    Forge(Name),
    /// Ask that platform which versions of its runner it offers.
    Versions(Name),
}

/// The state machine.
#[derive(Debug)]
pub struct Core {
    config: Config,
    discovery: Discovery,
    watches: Watches,
    clusters: BTreeMap<Name, Hypervisor>,
    templates: BTreeMap<Name, ManagedTemplate>,
    pools: BTreeMap<Name, ManagedPool>,
    claims: BTreeMap<Name, Box<Managed>>,
    /// The names of claims by their uids.
    uids: BTreeMap<String, Name>,
    /// The uids of claims that cannot be read: their machines are theirs all the same.
    unreadable: BTreeMap<Name, String>,
    /// The claims of every pool, whether it exists or not.
    of_pool: BTreeMap<Name, BTreeSet<Name>>,
    /// The claims of every template, whether it exists or not.
    of_template: BTreeMap<Name, BTreeSet<Name>>,
    /// Jobs, runners and the CI platforms that they come from.
    ci: jobs::Ci,
    /// What the conditions of claims say that nothing is decided about.
    texts: Texts,
    /// What was asked of hypervisors, by number.
    asked: BTreeMap<u64, Asked>,
    last_number: u64,
    due: BTreeSet<Due>,
    /// Claims that are being written.
    slots: Slots,
    timers: Timers<Timer>,
    started: Moment,
    /// Whether every kind of the fleet was listed once.
    is_informed: bool,
    now: Now,
    commands: Vec<Command<Notice, Request>>,
}

/// What a hypervisor answers.
pub type HypervisorAnswer = Result<hypervisor::Answer, hypervisor::Failure>;

/// What a CI platform answers.
pub type ForgeAnswer = Result<forge::Answer, forge::Failure>;

impl Core {
    /// A core that knows nothing yet.
    pub fn new(config: Config, now: Now) -> Core {
        let mut timers = Timers::default();
        timers.set(Timer::Discover, now.monotonic);
        Core {
            slots: Slots::new(config.concurrency.writes),
            config,
            discovery: Discovery::of_groups([api::fleet::GROUP]),
            watches: Watches::default(),
            clusters: BTreeMap::new(),
            templates: BTreeMap::new(),
            pools: BTreeMap::new(),
            claims: BTreeMap::new(),
            uids: BTreeMap::new(),
            unreadable: BTreeMap::new(),
            of_pool: BTreeMap::new(),
            of_template: BTreeMap::new(),
            ci: jobs::Ci::default(),
            texts: Texts::default(),
            asked: BTreeMap::new(),
            last_number: 0,
            due: BTreeSet::new(),
            timers,
            started: now.monotonic,
            is_informed: false,
            now,
            commands: Vec::new(),
        }
    }

    fn notify(&mut self, notice: Notice) {
        self.commands.push(Command::Notify(notice));
    }

    fn expire(&mut self, timer: Timer) {
        match timer {
            Timer::Discover => self.discover(),
            Timer::Reconcile(due) => {
                self.due.insert(due);
            }
            Timer::Check(name) => self.check(&name),
            Timer::List(name) => self.list(&name),
            Timer::LookUp(name) => self.look_up(&name),
            Timer::Seeds(name) => self.list_seeds(&name),
            Timer::Forge(pool) => self.check_forge(&pool),
            Timer::Versions(pool) => self.list_versions(&pool),
        }
    }

    fn reconcile(&mut self, due: Due) {
        match due {
            Due::Cluster(name) => self.reconcile_cluster(&name),
            Due::Template(name) => self.reconcile_template(&name),
            Due::Claim(name) => self.reconcile_claim(&name),
            Due::Pool(name) => self.reconcile_pool(&name),
            Due::Jobs => self.reconcile_jobs(),
        }
    }

    /// Makes those due who waited for what is free now.
    fn use_free_slots(&mut self) {
        self.due.extend(self.slots.next());
        for hypervisor in self.clusters.values_mut() {
            self.due.extend(hypervisor.slots.next());
            self.due.extend(hypervisor.next_clones());
        }
    }

    fn wake(&mut self, due: Due, at: Moment) {
        self.timers.set(Timer::Reconcile(due), at);
    }

    /// Everything about a claim that others depend on has changed.
    fn claim_changed(&mut self, name: &Name) {
        let Some(managed) = self.claims.get(name) else { return };
        let claim = &managed.entry.object;
        let pool = claim.spec.runner_pool_ref.as_ref().map(|pool| name.beside(None, &pool.name));
        if let Some(pool) = pool.filter(|pool| self.pools.contains_key(pool)) {
            self.due.insert(Due::Pool(pool));
        }
        if managed.runner.is_some() {
            self.due.insert(Due::Jobs);
        }
        self.due.insert(Due::Claim(name.clone()));
    }
}

impl protocol::Core for Core {
    type Notice = Notice;
    type Request = Request;
    type Answer = Answer;

    fn handle(&mut self, events: Vec<Event<Answer>>, now: Now) -> Vec<Command<Notice, Request>> {
        self.now = now;
        for timer in self.timers.expired(now.monotonic) {
            self.expire(timer);
        }
        for event in events {
            match event {
                Event::Watched(target, event) => self.watched(&target, event),
                Event::Discovered(answer) => self.discovered(answer),
                Event::Written(key, result) => self.written(&key, &result),
                Event::Elsewhere(number, Answer::Hypervisor(answer)) => self.answered(number, answer),
                Event::Elsewhere(number, Answer::Forge(answer)) => self.forge_answered(number, answer),
                Event::Elsewhere(number, Answer::Border(reply)) => self.border_answered(number, reply),
                Event::Tick
                | Event::Answered(..)
                | Event::Refetched(..)
                | Event::Inspected(..)
                | Event::Found(..)
                | Event::Previewed(..) => {}
            }
        }
        // Before every kind was listed once, nothing is absent.
        if self.is_informed {
            self.open_border();
            // Reconciling one object may make another one due, but only with news.
            loop {
                while let Some(due) = self.due.pop_first() {
                    self.reconcile(due);
                }
                self.use_free_slots();
                if self.due.is_empty() {
                    break;
                }
            }
        }
        std::mem::take(&mut self.commands)
    }

    fn wake_at(&self) -> Option<Moment> {
        self.timers.next(|_| true)
    }

    fn backlog(&self) -> usize {
        // Kubernetes events wait only for writes to the API server: an operation on a hypervisor may take minutes.
        self.slots.in_use()
    }
}
