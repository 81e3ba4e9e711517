//! Metrics of the fleet: what there is follows its objects, what happens follows what its core reports.

mod inventory;
mod jobs;
mod servers;

use super::register;
use api::fleet::{ClaimPhase, FailureClass};
use api::metric;
use fleet::Notice;
use fleet::hypervisor::Power;
use fleet::object::Name;
use hypervisor::Exchange;
use inventory::{Gone, Inventory};
use jobs::Jobs;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use protocol::{WatchEvent, WatchTarget};
use servers::Servers;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Hypervisor {
    hypervisor: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Pool {
    pool: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Template {
    template: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InPhase {
    hypervisor: String,
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPower {
    hypervisor: String,
    power: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Outcome {
    template: String,
    result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Operation {
    hypervisor: String,
    operation: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    method: &'static str,
    path: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct OperationError {
    hypervisor: String,
    operation: &'static str,
    class: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
    commit: &'static str,
}

/// From a linked clone on a fast storage to a full one that has to wait.
#[derive(Clone)]
struct Provisioning;

impl MetricConstructor<Histogram> for Provisioning {
    fn new_metric(&self) -> Histogram {
        Histogram::new([5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 1_200.0])
    }
}

/// From one request to the clone of a large disk.
#[derive(Clone)]
struct Operations;

impl MetricConstructor<Histogram> for Operations {
    fn new_metric(&self) -> Histogram {
        Histogram::new([0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0])
    }
}

/// A request starts a task at most, and does not wait for it.
#[derive(Clone)]
struct Requests;

impl MetricConstructor<Histogram> for Requests {
    fn new_metric(&self) -> Histogram {
        Histogram::new([0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0])
    }
}

/// The metrics of the fleet.
pub(super) struct Fleet {
    registry: Registry,
    machines: Family<InPhase, Gauge>,
    powers: Family<ByPower, Gauge>,
    provisioning: Family<Template, Histogram, Provisioning>,
    results: Family<Outcome, Counter>,
    durations: Family<Operation, Histogram, Operations>,
    requests: Family<Request, Histogram, Requests>,
    errors: Family<OperationError, Counter>,
    ready: Family<Hypervisor, Gauge>,
    cpus: Family<Hypervisor, Gauge>,
    memory: Family<Hypervisor, Gauge>,
    orphans: Family<Hypervisor, Gauge>,
    found: Family<Hypervisor, Counter>,
    destroyed: Family<Hypervisor, Counter>,
    desired: Family<Pool, Gauge>,
    replicas: Family<Pool, Gauge>,
    pool_ready: Family<Pool, Gauge>,
    failed: Family<Pool, Gauge>,
    leader: Gauge,
    servers: Servers,
    jobs: Jobs,
    known: Mutex<Known>,
}

/// What there is, and which series count what happened to it.
#[derive(Default)]
struct Known {
    inventory: Inventory,
    results: BTreeSet<Outcome>,
    operations: BTreeSet<Operation>,
    errors: BTreeSet<OperationError>,
}

impl Fleet {
    pub(super) fn new() -> Fleet {
        let mut all = Registry::with_prefix(metric::FLEET_PREFIX);
        let registry = &mut all;
        let build = register(registry, &metric::FLEET_BUILD_INFO, Family::<Build, Gauge>::default());
        let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("VIRTPILOT_COMMIT"));
        build.get_or_create_owned(&Build { version, commit }).set(1);
        let provisioning = Family::new_with_constructor(Provisioning);
        let durations = Family::new_with_constructor(Operations);
        Fleet {
            machines: register(registry, &metric::FLEET_MACHINES, Family::default()),
            powers: register(registry, &metric::FLEET_MACHINES_BY_POWER, Family::default()),
            provisioning: register(registry, &metric::FLEET_PROVISIONING_DURATION, provisioning),
            results: register(registry, &metric::FLEET_PROVISIONING_RESULTS, Family::default()),
            durations: register(registry, &metric::FLEET_OPERATION_DURATION, durations),
            requests: register(registry, &metric::FLEET_REQUEST_DURATION, Family::new_with_constructor(Requests)),
            errors: register(registry, &metric::FLEET_OPERATION_ERRORS, Family::default()),
            ready: register(registry, &metric::FLEET_HYPERVISOR_READY, Family::default()),
            cpus: register(registry, &metric::FLEET_AVAILABLE_CPUS, Family::default()),
            memory: register(registry, &metric::FLEET_AVAILABLE_MEMORY, Family::default()),
            orphans: register(registry, &metric::FLEET_ORPHANS, Family::default()),
            found: register(registry, &metric::FLEET_ORPHANS_FOUND, Family::default()),
            destroyed: register(registry, &metric::FLEET_ORPHANS_DESTROYED, Family::default()),
            desired: register(registry, &metric::FLEET_POOL_DESIRED, Family::default()),
            replicas: register(registry, &metric::FLEET_POOL_MACHINES, Family::default()),
            pool_ready: register(registry, &metric::FLEET_POOL_READY, Family::default()),
            failed: register(registry, &metric::FLEET_POOL_FAILED, Family::default()),
            leader: register(registry, &metric::FLEET_LEADER, Gauge::default()),
            servers: Servers::register(registry),
            jobs: Jobs::new(registry),
            known: Mutex::default(),
            registry: all,
        }
    }

    pub(super) fn leads(&self) {
        self.leader.set(1);
    }

    /// Takes one request to a hypervisor.
    pub(super) fn exchanged(&self, exchange: &Exchange) {
        let Exchange { method, path, status, duration } = *exchange;
        let labels = Request { method, path, status: status.label() };
        self.requests.get_or_create_owned(&labels).observe(duration.as_secs_f64());
    }

    /// Takes one request to a server of the fleet.
    pub(super) fn requested(&self, server: &'static str, result: &'static str) {
        self.servers.count(server, result);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an object of the fleet as a watch reports it.
    pub(super) fn observe(&self, target: &WatchTarget, event: &WatchEvent) {
        let mut known = self.known();
        for gone in known.inventory.observe(target, event) {
            match gone {
                Gone::Cluster(name) => self.forget_cluster(&mut known, &name.to_string()),
                Gone::Template(name) => self.forget_template(&mut known, &name.to_string()),
            }
        }
    }

    fn forget_cluster(&self, known: &mut Known, name: &str) {
        let hypervisor = Hypervisor { hypervisor: name.to_owned() };
        self.found.remove(&hypervisor);
        self.destroyed.remove(&hypervisor);
        known.operations.retain(|operation| {
            let is_kept = operation.hypervisor != name;
            if !is_kept {
                self.durations.remove(operation);
            }
            is_kept
        });
        known.errors.retain(|error| {
            let is_kept = error.hypervisor != name;
            if !is_kept {
                self.errors.remove(error);
            }
            is_kept
        });
    }

    fn forget_template(&self, known: &mut Known, name: &str) {
        self.provisioning.remove(&Template { template: name.to_owned() });
        known.results.retain(|outcome| {
            let is_kept = outcome.template != name;
            if !is_kept {
                self.results.remove(outcome);
            }
            is_kept
        });
    }

    /// Takes what the core reports. What is about an object that is gone has no series any more.
    pub(super) fn record(&self, notice: &Notice) {
        self.jobs.record(notice);
        let mut known = self.known();
        match notice {
            Notice::Claim { name, phase: Some(phase), reason, ready_after, .. } => {
                let Some(claim) = known.inventory.claims.get(name) else { return };
                if !known.inventory.templates.contains_key(&claim.template) {
                    return;
                }
                // A restart reports again what failed before it, which the stored phase tells.
                let is_new_failure = *phase == ClaimPhase::Failed && claim.phase != ClaimPhase::Failed;
                let template = claim.template.to_string();
                if let Some(took) = ready_after {
                    let of = Template { template: template.clone() };
                    self.provisioning.get_or_create_owned(&of).observe(took.as_secs_f64());
                }
                if ready_after.is_some() || is_new_failure {
                    let outcome = Outcome { template, result: reason.clone() };
                    self.results.get_or_create_owned(&outcome).inc();
                    known.results.insert(outcome);
                }
            }
            Notice::Operation { cluster, operation, took, failure, .. } => {
                if !known.inventory.clusters.contains_key(cluster) {
                    return;
                }
                let labels = Operation { hypervisor: cluster.to_string(), operation };
                self.durations.get_or_create_owned(&labels).observe(took.as_secs_f64());
                if let Some((class, _)) = failure {
                    let error =
                        OperationError { hypervisor: cluster.to_string(), operation, class: class_name(*class) };
                    self.errors.get_or_create_owned(&error).inc();
                    known.errors.insert(error);
                }
                known.operations.insert(labels);
            }
            Notice::Cluster { name, is_ready, .. } => {
                if let Some(cluster) = known.inventory.clusters.get_mut(name) {
                    cluster.is_ready = Some(*is_ready);
                }
            }
            Notice::Machines { cluster, powers } => {
                if let Some(cluster) = known.inventory.clusters.get_mut(cluster) {
                    cluster.powers = Some(*powers);
                }
            }
            Notice::Orphan { cluster, is_destroyed, .. } if known.inventory.clusters.contains_key(cluster) => {
                let counts = if *is_destroyed { &self.destroyed } else { &self.found };
                counts.get_or_create_owned(&labels(cluster)).inc();
            }
            _ => {}
        }
    }

    /// The metrics as text.
    pub(super) fn text(&self) -> String {
        self.show();
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    /// Sets what shows the inventory to what there is now.
    fn show(&self) {
        let known = self.known();
        self.machines.clear();
        for ((hypervisor, phase), count) in known.inventory.machines() {
            self.machines.get_or_create_owned(&InPhase { hypervisor, phase: phase.name() }).set(count);
        }
        self.powers.clear();
        for family in [&self.ready, &self.cpus, &self.memory, &self.orphans] {
            family.clear();
        }
        for (name, cluster) in &known.inventory.clusters {
            let labels = labels(name);
            if let Some(is_ready) = cluster.is_ready {
                self.ready.get_or_create_owned(&labels).set(i64::from(is_ready));
            }
            for (power, count) in cluster.powers.into_iter().flatten() {
                let labels = ByPower { hypervisor: name.to_string(), power: power_name(power) };
                self.powers.get_or_create_owned(&labels).set(i64::from(count));
            }
            if let Some((cpus, memory)) = cluster.available {
                self.cpus.get_or_create_owned(&labels).set(cpus);
                self.memory.get_or_create_owned(&labels).set(memory);
            }
            self.orphans.get_or_create_owned(&labels).set(i64::try_from(cluster.orphans).unwrap_or(i64::MAX));
        }
        for family in [&self.desired, &self.replicas, &self.pool_ready, &self.failed] {
            family.clear();
        }
        for (name, pool) in &known.inventory.pools {
            let labels = Pool { pool: name.to_string() };
            self.desired.get_or_create_owned(&labels).set(pool.desired);
            self.replicas.get_or_create_owned(&labels).set(pool.replicas);
            self.pool_ready.get_or_create_owned(&labels).set(pool.ready);
            self.failed.get_or_create_owned(&labels).set(pool.failed);
        }
    }
}

fn labels(cluster: &Name) -> Hypervisor {
    Hypervisor { hypervisor: cluster.to_string() }
}

fn power_name(power: Power) -> &'static str {
    match power {
        Power::Running => "running",
        Power::Stopped => "stopped",
        Power::Unknown => "unknown",
    }
}

fn class_name(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Transient => "Transient",
        FailureClass::Permanent => "Permanent",
        FailureClass::Configuration => "Configuration",
        FailureClass::Resource => "Resource",
    }
}

#[cfg(test)]
mod tests;
