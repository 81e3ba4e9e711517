//! What approves a plan, and what does not.

use crate::testing::bed::TestBed;
use crate::testing::pack::{OBJECTS, PROFILE};
use serde_json::json;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// How many writes were made that are not of a status.
fn written(bed: &TestBed) -> usize {
    bed.sent.1
}

#[test]
fn a_profile_that_the_predecessor_applied_is_reviewed_before_anything_is_written() {
    let mut bed = TestBed::new();
    let object = json!({"spec": {"profile": PROFILE, "action": "Apply"}, "status": {"phase": "Completed", "operatorVersion": "v0.1.31"}});
    bed.edit(&format!("VirtPlatformConfig {PROFILE}"), &object);
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
    bed.restart();
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed");
}

#[test]
fn an_edit_of_the_spec_that_is_no_approval_approves_nothing() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed");
    bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
    bed.run_for(HOUR);
    let before = written(&bed);
    for edit in [json!({"waitTimeout": "10m"}), json!({"failurePolicy": "Continue"}), json!({"remediation": "Manual"})]
    {
        bed.ask(edit);
        bed.run_for(HOUR);
        assert_eq!(bed.value(OBJECTS[2], "/data/size"), "mine", "{}", bed.lines.concat());
    }
    assert_eq!(written(&bed), before);
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    assert_ne!(bed.value(OBJECTS[2], "/data/size"), "mine");
}

#[test]
fn options_that_were_swapped_after_the_plan_was_shown_are_not_applied() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.ask(json!({"options": {"advice": {"size": 70}}}));
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
}

#[test]
fn drift_of_a_profile_that_was_approved_by_its_digest_is_corrected_if_asked_for() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun", "remediation": "Automatic"}));
    bed.run();
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed");
    let wanted = bed.value(OBJECTS[2], "/data/size");
    for _ in 0..2 {
        bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
        bed.run_for(2 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Completed", wanted.clone()));
    }
    // Nodes still run what was approved, so that bringing it back restarts none.
    bed.edit(OBJECTS[0], &json!({"spec": {"kernelArguments": ["mine=1"]}}));
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Completed", 1));
}

#[test]
fn a_plan_that_restarts_nodes_is_not_applied_before_somebody_could_read_it() {
    for reads_first in [false, true] {
        let mut bed = TestBed::new();
        bed.ask(json!({"action": "Apply"}));
        bed.run_for(3 * HOUR);
        bed.restart();
        bed.run_for(3 * HOUR);
        assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
        assert_eq!(bed.condition("ReviewRequired")["reason"], "PlanUnseen");
        match reads_first {
            true => {
                bed.ask(json!({"action": "DryRun"}));
                bed.run();
                bed.ask(json!({"action": "Apply"}));
            }
            false => bed.approve(),
        }
        bed.run_for(3 * HOUR);
        assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    }
}

#[test]
fn a_plan_that_restarts_nothing_and_takes_nothing_away_is_applied_as_soon_as_it_is_made() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "Apply", "options": {"advice": {"nodes": false}}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("Completed", 2), "{}", bed.lines.concat());
}

#[test]
fn what_would_restart_nodes_or_take_fields_that_somebody_else_applies_is_not_corrected_without_a_review() {
    let completed = || {
        let mut bed = TestBed::new();
        bed.ask(json!({"action": "DryRun", "remediation": "Automatic"}));
        bed.run();
        bed.approve();
        bed.run_for(3 * HOUR);
        assert_eq!(bed.phase(), "Completed");
        bed
    };
    let mut bed = completed();
    let sizes = bed.key(OBJECTS[2]);
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "sizes", "namespace": "virt"}, "data": {"size": "theirs"}});
    bed.server.apply("argocd", &sizes, &theirs, true).unwrap();
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Drifted", json!("theirs")));
    assert_eq!(bed.item("sizes")["takesFrom"], json!(["argocd"]));
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Completed", json!("7")));

    let mut bed = completed();
    bed.edit(OBJECTS[0], &json!({"spec": {"kernelArguments": ["mine=1"]}}));
    // Nodes follow the edit while the operator is down.
    bed.run_nodes();
    while let Some(at) = bed.nodes_wake_at() {
        bed.set_clock(at);
        bed.run_nodes();
    }
    bed.restart();
    let restarts = bed.restarts_of("w0");
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Drifted", restarts), "{}", bed.lines.concat());
    assert_eq!(bed.value(OBJECTS[0], "/spec/kernelArguments"), json!(["mine=1"]));
}
