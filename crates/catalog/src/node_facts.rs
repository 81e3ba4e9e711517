//! What we look at in a node.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What we look at in a node.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeFacts {
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its `status.capacity`.
    pub capacity: BTreeMap<String, String>,
}

#[cfg(test)]
impl NodeFacts {
    /// A node for a test.
    pub fn of(labels: &[(&str, &str)], annotations: &[(&str, &str)], capacity: &[&str]) -> NodeFacts {
        let map = |pairs: &[(&str, &str)]| {
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
        };
        let capacity = capacity.iter().map(|resource| ((*resource).to_owned(), "1".to_owned())).collect();
        NodeFacts { labels: map(labels), annotations: map(annotations), capacity }
    }
}
