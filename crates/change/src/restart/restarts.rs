//! Which nodes restart when an object is written.

use serde::Serialize;
use std::fmt;

/// More names than these are counted.
const NAMED: usize = 5;

/// The nodes that restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restarts {
    /// Which nodes of the cluster they are.
    pub scope: Scope,
    /// Their names, as far as the scope tells them.
    pub nodes: Vec<String>,
}

/// Which nodes of the cluster restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Those that the object selects, in a way that is not evaluated here.
    #[default]
    Selected,
    /// Those of the pool that the object names.
    Pool(String),
    /// All of them.
    Cluster,
}

impl fmt::Display for Restarts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, of) = match &self.scope {
            Scope::Selected => return write!(f, "the nodes it selects, which may be all of the cluster"),
            Scope::Pool(pool) => ("", format!("of pool {pool}")),
            Scope::Cluster => ("all ", "of the cluster".to_owned()),
        };
        let nodes = &self.nodes;
        match nodes.len() {
            0 => write!(f, "the nodes {of} (there are none now)"),
            1 => write!(f, "one node {of}: {}", nodes[0]),
            count if count > NAMED => {
                write!(f, "{all}{count} nodes {of}: {} and {} more", nodes[..NAMED].join(", "), count - NAMED)
            }
            count => write!(f, "{all}{count} nodes {of}: {}", nodes.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Restarts, Scope};

    #[test]
    fn more_than_five_nodes_are_counted() {
        let printed = |count: usize| {
            let nodes = (1..=count).map(|number| format!("w{number}")).collect();
            Restarts { scope: Scope::Pool("worker".into()), nodes }.to_string()
        };
        assert_eq!(printed(0), "the nodes of pool worker (there are none now)");
        assert_eq!(printed(5), "5 nodes of pool worker: w1, w2, w3, w4, w5");
        assert_eq!(printed(6), "6 nodes of pool worker: w1, w2, w3, w4, w5 and 1 more");
    }
}
