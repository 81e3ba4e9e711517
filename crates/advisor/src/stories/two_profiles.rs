//! Two profiles that want the same object differently would remove each other's fields: neither is shown as a plan before that is known.

use crate::testing::bed::TestBed;
use crate::testing::pack::{ASKING_RIVAL, OBJECTS, RIVAL};
use serde_json::json;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const SIZES: &str = OBJECTS[2];

#[test]
fn two_profiles_that_want_an_object_differently_are_told_before_anything_is_applied() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.ask_of(RIVAL, json!({"action": "DryRun"}));
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "PrerequisiteFailed");
    let message = bed.condition("PrerequisiteFailed")["message"].clone();
    assert!(
        message.as_str().unwrap().contains("ConfigMap virt/sizes is wanted differently by the profile rival"),
        "{message}"
    );
    assert!(message.as_str().unwrap().contains("set its action to Ignore and its handOver to true"), "{message}");
    bed.ask_of(RIVAL, json!({"action": "Ignore", "handOver": true}));
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "ReviewRequired");
}

#[test]
fn an_object_that_a_person_wants_to_be_left_alone_is_not_written_by_another_profile() {
    let mut bed = TestBed::new();
    bed.ask_of(RIVAL, json!({"action": "Apply"}));
    bed.run_for(MINUTE);
    assert_eq!(bed.value(SIZES, "/data/color"), "red");
    bed.ask_of(RIVAL, json!({"action": "Ignore"}));
    let options = json!({"advice": {"nodes": false}});
    bed.ask(json!({"action": "Apply", "bypassOptimisticLock": true, "options": options}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("PrerequisiteFailed", json!(null)));
    bed.ask_of(RIVAL, json!({"action": "Ignore", "handOver": true}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(SIZES, "/data/size")), ("Completed", json!("7")), "{:#}", bed.status());
}

#[test]
fn no_plan_is_shown_while_another_profile_has_not_said_yet_what_it_wants_of_the_same_object() {
    let mut bed = TestBed::new();
    bed.unreadable = Some("flag");
    bed.ask_of(ASKING_RIVAL, json!({"action": "DryRun"}));
    // Whoever applies without reading would get an object that the other profile changes back.
    bed.ask(json!({"action": "Apply", "bypassOptimisticLock": true, "options": {"advice": {"nodes": false}}}));
    bed.run_for(MINUTE);
    let message = bed.condition("Failed")["message"].as_str().unwrap_or_default().to_owned();
    let why = format!("nobody knows whether VirtPlatformConfig {ASKING_RIVAL} wants ConfigMap virt/");
    assert!(message.contains(&why) && message.contains("virt/flag could not be read"), "{:#}", bed.status());
    assert_eq!((bed.status()["planDigest"].is_string(), bed.sent.1), (false, 0), "{}", bed.lines.concat());
    bed.unreadable = None;
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("PrerequisiteFailed", 0));
    let message = bed.condition("PrerequisiteFailed")["message"].as_str().unwrap_or_default().to_owned();
    assert!(message.starts_with(&format!("{SIZES} is wanted differently by the profile {ASKING_RIVAL}")), "{message}");
    // It wants another one: nothing stands in the way any more.
    bed.edit("ConfigMap virt/flag", &json!({"data": {"name": "flag"}}));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed", "{:#}", bed.status());
}
