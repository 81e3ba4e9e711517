//! `ignore-fields`: pointers to fields that are the user's.

use crate::fields::pointer::{Pointer, escape};
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use api::annotation;
use serde_json::{Map, Value};

/// More are refused.
const MOST: usize = 64;

/// The fields a user wants ignored.
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
    /// Reads a comma-separated list; an error is a sentence for its author.
    pub(crate) fn parse(text: &str, guards: OverrideGuards) -> Result<IgnoredFields, String> {
        let count = text.split(',').count();
        if count > MOST && guards.enabled(OverrideGuard::IgnoredCount) {
            return Err(format!("it names {count} fields, {MOST} are allowed"));
        }
        let mut pointers = Vec::new();
        for part in text.split(',').map(str::trim) {
            let pointer = Pointer::parse_with(part, guards)?;
            judge(&pointer, guards)?;
            pointers.push(pointer);
        }
        Ok(IgnoredFields { pointers, guards })
    }

    /// Which.
    pub(crate) fn pointers(&self) -> &[Pointer] {
        &self.pointers
    }

    /// Takes the fields out, and the maps they leave empty: an empty map would claim the whole field. One that is not there is fine.
    pub(crate) fn remove_from(&self, object: &mut Value) -> Result<(), String> {
        for pointer in &self.pointers {
            remove_field(object, pointer.steps(), "", self.guards)
                .map_err(|whole| format!("{pointer} leads into a list; ignore {whole} as a whole"))?;
        }
        Ok(())
    }
}

/// Whether a field may be left to the user. Everything may, the whole content included, but for what says which object it is and that
/// it is ours: whoever changes an ignored field does so with rights of their own.
fn judge(ignored: &Pointer, guards: OverrideGuards) -> Result<(), String> {
    let steps: Vec<&str> = ignored.steps().iter().map(String::as_str).collect();
    if guards.enabled(OverrideGuard::IgnoredNames) && !steps.is_empty() && steps.contains(&"") {
        return Err(format!("{:?} has a step without a name; write it as /spec/...", ignored.to_string()));
    }
    if guards.enabled(OverrideGuard::IgnoredOwnKeys)
        && let ["metadata", "labels" | "annotations", key, ..] = steps.as_slice()
        && key.starts_with(annotation::PREFIX)
    {
        return Err(format!("{ignored} is ours: it says what the autopilot knows of the object"));
    }
    if steps.is_empty() && guards.enabled(OverrideGuard::IgnoredIdentity) {
        return Err("an empty entry means the whole object; name a field, or take a spare comma away".into());
    }
    let identity = match steps.as_slice() {
        ["metadata", "labels" | "annotations", _, ..] => false,
        ["metadata" | "apiVersion" | "kind", ..] => true,
        _ => false,
    };
    if identity && guards.enabled(OverrideGuard::IgnoredIdentity) {
        return Err(format!(
            "{:?} would take away what the object is; ignore single fields below /spec",
            ignored.to_string()
        ));
    }
    Ok(())
}

/// A list is one thing: nothing in it can be ignored alone. The error is the nearest field that can be.
fn remove_field(place: &mut Value, steps: &[String], way: &str, guards: OverrideGuards) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else { return Ok(()) };
    let fields = match place {
        Value::Object(fields) => fields,
        Value::Array(_) if guards.enabled(OverrideGuard::IgnoredListItems) => return Err(way.to_owned()),
        _ => return Ok(()),
    };
    if rest.is_empty() {
        fields.remove(step);
    } else if let Some(below) = fields.get_mut(step) {
        let had = below.as_object().is_some_and(|fields| !fields.is_empty());
        remove_field(below, rest, &format!("{way}/{}", escape(step)), guards)?;
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
    fn what_the_object_is_and_what_is_ours_cannot_be_ignored() {
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
            &expect![[r#""/metadata/labels" would take away what the object is; ignore single fields below /spec"#]],
        );
        refused(
            "/spec/a,,/spec/b",
            &expect!["an empty entry means the whole object; name a field, or take a spare comma away"],
        );
        refused(
            "/metadata/annotations/platform.kubevirt.io~1applied",
            &expect![
                "/metadata/annotations/platform.kubevirt.io~1applied is ours: it says what the autopilot knows of the object"
            ],
        );
    }

    #[test]
    fn a_mask_names_a_field() {
        refused("/", &expect![[r#""/" has a step without a name; write it as /spec/..."#]]);
        refused("/spec/", &expect![[r#""/spec/" has a step without a name; write it as /spec/..."#]]);
        refused("spec/type", &expect![[r#""spec/type" does not begin with a slash; write it as /spec/..."#]]);
        refused(&vec!["/spec/a"; 65].join(","), &expect!["it names 65 fields, 64 are allowed"]);
    }

    #[test]
    fn the_whole_content_may_be_left_to_the_user() {
        let mut object =
            serde_json::json!({"kind": "A", "metadata": {"name": "a"}, "spec": {"b": 1}, "data": {"c": {}}});
        IgnoredFields::parse("/spec, /data/c", OverrideGuards::ALL).unwrap().remove_from(&mut object).unwrap();
        assert_eq!(object, serde_json::json!({"kind": "A", "metadata": {"name": "a"}}));
    }
}
