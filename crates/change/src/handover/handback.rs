//! Lets go of an object: our label, our annotations and our ownership go, every value stays.

use crate::object::live::Live;
use serde_json::{Map, Value, json};

/// Stands in the list of owners when nobody else does.
const STAND_IN: &str = "virtpilot-handback";

/// One merge patch, for exactly this object in exactly this version.
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

/// Everybody's entries but ours; `None` if we have none.
fn owners(live: &Live) -> Option<Value> {
    let Value::Array(entries) = live.managed_fields.value() else { return None };
    let is_ours = |entry: &Value| entry["manager"] == api::FIELD_MANAGER && entry.get("subresource").is_none();
    let (ours, theirs): (Vec<Value>, Vec<Value>) = entries.into_iter().partition(is_ours);
    let first = ours.into_iter().next()?;
    // Of an object without any owner the server says, on somebody's first apply, that everything belonged to `before-first-apply`, and
    // refuses the apply. So somebody owns the name, which nobody ever changes.
    let stand_in = || {
        json!([{
            "manager": STAND_IN, "operation": "Update", "apiVersion": first["apiVersion"], "time": first["time"],
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:name": {}}},
        }])
    };
    Some(if theirs.is_empty() { stand_in() } else { theirs.into() })
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
    fn what_is_ours_goes_and_what_is_theirs_stays() {
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
        ] {
            assert!(!annotations.contains_key(users), "{users} is the user's");
        }
    }

    #[test]
    fn an_object_that_was_ours_alone_has_an_owner_of_nothing() {
        let metadata = handed_back(&json!([entry(api::FIELD_MANAGER, "Apply")]));
        let owners = metadata["managedFields"].as_array().unwrap();
        assert_eq!((owners.len(), &owners[0]["fieldsV1"]), (1, &json!({"f:metadata": {"f:name": {}}})));
    }

    #[test]
    fn owners_are_left_alone_where_we_are_none() {
        assert!(handed_back(&json!([entry("person", "Apply")])).get("managedFields").is_none());
        assert!(handed_back(&json!([])).get("managedFields").is_none());
    }
}
