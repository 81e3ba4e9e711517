//! A user's JSON patch (RFC 6902): parsed once and strictly, judged on its operations and on its result.

use crate::object::key::Kind;
use crate::overrides::allow::{Allowed, PatchableKinds};
use crate::overrides::difference;
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use crate::overrides::operation::Operation;
use crate::overrides::strict::{StrictJson, count, depth, size};
use api::annotation::PREFIX;
use serde_json::{Map, Value};

/// Longer patches are refused: a person cannot read them anyway.
const LONGEST: usize = 64 * 1024;
/// More operations are refused.
const MOST_OPERATIONS: usize = 100;
/// More maps and lists are refused before they are read; brackets in texts count.
const MOST_OPENED: usize = 1_000;
/// What a patch makes of an object may not be larger: chained copies grow without bound.
pub(crate) const LARGEST_RESULT: usize = 1024 * 1024;
/// Nor have more values, a list counted as five and a map as a dozen: a thousand empty lists are short as text and long in memory. The largest dashboards have
/// a few thousand.
const MOST_VALUES: usize = 20_000;
/// Nor deeper.
pub(crate) const DEEPEST: usize = 32;

/// A checked patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    operations: Vec<Operation>,
    /// What it may touch; nothing to judge by is needed where nothing is done.
    allowed: Option<Allowed>,
    guards: OverrideGuards,
}

impl Patch {
    /// Reads a patch for an object of this kind; an error is a sentence for its author.
    pub fn parse(text: &str, kind: &Kind, patchable_kinds: &PatchableKinds) -> Result<Patch, String> {
        Patch::parse_with(text, kind, patchable_kinds, OverrideGuards::ALL)
    }

    pub(crate) fn parse_with(
        text: &str,
        kind: &Kind,
        patchable_kinds: &PatchableKinds,
        guards: OverrideGuards,
    ) -> Result<Patch, String> {
        if text.len() > LONGEST && guards.enabled(OverrideGuard::PatchLength) {
            return Err(format!("it has {} bytes, {LONGEST} are allowed", text.len()));
        }
        // Before it is read: as a tree each map and each list takes many times its text.
        let opened = text.bytes().filter(|byte| [b'{', b'['].contains(byte)).count();
        if opened > MOST_OPENED && guards.enabled(OverrideGuard::OperationCount) {
            return Err(format!("it opens {opened} maps and lists, {MOST_OPENED} are allowed"));
        }
        let value = if guards.enabled(OverrideGuard::DuplicateKeys) {
            serde_json::from_str(text).map(|StrictJson(value)| value)
        } else {
            serde_json::from_str(text)
        };
        let Value::Array(items) = value.map_err(|error| format!("it is not JSON: {error}"))? else {
            return Err("it is not a list of operations".into());
        };
        if items.len() > MOST_OPERATIONS && guards.enabled(OverrideGuard::OperationCount) {
            return Err(format!("it has {} operations, {MOST_OPERATIONS} are allowed", items.len()));
        }
        if items.is_empty() {
            return Ok(Patch { operations: Vec::new(), allowed: None, guards });
        }
        let allowed = Allowed::of(kind, patchable_kinds, guards)?;
        let mut operations = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let operation = Operation::parse(item, guards).map_err(|why| format!("operation {}: {why}", index + 1))?;
            for place in operation.changes().filter(|_| guards.enabled(OverrideGuard::Operations)) {
                allowed.judge(place).map_err(|why| format!("operation {}: {why}", index + 1))?;
            }
            operations.push(operation);
        }
        Ok(Patch { operations, allowed: Some(allowed), guards })
    }

    /// What the patch makes of an object. Whatever the operations were, the result may differ from the object only in what users may
    /// patch, and must be the same object.
    pub fn apply(&self, object: &Value) -> Result<Value, String> {
        let Some(allowed) = &self.allowed else { return Ok(object.clone()) };
        let mut patched = with_own_maps(object.clone());
        // What was brought in counts also when it was taken away again: it had to be copied.
        let (mut written, mut values) = (size(&patched), count(&patched));
        for (index, operation) in self.operations.iter().enumerate() {
            if let Some((path, value)) = operation.brings(&patched, self.guards) {
                written = written.saturating_add(size(value));
                if written > LARGEST_RESULT && self.guards.enabled(OverrideGuard::Size) {
                    return Err(format!("operation {} makes the object larger than {LARGEST_RESULT} bytes", index + 1));
                }
                values = values.saturating_add(count(value));
                if values > MOST_VALUES && self.guards.enabled(OverrideGuard::Size) {
                    return Err(format!("operation {} gives the object more than {MOST_VALUES} values", index + 1));
                }
                if path.steps().len() + depth(value) > DEEPEST && self.guards.enabled(OverrideGuard::Depth) {
                    return Err(format!("operation {} nests the object deeper than {DEEPEST}", index + 1));
                }
            }
            operation
                .run(&mut patched, self.guards)
                .map_err(|why| format!("operation {} does not fit: {why}", index + 1))?;
        }
        let patched = without_empty_maps(patched, object);
        if self.guards.enabled(OverrideGuard::ChangedFields) {
            difference::judge(object, &patched, allowed).map_err(|why| format!("its result is refused: {why}"))?;
        }
        if self.guards.enabled(OverrideGuard::Identity) && guarded(&patched) != guarded(object) {
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

/// Users add labels and annotations one by one, so there must be something to add them to.
fn with_own_maps(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["labels", "annotations"] {
            metadata.entry(key).or_insert_with(|| Value::Object(Map::new()));
        }
    }
    object
}

/// An empty map and none mean the same, so one that was not there before is not there after.
fn without_empty_maps(mut patched: Value, before: &Value) -> Value {
    if let Some(metadata) = patched.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["labels", "annotations"] {
            let was = before.pointer(&format!("/metadata/{key}")).is_some();
            if !was && metadata.get(key).and_then(Value::as_object).is_some_and(Map::is_empty) {
                metadata.remove(key);
            }
        }
    }
    patched
}

/// Everything of an object that no patch may change, whatever the rules for its kind say: all but its content and the users' own labels
/// and annotations.
fn guarded(object: &Value) -> Value {
    let Some(fields) = object.as_object() else { return object.clone() };
    let rest = fields.iter().filter(|(key, _)| !["spec", "data"].contains(&key.as_str()));
    let mut fields: Map<String, Value> = rest.map(|(key, value)| (key.clone(), value.clone())).collect();
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["labels", "annotations"] {
            if let Some(Value::Object(entries)) = metadata.get_mut(key) {
                entries.retain(|name, _| name.starts_with(PREFIX));
            }
        }
        // An empty map and none mean the same.
        metadata.retain(|_, value| value.as_object().is_none_or(|entries| !entries.is_empty()));
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::Patch;
    use crate::object::key::Kind;
    use crate::overrides::allow::PatchableKinds;
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    fn service() -> Value {
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "namespace": "n", "labels": {"platform.kubevirt.io/managed-by": "virt-platform-autopilot"}},
            "spec": {"ports": [{"name": "metrics", "port": 8080}], "type": "ClusterIP"}})
    }

    fn judge(kind: &str, patch: &str) -> Result<Value, String> {
        Patch::parse(patch, &Kind::new("v1", kind), &PatchableKinds::none())?.apply(&service())
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
        assert!(Patch::parse(pods, &Kind::new("apps/v1", "DaemonSet"), &PatchableKinds::none()).is_ok());
    }

    #[test]
    fn what_is_not_allowed_is_told_to_its_author() {
        refused(
            "MachineConfig",
            r#"[{"op": "remove", "path": "/spec"}]"#,
            &expect![
                "a MachineConfig cannot be patched by annotation: it writes files, units and kernel arguments of nodes"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "replace", "path": "", "value": {}}]"#,
            &expect![
                "operation 1: the whole object is not for users to patch in a Service; see `virtpilot explain patch Service`"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "replace", "path": "/metadata/name", "value": "x"}]"#,
            &expect![
                "operation 1: /metadata/name is not for users to patch in a Service; see `virtpilot explain patch Service`"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "add", "path": "/metadata/labels/platform.kubevirt.io~1managed-by", "value": "me"}]"#,
            &expect![
                "operation 1: /metadata/labels/platform.kubevirt.io~1managed-by is not for users to patch in a Service: it says that the object is ours"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "replace", "path": "/metadata/labels", "value": {}}]"#,
            &expect![
                "operation 1: /metadata/labels is not for users to patch in a Service; see `virtpilot explain patch Service`"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "move", "from": "/metadata/namespace", "path": "/spec/x"}]"#,
            &expect![
                "operation 1: /metadata/namespace is not for users to patch in a Service; see `virtpilot explain patch Service`"
            ],
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
            &expect!["operation 1 does not fit: /spec/nothing does not exist"],
        );
        refused("Service", r#"{"op": "remove"}"#, &expect!["it is not a list of operations"]);
        refused(
            "DaemonSet",
            r#"[{"op": "add", "path": "/spec/template/spec/hostPID", "value": true}]"#,
            &expect![
                "operation 1: /spec/template/spec/hostPID is not for users to patch in a DaemonSet; see `virtpilot explain patch DaemonSet`"
            ],
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
        assert!(
            words.contains("more than 20000 values")
                || words.contains("larger than 1048576 bytes")
                || words.contains("deeper than 32"),
            "{words}"
        );
    }
}
