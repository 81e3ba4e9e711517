//! Objects of the predecessor and of other releases of ours.

use super::{
    HOUR, KERNEL, PLAIN, SECOND, config_map, kernel, kernel_template, labelled, plain, settled_with_kernel, started,
    unstarted,
};
use crate::testing::bed::{HCO, TestBed};
use expect_test::expect;
use protocol::Command;
use serde_json::{Value, json};
/// The predecessor left an object that we want, before we start.
fn inherited(object: Value, asset: &str) -> TestBed {
    let mut bed = unstarted(&[asset]);
    bed.inherit(object);
    bed.roll_out();
    bed
}

#[test]
fn an_object_of_the_predecessor_is_inspected_and_its_changes_are_reported() {
    let mut bed = inherited(plain("7"), "plain");
    assert!(bed.settle_verbosely().contains("inspect ConfigMap virt/plain"));
    assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "1", "mode": "auto"}));
    bed.expect_silence();
}

#[test]
fn what_the_take_over_changes_is_reported() {
    let mut bed = inherited(plain("7"), "plain");
    expect![[r#"
        apply ConfigMap virt/plain
        notice TakenOver ConfigMap virt/plain: taken over from the predecessor. Changed: .data.level ("7" -> "1"), .data.mode (nothing -> "auto")
    "#]].assert_eq(&bed.settle());
    assert!(bed.value(PLAIN, "/metadata/annotations")["platform.kubevirt.io/origin"].is_null(), "we did not create it");
    bed.restart();
    expect![[r#"
        apply ConfigMap virt/plain: no change
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_label_alone_makes_an_object_the_predecessors() {
    let mut bed = unstarted(&["plain"]);
    bed.create("person", &super::labelled(config_map("plain", &json!({"level": "7"}))));
    expect![[r#"
        apply ConfigMap virt/plain
        notice TakenOver ConfigMap virt/plain: taken over from the predecessor. Changed: .data.level ("7" -> "1"), .data.mode (nothing -> "auto")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_equal_machine_config_is_taken_over_without_a_write_and_then_defended() {
    let mut bed = inherited(kernel("quiet"), "kernel");
    expect![[r#"
        notice TakenOverAsIs MachineConfig kernel
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.moves(), 0);
    bed.expect_silence();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    expect![[r#"
        apply MachineConfig kernel
        notice DriftCorrected MachineConfig kernel: kubectl-edit changed .spec.kernelType; the drift was corrected: .spec.kernelType "realtime" -> "default"
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_different_machine_config_waits_for_its_digest_whatever_was_consented_to() {
    let mut bed = inherited(kernel("debug"), "kernel");
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.kernelArguments[0] ("debug" -> "quiet")
    "#]].assert_eq(&bed.settle());
    bed.annotate(HCO, "autopilot=true");
    assert!(!bed.advance(HOUR).contains("MachineConfig kernel\n"));
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["debug"]));
    bed.approve(KERNEL);
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        apply MachineConfig kernel
        notice TakenOver MachineConfig kernel: taken over from the predecessor. Changed: .spec.kernelArguments[0] ("debug" -> "quiet")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn approval_none_does_not_restart_nodes_for_a_take_over() {
    let mut bed = inherited(kernel("debug"), "kernel");
    bed.annotate(HCO, "approval=none");
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.kernelArguments[0] ("debug" -> "quiet")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_failed_inspection_is_repeated() {
    let mut bed = inherited(plain("7"), "plain");
    bed.run_until(|command| matches!(command, Command::Inspect { .. }));
    bed.fail_reads(1);
    expect![[r#""#]].assert_eq(&bed.settle());
    expect![[r#"
        apply ConfigMap virt/plain
        notice TakenOver ConfigMap virt/plain: taken over from the predecessor. Changed: .data.level ("7" -> "1"), .data.mode (nothing -> "auto")
    "#]].assert_eq(&bed.advance(2 * SECOND));
    bed.expect_silence();
}

#[test]
fn an_object_that_can_never_be_read_is_reported_once_and_costs_few_requests() {
    let mut bed = inherited(plain("7"), "plain");
    bed.run_until(|command| matches!(command, Command::Inspect { .. }));
    bed.fail_reads(1_000);
    let lines = bed.advance_verbosely(super::HOUR);
    let count = |text: &str| lines.lines().filter(|line| line.contains(text)).count();
    assert!((20..=70).contains(&count("inspect ConfigMap virt/plain")), "{lines}");
    assert_eq!(count("ApplyFailed ConfigMap virt/plain: its content decides what to do, and could not be read"), 1);
    bed.fail_reads(0);
    let lines = bed.advance(super::MINUTE);
    assert!(lines.contains("notice TakenOver ConfigMap virt/plain"), "{lines}");
    bed.expect_silence();
}

#[test]
fn another_release_restarts_no_nodes_and_changes_the_rest() {
    let mut bed = settled_with_kernel();
    let plain = crate::testing::pack::config_map("plain", "data: {level: \"2\"}");
    bed.upgrade(|pack| pack.with_template("kernel", &kernel_template("debug")).with_template("plain", &plain));
    bed.annotate(HCO, "autopilot=true");
    expect![[r#"
        apply ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.kernelArguments[0] ("quiet" -> "debug")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn another_release_of_the_same_machine_config_writes_nothing() {
    let mut bed = settled_with_kernel();
    bed.upgrade(|pack| pack.with_template("kernel", &format!("{}\n# another release\n", kernel_template("quiet"))));
    bed.annotate(HCO, "autopilot=true");
    let moves = bed.moves();
    expect![[r#"
        apply ConfigMap virt/plain: no change
        apply MachineConfig kernel: no change
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.moves(), moves);
    bed.expect_silence();
}

#[test]
fn an_equal_machine_config_that_others_own_waits() {
    let mut bed = unstarted(&["kernel"]);
    bed.create("person", &labelled(kernel("quiet")));
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        notice ApprovalRequired MachineConfig kernel: approval required to adopt it, as for every object of its kind; it restarts no node; run "virtpilot approve sha256:*"
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.moves(), 1, "only the records are written");
    bed.expect_silence();
}

#[test]
fn an_ignored_field_of_the_predecessors_machine_config_is_not_released_before_the_approval() {
    let mut bed = inherited(kernel("debug"), "kernel");
    bed.annotate(KERNEL, "ignore-fields=/spec/kernelType");
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.kernelArguments[0] ("debug" -> "quiet")
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.moves(), 1, "only the records are written");
    bed.approve(KERNEL);
    expect![[r#"
        release MachineConfig kernel
        record ConfigMap virt/virt-platform-autopilot-state
        apply MachineConfig kernel
        notice TakenOver MachineConfig kernel: taken over from the predecessor. Changed: .spec.kernelArguments[0] ("debug" -> "quiet")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_object_of_the_predecessor_is_not_taken_over_while_the_settings_cannot_be_read() {
    let mut bed = started(&["plain", "opted"]);
    bed.inherit(config_map("opted", &json!({"size": "huge"})));
    bed.annotate(HCO, "enable-opted=true");
    bed.annotate(HCO, "autopilot=plian");
    expect![[r#"
        notice Invalid: the annotation autopilot names "plian" (did you mean plain?), which is no feature, group or asset; nothing new is done until it is corrected. Write true, false, or names such as extras; "virtpilot status --all" lists the assets
        notice InvalidConfiguration ConfigMap virt/opted: the annotation autopilot names "plian" (did you mean plain?), which is no feature, group or asset; nothing new is done until it is corrected; write true, false, or names of features, groups or assets
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.value("ConfigMap virt/opted", "/data/size"), "huge");
    bed.expect_silence();
}

#[test]
fn a_machine_config_that_was_taken_over_is_defended_while_the_settings_cannot_be_read() {
    let mut bed = inherited(kernel("quiet"), "kernel");
    bed.settle();
    bed.annotate(HCO, "autopilot=kernle");
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    expect![[r#"
        notice Invalid: the annotation autopilot names "kernle" (did you mean kernel?), which is no feature, group or asset; nothing new is done until it is corrected
        apply MachineConfig kernel
        notice DriftCorrected MachineConfig kernel: kubectl-edit changed .spec.kernelType; the drift was corrected: .spec.kernelType "realtime" -> "default"
    "#]].assert_eq(&bed.advance(SECOND * 3));
    bed.expect_silence();
}
