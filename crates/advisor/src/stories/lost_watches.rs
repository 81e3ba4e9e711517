//! Watches that are lost for a while, and objects that cannot be listed at all.

use crate::testing::bed::TestBed;
use serde_json::json;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);

#[test]
fn an_outage_of_the_api_server_changes_no_status() {
    for outage in [Duration::from_secs(5), 10 * MINUTE] {
        let mut bed = TestBed::new();
        bed.complete();
        let (status, sent) = (bed.status(), bed.sent);
        bed.lose_watches(outage);
        bed.run_for(10 * MINUTE);
        assert_eq!((bed.status(), bed.sent), (status, sent), "{}", bed.lines.concat());
    }
}

#[test]
fn a_plan_that_was_shown_stays_while_watches_are_lost() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    let (status, sent) = (bed.status(), bed.sent);
    bed.lose_watches(10 * MINUTE);
    bed.run_for(10 * MINUTE);
    assert_eq!((bed.phase().as_str(), bed.status(), bed.sent), ("ReviewRequired", status, sent));
    bed.approve();
    bed.run_for(120 * MINUTE);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

#[test]
fn a_profile_that_waits_for_objects_that_cannot_be_listed_says_which_and_goes_on_once_they_can() {
    for kind in ["ConfigMap", "HyperConverged", "MachineConfigPool", "CustomResourceDefinition"] {
        let mut bed = TestBed::new();
        bed.unlistable = Some(kind);
        bed.ask(json!({"action": "DryRun"}));
        bed.run_for(2 * MINUTE);
        let message = bed.condition("Ready")["message"].as_str().unwrap_or_default().to_owned();
        let why = format!("objects of the kind {kind} cannot be listed (connection reset)");
        assert!(bed.phase() == "PrerequisiteFailed" && message.contains(&why), "{kind}: {} {message}", bed.phase());
        let asked = bed.asked;
        bed.run_for(60 * MINUTE);
        assert_eq!(bed.asked, asked, "{kind}: it asks for nothing in vain");
        bed.unlistable = None;
        bed.watches.values_mut().for_each(server_model::watching::OpenWatch::list_again);
        bed.run_for(MINUTE);
        assert_eq!(bed.phase(), "ReviewRequired", "{kind}: {}", bed.lines.concat());
    }
}
