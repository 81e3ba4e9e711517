//! Which field manager owns which field, read from `metadata.managedFields`. A change of our own entry is drift.

use crate::fields::redact::Place;
use serde_json::Value;
use std::collections::BTreeSet;

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The field manager.
    pub manager: String,
    /// Whether the operation was an apply; otherwise it was an update.
    pub applied: bool,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// When the entry last changed, as the server writes it.
    pub time: String,
    /// The owned fields.
    pub fields: FieldSet,
}

/// Separates two steps of a path. A dot would not do: label keys contain dots, and `app` is not a parent of `app.kubernetes.io/name`.
const STEP: char = '\u{1}';

/// A set of field paths, shown as `.spec.replicas` or `.spec.ports[port=80].name`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet(BTreeSet<String>);

impl Entry {
    /// Reads all entries of an object's `managedFields`.
    pub fn all(managed_fields: &Value) -> Vec<Entry> {
        let entries = managed_fields.as_array().into_iter().flatten();
        entries.map(Entry::read).collect()
    }

    /// The entry of our applies to the object itself, given our field manager.
    pub fn ours<'a>(entries: &'a [Entry], manager: &str) -> Option<&'a Entry> {
        entries.iter().find(|entry| entry.applied && entry.manager == manager && entry.subresource.is_empty())
    }

    fn read(entry: &Value) -> Entry {
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        Entry {
            manager: text("manager"),
            applied: entry["operation"] == "Apply",
            subresource: text("subresource"),
            time: text("time"),
            fields: FieldSet::read(&entry["fieldsV1"]),
        }
    }
}

impl FieldSet {
    /// Reads `fieldsV1`.
    pub fn read(fields: &Value) -> FieldSet {
        let mut paths = BTreeSet::new();
        collect(fields, String::new(), &mut paths);
        // An apply of nothing but a name owns no field, and not the whole object.
        paths.remove("");
        FieldSet(paths)
    }

    /// The leaves of an object that can be named without its schema: those outside of lists.
    pub fn of_object(object: &Value) -> FieldSet {
        let mut paths = BTreeSet::new();
        leaves(object, String::new(), &mut paths);
        FieldSet(paths)
    }

    /// The leaves of an object that this set does not cover. A list counts as one leaf, and owning a field covers everything below it.
    #[must_use]
    pub fn missing_of(&self, object: &Value) -> FieldSet {
        let mut paths = FieldSet::of_object(object).0;
        lists(object, String::new(), &mut paths);
        let identity = [".apiVersion", ".kind", ".metadata.name", ".metadata.namespace"];
        paths.retain(|path| {
            let is_covered =
                self.0.iter().any(|field| is_within(path, field) || (is_list(object, path) && is_within(field, path)));
            !identity.contains(&readable(path).as_str()) && !is_covered
        });
        FieldSet(paths)
    }

    /// The fields of this set that an object does not have. What is in a list of the object counts as present.
    #[must_use]
    pub fn beyond(&self, object: &Value) -> FieldSet {
        let mut present = FieldSet::of_object(object).0;
        lists(object, String::new(), &mut present);
        let is_present = |field: &String| present.iter().any(|path| is_within(field, path) || is_within(path, field));
        FieldSet(self.0.iter().filter(|field| !is_present(field)).cloned().collect())
    }

    /// The fields of this set that the other does not have.
    #[must_use]
    pub fn without(&self, other: &FieldSet) -> FieldSet {
        FieldSet(self.0.difference(&other.0).cloned().collect())
    }

    /// The fields that are in both sets.
    #[must_use]
    pub fn common(&self, other: &FieldSet) -> FieldSet {
        FieldSet(self.0.intersection(&other.0).cloned().collect())
    }

    /// Whether the set has no field.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths in order, in readable form.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|path| readable(path))
    }
}

/// The field managers, other than ours, that now own one of the lost fields; the latest writer comes first.
pub fn takers<'a>(lost: &FieldSet, entries: &'a [Entry], manager: &str) -> Vec<&'a str> {
    let mut takers: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.manager != manager || !entry.applied)
        .filter(|entry| !entry.fields.common(lost).is_empty())
        .collect();
    takers.sort_by(|one, other| other.time.cmp(&one.time));
    let mut names: Vec<&str> = takers.into_iter().map(|entry| entry.manager.as_str()).collect();
    names.dedup();
    names
}

/// The field manager that applied fields of this object which we no longer own, and those fields. An apply by another manager claims
/// ownership, so it is not drift. A list counts as one field, and owning a field covers everything below it.
pub fn applied_by_another(object: &Value, entries: &[Entry], manager: &str) -> Option<(String, FieldSet)> {
    let ours = Entry::ours(entries, manager).map(|entry| entry.fields.clone()).unwrap_or_default();
    let missing = ours.missing_of(object);
    if missing.is_empty() {
        return None;
    }
    let others =
        entries.iter().filter(|entry| entry.applied && entry.manager != manager && entry.subresource.is_empty());
    let mut taken = others.map(|entry| {
        let theirs =
            |path: &&String| entry.fields.0.iter().any(|field| is_within(path, field) || is_within(field, path));
        (entry.manager.clone(), FieldSet(missing.0.iter().filter(theirs).cloned().collect()))
    });
    taken.find(|(_, fields)| !fields.is_empty())
}

/// Whether a path equals another or lies below it.
fn is_within(inner: &str, outer: &str) -> bool {
    inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with([STEP, '[']))
}

/// Whether the value at a path is a list.
fn is_list(object: &Value, path: &str) -> bool {
    path.split(STEP).skip(1).try_fold(object, |value, step| value.get(step)).is_some_and(Value::is_array)
}

/// A list item may be named by its value, which may not be shown.
fn readable(path: &str) -> String {
    let mut place = Place::default();
    let steps = path.split(STEP).map(|step| {
        let (name, items) = step.split_at(step.find('[').unwrap_or(step.len()));
        place = place.field(name);
        format!("{name}{}", place.shown_items(items))
    });
    steps.collect::<Vec<_>>().join(".")
}

/// `f:name` is a field, `k:{...}` a list item by its key, `v:...` a list item by its value, `.` the field itself.
fn collect(node: &Value, path: String, paths: &mut BTreeSet<String>) {
    let Some(children) = node.as_object() else { return };
    if children.is_empty() {
        paths.insert(path);
        return;
    }
    for (step, below) in children {
        match step.split_once(':') {
            Some(("f", name)) => collect(below, format!("{path}{STEP}{name}"), paths),
            Some(("k", key)) => collect(below, format!("{path}[{}]", readable_key(key)), paths),
            Some(("v", value)) => collect(below, format!("{path}[{value}]"), paths),
            _ => {
                paths.insert(path.clone());
            }
        }
    }
}

fn leaves(value: &Value, path: String, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, below)| leaves(below, format!("{path}{STEP}{key}"), paths));
        }
        Value::Array(_) => {}
        _ => {
            paths.insert(path);
        }
    }
}

/// The paths of lists that are not empty.
fn lists(value: &Value, path: String, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            fields.iter().for_each(|(key, below)| lists(below, format!("{path}{STEP}{key}"), paths));
        }
        Value::Array(items) if !items.is_empty() => {
            paths.insert(path);
        }
        _ => {}
    }
}

/// Shows `{"port":80,"protocol":"TCP"}` as `port=80,protocol="TCP"`.
fn readable_key(key: &str) -> String {
    match serde_json::from_str::<Value>(key) {
        Ok(Value::Object(parts)) => {
            parts.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
        }
        _ => key.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Entry, FieldSet, applied_by_another, takers};
    use serde_json::{Value, json};

    fn service() -> Value {
        json!([
            {"manager": "virt-platform-autopilot", "operation": "Apply", "time": "2026-01-01T00:00:00Z", "fieldsV1": {
                "f:metadata": {"f:labels": {"f:app": {}}},
                "f:spec": {"f:ports": {"k:{\"port\":8080,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}, "f:port": {}}}},
            }},
            {"manager": "kubectl-edit", "operation": "Update", "time": "2026-01-02T00:00:00Z", "fieldsV1": {
                "f:spec": {"f:selector": {}},
            }},
            {"manager": "virt-platform-autopilot", "operation": "Update", "subresource": "status", "fieldsV1": {}},
        ])
    }

    #[test]
    fn our_entry_is_the_applied_one_on_the_object_itself() {
        let entries = Entry::all(&service());
        let ours = Entry::ours(&entries, "virt-platform-autopilot").unwrap();
        let paths: Vec<String> = ours.fields.paths().collect();
        assert_eq!(
            paths,
            [
                ".metadata.labels.app",
                ".spec.ports[port=8080,protocol=\"TCP\"]",
                ".spec.ports[port=8080,protocol=\"TCP\"].name",
                ".spec.ports[port=8080,protocol=\"TCP\"].port",
            ]
        );
        assert!(Entry::ours(&entries, "kubectl-edit").is_none(), "an update is not an apply");
    }

    #[test]
    fn fields_applied_by_another_manager_are_theirs_and_fields_applied_by_both_are_shared() {
        let wanted = json!({"spec": {"type": "A", "selector": {"app": "x"}}});
        let entry = |manager: &str, operation: &str, fields: Value| json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": fields}});
        let by = |ours: Value, manager: &str, operation: &str| {
            let entries = json!([entry("us", "Apply", ours), entry(manager, operation, json!({"f:type": {}}))]);
            applied_by_another(&wanted, &Entry::all(&entries), "us").map(|(manager, _)| manager)
        };
        let (all, left) = (json!({"f:type": {}, "f:selector": {"f:app": {}}}), json!({"f:selector": {"f:app": {}}}));
        assert_eq!(by(all, "gitops", "Apply"), None, "shared");
        assert_eq!(by(left.clone(), "gitops", "Apply"), Some("gitops".into()));
        assert_eq!(by(left, "editor", "Update"), None, "an update is drift");
        // An atomic map or list has one owner.
        let wanted = json!({"spec": {"selector": {"app": "x"}, "rules": [{"a": 1}], "ports": [{"port": 1}]}});
        let ours = json!({"f:ports": {"k:{\"port\":1}": {"f:port": {}}}});
        let by = |theirs: Value| {
            let entries = json!([entry("us", "Apply", ours.clone()), entry("gitops", "Apply", theirs)]);
            let taken = applied_by_another(&wanted, &Entry::all(&entries), "us");
            taken.map(|(_, fields)| fields.paths().collect::<Vec<_>>()).unwrap_or_default()
        };
        assert_eq!(by(json!({"f:selector": {}})), [".spec.selector.app"]);
        assert_eq!(by(json!({"f:rules": {}})), [".spec.rules"]);
        assert_eq!(by(json!({"f:ports": {"k:{\"port\":2}": {"f:port": {}}}})), [""; 0], "a list item of their own");
    }

    #[test]
    fn leaves_of_an_object_that_a_set_does_not_cover_are_missing() {
        let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": {"app": "x", "a.b/c": "y"}},
            "spec": {"type": "A", "selector": {"app": "x"}, "ports": [{"port": 1}], "none": [], "empty": {}}});
        let missing = |fields: Value| FieldSet::read(&fields).missing_of(&object).paths().collect::<Vec<_>>();
        let labels = json!({"f:labels": {"f:app": {}, "f:a.b/c": {}}});
        let ports = json!({"k:{\"port\":1}": {".": {}, "f:port": {}}});
        let all = json!({"f:metadata": labels, "f:spec": {"f:type": {}, "f:selector": {}, "f:ports": ports}});
        assert!(missing(all.clone()).is_empty(), "{:?}", missing(all));
        let fewer =
            json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:typed": {}, "f:selector": {"f:app": {}}}});
        assert_eq!(missing(fewer), [".metadata.labels.a.b/c", ".spec.ports", ".spec.type"]);
        // A key that contains dots is one step.
        let labels = json!({"metadata": {"labels": {"app": "x", "app.kubernetes.io/name": "y"}}});
        let of = |key: &str| FieldSet::read(&json!({"f:metadata": {"f:labels": {key: {}}}})).missing_of(&labels);
        assert_eq!(of("f:app").paths().collect::<Vec<_>>(), [".metadata.labels.app.kubernetes.io/name"]);
        assert_eq!(of("f:app.kubernetes.io/name").paths().collect::<Vec<_>>(), [".metadata.labels.app"]);
    }

    #[test]
    fn a_manager_that_applied_nothing_but_a_name_owns_nothing() {
        let wanted = json!({"metadata": {"name": "x"}, "spec": {"type": "A"}});
        let entries = json!([{"manager": "gitops", "operation": "Apply", "fieldsV1": {}}]);
        assert_eq!(applied_by_another(&wanted, &Entry::all(&entries), "us"), None);
        assert_eq!(FieldSet::read(&json!({})).missing_of(&wanted).paths().collect::<Vec<_>>(), [".spec.type"]);
    }

    #[test]
    fn the_manager_that_took_a_lost_field_is_named() {
        let before = FieldSet::read(&json!({"f:spec": {"f:selector": {}, "f:type": {}}}));
        let now = FieldSet::read(&json!({"f:spec": {"f:type": {}}}));
        let lost = before.without(&now);
        assert_eq!(lost.paths().collect::<Vec<_>>(), [".spec.selector"]);
        assert_eq!(takers(&lost, &Entry::all(&service()), "virt-platform-autopilot"), ["kubectl-edit"]);
        assert!(now.without(&before).is_empty());
    }
}
