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

/// More than this only fills the memory of one machine.
const MOST_NODES: usize = 2_000;

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

    /// Says what is wrong with a scene that somebody has put together.
    pub fn check(&self) -> Result<(), Trouble> {
        let wrong = |what: String| Err(Trouble::new(what, "change --masters, --workers or --pool"));
        let counts = [self.masters, self.workers].into_iter().chain(self.pools.iter().map(|pool| pool.nodes));
        if counts.clone().any(|count| count > MOST_NODES) || counts.sum::<usize>() > MOST_NODES {
            return wrong(format!("a scene has at most {MOST_NODES} nodes"));
        }
        match (self.nodes(), self.topology, self.masters) {
            (0, ..) => return wrong("a scene without any node is no cluster".into()),
            (_, Topology::HighlyAvailable, 0) => {
                return wrong("without masters the control plane would be nowhere: use the scene hosted".into());
            }
            (_, Topology::SingleReplica, masters) if masters != 1 => {
                return wrong(format!("{} means one master, not {masters}", self.name));
            }
            (_, Topology::External, masters) if masters > 0 => {
                return wrong(format!("{} has its masters elsewhere, not {masters} here", self.name));
            }
            _ => {}
        }
        for (index, pool) in self.pools.iter().enumerate() {
            let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
            let edge = |letter: Option<char>| letter.is_some_and(|letter| letter != '-');
            let (name, letters) = (pool.name.as_str(), pool.name.chars());
            let fits =
                name.len() <= 40 && name.chars().all(inner) && edge(letters.clone().next()) && edge(letters.last());
            if !fits || ["master", "worker"].contains(&name) {
                return wrong(format!(
                    "{name:?} cannot be a pool: use at most 40 lower-case letters, digits and inner dashes"
                ));
            }
            if self.pools[..index].iter().any(|other| other.name == pool.name) {
                return wrong(format!("there are two pools {name:?}"));
            }
        }
        Ok(())
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
