//! Stories that show how the test bed is used.

use crate::testing::bed::{DESCHEDULERS, HCO, TestBed};
use crate::testing::pack::{ALWAYS, Pack, config_map};
use crate::testing::requests::Fault;
use expect_test::expect;
use serde_json::{Value, json};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn plain(level: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain", "namespace": "virt"}, "data": {"level": level}})
}

#[test]
fn a_start_creates_what_applies_and_asks_for_an_approval_of_the_rest() {
    let mut bed = TestBed::new();
    expect![[r#"
        notice ApprovalRequired MachineConfig kernel: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
        create ConfigMap virt/plain
        create Service virt/service
        notice AssetApplied ConfigMap virt/plain: applied
        notice AssetApplied Service virt/service: applied
        create ConfigMap virt/asking
        notice AssetApplied ConfigMap virt/asking: applied
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    expect![[r#"
        plain (ConfigMap virt/plain) in sync
        service (Service virt/service) in sync
        opted (ConfigMap virt/opted) not wanted: annotation `platform.kubevirt.io/enable-opted` of the HyperConverged object should be `true` and is not set
        lasting (ConfigMap virt/lasting) not wanted: annotation `platform.kubevirt.io/enable-lasting` of the HyperConverged object should be `true` and is not set
        gpu not applicable: hardware detector `gpuPresent` should be true on some node and is false on every node
        asking (ConfigMap virt/asking) in sync
        kernel (MachineConfig kernel) held: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
        descheduler not applicable: the cluster does not serve KubeDescheduler of operator.openshift.io/v1, which the Kube Descheduler Operator provides
    "#]].assert_eq(&bed.status());
    bed.approve("MachineConfig kernel");
    expect![[r#"
        create MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.restart();
    expect![[r#"
        apply MachineConfig kernel: no change
        apply ConfigMap virt/plain: no change
        apply Service virt/service: no change
        apply ConfigMap virt/asking: no change
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn every_command_of_a_start() {
    let pack = Pack::default().asset("a", ALWAYS, &config_map("a", "data: {x: \"1\"}"));
    let mut bed = TestBed::of(pack);
    expect![[r#"
        discover
        watch apiextensions.k8s.io/v1 CustomResourceDefinition (Names)
        waiting for HyperConverged, which the API server does not serve, CustomResourceDefinition
        query v1 ConfigMap virt/virt-platform-autopilot-state
        watch hco.kubevirt.io/v1 HyperConverged virt (Whole)
        waiting for CustomResourceDefinition, HyperConverged
        watch v1 Node (Part)
        waiting for Node, CustomResourceDefinition, HyperConverged
        waiting for CustomResourceDefinition, HyperConverged
        waiting for HyperConverged
        notice Subject HyperConverged virt/kubevirt-hyperconverged u3
        ready
        watch v1 ConfigMap virt (Metadata)
        waiting for ConfigMap
        ready
        create ConfigMap virt/a
        notice AssetApplied ConfigMap virt/a: applied
        notice State ConfigMap virt/a: InSync
    "#]]
    .assert_eq(&bed.settle_verbosely());
}

#[test]
fn drift_is_corrected_once_and_what_others_apply_is_theirs() {
    let mut bed = TestBed::settled();
    bed.edit("kubectl-edit", "ConfigMap virt/plain", &json!({"data": {"level": "9", "more": "theirs"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value("ConfigMap virt/plain", "/data"), json!({"level": "1", "mode": "auto", "more": "theirs"}));
    assert!(!bed.apply("gitops", &plain("2")), "it is ours");
    bed.apply_by_force("gitops", &plain("2"));
    expect![[r#"
        notice OwnedByAnother ConfigMap virt/plain: gitops applies .data.level; these fields are left to it
    "#]]
    .assert_eq(&bed.settle());
    expect![[r#"
        virt-platform-autopilot applied data.mode metadata.labels.platform.kubevirt.io/managed-by
        kubectl-edit updated data.more
        gitops applied data.level
    "#]]
    .assert_eq(&bed.owners("ConfigMap virt/plain"));
    bed.expect_silence();
}

#[test]
fn an_opt_in_that_is_taken_back_prunes_what_was_created() {
    let mut bed = TestBed::settled();
    bed.annotate(HCO, "enable-opted=true");
    bed.annotate(HCO, "enable-lasting=true");
    expect![[r#"
        create ConfigMap virt/lasting
        create ConfigMap virt/opted
        notice AssetApplied ConfigMap virt/lasting: applied
        notice AssetApplied ConfigMap virt/opted: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.annotate(HCO, "enable-opted-");
    bed.annotate(HCO, "enable-lasting=false");
    expect![[r#"
        notice LeftBehind ConfigMap virt/lasting: not wanted any more, but kept: objects like it are never deleted
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_object_of_somebody_else_is_backed_up_adopted_and_handed_back() {
    let mut bed = TestBed::new();
    bed.create("person", &plain("7"));
    bed.annotate(HCO, "autopilot=plain");
    bed.fail_next("ConfigMap virt/plain", Fault::NoBackup);
    expect![[r#"
        apply ConfigMap virt/plain: no backup
        notice Retry in 2000 ms
        notice BackupFailed ConfigMap virt/plain: not adopted, because it could not be backed up: injected
    "#]]
    .assert_eq(&bed.settle());
    expect![[r#"
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice Adopted ConfigMap virt/plain: adopted; a backup of the object as it was is kept. Changed: .data.level ("7" -> "1"), .data.mode (nothing -> "auto")
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.annotate(HCO, "autopilot=service");
    expect![[r#"
        hand back ConfigMap virt/plain
        notice HandedBack ConfigMap virt/plain: handed back: it is not wanted any more, and somebody else created it; its values stay
        create Service virt/service
        notice AssetApplied Service virt/service: applied
    "#]]
    .assert_eq(&bed.settle());
    expect![[r#"
        virtpilot-handback updated metadata.name
    "#]]
    .assert_eq(&bed.owners("ConfigMap virt/plain"));
    bed.expect_silence();
}

#[test]
fn a_crd_that_is_installed_later_brings_its_asset() {
    let mut bed = TestBed::settled();
    bed.annotate(HCO, "autopilot=true");
    expect![[r#"
        notice Missing KubeDescheduler of operator.openshift.io/v1: descheduler
        create MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.install_crd(&DESCHEDULERS);
    bed.node_joins("w1", true);
    bed.create("person", &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source", "namespace": "virt"}, "data": {"color": "red"}}));
    expect![[r#"
        apply ConfigMap virt/asking
        create ConfigMap virt/gpu
        notice AssetApplied ConfigMap virt/asking: applied
        notice AssetApplied ConfigMap virt/gpu: applied
        notice Served KubeDescheduler of operator.openshift.io/v1: descheduler
        create KubeDescheduler virt/cluster
        notice AssetApplied KubeDescheduler virt/cluster: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.remove_crd(&DESCHEDULERS);
    bed.node_leaves("w1");
    expect![[r#"
        notice NotApplicable ConfigMap virt/gpu: hardware detector `gpuPresent` should be true on some node and is false on every node
        notice Missing KubeDescheduler of operator.openshift.io/v1: descheduler
    "#]].assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_refused_write_is_tried_again_and_a_lost_answer_changes_nothing() {
    let mut bed = TestBed::new();
    bed.fail_all("ConfigMap virt/plain", Fault::Refused(403, "forbidden"));
    bed.fail_next("Service virt/service", Fault::Unanswered);
    bed.fail_next("ConfigMap virt/asking", Fault::Transient);
    expect![[r#"
        notice ApprovalRequired MachineConfig kernel: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
        create ConfigMap virt/plain: refused with 403: forbidden
        create Service virt/service: answer lost
        notice Retry in 2000 ms
        notice ApplyFailed ConfigMap virt/plain: the API server refused it: forbidden
        notice Retry in 200 ms
        create ConfigMap virt/asking: failed
        notice Retry in 200 ms
        create ConfigMap virt/asking
        apply Service virt/service: no change
        notice AssetApplied ConfigMap virt/asking: applied
        notice AssetApplied Service virt/service: applied
    "#]].assert_eq(&bed.advance(SECOND));
    bed.accept("ConfigMap virt/plain");
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(HOUR));
    assert_eq!(bed.moves(), 3);
    bed.expect_silence();
}

#[test]
fn a_list_item_with_another_key_is_repaired() {
    let mut bed = TestBed::settled();
    bed.edit("kubectl-edit", "Service virt/service", &json!({"spec": {"ports": [{"name": "metrics", "port": 9999}]}}));
    bed.fail_next("Service virt/service", Fault::KeyChanged);
    expect![[r#"
        apply Service virt/service: refused: the key of a list item has changed
        repair Service virt/service
        apply Service virt/service
        notice DriftCorrected Service virt/service: kubectl-edit changed .spec.ports; the drift was corrected
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_answer_may_arrive_after_the_event_of_the_next_change() {
    let mut bed = TestBed::settled();
    bed.hold_answers("ConfigMap virt/plain");
    bed.delete("ConfigMap virt/plain");
    expect![[r#"
        create ConfigMap virt/plain
    "#]]
    .assert_eq(&bed.settle());
    bed.edit("kubectl-edit", "ConfigMap virt/plain", &json!({"data": {"level": "9"}}));
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.release("ConfigMap virt/plain");
    expect![[r#"
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn what_changes_while_a_watch_is_lost_is_found_by_the_next_list() {
    let mut bed = TestBed::settled();
    bed.lose_watch("ConfigMap");
    bed.hold_writes("ConfigMap virt/plain");
    expect![[r#"
        notice WatchLost ConfigMap: connection reset
    "#]]
    .assert_eq(&bed.settle());
    bed.edit("kubectl-edit", "ConfigMap virt/plain", &json!({"data": {"level": "9"}}));
    bed.delete("ConfigMap virt/asking");
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.restore_watch("ConfigMap");
    bed.fail_reads(1);
    expect![[r#"
        create ConfigMap virt/asking
        notice DriftCorrected ConfigMap virt/asking: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.settle());
    bed.release("ConfigMap virt/plain");
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn another_release_changes_what_its_assets_render() {
    let mut bed = TestBed::settled();
    bed.restart_with(|config| config.prune = false);
    bed.upgrade(|pack| pack.with_template("plain", &config_map("plain", "data: {level: \"2\"}")));
    expect![[r#"
        notice ApprovalRequired MachineConfig kernel: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
        apply ConfigMap virt/plain
        apply Service virt/service: no change
        notice AssetApplied ConfigMap virt/plain: applied
        apply ConfigMap virt/asking: no change
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.value("ConfigMap virt/plain", "/data"), json!({"level": "2"}));
    bed.expect_silence();
}

#[test]
fn overrides_in_other_words_or_without_effect_are_no_reason_for_a_write() {
    let mut bed = TestBed::settled();
    bed.annotate("ConfigMap virt/plain", "ignore-fields=/data/none");
    bed.annotate("Service virt/service", r#"patch=[{"op": "add", "path": "/spec/type", "value": "ClusterIP"}]"#);
    expect![[r#"
        apply Service virt/service
        notice AssetApplied Service virt/service: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.annotate("Service virt/service", r#"patch=[{"value": "ClusterIP", "path": "/spec/type", "op": "add"}]"#);
    bed.expect_silence();
    bed.restart();
    bed.settle();
    assert_eq!(bed.moves(), 4, "three were created and one was patched");
}

#[test]
fn a_correction_whose_answer_is_lost_is_not_made_twice() {
    let mut bed = TestBed::settled();
    bed.edit("kubectl-edit", "ConfigMap virt/plain", &json!({"data": {"level": "9"}}));
    bed.fail_next("ConfigMap virt/plain", Fault::Unanswered);
    bed.fail_next("ConfigMap virt/plain", Fault::Transient);
    expect![[r#"
        apply ConfigMap virt/plain: answer lost
        notice Retry in 200 ms
        apply ConfigMap virt/plain: failed
        notice Retry in 400 ms
        apply ConfigMap virt/plain: no change
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected
    "#]]
    .assert_eq(&bed.advance(2 * SECOND));
    bed.expect_silence();
}

#[test]
fn a_field_that_another_manager_applies_too_keeps_its_value() {
    let mut bed = TestBed::settled();
    assert!(bed.apply("gitops", &plain("1")), "both want the same");
    bed.expect_silence();
    bed.annotate("ConfigMap virt/plain", r#"patch=[{"op": "replace", "path": "/data/level", "value": "5"}]"#);
    expect![[r#"
        notice OwnedByAnother ConfigMap virt/plain: gitops applies .data.level; these fields are left to it
    "#]]
    .assert_eq(&bed.settle());
    assert!(bed.apply(
        "gitops",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plain", "namespace": "virt"}})
    ));
    expect![[r#"
        apply ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value("ConfigMap virt/plain", "/data/level"), "5");
    bed.expect_silence();
}

#[test]
fn a_new_object_with_a_key_twice_is_refused_and_not_repaired() {
    let mut bed = TestBed::new();
    bed.fail_all("Service virt/service", Fault::KeyChanged);
    bed.annotate(HCO, "autopilot=service");
    expect![[r#"
        create Service virt/service: refused: the key of a list item has changed
        notice Retry in 2000 ms
        notice ApplyFailed Service virt/service: the API server refused it: injected
        create Service virt/service: refused: the key of a list item has changed
        notice Retry in 4000 ms
    "#]]
    .assert_eq(&bed.advance(3 * SECOND));
}
