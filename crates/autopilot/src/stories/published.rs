//! The report that the operator publishes.

use super::{HOUR, MINUTE, PLAIN, SECOND, config_map};
use crate::report::{Operator, Report};
use crate::state_word::StateWord;
use crate::testing::bed::{HCO, TestBed};
use crate::testing::requests::Fault;
use serde_json::json;

const STATUS: &str = "ConfigMap virt/virt-platform-autopilot-status";

/// A cluster whose operator publishes.
fn publishing() -> TestBed {
    let mut bed = TestBed::new();
    let since = bed.now().wall;
    let operator = Operator { pod: "pod-1".into(), version: "1.0".into(), catalogue: "sha256:a".into(), since };
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
