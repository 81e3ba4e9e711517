//! The API of the advisor: `VirtPlatformConfig`, a profile that a person reviews and approves.

mod phase;
mod spec;
mod status;

pub use phase::Phase;
pub use spec::{Action, FailurePolicy, Remediation, VirtPlatformConfig, VirtPlatformConfigSpec};
pub use status::{
    Condition, Impact, Input, Item, ItemState, Operation, TargetRef, Time, Truth, VirtPlatformConfigStatus,
};

/// Its API group.
pub const GROUP: &str = "advisor.kubevirt.io";
/// Its version.
pub const VERSION: &str = "v1alpha1";
/// The field manager of what the advisor applies; it is the predecessor's, so that its fields are ours from the first apply on.
pub const FIELD_MANAGER: &str = "virt-advisor-operator";
/// What a profile is for, on an object that was advertised.
pub const DESCRIPTION: &str = "advisor.kubevirt.io/description";
/// What a profile may do to nodes and virtual machines, on an object that was advertised.
pub const IMPACT_SUMMARY: &str = "advisor.kubevirt.io/impact-summary";
/// Marks an object that was advertised.
pub const AUTO_CREATED: &str = "advisor.kubevirt.io/auto-created";
/// The label with the category of a profile.
pub const CATEGORY: &str = "advisor.kubevirt.io/category";
