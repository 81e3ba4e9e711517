//! Objects that somebody else created.

use super::{HOUR, KERNEL, MINUTE, PLAIN, SECOND, config_map, kernel, plain, unstarted};
use crate::testing::bed::TestBed;
use crate::testing::pack::Pack;
use crate::testing::requests::Fault;
use expect_test::expect;
use serde_json::{Value, json};
/// Somebody created an object that we want, before we start.
fn foreign(object: &Value, asset: &str) -> TestBed {
    let mut bed = unstarted(&[asset]);
    bed.create("person", object);
    bed
}

#[test]
fn an_object_is_backed_up_before_it_is_adopted_and_the_changes_are_reported() {
    let mut bed = foreign(&plain("7"), "plain");
    expect![[r#"
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice Adopted ConfigMap virt/plain: adopted; a backup of the object as it was is kept. Changed: .data.level ("7" -> "1"), .data.mode (nothing -> "auto")
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.stored(PLAIN).unwrap().annotation("platform.kubevirt.io/origin"), Some("adopted"));
    bed.expect_silence();
}

#[test]
fn an_object_that_is_as_it_should_be_is_adopted_without_changes() {
    let mut bed = foreign(&config_map("plain", &json!({"level": "1", "mode": "auto"})), "plain");
    expect![[r#"
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice Adopted ConfigMap virt/plain: adopted; a backup of the object as it was is kept. Nothing was changed
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_failed_backup_holds_the_adoption_and_is_tried_again() {
    let mut bed = foreign(&plain("7"), "plain");
    bed.fail_all(PLAIN, Fault::NoBackup);
    expect![[r#"
        apply ConfigMap virt/plain: no backup
        notice Retry in 2000 ms
        notice BackupFailed ConfigMap virt/plain: not adopted, because it could not be backed up: injected
        apply ConfigMap virt/plain: no backup
        notice Retry in 4000 ms
        apply ConfigMap virt/plain: no backup
        notice Retry in 8000 ms
        apply ConfigMap virt/plain: no backup
        notice Retry in 16000 ms
        apply ConfigMap virt/plain: no backup
        notice Retry in 32000 ms
    "#]]
    .assert_eq(&bed.advance(MINUTE));
    assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "7"}));
    bed.accept(PLAIN);
    expect![[r#"
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice Adopted ConfigMap virt/plain: adopted; a backup of the object as it was is kept. Changed: .data.level ("7" -> "1"), .data.mode (nothing -> "auto")
    "#]].assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn without_config_maps_nothing_is_adopted() {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "service", "namespace": "virt"}});
    let mut bed = foreign(&service, "service");
    bed.server.kinds.retain(|served| served.kind.kind != "ConfigMap");
    expect![[r#"
        notice BackupFailed Service virt/service: not adopted, because it could not be backed up: the API server does not serve ConfigMaps
    "#]].assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn a_secret_is_not_adopted_and_the_reason_says_what_to_do() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: keys, namespace: virt}\nstringData: {a: b}\n";
    let mut bed = TestBed::of(Pack::default().asset("keys", "install: always", secret));
    bed.create("person", &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys", "namespace": "virt"}, "data": {"a": "MQ=="}}));
    expect![[r#"
        notice BackupFailed Secret virt/keys: not adopted, because a Secret has no safe place for a backup; exclude it with disabled-resources, or save it yourself and delete it, so that it is created as the asset wants it
    "#]].assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn adopting_what_restarts_nodes_waits() {
    let mut bed = unstarted(&["kernel"]);
    bed.create("person", &kernel("debug"));
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        notice ApprovalRequired MachineConfig kernel: approval required: changing it restarts one node of pool worker: w0; run "virtpilot approve sha256:*". It would change .spec.kernelArguments[0] ("debug" -> "quiet")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.approve(KERNEL);
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        back up MachineConfig kernel
        apply MachineConfig kernel
        notice Adopted MachineConfig kernel: adopted; a backup of the object as it was is kept. Changed: .spec.kernelArguments[0] ("debug" -> "quiet")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn fields_that_somebody_else_applies_are_never_overwritten() {
    let mut bed = unstarted(&["plain"]);
    assert!(bed.apply("gitops", &plain("7")));
    expect![[r#"
        notice OwnedByAnother ConfigMap virt/plain: gitops applies .data.level; these fields are left to it
    "#]]
    .assert_eq(&bed.advance(HOUR));
    assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "7"}));
    bed.expect_silence();
}

#[test]
fn a_foreign_object_that_is_unmanaged_is_not_adopted() {
    let mut object = plain("7");
    object["metadata"]["annotations"] = json!({"platform.kubevirt.io/mode": "unmanaged"});
    let mut bed = foreign(&object, "plain");
    expect![[r#"
        notice UnmanagedMode ConfigMap virt/plain: mode is unmanaged: the object is left alone
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn a_foreign_object_with_a_refused_patch_is_not_adopted() {
    let mut object = plain("7");
    object["metadata"]["annotations"] = json!({"platform.kubevirt.io/patch": "what?"});
    let mut bed = foreign(&object, "plain");
    expect![[r#"
        notice InvalidPatch ConfigMap virt/plain: patch refused, the last good state is kept: it is not JSON: expected value at line 1 column 1
    "#]].assert_eq(&bed.advance(HOUR));
    assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "7"}));
    bed.expect_silence();
}

#[test]
fn an_ignored_field_of_a_foreign_object_keeps_its_value() {
    let mut object = plain("7");
    object["metadata"]["annotations"] = json!({"platform.kubevirt.io/ignore-fields": "/data/level"});
    let mut bed = foreign(&object, "plain");
    expect![[r#"
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice Adopted ConfigMap virt/plain: adopted; a backup of the object as it was is kept. Changed: .data.mode (nothing -> "auto")
    "#]].assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "7", "mode": "auto"}));
    bed.expect_silence();
}

#[test]
fn an_object_that_changes_before_its_adoption_is_looked_at_again() {
    let mut bed = foreign(&plain("7"), "plain");
    bed.hold_writes(PLAIN);
    bed.settle();
    bed.edit("person", PLAIN, &json!({"data": {"level": "8"}}));
    bed.release(PLAIN);
    expect![[r#"
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain: stale
        notice Retry in 200 ms
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice Adopted ConfigMap virt/plain: adopted; a backup of the object as it was is kept. Changed: .data.level ("8" -> "1"), .data.mode (nothing -> "auto")
    "#]].assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn an_object_that_somebody_keeps_creating_is_not_adopted_for_ever() {
    let mut bed = foreign(&plain("7"), "plain");
    for _ in 0..10 {
        assert!(bed.settle().contains("adopted"));
        bed.delete(PLAIN);
        bed.create("rival", &plain("7"));
    }
    bed.settle();
    bed.delete(PLAIN);
    bed.create("rival", &plain("7"));
    expect![[r#"
        notice ThrashingDetected ConfigMap virt/plain: somebody keeps deleting it, so it is recreated with growing pauses; stop whoever does, or exclude it with disabled-resources
    "#]].assert_eq(&bed.settle());
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice Adopted ConfigMap virt/plain: adopted; a backup of the object as it was is kept. Changed: .data.level ("7" -> "1"), .data.mode (nothing -> "auto")
    "#]].assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}
