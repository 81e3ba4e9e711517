//! What somebody changes after a plan was applied is reported, whatever else has changed.

use crate::Notice;
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{KEEPER, OBJECTS};
use serde_json::json;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// The phase, the message of its condition, and whether an upgrade is available.
fn seen(bed: &TestBed) -> (String, String, bool) {
    let message = bed.condition("Ready")["message"].as_str().unwrap_or_default().to_owned();
    (bed.phase(), message, bed.condition("UpgradeAvailable")["status"] == "True")
}

/// A profile that was applied and that the next release would apply differently: `limits` is to change, and nothing else.
fn with_upgrade(remediation: &str) -> TestBed {
    let mut bed = TestBed::new();
    bed.complete_with(json!({"remediation": remediation}));
    bed.upgrade();
    bed.run_for(HOUR);
    assert_eq!(
        (bed.phase().as_str(), bed.condition("Ready")["status"].as_str()),
        ("CompletedWithUpgrade", Some("True"))
    );
    bed
}

#[test]
fn drift_while_an_upgrade_waits_is_reported() {
    for remediation in ["Manual", "Automatic"] {
        let mut bed = with_upgrade(remediation);
        let (upgrade, writes) = (seen(&bed), bed.sent.1);
        bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
        bed.run_for(HOUR);
        let (phase, message, is_upgrade) = seen(&bed);
        assert_eq!((phase.as_str(), is_upgrade), ("Drifted", true), "{}", bed.lines.concat());
        assert!(message.starts_with("somebody changed what was applied: sizes; besides"), "{message}");
        assert_eq!(bed.condition("Ready")["status"], "False");
        let shown = bed.status();
        bed.restart();
        bed.run_for(HOUR);
        assert_eq!((bed.status(), bed.sent.1), (shown, writes), "also after a restart, and nothing is written");
        bed.edit(OBJECTS[2], &json!({"data": {"size": "7"}}));
        bed.run_for(HOUR);
        assert_eq!(seen(&bed), upgrade, "it was put back by hand");
        bed.approve();
        bed.run_for(HOUR);
        assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[1], "/data/release")), ("Completed", json!("2")));
    }
}

#[test]
fn an_object_that_is_deleted_while_an_upgrade_of_it_waits_is_drift() {
    let mut bed = with_upgrade("Manual");
    bed.delete(OBJECTS[1]);
    bed.run_for(HOUR);
    let (phase, message, is_upgrade) = seen(&bed);
    assert_eq!((phase.as_str(), is_upgrade), ("Drifted", true), "{}", bed.lines.concat());
    assert!(message.starts_with("somebody changed what was applied: limits; besides"), "{message}");
}

#[test]
fn drift_is_named_also_where_a_changed_input_asks_for_a_review() {
    let mut bed = TestBed::new();
    bed.complete();
    bed.edit(HCO, &json!({"spec": {"limit": 50}}));
    bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
    bed.run_for(HOUR);
    let (phase, message, _) = seen(&bed);
    assert_eq!(phase, "ReviewRequired");
    assert!(message.ends_with("(not set -> 50); somebody also changed what was applied: sizes"), "{message}");
}

#[test]
fn what_an_earlier_version_applied_is_recorded_by_item_while_it_is_complete() {
    let mut bed = TestBed::new();
    bed.complete();
    let applied = bed.status()["applied"].clone();
    let profile = format!("VirtPlatformConfig {}", bed.profile);
    bed.edit(&profile, &json!({"status": {"applied": {"items": null}}}));
    bed.restart();
    bed.run_for(HOUR);
    assert_eq!(bed.status()["applied"], applied, "{}", bed.lines.concat());
}

#[test]
fn another_plan_is_news_although_its_phase_and_message_stay_the_same() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run_for(HOUR);
    let mut reported = Vec::new();
    for size in ["mine", "yours"] {
        bed.notices.clear();
        bed.edit(OBJECTS[2], &json!({"data": {"size": size}}));
        bed.run_for(HOUR);
        assert_eq!(bed.phase(), "ReviewRequired");
        for notice in &bed.notices {
            if let Notice::Judged { digest: Some(digest), is_news: true, .. } = notice {
                reported.push(digest.to_string());
                assert_eq!(bed.status()["planDigest"], digest.to_string());
            }
        }
    }
    assert_eq!(reported.len(), 2, "once each: {reported:?}");
}

#[test]
fn an_edit_of_what_a_template_derives_from_its_own_object_is_drift_and_is_corrected() {
    const KEPT: &str = "ConfigMap virt/kept";
    for existing in [None, Some("red")] {
        let mut bed = TestBed::of(KEEPER);
        if let Some(color) = existing {
            bed.edit(KEPT, &json!({"data": {"color": color}}));
        }
        bed.complete();
        let color = json!(existing.unwrap_or("blue"));
        assert_eq!(bed.value(KEPT, "/data/color"), color, "what was there before is kept");
        for edited in [json!("green"), json!(null)] {
            bed.edit(KEPT, &json!({"data": {"color": edited}}));
            bed.run_for(HOUR);
            let (phase, message, is_upgrade) = seen(&bed);
            assert_eq!((phase.as_str(), is_upgrade), ("Drifted", false), "{message}\n{}", bed.lines.concat());
            bed.restart();
            bed.run_for(HOUR);
            assert_eq!(bed.phase(), "Drifted", "also after a restart");
            bed.ask(json!({"remediation": "Automatic"}));
            bed.run_for(HOUR);
            assert_eq!((bed.phase().as_str(), bed.value(KEPT, "/data/color")), ("Completed", color.clone()));
            bed.ask(json!({"remediation": null}));
            bed.run_for(HOUR);
        }
    }
}

/// How many objects the last report counts as drifted.
fn counted(bed: &TestBed) -> usize {
    let of = |notice: &Notice| match notice {
        Notice::Judged { drifted, .. } => Some(*drifted),
        _ => None,
    };
    bed.notices.iter().rev().find_map(of).unwrap()
}

#[test]
fn only_what_somebody_changed_is_counted_as_drift_also_beside_an_upgrade_or_a_changed_input() {
    let mut bed = with_upgrade("Manual");
    assert_eq!(counted(&bed), 0, "what another release wants is no drift");
    bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), counted(&bed)), ("Drifted", 1), "the upgrade of limits is not counted");

    let mut bed = TestBed::new();
    bed.complete();
    assert_eq!(counted(&bed), 0);
    bed.edit(HCO, &json!({"spec": {"limit": 9}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), counted(&bed)), ("ReviewRequired", 0), "an input is no drift");
    bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), counted(&bed)), ("ReviewRequired", 1), "{}", bed.status());
    bed.ask(json!({"action": "Ignore"}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), counted(&bed)), ("Ignored", 0));
}
