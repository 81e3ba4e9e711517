//! What the gate depends on beside the change itself: consent, the pools it concerns, the maintenance window.

use super::managed::Policy;
use change::gate::{Conditions, PoolState};

/// The conditions for a change of one object.
pub(super) fn conditions(policy: Policy<'_>) -> Conditions<'_> {
    let pool = match policy.outlook {
        None => PoolState::Unknown,
        Some(outlook) if outlook.is_running => PoolState::Running,
        Some(outlook) => outlook.why_not_ready.as_deref().map_or(PoolState::Ready, PoolState::NotReady),
    };
    let window = policy.maintenance.at(policy.now);
    Conditions { consent: policy.consent, pool, window, maintenance: policy.maintenance }
}
