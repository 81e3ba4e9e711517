//! Settings that have no effect are reported with the nearest valid word, and hold nothing.

use super::{PLAIN, started};
use crate::testing::bed::HCO;
use expect_test::expect;

#[test]
fn words_that_are_not_known_on_the_hyperconverged_are_reported_once() {
    let mut bed = started(&["plain", "service", "opted"]);
    bed.annotate(HCO, "approval=nnone");
    bed.annotate(HCO, "approved=yes");
    bed.annotate(HCO, "autopilott=true");
    bed.annotate(HCO, "disabled-resources=Servise/service");
    expect![[r#"
        notice Invalid: approval is "nnone", which counts as high-impact (did you mean none?); write none or high-impact
        notice Invalid: approved lists "yes", which is not a whole digest; write sha256:* and 64 digits, as "virtpilot status -o wide" shows it, or run "virtpilot approve", which also takes the first digits
        notice Invalid: disabled-resources names the kind "Servise" (did you mean Service?), of which no asset has an object
        notice Invalid: the annotation platform.kubevirt.io/autopilott is not known (did you mean autopilot?) and has no effect
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn annotations_that_the_pack_reads_are_known() {
    let mut bed = started(&["plain", "opted"]);
    bed.annotate(HCO, "enable-opted=true");
    bed.annotate(HCO, "approval=high-impact");
    let lines = bed.settle();
    assert!(!lines.contains("notice Invalid"), "{lines}");
}

#[test]
fn words_that_are_not_known_on_an_object_are_reported_once() {
    let mut bed = started(&["plain"]);
    bed.annotate(PLAIN, "mood=unmanaged");
    bed.annotate(PLAIN, "ignore-fields=/data/levle");
    expect![[r#"
        notice InvalidAnnotation ConfigMap virt/plain: the annotation platform.kubevirt.io/mood is not known (did you mean mode?) and has no effect
        notice InvalidAnnotation ConfigMap virt/plain: ignore-fields names /data/levle, which has no effect: the autopilot sets no field "levle" there (did you mean level?)
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(PLAIN, "ignore-fields=/data/level");
    bed.annotate(PLAIN, "mood-");
    let lines = bed.settle();
    assert!(!lines.contains("InvalidAnnotation"), "{lines}");
}

#[test]
fn a_rule_that_matches_no_object_is_reported_with_the_nearest_name_and_kinds_are_read_in_any_case() {
    let mut bed = started(&["plain", "service"]);
    bed.annotate(HCO, "disabled-resources=configmap/plian, SERVICE/service");
    expect![[r#"
        notice Invalid: disabled-resources has the rule configmap/plian (did you mean plain?), which matches no object of any asset
        notice Excluded Service virt/service: excluded by disabled-resources
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    assert!(bed.core.advice()[0].contains("configmap/plian"));
}

#[test]
fn a_switch_that_is_neither_true_nor_false_holds_and_is_reported() {
    let mut bed = started(&["plain", "opted"]);
    bed.annotate(HCO, "enable-opted=True");
    let lines = bed.settle();
    assert!(lines.contains("create ConfigMap virt/opted") && !lines.contains("Invalid"), "{lines}");
    bed.annotate(HCO, "enable-opted=yes");
    expect![[r#"
        notice Invalid: asset opted: annotation `platform.kubevirt.io/enable-opted` is `yes`; write true or false
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
    assert!(bed.stored("ConfigMap virt/opted").is_some());
}
