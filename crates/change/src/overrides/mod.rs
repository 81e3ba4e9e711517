//! The annotations with which users override the desired state of a managed object.

pub mod allow;
#[cfg(test)]
mod corpus;
mod difference;
#[cfg(test)]
mod fuzz;
pub(crate) mod guards;
mod ignored_fields;
mod operation;
pub mod patch;
pub mod steering;
mod strict;

use crate::fields::pointer::Pointer;
use crate::object::key::Key;
use crate::overrides::allow::PatchableKinds;
use crate::overrides::guards::OverrideGuards;
use crate::overrides::ignored_fields::IgnoredFields;
use crate::overrides::patch::Patch;
use crate::reason::Reason;
use serde_json::Value;

/// The overrides of one object's content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    patch: Option<Patch>,
    ignored_fields: IgnoredFields,
}

impl Overrides {
    /// Parses the values of `patch` and `ignore-fields`; while one of them is invalid, the last good state is kept.
    pub fn read(
        patch: Option<&str>,
        ignore_fields: Option<&str>,
        key: &Key,
        patchable_kinds: &PatchableKinds,
    ) -> Result<Overrides, Reason> {
        Overrides::read_with(patch, ignore_fields, key, patchable_kinds, OverrideGuards::ALL)
    }

    pub(crate) fn read_with(
        patch: Option<&str>,
        ignore_fields: Option<&str>,
        key: &Key,
        patchable_kinds: &PatchableKinds,
        guards: OverrideGuards,
    ) -> Result<Overrides, Reason> {
        let text = |value: Option<&'_ str>| value.map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned);
        let patch = text(patch).map(|value| Patch::parse_with(&value, key, patchable_kinds, guards)).transpose();
        let ignored_fields =
            text(ignore_fields).map_or(Ok(IgnoredFields::default()), |value| IgnoredFields::parse(&value, guards));
        Ok(Overrides {
            patch: patch.map_err(patch_refused)?,
            ignored_fields: ignored_fields.map_err(ignored_fields_refused)?,
        })
    }

    /// The fields that are left to the user.
    pub fn ignored(&self) -> &[Pointer] {
        self.ignored_fields.pointers()
    }

    /// Whether nothing is overridden.
    pub fn is_empty(&self) -> bool {
        self.patch.as_ref().is_none_or(Patch::is_empty) && self.ignored_fields.pointers().is_empty()
    }

    /// The same without operations of the patch on fields that the object does not have: they are meant for somebody else who wants these. The
    /// number tells how many those are.
    #[must_use]
    pub fn concerning(&self, wanted: &Value) -> (Overrides, usize) {
        let patch = self.patch.as_ref().map(|patch| patch.concerning(wanted));
        let length = |patch: &Option<Patch>| patch.as_ref().map_or(0, Patch::len);
        let others = length(&self.patch) - length(&patch);
        (Overrides { patch, ignored_fields: self.ignored_fields.clone() }, others)
    }

    /// The desired object with the overrides: patched, then without the ignored fields.
    pub fn apply(&self, wanted: &Value) -> Result<Value, Reason> {
        let mut wanted = match &self.patch {
            Some(patch) => patch.apply(wanted).map_err(patch_refused)?,
            None => wanted.clone(),
        };
        self.ignored_fields.remove_from(&mut wanted).map_err(ignored_fields_refused)?;
        Ok(wanted)
    }
}

fn patch_refused(why: String) -> Reason {
    Reason::PatchRefused { why: short(why) }
}

fn ignored_fields_refused(why: String) -> Reason {
    Reason::IgnoreFieldsRefused { why: short(why) }
}

/// Shortens a message: it can quote what its author wrote, and an event is limited in size.
fn short(why: String) -> String {
    const MAX_CHARACTERS: usize = 400;
    if why.chars().count() <= MAX_CHARACTERS {
        why
    } else {
        why.chars().take(MAX_CHARACTERS).chain("...".chars()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Overrides;
    use crate::object::key::{Key, Kind};
    use crate::overrides::allow::PatchableKinds;
    use crate::reason::Reason;
    use serde_json::{Value, json};

    fn read(patch: Option<&str>, ignore_fields: &str) -> Result<Overrides, Reason> {
        let key = Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        Overrides::read(patch, Some(ignore_fields), &key, &PatchableKinds::none())
    }

    fn wanted() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"type": "ClusterIP", "ports": [{"port": 1}], "selector": {"app": "x"}}})
    }

    #[test]
    fn ignore_fields_removes_a_field_and_wins_over_the_patch() {
        let patch = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
        let overrides = read(Some(patch), "/spec/type, /spec/sessionAffinity, /spec/nothing").unwrap();
        assert_eq!(
            overrides.apply(&wanted()).unwrap()["spec"],
            json!({"ports": [{"port": 1}], "selector": {"app": "x"}})
        );
    }

    #[test]
    fn an_override_that_says_nothing_is_none() {
        for (patch, ignore_fields) in [(None, ""), (Some(" "), " "), (Some("[]"), "")] {
            assert!(read(patch, ignore_fields).unwrap().is_empty(), "{patch:?} {ignore_fields:?}");
        }
        let test = r#"[{"op": "test", "path": "/kind", "value": "Service"}]"#;
        for (patch, ignore_fields) in [(Some(test), ""), (Some("[]"), "/spec/type"), (None, "/spec/type")] {
            assert!(!read(patch, ignore_fields).unwrap().is_empty(), "{patch:?} {ignore_fields:?}");
        }
    }

    #[test]
    fn the_operations_around_the_fields_of_an_object_concern_it_and_no_others() {
        let object = json!({"spec": {"a": 1, "list": [1], "map": {"b": 2}, "empty": {}}});
        for (path, is_concerned) in [
            ("/spec", true),
            ("/spec/a", true),
            ("/spec/list/0", true),
            ("/spec/map", true),
            ("/spec/map/b", true),
            ("/spec/empty/x", true),
            ("/spec/map/c", false),
            ("/spec/other", false),
            ("/spec/other/a", false),
        ] {
            for operation in ["remove", "test", "add"] {
                let mut operation = json!({"op": operation, "path": path, "value": 7});
                if operation["op"] == "remove" {
                    operation.as_object_mut().unwrap().remove("value");
                }
                let patch = json!([operation, {"op": "move", "from": "/spec/x", "path": "/spec/y"}]).to_string();
                let (_, others) = read(Some(&patch), "").unwrap().concerning(&object);
                assert_eq!(others, if is_concerned { 1 } else { 2 }, "{operation}");
            }
        }
    }

    #[test]
    fn ignoring_a_list_item_is_refused_and_names_the_field_that_can_be_ignored() {
        let overrides = read(None, "/spec/ports/0/port").unwrap();
        let Reason::IgnoreFieldsRefused { why } = overrides.apply(&wanted()).unwrap_err() else { panic!() };
        assert_eq!(why, "/spec/ports/0/port leads into a list; ignore /spec/ports as a whole");
    }
}
