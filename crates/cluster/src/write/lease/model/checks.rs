//! What stateright finds out about the model.

use super::rules::Rules;
use super::{Election, Faults, PodReport, Program};
use stateright::{Checker, HasDiscoveries, Model};
use std::time::Instant;

pub(super) const ONE: &str = "at most one replica acts as the leader";
pub(super) const RECOVERS: &str = "somebody leads soon if some replica runs and nothing goes wrong any more";
pub(super) const LAST_LEADS: &str = "the last replica leads";
pub(super) const FOLLOWED: &str = "a replica follows one whose pod has ended before its lease has";

const SLOW: i16 = 10;
const FAST: i16 = 11;

/// Two of ours whose clocks differ.
const OURS: [(Program, i16); 2] = [(Program::Ours, SLOW), (Program::Ours, FAST)];

fn faults(crashes: u8, pauses: u8, pods: u8, late: u8) -> Faults {
    Faults { crashes, pauses, pods, late }
}

/// Explores all states, or in order until a promise is broken; prints how many there are.
fn explore(what: &str, election: Election, until_broken: bool) -> impl Checker<Election> {
    let (begun, builder) = (Instant::now(), election.checker());
    let builder = match until_broken {
        true => builder.threads(1).finish_when(HasDiscoveries::AnyFailures),
        false => builder.threads(2),
    };
    let checker = builder.spawn_bfs().join();
    println!(
        "{what}: {} unique states, depth {}, {:.1} s",
        checker.unique_state_count(),
        checker.max_depth(),
        begun.elapsed().as_secs_f64()
    );
    checker
}

/// All states are explored, and none breaks a promise.
fn holds(what: &str, programs: &[(Program, i16)], faults: Faults) -> impl Checker<Election> {
    let checker = explore(what, Election { programs: programs.to_vec(), faults, rules: Rules::ALL }, false);
    for promise in [ONE, RECOVERS] {
        checker.assert_no_discovery(promise);
    }
    checker.assert_any_discovery(LAST_LEADS);
    checker
}

/// Without a rule two replicas lead; prints how.
fn breaks(what: &str, programs: &[(Program, i16)], faults: Faults, rules: Rules) {
    let checker = explore(what, Election { programs: programs.to_vec(), faults, rules }, true);
    let events = checker.assert_any_discovery(ONE).into_actions();
    println!("  two replicas lead after {} events: {events:?}", events.len());
}

#[test]
fn in_every_state_at_most_one_replica_leads_and_somebody_can() {
    holds("two replicas that crash and pause", &OURS, faults(1, 1, 0, 1));
    let checker = holds("two replicas that crash, and wrong reports about pods", &OURS, faults(1, 0, 1, 1));
    checker.assert_any_discovery(FOLLOWED);
    for (ours, go) in [(SLOW, FAST), (FAST, SLOW)] {
        let what = format!("a replica at rate {ours} and the Go operator at rate {go}");
        holds(&what, &[(Program::Ours, ours), (Program::Go, go)], faults(1, 1, 0, 1));
    }
    holds("three replicas", &[OURS[0], OURS[1], OURS[0]], faults(0, 0, 0, 0));
}

#[test]
fn without_a_rule_two_replicas_lead() {
    let (all, no_fault) = (Rules::ALL, faults(0, 0, 0, 0));
    breaks("without the check of the version", &OURS, no_fault, Rules { checks_version: false, ..all });
    breaks(
        "with leases that are observed too early",
        &OURS,
        faults(0, 1, 0, 0),
        Rules { observes_answers: false, ..all },
    );
    for report in [PodReport::Absent, PodReport::Abandoned, PodReport::Lost] {
        let trusts = Some(report);
        breaks(&format!("with trust in {report:?}"), &OURS, faults(0, 0, 1, 0), Rules { trusts, ..all });
    }
    breaks("with trust in the states of containers", &OURS, no_fault, Rules { trusts: Some(PodReport::Open), ..all });
    let go = [(Program::Go, SLOW), (Program::Ours, FAST)];
    breaks("without the margin for the Go operator", &go, no_fault, Rules { has_margin: false, ..all });
    breaks("with a client-go that ignores the duration", &go, no_fault, Rules { go_reads_duration: false, ..all });
}
