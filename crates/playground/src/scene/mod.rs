//! The objects a playground is populated with: nodes, pools and the cluster-wide objects of OpenShift.

mod apply;
mod machine_config;
mod node;
mod platform;
mod preset;

pub use apply::apply;
pub use preset::PRESETS;

use crate::crds::Variants;
use crate::user_error::UserError;
use serde::Serialize;
use serde_json::Value;

/// More nodes only fill the memory of one machine.
const MAX_NODES: usize = 2_000;

/// The cluster to set up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scene {
    /// The scene's name.
    pub name: String,
    /// The number of control plane nodes.
    pub masters: usize,
    /// The number of nodes that are only workers.
    pub workers: usize,
    /// Custom pools, whose nodes are also workers.
    pub pools: Vec<Pool>,
    /// Whether workloads are scheduled on masters.
    pub schedulable_masters: bool,
    /// Where the control plane runs.
    pub topology: Topology,
    /// OpenShift's infrastructure type: `BareMetal`, `AWS`, `None` ...
    pub platform: String,
    /// The served HyperConverged version.
    pub hco: String,
    /// The release of the descheduler operator's CRD.
    pub descheduler: String,
}

/// A custom machine config pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// Its name, also the role of its nodes.
    pub name: String,
    /// The number of nodes.
    pub nodes: usize,
    /// Whether each node has GPUs and supports passthrough.
    pub gpu: bool,
}

/// OpenShift's control plane topology.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Topology {
    /// On several nodes of the cluster.
    HighlyAvailable,
    /// On one node.
    SingleReplica,
    /// Elsewhere: a hosted control plane.
    External,
}

impl Topology {
    fn as_str(self) -> &'static str {
        match self {
            Topology::HighlyAvailable => "HighlyAvailable",
            Topology::SingleReplica => "SingleReplica",
            Topology::External => "External",
        }
    }
}

impl Scene {
    /// The preset with this name.
    pub fn preset(name: &str) -> Result<Scene, UserError> {
        preset::find(name)
    }

    /// Validates a customised scene.
    pub fn check(&self) -> Result<(), UserError> {
        let invalid = |message: String| Err(UserError::new(message, "change --masters, --workers or --pool"));
        let counts = [self.masters, self.workers].into_iter().chain(self.pools.iter().map(|pool| pool.nodes));
        if counts.clone().any(|count| count > MAX_NODES) || counts.sum::<usize>() > MAX_NODES {
            return invalid(format!("a scene has at most {MAX_NODES} nodes"));
        }
        match (self.nodes(), self.topology, self.masters) {
            (0, ..) => return invalid("a scene needs at least one node".into()),
            (_, Topology::HighlyAvailable, 0) => {
                return invalid(
                    "a highly available control plane needs masters; for none, use the scene hosted".into(),
                );
            }
            (_, Topology::SingleReplica, masters) if masters != 1 => {
                return invalid(format!("the scene {} has exactly one master, not {masters}", self.name));
            }
            (_, Topology::External, masters) if masters > 0 => {
                return invalid(format!(
                    "the scene {} has an external control plane and no masters, not {masters}",
                    self.name
                ));
            }
            _ => {}
        }
        for (index, pool) in self.pools.iter().enumerate() {
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            let edge = |c: Option<char>| c.is_some_and(|c| c != '-');
            let (name, mut characters) = (pool.name.as_str(), pool.name.chars());
            let is_valid = name.len() <= 40
                && name.chars().all(inner)
                && edge(characters.clone().next())
                && edge(characters.next_back());
            if !is_valid || ["master", "worker"].contains(&name) {
                return invalid(format!(
                    "invalid pool name {name:?}: use at most 40 lower-case letters, digits and inner dashes, and neither master nor worker"
                ));
            }
            if self.pools[..index].iter().any(|other| other.name == pool.name) {
                return invalid(format!("the pool {name:?} is given twice"));
            }
        }
        Ok(())
    }

    /// The number of all nodes.
    pub fn nodes(&self) -> usize {
        self.masters + self.workers + self.pools.iter().map(|pool| pool.nodes).sum::<usize>()
    }

    /// The CRD variants it needs.
    pub fn variants(&self) -> Variants {
        Variants { hco: self.hco.clone(), descheduler: self.descheduler.clone() }
    }

    /// All objects, in the order in which they are created.
    pub fn objects(&self) -> Vec<Value> {
        let pools = machine_config::Pools::of(self);
        let nodes = node::nodes(self, &pools);
        [platform::namespaces(), nodes, platform::cluster_objects(self), pools.objects()].concat()
    }

    /// A one-line description.
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
            _ if self.schedulable_masters => ", schedulable masters",
            _ => "",
        };
        format!("{}: {}{control_plane}, {}, HyperConverged {}", self.name, parts.join(", "), self.platform, self.hco)
    }
}
