//! Fields of objects in the model: which an object has, which a manager owns, and how `fieldsV1` writes them. Maps are granular, lists atomic.

use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The steps to one field.
pub type Path = Vec<String>;

/// The metadata that managers own; the rest is the server's.
const OWNED_METADATA: [&str; 4] = ["labels", "annotations", "finalizers", "ownerReferences"];

/// The fields of an object that managers own, each with its value. A list or an empty map is one field.
pub fn leaves(object: &Value) -> BTreeMap<Path, Value> {
    let mut found = BTreeMap::new();
    for (key, value) in object.as_object().into_iter().flatten() {
        match key.as_str() {
            "apiVersion" | "kind" => {}
            "metadata" => {
                for part in OWNED_METADATA.iter().filter(|part| value.get(part).is_some()) {
                    collect(&value[part], &mut vec!["metadata".into(), (*part).into()], &mut found);
                }
            }
            _ => collect(value, &mut vec![key.clone()], &mut found),
        }
    }
    found
}

fn collect(value: &Value, path: &mut Path, found: &mut BTreeMap<Path, Value>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, below) in fields {
                path.push(key.clone());
                collect(below, path, found);
                path.pop();
            }
        }
        _ => {
            found.insert(path.clone(), value.clone());
        }
    }
}

/// Whether one path leads to the other, or below it.
pub fn overlap(one: &Path, other: &Path) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// Sets a field; parents that are no maps become maps.
pub fn set(object: &mut Value, path: &[String], value: Value) {
    let mut node = object;
    for step in path {
        if !node.is_object() {
            *node = json!({});
        }
        node = &mut node[step.as_str()];
    }
    *node = value;
}

/// Removes a field, and every parent that becomes empty.
pub fn remove(object: &mut Value, path: &[String]) {
    let (Some(fields), Some((first, rest))) = (object.as_object_mut(), path.split_first()) else { return };
    if rest.is_empty() {
        fields.remove(first);
    } else if let Some(below) = fields.get_mut(first) {
        remove(below, rest);
        if below.as_object().is_some_and(Map::is_empty) {
            fields.remove(first);
        }
    }
}

/// A set of fields as `fieldsV1`.
pub fn to_fields_v1(fields: &BTreeSet<Path>) -> Value {
    let mut tree = json!({});
    for path in fields {
        let mut node = &mut tree;
        for step in path {
            let fields = node.as_object_mut().expect("every node is a map");
            node = fields.entry(format!("f:{step}")).or_insert_with(|| json!({}));
        }
    }
    tree
}

/// The set of fields that `fieldsV1` names.
pub fn from_fields_v1(tree: &Value) -> BTreeSet<Path> {
    fn walk(node: &Value, path: &mut Path, found: &mut BTreeSet<Path>) {
        let children = node.as_object().into_iter().flatten();
        let mut is_leaf = true;
        for (step, below) in children.filter_map(|(key, below)| Some((key.strip_prefix("f:")?, below))) {
            is_leaf = false;
            path.push(step.to_owned());
            walk(below, path, found);
            path.pop();
        }
        if is_leaf && !path.is_empty() {
            found.insert(path.clone());
        }
    }
    let mut found = BTreeSet::new();
    walk(tree, &mut Vec::new(), &mut found);
    found
}

/// Merges a JSON merge patch (RFC 7396) into a value.
pub fn merge(value: &mut Value, patch: &Value) {
    let Some(changes) = patch.as_object() else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (key, change) in changes {
        if change.is_null() {
            value.as_object_mut().expect("it is a map").remove(key);
        } else {
            merge(&mut value[key.as_str()], change);
        }
    }
}
