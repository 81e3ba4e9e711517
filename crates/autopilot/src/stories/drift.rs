//! What others change is corrected, once, and reported with their name.

use super::{HOUR, KERNEL, PLAIN, SERVICE, plain, settled_with_kernel, started};
use crate::testing::bed::TestBed;
use crate::testing::requests::Fault;
use api::FIELD_MANAGER;
use change::ManagedFields;
use expect_test::expect;
use serde_json::json;
#[test]
fn a_hand_edit_is_corrected_and_other_fields_stay() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9", "more": "theirs"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "1", "mode": "auto", "more": "theirs"}));
    bed.expect_silence();
}

#[test]
fn what_others_apply_by_force_is_theirs() {
    let mut bed = started(&["plain"]);
    assert!(!bed.apply("gitops", &plain("2")), "it is ours");
    bed.apply_by_force("gitops", &plain("2"));
    expect![[r#"
        notice OwnedByAnother ConfigMap virt/plain: gitops applies .data.level; these fields are left to it
    "#]]
    .assert_eq(&bed.settle());
    expect![[r#"
        virt-platform-autopilot applied data.mode metadata.labels.platform.kubevirt.io/managed-by
        gitops applied data.level
    "#]]
    .assert_eq(&bed.owners(PLAIN));
    bed.expect_silence();
}

#[test]
fn a_removed_label_and_a_removed_field_are_put_back() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-label", PLAIN, &json!({"metadata": {"labels": null}, "data": {"mode": null}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody changed .data.mode, .metadata.labels.platform.kubevirt.io/managed-by; the drift was corrected: .data.mode is "auto" again
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_changed_annotation_of_ours_is_put_back() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "origin=adopted");
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-annotate changed .metadata.annotations.platform.kubevirt.io/origin; the drift was corrected
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.stored(PLAIN).unwrap().annotation("platform.kubevirt.io/origin"), Some("created"));
    bed.expect_silence();
}

#[test]
fn writing_the_same_value_costs_nothing() {
    let mut bed = started(&["plain"]);
    let moves = bed.moves();
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "1"}}));
    assert!(bed.apply("gitops", &plain("1")), "it is the same value");
    expect![[r#""#]].assert_eq(&bed.settle());
    assert_eq!(bed.moves(), moves);
    bed.restart();
    expect![[r#"
        apply ConfigMap virt/plain: no change
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.moves(), moves);
    bed.expect_silence();
}

#[test]
fn an_apply_under_our_own_name_is_drift() {
    let mut bed = started(&["plain"]);
    bed.apply_by_force(FIELD_MANAGER, &plain("9"));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody changed .data.mode, .metadata.annotations.platform.kubevirt.io/applied, .metadata.annotations.platform.kubevirt.io/budget, .metadata.annotations.platform.kubevirt.io/origin, .metadata.annotations.platform.kubevirt.io/source, .metadata.labels.platform.kubevirt.io/managed-by; the drift was corrected: .data.mode is "auto" again
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "1", "mode": "auto"}));
    bed.expect_silence();
}

#[test]
fn a_changed_list_is_corrected() {
    let mut bed = started(&["service"]);
    bed.edit("kubectl-edit", SERVICE, &json!({"spec": {"ports": [{"name": "metrics", "port": 9999}]}}));
    expect![[r#"
        apply Service virt/service
        notice DriftCorrected Service virt/service: kubectl-edit changed .spec.ports; the drift was corrected: .spec.ports is [{"name":"metrics","port":8080}] again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn many_edits_at_once_are_corrected_by_one_write() {
    let mut bed = started(&["plain"]);
    bed.edit("one", PLAIN, &json!({"data": {"level": "2"}}));
    bed.edit("two", PLAIN, &json!({"data": {"mode": "manual"}}));
    bed.edit("one", PLAIN, &json!({"data": {"level": "3"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: one, two changed .data.level, .data.mode; the drift was corrected: .data.level is "1" again, .data.mode is "auto" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn drift_during_a_restart_is_corrected_and_named() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.restart();
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_deleted_object_is_recreated_without_its_overrides_which_are_reported() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, r#"patch=[{"op": "replace", "path": "/data/level", "value": "5"}]"#);
    bed.settle();
    assert_eq!(bed.value(PLAIN, "/data/level"), "5");
    bed.delete(PLAIN);
    expect![[r#"
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated, without its overrides: platform.kubevirt.io/patch: [{"op":"replace","path":"/data/level","value":"5"}]
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "1");
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
fn an_object_that_is_being_deleted_is_recreated_only_when_it_is_gone() {
    let mut bed = started(&["plain"]);
    bed.edit("owner", PLAIN, &json!({"metadata": {"finalizers": ["example.com/wait"]}}));
    bed.delete(PLAIN);
    bed.edit("owner", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.edit("owner", PLAIN, &json!({"metadata": {"finalizers": null}}));
    expect![[r#"
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

/// Somebody applies another value with our field manager in the second of our own apply: no metadata shows it.
fn apply_unseen(bed: &mut TestBed, key: &str, pointer: &str, value: &serde_json::Value) {
    let before = bed.owners(key);
    let mut object = bed.stored(key).unwrap().object.clone();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.retain(|key, _| ["name", "namespace", "labels", "annotations"].contains(&key.as_str()));
    }
    *object.pointer_mut(pointer).unwrap() = value.clone();
    bed.apply_by_force(FIELD_MANAGER, &object);
    assert_eq!(bed.owners(key), before);
}

#[test]
fn what_metadata_does_not_show_is_found_by_the_daily_verification() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "8"}}));
    bed.settle();
    apply_unseen(&mut bed, PLAIN, "/data/level", &json!("9"));
    expect![""].assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "9");
    bed.verify();
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: virt-platform-autopilot changed .data.level; the drift was corrected: .data.level "9" -> "1"
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "1");
    bed.expect_silence();
    // If nothing differs, nothing is written.
    bed.verify();
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn drift_that_cannot_be_corrected_is_reported_once_and_again_when_it_is_corrected() {
    for (fault, attempts) in [(Fault::Refused(403, "forbidden"), 1), (Fault::Transient, 4)] {
        let mut bed = started(&["plain"]);
        bed.fail_all(PLAIN, fault);
        bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
        let lines = bed.advance(HOUR);
        let detected: Vec<&str> = lines.lines().filter(|line| line.contains("Drift")).collect();
        let drift = "kubectl-edit changed .data.level; the drift is not corrected now";
        assert_eq!(detected, [format!("notice DriftDetected ConfigMap virt/plain: {drift}")]);
        assert_eq!(lines.lines().take_while(|line| !line.contains("Drift")).count(), 2 * attempts, "{lines}");
        bed.accept(PLAIN);
        expect![[r#"
            apply ConfigMap virt/plain
            notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
        "#]]
        .assert_eq(&bed.advance(HOUR));
        bed.expect_silence();
    }
}

#[test]
fn drift_that_is_corrected_at_the_second_attempt_is_one_event() {
    let mut bed = started(&["plain"]);
    bed.fail_next(PLAIN, Fault::Transient);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        apply ConfigMap virt/plain: failed
        notice Retry in 200 ms
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn an_unseen_change_of_what_restarts_nodes_waits_for_approval() {
    const ARGUMENTS: &str = "/spec/kernelArguments";
    let mut bed = settled_with_kernel();
    apply_unseen(&mut bed, KERNEL, ARGUMENTS, &json!(["theirs"]));
    bed.roll_out();
    bed.verify();
    expect![[r#"
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.kernelArguments[0] ("theirs" -> "quiet")
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.value(KERNEL, ARGUMENTS), json!(["theirs"]));
    bed.expect_silence();
    bed.approve(KERNEL);
    bed.settle();
    assert_ne!(bed.value(KERNEL, ARGUMENTS), json!(["theirs"]));
    bed.expect_silence();
    apply_unseen(&mut bed, KERNEL, ARGUMENTS, &json!(["theirs"]));
    bed.roll_out();
    bed.verify();
    bed.settle();
    assert_eq!(bed.value(KERNEL, ARGUMENTS), json!(["theirs"]), "the approval is used");
}

#[test]
fn an_object_whose_owners_cannot_be_read_is_left_as_it_is() {
    let mut bed = started(&["plain"]);
    let mut live = bed.stored(PLAIN).unwrap().live();
    let fields = format!("{}{{}}{}", r#"{"f:deep":"#.repeat(200), "}".repeat(200));
    let deep = json!([{"manager": "other", "operation": "Update", "time": "t"}]).to_string();
    live.managed_fields = ManagedFields::new(&deep.replace(r#""time""#, &format!(r#""fieldsV1":{fields},"time""#)));
    live.resource_version = "999".into();
    live.labelled = false;
    bed.report_live(PLAIN, live);
    expect![[r#"
        notice ApplyFailed ConfigMap virt/plain: its managedFields are nested too deeply to be read, so it is not known who owns its fields; it is left as it is. Remove the deeply nested field, or exclude the object with disabled-resources
    "#]].assert_eq(&bed.settle());
}
