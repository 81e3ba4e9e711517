//! Writes that do not succeed at once.

use super::{HOUR, MINUTE, PLAIN, SECOND, SERVICE, painted, settled, started, unstarted};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::requests::Fault;
use expect_test::expect;
use serde_json::json;
use std::time::Duration;
const PAINTED: &str = "ConfigMap virt/painted";

#[test]
fn a_forbidden_write_is_reported_once_and_tried_again() {
    let mut bed = unstarted(&["plain"]);
    bed.fail_all(PLAIN, Fault::Refused(403, "forbidden"));
    expect![[r#"
        create ConfigMap virt/plain: refused with 403: forbidden
        notice Retry in 2000 ms
        notice ApplyFailed ConfigMap virt/plain: the API server refused it: forbidden
        create ConfigMap virt/plain: refused with 403: forbidden
        notice Retry in 4000 ms
        create ConfigMap virt/plain: refused with 403: forbidden
        notice Retry in 8000 ms
        create ConfigMap virt/plain: refused with 403: forbidden
        notice Retry in 16000 ms
        create ConfigMap virt/plain: refused with 403: forbidden
        notice Retry in 32000 ms
    "#]]
    .assert_eq(&bed.advance(MINUTE));
    bed.accept(PLAIN);
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn a_lost_answer_changes_nothing() {
    let mut bed = unstarted(&["plain"]);
    bed.fail_next(PLAIN, Fault::Unanswered);
    expect![[r#"
        create ConfigMap virt/plain: answer lost
        notice Retry in 200 ms
        apply ConfigMap virt/plain: no change
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    assert_eq!(bed.moves(), 1);
    bed.expect_silence();
}

#[test]
fn a_write_that_never_arrives_is_tried_with_growing_pauses_and_reported_after_four_attempts() {
    let mut bed = unstarted(&["plain"]);
    bed.fail_all(PLAIN, Fault::Transient);
    expect![[r#"
        create ConfigMap virt/plain: failed
        notice Retry in 200 ms
        create ConfigMap virt/plain: failed
        notice Retry in 400 ms
        create ConfigMap virt/plain: failed
        notice Retry in 800 ms
        create ConfigMap virt/plain: failed
        notice Retry in 1600 ms
        notice ApplyFailed ConfigMap virt/plain: it could not be written and is tried again: injected
        create ConfigMap virt/plain: failed
        notice Retry in 3200 ms
        create ConfigMap virt/plain: failed
        notice Retry in 6400 ms
    "#]]
    .assert_eq(&bed.advance(10 * SECOND));
    bed.accept(PLAIN);
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(MINUTE));
    bed.expect_silence();
}

#[test]
fn an_invalid_object_is_reported_and_a_new_desired_state_is_tried_at_once() {
    let mut bed = TestBed::of(painted());
    bed.paint("invalid");
    expect![[r#"
        create ConfigMap virt/painted: refused with 422: data.color: Invalid value
        notice Retry in 2000 ms
        notice ApplyFailed ConfigMap virt/painted: the API server refused it: data.color: Invalid value
        create ConfigMap virt/painted: refused with 422: data.color: Invalid value
        notice Retry in 4000 ms
    "#]]
    .assert_eq(&bed.advance(3 * SECOND));
    bed.paint("red");
    expect![[r#"
        create ConfigMap virt/painted
        notice AssetApplied ConfigMap virt/painted: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_existing_object_stays_while_its_new_desired_state_is_refused() {
    let mut bed = settled(painted());
    bed.paint("invalid");
    expect![[r#"
        apply ConfigMap virt/painted: refused with 422: data.color: Invalid value
        notice Retry in 2000 ms
        notice ApplyFailed ConfigMap virt/painted: the API server refused it: data.color: Invalid value
    "#]]
    .assert_eq(&bed.advance(SECOND));
    assert_eq!(bed.value(PAINTED, "/data/color"), "none");
    bed.paint("red");
    expect![[r#"
        apply ConfigMap virt/painted
        notice AssetApplied ConfigMap virt/painted: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_stale_write_waits_for_the_watch_and_then_reads_the_object() {
    let mut bed = settled(painted());
    bed.silent.insert("ConfigMap".into());
    bed.edit("person", PAINTED, &json!({"data": {"other": "theirs"}}));
    bed.paint("red");
    expect![[r#"
        apply ConfigMap virt/painted: stale
        notice Answered ConfigMap virt/painted: false
        notice Retry in 200 ms
    "#]]
    .assert_eq(&bed.settle_verbosely());
    expect![[r#"
        apply ConfigMap virt/painted: stale
        notice Answered ConfigMap virt/painted: false
        notice Retry in 400 ms
        refetch ConfigMap virt/painted
        apply ConfigMap virt/painted
        notice Answered ConfigMap virt/painted: false
        notice AssetApplied ConfigMap virt/painted: applied
    "#]]
    .assert_eq(&bed.advance_verbosely(SECOND));
    assert_eq!(bed.value(PAINTED, "/data"), json!({"color": "red", "other": "theirs"}));
    bed.silent.clear();
    bed.expect_silence();
}

#[test]
fn a_stale_write_is_repeated_as_soon_as_the_watch_reports_the_newer_version() {
    let mut bed = settled(painted());
    bed.silent.insert("ConfigMap".into());
    bed.edit("person", PAINTED, &json!({"data": {"other": "theirs"}}));
    bed.paint("red");
    bed.settle();
    bed.silent.clear();
    expect![[r#"
        apply ConfigMap virt/painted
        notice Answered ConfigMap virt/painted: false
        notice AssetApplied ConfigMap virt/painted: applied
    "#]]
    .assert_eq(&bed.settle_verbosely());
    bed.expect_silence();
}

#[test]
fn an_object_that_is_created_by_somebody_else_at_the_same_time_is_adopted_properly() {
    let mut bed = unstarted(&["plain"]);
    bed.hold_writes(PLAIN);
    bed.settle();
    bed.create("person", &super::plain("7"));
    bed.release(PLAIN);
    expect![[r#"
        create ConfigMap virt/plain: stale
        notice Retry in 200 ms
        back up ConfigMap virt/plain
        apply ConfigMap virt/plain
        notice Adopted ConfigMap virt/plain: adopted; a backup of the object as it was is kept. Changed: .data.level ("7" -> "1"), .data.mode (nothing -> "auto")
    "#]].assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_list_item_with_another_key_is_repaired() {
    let mut bed = started(&["service"]);
    bed.edit("kubectl-edit", SERVICE, &json!({"spec": {"ports": [{"name": "metrics", "port": 9999}]}}));
    bed.fail_next(SERVICE, Fault::KeyChanged);
    expect![[r#"
        apply Service virt/service: refused: the key of a list item has changed
        repair Service virt/service
        apply Service virt/service
        notice DriftCorrected Service virt/service: kubectl-edit changed .spec.ports; the drift was corrected: .spec.ports is [{"name":"metrics","port":8080}] again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_repair_that_does_not_arrive_is_repeated() {
    let mut bed = started(&["service"]);
    bed.edit("kubectl-edit", SERVICE, &json!({"spec": {"ports": [{"name": "metrics", "port": 9999}]}}));
    bed.fail_next(SERVICE, Fault::KeyChanged);
    bed.fail_next(SERVICE, Fault::Transient);
    expect![[r#"
        apply Service virt/service: refused: the key of a list item has changed
        repair Service virt/service: failed
        notice Retry in 200 ms
        repair Service virt/service
        apply Service virt/service
        notice DriftCorrected Service virt/service: kubectl-edit changed .spec.ports; the drift was corrected: .spec.ports is [{"name":"metrics","port":8080}] again
    "#]]
    .assert_eq(&bed.advance(SECOND));
}

#[test]
fn a_repair_that_does_not_help_is_reported() {
    let mut bed = started(&["service"]);
    bed.edit("kubectl-edit", SERVICE, &json!({"spec": {"ports": [{"name": "metrics", "port": 9999}]}}));
    bed.fail_all(SERVICE, Fault::KeyChanged);
    expect![[r#"
        apply Service virt/service: refused: the key of a list item has changed
        repair Service virt/service
        apply Service virt/service: refused: the key of a list item has changed
        notice Retry in 2000 ms
        notice DriftDetected Service virt/service: kubectl-edit changed .spec.ports; the drift is not corrected now
        notice ApplyFailed Service virt/service: the API server refused it: injected
        apply Service virt/service: refused: the key of a list item has changed
        repair Service virt/service: no change
        apply Service virt/service: refused: the key of a list item has changed
        notice Retry in 4000 ms
        apply Service virt/service: refused: the key of a list item has changed
        repair Service virt/service: no change
        apply Service virt/service: refused: the key of a list item has changed
        notice Retry in 8000 ms
    "#]]
    .assert_eq(&bed.advance(10 * SECOND));
    bed.accept(SERVICE);
    expect![[r#"
        apply Service virt/service
        notice DriftCorrected Service virt/service: kubectl-edit changed .spec.ports; the drift was corrected: .spec.ports is [{"name":"metrics","port":8080}] again
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn a_foreign_object_is_not_repaired_to_adopt_it() {
    let mut bed = unstarted(&["service"]);
    let spec = json!({"ports": [{"name": "metrics", "port": 9999}]});
    bed.create("person", &json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "service", "namespace": "virt"}, "spec": spec}));
    bed.fail_all(SERVICE, Fault::KeyChanged);
    let lines = bed.advance(10 * SECOND);
    assert!(lines.contains("ApplyFailed") && !lines.contains("repair"), "{lines}");
    assert_eq!(bed.value(SERVICE, "/spec"), spec);
}

#[test]
fn an_asset_that_is_switched_off_and_on_during_its_write_gets_no_second_write() {
    let mut bed = started(&["plain"]);
    bed.hold_answers(PLAIN);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#"
        apply ConfigMap virt/plain
    "#]]
    .assert_eq(&bed.settle());
    bed.annotate(HCO, "autopilot=false");
    bed.settle();
    bed.annotate(HCO, "autopilot-");
    assert!(!bed.settle().contains("plain"));
    bed.release(PLAIN);
    expect![[r#"
        apply ConfigMap virt/plain: no change
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_object_that_is_not_managed_any_more_may_still_be_created_by_a_write_in_flight() {
    let mut bed = started(&["gpu"]);
    bed.hold_writes("ConfigMap virt/gpu");
    bed.node_joins("w1", true);
    bed.settle();
    bed.node_leaves("w1");
    bed.settle();
    bed.release("ConfigMap virt/gpu");
    expect![[r#"
        create ConfigMap virt/gpu
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
    bed.node_joins("w1", true);
    expect![[r#"
        apply ConfigMap virt/gpu: no change
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn the_pause_after_a_failure_is_over_at_its_time() {
    let mut bed = unstarted(&["plain"]);
    bed.fail_next(PLAIN, Fault::Refused(500, "try later"));
    bed.settle();
    expect![[r#""#]].assert_eq(&bed.advance(Duration::from_millis(1_999)));
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(Duration::from_millis(1)));
    bed.expect_silence();
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
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.advance(2 * SECOND));
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

#[test]
fn another_desired_state_is_tried_at_once_although_the_last_one_was_refused() {
    let mut bed = super::started(&["plain"]);
    bed.fail_next(super::PLAIN, Fault::Refused(403, "forbidden"));
    bed.edit("kubectl-edit", super::PLAIN, &json!({"data": {"level": "9"}}));
    bed.settle();
    assert_eq!(bed.value(super::PLAIN, "/data/level"), "9");
    bed.annotate(super::PLAIN, r#"patch=[{"op": "replace", "path": "/data/level", "value": "7"}]"#);
    bed.settle();
    assert_eq!(bed.value(super::PLAIN, "/data/level"), "7");
}
