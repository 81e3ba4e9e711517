//! The objects of the fleet as far as metrics show them, so that the series of an object end with it.

use api::fleet::{ClaimPhase, GROUP, Quantity};
use fleet::hypervisor::Power;
use fleet::object::Name;
use protocol::{Body, WatchEvent, WatchTarget};
use serde_json::Value;
use std::collections::BTreeMap;

/// What there is.
#[derive(Debug, Default)]
pub(super) struct Inventory {
    pub(super) clusters: BTreeMap<Name, Cluster>,
    /// The hypervisor of each template.
    pub(super) templates: BTreeMap<Name, Name>,
    pub(super) pools: BTreeMap<Name, Pool>,
    pub(super) claims: BTreeMap<Name, Claim>,
}

/// What is known of a hypervisor.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    /// Whether it can be used; nothing before the core has said so.
    pub(super) is_ready: Option<bool>,
    pub(super) orphans: usize,
    /// CPUs and bytes of memory that are left.
    pub(super) available: Option<(i64, i64)>,
    /// The machines of claims in its last list by power state.
    pub(super) powers: Option<[(Power, u32); 3]>,
}

/// The machines of a pool.
#[derive(Debug, Default)]
pub(super) struct Pool {
    pub(super) desired: i64,
    pub(super) replicas: i64,
    pub(super) ready: i64,
    pub(super) failed: i64,
}

/// A claim as the API server has it.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) template: Name,
    /// The hypervisor of its machine.
    pub(super) cluster: Option<Name>,
    pub(super) phase: ClaimPhase,
}

/// A name as it is in a map already: thousands of claims have the same template and hypervisor.
fn known<T>(all: &BTreeMap<Name, T>, name: &Name) -> Name {
    all.get_key_value(name).map_or(name, |(known, _)| known).clone()
}

/// An object that is gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Cluster(Name),
    Template(Name),
}

impl Inventory {
    /// Takes one report of a watch; what is gone since then.
    pub(super) fn observe(&mut self, target: &WatchTarget, event: &WatchEvent) -> Vec<Gone> {
        if target.kind.group != GROUP {
            return Vec::new();
        }
        let kind = target.kind.kind.as_str();
        match event {
            WatchEvent::Present { namespace, name, body: Body::Whole(object), .. } => {
                self.present(kind, Name::new(namespace, name), object);
                Vec::new()
            }
            WatchEvent::Gone { namespace, name, .. } => {
                self.gone(kind, &Name::new(namespace, name)).into_iter().collect()
            }
            WatchEvent::Listed { all, .. } => {
                let is_gone = |name: &&Name| !all.contains(&(name.namespace.to_string(), name.name.to_string()));
                let gone: Vec<Name> = match kind {
                    "HypervisorCluster" => self.clusters.keys().filter(is_gone).cloned().collect(),
                    "HypervisorMachineTemplate" => self.templates.keys().filter(is_gone).cloned().collect(),
                    "RunnerPool" => self.pools.keys().filter(is_gone).cloned().collect(),
                    _ => self.claims.keys().filter(is_gone).cloned().collect(),
                };
                gone.iter().filter_map(|name| self.gone(kind, name)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn present(&mut self, kind: &str, name: Name, object: &Value) {
        let (spec, status) = (&object["spec"], &object["status"]);
        match kind {
            "HypervisorCluster" => {
                let cluster = self.clusters.entry(name).or_default();
                cluster.orphans = status["orphans"].as_array().map_or(0, Vec::len);
                let available = &status["availableResources"];
                cluster.available = available["cpu"].as_i64().zip(bytes(&available["memory"]));
            }
            "HypervisorMachineTemplate" => {
                let reference = &spec["hypervisorClusterRef"];
                let cluster =
                    name.beside(reference["namespace"].as_str(), reference["name"].as_str().unwrap_or_default());
                self.templates.insert(name, cluster);
            }
            "RunnerPool" => {
                let number = |field: &str| status[field].as_i64().unwrap_or_default();
                let pool = Pool {
                    desired: number("desiredReplicas"),
                    replicas: number("replicas"),
                    ready: number("readyReplicas"),
                    failed: number("failedReplicas"),
                };
                self.pools.insert(name, pool);
            }
            "MachineClaim" => {
                let template = name.beside(None, spec["templateRef"]["name"].as_str().unwrap_or_default());
                let template = known(&self.templates, &template);
                let cluster = status["vmRef"]["hypervisorCluster"].as_str().and_then(Name::read);
                let cluster = cluster.map(|cluster| known(&self.clusters, &cluster));
                let phase = serde_json::from_value(status["phase"].clone()).unwrap_or(ClaimPhase::Pending);
                self.claims.insert(name, Claim { template, cluster, phase });
            }
            _ => {}
        }
    }

    fn gone(&mut self, kind: &str, name: &Name) -> Option<Gone> {
        match kind {
            "HypervisorCluster" => self.clusters.remove(name).map(|_| Gone::Cluster(name.clone())),
            "HypervisorMachineTemplate" => self.templates.remove(name).map(|_| Gone::Template(name.clone())),
            "RunnerPool" => {
                self.pools.remove(name);
                None
            }
            _ => {
                self.claims.remove(name);
                None
            }
        }
    }

    /// The number of claims by hypervisor and phase. Every hypervisor has every phase, so that none is a gap in a graph.
    pub(super) fn machines(&self) -> BTreeMap<(String, ClaimPhase), i64> {
        let mut counts = BTreeMap::new();
        for cluster in self.clusters.keys() {
            counts.extend(ClaimPhase::ALL.map(|phase| ((cluster.to_string(), phase), 0)));
        }
        for claim in self.claims.values() {
            let cluster = claim.cluster.as_ref().or_else(|| self.templates.get(&claim.template));
            let cluster = cluster.map(Name::to_string).unwrap_or_default();
            *counts.entry((cluster, claim.phase)).or_default() += 1;
        }
        counts
    }
}

fn bytes(quantity: &Value) -> Option<i64> {
    Quantity(quantity.as_str()?.to_owned()).bytes().and_then(|bytes| i64::try_from(bytes).ok())
}
