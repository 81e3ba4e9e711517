//! The API of the advisor: `VirtPlatformConfig`, a profile that a person reviews and approves.

mod names;
mod phase;
mod spec;
mod status;

pub use names::{FIELD_MANAGER, STATE};
pub use phase::Phase;
pub use spec::{Action, FailurePolicy, Remediation, VirtPlatformConfig, VirtPlatformConfigSpec};
pub use status::{
    AppliedItem, AppliedPlan, ApprovedItem, ApprovedPlan, Condition, Impact, Input, Item, ItemState, Operation,
    ReplacedPlan, TargetRef, Time, Truth, VirtPlatformConfigStatus,
};

/// The prefix of the annotations and labels that the advisor writes.
pub const PREFIX: &str = "advisor.kubevirt.io/";
