//! Estimates what a change does to nodes, from pools and rendered configurations that are read right before.

use super::Core;
use super::managed::Managed;
use super::timers::Timer;
use crate::notice::State;
use catalog::Part;
use catalog::rollout::{Change, Configuration, Contents, Contribution, Estimate, PoolEstimate, Readings, Unread};
use change::{Backoff, Impact, Key, Kind, Moment, Reason, Restarts};
use protocol::{Command, WatchTarget};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a pool runs and how it is holds for so long after it was read: the machine-config operator follows a change of a MachineConfig after
/// five seconds, and our write needs a moment.
const FRESH: Duration = Duration::from_secs(4);
const AGAIN: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(60) };
/// A read that has failed so often is reported.
const REPORT_AFTER: u32 = 4;
/// Answers that came too late so often in a row are reported.
const MOST_LATE: u32 = 4;

const GROUP: &str = "machineconfiguration.openshift.io/v1";

/// What was read for estimates, and what is being read.
#[derive(Debug, Default)]
pub(crate) struct Estimates {
    readings: Readings,
    /// When the read of each pool was sent.
    read_at: BTreeMap<String, Moment>,
    /// The reads in flight, each with the moment when it was sent.
    in_flight: BTreeMap<Key, Moment>,
    /// Reads in flight that are older than what a watch has reported since.
    outdated: BTreeSet<Key>,
    /// The objects that wait for it.
    waiting: BTreeSet<Key>,
    failures: u32,
    /// How often pools were read again in a row for an object, because the answer came too late.
    late: BTreeMap<Key, u32>,
}

/// What a write does to nodes.
#[derive(Debug)]
pub(crate) struct Outlook {
    pub(crate) restarts: Restarts,
    /// Whether the nodes run its result already.
    pub(crate) is_running: bool,
    /// Why the pools cannot take a change now.
    pub(crate) why_not_ready: Option<String>,
    /// Whether the pools were read just now: what is older is good enough to hold a write, but not to make one.
    pub(crate) is_fresh: bool,
}

/// How far an estimate is.
enum Progress {
    /// It is known; these pools were not read just now.
    Done(Estimate, Vec<String>),
    /// These have to be read first.
    Unread(BTreeSet<Unread>),
    /// The object has to be read first.
    NotInspected,
    /// The pools are not listed yet.
    NotListed,
}

impl Core {
    /// What writing or removing an object does to nodes; `None` if that is not known yet.
    pub(super) fn outlook(&self, key: &Key) -> Option<Outlook> {
        let object = self.objects.get(key).filter(|object| object.impact() == Impact::High)?;
        let Progress::Done(estimate, late) = self.estimate(object) else { return None };
        let mut restarts = estimate.restarts(self.surroundings.nodes());
        if self.watches.is_listed(&WatchTarget::all("kubevirt.io/v1", "VirtualMachineInstance")) {
            restarts.virtual_machines = Some(self.surroundings.virtual_machines_on(&restarts.nodes));
        }
        Some(Outlook {
            is_fresh: late.is_empty(),
            restarts,
            is_running: estimate.changes_nothing(),
            why_not_ready: estimate.why_not_ready(),
        })
    }

    /// What the object brings in now, and what it is to bring in; `None` if it has to be read first.
    fn sides(object: &Managed) -> Option<(Option<&Contribution>, Option<Contribution>)> {
        let before = match object.live() {
            Some(live) => {
                let (version, contribution) = object.contribution.as_ref()?;
                Some(contribution).filter(|_| *version == live.resource_version).map(Some)?
            }
            None => None,
        };
        let after = match (&object.removal, before) {
            (Some(_), _) => None,
            (None, None) => Some(Contribution::of(&object.object.key.kind, &object.object.desired.object())),
            (None, Some(_)) => object.inspected.as_ref()?.contribution.clone(),
        };
        Some((before, after))
    }

    fn estimate(&self, object: &Managed) -> Progress {
        let pools = pools();
        if self.discovery.kinds.find(&pools.kind).is_some() && !self.watches.is_listed(&pools) {
            return Progress::NotListed;
        }
        let Some((before, after)) = Core::sides(object) else { return Progress::NotInspected };
        let change = Change { name: &object.object.key.name, before, after: after.as_ref() };
        let (watched, policy) = (self.surroundings.pools(), self.surroundings.disruption_policy());
        match self.estimates.readings.estimate(&change, watched, policy) {
            Ok(estimate) => {
                let is_fresh = |pool: &PoolEstimate| self.estimates.is_fresh(&pool.pool.name, self.now.monotonic);
                let late = estimate.pools.iter().filter(|pool| change.has_contents() && !is_fresh(pool));
                let late = late.map(|pool| pool.pool.name.clone()).collect();
                Progress::Done(estimate, late)
            }
            Err(unread) => Progress::Unread(unread),
        }
    }

    /// Reads the pools of an object again, because it is to be written.
    pub(super) fn refresh_estimate(&mut self, key: &Key) {
        let Some(object) = self.objects.get(key) else { return };
        let Progress::Done(_, late) = self.estimate(object) else { return };
        let times = self.estimates.late.entry(key.clone()).or_default();
        *times = times.saturating_add(1);
        if *times > MOST_LATE {
            let message = "pools are read too slowly to say what it does to nodes; it is tried again".to_owned();
            self.show(key, State::Failed);
            self.report_held(key, Reason::ReadFailed { message });
        }
        // What they were rendered from may have changed, too.
        self.estimates.readings.sources.clear();
        self.read(key, late.into_iter().map(|name| key_of("MachineConfigPool", name)));
    }

    /// Reads what an estimate needs; then the object is decided about again.
    pub(super) fn request_estimate(&mut self, key: &Key) {
        let Some(object) = self.objects.get(key) else { return };
        match self.estimate(object) {
            Progress::NotInspected => self.inspect(key),
            // The list is an event of its own.
            Progress::NotListed => self.report_unlisted_pools(key),
            Progress::Done(..) => self.timers.set(Timer::Reconcile(key.clone()), self.now.monotonic),
            Progress::Unread(unread) => {
                let names = unread.into_iter().map(|unread| match unread {
                    Unread::Configuration(name) | Unread::Source(name) => key_of("MachineConfig", name),
                });
                self.read(key, names);
            }
        }
    }

    fn read(&mut self, waiting: &Key, keys: impl Iterator<Item = Key>) {
        for key in keys {
            let Some(served) = self.discovery.kinds.find(&key.kind) else { continue };
            if !self.estimates.in_flight.contains_key(&key) {
                self.estimates.in_flight.insert(key.clone(), self.now.monotonic);
                self.commands.push(Command::Inspect { key, served });
            }
        }
        self.estimates.waiting.insert(waiting.clone());
    }

    /// Nothing is known of the pools, so nothing that restarts nodes is written.
    fn report_unlisted_pools(&mut self, key: &Key) {
        if self.watches.has_failed(&pools()) {
            self.show(key, State::Failed);
            let message = "MachineConfigPools cannot be listed, so it is not known what it does to nodes".to_owned();
            self.report_held(key, Reason::ReadFailed { message });
        }
    }

    /// Takes a pool or a rendered configuration that was read for an estimate.
    pub(super) fn read_for_estimate(&mut self, key: &Key, found: Result<Option<&Value>, &str>) {
        let Some(sent_at) = self.estimates.in_flight.remove(key) else { return };
        let found = match found {
            Ok(found) => found,
            Err(why) => return self.estimate_failed(&format!("could not read {key}: {why}")),
        };
        self.estimates.failures = 0;
        let is_outdated = self.estimates.outdated.remove(key);
        let Estimates { readings, read_at, .. } = &mut self.estimates;
        if *key == key_of("MachineConfigPool", key.name.clone()) {
            let pool = found.and_then(|object| match Part::read("MachineConfigPool", &object.to_string()) {
                Ok(Part::Pool(pool)) => Some(*pool),
                _ => None,
            });
            // The watch was faster, and knows better.
            if !is_outdated {
                read_at.insert(key.name.clone(), sent_at);
                readings.pools.insert(key.name.clone(), pool);
            }
        } else if key.name.starts_with("rendered-") {
            let pools = self.surroundings.pools().values().chain(readings.pools.values().flatten());
            let named = pools.flat_map(|pool| [&pool.wanted_configuration, &pool.running_configuration]);
            let named: BTreeSet<&String> = named.collect();
            readings.configurations.retain(|name, _| named.contains(name));
            readings.configurations.insert(key.name.clone(), found.map(Configuration::of));
        } else {
            readings.sources.insert(key.name.clone(), found.and_then(|object| Contents::of(&key.kind, object)));
        }
        for waiting in std::mem::take(&mut self.estimates.waiting) {
            self.enqueue(&waiting);
        }
    }

    fn estimate_failed(&mut self, message: &str) {
        let at = self.now.monotonic.after(AGAIN.pause(self.estimates.failures));
        self.estimates.failures = self.estimates.failures.saturating_add(1);
        let is_reported = self.estimates.failures >= REPORT_AFTER;
        for waiting in std::mem::take(&mut self.estimates.waiting) {
            self.timers.set(Timer::Reconcile(waiting.clone()), at);
            if is_reported {
                self.show(&waiting, State::Failed);
                self.report_held(&waiting, Reason::ReadFailed { message: message.to_owned() });
            }
        }
    }

    /// Pools have changed in a way that estimates depend on.
    pub(super) fn pools_changed(&mut self, names: &[String]) {
        for name in names {
            self.estimates.readings.pools.remove(name);
            self.estimates.read_at.remove(name);
            let key = key_of("MachineConfigPool", name.clone());
            if self.estimates.in_flight.contains_key(&key) {
                self.estimates.outdated.insert(key);
            }
        }
        let high = self.objects.iter().filter(|(_, object)| object.impact() == Impact::High);
        let high: Vec<Key> = high.map(|(key, _)| key.clone()).collect();
        for key in high {
            self.enqueue(&key);
        }
    }
}

impl Estimates {
    /// What was read is not late.
    pub(crate) fn arrived_in_time(&mut self) {
        self.late.clear();
    }

    fn is_fresh(&self, pool: &str, now: Moment) -> bool {
        self.read_at.get(pool).is_some_and(|at| now <= at.after(FRESH))
    }
}

/// The target of all pools.
pub(super) fn pools() -> WatchTarget {
    WatchTarget::all(GROUP, "MachineConfigPool")
}

fn key_of(kind: &str, name: String) -> Key {
    Key { kind: Kind::new(GROUP, kind), namespace: String::new(), name }
}
