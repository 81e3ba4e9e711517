//! Switching an option off, and rolling back, where the profile did not create the objects: the Go operator, the autopilot or a person did.

use crate::testing::bed::TestBed;
use crate::testing::pack::OBJECTS;
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const FORMER: &str = "MachineConfig 99-args";
const OWN: &str = OBJECTS[0];
const GO: &str = api::advisor::FIELD_MANAGER;

fn apply(bed: &mut TestBed, manager: &str, object: &str, arguments: &Value) {
    let key = bed.key(object);
    let content = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": key.name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": arguments}});
    bed.server.apply(manager, &key, &content, true).unwrap();
}

fn switch_off(bed: &mut TestBed) {
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run();
}

#[test]
fn what_the_go_operator_made_is_deleted_by_an_option_whether_we_changed_it_or_not() {
    for found in ["psi=1", "faulty=1"] {
        let mut bed = TestBed::new();
        apply(&mut bed, GO, FORMER, &json!([found]));
        bed.run_for(2 * HOUR);
        bed.complete();
        assert_eq!(bed.value(FORMER, "/spec/kernelArguments"), json!(["psi=1"]));
        switch_off(&mut bed);
        assert_eq!(bed.item("args")["operation"], "Delete", "{found}: {:#}", bed.item("args"));
        bed.approve();
        bed.run_for(2 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.stored(FORMER).is_none()), ("Completed", true), "{found}");
        assert!(bed.stored(OWN).is_none());
    }
}

#[test]
fn what_a_person_made_under_the_name_of_the_go_operator_is_restored_and_never_deleted() {
    let mut bed = TestBed::new();
    apply(&mut bed, "person", FORMER, &json!(["theirs=1"]));
    bed.run_for(2 * HOUR);
    for _ in 0..2 {
        bed.complete_with(json!({"options": null}));
        assert_eq!(bed.value(FORMER, "/spec/kernelArguments"), json!(["psi=1"]));
        switch_off(&mut bed);
        assert_eq!(bed.item("args")["operation"], "Update");
        bed.approve();
        bed.run_for(2 * HOUR);
        assert_eq!(bed.value(FORMER, "/spec/kernelArguments"), json!(["theirs=1"]));
        assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    }
    // Nothing is remembered any more.
    bed.delete("VirtPlatformConfig advice");
    bed.run();
    switch_off(&mut bed);
    assert_eq!(bed.item("args")["operation"], "Keep");
}

#[test]
fn an_option_that_is_off_removes_the_objects_under_both_names() {
    let mut bed = TestBed::new();
    bed.complete();
    apply(&mut bed, GO, FORMER, &json!(["psi=1"]));
    bed.run_for(HOUR);
    switch_off(&mut bed);
    let planned = [&bed.item("args"), &bed.item("args-former")].map(|item| item["operation"].clone());
    assert_eq!(planned, ["Delete", "Delete"]);
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    assert!(bed.stored(OWN).is_none() && bed.stored(FORMER).is_none());
}

#[test]
fn what_was_handed_over_as_it_is_stays_and_the_plan_says_who_made_it() {
    let mut bed = TestBed::new();
    apply(&mut bed, "virt-platform-autopilot", OWN, &json!(["psi=1"]));
    bed.run_for(2 * HOUR);
    bed.complete();
    let sent = bed.sent.1;
    switch_off(&mut bed);
    let item = bed.item("args");
    assert_eq!(item["operation"], "Keep", "{item:#}");
    let message = "it stays: virt-platform-autopilot made it, and this profile has never written it; delete it by hand if nobody needs it";
    assert_eq!(item["message"], message);
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("Completed", sent), "nothing is written");
    // Once somebody has deleted it, nothing is said of it any more.
    bed.delete(OWN);
    bed.run_for(2 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    assert_ne!(bed.item("args")["message"], message);
}

#[test]
fn a_deletion_names_those_who_apply_the_object_now() {
    let mut bed = TestBed::new();
    bed.complete();
    apply(&mut bed, "argocd", OWN, &json!(["psi=1"]));
    bed.run();
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    let item = bed.item("args");
    assert_eq!((&item["operation"], &item["takesFrom"]), (&json!("Delete"), &json!(["argocd"])), "{item:#}");
}
