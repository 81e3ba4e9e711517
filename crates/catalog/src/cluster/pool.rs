//! The facts about a MachineConfigPool.

use serde::{Deserialize, Serialize};

/// A `MachineConfigPool`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Pool {
    /// The name.
    pub name: String,
    /// Whether changes are paused.
    pub paused: bool,
    /// Whether machines are being updated.
    pub updating: bool,
    /// Whether the update of a machine failed.
    pub degraded: bool,
    /// The number of machines.
    pub machine_count: i64,
}
