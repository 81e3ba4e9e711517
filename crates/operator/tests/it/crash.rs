//! A crash after any write leads to the same end state.

use crate::advice_scenario::{self, ADVICE};
use crate::fixture::{Fixture, Scenario, assert_same};
use crate::override_scenario::{OVERRIDES, run};
use playground::fault::{Fault, Match, Plan, Rule, Verb};
use serde_json::Value;
use std::num::NonZeroU64;

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_any_write_leads_to_the_same_end_state() {
    let writes = crash_after_every_write(&OVERRIDES, run).await;
    assert!(writes >= 15, "{writes}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_after_any_write_or_status_changes_nothing_of_a_plan() {
    let writes = crash_after_every_write(&ADVICE, advice_scenario::run).await;
    assert!(writes >= 15, "{writes}");
}

async fn crash_after_every_write(
    scenario: &'static Scenario,
    run: impl AsyncFn(&Fixture, Option<&Value>) -> Value,
) -> u64 {
    let fixture = Fixture::start(scenario).await;
    let fault_free = run(&fixture, None).await;
    let mut writes = 0;
    for nth in (1..).map_while(NonZeroU64::new) {
        let matching = Match { verb: Some(Verb::Write), path: None, nth: Some(nth) };
        fixture.proxy.set(Plan::from(Rule { matching, fault: Fault::KillAfterCommit {} }));
        assert_same(&run(&fixture, Some(&fault_free)).await, &fault_free, &format!("killed after write {nth}"));
        if fixture.proxy.fired().is_empty() {
            // There is no such write: the operator was killed after every one.
            break;
        }
        writes = nth.get();
    }
    println!("the scenario takes {writes} writes");
    writes
}
