//! What is remembered, inspected or written on an object counts only as far as it is valid for this object.

use super::{Situation, applied, foreign, inherited, inspected, now};
use crate::decision::Verdict;
use api::annotation::ORIGIN;
use change::{Impact, Reason};

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
