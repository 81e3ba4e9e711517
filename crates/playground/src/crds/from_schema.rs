//! Creates a CRD from the OpenAPI schema of a kind.

use super::table::plural_and_group;
use serde_json::{Map, Value, json};

/// Whether a schema describes this group, kind and version.
pub(super) fn describes(schema: &Value, crd: &str, kind: &str, version: &str) -> bool {
    let (_, group) = plural_and_group(crd);
    let wanted = json!({"group": group, "kind": kind, "version": version});
    schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|kinds| kinds.contains(&wanted))
}

/// A CRD with this schema for its only version.
pub(super) fn crd(schema: &Value, crd: &str, kind: &str, version: &str) -> Value {
    let namespaced = schema["namespaced"].as_bool().unwrap_or(true);
    let mut schema = schema.clone();
    if let Some(top) = schema.as_object_mut() {
        top.remove("x-kubernetes-group-version-kind");
        top.remove("namespaced");
    }
    if let Some(properties) = schema["properties"].as_object_mut() {
        // The API server defines these three itself and rejects any other schema for them.
        properties.insert("metadata".into(), json!({"type": "object"}));
        properties.insert("apiVersion".into(), json!({"type": "string"}));
        properties.insert("kind".into(), json!({"type": "string"}));
    }
    make_structural(&mut schema);
    definition(crd, kind, version, if namespaced { "Namespaced" } else { "Cluster" }, &schema)
}

fn definition(crd: &str, kind: &str, version: &str, scope: &str, schema: &Value) -> Value {
    let (plural, group) = plural_and_group(crd);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": crd},
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase()},
            "scope": scope,
            "versions": [{
                "name": version,
                "served": true,
                "storage": true,
                "schema": {"openAPIV3Schema": schema},
                "subresources": {"status": {}},
            }],
        },
    })
}

/// Restores what publishing as OpenAPI has lost, so that the server accepts a structural schema: references become
/// free-form objects, and a missing type is inferred from the other keywords.
fn make_structural(schema: &mut Value) {
    let Some(node) = schema.as_object_mut() else { return };
    if node.contains_key("$ref") || (node.contains_key("allOf") && has_reference(&node["allOf"])) {
        *node = free_form(node);
        return;
    }
    let typed = ["type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];
    if !typed.iter().any(|key| node.contains_key(*key)) {
        let inferred = if node.contains_key("items") {
            "array"
        } else if node.contains_key("properties") || node.contains_key("additionalProperties") {
            "object"
        } else if node.contains_key("enum") || node.contains_key("pattern") {
            "string"
        } else {
            // Publishing drops the whole content of a nullable field, so its validation rules no longer apply.
            *node = free_form(node);
            return;
        };
        node.insert("type".into(), json!(inferred));
    }
    if let Some(properties) = node.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, property) in properties {
            // The only list among the dropped fields.
            if name == "tolerations" && property.get("type").is_none() {
                *property = json!({"type": "array", "items": free_form(&Map::new())});
            }
            make_structural(property);
        }
    }
    for key in ["items", "additionalProperties"] {
        if let Some(child) = node.get_mut(key) {
            make_structural(child);
        }
    }
}

/// An object with any content and the description of the original.
fn free_form(original: &Map<String, Value>) -> Map<String, Value> {
    let mut free = Map::new();
    free.insert("type".into(), json!("object"));
    free.insert("x-kubernetes-preserve-unknown-fields".into(), json!(true));
    free.extend(original.get("description").map(|text| ("description".to_owned(), text.clone())));
    free
}

fn has_reference(all_of: &Value) -> bool {
    all_of.as_array().is_some_and(|parts| parts.iter().any(|part| part.get("$ref").is_some()))
}

#[cfg(test)]
mod tests {
    use super::{crd, describes, make_structural};
    use serde_json::json;

    #[test]
    fn references_and_missing_types_become_structural() {
        let mut schema = json!({"properties": {
            "reference": {"$ref": "#/x"},
            "wrapped": {"allOf": [{"$ref": "#/x"}]},
            "list": {"items": {"enum": ["a"]}},
            "either": {"x-kubernetes-int-or-string": true},
            "nothing": {"description": "?", "x-kubernetes-validations": [{"rule": "self.a"}]},
            "tolerations": {"description": "!"},
        }});
        make_structural(&mut schema);
        let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(
            schema,
            json!({"type": "object", "properties": {
                "reference": free,
                "wrapped": free,
                "list": {"type": "array", "items": {"type": "string", "enum": ["a"]}},
                "either": {"x-kubernetes-int-or-string": true},
                "nothing": {"description": "?", "type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "tolerations": {"type": "array", "items": free},
            }})
        );
    }

    #[test]
    fn the_scope_and_the_names_come_from_the_schema_and_the_table() {
        let schema = json!({
            "namespaced": false,
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "g.io", "kind": "Kind", "version": "v1"}],
            "properties": {"metadata": {"$ref": "#/meta"}, "spec": {"type": "object"}},
        });
        assert!(describes(&schema, "kinds.g.io", "Kind", "v1"));
        assert!(!describes(&schema, "kinds.g.io", "Kind", "v2"));
        let created = crd(&schema, "kinds.g.io", "Kind", "v1");
        assert_eq!(created["spec"]["scope"], "Cluster");
        assert_eq!(created["spec"]["names"]["plural"], "kinds");
        let created = &created["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert_eq!(created["properties"]["metadata"], json!({"type": "object"}));
        assert!(created.get("namespaced").is_none());
    }
}
