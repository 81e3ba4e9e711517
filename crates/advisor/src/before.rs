//! The values that an apply replaces, recorded on the object by the apply itself, so that they can be restored.

use crate::identity::{APPLIED, BEFORE, FIELD_MANAGER, PROFILE};
use crate::versions;
use change::{Entry, FieldSet};
use serde_json::{Map, Value, json};

/// In a record and in an entry of managed fields: the version of the kind whose fields these are.
const VERSION: &str = "apiVersion";
/// What of an object is its identity, and is neither replaced nor restored.
const IDENTITY: [&str; 5] = ["apiVersion", "kind", "name", "namespace", "status"];

/// The values of an object, as it is, in all fields that are wanted of it. What was recorded before, and what we own, is not recorded again:
/// the oldest values are those to restore. `None` if the object did not exist, or was created by us or, as `is_made_by_go` says, by the Go
/// operator.
/// `answer` is what the server would make of it: a field that it gives us as a whole is replaced as a whole.
pub fn before(live: Option<&Value>, wanted: &Value, answer: &Value, is_made_by_go: bool) -> Option<Value> {
    let live = live.filter(|_| !is_made_by_go)?;
    let recorded: Option<Value> =
        live["metadata"]["annotations"][BEFORE].as_str().and_then(|text| serde_json::from_str(text).ok());
    if recorded == Some(Value::Null) {
        return None;
    }
    let version = live["apiVersion"].as_str().unwrap_or_default();
    let ours = owned(live, version).filter(|_| recorded.is_some());
    let after = owned(answer, version);
    let mut values = replaced(live, wanted, ours.as_ref(), after.as_ref());
    if let Some(recorded) = recorded {
        match in_version_of(live, &recorded) {
            Ok(recorded) => merge(&mut values, recorded),
            // Of two versions in one record nobody could tell which value is of which.
            Err(_) => return Some(recorded),
        }
    }
    values[VERSION] = json!(version);
    Some(values)
}

/// What we own of an object, as this version of its kind calls it.
fn owned(object: &Value, version: &str) -> Option<FieldSet> {
    let mut entries = object["metadata"]["managedFields"].clone();
    for entry in entries.as_array_mut().into_iter().flatten() {
        let of = entry[VERSION].as_str().unwrap_or(version);
        entry["fieldsV1"] = versions::converted(&entry["fieldsV1"], of, version, "f:").0;
    }
    Entry::ours(&Entry::all(&entries), FIELD_MANAGER).map(|entry| entry.fields.clone())
}

/// What was recorded of an object, as the version calls it that the object has now. The error is the version under which it was recorded, if
/// nobody knows where its fields are now.
fn in_version_of(object: &Value, recorded: &Value) -> Result<Value, String> {
    let present = object[VERSION].as_str().unwrap_or_default();
    let version = versions::version_of(recorded, present);
    let mut fields = recorded.clone();
    fields.as_object_mut().and_then(|fields| fields.remove(VERSION));
    match versions::converted(&fields, &version, present, "") {
        (fields, true) => Ok(fields),
        (_, false) => Err(version),
    }
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

/// The object that restores recorded values; what we added is in it no more, so the server removes it. The error is the version of the kind
/// under which they were recorded, if nobody knows where they are in the present one.
pub fn restoring(object: &Value, recorded: &Value) -> Result<Value, String> {
    let recorded = in_version_of(object, recorded)?;
    let mut restored = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": {"name": object["metadata"]["name"]},
    });
    if let Some(namespace) = object["metadata"].get("namespace") {
        restored["metadata"]["namespace"] = namespace.clone();
    }
    merge(&mut restored, recorded);
    Ok(restored)
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
        assert_eq!(recorded, json!({"apiVersion": "v1", "spec": {"a": 7}}));
        let object = marked(&wanted, "p", Some(&recorded), false);
        assert_eq!(Mark::of(&object), Mark::Changed("p".into(), recorded.clone()));
        // Later another field is wanted, too; our own value of the first is not what was there before.
        let annotations = object["metadata"]["annotations"].clone();
        let owned = json!({"f:spec": {"f:a": {}, "f:b": {"f:c": {}}}});
        let second = live(&json!({"a": 1, "b": {"c": 2, "d": 3}, "e": 5}), &annotations, &owned);
        let more = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 2, "b": {"c": 4}, "e": 6}});
        let recorded = before(Some(&second), &more, &none, false).unwrap();
        assert_eq!(recorded, json!({"apiVersion": "v1", "spec": {"a": 7, "e": 5}}));
        assert_eq!(
            restoring(&second, &recorded),
            Ok(json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": {"a": 7, "e": 5}}))
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
        assert_eq!(before(Some(&found), &wanted, &atomic, false).unwrap()["spec"], theirs);
        let granular = answer(json!({"f:spec": {"f:selector": {"f:matchLabels": {"f:x": {}}}}}));
        assert_eq!(
            before(Some(&found), &wanted, &granular, false).unwrap()["spec"],
            Value::Null,
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

    /// A HyperConverged that the profile changed: what was recorded, what it has, and what is ours of it.
    fn hyperconverged(version: &str, spec: &Value, before: &Value, owned: &Value) -> Value {
        json!({"apiVersion": version, "kind": "HyperConverged", "metadata": {"name": "x",
            "annotations": {"advisor.kubevirt.io/profile": "p", "advisor.kubevirt.io/before": before.to_string()},
            "managedFields": [{"manager": "virt-advisor-operator", "operation": "Apply",
                "apiVersion": "hco.kubevirt.io/v1beta1", "fieldsV1": owned}]}, "spec": spec})
    }

    #[test]
    fn what_was_recorded_under_another_version_of_the_hyperconverged_is_restored_under_the_present_one() {
        let [theirs, ours] = [100, 150].map(|ratio| json!({"memoryOvercommitPercentage": ratio}));
        let recorded = json!({"spec": {"higherWorkloadDensity": theirs}});
        let owned = json!({"f:spec": {"f:higherWorkloadDensity": {"f:memoryOvercommitPercentage": {}}, "f:ksmConfiguration": {}}});
        let spec = json!({"virtualization": {"higherWorkloadDensity": ours, "ksmConfiguration": {}}});
        let live = hyperconverged("hco.kubevirt.io/v1", &spec, &recorded, &owned);
        let restored = restoring(&live, &recorded).unwrap();
        assert_eq!(restored["spec"], json!({"virtualization": {"higherWorkloadDensity": theirs}}));
        // What we own, and did not replace, is not taken for what was there before, whatever it is called now.
        let wanted = json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "metadata": {"name": "x"}, "spec": spec});
        let again = before(Some(&live), &wanted, &json!({}), false).unwrap();
        let expected = json!({"virtualization": {"higherWorkloadDensity": theirs}});
        assert_eq!(again, json!({"apiVersion": "hco.kubevirt.io/v1", "spec": expected}));
    }

    #[test]
    fn a_record_of_another_version_whose_fields_nobody_knows_is_kept_and_not_restored() {
        let recorded = json!({"apiVersion": "hco.kubevirt.io/v1beta1", "spec": {"other": 1}});
        let live = hyperconverged("hco.kubevirt.io/v1", &json!({}), &recorded, &json!({}));
        assert_eq!(restoring(&live, &recorded), Err("hco.kubevirt.io/v1beta1".to_owned()));
        let wanted = json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "metadata": {"name": "x"}, "spec": {"new": 2}});
        assert_eq!(before(Some(&live), &wanted, &json!({}), false), Some(recorded));
    }
}
