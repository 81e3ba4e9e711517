//! What restarts nodes waits for a maintenance window, also after it was approved; nothing else does.

use crate::testing::bed::{Fault, HCO, TestBed};
use crate::testing::pack::{DENSITY, OBJECTS};
use serde_json::{Value, json};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
/// The clock of stories starts on Sunday, 2026-03-01, at midnight in UTC.
const NIGHT: &str = "Sat 01:00-05:00 Europe/Berlin";
const OPENS: &str = "it waits for the next maintenance window, which opens Sat 2026-03-07 01:00 Europe/Berlin";

fn set_window(bed: &mut TestBed, window: &str) {
    let window = if window.is_empty() { Value::Null } else { json!(window) };
    bed.edit(HCO, &json!({"metadata": {"annotations": {"platform.kubevirt.io/maintenance-window": window}}}));
}

/// A plan of which the first item restarts nodes, approved while no window is open.
fn approved(window: &str, mut spec: Value) -> TestBed {
    let mut bed = TestBed::new();
    set_window(&mut bed, window);
    spec["action"] = json!("DryRun");
    bed.ask(spec);
    bed.run();
    bed.approve();
    bed.run_for(MINUTE);
    bed
}

fn message(bed: &TestBed) -> String {
    bed.item("args")["message"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_approved_item_that_restarts_nodes_is_written_when_the_window_opens_and_that_it_waits_is_no_fault() {
    for wait in [Value::Null, json!("30m")] {
        let mut bed = approved(NIGHT, json!({"waitTimeout": wait}));
        assert_eq!((bed.phase().as_str(), message(&bed).as_str()), ("InProgress", OPENS), "{:#}", bed.status());
        assert_eq!(bed.condition("Progressing")["reason"], "WaitingForWindow");
        let (sent, asked) = (bed.sent, bed.asked);
        // Six days until midnight in UTC, which is one o'clock in Berlin.
        bed.run_for(6 * 24 * HOUR - 2 * MINUTE);
        assert_eq!((bed.sent, bed.asked), (sent, asked), "to wait costs no request: {}", bed.lines.concat());
        assert_eq!((bed.phase().as_str(), &bed.item("args")["heldSince"]), ("InProgress", &Value::Null));
        assert_eq!(bed.condition("Degraded")["status"], "False");
        bed.run_for(2 * MINUTE);
        assert!(bed.stored(OBJECTS[0]).is_some(), "{}", bed.lines.concat());
        bed.run_for(2 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Completed", 1), "{}", bed.lines.concat());
    }
}

#[test]
fn a_removal_that_restarts_nodes_waits_for_the_window_too() {
    let mut bed = TestBed::new();
    bed.complete();
    set_window(&mut bed, NIGHT);
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    bed.approve();
    bed.run_for(HOUR);
    assert!(bed.stored(OBJECTS[1]).is_none(), "what restarts nothing is gone: {}", bed.lines.concat());
    assert_eq!((bed.stored(OBJECTS[0]).is_some(), message(&bed).as_str()), (true, OPENS), "{:#}", bed.status());
    bed.run_for(7 * 24 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.stored(OBJECTS[0]).is_some()), ("Completed", false));
}

#[test]
fn what_restarts_no_node_does_not_wait_for_the_window() {
    let mut bed = TestBed::of(DENSITY);
    set_window(&mut bed, NIGHT);
    bed.complete();
    // Nodes run its content already.
    let mut bed = TestBed::new();
    bed.complete();
    set_window(&mut bed, NIGHT);
    bed.stand_in = None;
    bed.edit(OBJECTS[0], &json!({"spec": {"kernelArguments": ["psi=0"]}}));
    bed.run_for(MINUTE);
    assert_eq!(bed.item("args")["impactSeverity"], "Low", "{:#}", bed.status());
    bed.approve();
    bed.run_for(MINUTE);
    assert_eq!(bed.value(OBJECTS[0], "/spec/kernelArguments"), json!(["psi=1"]), "{}", bed.lines.concat());
}

#[test]
fn a_window_that_cannot_be_read_is_closed_and_its_fault_is_named_and_reported() {
    let mut bed = approved("Sat 01:00-05:00 Europe/Berlni", json!({}));
    let why = "the annotation maintenance-window of the HyperConverged cannot be read: ";
    let shown = message(&bed);
    assert!(shown.contains(why) && shown.contains("\"Europe/Berlni\" is not the name of a time zone"), "{shown}");
    bed.run_for(8 * 24 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.stored(OBJECTS[0])), ("InProgress", None));
    assert_eq!(bed.condition("Degraded")["reason"], "WaitingForLong");
    set_window(&mut bed, "");
    bed.run_for(2 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

#[test]
fn a_window_that_closes_does_not_stop_a_rollout_nor_what_is_replaced_by_it() {
    let mut bed = TestBed::new();
    let labels = json!({"machineconfiguration.openshift.io/role": "worker"});
    // Nodes have to follow both the change of one and the deletion of the other.
    for (manager, name, argument) in
        [(api::advisor::FIELD_MANAGER, "99-args", "former=1"), ("virt-platform-autopilot", "90-args", "psi=0")]
    {
        let key = bed.key(&format!("MachineConfig {name}"));
        let content = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": name, "labels": labels}, "spec": {"kernelArguments": [argument]}});
        bed.server.apply(manager, &key, &content, true).unwrap();
    }
    bed.run_for(2 * HOUR);
    let restarts = bed.restarts_of("w0");
    set_window(&mut bed, "Sun 02:00-02:01 UTC");
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    // The answer to the first write arrives when the window is closed.
    bed.run_until(|command| matches!(command, protocol::Command::Write(write) if write.key.name == "90-args"));
    for request in std::mem::take(&mut bed.requests) {
        bed.carry_out(request);
    }
    bed.set_clock(bed.now().monotonic.after(2 * MINUTE));
    bed.run_for(2 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.stored("MachineConfig 99-args").is_some()), ("Completed", false));
    assert_eq!(bed.restarts_of("w0"), restarts + 1, "{}", bed.lines.concat());
}

#[test]
fn a_write_that_was_refused_is_not_tried_again_outside_of_the_window() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.faults = [None, Some(Fault::Refused)].into();
    bed.approve();
    bed.run();
    assert_eq!(bed.phase(), "Failed", "{}", bed.lines.concat());
    set_window(&mut bed, NIGHT);
    let sent = bed.sent.1;
    bed.run_for(HOUR);
    assert_eq!((bed.sent.1, bed.stored(OBJECTS[0])), (sent, None), "{}", bed.lines.concat());
    set_window(&mut bed, "");
    bed.run_for(2 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}
