//! What the gate depends on beside the change itself: consent, the health of the pool, the maintenance window.

use super::managed::Policy;
use change::Window;
use change::gate::{Conditions, PoolState};

/// The conditions for a change of one object. Pool health and maintenance windows are not read yet, so they never hold a change.
pub(super) fn conditions(policy: Policy<'_>) -> Conditions<'_> {
    Conditions { consent: policy.consent, pool: PoolState::default(), window: Window::default() }
}
