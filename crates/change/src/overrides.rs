//! What users write on a managed object to steer it.

use crate::object::Key;
use crate::patch::Patch;
use crate::pointer::Pointer;
use crate::reason::Reason;
use api::annotation;
use serde_json::Value;
use std::collections::BTreeMap;

/// More masks are refused.
const MOST_MASKS: usize = 64;

/// Whose an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Ours.
    #[default]
    Managed,
    /// The user's: we never write it.
    Unmanaged,
}

/// The overrides of one object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// Whose it is.
    pub mode: Mode,
    /// Whether nothing is to be done for now.
    pub paused: bool,
    /// A patch on top of what we want.
    pub patch: Option<Patch>,
    /// Fields that are the user's.
    pub ignored: Vec<Pointer>,
}

impl Overrides {
    /// Reads the annotations of a live object. What is wrong in one of them is a reason to hold the object.
    pub fn read(annotations: &BTreeMap<String, String>, key: &Key) -> Result<Overrides, Reason> {
        let text = |name: &str| annotations.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let mode = match text(annotation::MODE) {
            None => Mode::Managed,
            Some(value) if value.eq_ignore_ascii_case("managed") => Mode::Managed,
            Some(value) if value.eq_ignore_ascii_case("unmanaged") => Mode::Unmanaged,
            Some(value) => return Err(Reason::ModeUnknown { value: value.chars().take(64).collect() }),
        };
        let paused = text(annotation::RECONCILE_PAUSED).is_some_and(|value| !value.eq_ignore_ascii_case("false"));
        let patch = text(annotation::PATCH).map(|value| Patch::parse(value, &key.kind)).transpose();
        let ignored = text(annotation::IGNORE_FIELDS).map_or(Ok(Vec::new()), parse_masks);
        Ok(Overrides {
            mode,
            paused,
            patch: patch.map_err(|why| Reason::PatchRefused { why })?,
            ignored: ignored.map_err(|why| Reason::IgnoreFieldsRefused { why })?,
        })
    }

    /// What we want once the user's wishes are honoured: patched, then without the ignored fields.
    pub fn apply(&self, wanted: &Value) -> Result<Value, Reason> {
        let mut wanted = match &self.patch {
            Some(patch) => patch.apply(wanted).map_err(|why| Reason::PatchRefused { why })?,
            None => wanted.clone(),
        };
        for pointer in &self.ignored {
            remove(&mut wanted, pointer).map_err(|why| Reason::IgnoreFieldsRefused { why })?;
        }
        Ok(wanted)
    }
}

fn parse_masks(text: &str) -> Result<Vec<Pointer>, String> {
    let masks: Vec<Pointer> =
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Pointer::parse).collect::<Result<_, _>>()?;
    if masks.len() > MOST_MASKS {
        return Err(format!("it names {} fields, {MOST_MASKS} are allowed", masks.len()));
    }
    let label = ["metadata", "labels", api::MANAGED_BY.0];
    let identity: [&[&str]; 5] =
        [&["apiVersion"], &["kind"], &["metadata", "name"], &["metadata", "namespace"], &label];
    for mask in &masks {
        if identity.iter().any(|place| mask.contains(place) || mask.is_within(place)) {
            return Err(format!("{:?} would take away what the object is", mask.to_string()));
        }
        let own = mask.steps().len() == 3 && mask.is_within(&["metadata", "annotations"]);
        if own && mask.steps()[2].starts_with(annotation::PREFIX) {
            return Err(format!("{mask} is an annotation of ours"));
        }
    }
    Ok(masks)
}

/// Takes a field out, and the maps it leaves empty: an empty map would claim the whole field. One that is not there is fine.
/// A list is one thing: nothing in it can be ignored alone.
fn remove(object: &mut Value, pointer: &Pointer) -> Result<(), String> {
    take_out(object, pointer.steps(), "")
        .map_err(|whole| format!("{pointer} leads into a list; ignore {whole} as a whole"))
}

fn take_out(place: &mut Value, steps: &[String], way: &str) -> Result<(), String> {
    let Some((step, rest)) = steps.split_first() else { return Ok(()) };
    let fields = match place {
        Value::Object(fields) => fields,
        Value::Array(_) => return Err(way.to_owned()),
        _ => return Ok(()),
    };
    if rest.is_empty() {
        fields.remove(step);
    } else if let Some(below) = fields.get_mut(step) {
        let had = below.as_object().is_some_and(|fields| !fields.is_empty());
        take_out(below, rest, &format!("{way}/{}", step.replace('~', "~0").replace('/', "~1")))?;
        if had && below.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.remove(step);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Mode, Overrides};
    use crate::object::{Key, Kind};
    use crate::reason::Reason;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn read(annotations: &[(&str, &str)]) -> Result<Overrides, Reason> {
        let annotations: BTreeMap<String, String> = annotations
            .iter()
            .map(|(key, value)| (format!("platform.kubevirt.io/{key}"), (*value).to_owned()))
            .collect();
        let key = Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        Overrides::read(&annotations, &key)
    }

    fn wanted() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"type": "ClusterIP", "ports": [{"port": 1}], "selector": {"app": "x"}}})
    }

    #[test]
    fn mode_is_read_in_any_case_and_refused_when_unknown() {
        assert_eq!(read(&[]).unwrap().mode, Mode::Managed);
        assert_eq!(read(&[("mode", " Unmanaged ")]).unwrap().mode, Mode::Unmanaged);
        assert_eq!(read(&[("mode", "off")]).unwrap_err(), Reason::ModeUnknown { value: "off".into() });
    }

    #[test]
    fn an_ignored_field_is_not_wanted_any_more_and_wins_over_the_patch() {
        let patch = r#"[{"op": "replace", "path": "/spec/type", "value": "NodePort"}]"#;
        let overrides = read(&[("patch", patch), ("ignore-fields", "/spec/type, /spec/nothing")]).unwrap();
        assert_eq!(
            overrides.apply(&wanted()).unwrap()["spec"],
            json!({"ports": [{"port": 1}], "selector": {"app": "x"}})
        );
    }

    #[test]
    fn a_mask_of_identity_or_into_a_list_is_refused() {
        for mask in [
            "/",
            "/metadata",
            "/kind",
            "/metadata/name",
            "/metadata/labels",
            "/metadata/annotations/platform.kubevirt.io~1x",
            "spec",
        ] {
            let outcome = read(&[("ignore-fields", mask)]);
            let expected = mask == "/";
            assert_eq!(outcome.is_ok(), expected, "{mask}");
        }
        let overrides = read(&[("ignore-fields", "/spec/ports/0/port")]).unwrap();
        let Reason::IgnoreFieldsRefused { why } = overrides.apply(&wanted()).unwrap_err() else { panic!() };
        assert_eq!(why, "/spec/ports/0/port leads into a list; ignore /spec/ports as a whole");
    }
}
