//! What users say in annotations of an object about how far it is managed: a plan honours it as the autopilot does.

use crate::before::{Mark, restoring};
use crate::identity::FIELD_MANAGER;
use api::annotation;
use change::atomic::{self, Atomic};
use change::pointer::Pointer;
use change::{Entry, Key, Mode, Overrides, PatchableKinds, Pause, Reason, Steering, entry};
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
    let Some(wanted) = wanted else {
        // A field that the user wants to keep may be among those that would go.
        let refused = kept_by_users(key, live).err().and_then(|reason| held(&reason, None));
        return Honoured::Written { wanted: None, note: None, hold: refused.or(hold) };
    };
    let read = Overrides::read(text(annotation::PATCH), text(annotation::IGNORE_FIELDS), key, patchable);
    let found = read.and_then(|overrides| match overridden(&overrides, wanted, live) {
        // The autopilot has other fields of the HyperConverged, and the rest of the patch is for these.
        Err(Reason::PatchRefused { .. }) if key.kind.kind == api::hco::KIND => {
            let (overrides, others) = overrides.concerning(wanted);
            Ok((overridden(&overrides, wanted, live)?, others))
        }
        found => Ok((found?, 0)),
    });
    match found {
        Ok((object, others)) => {
            let changed = (object != *wanted).then(|| {
                let names = [annotation::PATCH, annotation::IGNORE_FIELDS].into_iter();
                let names: Vec<&str> = names.filter(|name| text(name).is_some()).collect();
                format!("its annotation {} changes what is wanted of it", names.join(" and "))
            });
            let other = (others > 0).then(|| {
                let name = annotation::PATCH;
                format!("operations of its annotation {name} that are not for the fields of this profile: {others}")
            });
            let notes: Vec<String> = changed.into_iter().chain(other).collect();
            let note = Some(notes.join("; ")).filter(|note| !note.is_empty());
            Honoured::Written { wanted: Some(object), note, hold }
        }
        // What the user wants is not known, so nothing is written.
        Err(reason) => Honoured::Written { wanted: Some(wanted.clone()), note: None, hold: held(&reason, None) },
    }
}

/// What restores an object, without the fields that users ignore: those keep their values. If it cannot be read which these are, the removal
/// is held, and this is what it would be without them.
pub fn restored(key: &Key, live: &Value, restoring: Value) -> Value {
    let ignored = ignored_fields(key, live);
    ignored.and_then(|ignored| overridden(&ignored, &restoring, live)).unwrap_or(restoring)
}

/// Whether it is clear which fields of an object that is to go users want to keep.
fn kept_by_users(key: &Key, live: &Value) -> Result<(), Reason> {
    let ignored = ignored_fields(key, live)?;
    match Mark::of(live) {
        Mark::Changed(_, values) => match restoring(live, &values) {
            Ok(restoring) => overridden(&ignored, &restoring, live).map(drop),
            Err(_) => Ok(()),
        },
        Mark::None | Mark::Created(_) | Mark::Restored => Ok(()),
    }
}

fn ignored_fields(key: &Key, live: &Value) -> Result<Overrides, Reason> {
    let ignored = live["metadata"]["annotations"][annotation::IGNORE_FIELDS].as_str();
    Overrides::read(None, ignored, key, &PatchableKinds::none())
}

/// What is wanted, with a patch and without ignored fields.
fn overridden(overrides: &Overrides, wanted: &Value, live: &Value) -> Result<Value, Reason> {
    if overrides.is_empty() {
        return Ok(wanted.clone());
    }
    let mut object = overrides.apply(wanted)?;
    let entries = Entry::all(&live["metadata"]["managedFields"]);
    let owned = entry::owned(&entries, FIELD_MANAGER);
    for field in overrides.ignored() {
        if let Some(Atomic::Whole(whole) | Atomic::Unknown(whole)) =
            atomic::around(field, &object, &entries, FIELD_MANAGER)
        {
            let why = format!("{field} leads into a field that has, or may have, one owner; ignore {whole} as a whole");
            return Err(Reason::IgnoreFieldsRefused { why });
        }
        // The server removes what we own and do not apply any more, so its value is kept until somebody else writes it. What others have
        // of the field stays theirs.
        let ours = owned.at(field.steps().iter().map(String::as_str));
        let value = live.pointer(&field.to_string()).zip(ours).and_then(|(value, ours)| ours.part_of(value));
        if let Some(value) = value {
            put(&mut object, field, value);
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

    /// What a patch of the HyperConverged comes to.
    fn with_patch(patch: &str) -> Honoured {
        let kind = Kind::new("hco.kubevirt.io/v1", "HyperConverged");
        let key = Key { kind, namespace: "n".into(), name: "h".into() };
        let wanted = json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged", "metadata": {"name": "h", "namespace": "n"}, "spec": {"a": 1}});
        let mut live = wanted.clone();
        live["metadata"]["annotations"] = json!({"platform.kubevirt.io/patch": patch});
        honoured(&key, Some(&wanted), &live, &PatchableKinds::none())
    }

    #[test]
    fn of_a_patch_of_the_hyperconverged_the_operations_on_wanted_fields_are_honoured_and_no_others() {
        let ours = json!({"op": "replace", "path": "/spec/a", "value": 5});
        let theirs =
            json!({"op": "replace", "path": "/spec/liveMigrationConfig/parallelMigrationsPerCluster", "value": 5});
        for (patch, a, others) in [
            (json!([ours]), 5, None),
            (json!([theirs]), 1, Some(1)),
            (json!([theirs, ours]), 5, Some(1)),
            (json!([ours, theirs, theirs]), 5, Some(2)),
        ] {
            let Honoured::Written { wanted: Some(wanted), note: Some(note), hold: None } =
                with_patch(&patch.to_string())
            else {
                panic!("{patch}")
            };
            assert_eq!(wanted["spec"], json!({"a": a}), "{patch}");
            let other = others.map(|others| format!("are not for the fields of this profile: {others}"));
            assert_eq!(note.contains("not for the fields"), others.is_some(), "{note}");
            assert!(other.is_none_or(|other| note.contains(&other)), "{note}");
        }
    }

    #[test]
    fn a_patch_of_the_hyperconverged_that_cannot_be_read_or_does_not_fit_holds_it() {
        let missing = json!([{"op": "test", "path": "/spec/a", "value": 2}]).to_string();
        for patch in ["what?", r#"[{"op": "replace", "path": "/spec/a"}]"#, &missing] {
            assert!(hold(with_patch(patch)).why.contains("patch"), "{patch}");
        }
    }

    #[test]
    fn of_an_ignored_field_only_what_is_ours_keeps_its_value() {
        // Beside /data/a, which is ours, it has /data/b, which is not.
        assert_eq!(data(with(&json!({"ignore-fields": "/data"}))), json!({"a": "7"}), "b stays somebody else's");
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
