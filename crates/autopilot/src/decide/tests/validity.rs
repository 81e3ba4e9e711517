//! What is remembered, inspected or written on an object counts only as far as it is valid for this object.

use super::{Situation, applied, foreign, inherited, inspected, now};
use crate::decision::Verdict;
use api::annotation::{APPLIED, ORIGIN, SOURCE};
use change::{Impact, Reason};
use serde_json::json;

#[test]
fn what_is_remembered_of_an_object_does_not_hold_for_its_successor() {
    let mut successor = Situation::settled();
    successor.live.uid = "v".into();
    successor.live.annotations.insert(ORIGIN.to_owned(), "adopted".into());
    let decision = successor.decide();
    assert_eq!(applied(&decision)["metadata"]["annotations"][ORIGIN], "adopted", "not even who created it");
    assert_eq!(decision.notice, None, "what it lacks was not taken from us");
}

#[test]
fn an_object_that_is_being_deleted_is_left_alone() {
    let mut situation = Situation::settled().edited();
    situation.live.deleting = Some(now().wall);
    assert_eq!(situation.decide().verdict, Verdict::InSync);
}

#[test]
fn an_inspection_counts_for_the_version_and_the_desired_state_it_was_made_for() {
    let newer = |mut situation: Situation| {
        situation.live.resource_version = "8".into();
        situation.decide().verdict
    };
    let patched = |situation: Situation| {
        situation
            .annotate("patch", r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "None"}]"#)
            .decide()
            .verdict
    };
    let (take_over, approval) =
        (|| inspected(inherited(Impact::High), "ClusterIP"), || inspected(foreign(Impact::High), "NodePort"));
    let situations: [fn() -> Situation; 2] = [take_over, approval];
    for situation in situations {
        let inspected = situation().decide();
        assert_ne!(inspected.verdict, Verdict::Inspect);
        assert_eq!(newer(situation()), Verdict::Inspect, "another version than for {inspected:?}");
        assert_eq!(patched(situation()), Verdict::Inspect, "another desired state than for {inspected:?}");
    }
}

#[test]
fn adoption_never_drops_an_override_that_is_refused() {
    let refused = r#"[{"op": "replace", "path": "/metadata/name", "value": "other"}]"#;
    let situations: [fn() -> Situation; 2] =
        [|| foreign(Impact::Low), || inspected(inherited(Impact::Low), "NodePort")];
    for situation in situations {
        let decision = situation().annotate("patch", refused).decide();
        assert!(matches!(decision.verdict, Verdict::Hold(Reason::PatchRefused { .. })), "{decision:?}");
        let decision = situation().annotate("ignore-fields", "/metadata").decide();
        assert!(matches!(decision.verdict, Verdict::Hold(Reason::IgnoreFieldsRefused { .. })), "{decision:?}");
    }
}

#[test]
fn another_source_is_recorded_unless_that_alone_would_write_what_restarts_nodes() {
    let recorded = |impact: Impact, is_applied: bool| {
        let mut situation = Situation { impact, remembered: None, source: "another", ..Situation::settled() };
        if !is_applied {
            situation.live.annotations.insert(APPLIED.to_owned(), "sha256:other".into());
        }
        applied(&inspected(situation, "ClusterIP").decide())["metadata"]["annotations"][SOURCE].clone()
    };
    assert_eq!(recorded(Impact::High, true), "this");
    for (impact, is_applied) in [(Impact::Low, true), (Impact::Low, false), (Impact::High, false)] {
        assert_eq!(recorded(impact, is_applied), "another", "{impact:?} {is_applied}");
    }
}

#[test]
fn what_a_pause_of_ours_took_is_not_reported_as_drift() {
    let mut situation = Situation::settled();
    situation.fields[0]["fieldsV1"]["f:spec"] = json!({});
    let update =
        |manager: &str, fields| json!({"manager": manager, "operation": "Update", "time": "t2", "fieldsV1": fields});
    let entries = situation.fields.as_array_mut().unwrap();
    entries.push(update(api::FIELD_MANAGER, json!({"f:spec": {"f:type": {}}})));
    entries.push(update("kubectl-edit", json!({"f:spec": {"f:selector": {"f:app": {}}}})));
    let notice = situation.decide().notice.unwrap().to_string();
    assert!(notice.starts_with("kubectl-edit changed .spec.selector.app; the drift was corrected"), "{notice}");
}
