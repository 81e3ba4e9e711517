//! A node of the cluster.

use std::collections::BTreeSet;

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its CPUs.
    pub cpus: u32,
    /// Its memory in bytes.
    pub memory: u64,
    /// Its bridges.
    pub bridges: BTreeSet<String>,
    /// Its address.
    pub address: String,
    /// Whether it answers.
    pub is_online: bool,
}
