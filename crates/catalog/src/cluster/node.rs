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
    /// The pool that configures it, and how far that is; `None` where nobody has configured it yet.
    pub configuration: Option<NodeConfiguration>,
}

/// What the machine-config operator says of a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeConfiguration {
    /// The pool.
    pub pool: String,
    /// Whether the node runs what it should.
    pub is_done: bool,
}

/// The parts of a node that its facts are derived from; they are not stored.
#[derive(Deserialize, Default)]
pub(crate) struct NodeDescription {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// The `status.capacity`.
    pub(crate) capacity: BTreeMap<String, String>,
}

impl Node {
    /// Derives the facts about a node.
    pub(crate) fn of(name: &str, description: &NodeDescription) -> Node {
        let roles = description.labels.keys().filter_map(|label| label.strip_prefix(ROLE));
        let (name, roles) = (name.to_owned(), roles.map(str::to_owned).collect());
        let configuration = NodeConfiguration::of(&description.annotations);
        Node { name, roles, hardware: Hardware::of(description), configuration }
    }

    /// Whether it has a role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|one| one == role)
    }
}

impl NodeConfiguration {
    fn of(annotations: &BTreeMap<String, String>) -> Option<NodeConfiguration> {
        let annotation = |name: &str| annotations.get(&format!("machineconfiguration.openshift.io/{name}"));
        let wanted = annotation("desiredConfig")?;
        // `rendered-POOL-HASH`
        let (pool, _) = wanted.strip_prefix("rendered-")?.rsplit_once('-')?;
        let is_done =
            annotation("currentConfig") == Some(wanted) && annotation("state").is_some_and(|state| state == "Done");
        Some(NodeConfiguration { pool: pool.to_owned(), is_done })
    }
}

#[cfg(test)]
impl NodeDescription {
    /// A description for tests, with one of each resource.
    pub fn with(labels: &[(&str, &str)], annotations: &[(&str, &str)], capacity: &[&str]) -> NodeDescription {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let capacity = capacity.iter().map(|resource| ((*resource).to_owned(), "1".to_owned())).collect();
        NodeDescription { labels: map(labels), annotations: map(annotations), capacity }
    }
}

#[cfg(test)]
mod tests {
    use super::{Node, NodeDescription};

    #[test]
    fn the_pool_of_a_node_is_the_one_whose_configuration_it_is_to_run() {
        let of = |desired: &str, current: &str, state: &str| {
            let key = |name: &str| format!("machineconfiguration.openshift.io/{name}");
            let (one, two, three) = (key("desiredConfig"), key("currentConfig"), key("state"));
            let annotations = [(one.as_str(), desired), (two.as_str(), current), (three.as_str(), state)];
            let node = Node::of("n", &NodeDescription::with(&[], &annotations, &[]));
            node.configuration.map(|configuration| (configuration.pool, configuration.is_done))
        };
        let (old, new) = ("rendered-my-pool-1", "rendered-my-pool-2");
        assert_eq!(of(new, new, "Done"), Some(("my-pool".into(), true)));
        assert_eq!(of(new, old, "Done"), Some(("my-pool".into(), false)));
        assert_eq!(of(new, new, "Working"), Some(("my-pool".into(), false)));
        assert_eq!(of("other", "other", "Done"), None);
        assert_eq!(Node::of("n", &NodeDescription::default()).configuration, None);
    }
}
