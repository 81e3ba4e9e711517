//! The facts about server-side apply that the model must share with a real API server (`design.md`, section 7).

use crate::testing::bed::TestBed;
use crate::testing::server::Failure;
use serde_json::{Value, json};

fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "virt"}, "data": data})
}

const A: &str = "ConfigMap virt/a";

#[test]
fn an_apply_that_changes_nothing_moves_nothing() {
    let mut bed = TestBed::new();
    assert!(bed.apply("us", &config_map(&json!({"x": "1"}))));
    let (before, changes) = (bed.stored(A), bed.server.log.len());
    assert!(bed.apply("us", &config_map(&json!({"x": "1"}))));
    assert_eq!((bed.stored(A), bed.server.log.len()), (before, changes));
}

#[test]
fn an_update_takes_the_fields_it_changes_and_one_of_the_same_value_takes_none() {
    let mut bed = TestBed::new();
    bed.apply("us", &config_map(&json!({"x": "1", "y": "1"})));
    bed.edit("them", A, &json!({"data": {"x": "1"}}));
    assert_eq!(bed.owners(A), "us applied data.x data.y\n");
    bed.edit("them", A, &json!({"data": {"x": "2"}}));
    assert_eq!(bed.owners(A), "us applied data.y\nthem updated data.x\n");
    bed.edit("us", A, &json!({"data": {"y": null}}));
    assert_eq!(bed.owners(A), "them updated data.x\n");
}

#[test]
fn fields_that_only_the_applier_owned_are_removed_when_it_drops_them() {
    let mut bed = TestBed::new();
    bed.apply("us", &config_map(&json!({"x": "1", "y": "1"})));
    bed.apply("them", &config_map(&json!({"y": "1"})));
    bed.apply("us", &config_map(&json!({"z": "1"})));
    assert_eq!(bed.value(A, "/data"), json!({"y": "1", "z": "1"}));
    assert_eq!(bed.owners(A), "us applied data.z\nthem applied data.y\n");
}

#[test]
fn an_apply_conflicts_with_other_values_of_others_unless_it_is_forced() {
    let mut bed = TestBed::new();
    bed.apply("us", &config_map(&json!({"x": "1"})));
    assert!(!bed.apply("them", &config_map(&json!({"x": "2"}))));
    bed.apply_by_force("them", &config_map(&json!({"x": "2"})));
    assert_eq!(bed.owners(A), "them applied data.x\n");
}

#[test]
fn uid_and_version_are_preconditions() {
    let mut bed = TestBed::new();
    let key = bed.key(A);
    let of = |uid: &str, version: &str| {
        let mut object = config_map(&json!({"x": "1"}));
        object["metadata"]["uid"] = json!(uid);
        object["metadata"]["resourceVersion"] = json!(version);
        object
    };
    let mut apply = |object: &Value| bed.server.apply("us", &key, object, true);
    assert!(matches!(apply(&of("u1", "1")), Err(Failure::Conflict(_))), "it does not exist");
    let stored = apply(&config_map(&json!({}))).unwrap().unwrap();
    assert!(matches!(apply(&of(stored.uid(), "1")), Err(Failure::Conflict(_))));
    assert!(matches!(apply(&of("u0", stored.version())), Err(Failure::Conflict(_))));
    let now = apply(&of(stored.uid(), stored.version())).unwrap().unwrap();
    assert!(matches!(bed.server.delete("us", &key, Some((now.uid(), stored.version()))), Err(Failure::Conflict(_))));
    assert_eq!(bed.server.delete("us", &key, Some((now.uid(), now.version()))), Ok(None));
    let deletion = bed.server.deletions.last().unwrap();
    assert_eq!(
        (deletion.by.as_str(), deletion.before.creator.as_str(), deletion.before.uid()),
        ("us", "us", now.uid())
    );
}

#[test]
fn an_object_with_a_finalizer_is_deleted_when_the_last_is_removed() {
    let mut bed = TestBed::new();
    bed.create("person", &config_map(&json!({})));
    bed.edit("person", A, &json!({"metadata": {"finalizers": ["wait"]}}));
    bed.delete(A);
    assert!(bed.stored(A).unwrap().is_deleting());
    bed.edit("person", A, &json!({"metadata": {"finalizers": []}}));
    assert_eq!(bed.stored(A), None);
}

#[test]
fn an_invalid_object_is_refused() {
    let mut bed = TestBed::new();
    assert!(!bed.apply("us", &config_map(&json!({"x": "invalid"}))));
}
