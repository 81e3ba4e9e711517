//! The names under which the fleet writes.

use api::fleet;
use change::Identity;

/// The identity of the fleet.
pub const IDENTITY: Identity = Identity {
    field_manager: fleet::FIELD_MANAGER,
    label: fleet::MANAGED_BY,
    annotation_prefix: fleet::PREFIX,
    lease: fleet::LEASE,
};
