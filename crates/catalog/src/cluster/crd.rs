//! The fields and enumerations of a CustomResourceDefinition, which templates query; everything else is dropped to save memory.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Definition {
    spec: Spec,
}

#[derive(Deserialize)]
struct Spec {
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Version {
    #[serde(default)]
    storage: bool,
    #[serde(default)]
    schema: Validation,
}

#[derive(Deserialize, Default)]
struct Validation {
    #[serde(rename = "openAPIV3Schema")]
    schema: Option<Schema>,
}

#[derive(Deserialize, Serialize)]
struct Schema {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    properties: BTreeMap<String, Schema>,
    #[serde(skip_serializing_if = "Option::is_none")]
    items: Option<Box<Schema>>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    values: Option<Vec<Value>>,
}

/// Parses a CRD from JSON and keeps only the fields that users set and their enumerations, of its storage version and in the structure of
/// a CRD.
pub fn read(text: &str) -> serde_json::Result<Value> {
    let definition: Definition = serde_json::from_str(text)?;
    let stored = definition.spec.versions.into_iter().find(|version| version.storage);
    let mut schema = stored.and_then(|version| version.schema.schema);
    if let Some(schema) = &mut schema {
        schema.properties.remove("status");
    }
    Ok(json!({"spec": {"versions": [{"storage": true, "schema": {"openAPIV3Schema": schema}}]}}))
}

#[cfg(test)]
mod tests {
    use super::read;
    use serde_json::json;

    #[test]
    fn only_fields_and_enumerations_of_the_storage_version_are_kept() {
        let schema = json!({"type": "object", "description": "long", "properties": {"spec": {"properties": {
            "mode": {"type": "string", "enum": ["A", "B"], "description": "long"},
            "list": {"items": {"enum": ["C"]}},
            "text": {"type": "string"},
        }}, "status": {"properties": {"x": {"type": "string"}}}}});
        let version = |name: &str, storage: bool| json!({"name": name, "storage": storage, "schema": {"openAPIV3Schema": schema}});
        let crd = json!({"metadata": {"managedFields": []}, "spec": {"versions": [version("v1", false), version("v2", true)]}});
        let kept = json!({"properties": {"spec": {"properties": {"mode": {"enum": ["A", "B"]}, "list": {"items": {"enum": ["C"]}}, "text": {}}}}});
        assert_eq!(
            read(&crd.to_string()).unwrap(),
            json!({"spec": {"versions": [{"storage": true, "schema": {"openAPIV3Schema": kept}}]}})
        );
    }
}
