//! The annotation `patch`: a JSON patch (RFC 6902), parsed strictly, whose operations and result are both checked.

use crate::object::key::Key;
use crate::overrides::allow::{Allowed, PatchableKinds};
use crate::overrides::difference;
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use crate::overrides::operation::Operation;
use crate::overrides::strict::{StrictJson, count, depth, size};
use api::annotation::PREFIX;
use serde_json::{Map, Value};

/// The longest patch in bytes; nobody can review a longer one.
const MAX_BYTES: usize = 64 * 1024;
/// The most operations of a patch.
const MAX_OPERATIONS: usize = 100;
/// The most opening brackets of a patch, including those in texts; counted before it is parsed.
const MAX_OPENED: usize = 1_000;
/// The largest patched object in bytes: chained copies grow without bound.
pub(crate) const MAX_RESULT_BYTES: usize = 1024 * 1024;
/// The most values of a patched object, where a list counts as five and a map as twelve: empty lists are short as text and large in
/// memory. The largest dashboards have a few thousand.
const MAX_VALUES: usize = 20_000;
/// The most values that a patch inserts, counted in the same way: nobody can review more, and a decision about them stays short.
const MAX_INSERTED: usize = 2_500;
/// The deepest nesting of a patched object.
pub(crate) const MAX_DEPTH: usize = 32;

/// A checked patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    operations: Vec<Operation>,
    /// The fields it may change; `None` for a patch without operations.
    allowed: Option<Allowed>,
    guards: OverrideGuards,
}

impl Patch {
    /// Parses a patch for this object; the error is a message for its author.
    pub fn parse(text: &str, key: &Key, patchable_kinds: &PatchableKinds) -> Result<Patch, String> {
        Patch::parse_with(text, key, patchable_kinds, OverrideGuards::ALL)
    }

    pub(crate) fn parse_with(
        text: &str,
        key: &Key,
        patchable_kinds: &PatchableKinds,
        guards: OverrideGuards,
    ) -> Result<Patch, String> {
        if text.len() > MAX_BYTES && guards.enabled(OverrideGuard::PatchLength) {
            return Err(format!("it has {} bytes, at most {MAX_BYTES} are allowed", text.len()));
        }
        // Checked before parsing, because a parsed map or list takes many times the memory of its text.
        let opened = text.bytes().filter(|byte| [b'{', b'['].contains(byte)).count();
        if opened > MAX_OPENED && guards.enabled(OverrideGuard::OperationCount) {
            return Err(format!("it has {opened} maps and lists, at most {MAX_OPENED} are allowed"));
        }
        let value = if guards.enabled(OverrideGuard::DuplicateKeys) {
            serde_json::from_str(text).map(|StrictJson(value)| value)
        } else {
            serde_json::from_str(text)
        };
        let Value::Array(items) = value.map_err(|error| format!("it is not JSON: {error}"))? else {
            return Err("it is not a list of operations".into());
        };
        if items.len() > MAX_OPERATIONS && guards.enabled(OverrideGuard::OperationCount) {
            return Err(format!("it has {} operations, at most {MAX_OPERATIONS} are allowed", items.len()));
        }
        if items.is_empty() {
            return Ok(Patch { operations: Vec::new(), allowed: None, guards });
        }
        let allowed = Allowed::of(key, patchable_kinds, guards)?;
        let mut operations = Vec::new();
        for (index, item) in items.into_iter().enumerate() {
            let operation = Operation::parse(item, guards).map_err(|why| format!("operation {}: {why}", index + 1))?;
            for path in operation.changes().filter(|_| guards.enabled(OverrideGuard::Operations)) {
                allowed.judge(path).map_err(|why| format!("operation {}: {why}", index + 1))?;
            }
            operations.push(operation);
        }
        Ok(Patch { operations, allowed: Some(allowed), guards })
    }

    /// Applies the patch to an object. The result may differ only in fields that users may patch, and keeps the identity of the object.
    pub fn apply(&self, object: &Value) -> Result<Value, String> {
        let Some(allowed) = &self.allowed else { return Ok(object.clone()) };
        let mut patched = with_own_maps(object.clone());
        // Inserted values count even if a later operation removes them, because they are copied.
        let (mut written, mut values, mut inserted) = (size(&patched), count(&patched), 0_usize);
        for (index, operation) in self.operations.iter().enumerate() {
            if let Some((path, value)) = operation.inserts(&patched, self.guards) {
                written = written.saturating_add(size(value));
                if written > MAX_RESULT_BYTES && self.guards.enabled(OverrideGuard::Size) {
                    return Err(format!(
                        "operation {} makes the object larger than {MAX_RESULT_BYTES} bytes",
                        index + 1
                    ));
                }
                let more = count(value);
                (values, inserted) = (values.saturating_add(more), inserted.saturating_add(more));
                if inserted > MAX_INSERTED && self.guards.enabled(OverrideGuard::Size) {
                    return Err(format!(
                        "with operation {} the patch inserts more than {MAX_INSERTED} values",
                        index + 1
                    ));
                }
                if values > MAX_VALUES && self.guards.enabled(OverrideGuard::Size) {
                    return Err(format!("operation {} makes the object hold more than {MAX_VALUES} values", index + 1));
                }
                if path.steps().len() + depth(value) > MAX_DEPTH && self.guards.enabled(OverrideGuard::Depth) {
                    return Err(format!("operation {} nests the object deeper than {MAX_DEPTH}", index + 1));
                }
            }
            operation
                .run(&mut patched, self.guards)
                .map_err(|why| format!("operation {} cannot be applied: {why}", index + 1))?;
        }
        let patched = without_empty_maps(patched, object);
        if self.guards.enabled(OverrideGuard::ChangedFields) {
            difference::judge(object, &patched, allowed)
                .map_err(|why| format!("the patched object is refused: {why}"))?;
        }
        if self.guards.enabled(OverrideGuard::Identity) && guarded(&patched) != guarded(object) {
            return Err("the patched object has another identity or changes metadata that users may not patch".into());
        }
        Ok(patched)
    }

    /// The operations at, above or below a field of this object.
    pub(crate) fn concerning(&self, object: &Value) -> Patch {
        let concerns = |operation: &&Operation| operation.paths().any(|path| is_around(path.steps(), object));
        Patch { operations: self.operations.iter().filter(concerns).cloned().collect(), ..self.clone() }
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether it has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }
}

/// Whether these steps lead to a field of a value, to a map with such fields, or below such a field.
fn is_around(steps: &[String], value: &Value) -> bool {
    match (steps.split_first(), value) {
        (Some((step, rest)), Value::Object(fields)) if !fields.is_empty() => {
            fields.get(step).is_some_and(|below| is_around(rest, below))
        }
        _ => true,
    }
}

/// Adds empty maps of labels and annotations, so that a patch can add single entries.
fn with_own_maps(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["labels", "annotations"] {
            metadata.entry(key).or_insert_with(|| Value::Object(Map::new()));
        }
    }
    object
}

/// Removes empty maps of labels and annotations that the object did not have before.
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

/// The part of an object that no patch may change, whatever the rules of its kind are: everything but its content and the labels and
/// annotations that are not ours.
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
        // An empty map means the same as a missing one.
        metadata.retain(|_, value| value.as_object().is_none_or(|entries| !entries.is_empty()));
    }
    Value::Object(fields)
}

#[cfg(test)]
mod tests {
    use super::Patch;
    use crate::object::key::{Key, Kind};
    use crate::overrides::allow::PatchableKinds;
    use crate::overrides::strict::{count, size};
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    fn service() -> Value {
        json!({"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "s", "namespace": "n", "labels": {"platform.kubevirt.io/managed-by": "virt-platform-autopilot"}},
            "spec": {"ports": [{"name": "metrics", "port": 8080}], "type": "ClusterIP"}})
    }

    fn parse(kind: &str, patch: &str) -> Result<Patch, String> {
        let key = Key { kind: Kind::new("v1", kind), namespace: "n".into(), name: "s".into() };
        Patch::parse(patch, &key, &PatchableKinds::none())
    }

    fn judge(kind: &str, patch: &str) -> Result<Value, String> {
        parse(kind, patch)?.apply(&service())
    }

    fn refused(kind: &str, patch: &str, expected: &Expect) {
        expected.assert_eq(&judge(kind, patch).unwrap_err());
    }

    #[test]
    fn an_allowed_patch_is_applied() {
        let done = judge(
            "Service",
            r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}, {"op": "add", "path": "/metadata/labels/team", "value": "x"},
                {"op": "test", "path": "/metadata/name", "value": "s"}, {"op": "copy", "from": "/spec/sessionAffinity", "path": "/spec/other"}]"#,
        )
        .unwrap();
        assert_eq!(done["spec"]["sessionAffinity"], "ClientIP");
        assert_eq!(done["spec"]["other"], "ClientIP");
        assert_eq!(done["metadata"]["labels"]["team"], "x");
        let pods = r#"[{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": []}]"#;
        assert!(parse("DaemonSet", pods).is_ok());
    }

    #[test]
    fn a_refused_patch_says_what_is_wrong() {
        refused(
            "MachineConfig",
            r#"[{"op": "remove", "path": "/spec"}]"#,
            &expect![
                "a MachineConfig cannot be patched by annotation: it configures files, units and kernel arguments of nodes"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "replace", "path": "", "value": {}}]"#,
            &expect![
                "operation 1: the whole object may not be patched in a Service; see `virtpilot explain patch Service`"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "replace", "path": "/metadata/name", "value": "x"}]"#,
            &expect![
                "operation 1: /metadata/name may not be patched in a Service; see `virtpilot explain patch Service`"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "add", "path": "/metadata/labels/platform.kubevirt.io~1managed-by", "value": "me"}]"#,
            &expect![
                "operation 1: /metadata/labels/platform.kubevirt.io~1managed-by may not be patched in a Service: the platform's controllers act on it, and so do we"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "replace", "path": "/metadata/labels", "value": {}}]"#,
            &expect![
                "operation 1: /metadata/labels may not be patched in a Service; see `virtpilot explain patch Service`"
            ],
        );
        refused(
            "Service",
            r#"[{"op": "move", "from": "/metadata/namespace", "path": "/spec/x"}]"#,
            &expect![
                "operation 1: /metadata/namespace may not be patched in a Service; see `virtpilot explain patch Service`"
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
            &expect![[r#"it is not JSON: duplicate key "path" at line 1 column 49"#]],
        );
        refused(
            "Service",
            r#"[{"op": "add", "path": "/spec/x", "value": {"a": 1, "\u0061": 2}}]"#,
            &expect![[r#"it is not JSON: duplicate key "a" at line 1 column 64"#]],
        );
        refused(
            "Service",
            r#"[{"op": "remove", "path": "/spec/nothing"}]"#,
            &expect!["operation 1 cannot be applied: /spec/nothing does not exist"],
        );
        refused("Service", r#"{"op": "remove"}"#, &expect!["it is not a list of operations"]);
        refused(
            "DaemonSet",
            r#"[{"op": "add", "path": "/spec/template/spec/hostPID", "value": true}]"#,
            &expect![
                "operation 1: /spec/template/spec/hostPID may not be patched in a DaemonSet; see `virtpilot explain patch DaemonSet`"
            ],
        );
        refused(
            "Service",
            &format!("[{}]", vec![r#"{"op": "test", "path": "/kind", "value": "Service"}"#; 101].join(",")),
            &expect!["it has 101 operations, at most 100 are allowed"],
        );
    }

    #[test]
    fn the_limits_of_a_patch_are_exact() {
        let padded = |length: usize| {
            let empty = r#"[{"op": "add", "path": "/spec/x", "value": ""}]"#;
            empty.replace("\"\"}", &format!("\"{}\"}}", "x".repeat(length - empty.len())))
        };
        assert_eq!(padded(65536).len(), 65536);
        assert!(parse("Service", &padded(65536)).is_ok());
        refused("Service", &padded(65537), &expect!["it has 65537 bytes, at most 65536 are allowed"]);
        // The patch itself opens two.
        let bracketed = |opened: usize| {
            let value = "[".repeat(opened - 2);
            format!(r#"[{{"op": "add", "path": "/spec/x", "value": "{value}"}}]"#)
        };
        assert!(parse("Service", &bracketed(1000)).is_ok());
        refused("Service", &bracketed(1001), &expect!["it has 1001 maps and lists, at most 1000 are allowed"]);
        refused("Service", &bracketed(1002), &expect!["it has 1002 maps and lists, at most 1000 are allowed"]);
        let operations = |count: usize| {
            format!("[{}]", vec![r#"{"op": "test", "path": "/kind", "value": "Service"}"#; count].join(","))
        };
        let parsed = parse("Service", &operations(100)).unwrap();
        assert_eq!((parsed.len(), parsed.is_empty()), (100, false));
        assert!(parse("Service", "[]").unwrap().is_empty());
    }

    #[test]
    fn the_limits_of_a_patched_object_are_exact() {
        let adding = |value: &Value| {
            let patch = json!([{"op": "add", "path": "/spec/x", "value": value}]).to_string();
            parse("Service", &patch).unwrap()
        };
        let with = |value: Value| {
            let mut object = service();
            object["metadata"]["annotations"] = json!({"a": "b"});
            object["spec"]["y"] = value;
            object
        };
        let room = 1024 * 1024 - size(&with(json!(""))) - size(&json!(1));
        assert!(adding(&json!(1)).apply(&with(json!("y".repeat(room)))).is_ok());
        let message = adding(&json!(1)).apply(&with(json!("y".repeat(room + 1)))).unwrap_err();
        assert_eq!(message, "operation 1 makes the object larger than 1048576 bytes");

        let items = 20_000 - count(&with(json!([]))) - 1;
        assert!(adding(&json!(1)).apply(&with(json!(vec![0; items]))).is_ok());
        for more in [1, 2] {
            let message = adding(&json!(1)).apply(&with(json!(vec![0; items + more]))).unwrap_err();
            assert_eq!(message, "operation 1 makes the object hold more than 20000 values");
        }

        // A list counts as five.
        let numbers = |count: usize| json!(vec![0; count - 5]);
        assert!(adding(&numbers(2_500)).apply(&service()).is_ok());
        for more in [1, 2] {
            let message = adding(&numbers(2_500 + more)).apply(&service()).unwrap_err();
            assert_eq!(message, "with operation 1 the patch inserts more than 2500 values");
        }
        let twice = json!([{"op": "add", "path": "/spec/x", "value": numbers(1_300)}, {"op": "copy", "from": "/spec/x", "path": "/spec/y"}]);
        let message = parse("Service", &twice.to_string()).unwrap().apply(&service()).unwrap_err();
        assert_eq!(message, "with operation 2 the patch inserts more than 2500 values");

        // The path has two steps, and the innermost value is a level, too.
        let nested = |lists: usize| (0..lists).fold(json!(1), |inner, _| json!([inner]));
        assert!(adding(&nested(29)).apply(&service()).is_ok());
        assert_eq!(adding(&nested(30)).apply(&service()).unwrap_err(), "operation 1 nests the object deeper than 32");
    }

    #[test]
    fn chained_copies_stop_at_the_size_limit() {
        let mut operations =
            vec![r#"{"op": "add", "path": "/spec/a", "value": ["xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"]}"#.to_owned()];
        operations.extend((0..40).map(|_| r#"{"op": "copy", "from": "/spec/a", "path": "/spec/a/-"}"#.to_owned()));
        let message = judge("Service", &format!("[{}]", operations.join(","))).unwrap_err();
        assert!(
            message.contains("more than 2500 values")
                || message.contains("larger than 1048576 bytes")
                || message.contains("deeper than 32"),
            "{message}"
        );
    }
}
