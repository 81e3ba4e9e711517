//! Profiles are advertised once, and what a person deletes stays deleted, whatever goes wrong with the memory of that.

use crate::testing::bed::TestBed;
use crate::testing::pack::{DENSITY, PROFILE};
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const STATE: &str = "ConfigMap virt/virt-advisor-state";

/// A cluster on which nothing was advertised yet.
fn fresh() -> TestBed {
    let mut bed = TestBed::new();
    bed.delete(STATE);
    bed
}

fn object(profile: &str) -> String {
    format!("VirtPlatformConfig {profile}")
}

fn exists(bed: &TestBed, profile: &str) -> bool {
    bed.stored(&object(profile)).is_some()
}

// The predecessor created it again at once.
#[test]
fn a_deleted_profile_stays_deleted_also_after_a_restart() {
    let mut bed = fresh();
    bed.run_for(MINUTE);
    assert_eq!(bed.value(&object(PROFILE), "/spec/action"), "Ignore", "it is advertised");
    assert_eq!(bed.phase(), "Ignored");
    let message = bed.condition("Ignored")["message"].clone();
    assert!(message.as_str().unwrap().ends_with("the autopilot takes care of its own objects"), "{message}");
    bed.delete(&object(PROFILE));
    bed.run_for(HOUR);
    assert!(!exists(&bed, PROFILE));
    bed.restart();
    bed.run_for(HOUR);
    assert_eq!((exists(&bed, PROFILE), exists(&bed, DENSITY)), (false, true));
}

#[test]
fn a_profile_that_a_person_created_first_stays_as_it_is_and_counts_as_advertised() {
    let mut bed = fresh();
    bed.ask(serde_json::json!({"action": "DryRun"}));
    bed.run_for(MINUTE);
    assert_eq!(bed.value(&object(PROFILE), "/spec/action"), "DryRun");
    bed.delete(&object(PROFILE));
    bed.restart();
    bed.run_for(HOUR);
    assert!(!exists(&bed, PROFILE), "{}", bed.lines.concat());
}

#[test]
fn what_was_advertised_is_saved_again_after_a_failed_write_so_that_deleted_profiles_stay_deleted() {
    let mut bed = fresh();
    let state = bed.key(STATE);
    bed.refused_writes.push(state);
    bed.run_for(HOUR);
    assert_eq!((exists(&bed, PROFILE), bed.stored(STATE).is_none()), (true, true), "it cannot be saved");
    assert!(bed.sent.1 < 130, "{} writes in an hour: it is tried every 30 seconds", bed.sent.1);
    bed.delete(&object(PROFILE));
    bed.refused_writes.clear();
    bed.run_for(MINUTE);
    assert_eq!(bed.value(STATE, "/data/advertised"), "advice,density", "{}", bed.lines.concat());
    bed.restart();
    bed.run_for(HOUR);
    assert_eq!((exists(&bed, PROFILE), exists(&bed, DENSITY)), (false, true));
}

#[test]
fn a_profile_that_cannot_be_created_does_not_bring_back_the_others() {
    let mut bed = fresh();
    let density = bed.key(&object(DENSITY));
    bed.refused_writes.push(density);
    bed.run_for(HOUR);
    bed.delete(&object(PROFILE));
    bed.restart();
    bed.run_for(HOUR);
    assert_eq!((exists(&bed, PROFILE), exists(&bed, DENSITY)), (false, false), "{}", bed.lines.concat());
    // It is advertised as soon as it can be.
    bed.refused_writes.clear();
    bed.run_for(MINUTE);
    assert_eq!((exists(&bed, PROFILE), exists(&bed, DENSITY)), (false, true));
    assert_eq!(bed.value(STATE, "/data/advertised"), "advice,density");
}

#[test]
fn nothing_is_advertised_before_it_is_known_what_was_advertised_before() {
    let mut bed = TestBed::new();
    // The state says that everything was advertised, and cannot be read for a while.
    bed.run_until(
        |request| matches!(request, protocol::Command::Inspect { key, .. } if key.name == api::advisor::STATE),
    );
    bed.failing_reads = bed.requests.len();
    bed.run();
    assert_eq!((exists(&bed, PROFILE), exists(&bed, DENSITY)), (false, false), "a failed read is not an empty state");
    bed.run_for(HOUR);
    assert_eq!((exists(&bed, PROFILE), exists(&bed, DENSITY)), (false, false), "{}", bed.lines.concat());
    bed.delete(STATE);
    bed.restart();
    bed.run_until(
        |request| matches!(request, protocol::Command::Inspect { key, .. } if key.name == api::advisor::STATE),
    );
    bed.failing_reads = bed.requests.len();
    bed.run_for(HOUR);
    assert_eq!((exists(&bed, PROFILE), exists(&bed, DENSITY)), (true, true), "it is read again");
}

#[test]
fn a_profile_that_was_edited_and_is_restored_from_a_backup_still_keeps_the_autopilot_away() {
    let mut bed = fresh();
    bed.run_for(MINUTE);
    let mut backup = bed.stored(&object(PROFILE)).unwrap().whole("advisor.kubevirt.io/v1alpha1");
    backup["metadata"].as_object_mut().unwrap().remove("managedFields");
    backup["kind"] = serde_json::json!("VirtPlatformConfig");
    bed.delete(&object(PROFILE));
    bed.run_for(MINUTE);
    // A backup has no owners of fields, and the object begins with the first generation again.
    for field in ["uid", "resourceVersion", "generation", "creationTimestamp"] {
        backup["metadata"].as_object_mut().unwrap().remove(field);
    }
    bed.create(&backup);
    bed.run_for(MINUTE);
    let message = bed.condition("Ignored")["message"].clone();
    assert!(message.as_str().unwrap().contains("by the autopilot, too"), "{message}");
}

#[test]
fn a_profile_that_is_ignored_says_whether_the_autopilot_takes_care_of_its_objects() {
    let mut bed = TestBed::new();
    bed.complete();
    for (hand_over, expected) in [
        (
            serde_json::json!(null),
            "by the autopilot, too; to have it take care of its own objects, set spec.handOver to true",
        ),
        (serde_json::json!(true), "the autopilot takes care of its own objects"),
    ] {
        bed.ask(serde_json::json!({"action": "Ignore", "approvedPlan": null, "handOver": hand_over}));
        bed.run();
        let message = bed.condition("Ignored")["message"].clone();
        assert!(message.as_str().unwrap().ends_with(expected), "{message}");
    }
}
