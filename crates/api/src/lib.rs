//! The names, keys and kinds that users see.

pub mod advisor;
pub mod annotation;
pub mod environment;
pub mod fleet;
pub mod hco;
pub mod metric;
pub mod reference;

/// The label of managed objects and its value; they are the predecessor's, so that its objects are recognised.
pub const MANAGED_BY: (&str, &str) = ("platform.kubevirt.io/managed-by", "virt-platform-autopilot");

/// The label on every backup; its value identifies the object.
pub const BACKUP_OF: &str = "platform.kubevirt.io/backup-of";
/// The type of the Secrets in which the first release stored backups.
pub const BACKUP_TYPE: &str = "platform.kubevirt.io/backup";

/// Kinds whose objects are never deleted, because deleting one deletes what it contains or defines.
pub const NEVER_REMOVED: [&str; 4] = ["HyperConverged", "Namespace", "CustomResourceDefinition", "LokiStack"];

/// Our field manager; it is the predecessor's, so that we own its fields from the first apply on.
pub const FIELD_MANAGER: &str = "virt-platform-autopilot";

/// The Lease for leader election; it is the predecessor's, so that it and we never both lead.
pub const LEASE: &str = "virt-platform-autopilot.kubevirt.io";
/// The ConfigMap for state that no managed object can carry, such as the recreation budget of a deleted object.
pub const STATE: &str = "virt-platform-autopilot-state";
/// The ConfigMap with the report that `virtpilot status` shows.
pub const STATUS: &str = "virt-platform-autopilot-status";
