//! Watches that break, and events and answers that arrive late.

use super::{HOUR, KERNEL, OPTED, PLAIN, SECOND, config_map, settled_with_kernel, started, unstarted};
use crate::testing::bed::HCO;
use crate::testing::requests::Fault;
use expect_test::expect;
use protocol::{Event, WatchEvent, WatchTarget};
use serde_json::json;
use server_model::watching::OpenWatch;

#[test]
fn what_changes_while_a_watch_is_lost_is_found_by_the_next_list() {
    let mut bed = started(&["plain", "asking"]);
    bed.lose_watch("ConfigMap");
    expect![[r#"
        waiting for ConfigMap
        notice WatchLost ConfigMap: connection reset
    "#]]
    .assert_eq(&bed.settle_verbosely());
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.delete("ConfigMap virt/asking");
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.restore_watch("ConfigMap");
    expect![[r#"
        create ConfigMap virt/asking
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/asking: somebody deleted it; it was recreated
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_watch_that_breaks_without_a_word_is_made_up_for_by_its_list() {
    let mut bed = started(&["plain", "asking"]);
    bed.silent.insert("ConfigMap".into());
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.delete("ConfigMap virt/asking");
    bed.settle();
    bed.silent.clear();
    bed.restore_watch("ConfigMap");
    expect![[r#"
        create ConfigMap virt/asking
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/asking: somebody deleted it; it was recreated
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn what_restarts_nodes_and_nobody_saw_for_80_seconds_is_not_undone_without_approval() {
    // The first silent watch is followed by a list; that anything was lost is reported only after the second one.
    let mut bed = settled_with_kernel();
    bed.silent.insert("MachineConfig".into());
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["loud"]}}));
    bed.roll_out();
    bed.advance(SECOND * 80);
    bed.silent.clear();
    bed.restore_watch("MachineConfig");
    let lines = bed.settle_verbosely();
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["loud"]), "{lines}");
    assert!(lines.contains("ApprovalRequired") && !lines.contains("waiting for"), "the kind stays ready: {lines}");
    bed.approve(KERNEL);
    bed.settle();
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["quiet"]));
    bed.expect_silence();
}

#[test]
fn what_restarts_nodes_and_is_found_by_the_daily_list_was_watched() {
    let mut bed = settled_with_kernel();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["loud"]}}));
    bed.verify();
    let lines = bed.settle();
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["quiet"]), "{lines}");
    bed.expect_silence();
}

#[test]
fn an_approval_in_doubt_is_used_if_nobody_watched() {
    let mut bed = started(&["kernel"]);
    bed.silent.insert("MachineConfig".into());
    bed.fail_next(KERNEL, Fault::Unanswered);
    bed.approve(KERNEL);
    bed.settle();
    assert!(bed.stored(KERNEL).is_some());
    bed.delete(KERNEL);
    bed.silent.clear();
    bed.restore_watch("MachineConfig");
    let lines = bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none(), "used twice: {lines}");
}

#[test]
fn an_object_that_was_reported_before_it_was_wanted_is_read() {
    let mut bed = started(&["plain", "opted"]);
    bed.create("person", &config_map("opted", &json!({"size": "huge"})));
    bed.settle();
    bed.annotate(HCO, "enable-opted=true");
    expect![[r#"
        refetch ConfigMap virt/opted
        back up ConfigMap virt/opted
        apply ConfigMap virt/opted
        notice Answered ConfigMap virt/opted: false
        notice Adopted ConfigMap virt/opted: adopted; a backup of the object as it was is kept. Changed: .data.size ("huge" -> "small")
        notice State ConfigMap virt/opted: InSync
    "#]].assert_eq(&bed.settle_verbosely());
    bed.expect_silence();
}

#[test]
fn a_failed_read_is_repeated() {
    let mut bed = started(&["plain", "opted"]);
    bed.create("person", &config_map("opted", &json!({"size": "huge"})));
    bed.settle();
    bed.annotate(HCO, "enable-opted=true");
    bed.fail_reads(1);
    expect![[r#""#]].assert_eq(&bed.settle());
    expect![[r#"
        back up ConfigMap virt/opted
        apply ConfigMap virt/opted
        notice Adopted ConfigMap virt/opted: adopted; a backup of the object as it was is kept. Changed: .data.size ("huge" -> "small")
    "#]].assert_eq(&bed.advance(HOUR));
    bed.expect_silence();
}

#[test]
fn an_old_event_is_ignored() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    let old = bed.stored(PLAIN).unwrap().live();
    bed.settle();
    bed.report_live(PLAIN, old);
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_answer_may_arrive_after_the_event_of_the_next_change() {
    let mut bed = started(&["plain"]);
    bed.hold_answers(PLAIN);
    bed.delete(PLAIN);
    expect![[r#"
        create ConfigMap virt/plain
    "#]]
    .assert_eq(&bed.settle());
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.release(PLAIN);
    expect![[r#"
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_answer_that_arrives_after_the_deletion_is_ignored() {
    let mut bed = started(&["plain"]);
    bed.hold_answers(PLAIN);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.settle();
    bed.delete(PLAIN);
    bed.settle();
    bed.release(PLAIN);
    expect![[r#"
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
        create ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: somebody deleted it; it was recreated
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data/level"), "1");
    bed.expect_silence();
}

#[test]
fn an_object_that_is_created_and_pruned_while_its_watch_is_lost_is_gone() {
    let mut bed = started(&["plain", "opted"]);
    bed.annotate(HCO, "enable-opted=true");
    bed.settle();
    bed.silent.insert("ConfigMap".into());
    bed.annotate(HCO, "enable-opted-");
    expect![[r#"
        delete ConfigMap virt/opted
        notice Pruned ConfigMap virt/opted: pruned: it was not wanted any more
    "#]]
    .assert_eq(&bed.settle());
    assert!(bed.stored(OPTED).is_none());
    bed.silent.clear();
    bed.expect_silence();
}

#[test]
fn a_watch_of_crds_that_lists_again_asks_what_is_served() {
    let mut bed = started(&["descheduler"]);
    bed.lose_watch("CustomResourceDefinition");
    bed.settle();
    bed.install_crd(&crate::testing::bed::DESCHEDULERS);
    bed.restore_watch("CustomResourceDefinition");
    expect![[r#"
        create KubeDescheduler virt/cluster
        notice AssetApplied KubeDescheduler virt/cluster: applied
    "#]]
    .assert_eq(&bed.advance(super::SECOND));
    bed.expect_silence();
}

#[test]
fn a_repeated_event_changes_nothing() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    bed.settle();
    bed.watches.values_mut().for_each(OpenWatch::repeat);
    expect![[r#""#]].assert_eq(&bed.settle_verbosely());
    bed.expect_silence();
}

#[test]
fn after_a_restore_lower_versions_count() {
    let mut bed = started(&["plain"]);
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "9"}}));
    let before = bed.server.clone();
    bed.settle();
    assert_eq!(bed.value(PLAIN, "/data/level"), "1");
    bed.restore(&before);
    let lines = bed.settle();
    assert!(lines.contains("WatchLost ConfigMap: the versions of the API server went back"), "{lines}");
    assert_eq!(bed.value(PLAIN, "/data/level"), "1", "{lines}");
    bed.edit("kubectl-edit", PLAIN, &json!({"data": {"level": "8"}}));
    expect![[r#"
        apply ConfigMap virt/plain
        notice DriftCorrected ConfigMap virt/plain: kubectl-edit changed .data.level; the drift was corrected: .data.level is "1" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn an_object_that_is_missing_after_a_restore_was_deleted_by_nobody() {
    let mut bed = unstarted(&["plain"]);
    let before = bed.server.clone();
    bed.advance(super::SECOND);
    bed.restore(&before);
    let lines = bed.settle();
    assert!(lines.contains("AssetApplied ConfigMap virt/plain") && !lines.contains("somebody deleted it"), "{lines}");
    bed.expect_silence();
}

#[test]
fn a_watch_that_is_lost_because_its_kind_is_not_served_asks_what_is_served() {
    let discoveries = |is_unserved: bool| {
        let mut bed = started(&["plain"]);
        let target =
            WatchTarget { kind: bed.server.kind_called("ConfigMap"), namespace: "virt".into(), name: String::new() };
        bed.handle(vec![Event::Watched(target, WatchEvent::Lost { why: "not found".into(), is_unserved })]);
        bed.advance_verbosely(HOUR).matches("discover").count()
    };
    assert_eq!((discoveries(false), discoveries(true)), (0, 1));
}
