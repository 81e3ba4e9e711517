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
