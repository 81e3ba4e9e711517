//! Reports and answers that are lost, late, or about an object that is another one by now.

use crate::Notice;
use crate::testing::bed::{Fault, HCO, TestBed};
use crate::testing::pack::{DENSITY, OBJECTS};
use protocol::{Command, Event};
use serde_json::{Value, json};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

fn is_write_of(request: &Command<Notice>, name: &str) -> bool {
    matches!(request, Command::Write(write) if write.key.name == name)
}

/// The operator of the HyperConverged says how far it is.
fn roll_out(bed: &mut TestBed, is_done: bool) {
    let hco = bed.key(HCO);
    let condition =
        json!({"type": "Progressing", "status": if is_done { "False" } else { "True" }, "message": "rolls out"});
    let change = |object: &mut Value| object["status"] = json!({"conditions": [condition]});
    bed.server.update_status("hyperconverged-cluster-operator", &hco, change).unwrap();
}

/// A plan that is approved and about to change the HyperConverged, whose operator takes a while.
fn changing_hyperconverged() -> TestBed {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    bed.run_until(|request| is_write_of(request, api::hco::NAME));
    for request in std::mem::take(&mut bed.requests) {
        bed.carry_out(request);
    }
    roll_out(&mut bed, false);
    bed
}

/// How often it was reported that an item is written.
fn reported(bed: &TestBed, item: &str) -> usize {
    let is_it = |notice: &&Notice| matches!(notice, Notice::Applied { item: of, .. } if of == item);
    bed.notices.iter().filter(is_it).count()
}

#[test]
fn an_item_is_reported_as_written_also_if_the_answer_is_lost_or_the_process_ends() {
    for fault in [None, Some(Fault::Unanswered), Some(Fault::KilledAfter)] {
        let mut bed = TestBed::new();
        bed.ask(json!({"action": "DryRun"}));
        bed.run();
        bed.approve();
        // The status first, then the object; then its status is lost, too, which is no reason to report it again.
        bed.faults = [None, fault, Some(Fault::Lost), Some(Fault::Lost)].into();
        bed.run_for(2 * HOUR);
        assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
        assert_eq!(["args", "limits", "sizes"].map(|item| reported(&bed, item)), [1, 1, 1], "{fault:?}");
        let written = ["args", "limits", "sizes"].map(|item| bed.item(item)["appliedTime"].is_string());
        assert_eq!(written, [true; 3]);
    }
}

#[test]
fn an_item_completes_when_the_operator_of_its_object_is_done() {
    let mut bed = changing_hyperconverged();
    bed.run_for(HOUR);
    assert_eq!(
        (bed.phase().as_str(), bed.item("overcommit")["message"].as_str()),
        ("InProgress", Some("Progressing is True: rolls out"))
    );
    assert_eq!(bed.item("descheduler")["state"], "Pending");
    roll_out(&mut bed, true);
    bed.run();
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

/// The operator of the HyperConverged is done after it was read, and before the comparison that it was read for is complete.
fn finish_while_it_is_compared(bed: &mut TestBed) {
    let is_about = |request: &Command<Notice>| matches!(request, Command::Inspect { key, .. } | Command::Preview { key, .. } if key.name == api::hco::NAME);
    bed.run_until(is_about);
    let (about, others) = std::mem::take(&mut bed.requests).into_iter().partition(is_about);
    bed.requests = others;
    // All else is compared by then.
    bed.run();
    let mut about = Vec::into_iter(about);
    let mut carry_out_next = |bed: &mut TestBed| bed.carry_out(about.next().expect("it is read and previewed"));
    carry_out_next(bed);
    let later = bed.now().monotonic.after(Duration::from_secs(5));
    bed.set_clock(later);
    roll_out(bed, true);
    carry_out_next(bed);
}

#[test]
fn an_operator_that_is_done_while_its_object_is_compared_is_not_waited_for_for_ever() {
    let mut bed = changing_hyperconverged();
    finish_while_it_is_compared(&mut bed);
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

#[test]
fn an_operator_that_is_done_while_a_new_process_compares_its_object_is_not_waited_for_for_ever() {
    let mut bed = changing_hyperconverged();
    bed.run_for(HOUR);
    // What the new process finds is what is published already, so that it writes nothing that would be answered.
    bed.restart();
    finish_while_it_is_compared(&mut bed);
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

#[test]
fn a_write_whose_answer_was_lost_is_recorded_as_written_and_not_made_again() {
    for fault in [Fault::Unanswered, Fault::KilledAfter] {
        let mut bed = TestBed::new();
        bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
        bed.run();
        bed.approve();
        // The rest of the plan cannot be applied, so that its approval holds.
        let sizes = bed.key(OBJECTS[2]);
        bed.refused_writes.push(sizes);
        bed.run_until(|request| is_write_of(request, "limits"));
        bed.faults = [Some(fault)].into();
        bed.run_for(HOUR);
        let limits = bed.item("limits");
        assert_eq!((bed.phase().as_str(), limits["state"].as_str()), ("Failed", Some("Completed")), "{fault:?}");
        assert!(limits["appliedTime"].is_string(), "{fault:?}: it says when it was written: {limits}");
        // So a person who deletes it changes what was applied, as with any other answer.
        bed.delete(OBJECTS[1]);
        bed.run_for(HOUR);
        assert_eq!(
            (bed.phase().as_str(), bed.stored(OBJECTS[1]).is_none()),
            ("Drifted", true),
            "{}",
            bed.lines.concat()
        );
        assert_eq!(bed.promises.checked, 1, "it is written once");
    }
}

#[test]
fn an_object_that_is_deleted_and_created_again_at_once_is_compared_again() {
    let mut bed = TestBed::new();
    bed.complete();
    let before = bed.stored(OBJECTS[1]).unwrap().uid().to_owned();
    bed.delete(OBJECTS[1]);
    bed.edit(OBJECTS[1], &json!({"data": {"limit": "mine", "release": "1"}}));
    // Both are reported at once, so that the object seems never to have been gone.
    bed.run_for(MINUTE);
    assert_ne!(bed.stored(OBJECTS[1]).unwrap().uid(), before);
    assert_eq!(bed.phase(), "Drifted", "{}", bed.lines.concat());
    assert!(bed.item("limits")["diff"].as_str().unwrap().contains("-.data.limit: \"mine\""), "{}", bed.item("limits"));
    bed.approve();
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[1], "/data/limit")), ("Completed", json!("5")));
}

/// Makes the versions of the server grow.
fn let_time_pass(bed: &mut TestBed) {
    for number in 0..20 {
        bed.edit("ConfigMap virt/counter", &json!({"data": {"number": number.to_string()}}));
    }
}

/// What a person sees of the profile, and of its objects.
fn seen(bed: &TestBed) -> (String, Value, Vec<Value>) {
    let reason = bed.condition("Ready")["reason"].as_str().unwrap_or_default().to_owned();
    let content = |object: &&str| crate::before::content(&bed.value(object, ""));
    (format!("{} {reason}", bed.phase()), bed.status()["planDigest"].clone(), OBJECTS.iter().map(content).collect())
}

#[test]
fn drift_that_a_backup_brings_back_is_shown_and_so_is_drift_after_it() {
    let mut bed = TestBed::new();
    bed.complete();
    bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
    bed.run_for(MINUTE);
    let backup = bed.server.clone();
    bed.edit(OBJECTS[2], &json!({"data": {"size": "7"}}));
    let_time_pass(&mut bed);
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "Completed");
    bed.restore(&backup);
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Drifted", json!("mine")));
    bed.approve();
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Completed", json!("7")));
    bed.edit(OBJECTS[2], &json!({"data": {"size": "again"}}));
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "Drifted", "its version is still lower than that before: {}", bed.lines.concat());
}

#[test]
fn a_backup_of_every_moment_of_a_plan_leads_to_what_a_new_process_makes_of_it() {
    // A person plans and approves, somebody changes what was applied, and the person plans and approves other options.
    let mut bed = TestBed::new();
    let mut backups = Vec::new();
    let steps: [fn(&mut TestBed); 5] = [
        |bed| bed.ask(json!({"action": "DryRun"})),
        TestBed::approve,
        |bed| bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}})),
        |bed| bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false, "size": 2}}})),
        TestBed::approve,
    ];
    for step in steps {
        step(&mut bed);
        backups.push(bed.server.clone());
        bed.run();
        backups.push(bed.server.clone());
        bed.run_for(2 * HOUR);
        backups.push(bed.server.clone());
    }
    let_time_pass(&mut bed);
    for (number, backup) in backups.iter().enumerate() {
        bed.restore(backup);
        bed.run_for(2 * HOUR);
        let through = seen(&bed);
        bed.restore(backup);
        bed.restart();
        bed.run_for(2 * HOUR);
        assert_eq!(through, seen(&bed), "backup {number}: {}", bed.lines.concat());
        let_time_pass(&mut bed);
    }
}

#[test]
fn a_plan_goes_on_where_a_backup_has_left_it() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run();
    bed.approve();
    let sizes = bed.key(OBJECTS[2]);
    bed.refused_writes.push(sizes);
    bed.run_until(|request| is_write_of(request, "limits"));
    let backup = bed.server.clone();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.item("limits")["state"].as_str()), ("Failed", Some("Completed")));
    bed.restore(&backup);
    assert!(bed.stored(OBJECTS[1]).is_none());
    bed.run_for(HOUR);
    // Nobody has deleted what the backup does not have.
    assert_eq!((bed.phase().as_str(), bed.stored(OBJECTS[1]).is_some()), ("Failed", true), "{}", bed.lines.concat());
    bed.refused_writes.clear();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

/// A profile that is complete, on a server that was restored. Every watch has reported that versions went back, and only that of profiles has
/// listed again, if at all.
fn restored(has_listed_profiles: bool) -> TestBed {
    let mut bed = TestBed::new();
    bed.complete();
    let backup = bed.server.clone();
    let_time_pass(&mut bed);
    bed.run_for(MINUTE);
    bed.restore(&backup);
    let mut events = Vec::new();
    for (target, watch) in &mut bed.watches {
        let most = if has_listed_profiles && target.kind == crate::core::kind() { usize::MAX } else { 1 };
        let reports = std::iter::from_fn(|| watch.next(target, &bed.server)).take(most);
        events.extend(reports.map(|event| Event::Watched(target.clone(), event)));
    }
    bed.handle(events);
    bed
}

#[test]
fn an_object_that_a_restored_server_has_not_listed_yet_is_not_absent() {
    let mut bed = restored(true);
    assert!(bed.requests.is_empty(), "nothing is compared: {:?}", bed.requests);
    let shown = bed.status();
    bed.run_for(HOUR);
    assert_eq!(bed.status(), shown, "all is as it was");
}

#[test]
fn a_status_that_a_restored_server_has_not_listed_yet_is_not_overwritten() {
    let mut bed = restored(false);
    let later = bed.now().monotonic.after(MINUTE);
    bed.set_clock(later);
    bed.handle(Vec::new());
    assert!(bed.requests.is_empty(), "{:?}", bed.requests);
    let shown = bed.status();
    bed.run_for(HOUR);
    assert_eq!(bed.status(), shown, "all is as it was");
}

#[test]
fn configurations_that_cannot_be_read_are_asked_for_with_growing_pauses() {
    for is_everything in [false, true] {
        let mut bed = TestBed::new();
        bed.ask(json!({"action": "DryRun"}));
        bed.run();
        bed.approve();
        match is_everything {
            true => bed.failing_reads = usize::MAX,
            false => bed.unreadable = Some("rendered-"),
        }
        let before = bed.asked;
        bed.run_for(Duration::from_secs(600));
        let asked = bed.asked - before;
        assert!((4..100).contains(&asked), "{asked} requests in 10 minutes: {}", bed.lines.concat());
        let (reason, message) = (bed.condition("Failed")["reason"].clone(), bed.condition("Failed")["message"].clone());
        let message = message.as_str().unwrap_or_default();
        assert_eq!((bed.phase().as_str(), reason.as_str()), ("Failed", Some("PlanFailed")), "{:#}", bed.status());
        assert!(message.contains("could not read MachineConfig "), "{message}");
        assert!(message.contains("connection reset"), "{message}");
        (bed.unreadable, bed.failing_reads) = (None, 0);
        bed.run_for(Duration::from_secs(7_200));
        assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    }
}
