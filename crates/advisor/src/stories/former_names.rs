//! Objects that the Go operator made under another name: they are taken over, or replaced in one rollout, and never doubled.

use crate::testing::bed::{Fault, TestBed};
use crate::testing::pack::OBJECTS;
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const FORMER: &str = "MachineConfig 99-args";
const OWN: &str = OBJECTS[0];

/// Somebody applies a MachineConfig for the workers.
fn apply(bed: &mut TestBed, manager: &str, object: &str, arguments: &Value) {
    let key = bed.key(object);
    let content = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": key.name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": arguments}});
    bed.server.apply(manager, &key, &content, true).unwrap();
}

/// A cluster with the object of the Go operator and, under our own name, that of somebody else.
fn with_both(own: &Value) -> TestBed {
    let mut bed = TestBed::new();
    // Nodes have to follow both the change of one and the deletion of the other.
    apply(&mut bed, api::advisor::FIELD_MANAGER, FORMER, &json!(["former=1"]));
    apply(&mut bed, "virt-platform-autopilot", OWN, own);
    bed.run_for(2 * HOUR);
    bed
}

#[test]
fn an_object_of_the_predecessor_becomes_the_item_and_no_second_one_is_made() {
    let mut bed = TestBed::new();
    bed.edit(
        "MachineConfig 99-args",
        &json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": ["psi=1"]}}),
    );
    bed.run_for(2 * HOUR);
    let restarts = bed.restarts_of("w0");
    bed.complete();
    assert_eq!(bed.item("args")["targetRef"]["name"], "99-args");
    assert!(bed.stored(OBJECTS[0]).is_none());
    assert_eq!(bed.restarts_of("w0"), restarts, "its content is the same");
}

#[test]
fn an_object_that_exists_under_both_names_keeps_ours_and_the_other_one_is_deleted() {
    let mut bed = with_both(&json!(["psi=1"]));
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    assert_eq!(bed.item("args")["targetRef"]["name"], "90-args");
    let former = bed.item("args-former");
    assert_eq!(
        (&former["operation"], &former["targetRef"]["name"]),
        (&json!("Delete"), &json!("99-args")),
        "{former:#}"
    );
    assert!(bed.stored(FORMER).is_some(), "it waits for an approval");
    bed.approve();
    bed.run_for(2 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.stored(FORMER).is_none()), ("Completed", true), "{}", bed.lines.concat());
    assert!(bed.stored(OWN).is_some());
    assert_eq!(bed.item("args-former"), Value::Null, "it is not mentioned for ever");
    // And it is not planned again.
    bed.restart();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed");
}

#[test]
fn a_replacement_that_changes_both_objects_restarts_nodes_once() {
    let mut bed = with_both(&json!(["psi=0"]));
    let restarts = bed.restarts_of("w0");
    bed.complete();
    assert!(bed.stored(FORMER).is_none());
    assert_eq!(bed.value(OWN, "/spec/kernelArguments"), json!(["psi=1"]));
    assert_eq!(bed.restarts_of("w0"), restarts + 1, "{}", bed.lines.concat());
}

#[test]
fn a_replacement_that_is_interrupted_goes_on_and_nodes_restart_once() {
    for place in 0..6 {
        for fault in [Fault::KilledAfter, Fault::Unanswered] {
            let mut bed = with_both(&json!(["psi=0"]));
            let restarts = bed.restarts_of("w0");
            bed.ask(json!({"action": "DryRun"}));
            bed.run();
            bed.approve();
            bed.faults = std::iter::repeat_n(None, place).chain([Some(fault)]).collect();
            bed.run_for(3 * HOUR);
            let end = (bed.phase(), bed.stored(FORMER).is_none(), bed.restarts_of("w0") - restarts);
            assert_eq!(end, ("Completed".to_owned(), true, 1), "{fault:?} of write {place}: {}", bed.lines.concat());
        }
    }
}

#[test]
fn what_is_to_be_replaced_stays_while_its_replacement_fails() {
    let mut bed = with_both(&json!(["psi=0"]));
    bed.refused_writes = vec![bed.key(OWN)];
    bed.ask(json!({"action": "DryRun", "failurePolicy": "Continue"}));
    bed.run();
    bed.approve();
    bed.run_for(2 * HOUR);
    assert!(bed.stored(FORMER).is_some(), "nodes would lose what it sets");
    let message = bed.item("args-former")["message"].clone();
    assert_eq!(message, "it stays until args has replaced it, which has failed");
}

#[test]
fn an_object_of_a_person_under_the_former_name_is_left_alone_where_ours_exists() {
    let mut bed = TestBed::new();
    apply(&mut bed, "person", FORMER, &json!(["psi=1"]));
    apply(&mut bed, "virt-platform-autopilot", OWN, &json!(["psi=1"]));
    bed.run_for(2 * HOUR);
    bed.complete();
    assert!(bed.stored(FORMER).is_some() && bed.stored(OWN).is_some());
}

#[test]
fn what_would_be_replaced_stays_while_its_replacement_is_left_alone() {
    let mut bed = with_both(&json!(["psi=0"]));
    bed.edit(OWN, &json!({"metadata": {"annotations": {"platform.kubevirt.io/mode": "unmanaged"}}}));
    bed.complete();
    assert_eq!(bed.item("args-former"), Value::Null, "nodes would lose what it sets");
    assert!(bed.stored(FORMER).is_some());
    assert_eq!(bed.value(OWN, "/spec/kernelArguments"), json!(["psi=0"]));
}
