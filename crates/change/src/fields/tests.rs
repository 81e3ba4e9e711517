//! Who owns which field, and what a write would change, as decisions see them.

use super::entry::{Entry, takers};
use super::field_set::FieldSet;
use super::managed_fields::ManagedFields;
use crate::content::changes;
use serde_json::{Value, json};

fn paths(fields: &FieldSet) -> Vec<String> {
    fields.paths().collect()
}

#[test]
fn what_an_object_lacks_of_our_fields_is_beyond_it() {
    let ours = json!({"f:spec": {"f:a": {}, "f:b": {}, "f:whole": {}, "f:list": {"k:{\"name\":\"x\"}": {"f:y": {}}}}});
    let object = json!({"spec": {"a": 1, "whole": {"deep": 2}, "list": [{"name": "z"}]}});
    assert_eq!(paths(&FieldSet::read(&ours).beyond(&object)), [".spec.b", ".spec.list[name=\"x\"].y"]);
}

#[test]
fn a_field_is_not_covered_by_what_is_below_it() {
    let ours = FieldSet::read(&json!({"f:spec": {"k:{\"name\":\"x\"}": {}}}));
    assert_eq!(paths(&ours.missing_of(&json!({"spec": "text"}), &ours)), [".spec"]);
    assert!(ours.covers(&json!({"spec": [{"name": "x"}]})), "the whole item is in the set");
    assert!(!ours.covers(&json!({"spec": [{"name": "x"}, {"name": "y"}]})));
}

#[test]
fn whoever_owns_a_lost_field_took_it_but_for_our_own_apply() {
    let entry = |manager: &str, operation: &str, time: &str, field: &str| json!({"manager": manager, "operation": operation, "time": time, "fieldsV1": {field: {}}});
    let entries = Entry::all(&json!([
        entry("us", "Apply", "t9", "f:a"),
        entry("us", "Update", "t1", "f:a"),
        entry("kubectl", "Update", "t2", "f:a"),
        entry("gitops", "Apply", "t3", "f:a"),
        entry("other", "Update", "t4", "f:b"),
    ]));
    let lost = FieldSet::read(&json!({"f:a": {}}));
    assert_eq!(takers(&lost, &entries, "us"), ["gitops", "kubectl", "us"], "the latest first");
}

#[test]
fn an_annotation_is_ours_only_if_our_claim_has_it() {
    let fields = json!({"f:metadata": {"f:annotations": {"f:example.com/a": {}}, "f:labels": {"f:example.com/b": {}}}});
    let entries = json!([{"manager": "us", "operation": "Apply", "time": "t", "fieldsV1": fields}]);
    let claim = ManagedFields::new(&entries.to_string()).claim("us").unwrap();
    assert!(claim.has_annotation("example.com/a") && !claim.has_annotation("example.com/b"));
}

#[test]
fn items_without_parts_are_told_one_by_one_also_in_lists_that_count_as_a_whole() {
    let list = |items: Value| json!({"spec": {"list": items}});
    let changed = |wanted: Value, live: Value| changes(&list(wanted), &list(live), true).to_string();
    assert_eq!(changed(json!(["a", "b"]), json!(["a", "c"])), r#".spec.list[1] ("c" -> "b")"#);
    assert_eq!(changed(json!([{"a": 1}]), json!([{"a": 2}])), r#".spec.list ([{"a":2}] -> [{"a":1}])"#);
    assert_eq!(changed(json!([["a"]]), json!([["b"]])), r#".spec.list ([["b"]] -> [["a"]])"#);
}

#[test]
fn changes_are_counted_where_they_are_too_many() {
    let wanted = |count: usize| json!({"data": (0..count).map(|n| (n.to_string(), n.into())).collect::<serde_json::Map<_, _>>()});
    let printed = |count: usize| changes(&wanted(count), &json!({"data": {}}), false).to_string();
    assert!(!printed(10).contains("more") && printed(11).ends_with(", and 1 more"));
}

#[test]
fn the_part_of_a_value_that_a_set_has_leaves_others_their_fields() {
    let ours = json!({"f:a": {}, "f:map": {"f:x": {}}, "f:filled": {".": {}, "f:gone": {}},
        "f:list": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}, "f:y": {}}}, "f:values": {"v:1": {}}, "f:theirs": {"f:gone": {}}});
    let value = json!({"a": {"whole": 1}, "b": 2, "map": {"x": 1, "y": 2}, "filled": {"y": 1}, "values": [3, 1], "theirs": {"y": 1},
        "list": [{"name": "z", "y": 1}, {"name": "x", "y": 2, "z": 3}]});
    let part =
        json!({"a": {"whole": 1}, "map": {"x": 1}, "filled": {}, "list": [{"name": "x", "y": 2}], "values": [1]});
    assert_eq!(FieldSet::read(&ours).part_of(&value), Some(part));
    assert_eq!(FieldSet::read(&ours).part_of(&json!({"b": 2})), None);
}
