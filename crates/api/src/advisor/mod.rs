//! The API of the advisor: `VirtPlatformConfig`, a profile that a person reviews and approves.

mod authorship;
mod names;
mod phase;
mod spec;
mod status;

pub use authorship::Authorship;
pub use names::{AUTO_CREATED, FIELD_MANAGER, STATE};
pub use phase::Phase;
pub use spec::{Action, FailurePolicy, Remediation, VirtPlatformConfig, VirtPlatformConfigSpec, governs};
pub use status::{
    AppliedItem, AppliedPlan, ApprovedItem, ApprovedPlan, Condition, Impact, Input, InterruptedPlan, Item, ItemState,
    Operation, ReplacedPlan, TargetRef, Time, Truth, VirtPlatformConfigStatus,
};

/// The prefix of the annotations and labels that the advisor writes.
pub const PREFIX: &str = "advisor.kubevirt.io/";
