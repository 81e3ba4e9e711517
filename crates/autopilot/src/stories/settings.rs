//! What the HyperConverged says about everything.

use super::{HOUR, PLAIN, SECOND, started, unstarted};
use crate::testing::bed::{HCO, TestBed};
use expect_test::expect;
use serde_json::json;
#[test]
fn switching_off_says_so_once_and_changes_nothing() {
    let mut bed = started(&["plain", "kernel"]);
    bed.annotate(HCO, "autopilot=false");
    let versions = |bed: &TestBed| -> Vec<String> {
        bed.server.objects().map(|(key, stored)| format!("{key} {}", stored.version())).collect()
    };
    let before = versions(&bed);
    expect![[r#"
        notice SwitchedOff
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(versions(&bed), before);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.paint("red");
    expect![[r#"
        notice Invalid: the annotation platform.kubevirt.io/color is not known and has no effect
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn switching_on_again_corrects_what_has_changed_meanwhile() {
    let mut bed = started(&["plain"]);
    bed.annotate(HCO, "autopilot=false");
    bed.settle();
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.annotate(HCO, "autopilot-");
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_typo_at_the_start_holds_everything_and_names_the_nearest() {
    let mut bed = unstarted(&["plain", "service"]);
    bed.annotate(HCO, "autopilot=plian, service");
    expect![[r#"
        notice Invalid: the annotation autopilot names "plian" (did you mean plain?), which is no feature, group or asset; nothing new is done until it is corrected
    "#]].assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
    bed.annotate(HCO, "autopilot=plain, service");
    expect![[r#"
        create ConfigMap virt/plain
        create Service virt/service
        notice AssetApplied ConfigMap virt/plain: applied
        notice AssetApplied Service virt/service: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_typo_later_creates_and_prunes_nothing_but_what_exists_is_kept() {
    let mut bed = started(&["plain", "opted"]);
    bed.annotate(HCO, "autopilot=plian");
    bed.annotate(HCO, "enable-opted=true");
    expect![[r#"
        notice Invalid: the annotation autopilot names "plian" (did you mean plain?), which is no feature, group or asset; nothing new is done until it is corrected. Write true, false, or names such as extras; "virtpilot status --all" lists the assets
        notice InvalidConfiguration ConfigMap virt/opted: the annotation autopilot names "plian" (did you mean plain?), which is no feature, group or asset; nothing new is done until it is corrected; write true, false, or names of features, groups or assets
    "#]].assert_eq(&bed.settle());
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(HCO, "autopilot=plain, opted");
    expect![[r#"
        create ConfigMap virt/opted
        notice AssetApplied ConfigMap virt/opted: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn broken_exclusions_hold_what_exists_because_it_may_be_excluded() {
    let mut bed = started(&["plain", "service"]);
    bed.annotate(HCO, "disabled-resources=- {kind: ConfigMap, nmae: plain}");
    bed.settle();
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        notice DriftDetected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift is not corrected now
        notice InvalidConfiguration ConfigMap virt/plain: disabled-resources of the HyperConverged cannot be read, so it may be excluded; it is left as it is until that is corrected
    "#]].assert_eq(&bed.advance(HOUR));
    assert_eq!(bed.value(PLAIN, "/data/level"), "9");
    bed.expect_silence();
    bed.annotate(HCO, "disabled-resources=- {kind: ConfigMap, name: other}");
    expect![[r#"
        notice Invalid: disabled-resources has the rule ConfigMap/other, which matches no object of any asset
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "1");
    bed.expect_silence();
}

#[test]
fn broken_exclusions_hold_and_name_the_line() {
    let mut bed = started(&["plain", "opted"]);
    bed.annotate(HCO, "disabled-resources=- {kind: ConfigMap, name: plain}\n- {kind: Service, nmae: service}\n");
    bed.annotate(HCO, "enable-opted=true");
    expect![[r#"
        notice Invalid: disabled-resources cannot be read: line 2: there is no key "nmae"; write kind, name and namespace; nothing is created, changed or removed until it is corrected
        notice InvalidConfiguration ConfigMap virt/opted: disabled-resources cannot be read: line 2: there is no key "nmae"; write kind, name and namespace; nothing is created, changed or removed until it is corrected
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(HCO, "disabled-resources=- {kind: ConfigMap, name: plain}\n");
    expect![[r#"
        notice Excluded ConfigMap virt/plain: excluded by disabled-resources
        create ConfigMap virt/opted
        notice AssetApplied ConfigMap virt/opted: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_excluded_object_is_left_as_it_is_until_it_is_included_again() {
    let mut bed = started(&["plain"]);
    bed.annotate(HCO, "disabled-resources=ConfigMap/pl*");
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        notice Excluded ConfigMap virt/plain: excluded by disabled-resources
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
    bed.delete(PLAIN);
    expect![[r#""#]].assert_eq(&bed.advance(HOUR));
    bed.annotate(HCO, "disabled-resources-");
    expect![[r#"
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn while_the_settings_cannot_be_read_nothing_foreign_is_adopted() {
    let mut bed = started(&["plain", "opted"]);
    bed.create("person", &super::config_map("opted", &json!({"size": "huge"})));
    bed.annotate(HCO, "enable-opted=true");
    bed.annotate(HCO, "autopilot=plian");
    expect![[r#"
        notice Invalid: the annotation autopilot names "plian" (did you mean plain?), which is no feature, group or asset; nothing new is done until it is corrected. Write true, false, or names such as extras; "virtpilot status --all" lists the assets
        notice InvalidConfiguration ConfigMap virt/opted: the annotation autopilot names "plian" (did you mean plain?), which is no feature, group or asset; nothing new is done until it is corrected; write true, false, or names of features, groups or assets
    "#]].assert_eq(&bed.settle());
    bed.annotate(HCO, "autopilot-");
    expect![[r#"
        back up ConfigMap virt/opted
        apply ConfigMap virt/opted
        notice Adopted ConfigMap virt/opted: adopted; a backup of the object as it was is kept. Changed: .data.size ("huge" -> "small")
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_broken_asset_is_reported_and_keeps_its_object() {
    let data = "data: {color: '{{ if eq (index .HCO.GetAnnotations \"platform.kubevirt.io/color\") \"bad\" }}{{ div 1 0 }}{{ end }}x'}";
    let template = crate::testing::pack::config_map("painted", data);
    let pack = crate::testing::pack::Pack::default().asset("painted", "install: always", &template);
    let mut bed = super::settled(pack);
    bed.paint("bad");
    expect![[r#"
        notice Invalid: asset painted: active/painted.yaml.tpl:4: div: division by zero
    "#]]
    .assert_eq(&bed.settle());
    bed.edit("kubectl-edit", "ConfigMap virt/painted", &json!({"data": {"color": "9"}}));
    expect![[r#"
        apply ConfigMap virt/painted
        notice DriftCorrected ConfigMap virt/painted: kubectl-edit changed .data.color; the drift was corrected: .data.color is "x" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}
