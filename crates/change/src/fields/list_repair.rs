//! Replaces list items that prevent our own items from being applied again.
//!
//! Server-side apply identifies a list item by its keys. Changing a key, such as a Service's port, makes it a different item: ours is then
//! missing, and the server refuses every further apply of it because both items have the same name.

use crate::fields::pointer::escape;
use serde_json::{Value, json};

/// A JSON patch that replaces each conflicting item with ours, guarded by the resource version; `None` if there is no conflict.
///
/// An item conflicts if it has the name of one of our items and differs from it. It is replaced and not removed, because the server may
/// require a list that is never empty.
pub fn repair(wanted: &Value, live: &Value) -> Option<Value> {
    let mut changes = Vec::new();
    collect(wanted, live, "", &mut changes);
    if changes.is_empty() {
        return None;
    }
    let guard =
        json!({"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]});
    Some(Value::Array(std::iter::once(guard).chain(changes).collect()))
}

fn collect(wanted: &Value, live: &Value, path: &str, changes: &mut Vec<Value>) {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            for (key, below) in wanted {
                if let Some(there) = live.get(key) {
                    collect(below, there, &format!("{path}/{}", escape(key)), changes);
                }
            }
        }
        (Value::Array(wanted), Value::Array(live)) => {
            for (index, item) in live.iter().enumerate() {
                if let Some(ours) = conflicting_with(item, wanted) {
                    changes.push(json!({"op": "replace", "path": format!("{path}/{index}"), "value": ours}));
                }
            }
        }
        _ => {}
    }
}

/// Our item that has the same name as this one, if they differ.
fn conflicting_with<'a>(item: &Value, wanted: &'a [Value]) -> Option<&'a Value> {
    let ours = wanted.iter().find(|ours| ours["name"].is_string() && ours["name"] == item["name"])?;
    let plain = ours.as_object()?.iter().filter(|(_, value)| !value.is_object() && !value.is_array());
    plain.into_iter().any(|(key, value)| item.get(key) != Some(value)).then_some(ours)
}

#[cfg(test)]
mod tests {
    use super::repair;
    use serde_json::json;

    fn service(ports: &serde_json::Value) -> serde_json::Value {
        json!({"metadata": {"resourceVersion": "7"}, "spec": {"ports": ports}})
    }

    #[test]
    fn an_item_with_our_name_and_another_key_is_replaced_with_ours() {
        let ours = service(&json!([{"name": "metrics", "port": 8080}]));
        let live = service(&json!([{"name": "theirs", "port": 1}, {"name": "metrics", "port": 9999, "nodePort": 5}]));
        let patch = repair(&ours, &live).unwrap();
        assert_eq!(patch[0], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}));
        assert_eq!(
            patch[1],
            json!({"op": "replace", "path": "/spec/ports/1", "value": {"name": "metrics", "port": 8080}})
        );
        assert_eq!(patch.as_array().unwrap().len(), 2, "items of other managers stay");
    }

    #[test]
    fn without_a_conflict_nothing_is_changed() {
        let ours = service(&json!([{"name": "metrics", "port": 8080}]));
        assert_eq!(repair(&ours, &service(&json!([{"name": "metrics", "port": 8080, "nodePort": 5}]))), None);
        assert_eq!(repair(&ours, &service(&json!([]))), None);
        let deep = |more: serde_json::Value| {
            service(&json!([{"name": "metrics", "port": 8080, "more": more, "list": [more]}]))
        };
        assert_eq!(repair(&deep(json!({"a": 1})), &deep(json!({"a": 2}))), None, "no key of an item has parts");
    }
}
