//! One edit that would delete many objects waits for an approval.

use super::{HOUR, PLAIN, settled};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{self, Pack};
use crate::testing::requests::Fault;
use expect_test::expect;

/// So many ConfigMaps and half as many Services, which a list can leave out, and one ConfigMap beside them.
fn with(count: usize) -> TestBed {
    let pack = Pack::default().asset("plain", "install: always", &pack::config_map("plain", "data: {level: \"1\"}"));
    let named = |number: usize| match number % 3 {
        2 => format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: x{number}, namespace: virt}}\nspec: {{clusterIP: None}}\n"
        ),
        _ => pack::config_map(&format!("x{number}"), "data: {level: \"1\"}"),
    };
    settled(
        (0..count).fold(pack, |pack, number| {
            pack.asset(&format!("x{number}"), "install: always, group: all", &named(number))
        }),
    )
}

fn left(bed: &TestBed, count: usize) -> usize {
    let kind = |number: usize| if number % 3 == 2 { "Service" } else { "ConfigMap" };
    (0..count).filter(|number| bed.stored(&format!("{} virt/x{number}", kind(*number))).is_some()).count()
}

#[test]
fn five_deletions_go_ahead() {
    let mut bed = with(5);
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    assert_eq!(left(&bed, 5), 0);
    bed.expect_silence();
}

#[test]
fn six_deletions_wait_and_one_approval_covers_them_all() {
    let mut bed = with(6);
    bed.annotate(HCO, "autopilot=plain");
    let asked = bed.settle();
    assert_eq!((left(&bed, 6), asked.matches("ApprovalRequired").count()), (6, 6), "{asked}");
    expect![[r#"
        notice ApprovalRequired ConfigMap virt/x0: approval required: 6 objects would be deleted at once: ConfigMap virt/x0, ConfigMap virt/x1, ConfigMap virt/x3, ConfigMap virt/x4, Service virt/x2, Service virt/x5; run "virtpilot approve sha256:*", or take back the last edit of the HyperConverged
    "#]]
    .assert_eq(asked.split_inclusive('\n').next().unwrap());
    bed.expect_silence();
    bed.approve("ConfigMap virt/x0");
    bed.settle();
    assert_eq!(left(&bed, 6), 0);
    assert!(bed.stored(PLAIN).is_some());
    bed.expect_silence();
}

#[test]
fn objects_that_are_kept_anyway_are_not_counted() {
    let mut bed = with(6);
    bed.annotate("ConfigMap virt/x0", "mode=unmanaged");
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    assert_eq!(left(&bed, 6), 1, "five are few");
    assert!(bed.stored("ConfigMap virt/x0").is_some());
}

#[test]
fn objects_that_were_kept_while_others_were_deleted_are_asked_about_later() {
    let mut bed = with(9);
    let kept = [0, 1, 3, 4, 6, 7].map(|number| format!("ConfigMap virt/x{number}"));
    kept.iter().for_each(|key| bed.annotate(key, "mode=unmanaged"));
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    assert_eq!(left(&bed, 9), 6);
    kept.iter().for_each(|key| bed.annotate(key, "mode-"));
    let lines = bed.settle();
    assert_eq!((left(&bed, 9), lines.matches("ApprovalRequired").count()), (6, 6), "{lines}");
}

#[test]
fn an_edit_that_is_taken_back_deletes_nothing() {
    let mut bed = with(7);
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    bed.annotate(HCO, "autopilot-");
    bed.advance(HOUR);
    assert_eq!(left(&bed, 7), 7);
    bed.expect_silence();
}

#[test]
fn approval_none_deletes_many_at_once() {
    let mut bed = with(7);
    bed.annotate(HCO, "approval=none");
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    assert_eq!(left(&bed, 7), 0);
    bed.expect_silence();
}

#[test]
fn many_deletions_wait_also_after_an_edit_during_a_restart() {
    let mut bed = with(9);
    bed.annotate(HCO, "autopilot=plain");
    bed.restart();
    bed.advance(HOUR);
    assert_eq!(left(&bed, 9), 9);
    bed.approve("Service virt/x2");
    bed.settle();
    assert_eq!(left(&bed, 9), 0);
    bed.expect_silence();
}

#[test]
fn an_approval_of_many_deletions_goes_on_after_failures() {
    let mut bed = with(8);
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    for number in [0, 1, 3, 4] {
        bed.fail_next(&format!("ConfigMap virt/x{number}"), Fault::Transient);
    }
    bed.approve("ConfigMap virt/x0");
    bed.advance(HOUR);
    assert_eq!(left(&bed, 8), 0);
    bed.expect_silence();
}

#[test]
fn an_approval_is_for_the_objects_that_were_listed() {
    let mut bed = with(8);
    bed.annotate(HCO, "autopilot=plain,x0");
    bed.settle();
    let asked = bed.asked_digest("ConfigMap virt/x1").unwrap();
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    bed.annotate(HCO, &format!("approved={asked}"));
    bed.advance(HOUR);
    assert_eq!(left(&bed, 8), 8, "another object is to be deleted, too");
}

#[test]
fn approved_deletions_go_on_after_a_restart() {
    let mut bed = with(9);
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    for number in [1, 3, 4, 6, 7] {
        bed.fail_all(&format!("ConfigMap virt/x{number}"), Fault::Transient);
    }
    bed.fail_all("Service virt/x8", Fault::Transient);
    bed.approve("ConfigMap virt/x0");
    bed.settle();
    assert_eq!(left(&bed, 9), 6, "more than a few are left");
    bed.refusals.clear();
    bed.restart();
    let lines = bed.advance(HOUR);
    assert_eq!(left(&bed, 9), 0, "{lines}");
    assert!(!lines.contains("ApprovalRequired"), "{lines}");
    bed.expect_silence();
}

#[test]
fn approved_deletions_that_were_taken_back_are_asked_about_again() {
    let mut bed = with(9);
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    for number in [1, 3, 4, 6, 7] {
        bed.fail_all(&format!("ConfigMap virt/x{number}"), Fault::Transient);
    }
    bed.fail_all("Service virt/x8", Fault::Transient);
    bed.approve("ConfigMap virt/x0");
    bed.settle();
    bed.refusals.clear();
    bed.annotate(HCO, "autopilot-");
    bed.restart();
    bed.advance(HOUR);
    assert_eq!(left(&bed, 9), 9);
    bed.annotate(HCO, "autopilot=plain");
    bed.restart();
    let lines = bed.advance(HOUR);
    assert_eq!(left(&bed, 9), 9, "{lines}");
}
