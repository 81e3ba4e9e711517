//! What a playground looks like: nodes, pools and the cluster-wide objects of an OpenShift.

mod machine_config;
mod node;
mod platform;
mod preset;
mod stage;

pub use preset::PRESETS;
pub use stage::stage;

use crate::crds::Variants;
use crate::trouble::Trouble;
use serde::Serialize;
use serde_json::Value;

/// A cluster to be set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scene {
    /// What it is called.
    pub name: String,
    /// Nodes of the control plane.
    pub masters: usize,
    /// Nodes that only work.
    pub workers: usize,
    /// Further pools, whose nodes are workers too.
    pub pools: Vec<Pool>,
    /// Whether masters take workloads.
    pub schedulable_masters: bool,
    /// Where the control plane runs.
    pub topology: Topology,
    /// OpenShift's name of the infrastructure: `BareMetal`, `AWS`, `None` ...
    pub platform: String,
    /// The HyperConverged version this cluster serves.
    pub hco: String,
    /// The line of the descheduler operator's CRD.
    pub descheduler: String,
}

/// A custom pool of machines.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Its name and its nodes' role.
    pub name: String,
    /// How many nodes.
    pub nodes: usize,
    /// Whether each has GPUs and everything to pass them through.
    pub gpu: bool,
}

/// OpenShift's word for where the control plane runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Topology {
    /// On several nodes of the cluster.
    HighlyAvailable,
    /// On one.
    SingleReplica,
    /// Elsewhere: a hosted control plane.
    External,
}

impl Topology {
    fn word(self) -> &'static str {
        match self {
            Topology::HighlyAvailable => "HighlyAvailable",
            Topology::SingleReplica => "SingleReplica",
            Topology::External => "External",
        }
    }
}

impl Scene {
    /// One of the presets by its name.
    pub fn preset(name: &str) -> Result<Scene, Trouble> {
        preset::find(name)
    }

    /// All nodes.
    pub fn nodes(&self) -> usize {
        self.masters + self.workers + self.pools.iter().map(|pool| pool.nodes).sum::<usize>()
    }

    /// Which shapes of CRDs it needs.
    pub fn variants(&self) -> Variants {
        Variants { hco: self.hco.clone(), descheduler: self.descheduler.clone() }
    }

    /// Everything that stands on the stage, in the order in which it is put there.
    pub fn objects(&self) -> Vec<Value> {
        [platform::namespaces(), node::nodes(self), platform::cluster_objects(self), machine_config::pools(self)]
            .concat()
    }

    /// One line about it.
    pub fn summary(&self) -> String {
        let mut parts = Vec::new();
        for (count, what) in [(self.masters, "masters"), (self.workers, "workers")] {
            if count > 0 {
                parts.push(format!("{count} {}", if count == 1 { what.trim_end_matches('s') } else { what }));
            }
        }
        parts.extend(self.pools.iter().map(|pool| format!("{} in pool {}", pool.nodes, pool.name)));
        let control_plane = match self.topology {
            Topology::External => ", hosted control plane",
            _ if self.schedulable_masters => ", masters take workloads",
            _ => "",
        };
        format!("{}: {}{control_plane}, {}, HyperConverged {}", self.name, parts.join(", "), self.platform, self.hco)
    }
}
