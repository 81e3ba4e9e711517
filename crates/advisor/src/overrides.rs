//! What users say in annotations of an object about how far it is managed: a plan honours it as the autopilot does.

use crate::identity::FIELD_MANAGER;
use api::annotation;
use change::atomic::{self, Atomic};
use change::pointer::Pointer;
use change::{Entry, Key, Mode, Overrides, PatchableKinds, Pause, Reason, Steering};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Why an object is not written now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Why.
    pub why: String,
    /// Until when, if that is known.
    pub until: Option<Timestamp>,
}

/// What the annotations of an object come to.
#[derive(Debug, Clone, PartialEq)]
pub enum Honoured {
    /// It is left alone, and why.
    Skipped(String),
    /// It is written, as far as it is wanted.
    Written {
        /// What is applied, with the overrides; nothing if it was not wanted.
        wanted: Option<Value>,
        /// The overrides that were honoured, for people.
        note: Option<String>,
        /// Why not now.
        hold: Option<Hold>,
    },
}

/// Whether somebody wrote an annotation that says how far an object is managed, by the fields that are owned of it.
pub fn are_owned(entries: &[Entry]) -> bool {
    let owns = |entry: &Entry, key: &str| entry.fields.at(["metadata", "annotations", key].into_iter()).is_some();
    annotation::USERS.iter().any(|key| entries.iter().any(|entry| owns(entry, key)))
}

/// Whether an object has such an annotation.
pub fn are_on(live: &Value) -> bool {
    annotation::USERS.iter().any(|key| live["metadata"]["annotations"].get(key).is_some())
}

/// What the annotations of an object, as it is, come to for what is wanted of it; nothing is wanted of an object that is to go.
pub fn honoured(key: &Key, wanted: Option<&Value>, live: &Value, patchable: &PatchableKinds) -> Honoured {
    let annotations = live["metadata"]["annotations"].as_object();
    let text = |key: &str| annotations.and_then(|all| all.get(key)).and_then(Value::as_str);
    let held = |reason: &Reason, until: Option<Timestamp>| Some(Hold { why: reason.to_string(), until });
    let steering: BTreeMap<String, String> = [annotation::MODE, annotation::RECONCILE_PAUSED]
        .into_iter()
        .filter_map(|key| Some((key.to_owned(), text(key)?.to_owned())))
        .collect();
    let hold = match Steering::read(&steering) {
        Err(reason) => held(&reason, None),
        Ok(Steering { mode: Mode::Unmanaged, .. }) => return Honoured::Skipped(Reason::Unmanaged.to_string()),
        Ok(Steering { pause: Pause::No, .. }) => None,
        Ok(Steering { pause: Pause::UntilRemoved, .. }) => held(&Reason::Paused, None),
        Ok(Steering { pause: Pause::Until(end), .. }) => held(&Reason::Paused, Some(end)),
        Ok(Steering { pause: Pause::Unclear(value), .. }) => held(&Reason::PauseUnclear { value }, None),
    };
    let Some(wanted) = wanted else { return Honoured::Written { wanted: None, note: None, hold } };
    let overrides = [text(annotation::PATCH), text(annotation::IGNORE_FIELDS)];
    match overridden(key, wanted, live, overrides, patchable) {
        // The autopilot has other fields of the HyperConverged, and the patch is for these.
        Err(Reason::PatchRefused { .. })
            if key.kind.kind == api::hco::KIND
                && let Ok(object) = overridden(key, wanted, live, [None, overrides[1]], patchable) =>
        {
            let note = format!("its annotation {} is not for the fields of this profile", annotation::PATCH);
            Honoured::Written { wanted: Some(object), note: Some(note), hold }
        }
        Ok(object) => {
            let note = (object != *wanted).then(|| {
                let names = [annotation::PATCH, annotation::IGNORE_FIELDS].into_iter();
                let names: Vec<&str> = names.filter(|name| text(name).is_some()).collect();
                format!("its annotation {} changes what is wanted of it", names.join(" and "))
            });
            Honoured::Written { wanted: Some(object), note, hold }
        }
        // What the user wants is not known, so nothing is written.
        Err(reason) => Honoured::Written { wanted: Some(wanted.clone()), note: None, hold: held(&reason, None) },
    }
}

/// What restores an object, without the fields that users ignore: those keep their values.
pub fn restored(live: &Value, restoring: Value) -> Value {
    let ignored = live["metadata"]["annotations"][annotation::IGNORE_FIELDS].as_str();
    let Some(key) = Key::of(live).filter(|_| ignored.is_some()) else { return restoring };
    overridden(&key, &restoring, live, [None, ignored], &PatchableKinds::none()).unwrap_or(restoring)
}

/// What is wanted, with a patch and without ignored fields.
fn overridden(
    key: &Key,
    wanted: &Value,
    live: &Value,
    [patch, ignore_fields]: [Option<&str>; 2],
    patchable: &PatchableKinds,
) -> Result<Value, Reason> {
    let overrides = Overrides::read(patch, ignore_fields, key, patchable)?;
    if overrides.is_empty() {
        return Ok(wanted.clone());
    }
    let mut object = overrides.apply(wanted)?;
    let entries = Entry::all(&live["metadata"]["managedFields"]);
    for field in overrides.ignored() {
        if let Some(Atomic::Whole(whole) | Atomic::Unknown(whole)) =
            atomic::around(field, &object, &entries, FIELD_MANAGER)
        {
            let why = format!("{field} leads into a field that has, or may have, one owner; ignore {whole} as a whole");
            return Err(Reason::IgnoreFieldsRefused { why });
        }
        let steps = || field.steps().iter().map(String::as_str);
        let is_ours = Entry::ours(&entries, FIELD_MANAGER).is_some_and(|ours| ours.fields.at(steps()).is_some());
        // The server removes what we own and do not apply any more, so its value is kept until somebody else writes it.
        if let Some(value) = live.pointer(&field.to_string()).filter(|_| is_ours) {
            put(&mut object, field, value.clone());
        }
    }
    Ok(object)
}

/// Puts a value where a pointer leads to.
fn put(object: &mut Value, field: &Pointer, value: Value) {
    let mut place = object;
    for step in field.steps() {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        place = &mut place[step.as_str()];
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use super::{Hold, Honoured, are_owned, honoured};
    use change::{Entry, Key, Kind, PatchableKinds};
    use serde_json::{Value, json};

    fn with(annotations: &Value) -> Honoured {
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
        let wanted = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "n"}, "data": {"a": "1", "b": "2"}});
        let ours =
            json!([{"manager": "virt-advisor-operator", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}}]);
        let mut live = wanted.clone();
        live["metadata"]["managedFields"] = ours;
        live["data"] = json!({"a": "7", "b": "8"});
        for (key, value) in annotations.as_object().unwrap() {
            live["metadata"]["annotations"][format!("platform.kubevirt.io/{key}")] = value.clone();
        }
        honoured(&key, Some(&wanted), &live, &PatchableKinds::none())
    }

    fn data(found: Honoured) -> Value {
        match found {
            Honoured::Written { wanted: Some(wanted), hold: None, .. } => wanted["data"].clone(),
            other => panic!("{other:?}"),
        }
    }

    fn hold(found: Honoured) -> Hold {
        match found {
            Honoured::Written { hold: Some(hold), .. } => hold,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_patch_changes_what_is_wanted_and_an_ignored_field_keeps_its_value() {
        assert_eq!(data(with(&json!({}))), json!({"a": "1", "b": "2"}));
        let patch = r#"[{"op": "replace", "path": "/data/a", "value": "5"}]"#;
        assert_eq!(data(with(&json!({"patch": patch}))), json!({"a": "5", "b": "2"}));
        assert_eq!(data(with(&json!({"ignore-fields": "/data/a"}))), json!({"a": "7", "b": "2"}), "it is ours");
        assert_eq!(data(with(&json!({"ignore-fields": "/data/b"}))), json!({"a": "1"}), "it is somebody else's");
    }

    #[test]
    fn an_unmanaged_object_is_skipped_and_what_is_paused_or_unclear_is_held() {
        assert!(matches!(with(&json!({"mode": "Unmanaged"})), Honoured::Skipped(why) if why.contains("left alone")));
        assert!(hold(with(&json!({"mode": "mine"}))).why.contains("write managed or unmanaged"));
        assert_eq!(hold(with(&json!({"reconcile-paused": "true"}))).until, None);
        assert!(hold(with(&json!({"reconcile-paused": "2027-01-31T18:00:00Z"}))).until.is_some());
        assert!(hold(with(&json!({"reconcile-paused": "soon"}))).why.contains("counts as paused"));
        assert!(hold(with(&json!({"patch": "no"}))).why.contains("patch"));
        assert!(hold(with(&json!({"ignore-fields": "data"}))).why.contains("ignore-fields"));
    }

    #[test]
    fn a_patch_of_the_hyperconverged_for_fields_of_the_autopilot_holds_nothing() {
        let kind = Kind::new("hco.kubevirt.io/v1", "HyperConverged");
        let key = Key { kind, namespace: "n".into(), name: "h".into() };
        let wanted = json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "metadata": {"name": "h", "namespace": "n"}, "spec": {"a": 1}});
        let with_patch = |path: &str| {
            let mut live = wanted.clone();
            let patch = json!([{"op": "replace", "path": path, "value": 5}]).to_string();
            live["metadata"]["annotations"] = json!({"platform.kubevirt.io/patch": patch});
            match honoured(&key, Some(&wanted), &live, &PatchableKinds::none()) {
                Honoured::Written { wanted: Some(wanted), note: Some(note), hold: None } => {
                    (wanted["spec"].clone(), note)
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(with_patch("/spec/a").0, json!({"a": 5}));
        let (spec, note) = with_patch("/spec/liveMigrationConfig/parallelMigrationsPerCluster");
        assert_eq!(spec, json!({"a": 1}));
        assert!(note.contains("not for the fields of this profile"), "{note}");
    }

    #[test]
    fn whoever_writes_such_an_annotation_owns_it() {
        let entries = |key: &str| {
            let fields = json!({"f:metadata": {"f:annotations": {format!("f:{key}"): {}}}});
            Entry::all(&json!([{"manager": "kubectl", "operation": "Update", "fieldsV1": fields}]))
        };
        assert!(are_owned(&entries("platform.kubevirt.io/mode")) && !are_owned(&entries("other")));
    }
}
