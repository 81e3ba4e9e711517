//! Puts our items of a list in the place of those that keep them from coming back.
//!
//! Server-side apply knows an item of a list by its keys. Who changes a key, such as a Service's port, makes another item of it; ours
//! is then missing, and applying it again is refused for ever because both have the same name.

use crate::fields::pointer::escape;
use serde_json::{Value, json};

/// A JSON patch that puts ours in the place of each intruder, guarded by the object's version; `None` if there are none.
///
/// An intruder is an item that has the name of one of ours and is not one of ours. It is replaced and not removed, because a list may
/// have to have an item at all times.
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

fn collect(wanted: &Value, live: &Value, way: &str, changes: &mut Vec<Value>) {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => {
            for (key, below) in wanted {
                if let Some(there) = live.get(key) {
                    collect(below, there, &format!("{way}/{}", escape(key)), changes);
                }
            }
        }
        (Value::Array(wanted), Value::Array(live)) => {
            for (index, item) in live.iter().enumerate() {
                if let Some(ours) = displaced_by(item, wanted) {
                    changes.push(json!({"op": "replace", "path": format!("{way}/{index}"), "value": ours}));
                }
            }
        }
        _ => {}
    }
}

/// Our item whose name this one has, if it is another one.
fn displaced_by<'a>(item: &Value, wanted: &'a [Value]) -> Option<&'a Value> {
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
    fn an_item_with_our_name_and_another_key_makes_room_for_ours() {
        let ours = service(&json!([{"name": "metrics", "port": 8080}]));
        let live = service(&json!([{"name": "theirs", "port": 1}, {"name": "metrics", "port": 9999, "nodePort": 5}]));
        let patch = repair(&ours, &live).unwrap();
        assert_eq!(patch[0], json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}));
        assert_eq!(
            patch[1],
            json!({"op": "replace", "path": "/spec/ports/1", "value": {"name": "metrics", "port": 8080}})
        );
        assert_eq!(patch.as_array().unwrap().len(), 2, "what is somebody else's stays");
    }

    #[test]
    fn where_nothing_is_in_the_way_nothing_is_changed() {
        let ours = service(&json!([{"name": "metrics", "port": 8080}]));
        assert_eq!(repair(&ours, &service(&json!([{"name": "metrics", "port": 8080, "nodePort": 5}]))), None);
        assert_eq!(repair(&ours, &service(&json!([]))), None);
    }
}
