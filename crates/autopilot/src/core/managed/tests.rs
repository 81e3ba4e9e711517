//! What is remembered of one object, and what replaces it.

use super::{Known, Managed};
use crate::budget::Budget;
use crate::core::writes::ApprovalUse;
use crate::decide::Refused;
use crate::evaluate::DesiredObject;
use api::annotation;
use catalog::Document;
use change::{Desired, Digest, Impact, Key, Kind, Live};
use jiff::Timestamp;
use serde_json::json;

pub(in crate::core) fn managed() -> Managed {
    let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
    let (desired, source) = (Desired::of(&json!({})), String::new());
    let object = DesiredObject {
        key,
        desired,
        impact: Impact::Low,
        source,
        never_pruned: false,
        documents: Vec::new(),
        read: None,
    };
    Managed::new("a".into(), 0, object.into())
}

#[test]
fn older_metadata_never_replaces_newer() {
    let live = |version: &str| Live { uid: "u".into(), resource_version: version.into(), ..Live::default() };
    let mut object = managed();
    object.observe(live("10"));
    object.observe(live("9"));
    assert!(matches!(&object.live, Known::Present(seen) if seen.resource_version == "10"));
    object.observe_absent(Some(12), Timestamp::UNIX_EPOCH);
    object.observe(live("11"));
    assert!(matches!(&object.live, Known::Absent(_)), "the answer to a write arrives after the deletion");
    object.observe(live("13"));
    assert!(matches!(&object.live, Known::Present(_)));
    object.observe_absent(Some(12), Timestamp::UNIX_EPOCH);
    assert!(matches!(&object.live, Known::Present(_)), "an old deletion is ignored");
    object.observe_read(Some(11), Some(live("12")), Timestamp::UNIX_EPOCH);
    object.observe_read(Some(11), None, Timestamp::UNIX_EPOCH);
    assert!(matches!(&object.live, Known::Present(seen) if seen.resource_version == "13"), "the watch was faster");
    object.observe_read(Some(13), Some(live("5")), Timestamp::UNIX_EPOCH);
    assert!(matches!(&object.live, Known::Present(seen) if seen.resource_version == "5"), "a read counts");
}

fn refusal(number: u8) -> Refused {
    Refused { digest: Digest::of(&json!(number)), message: number.to_string() }
}

#[test]
fn a_new_desired_state_is_tried_at_once_whatever_failed_before() {
    let mut object = managed();
    object.writes.failures = 3;
    object.refuse(refusal(1));
    let same = object.object.clone();
    object.want("b", 7, same.clone());
    assert_eq!((object.asset.as_str(), object.order), ("b", 7));
    assert_eq!((object.writes.failures, object.refused.len()), (3, 1), "nothing else is wanted");
    let other = DesiredObject { desired: Desired::of(&json!({"a": 1})), ..(*same).clone() };
    object.want("b", 7, other.into());
    assert_eq!((object.writes.failures, object.refused.len()), (0, 0));
}

#[test]
fn a_document_of_which_something_else_is_wanted_was_never_as_it_should_be() {
    let mut object = managed();
    object.had_documents = true;
    let same = object.object.clone();
    object.want("a", 0, same.clone());
    assert!(object.had_documents);
    let text = |text: &str| json!({"data": {"c": text}});
    let documents = Document::take(&mut text("a: 1"), &text(""), &text("a: 1"));
    object.want("a", 0, DesiredObject { documents, ..(*same).clone() }.into());
    assert!(!object.had_documents);
}

#[test]
fn an_approval_in_doubt_was_used_if_the_object_is_as_its_write_would_have_made_it() {
    let budget = Budget::full(Timestamp::UNIX_EPOCH);
    let after = |written: &str| {
        let mut object = managed();
        (object.writes.approval, object.writes.unanswered) = (ApprovalUse::InDoubt(1), vec![(budget, None)]);
        let annotations = [(annotation::BUDGET.to_owned(), written.to_owned())].into();
        object.observe(Live { annotations, ..Live::default() });
        object.writes.approval
    };
    assert_eq!(after(&budget.to_string()), ApprovalUse::None);
    assert_eq!(after("another"), ApprovalUse::InDoubt(1));
}

#[test]
fn a_deletion_of_the_known_version_counts() {
    let mut object = managed();
    object.observe(Live { resource_version: "13".into(), ..Live::default() });
    object.observe_absent(Some(13), Timestamp::UNIX_EPOCH);
    assert!(matches!(&object.live, Known::Absent(_)));
}

#[test]
fn an_object_is_gone_if_it_does_not_exist_or_is_not_ours_any_more() {
    let is_gone = |labelled: bool, deleting: Option<Timestamp>| {
        let mut object = managed();
        object.observe(Live { labelled, deleting, ..Live::default() });
        object.is_gone()
    };
    let since = Some(Timestamp::UNIX_EPOCH);
    assert!(!managed().is_gone(), "nothing is known of it");
    assert!(is_gone(false, None) && !is_gone(true, None) && !is_gone(false, since) && !is_gone(true, since));
}

#[test]
fn the_last_four_refusals_are_remembered_each_once() {
    let mut object = managed();
    for number in [1, 2, 1, 3, 4] {
        object.refuse(refusal(number));
    }
    let messages = |object: &Managed| object.refused.iter().map(|refused| refused.message.clone()).collect::<String>();
    assert_eq!(messages(&object), "2134");
    object.refuse(refusal(5));
    assert_eq!(messages(&object), "1345");
}
