//! JSON merge patches (RFC 7386): how they change an object, and which part of one still changes anything.

use serde_json::{Map, Value};

/// Changes an object as a merge patch says.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(entries) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(object) = target.as_object_mut() else { return };
    for (key, value) in entries {
        if value.is_null() {
            object.remove(key);
        } else {
            merge(object.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}

/// The part of a merge patch that changes the object, if any.
pub(crate) fn remaining(patch: &Value, object: &Value) -> Option<Value> {
    let Value::Object(entries) = patch else {
        return (patch != object).then(|| patch.clone());
    };
    let changes: Map<String, Value> = entries
        .iter()
        .filter_map(|(key, value)| Some((key.clone(), remaining(value, &object[key.as_str()])?)))
        .collect();
    // An empty map is a value of its own where there was none.
    let is_new = entries.is_empty() && !object.is_object();
    (is_new || !changes.is_empty()).then_some(Value::Object(changes))
}

#[cfg(test)]
mod tests {
    use super::{merge, remaining};
    use serde_json::{Value, json};

    #[test]
    fn what_remains_of_a_patch_has_its_whole_effect() {
        let object = json!({"a": {"b": 1, "c": [1]}, "d": "x"});
        let cases: [(Value, Option<Value>); 6] = [
            (json!({"a": {"b": 1}}), None),
            (json!({"a": {"b": 2, "c": [1]}}), Some(json!({"a": {"b": 2}}))),
            (json!({"a": {"c": [1, 2]}}), Some(json!({"a": {"c": [1, 2]}}))),
            (json!({"d": null, "e": null}), Some(json!({"d": null}))),
            (json!({"f": {"g": 1}}), Some(json!({"f": {"g": 1}}))),
            (json!({"f": {}}), Some(json!({"f": {}}))),
        ];
        for (patch, expected) in cases {
            let rest = remaining(&patch, &object);
            assert_eq!(rest, expected, "{patch}");
            let (mut whole, mut part) = (object.clone(), object.clone());
            merge(&mut whole, &patch);
            merge(&mut part, &rest.unwrap_or_else(|| json!({})));
            assert_eq!(whole, part, "{patch}");
        }
    }
}
