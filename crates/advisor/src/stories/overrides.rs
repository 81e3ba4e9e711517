//! What users say on an object about how far it is managed is honoured by plans, as the autopilot honours it.

use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{DENSITY, OBJECTS};
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const SIZES: &str = OBJECTS[2];

/// A person creates the object `sizes` with other values, and says this about it.
fn with_sizes(annotations: &Value) -> TestBed {
    let mut bed = TestBed::new();
    bed.edit(SIZES, &json!({"metadata": {"annotations": annotations}, "data": {"size": "1", "other": "x"}}));
    // Nothing here restarts nodes.
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run();
    bed
}

fn annotate(bed: &mut TestBed, key: &str, value: &Value) {
    bed.edit(SIZES, &json!({"metadata": {"annotations": {format!("platform.kubevirt.io/{key}"): value}}}));
}

fn message(bed: &TestBed) -> String {
    bed.item("sizes")["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_unmanaged_object_is_skipped_and_the_plan_says_so() {
    let mut bed = with_sizes(&json!({"platform.kubevirt.io/mode": "unmanaged"}));
    assert_eq!((&bed.item("sizes")["operation"], &bed.item("limits")["operation"]), (&json!("Keep"), &json!("Create")));
    assert_eq!(message(&bed), "skipped: mode is unmanaged: the object is left alone");
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("Completed", json!("1")));
    assert_eq!(message(&bed), "skipped: mode is unmanaged: the object is left alone");
    // What its user does to it is no drift, and a rollback leaves it, too.
    bed.edit(SIZES, &json!({"data": {"size": "2"}}));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed");
    bed.complete_with(json!({"rollback": true}));
    assert_eq!(bed.value(SIZES, "/data/size"), json!("2"));
    // Managed again, it is planned.
    bed.ask(json!({"action": "DryRun", "rollback": false}));
    annotate(&mut bed, "mode", &Value::Null);
    bed.run_for(HOUR);
    assert_eq!(bed.item("sizes")["operation"], "Update");
}

#[test]
fn nodes_are_not_waited_for_because_of_an_unmanaged_object() {
    let mut bed = TestBed::new();
    let metadata = json!({"labels": {"machineconfiguration.openshift.io/role": "worker"},
        "annotations": {"platform.kubevirt.io/mode": "unmanaged"}});
    bed.edit(OBJECTS[0], &json!({"metadata": metadata, "spec": {"kernelArguments": ["psi=2"]}}));
    bed.run_for(2 * HOUR);
    bed.complete();
    assert_eq!(bed.value(OBJECTS[0], "/spec/kernelArguments"), json!(["psi=2"]));
    assert!(bed.item("args")["message"].as_str().unwrap().starts_with("skipped: "), "{:#}", bed.item("args"));
}

#[test]
fn what_was_applied_and_becomes_unmanaged_is_not_removed() {
    let mut bed = with_sizes(&json!({}));
    bed.approve();
    bed.run_for(HOUR);
    annotate(&mut bed, "mode", &json!("unmanaged"));
    bed.edit(SIZES, &json!({"data": {"size": "5"}}));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed", "it is no drift: {:#}", bed.status());
    bed.complete_with(json!({"rollback": true}));
    assert_eq!(bed.value(SIZES, "/data/size"), json!("5"));
}

#[test]
fn a_patch_changes_the_plan_and_is_named_in_it() {
    let patch = r#"[{"op": "replace", "path": "/data/size", "value": "9"}]"#;
    let mut bed = with_sizes(&json!({"platform.kubevirt.io/patch": patch}));
    assert!(message(&bed).contains("platform.kubevirt.io/patch changes what is wanted of it"), "{}", message(&bed));
    assert!(bed.item("sizes")["diff"].as_str().unwrap().contains("\"9\""), "{:#}", bed.item("sizes"));
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("Completed", json!("9")));
    // Another patch is another plan.
    annotate(&mut bed, "patch", &json!(patch.replace('9', "8")));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("CompletedWithUpgrade", json!("9")));
}

#[test]
fn an_ignored_field_keeps_its_value_and_whoever_writes_it_has_it() {
    let mut bed = with_sizes(&json!({"platform.kubevirt.io/ignore-fields": "/data/size"}));
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("Completed", json!("1")));
    // The same where the advisor has applied it before.
    let mut bed = with_sizes(&json!({}));
    bed.approve();
    bed.run_for(HOUR);
    annotate(&mut bed, "ignore-fields", &json!("/data/size"));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("Completed", json!("7")));
    bed.edit(SIZES, &json!({"data": {"size": "3"}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("Completed", json!("3")));
    // A rollback leaves it, too.
    bed.complete_with(json!({"rollback": true}));
    assert_eq!(bed.value(SIZES, "/data/size"), json!("3"));
}

#[test]
fn what_is_paused_waits_and_goes_on_when_the_pause_ends() {
    let mut bed = with_sizes(&json!({"platform.kubevirt.io/reconcile-paused": "2026-03-01T02:00:00Z"}));
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("InProgress", json!("1")));
    assert!(message(&bed).contains("paused"), "{}", message(&bed));
    bed.run_for(2 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("Completed", json!("7")));
}

#[test]
fn an_override_that_cannot_be_honoured_keeps_the_object_as_it_is_and_says_why() {
    for (key, value) in [("patch", "what?"), ("ignore-fields", "data/size"), ("mode", "mine")] {
        let mut bed = with_sizes(&json!({format!("platform.kubevirt.io/{key}"): value}));
        assert!(message(&bed).contains(key), "{key}: {}", message(&bed));
        bed.approve();
        bed.run_for(HOUR);
        assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("InProgress", json!("1")), "{key}");
        annotate(&mut bed, key, &Value::Null);
        bed.run_for(HOUR);
        // It was approved as it is planned without it.
        assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("Completed", json!("7")), "{key}");
    }
}

#[test]
fn an_override_that_is_written_while_the_object_is_compared_is_honoured() {
    use protocol::Command;
    let mut bed = TestBed::new();
    bed.edit(SIZES, &json!({"data": {"size": "1"}}));
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run_until(|request| matches!(request, Command::Inspect { key, .. } if key.name == "sizes"));
    annotate(&mut bed, "patch", &json!(r#"[{"op": "replace", "path": "/data/size", "value": "9"}]"#));
    // It is read with the annotation before its watch reports that.
    for request in std::mem::take(&mut bed.requests) {
        bed.carry_out(request);
    }
    let answers = std::mem::take(&mut bed.answers);
    bed.handle(answers);
    let is_status = |request: &Command<crate::Notice>| matches!(request, Command::Write(_));
    assert!(!bed.requests.iter().any(is_status), "something else was tried than is wanted now");
    bed.run_for(HOUR);
    assert!(bed.item("sizes")["diff"].as_str().unwrap().contains("\"9\""), "{:#}", bed.item("sizes"));
}

#[test]
fn an_override_that_nobody_owns_is_honoured_and_asked_for_once() {
    let patch = json!(r#"[{"op": "replace", "path": "/data/size", "value": "9"}]"#);
    let mut bed = TestBed::new();
    bed.edit(SIZES, &json!({"data": {"size": "1"}}));
    annotate(&mut bed, "patch", &patch);
    // As a client does that clears managedFields: the watch does not tell that there is such an annotation.
    let key = bed.key(SIZES);
    bed.server.update("person", &key, |object| object["metadata"]["managedFields"] = json!([])).unwrap();
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run_for(HOUR);
    assert!(bed.item("sizes")["diff"].as_str().unwrap().contains("\"9\""), "{:#}", bed.item("sizes"));
    let asked = bed.asked;
    bed.run_for(24 * HOUR);
    assert_eq!(bed.asked - asked, 0, "an idle advisor asks for nothing");
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("Completed", json!("9")));
}

#[test]
fn nothing_is_removed_while_it_cannot_be_read_which_fields_users_keep() {
    // One object was changed, and is restored; the other one was created, and is deleted.
    for (object, item, is_restored) in [(SIZES, "sizes", true), (OBJECTS[1], "limits", false)] {
        let mut bed = with_sizes(&json!({}));
        bed.approve();
        bed.run_for(HOUR);
        let ignore = |value: Value| json!({"metadata": {"annotations": {"platform.kubevirt.io/ignore-fields": value}}});
        bed.edit(object, &ignore(json!("data/size")));
        bed.run_for(HOUR);
        let before = bed.value(object, "/data");
        bed.ask(json!({"action": "DryRun", "rollback": true}));
        bed.run_for(HOUR);
        bed.approve();
        bed.run_for(HOUR);
        assert_eq!((bed.phase().as_str(), bed.value(object, "/data")), ("InProgress", before), "{item}");
        let message = bed.item(item)["message"].as_str().unwrap().to_owned();
        assert!(message.contains("ignore-fields") && message.contains("write it as /"), "{message}");
        bed.edit(object, &ignore(Value::Null));
        bed.run_for(HOUR);
        if !is_restored {
            // All of its content is approved with a deletion, so also its annotations.
            assert_eq!(bed.phase(), "ReviewRequired");
            bed.approve();
            bed.run_for(HOUR);
        }
        assert_eq!(bed.phase(), "Completed", "{item}: {:#}", bed.status());
        assert_eq!(bed.value(object, "/data/size"), if is_restored { json!("1") } else { Value::Null });
    }
}

#[test]
fn an_item_does_not_rely_on_one_that_is_left_alone() {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.edit("ConfigMap virt/swap", &json!({"metadata": {"annotations": {"platform.kubevirt.io/mode": "unmanaged"}}}));
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    let why = "it needs swap, which is skipped; see that ConfigMap virt/swap is managed";
    assert_eq!(bed.item("overcommit")["message"], why, "the plan says so before it is approved");
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(HCO, "/spec/overcommit")), ("InProgress", Value::Null));
    assert_eq!(bed.item("overcommit")["message"], why);
    bed.edit("ConfigMap virt/swap", &json!({"metadata": {"annotations": {"platform.kubevirt.io/mode": null}}}));
    bed.run_for(HOUR);
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(HCO, "/spec/overcommit")), ("Completed", json!(150)));
}

#[test]
fn what_an_object_needs_that_is_left_alone_is_not_removed() {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.complete();
    bed.edit(HCO, &json!({"metadata": {"annotations": {"platform.kubevirt.io/mode": "unmanaged"}}}));
    bed.run_for(HOUR);
    bed.ask(json!({"action": "DryRun", "options": {"density": {"enableSwap": false}}}));
    bed.run_for(HOUR);
    bed.approve();
    bed.run_for(HOUR);
    let left = (bed.value(HCO, "/spec/overcommit"), bed.stored("ConfigMap virt/swap").is_some());
    assert_eq!(left, (json!(150), true), "memory would be overcommitted without swap");
    let message = bed.item("swap")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("overcommit needs it and is skipped, so it stays"), "{message}");
}
