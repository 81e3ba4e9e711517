//! What the gate's answer means for one object.

use crate::decision::{Decision, Verdict};
use change::gate::{Conditions, Request};
use change::{Gate, Planned, Reason, Restarts, gate};

/// What is decided instead of a write that may not go ahead yet; nothing if it may. Whoever is asked for an approval sees what is planned,
/// so without a plan the object is inspected first.
pub(crate) fn hold_at_gate(
    request: &Request<'_>,
    conditions: &Conditions<'_>,
    restarts: &Restarts,
    planned: Option<Planned>,
) -> Option<Decision> {
    let restarts = || restarts.clone();
    let reason = match gate(request, conditions) {
        Gate::Open => return None,
        Gate::Suspended => Reason::Suspended,
        Gate::PoolNotReady => Reason::PoolNotReady { restarts: restarts() },
        Gate::WindowClosed => Reason::WindowClosed,
        Gate::NeedsApproval => match planned {
            Some(planned) => Reason::NeedsApproval { digest: *request.digest, restarts: restarts(), planned },
            None => return Some(Decision::of(Verdict::Inspect)),
        },
    };
    Some(Decision::hold(reason))
}
