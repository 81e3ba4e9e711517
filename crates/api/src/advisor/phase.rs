//! The phases of a `VirtPlatformConfig`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where a profile is on its way from a spec to an applied plan. It is computed from the cluster each time, and never read back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Nothing is known of the cluster yet.
    Pending,
    /// The plan is being made.
    Drafting,
    /// Something that the profile needs is missing.
    PrerequisiteFailed,
    /// A plan waits for a person.
    ReviewRequired,
    /// An approved plan is being applied, or waits for nodes.
    InProgress,
    /// The cluster is as the profile wants it.
    Completed,
    /// Everything that could be applied was, and some items have failed.
    CompletedWithErrors,
    /// The cluster is as it was approved, and this version of the operator would configure it differently.
    CompletedWithUpgrade,
    /// An item has failed, and the rest waits.
    Failed,
    /// Somebody has changed what was applied.
    Drifted,
    /// The profile is left alone.
    Ignored,
}
