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
    /// How many of them restart at a time, as far as is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_a_time: Option<usize>,
}

/// Which nodes of the cluster restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Those that the object selects, in a way that is not evaluated here.
    #[default]
    Selected,
    /// Those of these pools.
    Pools(Vec<String>),
    /// All of them.
    Cluster,
}

impl fmt::Display for Restarts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (all, of) = match &self.scope {
            Scope::Selected => return write!(f, "the nodes it selects, which may be all of the cluster"),
            Scope::Pools(pools) if pools.len() > 1 => ("", format!("of the pools {}", pools.join(", "))),
            Scope::Pools(pools) => ("", format!("of pool {}", pools.join(", "))),
            Scope::Cluster => ("all ", "of the cluster".to_owned()),
        };
        let nodes = &self.nodes;
        match nodes.len() {
            0 if matches!(&self.scope, Scope::Pools(pools) if pools.is_empty()) => {
                write!(f, "no node: no pool takes it")
            }
            0 => write!(f, "the nodes {of} (there are none now)"),
            1 => write!(f, "one node {of}: {}", nodes[0]),
            count if count > NAMED => {
                write!(f, "{all}{count} nodes {of}: {} and {} more", nodes[..NAMED].join(", "), count - NAMED)?;
                self.fmt_pace(f)
            }
            count => {
                write!(f, "{all}{count} nodes {of}: {}", nodes.join(", "))?;
                self.fmt_pace(f)
            }
        }
    }
}

impl Restarts {
    fn fmt_pace(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at_a_time {
            None => Ok(()),
            Some(1) => write!(f, ", one at a time"),
            Some(count) if count < self.nodes.len() => write!(f, ", {count} at a time"),
            Some(_) => write!(f, ", all at once"),
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
            Restarts { scope: Scope::Pools(vec!["worker".into()]), nodes, at_a_time: None }.to_string()
        };
        assert_eq!(printed(0), "the nodes of pool worker (there are none now)");
        assert_eq!(printed(5), "5 nodes of pool worker: w1, w2, w3, w4, w5");
        assert_eq!(printed(6), "6 nodes of pool worker: w1, w2, w3, w4, w5 and 1 more");
    }

    #[test]
    fn pools_and_pace_are_told_as_far_as_they_are_known() {
        let printed = |pools: &[&str], count: usize, at_a_time: Option<usize>| {
            let pools = pools.iter().map(|pool| (*pool).to_owned()).collect();
            let nodes = (1..=count).map(|number| format!("w{number}")).collect();
            Restarts { scope: Scope::Pools(pools), nodes, at_a_time }.to_string()
        };
        assert_eq!(printed(&["a", "b"], 2, Some(1)), "2 nodes of the pools a, b: w1, w2, one at a time");
        assert_eq!(printed(&["a"], 3, Some(2)), "3 nodes of pool a: w1, w2, w3, 2 at a time");
        assert_eq!(printed(&["a"], 3, Some(3)), "3 nodes of pool a: w1, w2, w3, all at once");
        assert_eq!(printed(&["a"], 6, Some(2)), "6 nodes of pool a: w1, w2, w3, w4, w5 and 1 more, 2 at a time");
        assert_eq!(printed(&["a"], 1, Some(1)), "one node of pool a: w1");
        assert_eq!(printed(&[], 0, None), "no node: no pool takes it");
    }
}
