//! Gives up an object: removes our label, annotations and field ownership, and keeps every value.

use crate::object::live::Live;
use serde_json::{Map, Value, json};

/// The field manager of an object that has no other.
const PLACEHOLDER_MANAGER: &str = "virtpilot-handback";

/// The merge patch, valid only for this UID and resource version.
pub fn patch(live: &Live) -> Value {
    let annotations: Map<String, Value> =
        api::annotation::OURS.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
    let mut metadata = json!({
        "uid": live.uid,
        "resourceVersion": live.resource_version,
        "labels": {api::MANAGED_BY.0: null},
        "annotations": annotations,
    });
    if let Some(owners) = owners(live) {
        metadata["managedFields"] = owners;
    }
    json!({"metadata": metadata})
}

/// The entries of all other field managers; `None` if we have no entry.
fn owners(live: &Live) -> Option<Value> {
    let Value::Array(entries) = live.managed_fields.value() else { return None };
    let is_ours = |entry: &Value| entry["manager"] == api::FIELD_MANAGER && entry.get("subresource").is_none();
    let (ours, theirs): (Vec<Value>, Vec<Value>) = entries.into_iter().partition(is_ours);
    let first = ours.into_iter().next()?;
    // Without any entry, the server assigns all fields to `before-first-apply` at the next apply and refuses it as a conflict. The
    // placeholder owns only the name, which never changes.
    let placeholder = || {
        json!([{
            "manager": PLACEHOLDER_MANAGER, "operation": "Update", "apiVersion": first["apiVersion"], "time": first["time"],
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:name": {}}},
        }])
    };
    Some(if theirs.is_empty() { placeholder() } else { theirs.into() })
}

#[cfg(test)]
mod tests {
    use super::patch;
    use crate::{Live, ManagedFields};
    use serde_json::{Value, json};

    fn handed_back(entries: &Value) -> Value {
        let managed_fields = ManagedFields::new(&entries.to_string());
        let live = Live { uid: "u".into(), resource_version: "7".into(), managed_fields, ..Live::default() };
        patch(&live)["metadata"].take()
    }

    fn entry(manager: &str, operation: &str) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "time": "t", "fieldsV1": {"f:spec": {}}})
    }

    #[test]
    fn our_entries_are_removed_and_all_others_stay() {
        let mut status = entry(api::FIELD_MANAGER, "Update");
        status["subresource"] = json!("status");
        let (ours, drift, theirs) =
            (entry(api::FIELD_MANAGER, "Apply"), entry(api::FIELD_MANAGER, "Update"), entry("person", "Apply"));
        let metadata = handed_back(&json!([ours, drift, theirs, status]));
        assert_eq!(metadata["managedFields"], json!([theirs, status]));
        assert_eq!((&metadata["uid"], &metadata["resourceVersion"]), (&json!("u"), &json!("7")));
        assert_eq!(metadata["labels"], json!({api::MANAGED_BY.0: null}));
        let annotations = metadata["annotations"].as_object().unwrap();
        assert!(annotations.values().all(Value::is_null) && annotations.contains_key(api::annotation::ORIGIN));
        for users in [
            api::annotation::PATCH,
            api::annotation::IGNORE_FIELDS,
            api::annotation::MODE,
            api::annotation::RECONCILE_PAUSED,
            api::annotation::AUTOPILOT,
            api::annotation::DISABLED_RESOURCES,
            api::annotation::APPROVAL,
            api::annotation::APPROVED,
            api::annotation::APPROVED_BY,
        ] {
            assert!(!annotations.contains_key(users), "{users} belongs to the user");
        }
    }

    #[test]
    fn an_object_without_other_managers_gets_a_placeholder() {
        let metadata = handed_back(&json!([entry(api::FIELD_MANAGER, "Apply")]));
        let owners = metadata["managedFields"].as_array().unwrap();
        assert_eq!((owners.len(), &owners[0]["fieldsV1"]), (1, &json!({"f:metadata": {"f:name": {}}})));
    }

    #[test]
    fn managed_fields_stay_unchanged_where_we_own_nothing() {
        assert!(handed_back(&json!([entry("person", "Apply")])).get("managedFields").is_none());
        assert!(handed_back(&json!([])).get("managedFields").is_none());
    }
}
