//! Nodes do not restart for an item while something is wrong with their pool.

use crate::Notice;
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

/// An approved plan whose first item waits for a pool that is degraded.
fn held(mut spec: Value) -> TestBed {
    let mut bed = TestBed::new();
    bed.edit("Node w0", &fails(&json!("true")));
    roll(&mut bed, "quiet");
    bed.run_for(2 * MINUTE);
    spec["action"] = json!("DryRun");
    bed.ask(spec);
    bed.run();
    bed.approve();
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.item("args")["state"].as_str()), ("InProgress", Some("Pending")));
    assert_eq!(bed.condition("Progressing")["reason"], "Waiting");
    bed
}

#[test]
fn an_item_that_is_held_for_longer_than_it_may_take_has_failed_and_is_written_once_it_is_held_no_more() {
    for (policy, phase, limits) in [("Abort", "Failed", "Pending"), ("Continue", "CompletedWithErrors", "Completed")] {
        let mut bed = held(json!({"waitTimeout": "30m", "failurePolicy": policy}));
        // A new process does not begin anew.
        bed.run_for(20 * MINUTE);
        bed.restart();
        bed.run_for(8 * MINUTE);
        assert_eq!(bed.phase(), "InProgress");
        bed.run_for(2 * MINUTE);
        assert_eq!((bed.phase().as_str(), bed.item("args")["state"].as_str()), (phase, Some("Failed")));
        let message = bed.item("args")["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.starts_with("not written after 30 min: pool worker is degraded"), "{message}");
        assert_eq!(bed.condition("Degraded")["status"], "True");
        assert_eq!(bed.item("limits")["state"], limits, "{policy}");
        assert!(bed.stored(OBJECTS[0]).is_none());
        bed.edit("Node w0", &fails(&Value::Null));
        bed.run_for(6 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Completed", 2), "{}", bed.lines.concat());
        assert!(bed.item("args")["heldSince"].is_null());
    }
}

#[test]
fn an_item_that_is_held_for_an_hour_without_a_limit_is_reported_and_waits_on() {
    let mut bed = held(json!({}));
    assert_eq!(bed.condition("Degraded")["status"], "False");
    bed.run_for(55 * MINUTE);
    let (statuses, since) = (bed.sent.0, bed.item("args")["heldSince"].clone());
    assert!(since.is_string(), "{:#}", bed.item("args"));
    bed.run_for(10 * MINUTE);
    assert_eq!(bed.sent.0, statuses + 1, "one status for this change");
    assert_eq!((bed.phase().as_str(), &bed.item("args")["heldSince"]), ("InProgress", &since));
    let degraded = bed.condition("Degraded");
    assert_eq!((&degraded["status"], &degraded["reason"]), (&json!("True"), &json!("WaitingForLong")));
    let message = degraded["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("it has waited for an hour: args: pool worker is degraded"), "{message}");
    bed.run_for(6 * HOUR);
    assert_eq!(bed.sent.0, statuses + 1, "it is reported once");
    bed.edit("Node w0", &fails(&Value::Null));
    bed.run_for(6 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

/// Somebody changes the object of the first item.
fn change_args(bed: &mut TestBed, argument: &str) {
    bed.edit(
        OBJECTS[0],
        &json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": [argument]}}),
    );
}

/// The plan is approved while the pool follows somebody else's change, and its first item waits for that.
fn approve_while_another_change_rolls(bed: &mut TestBed, is_degraded: bool) {
    if is_degraded {
        bed.edit("Node w0", &fails(&json!("true")));
    }
    roll(bed, "quiet");
    bed.run_for(2 * MINUTE);
    bed.approve();
    bed.run_for(MINUTE);
    let message = bed.item("args")["message"].as_str().unwrap_or_default().to_owned();
    let expected = if is_degraded { "pool worker is degraded" } else { "pool worker is updating" };
    assert!(message.starts_with(expected), "{message}: {}", bed.lines.concat());
}

#[test]
fn a_change_of_an_object_that_exists_waits_while_its_pool_follows_somebody_elses_change() {
    for is_degraded in [false, true] {
        let mut bed = TestBed::new();
        change_args(&mut bed, "psi=0");
        bed.run_for(2 * HOUR);
        bed.ask(json!({"action": "DryRun"}));
        bed.run();
        assert_eq!(bed.item("args")["operation"], "Update");
        approve_while_another_change_rolls(&mut bed, is_degraded);
        assert_eq!(bed.value(OBJECTS[0], "/spec/kernelArguments"), json!(["psi=0"]), "{}", bed.lines.concat());
        bed.edit("Node w0", &fails(&Value::Null));
        bed.run_for(6 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Completed", 3), "{}", bed.lines.concat());
    }
}

#[test]
fn a_change_of_the_very_object_that_degraded_its_pool_is_written_to_repair_it() {
    // Somebody adds to it, or takes all of it away.
    for broken in [json!(["psi=1", "broken=1"]), json!([])] {
        let mut bed = TestBed::new();
        bed.complete();
        bed.edit("Node w0", &fails(&json!("true")));
        bed.edit(OBJECTS[0], &json!({"spec": {"kernelArguments": broken}}));
        bed.run_for(HOUR);
        assert_eq!(bed.phase(), "Drifted", "{}", bed.status());
        bed.ask(json!({"action": "DryRun", "approvedPlan": null}));
        bed.run();
        bed.approve();
        bed.run_for(MINUTE);
        assert_eq!(bed.value(OBJECTS[0], "/spec/kernelArguments"), json!(["psi=1"]), "{}", bed.lines.concat());
    }
}

#[test]
fn a_removal_waits_while_its_pool_follows_somebody_elses_change() {
    for is_degraded in [false, true] {
        let mut bed = TestBed::new();
        bed.complete();
        bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
        bed.run();
        assert_eq!(bed.item("args")["operation"], "Delete");
        approve_while_another_change_rolls(&mut bed, is_degraded);
        assert!(bed.stored(OBJECTS[0]).is_some());
        bed.edit("Node w0", &fails(&Value::Null));
        bed.run_for(6 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Completed", 3), "{}", bed.lines.concat());
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

#[test]
fn what_somebody_else_had_done_before_the_approval_is_not_reported_as_written() {
    for policy in ["Abort", "Continue"] {
        let mut bed = TestBed::new();
        bed.edit(
            OBJECTS[0],
            &json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}},
            "spec": {"kernelArguments": ["psi=1"]}}),
        );
        bed.run_for(MINUTE);
        bed.ask(json!({"action": "DryRun", "failurePolicy": policy}));
        bed.run();
        let item = bed.item("args");
        assert_eq!((item["operation"].as_str(), item["state"].as_str()), (Some("Keep"), Some("InProgress")), "{item}");
        bed.approve();
        bed.run_for(6 * HOUR);
        assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
        let written = ["args", "limits", "sizes"].map(|item| bed.item(item)["appliedTime"].is_string());
        assert_eq!(written, [false, true, true], "{}", bed.status());
        let reported = |notice: &&Notice| matches!(notice, Notice::Applied { item, .. } if item == "args");
        assert_eq!(bed.notices.iter().filter(reported).count(), 0, "nor is it reported");
    }
}
