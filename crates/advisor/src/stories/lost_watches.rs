//! Watches that are lost for a while, and objects that cannot be listed at all.

use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::OBJECTS;
use mco_stand_in::control;
use serde_json::json;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn an_outage_of_the_api_server_changes_no_status() {
    for outage in [Duration::from_secs(5), 10 * MINUTE] {
        let mut bed = TestBed::new();
        bed.complete();
        let (status, sent) = (bed.status(), bed.sent);
        bed.lose_watches(outage);
        bed.run_for(10 * MINUTE);
        assert_eq!((bed.status(), bed.sent), (status, sent), "{}", bed.lines.concat());
    }
}

#[test]
fn a_plan_that_was_shown_stays_while_watches_are_lost() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    let (status, sent) = (bed.status(), bed.sent);
    bed.lose_watches(10 * MINUTE);
    bed.run_for(10 * MINUTE);
    assert_eq!((bed.phase().as_str(), bed.status(), bed.sent), ("ReviewRequired", status, sent));
    bed.approve();
    bed.run_for(120 * MINUTE);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

/// An approved plan, whose first item has to wait because the watch of this kind is lost.
fn approved_without(kind: &str, spec: serde_json::Value, meanwhile: impl Fn(&mut TestBed)) -> TestBed {
    let mut bed = TestBed::new();
    bed.ask(spec);
    bed.run();
    bed.lose_watch(kind);
    bed.run();
    meanwhile(&mut bed);
    bed.approve();
    bed.run_for(10 * MINUTE);
    let status = bed.status();
    let held = status["items"].as_array().into_iter().flatten().find(|item| item["heldSince"].is_string());
    let message = held.map(|item| item["message"].to_string()).unwrap_or_default();
    assert!(message.contains(&format!("objects of the kind {kind} cannot be watched now")), "{status:#}");
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("InProgress", 0), "{}", bed.lines.concat());
    bed.list_again();
    bed.run();
    bed
}

#[test]
fn nothing_is_written_from_an_input_that_may_have_changed_while_nobody_watched_it() {
    let spec = json!({"action": "DryRun", "options": {"advice": {"nodes": false}}});
    let edit = |bed: &mut TestBed| bed.edit(HCO, &json!({"spec": {"limit": 2}}));
    let mut bed = approved_without("HyperConverged", spec.clone(), edit);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("ReviewRequired", 0), "{}", bed.lines.concat());
    bed.approve();
    bed.run();
    assert_eq!(bed.value(OBJECTS[1], "/data/limit"), "2");
    // What is as it was is written.
    let mut bed = approved_without("HyperConverged", spec, |_| {});
    bed.run();
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("Completed", 2), "{}", bed.lines.concat());
}

#[test]
fn no_node_restarts_while_nobody_watches_its_pool() {
    let degrade = |bed: &mut TestBed| {
        bed.edit("Node w0", &json!({"metadata": {"annotations": {control::UPDATE_FAILS: "true"}}}));
        bed.edit(
            "MachineConfig 50-foreign",
            &json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}},
            "spec": {"kernelArguments": ["quiet"]}}),
        );
        bed.run_for(2 * MINUTE);
    };
    let bed = approved_without("MachineConfigPool", json!({"action": "DryRun"}), degrade);
    assert_eq!(bed.stored(OBJECTS[0]), None, "{}", bed.lines.concat());
    let mut bed = approved_without("MachineConfigPool", json!({"action": "DryRun"}), |_| {});
    bed.run_for(120 * MINUTE);
    assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Completed", 1), "{}", bed.lines.concat());
    // What restarts none does not depend on pools.
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run();
    bed.lose_watch("MachineConfigPool");
    bed.approve();
    bed.run();
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

#[test]
fn nothing_is_written_under_an_approval_that_may_have_been_taken_back_while_nobody_watched() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run();
    bed.edit(OBJECTS[1], &json!({"metadata": {"annotations": {"platform.kubevirt.io/reconcile-paused": "true"}}}));
    bed.run();
    bed.approve();
    bed.run();
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("InProgress", 0), "{}", bed.lines.concat());
    bed.lose_watch("VirtPlatformConfig");
    bed.run();
    bed.ask(json!({"action": "DryRun", "approvedPlan": null}));
    bed.edit(OBJECTS[1], &json!({"metadata": {"annotations": {"platform.kubevirt.io/reconcile-paused": null}}}));
    bed.run_for(10 * MINUTE);
    assert_eq!(bed.sent.1, 0, "{}", bed.lines.concat());
    bed.list_again();
    bed.run_for(10 * MINUTE);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("ReviewRequired", 0), "{}", bed.lines.concat());
}

#[test]
fn a_profile_that_waits_for_objects_that_cannot_be_listed_says_which_and_goes_on_once_they_can() {
    for kind in ["ConfigMap", "HyperConverged", "MachineConfigPool", "CustomResourceDefinition"] {
        let mut bed = TestBed::new();
        bed.unlistable = Some(kind);
        bed.ask(json!({"action": "DryRun"}));
        bed.run_for(2 * MINUTE);
        let message = bed.condition("Ready")["message"].as_str().unwrap_or_default().to_owned();
        let why = format!("objects of the kind {kind} cannot be listed (connection reset)");
        assert!(bed.phase() == "PrerequisiteFailed" && message.contains(&why), "{kind}: {} {message}", bed.phase());
        let asked = bed.asked;
        bed.run_for(60 * MINUTE);
        assert_eq!(bed.asked, asked, "{kind}: it asks for nothing in vain");
        bed.unlistable = None;
        bed.watches.values_mut().for_each(server_model::watching::OpenWatch::list_again);
        bed.run_for(MINUTE);
        assert_eq!(bed.phase(), "ReviewRequired", "{kind}: {}", bed.lines.concat());
    }
}
