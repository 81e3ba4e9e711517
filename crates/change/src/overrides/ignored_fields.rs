//! The annotation `ignore-fields`: pointers to fields that are left to the user.

use crate::fields::pointer::{Pointer, escape};
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use api::annotation;
use serde_json::{Map, Value};

/// The most entries of the annotation.
const MAX_FIELDS: usize = 64;

/// The fields that a user wants ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IgnoredFields {
    pointers: Vec<Pointer>,
    guards: OverrideGuards,
}

impl Default for IgnoredFields {
    fn default() -> IgnoredFields {
        IgnoredFields { pointers: Vec::new(), guards: OverrideGuards::ALL }
    }
}

impl IgnoredFields {
    /// Parses a comma-separated list; the error is a message for its author.
    pub(crate) fn parse(text: &str, guards: OverrideGuards) -> Result<IgnoredFields, String> {
        let count = text.split(',').count();
        if count > MAX_FIELDS && guards.enabled(OverrideGuard::IgnoredCount) {
            return Err(format!("it names {count} fields, at most {MAX_FIELDS} are allowed"));
        }
        let mut pointers = Vec::new();
        for part in text.split(',').map(str::trim) {
            let pointer = Pointer::parse_with(part, guards)?;
            judge(&pointer, guards)?;
            pointers.push(pointer);
        }
        Ok(IgnoredFields { pointers, guards })
    }

    /// Pointers to the fields.
    pub(crate) fn pointers(&self) -> &[Pointer] {
        &self.pointers
    }

    /// Removes the fields, and the maps that become empty: an empty map would claim the whole field. A missing field is not an error.
    pub(crate) fn remove_from(&self, object: &mut Value) -> Result<(), String> {
        for pointer in &self.pointers {
            remove_field(object, pointer.steps(), "", self.guards)
                .map_err(|whole| format!("{pointer} leads into a list; ignore {whole} as a whole"))?;
        }
        Ok(())
    }
}

/// Whether a field may be ignored. All content may, because its writers need rights of their own; the object's identity and our own labels
/// and annotations may not.
fn judge(ignored: &Pointer, guards: OverrideGuards) -> Result<(), String> {
    let steps: Vec<&str> = ignored.steps().iter().map(String::as_str).collect();
    if guards.enabled(OverrideGuard::IgnoredNames) && !steps.is_empty() && steps.contains(&"") {
        return Err(format!("{:?} has an empty step; write it as /spec/...", ignored.to_string()));
    }
    if guards.enabled(OverrideGuard::IgnoredOwnKeys)
        && let ["metadata", "labels" | "annotations", key, ..] = steps.as_slice()
        && key.starts_with(annotation::PREFIX)
    {
        return Err(format!("{ignored} cannot be ignored: the autopilot keeps its own data there"));
    }
    if steps.is_empty() && guards.enabled(OverrideGuard::IgnoredIdentity) {
        return Err("an empty entry means the whole object; name a field, or remove the extra comma".into());
    }
    let identity = match steps.as_slice() {
        ["metadata", "labels" | "annotations", _, ..] => false,
        ["metadata" | "apiVersion" | "kind", ..] => true,
        _ => false,
    };
    if identity && guards.enabled(OverrideGuard::IgnoredIdentity) {
        return Err(format!(
            "{:?} cannot be ignored: it holds the identity or the labels of the object; ignore single fields below /spec",
            ignored.to_string()
        ));
    }
    Ok(())
}

/// A list can only be ignored as a whole; the error is the pointer to the list.
fn remove_field(value: &mut Value, steps: &[String], path: &str, guards: OverrideGuards) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else { return Ok(()) };
    let fields = match value {
        Value::Object(fields) => fields,
        Value::Array(_) if guards.enabled(OverrideGuard::IgnoredListItems) => return Err(path.to_owned()),
        _ => return Ok(()),
    };
    if rest.is_empty() {
        fields.remove(step);
    } else if let Some(below) = fields.get_mut(step) {
        let had = below.as_object().is_some_and(|fields| !fields.is_empty());
        remove_field(below, rest, &format!("{path}/{}", escape(step)), guards)?;
        if had && below.as_object().is_some_and(Map::is_empty) {
            fields.remove(step);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::IgnoredFields;
    use crate::overrides::guards::OverrideGuards;
    use expect_test::{Expect, expect};

    fn refused(ignored_fields: &str, expected: &Expect) {
        expected.assert_eq(&IgnoredFields::parse(ignored_fields, OverrideGuards::ALL).unwrap_err());
    }

    #[test]
    fn identity_and_our_own_keys_cannot_be_ignored() {
        for ignored_fields in [
            "/kind",
            "/metadata",
            "/metadata/name",
            "/metadata/labels",
            "/metadata/annotations",
            "/metadata/ownerReferences",
        ] {
            assert!(IgnoredFields::parse(ignored_fields, OverrideGuards::ALL).is_err(), "{ignored_fields}");
        }
        refused(
            "/metadata/labels",
            &expect![[
                r#""/metadata/labels" cannot be ignored: it holds the identity or the labels of the object; ignore single fields below /spec"#
            ]],
        );
        refused(
            "/spec/a,,/spec/b",
            &expect!["an empty entry means the whole object; name a field, or remove the extra comma"],
        );
        refused(
            "/metadata/annotations/platform.kubevirt.io~1applied",
            &expect![
                "/metadata/annotations/platform.kubevirt.io~1applied cannot be ignored: the autopilot keeps its own data there"
            ],
        );
    }

    #[test]
    fn every_entry_names_a_field() {
        refused("/", &expect![[r#""/" has an empty step; write it as /spec/..."#]]);
        refused("/spec/", &expect![[r#""/spec/" has an empty step; write it as /spec/..."#]]);
        refused("spec/type", &expect![[r#""spec/type" does not begin with a slash; write it as /spec/..."#]]);
        refused(&vec!["/spec/a"; 65].join(","), &expect!["it names 65 fields, at most 64 are allowed"]);
        assert!(IgnoredFields::parse(&vec!["/spec/a"; 64].join(","), OverrideGuards::ALL).is_ok());
    }

    #[test]
    fn the_whole_content_may_be_ignored() {
        let mut object =
            serde_json::json!({"kind": "A", "metadata": {"name": "a"}, "spec": {"b": 1}, "data": {"c": {}}});
        IgnoredFields::parse("/spec, /data/c", OverrideGuards::ALL).unwrap().remove_from(&mut object).unwrap();
        assert_eq!(object, serde_json::json!({"kind": "A", "metadata": {"name": "a"}}));
    }
}
