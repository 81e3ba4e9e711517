//! A pool of machines that restart together.

use serde::{Deserialize, Serialize};

/// What a `MachineConfigPool` says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Pool {
    /// Its name.
    pub name: String,
    /// Changes wait until somebody lets them through.
    pub paused: bool,
    /// Machines are being changed.
    pub updating: bool,
    /// A machine could not be changed.
    pub degraded: bool,
    /// How many machines it has.
    pub machine_count: i64,
}
