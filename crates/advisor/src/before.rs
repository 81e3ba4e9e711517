//! The values that an apply replaces, recorded on the object by the apply itself, so that they can be restored.

use crate::identity::{APPLIED, BEFORE, FIELD_MANAGER, PROFILE};
use change::{Entry, FieldSet};
use serde_json::{Map, Value, json};

/// What of an object is its identity, and is neither replaced nor restored.
const IDENTITY: [&str; 5] = ["apiVersion", "kind", "name", "namespace", "status"];

/// The values of an object, as it is, in all fields that are wanted of it. What was recorded before, and what we own, is not recorded again:
/// the oldest values are those to restore. `None` if the object did not exist, or was created by us or, as `is_made_by_go` says, by the Go
/// operator.
/// `answer` is what the server would make of it: a field that it gives us as a whole is replaced as a whole.
pub fn before(live: Option<&Value>, wanted: &Value, answer: &Value, is_made_by_go: bool) -> Option<Value> {
    let live = live.filter(|_| !is_made_by_go)?;
    let recorded = live["metadata"]["annotations"][BEFORE].as_str().and_then(|text| serde_json::from_str(text).ok());
    if recorded == Some(Value::Null) {
        return None;
    }
    let entries = Entry::all(&live["metadata"]["managedFields"]);
    let ours = Entry::ours(&entries, FIELD_MANAGER).filter(|_| recorded.is_some()).map(|entry| &entry.fields);
    let after = Entry::all(&answer["metadata"]["managedFields"]);
    let owned = Entry::ours(&after, FIELD_MANAGER).map(|entry| &entry.fields);
    let mut values = replaced(live, wanted, ours, owned);
    if let Some(recorded) = recorded {
        merge(&mut values, recorded);
    }
    Some(values)
}

fn replaced(live: &Value, wanted: &Value, ours: Option<&FieldSet>, owned: Option<&FieldSet>) -> Value {
    let mut found = Map::new();
    let (Some(live), Some(wanted)) = (live.as_object(), wanted.as_object()) else { return Value::Object(found) };
    for (key, wanted) in wanted.iter().filter(|(key, _)| !IDENTITY.contains(&key.as_str())) {
        let below = ours.and_then(|ours| ours.at([key.as_str()].into_iter()));
        let owned = owned.and_then(|owned| owned.at([key.as_str()].into_iter()));
        let is_whole = owned.is_some_and(FieldSet::is_whole);
        match live.get(key) {
            None => {}
            Some(live) if live.is_object() && wanted.is_object() && !is_whole => {
                let inner = replaced(live, wanted, below, owned);
                if inner.as_object().is_some_and(|inner| !inner.is_empty()) {
                    found.insert(key.clone(), inner);
                }
            }
            Some(live) if below.is_none() => {
                found.insert(key.clone(), live.clone());
            }
            Some(_) => {}
        }
    }
    Value::Object(found)
}

/// Adds what was recorded; it counts more than what is there now.
fn merge(values: &mut Value, recorded: Value) {
    match (values, recorded) {
        (Value::Object(values), Value::Object(recorded)) => {
            for (key, value) in recorded {
                merge(values.entry(key).or_insert(Value::Null), value);
            }
        }
        (values, recorded) => *values = recorded,
    }
}

/// How the advisor left its mark on an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Mark {
    /// It has not.
    None,
    /// It created the object for this profile.
    Created(String),
    /// It changed the object for this profile; these values were there before.
    Changed(String, Value),
    /// It restored the object, which may have been the Go operator's by its name: it is not to be mistaken for one that that one applied.
    Restored,
}

impl Mark {
    /// Reads the mark of an object.
    pub fn of(object: &Value) -> Mark {
        let annotations = &object["metadata"]["annotations"];
        let Some(profile) = annotations[PROFILE].as_str() else { return Mark::None };
        let before = annotations[BEFORE].as_str().and_then(|text| serde_json::from_str(text).ok());
        match before {
            Some(Value::Null) => Mark::Created(profile.to_owned()),
            Some(values @ Value::Object(_)) => Mark::Changed(profile.to_owned(), values),
            _ => Mark::Restored,
        }
    }
}

/// The object that is applied: what is wanted, with the mark of the profile. `is_looked_at` says that its own template looks at it.
pub fn marked(wanted: &Value, profile: &str, before: Option<&Value>, is_looked_at: bool) -> Value {
    let mut object = wanted.clone();
    let before = before.unwrap_or(&Value::Null).to_string();
    if !object["metadata"]["annotations"].is_object() {
        object["metadata"]["annotations"] = json!({});
    }
    object["metadata"]["annotations"][PROFILE] = json!(profile);
    object["metadata"]["annotations"][BEFORE] = json!(before);
    if is_looked_at && let Some(wanted) = wanted.as_object() {
        let content = wanted.iter().filter(|(key, _)| !["apiVersion", "kind", "metadata"].contains(&key.as_str()));
        let content: Map<String, Value> = content.map(|(key, value)| (key.clone(), value.clone())).collect();
        object["metadata"]["annotations"][APPLIED] = json!(Value::Object(content).to_string());
    }
    object
}

/// An object as it was applied, for the template that looks at it: what somebody has changed since does not count.
pub fn as_applied(mut live: Value) -> Value {
    let applied = live["metadata"]["annotations"][APPLIED].as_str().and_then(|text| serde_json::from_str(text).ok());
    if let Some(applied @ Value::Object(_)) = applied {
        merge(&mut live, applied);
    }
    live
}

/// An object without our marks.
pub fn unmarked(object: &Value) -> Value {
    let mut object = object.clone();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    if let Some(Value::Object(annotations)) = metadata.get_mut("annotations") {
        annotations.retain(|key, _| ![PROFILE, BEFORE, APPLIED].contains(&key.as_str()));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
    object
}

/// What people put into an object: not its status, not what the server adds, and not our marks.
pub fn content(object: &Value) -> Value {
    let mut content = unmarked(object);
    if let Some(fields) = content.as_object_mut() {
        fields.remove("status");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata
                .retain(|key, _| ["name", "namespace", "labels", "annotations", "finalizers"].contains(&key.as_str()));
        }
    }
    content
}

/// The object that restores recorded values; what we added is in it no more, so the server removes it.
pub fn restoring(object: &Value, recorded: &Value) -> Value {
    let mut restored = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": {"name": object["metadata"]["name"]},
    });
    if let Some(namespace) = object["metadata"].get("namespace") {
        restored["metadata"]["namespace"] = namespace.clone();
    }
    merge(&mut restored, recorded.clone());
    restored
}

#[cfg(test)]
mod tests {
    use super::{Mark, before, marked, restoring};
    use serde_json::{Value, json};

    fn live(spec: &Value, annotations: &Value, owned: &Value) -> Value {
        json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "annotations": annotations, "managedFields": [
            {"manager": "virt-advisor-operator", "operation": "Apply", "fieldsV1": owned}]}, "spec": spec})
    }

    #[test]
    fn the_oldest_values_are_recorded_and_restored() {
        let wanted =
            json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 1, "b": {"c": 2}}});
        let none = json!({});
        assert_eq!(before(None, &wanted, &none, false), None, "it does not exist");
        let first = live(&json!({"a": 7, "b": {"d": 3}, "other": 1}), &json!({}), &json!({}));
        let recorded = before(Some(&first), &wanted, &none, false).unwrap();
        assert_eq!(recorded, json!({"spec": {"a": 7}}));
        let object = marked(&wanted, "p", Some(&recorded), false);
        assert_eq!(Mark::of(&object), Mark::Changed("p".into(), recorded.clone()));
        // Later another field is wanted, too; our own value of the first is not what was there before.
        let annotations = object["metadata"]["annotations"].clone();
        let owned = json!({"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}});
        let second = live(&json!({"a": 1, "b": {"c": 2, "d": 3}, "e": 5}), &annotations, &owned);
        let more = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 2, "b": {"c": 4}, "e": 6}});
        let recorded = before(Some(&second), &more, &none, false).unwrap();
        assert_eq!(recorded, json!({"spec": {"a": 7, "e": 5}}));
        assert_eq!(
            restoring(&second, &recorded),
            json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 7, "e": 5}})
        );
    }

    #[test]
    fn a_map_that_is_replaced_as_a_whole_is_restored_as_a_whole() {
        let wanted = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"},
            "spec": {"selector": {"matchLabels": {"x": "y"}}}});
        let theirs = json!({"selector": {"matchLabels": {"zone": "a"}, "matchExpressions": []}});
        let found = live(&theirs, &json!({}), &json!({}));
        let answer = |owned: Value| live(&json!({}), &json!({}), &owned);
        let atomic = answer(json!({"f:spec": {"f:selector": {}}}));
        assert_eq!(before(Some(&found), &wanted, &atomic, false).unwrap(), json!({"spec": theirs}));
        let granular = answer(json!({"f:spec": {"f:selector": {"f:matchLabels": {"f:x": {}}}}}));
        assert_eq!(
            before(Some(&found), &wanted, &granular, false).unwrap(),
            json!({}),
            "nothing of theirs is replaced"
        );
    }

    #[test]
    fn what_was_created_stays_created() {
        let wanted = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 1}});
        let created = marked(&wanted, "p", None, false);
        assert_eq!(Mark::of(&created), Mark::Created("p".into()));
        assert_eq!(before(Some(&created), &wanted, &json!({}), false), None);
        assert_eq!(Mark::of(&wanted), Mark::None);
    }
}
