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
