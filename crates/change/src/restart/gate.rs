//! The one gate for creating, changing and deleting what restarts nodes.

use crate::object::digest::Digest;
use crate::restart::consent::{Consent, Needed};
use crate::restart::impact::Impact;

/// A write or deletion that asks to go ahead.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What it does to the cluster.
    pub impact: Impact,
    /// What an approval has to name; `None` while that is not known.
    pub digest: Option<&'a Digest>,
    /// What lets it go ahead.
    pub needed: Needed,
    /// Whether the nodes run the result already: bringing it back restarts nothing.
    pub already_running: bool,
    /// Whether what is wanted as a whole is unclear.
    pub suspended: bool,
}

/// What holds for every request of one pool.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// What the user agreed to.
    pub consent: &'a Consent,
    /// Whether the pool can take a change.
    pub pool: PoolState,
    /// Whether a maintenance window is open.
    pub window: Window,
}

/// Whether a pool of nodes can take a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PoolState {
    /// It can, or its health is not checked.
    #[default]
    Ready,
    /// It is degraded or still updating.
    NotReady,
}

/// Whether a maintenance window is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Window {
    /// It is, or none is defined.
    #[default]
    Open,
    /// None is open now.
    Closed,
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// Go ahead.
    Open,
    /// Wait until it is clear what is wanted.
    Suspended,
    /// Wait for an approval.
    NeedsApproval,
    /// Wait for a healthy pool.
    PoolNotReady,
    /// Wait for a maintenance window.
    WindowClosed,
}

/// Whether a request may go ahead. Only what restarts nodes ever waits.
pub fn gate(request: &Request<'_>, conditions: &Conditions<'_>) -> Gate {
    if request.impact != Impact::High || request.already_running {
        return Gate::Open;
    }
    if request.suspended {
        return Gate::Suspended;
    }
    let is_approved = request.digest.is_some_and(|digest| conditions.consent.is_approved(digest));
    if !is_approved && !conditions.consent.is_waived(request.needed) {
        return Gate::NeedsApproval;
    }
    match (conditions.pool, conditions.window) {
        (PoolState::NotReady, _) => Gate::PoolNotReady,
        (PoolState::Ready, Window::Closed) => Gate::WindowClosed,
        (PoolState::Ready, Window::Open) => Gate::Open,
    }
}

impl Request<'_> {
    /// Whether it can go ahead only because a person approved it, so that it uses up the approval.
    pub fn uses_approval(&self, conditions: &Conditions<'_>) -> bool {
        self.impact == Impact::High && !self.already_running && !conditions.consent.is_waived(self.needed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Conditions, Gate, PoolState, Request, Window, gate};
    use crate::object::digest::Digest;
    use crate::restart::consent::{Consent, Needed};
    use crate::restart::impact::Impact;
    use serde_json::json;

    #[test]
    fn only_an_approved_restart_of_a_healthy_pool_in_a_window_goes_ahead() {
        let digest = Digest::of(&json!(1));
        let high = Request {
            impact: Impact::High,
            digest: Some(&digest),
            needed: Needed::ApprovalOrPolicy,
            already_running: false,
            suspended: false,
        };
        let (no, yes) = (Consent::default(), Consent { approved: [digest].into(), ..Consent::default() });
        let waived = Consent::read(Some("none"), None);
        let (ready, not_ready) = (PoolState::Ready, PoolState::NotReady);
        for (request, consent, pool, window, expected) in [
            (high, &yes, ready, Window::Open, Gate::Open),
            (high, &no, ready, Window::Open, Gate::NeedsApproval),
            (high, &no, not_ready, Window::Closed, Gate::NeedsApproval),
            (high, &yes, not_ready, Window::Closed, Gate::PoolNotReady),
            (high, &yes, ready, Window::Closed, Gate::WindowClosed),
            (Request { digest: None, ..high }, &yes, ready, Window::Open, Gate::NeedsApproval),
            (Request { digest: None, ..high }, &waived, ready, Window::Open, Gate::Open),
            (Request { needed: Needed::ApprovalOnly, ..high }, &waived, ready, Window::Open, Gate::NeedsApproval),
            (Request { needed: Needed::ApprovalOnly, ..high }, &yes, ready, Window::Open, Gate::Open),
            (Request { suspended: true, ..high }, &yes, ready, Window::Open, Gate::Suspended),
            (Request { already_running: true, suspended: true, ..high }, &no, not_ready, Window::Closed, Gate::Open),
            (Request { impact: Impact::Medium, suspended: true, ..high }, &no, not_ready, Window::Closed, Gate::Open),
        ] {
            assert_eq!(gate(&request, &Conditions { consent, pool, window }), expected, "{request:?}");
        }
        let uses = |request: Request<'_>, consent: &Consent| {
            request.uses_approval(&Conditions { consent, pool: ready, window: Window::Open })
        };
        assert!(uses(high, &yes), "nothing else lets it go ahead");
        assert!(!uses(Request { impact: Impact::Medium, ..high }, &yes) && !uses(high, &waived));
        assert!(!uses(Request { already_running: true, ..high }, &yes));
        assert!(uses(Request { needed: Needed::ApprovalOnly, ..high }, &waived));
    }
}
