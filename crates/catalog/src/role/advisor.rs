//! The role of the advisor.

/// The name of the advisor's service account, roles and Deployment, which is also its field manager.
pub const ADVISOR: &str = "virt-advisor-operator";
