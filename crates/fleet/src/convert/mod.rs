//! Converts objects of the predecessor's group `hypervisor.hyperfleet.io` to those of this one, and says what is not carried over.

mod cluster;
mod fields;
mod template;
#[cfg(test)]
mod tests;
mod workload;

use fields::Fields;
use serde_json::{Map, Value, json};

/// The group of the predecessor.
pub const PREDECESSOR: &str = "hypervisor.hyperfleet.io";

/// What became of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Converted {
    /// The object.
    pub object: Value,
    /// What is not carried over or means something else, and why.
    pub notes: Vec<String>,
}

/// Converts one object; a `List` is converted item by item. Objects of other groups stay as they are. An error names each field that is
/// wrong and how to correct it.
pub fn convert(object: &Value) -> Result<Vec<Converted>, Vec<String>> {
    if object["kind"] == "List" && object["apiVersion"] == "v1" {
        let (mut converted, mut errors) = (Vec::new(), Vec::new());
        for item in object["items"].as_array().into_iter().flatten() {
            match convert(item) {
                Ok(more) => converted.extend(more),
                Err(more) => errors.extend(more),
            }
        }
        return if errors.is_empty() { Ok(converted) } else { Err(errors) };
    }
    let name = name_of(object);
    convert_one(object)
        .map(|converted| vec![converted])
        .map_err(|errors| errors.into_iter().map(|error| format!("{name}: {error}")).collect())
}

/// Kind, namespace and name.
pub fn name_of(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("{kind} {namespace}/{name}"),
        None => format!("{kind} {name}"),
    }
}

fn convert_one(object: &Value) -> Result<Converted, Vec<String>> {
    let Some(version) = object["apiVersion"].as_str() else {
        return Err(vec!["apiVersion: it is missing; every document has to be an object of Kubernetes".to_owned()]);
    };
    let Some(kind) = object["kind"].as_str() else { return Err(vec!["kind: it is missing".to_owned()]) };
    let unchanged = |why: &str| Ok(Converted { object: object.clone(), notes: vec![why.to_owned()] });
    if version.split('/').next() == Some(api::fleet::GROUP) {
        return unchanged("it is of the group hyperfleet.io already, and stays as it is");
    }
    if version.split('/').next() != Some(PREDECESSOR) {
        return unchanged(&format!("it is of {version}, and stays as it is"));
    }
    let empty = Map::new();
    let mut fields = Fields::new(object["spec"].as_object().unwrap_or(&empty));
    let spec = match kind {
        "HypervisorCluster" => cluster::spec(&mut fields, object["metadata"]["namespace"].as_str()),
        "HypervisorMachineTemplate" => template::spec(&mut fields),
        "RunnerPool" => workload::pool(&mut fields),
        "MachineClaim" => workload::claim(&mut fields),
        other => {
            return unchanged(&format!("{PREDECESSOR} has no kind {other} that is known; it stays as it is"));
        }
    };
    fields.rest();
    let metadata = metadata(&object["metadata"], &mut fields);
    let Fields { mut notes, errors, .. } = fields;
    if !errors.is_empty() {
        return Err(errors);
    }
    if object.get("status").is_some_and(|status| !status.is_null()) {
        notes.push("status is not carried over: the fleet finds it out again".to_owned());
    }
    let api_version = format!("{}/{}", api::fleet::GROUP, api::fleet::VERSION);
    let object = json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec});
    Ok(Converted { object, notes })
}

/// What people wrote of the metadata.
fn metadata(metadata: &Value, fields: &mut Fields) -> Value {
    /// What the API server sets.
    const OF_SERVER: [&str; 7] =
        ["uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp"];
    /// What `kubectl apply` compares with.
    const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";
    let mut kept = Map::new();
    for (field, value) in metadata.as_object().into_iter().flatten() {
        match field.as_str() {
            "name" | "namespace" | "labels" => {
                kept.insert(field.clone(), value.clone());
            }
            "annotations" => {
                let mut annotations = value.as_object().cloned().unwrap_or_default();
                annotations.remove(LAST_APPLIED);
                if !annotations.is_empty() {
                    kept.insert(field.clone(), Value::Object(annotations));
                }
            }
            "finalizers" => fields.note("metadata.finalizers", "the fleet sets its own"),
            other if OF_SERVER.contains(&other) => {}
            other => fields.note(&format!("metadata.{other}"), "it refers to objects of before"),
        }
    }
    if !kept.contains_key("name") {
        fields.error("metadata.name", "it is missing");
    }
    Value::Object(kept)
}
