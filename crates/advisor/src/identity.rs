//! The names under which the advisor writes: the predecessor's field manager, so that its objects are ours.

use change::Identity;

/// The advisor's identity.
pub const IDENTITY: Identity = Identity {
    field_manager: FIELD_MANAGER,
    label: ("advisor.kubevirt.io/category", ""),
    annotation_prefix: PREFIX,
    lease: "virt-advisor-operator.kubevirt.io",
};

/// Its field manager.
pub use api::advisor::FIELD_MANAGER;
/// The prefix of its annotations.
pub const PREFIX: &str = api::advisor::PREFIX;
/// On every object that it has written: the profile.
pub const PROFILE: &str = "advisor.kubevirt.io/profile";
/// On every object that it has written: the values that were replaced, as JSON; `null` if it was created.
pub const BEFORE: &str = "advisor.kubevirt.io/before";
/// On an object that its own template looks at: what was applied, as JSON. What somebody changes afterwards is drift, and not what the template
/// derives the next content from.
pub const APPLIED: &str = "advisor.kubevirt.io/applied";
