//! A user's JSON patch (RFC 6902): parsed once and strictly, judged on its operations and on its result.

use crate::object::Kind;
use crate::pointer::Pointer;
use crate::strict::{Strict, depth};
use api::annotation::PREFIX;
use json_patch::PatchOperation;
use serde_json::{Map, Value};

/// Longer patches are refused: a person cannot read them anyway.
const LONGEST: usize = 64 * 1024;
/// More operations are refused.
const MOST_OPERATIONS: usize = 100;
/// What a patch makes of an object may not be larger: chained copies grow without bound.
const LARGEST_RESULT: usize = 1024 * 1024;
/// Nor deeper.
const DEEPEST: usize = 32;

/// Kinds whose content is power: nobody gains it through an annotation.
const SENSITIVE: [&str; 11] = [
    "MachineConfig",
    "KubeletConfig",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "ServiceAccount",
    "PodSecurityPolicy",
    "SecurityContextConstraints",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
];
/// Kinds that start pods: of these only what cannot change who the pod is.
const WITH_PODS: [&str; 7] = ["Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job", "CronJob", "Pod"];

/// A checked patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    operations: Vec<Operation>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Operation {
    raw: PatchOperation,
    /// What it changes, beside what it only reads.
    changes: Vec<Pointer>,
}

impl Patch {
    /// Reads a patch for an object of this kind; an error is a sentence for its author.
    pub fn parse(text: &str, kind: &Kind) -> Result<Patch, String> {
        if text.len() > LONGEST {
            return Err(format!("it has {} bytes, {LONGEST} are allowed", text.len()));
        }
        let Strict(value) = serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
        let Value::Array(items) = value else {
            return Err("it is not a list of operations".into());
        };
        if items.len() > MOST_OPERATIONS {
            return Err(format!("it has {} operations, {MOST_OPERATIONS} are allowed", items.len()));
        }
        if items.is_empty() {
            return Ok(Patch { operations: Vec::new() });
        }
        if SENSITIVE.contains(&kind.kind.as_str()) {
            return Err(format!(
                "a {} grants power over nodes or rights, so it cannot be patched by annotation",
                kind.kind
            ));
        }
        let mut operations = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let operation = Operation::parse(item).map_err(|why| format!("operation {}: {why}", index + 1))?;
            for place in &operation.changes {
                allowed(place, kind).map_err(|why| format!("operation {}: {why}", index + 1))?;
            }
            operations.push(operation);
        }
        Ok(Patch { operations })
    }

    /// What the patch makes of an object; the object must stay the same one.
    pub fn apply(&self, object: &Value) -> Result<Value, String> {
        let mut patched = object.clone();
        for (index, operation) in self.operations.iter().enumerate() {
            json_patch::patch(&mut patched, std::slice::from_ref(&operation.raw))
                .map_err(|error| format!("operation {} does not fit: {}", index + 1, error.kind))?;
            if patched.to_string().len() > LARGEST_RESULT {
                return Err(format!("operation {} makes the object larger than {LARGEST_RESULT} bytes", index + 1));
            }
            if depth(&patched) > DEEPEST {
                return Err(format!("operation {} nests the object deeper than {DEEPEST}", index + 1));
            }
        }
        if guarded(&patched) != guarded(object) {
            return Err("its result has another identity or touches metadata that is not the user's".into());
        }
        Ok(patched)
    }

    /// How many operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether it does nothing.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

impl Operation {
    fn parse(item: Value) -> Result<Operation, String> {
        let Value::Object(fields) = &item else {
            return Err("it is not an object".into());
        };
        let op = fields.get("op").and_then(Value::as_str).ok_or("it has no \"op\"")?;
        let members: &[&str] = match op {
            "add" | "replace" | "test" => &["op", "path", "value"],
            "remove" => &["op", "path"],
            "move" | "copy" => &["op", "path", "from"],
            other => return Err(format!("there is no operation {other:?}")),
        };
        if let Some(unknown) = fields.keys().find(|key| !members.contains(&key.as_str())) {
            return Err(format!("{op} has no member {unknown:?}"));
        }
        if let Some(missing) = members.iter().find(|member| !fields.contains_key(**member)) {
            return Err(format!("{op} needs a {missing:?}"));
        }
        let pointer = |fields: &Map<String, Value>, member: &str| {
            Pointer::parse(fields[member].as_str().ok_or(format!("{member:?} is not text"))?)
        };
        let changes = match op {
            "test" => Vec::new(),
            "move" => vec![pointer(fields, "path")?, pointer(fields, "from")?],
            _ => vec![pointer(fields, "path")?],
        };
        if op == "copy" {
            pointer(fields, "from")?;
        } else if op == "test" {
            pointer(fields, "path")?;
        }
        let raw = serde_json::from_value(item).map_err(|error| error.to_string())?;
        Ok(Operation { raw, changes })
    }
}

/// Whether users may change what a pointer points at.
fn allowed(place: &Pointer, kind: &Kind) -> Result<(), String> {
    let steps: Vec<&str> = place.steps().iter().map(String::as_str).collect();
    let fits = match steps.as_slice() {
        ["metadata", "labels" | "annotations", key] => !key.starts_with(PREFIX),
        ["data", ..] => true,
        ["spec", ..] if WITH_PODS.contains(&kind.kind.as_str()) => allowed_with_pods(&steps),
        ["spec", ..] => true,
        _ => false,
    };
    let what = if steps.is_empty() { "the whole object".to_owned() } else { place.to_string() };
    if fits { Ok(()) } else { Err(format!("{what} is not for users to patch in a {}", kind.kind)) }
}

/// Resources, environment, placement and number: what users tune without changing what runs.
fn allowed_with_pods(steps: &[&str]) -> bool {
    let pod = match steps {
        ["spec", "replicas"] => return true,
        ["spec", "template", "spec", rest @ ..] | ["spec", "jobTemplate", "spec", "template", "spec", rest @ ..] => {
            rest
        }
        ["spec", rest @ ..] => rest,
        _ => return false,
    };
    matches!(
        pod,
        ["tolerations" | "nodeSelector" | "affinity", ..]
            | ["containers" | "initContainers", _, "resources" | "env", ..]
    )
}

/// Everything of an object that no patch may change: all but its content and the users' own labels and annotations.
fn guarded(object: &Value) -> Value {
    let mut rest = object.clone();
    let Some(fields) = rest.as_object_mut() else { return rest };
    fields.retain(|key, _| !["spec", "data"].contains(&key.as_str()));
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["labels", "annotations"] {
            if let Some(Value::Object(entries)) = metadata.get_mut(key) {
                entries.retain(|name, _| name.starts_with(PREFIX));
            }
        }
        // An empty map and none mean the same.
        metadata.retain(|_, value| value.as_object().is_none_or(|entries| !entries.is_empty()));
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::Patch;
    use crate::object::Kind;
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    fn service() -> Value {
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "namespace": "n", "labels": {"platform.kubevirt.io/managed-by": "virt-platform-autopilot"}},
            "spec": {"ports": [{"name": "metrics", "port": 8080}], "type": "ClusterIP"}})
    }

    fn judge(kind: &str, patch: &str) -> Result<Value, String> {
        Patch::parse(patch, &Kind::new("v1", kind))?.apply(&service())
    }

    fn refused(kind: &str, patch: &str, expected: &Expect) {
        expected.assert_eq(&judge(kind, patch).unwrap_err());
    }

    #[test]
    fn what_is_allowed_is_done() {
        let done = judge(
            "Service",
            r#"[{"op": "replace", "path": "/spec/type", "value": "NodePort"}, {"op": "add", "path": "/metadata/labels/team", "value": "x"},
                {"op": "test", "path": "/metadata/name", "value": "s"}, {"op": "copy", "from": "/spec/type", "path": "/spec/other"}]"#,
        )
        .unwrap();
        assert_eq!(done["spec"]["type"], "NodePort");
        assert_eq!(done["spec"]["other"], "NodePort");
        assert_eq!(done["metadata"]["labels"]["team"], "x");
        let pods = r#"[{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": []}]"#;
        assert!(Patch::parse(pods, &Kind::new("apps/v1", "DaemonSet")).is_ok());
    }

    #[test]
    fn what_is_not_allowed_is_told_to_its_author() {
        refused(
            "MachineConfig",
            r#"[{"op": "remove", "path": "/spec"}]"#,
            &expect!["a MachineConfig grants power over nodes or rights, so it cannot be patched by annotation"],
        );
        refused(
            "Service",
            r#"[{"op": "replace", "path": "", "value": {}}]"#,
            &expect!["operation 1: the whole object is not for users to patch in a Service"],
        );
        refused(
            "Service",
            r#"[{"op": "replace", "path": "/metadata/name", "value": "x"}]"#,
            &expect!["operation 1: /metadata/name is not for users to patch in a Service"],
        );
        refused(
            "Service",
            r#"[{"op": "add", "path": "/metadata/labels/platform.kubevirt.io~1managed-by", "value": "me"}]"#,
            &expect![
                "operation 1: /metadata/labels/platform.kubevirt.io~1managed-by is not for users to patch in a Service"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "replace", "path": "/metadata/labels", "value": {}}]"#,
            &expect!["operation 1: /metadata/labels is not for users to patch in a Service"],
        );
        refused(
            "Service",
            r#"[{"op": "move", "from": "/metadata/namespace", "path": "/spec/x"}]"#,
            &expect!["operation 1: /metadata/namespace is not for users to patch in a Service"],
        );
        refused(
            "Service",
            r#"[{"op": "add", "path": "spec/x", "value": 1}]"#,
            &expect![[r#"operation 1: "spec/x" does not begin with a slash; write it as /spec/..."#]],
        );
        refused(
            "Service",
            r#"[{"op": "add", "path": "/spec/x", "Path": "/kind", "value": 1}]"#,
            &expect![[r#"operation 1: add has no member "Path""#]],
        );
        refused(
            "Service",
            r#"[{"op": "add", "path": "/spec/x", "path": "/kind", "value": 1}]"#,
            &expect![[r#"it is not JSON: the key "path" is said twice at line 1 column 49"#]],
        );
        refused(
            "Service",
            r#"[{"op": "add", "path": "/spec/x", "value": {"a": 1, "\u0061": 2}}]"#,
            &expect![[r#"it is not JSON: the key "a" is said twice at line 1 column 64"#]],
        );
        refused(
            "Service",
            r#"[{"op": "remove", "path": "/spec/nothing"}]"#,
            &expect!["operation 1 does not fit: path is invalid"],
        );
        refused("Service", r#"{"op": "remove"}"#, &expect!["it is not a list of operations"]);
        refused(
            "DaemonSet",
            r#"[{"op": "add", "path": "/spec/template/spec/hostPID", "value": true}]"#,
            &expect!["operation 1: /spec/template/spec/hostPID is not for users to patch in a DaemonSet"],
        );
        refused(
            "Service",
            &format!("[{}]", vec![r#"{"op": "test", "path": "/kind", "value": "Service"}"#; 101].join(",")),
            &expect!["it has 101 operations, 100 are allowed"],
        );
    }

    #[test]
    fn a_bomb_of_copies_stops_at_the_size_of_an_object() {
        let mut operations =
            vec![r#"{"op": "add", "path": "/spec/a", "value": ["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]}"#.to_owned()];
        operations.extend((0..40).map(|_| r#"{"op": "copy", "from": "/spec/a", "path": "/spec/a/-"}"#.to_owned()));
        let words = judge("Service", &format!("[{}]", operations.join(","))).unwrap_err();
        assert!(words.contains("larger than 1048576 bytes") || words.contains("deeper than 32"), "{words}");
    }
}
