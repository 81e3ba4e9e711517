//! Nodes do not restart for an item while something is wrong with their pool.

use crate::testing::bed::TestBed;
use crate::testing::pack::OBJECTS;
use mco_stand_in::control;
use serde_json::{Value, json};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// Somebody else changes the configuration of the workers.
fn roll(bed: &mut TestBed, argument: &str) {
    bed.edit(
        "MachineConfig 50-foreign",
        &json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": [argument]}}),
    );
}

fn fails(value: &Value) -> Value {
    json!({"metadata": {"annotations": {control::UPDATE_FAILS: value}}})
}

#[test]
fn an_item_that_restarts_nodes_waits_until_their_pool_is_ready() {
    for is_degraded in [false, true] {
        let mut bed = TestBed::new();
        bed.ask(json!({"action": "DryRun"}));
        bed.run();
        if is_degraded {
            bed.edit("Node w0", &fails(&json!("true")));
        }
        roll(&mut bed, "quiet");
        bed.run_for(2 * MINUTE);
        // The plan is another one now: the pool runs something else.
        bed.approve();
        bed.run_for(MINUTE);
        let message = bed.item("args")["message"].as_str().unwrap_or_default().to_owned();
        let expected = if is_degraded { "pool worker is degraded" } else { "pool worker is updating" };
        assert!(message.starts_with(expected), "{message}: {}", bed.lines.concat());
        assert_eq!((bed.phase().as_str(), bed.item("args")["state"].as_str()), ("InProgress", Some("Pending")));
        assert!(bed.condition("Progressing")["message"].as_str().unwrap().contains(expected), "{}", bed.status());
        assert_eq!((bed.stored(OBJECTS[0]), bed.stored(OBJECTS[2])), (None, None), "nor the items after it");
        bed.edit("Node w0", &fails(&Value::Null));
        bed.run_for(6 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Completed", 2), "{}", bed.lines.concat());
    }
}

#[test]
fn what_degraded_a_pool_can_be_rolled_back() {
    let mut bed = TestBed::new();
    bed.edit("Node w0", &fails(&json!("true")));
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Failed", "{}", bed.status());
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run_for(MINUTE);
    bed.approve();
    bed.run_for(MINUTE);
    assert_eq!(bed.stored(OBJECTS[0]), None, "{}", bed.lines.concat());
}
