//! The annotations by which users override single objects.

use super::{HOUR, KERNEL, MINUTE, PLAIN, SERVICE, plain, settled_with_kernel, started};
use crate::testing::bed::TestBed;
use expect_test::expect;
use serde_json::json;
#[test]
fn a_patch_is_honoured_and_taking_it_back_restores_the_desired_state() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, r#"patch=[{"op": "replace", "path": "/data/level", "value": "5"}]"#);
    expect![[r#"
        apply ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "5" again
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "5");
    bed.annotate(PLAIN, "patch-");
    expect![[r#"
        apply ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "1");
    bed.expect_silence();
}

#[test]
fn a_refused_patch_keeps_the_last_good_state_also_after_a_restart() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, r#"patch=[{"op": "replace", "path": "/data/level", "value": "5"}]"#);
    bed.settle();
    bed.annotate(PLAIN, r#"patch=[{"op": "replace", "path": "/metadata/name", "value": "other"}]"#);
    expect![[r#"
        notice InvalidPatch ConfigMap virt/plain: patch refused, the last good state is kept: operation 1: /metadata/name may not be patched in a ConfigMap; see `virtpilot explain patch ConfigMap`
    "#]].assert_eq(&bed.settle());
    bed.restart();
    bed.settle();
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "5" again
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "5");
    bed.expect_silence();
}

#[test]
fn a_patch_that_the_server_refuses_keeps_the_last_good_state() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, r#"patch=[{"op": "replace", "path": "/data/level", "value": "5"}]"#);
    bed.settle();
    bed.annotate(PLAIN, r#"patch=[{"op": "replace", "path": "/data/level", "value": "invalid"}]"#);
    expect![[r#"
        apply ConfigMap virt/plain: refused with 422: data.level: Invalid value
        notice Retry in 2000 ms
        notice InvalidPatch ConfigMap virt/plain: patch refused, the last good state is kept: data.level: Invalid value
    "#]]
    .assert_eq(&bed.advance(HOUR));
    assert_eq!(bed.value(PLAIN, "/data/level"), "5");
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "5" again
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "5");
    bed.expect_silence();
}

#[test]
fn a_patch_of_a_sensitive_kind_is_refused() {
    let mut bed = settled_with_kernel();
    bed.annotate(KERNEL, r#"patch=[{"op": "replace", "path": "/spec/kernelType", "value": true}]"#);
    expect![[r#"
        notice InvalidPatch MachineConfig kernel: patch refused, the last good state is kept: a MachineConfig cannot be patched by annotation: it configures files, units and kernel arguments of nodes
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_ignored_field_is_released_and_then_left_alone() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "ignore-fields=/data/level");
    expect![[r#"
        release ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "1");
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.apply_by_force("gitops", &plain("8"));
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.restart();
    bed.settle();
    assert_eq!(bed.value(PLAIN, "/data/level"), "8");
    bed.expect_silence();
}

#[test]
fn ignoring_a_list_item_is_refused_with_the_field_that_can_be_ignored() {
    let mut bed = started(&["service"]);
    bed.annotate(SERVICE, "ignore-fields=/spec/ports/0/port");
    expect![[r#"
        notice InvalidIgnoreFields Service virt/service: ignore-fields refused, the last good state is kept: /spec/ports/0/port leads into a list; ignore /spec/ports as a whole
    "#]].assert_eq(&bed.settle());
    bed.edit("kubectl-edit", SERVICE, &json!({"spec": {"selector": {"app": "other"}}}));
    expect![[r#"
        apply Service virt/service
        notice DriftCorrected Service virt/service: kubectl-edit changed .spec.selector.app; the drift was corrected: .spec.selector.app is "virt" again
    "#]]
    .assert_eq(&bed.settle());
    bed.annotate(SERVICE, "ignore-fields-");
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_unmanaged_object_is_left_alone_until_it_is_managed_again() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "mode=Unmanaged");
    expect![[r#"
        notice UnmanagedMode ConfigMap virt/plain: mode is unmanaged: the object is left alone
    "#]]
    .assert_eq(&bed.settle());
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.restart();
    assert!(!bed.settle().contains("apply ConfigMap virt/plain"));
    bed.expect_silence();
    bed.annotate(PLAIN, "mode=managed");
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_unmanaged_object_that_is_deleted_is_created_again_and_managed() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "mode=unmanaged");
    bed.settle();
    bed.delete(PLAIN);
    expect![[r#"
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated, without its overrides: platform.kubevirt.io/mode: unmanaged
    "#]].assert_eq(&bed.settle());
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_unknown_mode_holds_the_object() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "mode=off");
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        notice InvalidMode ConfigMap virt/plain: mode is "off"; write managed or unmanaged
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(PLAIN, "mode-");
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
}

#[test]
fn a_paused_object_waits_until_the_annotation_is_removed() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "reconcile-paused=true");
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        notice Paused ConfigMap virt/plain: paused; remove the annotation reconcile-paused to resume
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(PLAIN, "reconcile-paused-");
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_pause_ends_at_its_time_without_an_event() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "reconcile-paused=2026-03-01T00:30:00Z");
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        notice Paused ConfigMap virt/plain: paused; remove the annotation reconcile-paused to resume
    "#]]
    .assert_eq(&bed.advance(29 * MINUTE));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.advance(MINUTE));
    bed.expect_silence();
}

#[test]
fn a_pause_that_cannot_be_read_is_a_pause() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "reconcile-paused=tomorrow");
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        notice InvalidPause ConfigMap virt/plain: reconcile-paused is "tomorrow", which counts as paused; write true, or a time such as 2027-01-31T18:00:00Z
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn overrides_in_other_words_or_without_effect_are_no_reason_for_a_write() {
    let mut bed = TestBed::settled();
    bed.annotate("ConfigMap virt/plain", "ignore-fields=/data/none");
    bed.annotate("Service virt/service", r#"patch=[{"op": "add", "path": "/spec/sessionAffinity", "value": "None"}]"#);
    expect![[r#"
        notice InvalidAnnotation ConfigMap virt/plain: ignore-fields names /data/none, which has no effect: the autopilot sets no field "none" there (did you mean mode?)
        apply Service virt/service
        notice AssetApplied Service virt/service: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.annotate("Service virt/service", r#"patch=[{"value": "None", "path": "/spec/sessionAffinity", "op": "add"}]"#);
    bed.expect_silence();
    bed.restart();
    bed.settle();
    assert_eq!(bed.moves(), 5, "three were created, one was patched, and the records were written");
}

#[test]
fn a_patch_below_a_field_that_the_object_does_not_have_is_refused() {
    let bare = crate::testing::pack::Pack::default().asset(
        "bare",
        "install: always",
        &crate::testing::pack::config_map("bare", ""),
    );
    let mut bed = super::settled(bare);
    bed.annotate("ConfigMap virt/bare", r#"patch=[{"op": "add", "path": "/data/a", "value": "1"}]"#);
    let lines = bed.settle();
    assert!(lines.contains("patch refused") && bed.value("ConfigMap virt/bare", "/data").is_null(), "{lines}");
}

#[test]
fn a_patch_that_is_refused_again_is_reported_again() {
    let mut bed = started(&["service"]);
    let refused = r#"patch=[{"op": "replace", "path": "/spec/selector", "value": {}}]"#;
    for _ in 0..2 {
        bed.annotate(SERVICE, refused);
        let lines = bed.settle();
        assert_eq!(lines.matches("InvalidPatch").count(), 1, "{lines}");
        bed.annotate(SERVICE, "patch-");
        expect![""].assert_eq(&bed.settle());
    }
}
