//! What the operators of objects report in their statuses: an item is complete once its operator says so, and what it says later is told.

use crate::testing::bed::TestBed;
use crate::testing::pack::LOGGING;
use protocol::Command;
use serde_json::{Value, json};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const STACK: &str = "LokiStack virt/stack";

fn conditions(kind: &str, status: &str, reason: &str) -> Value {
    json!({"conditions": [{"type": kind, "status": status, "reason": reason}]})
}

/// A plan with a LokiStack, approved a moment ago.
fn approved() -> TestBed {
    let mut bed = TestBed::of(LOGGING);
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    bed.run();
    bed
}

/// The same, and all is complete.
fn complete() -> TestBed {
    let mut bed = approved();
    bed.report(STACK, &conditions("Ready", "True", "ReadyComponents"));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    bed
}

/// The status and the reason of a condition.
fn said(bed: &TestBed, kind: &str) -> (String, String) {
    let condition = bed.condition(kind);
    let text = |key: &str| condition[key].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

#[test]
fn an_item_is_not_complete_before_its_operator_has_looked_at_the_object_and_fails_when_that_says_so() {
    let mut bed = approved();
    bed.run_for(5 * SECOND);
    assert_eq!((bed.phase().as_str(), bed.item("stack")["state"].as_str()), ("InProgress", Some("InProgress")));
    assert_eq!(bed.item("stack")["message"], "its operator has not looked at it yet");
    assert!(bed.stored("ConfigMap virt/limits").is_none(), "the next item waits");
    bed.report(STACK, &conditions("Degraded", "True", "MissingObjectStorageSecret"));
    bed.run();
    assert_eq!((bed.phase().as_str(), bed.item("stack")["state"].as_str()), ("Failed", Some("Failed")));
    assert_eq!(bed.item("stack")["message"], "Degraded is True: MissingObjectStorageSecret");
    assert_eq!(said(&bed, "Ready").0, "False");
    // Somebody creates the Secret.
    bed.report(STACK, &conditions("Ready", "True", "ReadyComponents"));
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("Completed", 2), "{}", bed.lines.concat());
}

#[test]
fn what_the_status_of_an_applied_object_says_later_is_reported_until_it_is_over() {
    let mut bed = complete();
    for status in [conditions("Degraded", "True", "why"), conditions("Ready", "False", "why")] {
        let before = (bed.asked, bed.sent);
        bed.report(STACK, &status);
        bed.run_for(MINUTE);
        assert_eq!((bed.phase().as_str(), bed.item("stack")["state"].as_str()), ("Completed", Some("Completed")));
        let message = bed.item("stack")["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.ends_with(": why"), "{message:?}: {}", bed.lines.concat());
        assert_eq!(said(&bed, "Ready"), ("False".into(), "Unhealthy".into()));
        assert_eq!(said(&bed, "Degraded"), ("True".into(), "Unhealthy".into()));
        let why = bed.condition("Ready")["message"].as_str().unwrap_or_default().to_owned();
        assert!(why.contains(&format!("stack: {message}")), "{why:?}");
        assert_eq!((bed.asked, bed.sent), (before.0 + 2, (before.1.0 + 1, before.1.1)), "one read and one status");
        bed.run_for(HOUR);
        assert_eq!(bed.asked, before.0 + 2, "and then nothing");
        bed.report(STACK, &conditions("Ready", "True", "ReadyComponents"));
        bed.run_for(MINUTE);
        assert_eq!(bed.item("stack")["message"], Value::Null);
        assert_eq!((said(&bed, "Ready").0, said(&bed, "Degraded").0), ("True".into(), "False".into()));
        assert_eq!(said(&bed, "Ready").1, "Applied");
    }
}

#[test]
fn what_an_applied_object_says_is_reported_after_a_restart_and_beside_an_upgrade_too() {
    let mut bed = complete();
    bed.report(STACK, &conditions("Degraded", "True", "why"));
    bed.run_for(MINUTE);
    bed.restart();
    bed.run_for(MINUTE);
    assert_eq!(said(&bed, "Degraded"), ("True".into(), "Unhealthy".into()), "{:#}", bed.status());
    bed.upgrade();
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "CompletedWithUpgrade", "{:#}", bed.status());
    assert_eq!(said(&bed, "Ready"), ("False".into(), "Unhealthy".into()));
    assert_eq!(said(&bed, "CompletedWithUpgrade").1, "LogicChanged");
}

#[test]
fn a_status_that_changes_all_the_time_is_read_now_and_then() {
    let mut bed = complete();
    let before = bed.asked;
    for second in 0..100 {
        bed.report(STACK, &conditions("Ready", "True", &format!("Heartbeat{second}")));
        bed.run_for(SECOND);
    }
    let reads = bed.asked - before;
    assert!((9..12).contains(&reads), "{reads} reads in 100 seconds: {}", bed.lines.concat());
    bed.report(STACK, &conditions("Degraded", "True", "why"));
    bed.run_for(MINUTE);
    assert_eq!(said(&bed, "Degraded").0, "True", "the last one counts");
}

#[test]
fn a_status_that_cannot_be_read_is_read_again_after_a_pause() {
    let mut bed = complete();
    bed.unreadable = Some("stack");
    let before = bed.asked;
    bed.report(STACK, &conditions("Degraded", "True", "why"));
    bed.run_for(MINUTE);
    assert!((3..9).contains(&(bed.asked - before)), "{} requests", bed.asked - before);
    assert_eq!((bed.phase().as_str(), said(&bed, "Degraded").0.as_str()), ("Completed", "False"), "nobody knows");
    bed.unreadable = None;
    bed.run_for(MINUTE);
    assert_eq!(said(&bed, "Degraded").0, "True");
}

#[test]
fn an_object_that_is_edited_while_its_status_is_read_is_compared_again() {
    let mut bed = complete();
    bed.report(STACK, &conditions("Degraded", "True", "why"));
    bed.run_until(|request| matches!(request, Command::Inspect { key, .. } if key.name == "stack"));
    bed.edit(STACK, &json!({"spec": {"size": "1x.huge"}}));
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.item("stack")["operation"].as_str()), ("Drifted", Some("Update")));
    assert_eq!(bed.item("stack")["state"], "Pending");
}
