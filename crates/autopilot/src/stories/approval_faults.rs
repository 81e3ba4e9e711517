//! Approvals while things go wrong: nothing is approved twice, or without a question.

use super::{HOUR, KERNEL, MINUTE, SECOND, config_map, kernel_template, settled, settled_with_kernel, started};
use crate::status::{LineState, ObjectState};
use crate::testing::bed::{DESCHEDULERS, HCO, TestBed};
use crate::testing::pack::{self, Pack};
use crate::testing::requests::Fault;
use protocol::{Command, Event, Search, WatchEvent, WatchTarget};
use serde_json::{Map, Value, json};

fn two() -> Pack {
    let other = kernel_template("loud").replace("\"kernel\"", "\"other\"");
    Pack::default().asset("kernel", "install: always", &kernel_template("quiet")).asset(
        "other",
        "install: always",
        &other,
    )
}

fn painted_kernel() -> TestBed {
    let color = "{{ index .HCO.GetAnnotations \"platform.kubevirt.io/color\" | default \"quiet\" }}";
    settled(Pack::default().asset("kernel", "install: always", &kernel_template("COLOR").replace("COLOR", color)))
}

fn cli(bed: &TestBed) -> Vec<String> {
    bed.observe()
        .iter()
        .filter_map(|line| match &line.state {
            LineState::Object(ObjectState::Held(reason)) => Some(reason.asked()?.to_string()),
            _ => None,
        })
        .collect()
}

/// The ConfigMap with the records.
const RECORDS: &str = "ConfigMap virt/virt-platform-autopilot-state";

#[test]
fn lost_records_make_no_approval_valid_again() {
    for (restarts, replaces) in [(true, false), (false, false), (false, true)] {
        let mut bed = started(&["kernel"]);
        bed.approve(KERNEL);
        bed.settle();
        bed.delete(RECORDS);
        if restarts {
            bed.restart();
        }
        if replaces {
            bed.create("person", &config_map("virt-platform-autopilot-state", &json!({})));
        }
        bed.settle();
        bed.delete(KERNEL);
        bed.roll_out();
        let lines = bed.advance(2 * HOUR);
        assert!(bed.stored(KERNEL).is_none(), "used twice: {lines}");
        assert_eq!(cli(&bed), [bed.asked_digest(KERNEL).unwrap()]);
        bed.approve(KERNEL);
        bed.settle();
        assert!(bed.stored(KERNEL).is_some());
    }
}

/// Somebody takes entries out of the records; their ConfigMap stays the same one.
fn empty_records(bed: &mut TestBed, is_taken: impl Fn(&str) -> bool) {
    let data = bed.value(RECORDS, "/data");
    let names = data.as_object().unwrap().keys().filter(|name| is_taken(name));
    let emptied: Map<String, Value> = names.map(|name| (name.clone(), Value::Null)).collect();
    bed.edit("person", RECORDS, &json!({"data": emptied}));
}

#[test]
fn records_that_somebody_emptied_make_no_approval_valid_again() {
    // An hour is enough to notice it; without one, only the next process can.
    for pause in [3 * HOUR, SECOND] {
        for taken in ["", ".kernel", "used-approvals"] {
            let mut bed = started(&["kernel"]);
            bed.approve(KERNEL);
            bed.settle();
            empty_records(&mut bed, |name| name.ends_with(taken));
            bed.advance(pause);
            bed.restart();
            bed.settle();
            bed.delete(KERNEL);
            bed.roll_out();
            let lines = bed.advance(MINUTE);
            assert!(bed.stored(KERNEL).is_none(), "used twice: {lines}");
            assert_eq!(cli(&bed), [bed.asked_digest(KERNEL).unwrap()]);
            bed.approve(KERNEL);
            bed.settle();
            assert!(bed.stored(KERNEL).is_some());
            bed.expect_silence();
        }
    }
}

#[test]
fn records_that_somebody_emptied_are_written_again_within_an_hour() {
    let mut bed = started(&["kernel"]);
    bed.approve(KERNEL);
    bed.settle();
    let before = bed.value(RECORDS, "/data");
    empty_records(&mut bed, |_| true);
    bed.advance(HOUR + SECOND);
    assert_eq!(bed.value(RECORDS, "/data"), before);
    bed.expect_silence();
}

#[test]
fn records_that_somebody_emptied_after_a_restart_are_written_again() {
    let mut bed = started(&["kernel"]);
    bed.approve(KERNEL);
    bed.settle();
    let before = bed.value(RECORDS, "/data");
    bed.restart();
    bed.settle();
    empty_records(&mut bed, |_| true);
    bed.advance(HOUR + SECOND);
    assert_eq!(bed.value(RECORDS, "/data"), before);
}

#[test]
fn records_that_cannot_be_written_are_tried_again_with_growing_pauses() {
    let mut bed = super::unstarted(&["kernel"]);
    bed.fail_all(RECORDS, Fault::Transient);
    let tries = bed.advance(HOUR).matches("RecordFailed").count();
    assert!((10..30).contains(&tries), "{tries}");
}

#[test]
fn creations_wait_for_the_records_and_go_ahead_as_soon_as_they_are_read() {
    let mut bed = super::unstarted(&["plain"]);
    bed.run_until(|command| matches!(command, Command::Query { .. }));
    bed.fail_reads(1);
    bed.advance(9 * SECOND);
    assert!(bed.stored(super::PLAIN).is_none());
    bed.advance(SECOND);
    assert!(bed.stored(super::PLAIN).is_some());
}

#[test]
fn a_question_that_depends_on_lost_records_is_asked_again() {
    for replaces in [false, true] {
        let mut bed = started(&["kernel"]);
        let asked = bed.asked_digest(KERNEL).unwrap();
        bed.delete(RECORDS);
        assert_eq!(cli(&bed), Vec::<String>::new(), "only the operator can write them");
        if replaces {
            bed.create("person", &config_map("virt-platform-autopilot-state", &json!({})));
        }
        bed.annotate(HCO, &format!("approved={asked}"));
        let lines = bed.advance(SECOND);
        assert!(bed.stored(KERNEL).is_none(), "{lines}");
        assert_eq!(cli(&bed), [bed.asked_digest(KERNEL).unwrap()]);
        assert_ne!(cli(&bed), [asked]);
        bed.expect_silence();
    }
}

#[test]
fn an_approved_write_that_was_refused_is_approved_for_the_operator_and_status_alike() {
    for takes_back in [false, true] {
        let mut bed = started(&["kernel"]);
        let first = bed.asked_digest(KERNEL).unwrap();
        bed.fail_all(KERNEL, Fault::Refused(403, "no"));
        bed.approve(KERNEL);
        bed.advance(SECOND);
        if takes_back {
            bed.annotate(HCO, "approved-");
            bed.advance(HOUR);
            assert_eq!(cli(&bed), [bed.asked_digest(KERNEL).unwrap()]);
        }
        bed.annotate(HCO, &format!("approved={first},{}", cli(&bed)[0]));
        bed.accept(KERNEL);
        bed.advance(HOUR);
        assert!(bed.stored(KERNEL).is_some());
        bed.delete(KERNEL);
        bed.roll_out();
        let lines = bed.advance(HOUR);
        assert!(bed.stored(KERNEL).is_none(), "used twice: {lines}");
    }
}

#[test]
fn a_refused_write_is_tried_again_under_its_approval() {
    let mut bed = started(&["kernel"]);
    bed.fail_next(KERNEL, Fault::Refused(403, "no"));
    bed.approve(KERNEL);
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_some());
}

#[test]
fn an_approved_write_is_not_made_without_its_record() {
    let mut bed = started(&["kernel"]);
    bed.fail_all(RECORDS, Fault::Refused(403, "no"));
    bed.approve(KERNEL);
    let lines = bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none(), "{lines}");
    assert!(
        lines.contains("ApplyFailed MachineConfig kernel: it could not be written and is tried again: the use"),
        "{lines}"
    );
    bed.accept(RECORDS);
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_some());
}

#[test]
fn what_is_taken_back_while_it_is_recorded_is_not_written() {
    let mut bed = started(&["kernel"]);
    bed.hold_writes(RECORDS);
    bed.approve(KERNEL);
    bed.settle();
    bed.annotate(HCO, "approved-");
    bed.settle();
    bed.release(RECORDS);
    let lines = bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none(), "{lines}");
    assert_eq!(cli(&bed), [bed.asked_digest(KERNEL).unwrap()]);
}

#[test]
fn a_question_that_cannot_be_asked_says_why() {
    let mut bed = super::unstarted(&["kernel"]);
    bed.fail_all(RECORDS, Fault::Refused(403, "no"));
    let lines = bed.advance(HOUR);
    let why =
        "the digest to approve is not known until the operator has written ConfigMap virt-platform-autopilot-state";
    assert_eq!(lines.matches(why).count(), 1, "{lines}");
    bed.accept(RECORDS);
    let lines = bed.advance(HOUR);
    assert!(lines.contains("run \"virtpilot approve sha256:"), "{lines}");
    bed.expect_silence();
}

#[test]
fn two_approvals_at_once_are_both_recorded() {
    let mut bed = settled(two());
    let (a, b) = (bed.asked_digest(KERNEL).unwrap(), bed.asked_digest("MachineConfig other").unwrap());
    bed.annotate(HCO, &format!("approved={a},{b}"));
    bed.advance(SECOND);
    assert!(bed.stored(KERNEL).is_some() && bed.stored("MachineConfig other").is_some());
    bed.restart();
    bed.settle();
    bed.delete(KERNEL);
    bed.delete("MachineConfig other");
    bed.roll_out();
    let lines = bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none() && bed.stored("MachineConfig other").is_none(), "used twice: {lines}");
}

#[test]
fn an_approval_is_used_if_the_answer_was_lost_and_the_next_attempt_is_outdated() {
    let mut bed = started(&["kernel"]);
    bed.silent.insert("MachineConfig".into());
    bed.fail_next(KERNEL, Fault::Unanswered);
    bed.approve(KERNEL);
    let lines = bed.advance(SECOND);
    bed.silent.clear();
    let more = bed.advance(SECOND);
    assert!(bed.stored(KERNEL).is_some());
    bed.delete(KERNEL);
    bed.roll_out();
    let again = bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none(), "used twice:\n{lines}\n--{more}\n--{again}");
}

#[test]
fn the_same_holds_for_a_change() {
    let mut bed = painted_kernel();
    bed.approve(KERNEL);
    bed.settle();
    bed.paint("debug");
    bed.settle();
    bed.silent.insert("MachineConfig".into());
    bed.fail_next(KERNEL, Fault::Unanswered);
    bed.approve(KERNEL);
    bed.advance(SECOND);
    bed.silent.clear();
    bed.advance(SECOND);
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["debug"]));
    bed.lose_watch("MachineConfig");
    bed.settle();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["quiet"]}}));
    bed.restore_watch("MachineConfig");
    let again = bed.advance(HOUR);
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["quiet"]), "used twice {again}");
}

#[test]
fn an_approval_in_doubt_counts_as_used_once_the_watch_is_lost() {
    let mut bed = started(&["kernel"]);
    bed.silent.insert("MachineConfig".into());
    bed.fail_next(KERNEL, Fault::Unanswered);
    bed.approve(KERNEL);
    let lines = bed.settle();
    assert!(bed.stored(KERNEL).is_some());
    bed.delete(KERNEL);
    bed.roll_out();
    bed.silent.clear();
    bed.lose_watch("MachineConfig");
    bed.settle();
    bed.restore_watch("MachineConfig");
    let again = bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none(), "used twice:\n{lines}\n--{again}");
}

#[test]
fn a_repair_lets_only_the_approved_content_follow() {
    let mut bed = painted_kernel();
    bed.approve(KERNEL);
    bed.settle();
    bed.paint("debug");
    bed.settle();
    bed.fail_next(KERNEL, Fault::KeyChanged);
    bed.approve(KERNEL);
    let key = bed.key(KERNEL);
    bed.run_until(|command| matches!(command, Command::Write(write) if write.key == key && matches!(write.effect, change::Effect::RepairLists{..})));
    bed.fail_next(KERNEL, Fault::KeyChanged); // consumed by the repair, which is no apply
    bed.fail_next(KERNEL, Fault::Transient);
    let lines = bed.settle();
    bed.paint("evil");
    let again = bed.advance(HOUR);
    assert_ne!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["evil"]), "{lines}--\n{again}");
}

#[test]
fn drift_while_a_change_waits_is_not_undone_without_an_approval() {
    let mut bed = painted_kernel();
    bed.approve(KERNEL);
    bed.settle();
    bed.paint("debug");
    bed.settle();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    bed.advance(HOUR);
    assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("realtime"));
    bed.annotate(HCO, "color-");
    let again = bed.advance(HOUR);
    assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("realtime"), "nodes run it for an hour {again}");
}

#[test]
fn drift_while_a_deletion_waits_is_not_undone_without_an_approval() {
    let mut bed = settled_with_kernel();
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    bed.advance(HOUR);
    bed.annotate(HCO, "autopilot-");
    let again = bed.advance(HOUR);
    assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("realtime"), "nodes run it for an hour {again}");
}

// --- many deletions

fn many(config_maps: usize, services: usize, descheduler: bool) -> TestBed {
    let mut pack =
        Pack::default().asset("plain", "install: always", &pack::config_map("plain", "data: {level: \"1\"}"));
    for n in 0..config_maps {
        pack = pack.asset(
            &format!("x{n}"),
            "install: always, group: all",
            &pack::config_map(&format!("x{n}"), "data: {level: \"1\"}"),
        );
    }
    for n in 0..services {
        pack = pack.asset(
            &format!("s{n}"),
            "install: always, group: all",
            &format!(
                "apiVersion: v1\nkind: Service\nmetadata: {{name: s{n}, namespace: virt}}\nspec: {{clusterIP: None}}\n"
            ),
        );
    }
    if descheduler {
        pack = pack.asset("descheduler", "install: always, group: all", "apiVersion: operator.openshift.io/v1\nkind: KubeDescheduler\nmetadata: {name: cluster, namespace: virt}\nspec: {mode: Automatic}\n");
    }
    let mut bed = TestBed::of(pack);
    if descheduler {
        bed.install_crd(&DESCHEDULERS);
    }
    bed.advance(SECOND);
    bed
}

fn left(bed: &TestBed) -> usize {
    (0..40).filter(|n| bed.stored(&format!("ConfigMap virt/x{n}")).is_some()).count()
        + (0..40).filter(|n| bed.stored(&format!("Service virt/s{n}")).is_some()).count()
}

#[test]
fn a_failed_search_does_not_make_many_deletions_few() {
    let mut bed = many(4, 4, false);
    assert_eq!(left(&bed), 8);
    bed.annotate(HCO, "autopilot=plain");
    bed.restart();
    bed.run_until(|command| matches!(command, Command::Search { search: Search::Label(_), .. }));
    bed.fail_reads(1);
    let lines = bed.advance(HOUR);
    assert_eq!(left(&bed), 8, "{lines}");
}

#[test]
fn deletions_that_were_taken_back_approve_no_later_ones() {
    let mut bed = many(10, 0, false);
    for n in 0..5 {
        bed.fail_all(&format!("ConfigMap virt/x{n}"), Fault::Refused(403, "no"));
    }
    bed.annotate(HCO, "autopilot=plain,x5,x6,x7,x8,x9");
    bed.advance(SECOND);
    assert_eq!(left(&bed), 10);
    bed.annotate(HCO, "autopilot-");
    bed.advance(HOUR);
    for n in 0..5 {
        bed.accept(&format!("ConfigMap virt/x{n}"));
    }
    bed.annotate(HCO, "autopilot=plain");
    let lines = bed.advance(HOUR);
    assert_eq!(left(&bed), 10, "{lines}");
}

#[test]
fn a_kind_that_vanishes_holds_no_approved_deletion() {
    let mut bed = many(7, 0, true);
    assert!(bed.stored("KubeDescheduler virt/cluster").is_some());
    bed.annotate(HCO, "autopilot=plain");
    bed.settle();
    bed.remove_crd(&DESCHEDULERS);
    bed.advance(HOUR);
    let asked = bed.asked_digest("ConfigMap virt/x0").unwrap();
    let status = cli(&bed);
    bed.annotate(HCO, &format!("approved={asked},{}", status[0]));
    let lines = bed.advance(HOUR);
    assert_eq!(left(&bed), 0, "operator {asked} cli {status:?} {lines}");
}

#[test]
fn a_kind_that_vanishes_holds_no_few_deletions() {
    let mut bed = many(2, 0, true);
    bed.annotate("KubeDescheduler virt/cluster", "reconcile-paused=true");
    bed.annotate(HCO, "autopilot=plain,x1");
    bed.settle();
    assert_eq!(left(&bed), 1);
    bed.remove_crd(&DESCHEDULERS);
    bed.advance(HOUR);
    bed.annotate(HCO, "autopilot=plain");
    let lines = bed.advance(HOUR);
    assert_eq!(left(&bed), 0, "{lines}");
}

#[test]
fn a_watch_that_fails_from_the_start_holds_no_few_deletions() {
    let mut bed = many(2, 1, false);
    bed.restart();
    bed.silent.insert("Service".into());
    bed.advance(HOUR);
    bed.annotate(HCO, "autopilot=plain");
    let lines = bed.advance(HOUR);
    assert_eq!(left(&bed), 1, "{lines}");
}

#[test]
fn deletions_are_few_up_to_five_with_those_that_may_still_be_found() {
    for (config_maps, expected) in [(4, 1), (5, 6)] {
        let mut bed = many(config_maps, 1, false);
        bed.restart();
        bed.silent.insert("Service".into());
        bed.advance(HOUR);
        bed.annotate(HCO, "autopilot=plain");
        let lines = bed.advance(HOUR);
        assert_eq!(left(&bed), expected, "{lines}");
    }
}

#[test]
fn a_kind_that_cannot_be_listed_holds_no_few_deletions() {
    let mut bed = many(2, 1, false);
    bed.restart();
    bed.run_until(|command| matches!(command, Command::Query { .. }));
    bed.silent.insert("Service".into());
    bed.settle();
    bed.lose_watch("Service");
    let a = bed.advance(HOUR);
    bed.annotate(HCO, "autopilot=plain");
    let lines = bed.advance(HOUR);
    assert_eq!(left(&bed), 1, "{a}--\n{lines}");
}

#[test]
fn many_deletions_that_wait_for_a_list_say_which() {
    let mut bed = many(4, 3, false);
    bed.annotate(HCO, "autopilot=plain");
    bed.restart();
    bed.silent.insert("Service".into());
    bed.advance(SECOND);
    let (kind, namespace) = (bed.server.kind_called("Service"), "virt".to_owned());
    let lost = WatchEvent::Lost { why: "forbidden".into(), is_unserved: false };
    bed.handle(vec![Event::Watched(WatchTarget { kind, namespace, name: String::new() }, lost)]);
    let lines = bed.advance(HOUR);
    let held = "notice ListIncomplete ConfigMap virt/x0: to be deleted, but it waits until Service can be listed";
    assert_eq!((left(&bed), lines.matches(held).count()), (7, 1), "{lines}");
    bed.silent.clear();
    let lines = bed.advance(HOUR);
    assert!(lines.contains("ApprovalRequired ConfigMap virt/x0"), "{lines}");
}

#[test]
fn a_slow_list_does_not_make_many_deletions_few() {
    let mut bed = many(4, 5, false);
    bed.annotate(HCO, "autopilot=plain,s4");
    bed.restart();
    bed.silent.insert("Service".into());
    let lines = bed.advance(SECOND);
    bed.silent.clear();
    let more = bed.advance(HOUR);
    assert_eq!(left(&bed), 9, "{lines}--\n{more}");
}

#[test]
fn a_deletion_that_is_tried_again_starts_no_other() {
    let mut bed = many(9, 0, false);
    bed.fail_next("ConfigMap virt/x0", Fault::Transient);
    bed.fail_next("ConfigMap virt/x0", Fault::Transient);
    bed.annotate(HCO, "autopilot=plain,x1,x2,x3,x4,x5,x6,x7,x8");
    let lines = bed.settle();
    bed.annotate(HCO, "autopilot=plain");
    let more = bed.advance(HOUR);
    assert_eq!(left(&bed), 8, "{lines}--\n{more}");
}

#[test]
fn a_count_that_cannot_be_read_is_not_zero() {
    let mut bed = started(&["kernel"]);
    bed.approve(KERNEL);
    bed.settle();
    bed.edit(
        "person",
        "ConfigMap virt/virt-platform-autopilot-state",
        &json!({"data": {"used-approvals.MachineConfig..kernel": "one"}}),
    );
    bed.restart();
    bed.settle();
    bed.delete(KERNEL);
    bed.roll_out();
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none());
}

#[test]
fn records_of_a_kind_that_is_not_served_are_not_empty() {
    let mut bed = started(&["kernel"]);
    bed.approve(KERNEL);
    bed.settle();
    bed.server.kinds.retain(|served| served.kind.kind != "ConfigMap");
    bed.restart();
    bed.delete(KERNEL);
    bed.roll_out();
    let lines = bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none(), "used twice: {lines}");
}

#[test]
fn a_crd_that_is_reinstalled_does_not_free_an_approval_in_doubt() {
    let mut bed = started(&["kernel"]);
    bed.fail_next(KERNEL, Fault::Unanswered);
    bed.hold_answers(KERNEL);
    bed.silent.insert("MachineConfig".into());
    bed.approve(KERNEL);
    bed.settle();
    assert!(bed.stored(KERNEL).is_some());
    bed.remove_crd(&crate::testing::bed::MACHINE_CONFIGS);
    bed.silent.clear();
    bed.advance(SECOND);
    bed.install_crd(&crate::testing::bed::MACHINE_CONFIGS);
    bed.advance(SECOND);
    bed.release(KERNEL);
    let lines = bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none(), "{lines}");
}

#[test]
fn what_the_predecessor_made_waits_although_nothing_else_does() {
    let mut bed = super::unstarted(&["kernel"]);
    bed.inherit(super::kernel("other"));
    bed.annotate(HCO, "approval=none");
    bed.advance(HOUR);
    for fault in [Fault::KeyChanged, Fault::Transient] {
        bed.fail_next(KERNEL, fault);
    }
    bed.edit("person", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    bed.advance(HOUR);
    bed.restart();
    bed.advance(HOUR);
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["other"]));
}
