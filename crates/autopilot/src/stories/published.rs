//! The report that the operator publishes.

use super::{HOUR, MINUTE, PLAIN, SECOND, config_map};
use crate::report::{self, Operator, Report, ReportLine};
use crate::state_word::StateWord;
use crate::testing::bed::{HCO, TestBed};
use crate::testing::requests::Fault;
use serde_json::json;

const STATUS: &str = "ConfigMap virt/virt-platform-autopilot-status";

/// A cluster whose operator publishes.
fn publishing() -> TestBed {
    let mut bed = TestBed::new();
    let since = bed.now().wall;
    let operator =
        Operator { pod: "pod-1".into(), version: "1.0".into(), catalogue: "sha256:a".into(), since, started: since };
    bed.restart_with(|config| config.operator = Some(operator));
    bed
}

fn published(bed: &TestBed) -> Report {
    let stored = bed.stored(STATUS).expect("nothing is published");
    serde_json::from_str(stored.object["data"]["status.json"].as_str().unwrap()).unwrap()
}

fn state(bed: &TestBed, asset: &str) -> (StateWord, String) {
    let report = published(bed);
    let line = report.assets.into_iter().find(|line| line.asset == asset).unwrap();
    (line.state, line.why)
}

/// How often a report was written.
fn reports(bed: &TestBed) -> usize {
    bed.made.iter().filter(|made| made.write.key.to_string() == STATUS).count()
}

#[test]
fn a_report_is_published_once_and_again_only_when_it_changes() {
    let mut bed = publishing();
    bed.advance(MINUTE);
    assert_eq!(reports(&bed), 1, "all of the start is one report");
    assert_eq!(published(&bed), bed.core.report());
    assert_eq!(published(&bed).operator.unwrap().pod, "pod-1");
    bed.advance(HOUR);
    assert_eq!(reports(&bed), 1);
    // What is corrected at once is no news.
    bed.edit("person", PLAIN, &json!({"data": {"level": "9"}}));
    bed.advance(MINUTE);
    assert_eq!(reports(&bed), 1);
    bed.annotate(PLAIN, "mode=unmanaged");
    bed.advance(MINUTE);
    assert_eq!((reports(&bed), state(&bed, "plain").0), (2, StateWord::Unmanaged));
}

#[test]
fn changes_one_after_another_are_reported_together() {
    let mut bed = publishing();
    bed.advance(MINUTE);
    for number in 0..20 {
        bed.annotate(PLAIN, if number % 2 == 0 { "mode=unmanaged" } else { "mode=managed" });
        bed.advance(SECOND / 2);
    }
    bed.advance(MINUTE);
    assert!(reports(&bed) <= 4, "{} reports in 10 s", reports(&bed));
    assert_eq!(published(&bed), bed.core.report());
}

#[test]
fn a_write_that_fails_is_reported_as_failed_until_it_succeeds() {
    let mut bed = publishing();
    bed.fail_all(PLAIN, Fault::Refused(403, "forbidden"));
    for _ in 0..10 {
        bed.advance(MINUTE);
        assert_eq!(
            state(&bed, "plain"),
            (StateWord::Failed, "the API server refused it: forbidden".to_owned()),
            "also while it is tried again"
        );
    }
    assert_eq!(reports(&bed), 1);
    bed.accept(PLAIN);
    bed.advance(HOUR);
    assert_eq!(state(&bed, "plain").0, StateWord::InSync);
}

#[test]
fn a_failure_that_has_ended_is_not_reported_again() {
    let mut bed = publishing();
    bed.fail_all(PLAIN, Fault::Refused(403, "forbidden"));
    bed.advance(MINUTE);
    bed.accept(PLAIN);
    bed.advance(HOUR);
    bed.fail_all(PLAIN, Fault::Transient);
    bed.edit("person", PLAIN, &json!({"data": {"level": "9"}}));
    // Too few attempts for a report of their own.
    bed.advance(SECOND);
    let line = bed.core.report().assets.into_iter().find(|line| line.asset == "plain").unwrap();
    assert_eq!((line.state, line.why.as_str()), (StateWord::Pending, "it differs from what is wanted"));
}

#[test]
fn a_report_that_cannot_be_written_is_tried_again_and_holds_nothing_up() {
    let mut bed = publishing();
    bed.fail_all(STATUS, Fault::Refused(403, "forbidden"));
    bed.advance(HOUR);
    assert!(bed.stored(PLAIN).is_some() && bed.stored(STATUS).is_none());
    assert!(reports(&bed) < 30, "{} attempts in an hour", reports(&bed));
    bed.accept(STATUS);
    bed.advance(HOUR);
    assert_eq!(published(&bed), bed.core.report());
}

#[test]
fn typing_errors_and_overrides_are_in_the_report() {
    let mut bed = publishing();
    bed.advance(MINUTE);
    bed.annotate(HCO, "aproval=none");
    bed.annotate(PLAIN, "ignore-fields=/data/levle");
    bed.advance(MINUTE);
    let report = published(&bed);
    let text = report.warnings.join("\n");
    assert!(text.contains("aproval is not known (did you mean approval?)"), "{text}");
    let plain = report.assets.iter().find(|line| line.asset == "plain").unwrap();
    assert_eq!(plain.overrides, ["platform.kubevirt.io/ignore-fields: /data/levle"]);
    assert!(text.contains("/data/levle"), "{text}");
}

#[test]
fn a_cluster_without_a_hyperconverged_is_reported_as_waiting() {
    let mut bed = publishing();
    bed.delete(HCO);
    bed.create("person", &config_map("other", &json!({})));
    bed.advance(MINUTE);
    assert_eq!(published(&bed).waits_for, ["HyperConverged virt/kubevirt-hyperconverged, which does not exist"]);
}

/// The override of an asset.
fn overrides(bed: &TestBed, asset: &str) -> Vec<String> {
    published(bed).assets.into_iter().find(|line| line.asset == asset).unwrap().overrides
}

#[test]
fn what_changes_without_an_event_is_reported() {
    let mut bed = publishing();
    bed.advance(MINUTE);
    bed.annotate(PLAIN, "reconcile-paused=2026-03-01T00:11:00Z");
    // A report is published a second after a change, or five after the last one.
    bed.advance(SECOND * 10);
    let mut states = Vec::new();
    for _ in 0..30 {
        bed.advance(MINUTE);
        assert_eq!(published(&bed), bed.core.report());
        states.push(state(&bed, "plain").0);
    }
    states.dedup();
    assert_eq!(states, [StateWord::Paused, StateWord::InSync]);
}

#[test]
fn a_change_while_a_report_is_written_is_reported_after_it() {
    let mut bed = publishing();
    bed.fail_all(STATUS, Fault::Refused(403, "forbidden"));
    bed.advance(MINUTE);
    bed.annotate(PLAIN, "mode=unmanaged");
    bed.advance(SECOND);
    bed.accept(STATUS);
    // Nothing happens but the answers to the report itself.
    bed.advance(HOUR);
    assert_eq!(state(&bed, "plain").0, StateWord::Unmanaged);
}

#[test]
fn the_first_failure_to_publish_is_a_warning() {
    let mut bed = publishing();
    bed.fail_all(STATUS, Fault::Refused(403, "forbidden"));
    let told = bed.advance(HOUR);
    assert_eq!(told.matches("PublishFailed").count(), 1, "{told}");
    bed.accept(STATUS);
    bed.advance(HOUR);
    bed.fail_all(STATUS, Fault::Refused(403, "forbidden"));
    bed.annotate(PLAIN, "mode=unmanaged");
    let told = bed.advance(HOUR);
    assert_eq!(told.matches("PublishFailed").count(), 1, "after a success it is news again: {told}");
}

#[test]
fn a_deleted_report_is_published_again_with_the_next_change() {
    let mut bed = publishing();
    bed.advance(MINUTE);
    bed.delete(STATUS);
    bed.annotate(PLAIN, "mode=unmanaged");
    bed.advance(MINUTE);
    assert_eq!(published(&bed), bed.core.report());
}

#[test]
fn what_the_operator_writes_on_the_hyperconverged_is_no_other_setting() {
    let settings = |name: &str, value: &str| {
        let annotations = json!({"platform.kubevirt.io/autopilot": "true", name: value});
        report::settings(&json!({"metadata": {"annotations": annotations}}))
    };
    let plain = settings("platform.kubevirt.io/autopilot", "true");
    for ours in api::annotation::OURS {
        assert_eq!(settings(ours, "1"), plain, "{ours}");
    }
    assert_eq!(settings("example.com/other", "1"), plain);
    assert_ne!(settings("platform.kubevirt.io/approval", "none"), plain);
    assert_ne!(settings("platform.kubevirt.io/autopilot", "false"), plain);
}

#[test]
fn the_policy_in_force_is_in_the_report() {
    let mut bed = publishing();
    for (annotation, autopilot, approval) in [
        ("autopilot=true", "on", "high-impact"),
        ("autopilot=ture", "suspended", "high-impact"),
        ("autopilot=plain", "plain", "high-impact"),
        ("approval=none", "plain", "none"),
        ("autopilot=false", "off", "none"),
    ] {
        bed.annotate(HCO, annotation);
        bed.advance(MINUTE);
        let policy = published(&bed).policy;
        assert_eq!((policy.autopilot.as_str(), policy.approval.as_str()), (autopilot, approval), "{annotation}");
    }
    bed.annotate(HCO, "maintenance-window=Sun 02:00-03:00 UTC");
    bed.advance(MINUTE);
    assert_eq!(published(&bed).policy.window.as_deref(), Some("Sun 02:00-03:00 UTC"));
}

#[test]
fn a_refused_override_is_marked() {
    let mut bed = publishing();
    bed.advance(MINUTE);
    bed.annotate(PLAIN, "ignore-fields=/data/level");
    bed.annotate(PLAIN, "patch=nonsense");
    bed.advance(MINUTE);
    assert_eq!(
        overrides(&bed, "plain"),
        [
            "platform.kubevirt.io/ignore-fields: /data/level",
            "platform.kubevirt.io/patch: (redacted)  (refused, not in force)"
        ]
    );
}

#[test]
fn a_secret_value_of_an_override_is_not_in_the_report() {
    let mut bed = publishing();
    bed.advance(MINUTE);
    bed.annotate(PLAIN, r#"patch=[{"op": "add", "path": "/data/password", "value": "hunter2"}]"#);
    bed.advance(MINUTE);
    assert!(overrides(&bed, "plain")[0].contains("/data/password"), "{:?}", overrides(&bed, "plain"));
    let json = serde_json::to_string(&published(&bed)).unwrap();
    assert!(!json.contains("hunter2"), "{json}");
}

#[test]
fn a_long_reason_is_cut_and_marked() {
    let mut bed = publishing();
    let long = "ä".repeat(2000);
    bed.fail_all(PLAIN, Fault::Refused(403, Box::leak(long.into_boxed_str())));
    bed.advance(MINUTE);
    let (_, why) = state(&bed, "plain");
    assert!(why.chars().count() == 1001 && why.ends_with("ä…"), "{} characters", why.chars().count());
}

#[test]
fn a_report_that_a_config_map_does_not_take_leaves_out_what_is_long() {
    let line = |why: usize, value: usize| ReportLine {
        asset: "a".into(),
        object: "o".into(),
        state: StateWord::Failed,
        why: "\u{1}".repeat(why),
        digest: None,
        restarts: None,
        overrides: vec![format!("platform.kubevirt.io/patch: {}", "\u{1}".repeat(value))],
    };
    let shortened = |lines: usize, why: usize, value: usize| -> Report {
        let json = Report { assets: vec![line(why, value); lines], ..Report::default() }.to_json();
        assert!(json.len() < 950 * 1024, "{} bytes", json.len());
        serde_json::from_str(&json).unwrap()
    };
    assert_eq!(shortened(10, 1000, 1000).assets, vec![line(1000, 1000); 10], "it is small enough");
    let without_values = shortened(100, 1000, 4000);
    assert_eq!(without_values.assets[0].overrides, ["platform.kubevirt.io/patch: 4000 bytes"]);
    assert_eq!(without_values.assets[0].why.len(), 1000);
    assert!(
        without_values.warnings[0].contains("the values of overrides are left out"),
        "{:?}",
        without_values.warnings
    );
    let without_reasons = shortened(300, 1000, 4000);
    assert_eq!(without_reasons.assets[0].why, "");
    assert_eq!(without_reasons.warnings.len(), 2);
}
