//! Which nodes restart when an object is written.

use serde::Serialize;
use std::fmt;

/// More names than these are counted.
const NAMED: usize = 5;

/// The nodes that restart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Restarts {
    /// Their pool, if the object names one.
    pub pool: Option<String>,
    /// Their names.
    pub nodes: Vec<String>,
}

impl fmt::Display for Restarts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(pool) = &self.pool else {
            return write!(f, "the nodes of the pools it selects");
        };
        let nodes = &self.nodes;
        match nodes.len() {
            0 => write!(f, "the nodes of pool {pool} (there are none now)"),
            1 => write!(f, "one node of pool {pool}: {}", nodes[0]),
            count if count > NAMED => {
                write!(f, "{count} nodes of pool {pool}: {} and {} more", nodes[..NAMED].join(", "), count - NAMED)
            }
            count => write!(f, "{count} nodes of pool {pool}: {}", nodes.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Restarts;

    #[test]
    fn more_than_five_nodes_are_counted() {
        let printed = |count: usize| {
            let nodes = (1..=count).map(|number| format!("w{number}")).collect();
            Restarts { pool: Some("worker".into()), nodes }.to_string()
        };
        assert_eq!(printed(0), "the nodes of pool worker (there are none now)");
        assert_eq!(printed(5), "5 nodes of pool worker: w1, w2, w3, w4, w5");
        assert_eq!(printed(6), "6 nodes of pool worker: w1, w2, w3, w4, w5 and 1 more");
    }
}
