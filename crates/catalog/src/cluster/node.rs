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
        Node { name, roles, hardware: Hardware::of(description) }
    }

    /// Whether it has a role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles.iter().any(|one| one == role)
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
