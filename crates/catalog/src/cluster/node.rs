//! The facts about a node.

use crate::cluster::hardware::Hardware;
use serde::Deserialize;
use std::collections::BTreeMap;

const ROLE: &str = "node-role.kubernetes.io/";

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// The name.
    pub name: String,
    /// The roles: `worker`, `master` and so on.
    pub roles: Vec<String>,
    /// The hardware.
    pub hardware: Hardware,
    /// The pool whose configuration it is to run; `None` where it has none yet.
    pub pool: Option<String>,
    /// Another one after every restart; empty if it is not known.
    pub boot_id: String,
    /// The zone it is in, and when it was created: the nodes of a pool are updated by zone, the oldest first.
    pub turn: (String, String),
}

/// The parts of a node that its facts are derived from; they are not stored.
#[derive(Deserialize, Default)]
pub(crate) struct NodeDescription {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) boot_id: String,
    /// The `metadata.creationTimestamp`.
    pub(crate) created: String,
    /// The `status.capacity`.
    pub(crate) capacity: BTreeMap<String, String>,
}

impl Node {
    /// Derives the facts about a node.
    pub(crate) fn of(name: &str, description: &NodeDescription) -> Node {
        let roles = description.labels.keys().filter_map(|label| label.strip_prefix(ROLE));
        let (name, roles) = (name.to_owned(), roles.map(str::to_owned).collect());
        let (pool, boot_id) = (pool(&description.annotations), description.boot_id.clone());
        let zone = description.labels.get("topology.kubernetes.io/zone").cloned().unwrap_or_default();
        let turn = (zone, description.created.clone());
        Node { name, roles, hardware: Hardware::of(description), pool, boot_id, turn }
    }

    /// Whether it has a role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|one| one == role)
    }
}

fn pool(annotations: &BTreeMap<String, String>) -> Option<String> {
    let wanted = annotations.get("machineconfiguration.openshift.io/desiredConfig")?;
    // `rendered-POOL-HASH`
    let (pool, _) = wanted.strip_prefix("rendered-")?.rsplit_once('-')?;
    Some(pool.to_owned())
}

#[cfg(test)]
impl NodeDescription {
    /// A description for tests, with one of each resource.
    pub fn with(labels: &[(&str, &str)], annotations: &[(&str, &str)], capacity: &[&str]) -> NodeDescription {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let capacity = capacity.iter().map(|resource| ((*resource).to_owned(), "1".to_owned())).collect();
        let (labels, annotations) = (map(labels), map(annotations));
        NodeDescription { labels, annotations, capacity, ..NodeDescription::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, NodeDescription};

    #[test]
    fn the_pool_of_a_node_is_the_one_whose_configuration_it_is_to_run() {
        let pool = |desired: &str| {
            let annotations = [("machineconfiguration.openshift.io/desiredConfig", desired)];
            Node::of("n", &NodeDescription::with(&[], &annotations, &[])).pool
        };
        assert_eq!(pool("rendered-my-pool-1").as_deref(), Some("my-pool"));
        assert_eq!(pool("other"), None);
        assert_eq!(Node::of("n", &NodeDescription::default()).pool, None);
    }
}
