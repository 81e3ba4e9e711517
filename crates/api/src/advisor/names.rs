//! The names under which the advisor writes: the predecessor's, so that its objects are ours.

/// The field manager of the advisor.
pub const FIELD_MANAGER: &str = "virt-advisor-operator";
/// The ConfigMap in which the advisor remembers which profiles it has advertised.
pub const STATE: &str = "virt-advisor-state";
/// The annotation, with the value `true`, of a `VirtPlatformConfig` that the advisor created to tell of a profile.
pub const AUTO_CREATED: &str = "advisor.kubevirt.io/auto-created";
