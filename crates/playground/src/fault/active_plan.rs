//! The active plan: which fault applies to which request, and which faults have been injected.

use super::lock;
use super::plan::{Fault, Plan};
use super::request_info::RequestInfo;
use crate::user_error::UserError;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// A fault that has been injected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The rule's index in the plan, counted from 0.
    pub rule: usize,
    /// The fault's name in the plan.
    pub fault: &'static str,
    /// The sequence number of the affected request.
    pub seq: u64,
}

/// The fault to inject into one request, valid as long as the plan is active.
#[derive(Debug, Clone)]
pub(super) struct PendingFault {
    generation: u64,
    rule: usize,
    pub(super) fault: Fault,
}

type Kill = Arc<dyn Fn() + Send + Sync>;

pub(super) struct ActivePlan {
    state: Mutex<State>,
    kill: Mutex<Option<Kill>>,
    generation: watch::Sender<u64>,
    fired: watch::Sender<usize>,
    kills: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    generation: u64,
    plan: Plan,
    /// For each rule, how many requests have matched it so far.
    matched: Vec<u64>,
    fired: Vec<Fired>,
}

impl ActivePlan {
    pub(super) fn empty() -> ActivePlan {
        ActivePlan {
            state: Mutex::default(),
            kill: Mutex::default(),
            generation: watch::Sender::new(0),
            fired: watch::Sender::new(0),
            kills: watch::Sender::new(0),
        }
    }

    pub(super) fn set(&self, plan: Plan) {
        let mut state = self.state();
        let generation = state.generation + 1;
        *state = State { generation, matched: vec![0; plan.rules.len()], plan, fired: Vec::new() };
        // Under the lock, so that a late fault of the old plan is not counted for the new one.
        self.fired.send_replace(0);
        self.generation.send_replace(generation);
    }

    pub(super) fn on_kill(&self, kill: Kill) {
        *lock(&self.kill) = Some(kill);
    }

    /// Counts a request and returns the fault to inject, if any, and the plan's generation.
    pub(super) fn due(&self, request: &RequestInfo) -> (Option<PendingFault>, u64) {
        let mut state = self.state();
        let State { generation, plan, matched, .. } = &mut *state;
        let mut due = None;
        for (index, rule) in plan.rules.iter().enumerate().filter(|(_, rule)| rule.matches(request)) {
            matched[index] += 1;
            if due.is_none() && rule.matching.nth.is_none_or(|nth| nth.get() == matched[index]) {
                due = Some(PendingFault { generation: *generation, rule: index, fault: rule.fault.clone() });
            }
        }
        (due, *generation)
    }

    /// The fault for a watch that was opened under an earlier plan: only a rule without `nth` applies to it.
    pub(super) fn due_for_open_watch(&self, request: &RequestInfo) -> Option<PendingFault> {
        let state = self.state();
        let mut rules = state.plan.rules.iter().enumerate();
        let (index, rule) = rules
            .find(|(_, rule)| rule.fault.applies_to_events() && rule.matching.nth.is_none() && rule.matches(request))?;
        Some(PendingFault { generation: state.generation, rule: index, fault: rule.fault.clone() })
    }

    /// Records that a fault is injected now; returns false if another plan has become active.
    pub(super) fn fire(&self, pending: &PendingFault, seq: u64) -> bool {
        let mut state = self.state();
        if state.generation != pending.generation {
            return false;
        }
        state.fired.push(Fired { rule: pending.rule, fault: pending.fault.name(), seq });
        self.fired.send_replace(state.fired.len());
        true
    }

    /// Kills the program under test; its unforwarded requests are dropped with its connections.
    pub(super) fn kill(&self) {
        let kill = lock(&self.kill).clone();
        if let Some(kill) = kill {
            kill();
        }
        self.kills.send_modify(|count| *count += 1);
    }

    pub(super) fn fired(&self) -> Vec<Fired> {
        self.state().fired.clone()
    }

    /// Fails if a rule was never applied.
    pub(super) fn check_all_fired(&self) -> Result<(), UserError> {
        let state = self.state();
        let never_fired = |index: &usize| !state.fired.iter().any(|fired| fired.rule == *index);
        let lines: Vec<String> = (0..state.plan.rules.len())
            .filter(never_fired)
            .map(|index| {
                let rule = serde_json::to_string(&state.plan.rules[index]).unwrap_or_default();
                format!("{rule} matched {} requests", state.matched[index])
            })
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        Err(UserError::new("a fault of the plan was never injected", "compare its match with the proxy's requests")
            .with_detail(lines.join("\n")))
    }

    /// The number of injected faults, as it grows.
    pub(super) fn count(&self) -> watch::Receiver<usize> {
        self.fired.subscribe()
    }

    /// The plan's generation, as it changes.
    pub(super) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Changes with every kill.
    pub(super) fn kills(&self) -> watch::Receiver<u64> {
        self.kills.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

#[cfg(test)]
mod tests {
    use super::super::plan::Plan;
    use super::super::request_info::request_info;
    use super::ActivePlan;

    fn active(plan: &str) -> ActivePlan {
        let active = ActivePlan::empty();
        active.set(Plan::parse(plan).unwrap());
        active
    }

    #[test]
    fn the_nth_matching_request_since_the_plan_was_set_gets_the_fault() {
        let active = active("{match: {verb: patch, nth: 2}, fault: reset}");
        let patch = request_info("PATCH", "/api/v1/nodes/a");
        let dues = |active: &ActivePlan| (0..3).map(|_| active.due(&patch).0.is_some()).collect::<Vec<_>>();
        assert!(active.due(&request_info("GET", "/api/v1/nodes/a")).0.is_none());
        assert_eq!(dues(&active), [false, true, false]);
        active.set(Plan::parse("{match: {verb: patch, nth: 2}, fault: reset}").unwrap());
        assert_eq!(dues(&active), [false, true, false]);
    }

    #[test]
    fn every_rule_counts_its_own_matches_and_the_first_due_rule_is_applied() {
        let active = active("[{match: {nth: 2}, fault: reset}, {match: {verb: get}, fault: block}]");
        let names: Vec<_> =
            (0..3).map(|_| active.due(&request_info("GET", "/version")).0.unwrap().fault.name()).collect();
        assert_eq!(names, ["block", "reset", "block"]);
    }

    #[test]
    fn a_fault_of_a_replaced_plan_is_not_counted() {
        let active = active("{fault: reset}");
        let pending = active.due(&request_info("GET", "/version")).0.unwrap();
        assert!(active.fire(&pending, 1));
        assert!(active.check_all_fired().is_ok());
        active.set(Plan::parse("{fault: block}").unwrap());
        assert!(!active.fire(&pending, 1));
        assert!(active.fired().is_empty());
        let error = active.check_all_fired().unwrap_err().to_string();
        assert!(error.contains(r#"{"match":{},"fault":{"block":{}}} matched 0 requests"#), "{error}");
    }

    #[test]
    fn only_a_rule_without_nth_applies_to_an_open_watch() {
        let watch = request_info("GET", "/api/v1/nodes?watch=true");
        assert!(active("{fault: cut}").due_for_open_watch(&watch).is_some());
        assert!(active("{match: {nth: 1}, fault: cut}").due_for_open_watch(&watch).is_none());
        assert!(active("{match: {path: /pods}, fault: cut}").due_for_open_watch(&watch).is_none());
        assert!(active("{match: {verb: watch}, fault: reset}").due_for_open_watch(&watch).is_none());
    }
}
