//! The names under which the autopilot writes: the predecessor's, so that its objects and its lease are ours.

use change::Identity;

/// The autopilot's identity.
pub const IDENTITY: Identity = Identity {
    field_manager: api::FIELD_MANAGER,
    label: api::MANAGED_BY,
    annotation_prefix: api::annotation::PREFIX,
    lease: api::LEASE,
};
