//! What a decision means for `status`.

use super::state_of;
use crate::core::managed::Managed;
use crate::core::managed::tests::managed;
use crate::decision::{Decision, PendingWrite, Verdict};
use crate::notice::ObjectNotice;
use crate::removal::Cause;
use crate::status::ObjectState;
use api::annotation;
use change::{Effect, Live, ManagedFields, Precondition};
use jiff::Timestamp;
use serde_json::{Value, json};

fn with(live: Live, removal: Option<Cause>) -> Managed {
    let mut object = managed();
    object.observe(live);
    object.removal = removal;
    object
}

#[test]
fn an_object_in_sync_may_be_gone_or_on_its_way() {
    let (ours, theirs) = (Live { labelled: true, ..Live::default() }, Live::default());
    let deleting = Live { deleting: Some(Timestamp::UNIX_EPOCH), ..ours.clone() };
    let removal = Some(Cause::OptedOut);
    for (live, removal, state) in [
        (&ours, None, ObjectState::InSync),
        (&theirs, None, ObjectState::InSync),
        (&deleting, None, ObjectState::Deleting),
        (&deleting, removal, ObjectState::Deleting),
        (&ours, removal, ObjectState::InSync),
        (&theirs, removal, ObjectState::Gone),
    ] {
        assert_eq!(state_of(&with(live.clone(), removal), &Decision::in_sync()), state, "{live:?} {removal:?}");
    }
}

#[test]
fn a_removal_is_to_be_made_as_decided() {
    let object = with(Live::default(), Some(Cause::OptedOut));
    let effect = || Effect::JsonPatch { patch: json!([]) };
    for (write, state) in
        [(PendingWrite::Delete, ObjectState::ToDelete), (PendingWrite::HandBack, ObjectState::ToHandBack)]
    {
        assert_eq!(state_of(&object, &Decision::write(effect(), write, None)), state);
    }
    assert_eq!(state_of(&object, &Decision::of(Verdict::Inspect)), ObjectState::Unknown);
}

#[test]
fn a_write_changes_nothing_if_the_object_has_all_of_it_and_nothing_is_to_be_reported() {
    let effect = || {
        let metadata = json!({"name": "x", "annotations": {annotation::BUDGET: "1"}});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}});
        Effect::apply(object, Precondition::None, true)
    };
    let live = |budget: &str, data: Value| {
        let annotations = json!({format!("f:{}", annotation::BUDGET): {}});
        let fields = json!({"f:metadata": {"f:annotations": annotations}, "f:data": data});
        let entries = json!([{"manager": api::FIELD_MANAGER, "operation": "Apply", "fieldsV1": fields}]);
        Live {
            annotations: [(annotation::BUDGET.to_owned(), budget.to_owned())].into(),
            managed_fields: ManagedFields::new(&entries.to_string()),
            ..Live::default()
        }
    };
    let state = |live: Option<Live>, notice: Option<ObjectNotice>| {
        let object = live.map_or_else(managed, |live| with(live, None));
        state_of(&object, &Decision::write(effect(), PendingWrite::Release, notice))
    };
    let all = || live("1", json!({"f:a": {}}));
    assert_eq!(state(Some(all()), None), ObjectState::InSync);
    assert_eq!(state(Some(all()), Some(ObjectNotice::Applied)), ObjectState::ToChange);
    assert_eq!(state(Some(live("2", json!({"f:a": {}}))), None), ObjectState::ToChange, "another annotation");
    assert_eq!(state(Some(live("1", json!({"f:b": {}}))), None), ObjectState::ToChange, "another field");
    assert_eq!(state(None, None), ObjectState::ToCreate);
}
