//! What restarts nodes waits for an approval.

use super::{
    HOUR, KERNEL, MINUTE, PLAIN, SECOND, kernel, kernel_template, on_request, settled, settled_with_kernel, started,
    unstarted,
};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::Pack;
use crate::testing::requests::Fault;
use crate::testing::serving::Crd;
use expect_test::expect;
use protocol::Command;
use serde_json::json;
/// A MachineConfig for which somebody asks.
fn requested_kernel() -> TestBed {
    let mut bed = settled(Pack::default().asset("kernel", &on_request("kernel"), &kernel_template("quiet")));
    bed.annotate(HCO, "enable-kernel=true");
    bed.settle();
    bed.approve(KERNEL);
    bed.settle();
    assert!(bed.stored(KERNEL).is_some());
    bed.roll_out();
    bed
}

#[test]
fn only_the_exact_digest_approves_a_creation() {
    let mut bed = started(&["kernel"]);
    bed.annotate(HCO, "approved=sha256:0000000000000000000000000000000000000000000000000000000000000000");
    expect![[r#""#]].assert_eq(&bed.settle());
    let digest = bed.asked_digest(KERNEL).unwrap();
    bed.annotate(HCO, &format!("approved=sha256:00, {digest}"));
    expect![[r#"
        notice Invalid: approved lists "sha256:*", which is not a whole digest; write sha256:* and 64 digits, as "virtpilot status -o wide" shows it, or run "virtpilot approve", which also takes the first digits
        record ConfigMap virt/virt-platform-autopilot-state
        create MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn approval_none_goes_ahead_without_asking() {
    let mut bed = unstarted(&["kernel"]);
    bed.annotate(HCO, "approval=none");
    expect![[r#"
        create MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_unknown_policy_asks() {
    let mut bed = unstarted(&["kernel"]);
    bed.annotate(HCO, "approval=nnone");
    expect![[r#"
        notice Invalid: approval is "nnone", which counts as high-impact (did you mean none?); write none or high-impact
        record ConfigMap virt/virt-platform-autopilot-state
        notice ApprovalRequired MachineConfig kernel: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_change_waits_and_says_what_it_would_change() {
    let mut bed = settled_with_kernel();
    bed.upgrade(|pack| pack.with_template("kernel", &kernel_template("debug")));
    expect![[r#"
        apply ConfigMap virt/plain: no change
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.kernelArguments[0] ("quiet" -> "debug")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.approve(KERNEL);
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        apply MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_deletion_waits() {
    let mut bed = requested_kernel();
    bed.annotate(HCO, "enable-kernel-");
    expect![[r#"
        notice ApprovalRequired MachineConfig kernel: approval required: deleting it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.approve(KERNEL);
    expect![[r#"
        delete MachineConfig kernel
        notice Pruned MachineConfig kernel: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_approved_deletion_is_not_made_once_the_asset_is_asked_for_again_with_a_mistake() {
    let mut bed = requested_kernel();
    bed.advance(HOUR * 8);
    bed.annotate(HCO, "maintenance-window=Sat 01:00-05:00 UTC");
    bed.annotate(HCO, "enable-kernel-");
    bed.settle();
    bed.approve(KERNEL);
    bed.settle();
    bed.annotate(HCO, "enable-kernel=ture");
    bed.advance(HOUR * 24 * 7);
    assert!(bed.stored(KERNEL).is_some(), "a typing error is no opt-out");
    assert_eq!(bed.restarts_of("w0"), 1, "for the creation");
}

#[test]
fn the_approval_of_a_creation_does_not_approve_the_deletion() {
    let mut bed = requested_kernel();
    assert!(!bed.value(HCO, "/metadata/annotations")["platform.kubevirt.io/approved"].is_null());
    bed.annotate(HCO, "enable-kernel=false");
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_some());
}

#[test]
fn nodes_that_join_do_not_ask_again() {
    let mut bed = started(&["kernel"]);
    bed.node_joins("w1", false);
    bed.node_joins("w2", false);
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.expect_silence();
    assert!(bed.status().contains("restarts 3 nodes of pool worker: w0, w1, w2"), "{}", bed.status());
}

#[test]
fn drift_that_was_watched_is_undone_at_once() {
    let mut bed = settled_with_kernel();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    expect![[r#"
        apply MachineConfig kernel
        notice DriftCorrected MachineConfig kernel: kubectl-edit changed .spec.kernelType; the drift was corrected: .spec.kernelType "realtime" -> "default"
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn drift_during_a_restart_waits_because_nodes_may_run_it() {
    let mut bed = settled_with_kernel();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    bed.roll_out();
    bed.restart();
    expect![[r#"
        apply ConfigMap virt/plain: no change
        notice DriftDetected MachineConfig kernel: kubectl-edit changed .spec.kernelType; the drift is not corrected now
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.kernelType ("realtime" -> "default")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.approve(KERNEL);
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        apply MachineConfig kernel
        notice DriftCorrected MachineConfig kernel: kubectl-edit changed .spec.kernelType; the drift was corrected: .spec.kernelType "realtime" -> "default"
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_deleted_machine_config_is_recreated_at_once_while_nodes_run_it() {
    let mut bed = settled_with_kernel();
    let restarts = bed.restarts_of("w0");
    bed.delete(KERNEL);
    expect![[r#"
        create MachineConfig kernel
        notice DriftCorrected MachineConfig kernel: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
    assert_eq!(bed.restarts_of("w0"), restarts);
}

#[test]
fn a_deleted_machine_config_waits_like_a_new_one_once_nodes_run_without_it() {
    let mut bed = settled_with_kernel();
    bed.delete(KERNEL);
    bed.roll_out();
    expect![[r#"
        notice DriftDetected MachineConfig kernel: somebody deleted it; it is not recreated now
        notice ApprovalRequired MachineConfig kernel: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.approve(KERNEL);
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        create MachineConfig kernel
        notice DriftCorrected MachineConfig kernel: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn what_waits_holds_nothing_else() {
    let mut bed = started(&["plain", "kernel"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_list_that_does_not_name_a_machine_config_does_not_consent_to_its_deletion() {
    let mut bed = settled_with_kernel();
    bed.annotate(HCO, "autopilot=plain");
    expect![[r#"
        notice ApprovalRequired MachineConfig kernel: approval required: deleting it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn nothing_that_restarts_nodes_changes_while_the_settings_cannot_be_read() {
    let color = "{{ index .HCO.GetAnnotations \"platform.kubevirt.io/color\" | default \"quiet\" }}";
    let mut bed =
        settled(Pack::default().asset("kernel", "install: always", &kernel_template("COLOR").replace("COLOR", color)));
    bed.annotate(HCO, "approval=none");
    expect![[r#"
        create MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.annotate(HCO, "disabled-resources=what?");
    bed.paint("debug");
    expect![[r#"
        notice Invalid: disabled-resources cannot be read: "what?" is not Kind/Name; nothing is created, changed or removed until it is corrected
        notice InvalidConfiguration MachineConfig kernel: disabled-resources cannot be read: "what?" is not Kind/Name; nothing is created, changed or removed until it is corrected
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(HCO, "disabled-resources-");
    expect![[r#"
        apply MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn switching_the_autopilot_on_does_not_consent_to_a_restart() {
    for value in ["true", "kernel", "plain,kernel"] {
        let mut bed = unstarted(&["plain", "kernel"]);
        bed.annotate(HCO, &format!("autopilot={value}"));
        bed.settle();
        assert!(bed.stored(KERNEL).is_none() && bed.asked_digest(KERNEL).is_some(), "{value}");
    }
}

#[test]
fn an_approval_is_used_once_also_across_a_restart() {
    let mut bed = requested_kernel();
    let first = bed.asked_digest(KERNEL).unwrap();
    for restarts in [false, true] {
        if restarts {
            bed.restart();
            bed.settle();
        }
        bed.delete(KERNEL);
        bed.roll_out();
        bed.settle();
        assert!(bed.stored(KERNEL).is_none(), "the annotation still lists the approval");
        assert_ne!(bed.asked_digest(KERNEL).unwrap(), first, "the same question is another one the second time");
    }
    bed.annotate(HCO, &format!("approved={first},{}", bed.asked_digest(KERNEL).unwrap()));
    bed.settle();
    assert!(bed.stored(KERNEL).is_some());
}

#[test]
fn an_approval_is_for_the_difference_that_was_shown() {
    let mut bed = settled_with_kernel();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    bed.roll_out();
    bed.restart();
    bed.settle();
    let asked = bed.asked_digest(KERNEL).unwrap();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["loud"]}}));
    bed.settle();
    bed.annotate(HCO, &format!("approved={asked}"));
    bed.advance(HOUR);
    assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("realtime"), "the object has changed since the question");
    bed.approve(KERNEL);
    bed.settle();
    assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("default"));
}

#[test]
fn an_approved_write_without_an_answer_is_repeated_under_the_same_approval() {
    for fault in [Fault::Unanswered, Fault::Transient] {
        let mut bed = started(&["kernel"]);
        bed.fail_next(KERNEL, fault);
        bed.approve(KERNEL);
        bed.advance(HOUR);
        assert!(bed.stored(KERNEL).is_some());
        bed.delete(KERNEL);
        bed.roll_out();
        bed.advance(HOUR);
        assert!(bed.stored(KERNEL).is_none(), "it is used up");
    }
}

#[test]
fn ignoring_a_field_of_a_machine_config_changes_no_value_and_needs_no_approval() {
    let mut bed = settled_with_kernel();
    bed.annotate(KERNEL, "ignore-fields=/spec/kernelType");
    let lines = bed.settle();
    assert!(!lines.contains("ApprovalRequired"), "{lines}");
    assert_eq!(bed.value(KERNEL, "/spec"), json!({"kernelArguments": ["quiet"], "kernelType": "default"}));
    bed.expect_silence();
    // The field belongs to the user now.
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    bed.roll_out();
    expect![[r#""#]].assert_eq(&bed.settle());
    // Taking the override back would change the value.
    bed.annotate(KERNEL, "ignore-fields-");
    bed.advance(HOUR);
    assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("realtime"));
    assert!(bed.asked_digest(KERNEL).is_some());
}

#[test]
fn a_new_version_that_drops_a_field_of_a_machine_config_needs_an_approval() {
    let mut bed = settled_with_kernel();
    let mut without = kernel("quiet");
    without["spec"].as_object_mut().unwrap().remove("kernelType").unwrap();
    bed.upgrade(|pack| pack.with_template("kernel", &without.to_string()));
    expect![[r#"
        apply ConfigMap virt/plain: no change
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would remove .spec.kernelType
    "#]]
    .assert_eq(&bed.advance(HOUR));
    assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("default"), "removing a value may restart nodes");
    bed.approve(KERNEL);
    bed.settle();
    assert!(bed.value(KERNEL, "/spec/kernelType").is_null());
}

#[test]
fn what_is_rendered_for_every_node_restarts_the_nodes_of_all_pools() {
    let proxies = Crd { api_version: "config.openshift.io/v1", kind: "Proxy", plural: "proxies", namespaced: false };
    let proxy = "apiVersion: config.openshift.io/v1\nkind: Proxy\nmetadata: {name: cluster}\nspec: {noProxy: a}\n";
    let mut bed = TestBed::of(Pack::default().asset("proxy", "install: always", proxy));
    bed.install_crd(&proxies);
    bed.node_joins("w1", false);
    let lines = bed.advance(SECOND);
    assert!(lines.contains("creating it restarts 2 nodes of pool worker: w0, w1, one at a time; run"), "{lines}");
}

#[test]
fn a_new_version_that_drops_the_label_of_a_pool_needs_an_approval() {
    let mut bed = settled_with_kernel();
    let mut without = kernel("quiet");
    without["metadata"]["labels"] = json!({});
    bed.upgrade(|pack| pack.with_template("kernel", &without.to_string()));
    expect![[r#"
        apply ConfigMap virt/plain: no change
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would remove .metadata.labels.machineconfiguration.openshift.io/role
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.approve(KERNEL);
    bed.settle();
    assert_eq!(bed.value(KERNEL, "/metadata/labels").as_object().unwrap().len(), 1, "only ours is left");
}

#[test]
fn an_ignored_field_asks_for_nothing() {
    let mut bed = settled_with_kernel();
    bed.annotate(KERNEL, "ignore-fields=/spec/kernelType");
    let lines = bed.advance(HOUR);
    assert!(!lines.contains("ApprovalRequired"), "{lines}");
}

#[test]
fn an_approval_that_an_earlier_process_used_after_the_records_were_read_is_used() {
    let mut bed = started(&["kernel"]);
    let digest = bed.asked_digest(KERNEL).unwrap();
    // What the process before this one recorded last.
    let mut earlier = bed.fork(bed.config.clone());
    earlier.advance(SECOND);
    earlier.approve(KERNEL);
    earlier.settle();
    let state = format!("ConfigMap virt/{}", api::STATE);
    bed.edit(api::FIELD_MANAGER, &state, &json!({"data": earlier.value(&state, "/data")}));
    let lines = bed.advance(2 * HOUR);
    assert_ne!(bed.asked_digest(KERNEL), Some(digest), "the question is another one: {lines}");
}

#[test]
fn a_question_that_cannot_be_asked_because_the_records_cannot_be_read_is_reported() {
    let mut bed = unstarted(&["kernel"]);
    bed.run_until(|command| matches!(command, Command::Query { query, .. } if query.to_string().ends_with(api::STATE)));
    bed.fail_reads(1);
    let lines = bed.settle();
    assert!(lines.contains("the digest to approve is not known"), "{lines}");
    let lines = bed.advance(MINUTE);
    assert!(lines.contains("run \"virtpilot approve"), "{lines}");
}
