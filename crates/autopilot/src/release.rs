//! Gives up ownership of ignored fields without changing their values: dropping a field that only we own would delete it.

use change::Live;
use change::pointer::Pointer;
use serde_json::{Value, json};

/// A patch that removes ignored fields from our managedFields entry, guarded by the resourceVersion; `None` if there is none in it.
pub(crate) fn patch(ignored: &[Pointer], live: &Live) -> Option<Value> {
    if ignored.is_empty() {
        return None;
    }
    let managed_fields = live.managed_fields.value();
    let entries = managed_fields.as_array()?;
    let index = entries.iter().position(|entry| {
        entry["operation"] == "Apply" && entry["manager"] == api::FIELD_MANAGER && entry.get("subresource").is_none()
    })?;
    let before = &entries[index]["fieldsV1"];
    let mut fields = before.clone();
    for pointer in ignored {
        let steps: Vec<String> = pointer.steps().iter().map(|step| format!("f:{step}")).collect();
        remove_path(&mut fields, &steps);
    }
    (fields != *before).then(|| {
        json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version},
            {"op": "replace", "path": format!("/metadata/managedFields/{index}/fieldsV1"), "value": fields},
        ])
    })
}

/// Removes a path and every parent that becomes empty: an empty map would claim the whole field.
fn remove_path(node: &mut Value, steps: &[String]) {
    let (Some(fields), Some((first, rest))) = (node.as_object_mut(), steps.split_first()) else { return };
    if rest.is_empty() {
        fields.remove(first);
    } else if let Some(below) = fields.get_mut(first) {
        let had = below.as_object().is_some_and(|fields| !fields.is_empty());
        remove_path(below, rest);
        if had && below.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.remove(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::patch;
    use change::pointer::Pointer;
    use change::{Live, ManagedFields};
    use serde_json::{Value, json};

    fn released(ignored: &str, entries: &Value) -> Option<Value> {
        let managed_fields = ManagedFields::new(&entries.to_string());
        let live = Live { resource_version: "7".into(), managed_fields, ..Live::default() };
        patch(&[Pointer::parse(ignored).unwrap()], &live)
    }

    fn entry(manager: &str, operation: &str, fields: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    }

    #[test]
    fn only_our_own_apply_to_the_object_gives_up_a_field() {
        let fields = json!({"f:spec": {"f:a": {}, "f:b": {}}});
        let mut status = entry(api::FIELD_MANAGER, "Apply", &fields);
        status["subresource"] = json!("status");
        let (theirs, update) = (entry("gitops", "Apply", &fields), entry(api::FIELD_MANAGER, "Update", &fields));
        let ours = entry(api::FIELD_MANAGER, "Apply", &fields);
        let patch = released("/spec/a", &json!([theirs, update, status, ours])).unwrap();
        assert_eq!(patch[0], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}));
        let left =
            json!({"op": "replace", "path": "/metadata/managedFields/3/fieldsV1", "value": {"f:spec": {"f:b": {}}}});
        assert_eq!(patch[1], left);
        assert_eq!(released("/spec/a", &json!([theirs, update, status])), None);
        assert_eq!(released("/spec/c", &json!([ours])), None, "we do not own it");
    }

    #[test]
    fn a_parent_that_becomes_empty_is_given_up_with_its_field() {
        let left = |ignored: &str, fields: &Value| {
            released(ignored, &json!([entry(api::FIELD_MANAGER, "Apply", fields)]))
                .map(|patch| patch[1]["value"].clone())
        };
        let deep = json!({"f:spec": {"f:a": {"f:b": {}}}, "f:data": {}});
        assert_eq!(left("/spec/a/b", &deep), Some(json!({"f:data": {}})), "an empty map would claim the whole field");
        assert_eq!(left("/data/x", &deep), None, "a field that has one owner is not given up in part");
    }
}
