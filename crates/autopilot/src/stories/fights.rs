//! Another writer that never gives up.

use super::{HOUR, MINUTE, PLAIN, SECOND, started};
use crate::testing::bed::TestBed;
use expect_test::expect;
use protocol::Command;
use serde_json::json;
/// Another controller changes the object so often, and is corrected each time.
fn fight(bed: &mut TestBed, times: usize) {
    for time in 0..times {
        bed.edit("rival", PLAIN, &json!({"data": {"level": format!("rival {time}")}}));
        assert!(bed.settle().contains("DriftCorrected"), "{time}");
    }
}

fn delete_again(bed: &mut TestBed, times: usize) {
    for time in 0..times {
        bed.delete(PLAIN);
        assert!(bed.settle().contains("it was recreated"), "{time}");
    }
}

fn edit(bed: &mut TestBed) {
    bed.edit("rival", PLAIN, &json!({"data": {"level": "9"}}));
}

#[test]
fn a_fight_ends_in_a_pause_and_removing_the_annotation_resumes() {
    let mut bed = started(&["plain"]);
    fight(&mut bed, 10);
    edit(&mut bed);
    expect![[r#"
        annotate ConfigMap virt/plain
        notice DriftDetected ConfigMap virt/plain: rival changed .data.level; the drift is not corrected now
        notice ThrashingDetected ConfigMap virt/plain: rival keeps changing .data.level; it is paused. Stop the other writer or set mode to unmanaged, then remove the annotation reconcile-paused
        notice Paused ConfigMap virt/plain: paused; remove the annotation reconcile-paused to resume
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.annotate(PLAIN, "reconcile-paused-");
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: rival changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    fight(&mut bed, 9);
    bed.expect_silence();
}

#[test]
fn a_restart_gives_no_new_budget() {
    let mut bed = started(&["plain"]);
    fight(&mut bed, 10);
    bed.restart();
    bed.settle();
    edit(&mut bed);
    expect![[r#"
        annotate ConfigMap virt/plain
        notice DriftDetected ConfigMap virt/plain: rival changed .data.level; the drift is not corrected now
        notice ThrashingDetected ConfigMap virt/plain: rival keeps changing .data.level; it is paused. Stop the other writer or set mode to unmanaged, then remove the annotation reconcile-paused
        notice Paused ConfigMap virt/plain: paused; remove the annotation reconcile-paused to resume
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn removing_the_annotation_of_the_budget_gives_no_new_one() {
    let mut bed = started(&["plain"]);
    fight(&mut bed, 9);
    bed.annotate(PLAIN, "budget-");
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody changed .metadata.annotations.platform.kubevirt.io/budget; the drift was corrected
    "#]].assert_eq(&bed.settle());
    edit(&mut bed);
    expect![[r#"
        annotate ConfigMap virt/plain
        notice DriftDetected ConfigMap virt/plain: rival changed .data.level; the drift is not corrected now
        notice ThrashingDetected ConfigMap virt/plain: rival keeps changing .data.level; it is paused. Stop the other writer or set mode to unmanaged, then remove the annotation reconcile-paused
        notice Paused ConfigMap virt/plain: paused; remove the annotation reconcile-paused to resume
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_slow_rival_is_corrected_for_ever() {
    let mut bed = started(&["plain"]);
    for _ in 0..60 {
        fight(&mut bed, 1);
        bed.advance(2 * MINUTE);
    }
    bed.expect_silence();
}

#[test]
fn a_war_of_deletions_slows_down_and_is_recorded_before_each_write() {
    let mut bed = started(&["plain"]);
    bed.delete(PLAIN);
    expect![[r#"
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.settle());
    bed.delete(PLAIN);
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.settle());
    delete_again(&mut bed, 8);
    bed.delete(PLAIN);
    expect![[r#"
        notice DriftDetected ConfigMap virt/plain: somebody deleted it; it is not recreated now
        notice ThrashingDetected ConfigMap virt/plain: somebody keeps deleting it, so it is recreated with growing pauses; stop whoever does, or exclude it with disabled-resources
    "#]].assert_eq(&bed.settle());
    expect![[r#""#]].assert_eq(&bed.advance(5 * SECOND));
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_war_of_deletions_survives_a_restart() {
    let mut bed = started(&["plain"]);
    delete_again(&mut bed, 10);
    bed.delete(PLAIN);
    bed.restart();
    expect![[r#"
        notice DriftDetected ConfigMap virt/plain: somebody deleted it; it is not recreated now
        notice ThrashingDetected ConfigMap virt/plain: somebody keeps deleting it, so it is recreated with growing pauses; stop whoever does, or exclude it with disabled-resources
    "#]].assert_eq(&bed.settle());
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn the_record_is_read_before_anything_is_created() {
    let mut bed = started(&["plain"]);
    delete_again(&mut bed, 10);
    bed.delete(PLAIN);
    bed.restart();
    bed.run_until(|command| matches!(command, Command::Query { .. }));
    let held = bed.requests.extract_if(.., |request| matches!(request, Command::Query { .. })).collect::<Vec<_>>();
    expect![[r#""#]].assert_eq(&bed.advance(HOUR));
    bed.requests.extend(held);
    expect![[r#"
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.settle());
}
