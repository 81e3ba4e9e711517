//! A node, as little of it as anything depends on.

use crate::cluster::hardware::Hardware;
use serde::Deserialize;
use std::collections::BTreeMap;

const ROLE: &str = "node-role.kubernetes.io/";

/// A node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// Its roles: `worker`, `master` ...
    pub roles: Vec<String>,
    /// What is inside it.
    pub hardware: Hardware,
}

/// What is looked at in a node, and not kept.
#[derive(Deserialize, Default)]
pub(crate) struct NodeDescription {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    /// Its `status.capacity`.
    pub(crate) capacity: BTreeMap<String, String>,
}

impl Node {
    /// The node of this name that is description so.
    pub(crate) fn of(name: &str, description: &NodeDescription) -> Node {
        let roles = description.labels.keys().filter_map(|label| label.strip_prefix(ROLE));
        let (name, roles) = (name.to_owned(), roles.map(str::to_owned).collect());
        Node { name, roles, hardware: Hardware::of(description) }
    }

    /// Whether it has a role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|one| one == role)
    }
}

#[cfg(test)]
impl NodeDescription {
    /// For a test; there is one of each resource.
    pub fn with(labels: &[(&str, &str)], annotations: &[(&str, &str)], capacity: &[&str]) -> NodeDescription {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let capacity = capacity.iter().map(|resource| ((*resource).to_owned(), "1".to_owned())).collect();
        NodeDescription { labels: map(labels), annotations: map(annotations), capacity }
    }
}
