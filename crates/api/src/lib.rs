//! What users write: the names, keys and kinds that virtpilot honours.

pub mod annotation;
pub mod hco;

/// The label on every object we manage, and its value: the predecessor's, so that its objects are known as ours.
pub const MANAGED_BY: (&str, &str) = ("platform.kubevirt.io/managed-by", "virt-platform-autopilot");

/// The label on every backup; its value stands for the object it is of.
pub const BACKUP_OF: &str = "platform.kubevirt.io/backup-of";
/// The type of a Secret that is a backup.
pub const BACKUP_TYPE: &str = "platform.kubevirt.io/backup";

/// Kinds whose objects we never remove: what is in them, or made from them, goes with them.
pub const NEVER_REMOVED: [&str; 4] = ["HyperConverged", "Namespace", "CustomResourceDefinition", "LokiStack"];

/// The name under which we apply: the predecessor's, so that its fields are ours from the first apply on.
pub const FIELD_MANAGER: &str = "virt-platform-autopilot";

/// The Lease of whoever leads: the predecessor's, so that it and we never both lead.
pub const LEASE: &str = "virt-platform-autopilot.kubevirt.io";
/// The ConfigMap in which we write down what no object can carry.
pub const STATE: &str = "virt-platform-autopilot-state";
