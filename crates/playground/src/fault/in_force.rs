//! The plan in force: which request is due for which fault, and which faults came true.

use super::asked::Asked;
use super::plan::{Fault, Plan};
use crate::trouble::Trouble;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// A fault that came true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    /// The rule's place in the plan, counted from 0.
    pub rule: usize,
    /// What the plan calls the fault.
    pub fault: &'static str,
    /// The request it happened to.
    pub seq: u64,
}

/// What is to happen to one request, as long as the plan stays in force.
#[derive(Debug, Clone)]
pub(super) struct Order {
    generation: u64,
    rule: usize,
    pub(super) fault: Fault,
}

type Kill = Arc<dyn Fn() + Send + Sync>;

pub(super) struct InForce {
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
    /// For each rule, the requests it covered so far.
    covered: Vec<u64>,
    fired: Vec<Fired>,
}

impl InForce {
    pub(super) fn nothing() -> InForce {
        InForce {
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
        *state = State { generation, covered: vec![0; plan.rules.len()], plan, fired: Vec::new() };
        // Under the lock, so that a late one of the old plan cannot be counted for the new.
        self.fired.send_replace(0);
        self.generation.send_replace(generation);
    }

    pub(super) fn on_kill(&self, kill: Kill) {
        *self.kill.lock().unwrap_or_else(PoisonError::into_inner) = Some(kill);
    }

    /// Counts a request, and says what is to happen to it under which plan.
    pub(super) fn due(&self, asked: &Asked) -> (Option<Order>, u64) {
        let mut state = self.state();
        let State { generation, plan, covered, .. } = &mut *state;
        let mut due = None;
        for (index, rule) in plan.rules.iter().enumerate().filter(|(_, rule)| rule.covers(asked)) {
            covered[index] += 1;
            if due.is_none() && rule.matching.nth.is_none_or(|nth| nth.get() == covered[index]) {
                due = Some(Order { generation: *generation, rule: index, fault: rule.fault.clone() });
            }
        }
        (due, *generation)
    }

    /// What is to happen to a watch that was open before the plan came into force: a rule about every watch is about it, too.
    pub(super) fn due_while_open(&self, asked: &Asked) -> Option<Order> {
        let state = self.state();
        let mut rules = state.plan.rules.iter().enumerate();
        let (index, rule) =
            rules.find(|(_, rule)| rule.fault.is_in_stream() && rule.matching.nth.is_none() && rule.covers(asked))?;
        Some(Order { generation: state.generation, rule: index, fault: rule.fault.clone() })
    }

    /// Writes down that a fault comes true now; it does not if another plan is in force by now.
    pub(super) fn fire(&self, order: &Order, seq: u64) -> bool {
        let mut state = self.state();
        if state.generation != order.generation {
            return false;
        }
        state.fired.push(Fired { rule: order.rule, fault: order.fault.name(), seq });
        self.fired.send_replace(state.fired.len());
        true
    }

    /// Kills the program under test; what it had sent and is not forwarded yet dies with its connections.
    pub(super) fn kill(&self) {
        let kill = self.kill.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(kill) = kill {
            kill();
        }
        self.kills.send_modify(|count| *count += 1);
    }

    pub(super) fn fired(&self) -> Vec<Fired> {
        self.state().fired.clone()
    }

    /// Complains about the rules that never came true.
    pub(super) fn proof(&self) -> Result<(), Trouble> {
        let state = self.state();
        let silent = |index: &usize| !state.fired.iter().any(|fired| fired.rule == *index);
        let lines: Vec<String> = (0..state.plan.rules.len())
            .filter(silent)
            .map(|index| {
                let rule = serde_json::to_string(&state.plan.rules[index]).unwrap_or_default();
                format!("{rule} matched {} requests", state.covered[index])
            })
            .collect();
        if lines.is_empty() {
            return Ok(());
        }
        Err(Trouble::new("a fault of the plan never happened", "compare its match with the proxy's requests")
            .because(lines.join("\n")))
    }

    /// The number of faults that came true, as it grows.
    pub(super) fn count(&self) -> watch::Receiver<usize> {
        self.fired.subscribe()
    }

    /// The number of the plan, as it changes.
    pub(super) fn generation(&self) -> watch::Receiver<u64> {
        self.generation.subscribe()
    }

    /// Changes with every kill.
    pub(super) fn kills(&self) -> watch::Receiver<u64> {
        self.kills.subscribe()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::super::asked::asked;
    use super::super::plan::Plan;
    use super::InForce;

    fn in_force(plan: &str) -> InForce {
        let in_force = InForce::nothing();
        in_force.set(Plan::parse(plan).unwrap());
        in_force
    }

    #[test]
    fn the_nth_matching_request_since_the_plan_was_set_is_due() {
        let in_force = in_force("{match: {verb: patch, nth: 2}, fault: reset}");
        let patch = asked("PATCH", "/api/v1/nodes/a");
        let dues = |in_force: &InForce| (0..3).map(|_| in_force.due(&patch).0.is_some()).collect::<Vec<_>>();
        assert!(in_force.due(&asked("GET", "/api/v1/nodes/a")).0.is_none());
        assert_eq!(dues(&in_force), [false, true, false]);
        in_force.set(Plan::parse("{match: {verb: patch, nth: 2}, fault: reset}").unwrap());
        assert_eq!(dues(&in_force), [false, true, false]);
    }

    #[test]
    fn every_rule_counts_for_itself_and_the_first_that_is_due_is_applied() {
        let in_force = in_force("[{match: {nth: 2}, fault: reset}, {match: {verb: get}, fault: block}]");
        let names: Vec<_> = (0..3).map(|_| in_force.due(&asked("GET", "/version")).0.unwrap().fault.name()).collect();
        assert_eq!(names, ["block", "reset", "block"]);
    }

    #[test]
    fn a_fault_of_a_plan_that_was_replaced_does_not_count() {
        let in_force = in_force("{fault: reset}");
        let order = in_force.due(&asked("GET", "/version")).0.unwrap();
        assert!(in_force.fire(&order, 1));
        assert!(in_force.proof().is_ok());
        in_force.set(Plan::parse("{fault: block}").unwrap());
        assert!(!in_force.fire(&order, 1));
        assert!(in_force.fired().is_empty());
        let trouble = in_force.proof().unwrap_err().to_string();
        assert!(trouble.contains(r#"{"match":{},"fault":{"block":{}}} matched 0 requests"#), "{trouble}");
    }

    #[test]
    fn an_open_watch_is_due_for_a_rule_about_every_watch_alone() {
        let watch = asked("GET", "/api/v1/nodes?watch=true");
        assert!(in_force("{fault: cut}").due_while_open(&watch).is_some());
        assert!(in_force("{match: {nth: 1}, fault: cut}").due_while_open(&watch).is_none());
        assert!(in_force("{match: {path: /pods}, fault: cut}").due_while_open(&watch).is_none());
        assert!(in_force("{match: {verb: watch}, fault: reset}").due_while_open(&watch).is_none());
    }
}
