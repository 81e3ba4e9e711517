//! The one gate for creating, changing and deleting what restarts nodes.

use crate::object::digest::Digest;
use crate::restart::consent::{Consent, Needed};
use crate::restart::impact::Impact;
use crate::restart::window::{Maintenance, Window};
use jiff::Timestamp;

/// A write or deletion that asks to go ahead.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// What it does to the cluster.
    pub impact: Impact,
    /// What an approval has to name; `None` while that is not known.
    pub digest: Option<&'a Digest>,
    /// What lets it go ahead.
    pub needed: Needed,
    /// Whether it changes no value, or completes what went ahead before.
    pub changes_nothing: bool,
    /// Whether it goes ahead where the nodes run its result already: bringing that back restarts nothing.
    pub is_free_if_running: bool,
    /// Whether what is wanted as a whole is unclear.
    pub suspended: bool,
}

/// What holds for every request of one pool.
#[derive(Debug, Clone, Copy)]
pub struct Conditions<'a> {
    /// What the user agreed to.
    pub consent: &'a Consent,
    /// Whether the pool can take a change.
    pub pool: PoolState<'a>,
    /// Whether a maintenance window is open.
    pub window: Window,
    /// All maintenance windows.
    pub maintenance: &'a Maintenance,
}

/// Whether the pools of nodes that a change concerns can take it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PoolState<'a> {
    /// That is not known yet.
    #[default]
    Unknown,
    /// Their nodes run the result of the change already, so it restarts none.
    Running,
    /// They can, or there are none.
    Ready,
    /// They cannot, for this reason.
    NotReady(&'a str),
}

/// The answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate<'a> {
    /// Go ahead.
    Open,
    /// Find out first what it does to the pools of nodes.
    PoolUnknown,
    /// Wait until it is clear what is wanted.
    Suspended,
    /// Wait for an approval.
    NeedsApproval,
    /// Wait for a healthy pool.
    PoolNotReady {
        /// Why it is not.
        why: &'a str,
    },
    /// Wait for a maintenance window.
    WindowClosed {
        /// When it opens, as far as is known.
        opens: Option<Timestamp>,
    },
}

/// Whether a request may go ahead. Only what restarts nodes ever waits.
pub fn gate<'a>(request: &Request<'_>, conditions: &Conditions<'a>) -> Gate<'a> {
    if request.is_free(conditions) {
        return Gate::Open;
    }
    if conditions.pool == PoolState::Unknown {
        return Gate::PoolUnknown;
    }
    if request.suspended {
        return Gate::Suspended;
    }
    let is_approved = request.digest.is_some_and(|digest| conditions.consent.is_approved(digest));
    if !is_approved && !conditions.consent.is_waived(request.needed) {
        return Gate::NeedsApproval;
    }
    match (conditions.pool, conditions.window) {
        (PoolState::NotReady(why), _) => Gate::PoolNotReady { why },
        (_, Window::Closed { opens }) => Gate::WindowClosed { opens },
        (_, Window::Open) => Gate::Open,
    }
}

impl Request<'_> {
    /// Whether it restarts no node, whatever the conditions.
    fn is_free(&self, conditions: &Conditions<'_>) -> bool {
        let is_running = conditions.pool == PoolState::Running && self.is_free_if_running;
        self.impact != Impact::High || self.changes_nothing || is_running
    }

    /// Whether it can go ahead only because a person approved it, so that it uses up the approval.
    pub fn uses_approval(&self, conditions: &Conditions<'_>) -> bool {
        !self.is_free(conditions) && !conditions.consent.is_waived(self.needed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Conditions, Gate, PoolState, Request, gate};
    use crate::object::digest::Digest;
    use crate::restart::consent::{Consent, Needed};
    use crate::restart::impact::Impact;
    use crate::restart::window::{Maintenance, Window};
    use serde_json::json;

    #[test]
    fn only_an_approved_restart_of_a_healthy_pool_in_a_window_goes_ahead() {
        let digest = Digest::of(&json!(1));
        let high = Request {
            impact: Impact::High,
            digest: Some(&digest),
            needed: Needed::ApprovalOrPolicy,
            changes_nothing: false,
            is_free_if_running: true,
            suspended: false,
        };
        let (no, yes) = (Consent::default(), Consent { approved: [digest].into(), ..Consent::default() });
        let waived = Consent::read(Some("none"), None);
        let closed = Window::Closed { opens: None };
        let (ready, not_ready) = (PoolState::Ready, PoolState::NotReady("pool a is updating"));
        for (request, consent, pool, window, expected) in [
            (high, &yes, ready, Window::Open, Gate::Open),
            (high, &no, ready, Window::Open, Gate::NeedsApproval),
            (high, &no, not_ready, closed, Gate::NeedsApproval),
            (high, &yes, not_ready, closed, Gate::PoolNotReady { why: "pool a is updating" }),
            (high, &yes, ready, closed, Gate::WindowClosed { opens: None }),
            (Request { digest: None, ..high }, &yes, ready, Window::Open, Gate::NeedsApproval),
            (Request { digest: None, ..high }, &waived, ready, Window::Open, Gate::Open),
            (Request { needed: Needed::ApprovalOnly, ..high }, &waived, ready, Window::Open, Gate::NeedsApproval),
            (Request { needed: Needed::ApprovalOnly, ..high }, &yes, ready, Window::Open, Gate::Open),
            (Request { suspended: true, ..high }, &yes, ready, Window::Open, Gate::Suspended),
            (Request { changes_nothing: true, suspended: true, ..high }, &no, not_ready, closed, Gate::Open),
            (Request { suspended: true, ..high }, &no, PoolState::Running, closed, Gate::Open),
            (Request { is_free_if_running: false, ..high }, &no, PoolState::Running, closed, Gate::NeedsApproval),
            (Request { is_free_if_running: false, ..high }, &yes, PoolState::Running, Window::Open, Gate::Open),
            (high, &yes, PoolState::Unknown, Window::Open, Gate::PoolUnknown),
            (Request { changes_nothing: true, ..high }, &no, PoolState::Unknown, Window::Open, Gate::Open),
            (Request { impact: Impact::Medium, suspended: true, ..high }, &no, not_ready, closed, Gate::Open),
        ] {
            assert_eq!(
                gate(&request, &Conditions { consent, pool, window, maintenance: &Maintenance::Always }),
                expected,
                "{request:?}"
            );
        }
        let uses = |request: Request<'_>, consent: &Consent| {
            let (window, maintenance) = (Window::Open, &Maintenance::Always);
            request.uses_approval(&Conditions { consent, pool: ready, window, maintenance })
        };
        assert!(uses(high, &yes), "nothing else lets it go ahead");
        assert!(!uses(Request { impact: Impact::Medium, ..high }, &yes) && !uses(high, &waived));
        assert!(!uses(Request { changes_nothing: true, ..high }, &yes));
        assert!(uses(Request { needed: Needed::ApprovalOnly, ..high }, &waived));
    }
}
