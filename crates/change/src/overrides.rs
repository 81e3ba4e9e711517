//! What users write on a managed object to change what is wanted of it.

use crate::object::Key;
use crate::patch::Patch;
use crate::pointer::Pointer;
use crate::reason::Reason;
use api::annotation;
use serde_json::Value;

/// More masks are refused.
const MOST_MASKS: usize = 64;

/// The overrides of one object's content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Overrides {
    /// A patch on top of what we want.
    pub patch: Option<Patch>,
    /// Fields that are the user's.
    pub ignored: Vec<Pointer>,
}

impl Overrides {
    /// Reads the values of `patch` and `ignore-fields`. What is wrong in one of them is a reason to keep the last good state.
    pub fn read(patch: Option<&str>, ignore_fields: Option<&str>, key: &Key) -> Result<Overrides, Reason> {
        let text = |value: Option<&'_ str>| value.map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned);
        let patch = text(patch).map(|value| Patch::parse(&value, &key.kind)).transpose();
        let ignored = text(ignore_fields).map_or(Ok(Vec::new()), |value| parse_masks(&value));
        Ok(Overrides {
            patch: patch.map_err(|why| Reason::PatchRefused { why })?,
            ignored: ignored.map_err(|why| Reason::IgnoreFieldsRefused { why })?,
        })
    }

    /// Whether the user wishes nothing else than we do.
    pub fn is_empty(&self) -> bool {
        self.patch.as_ref().is_none_or(Patch::is_empty) && self.ignored.is_empty()
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
    use super::Overrides;
    use crate::object::{Key, Kind};
    use crate::reason::Reason;
    use serde_json::{Value, json};

    fn read(patch: Option<&str>, ignore_fields: &str) -> Result<Overrides, Reason> {
        let key = Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        Overrides::read(patch, Some(ignore_fields), &key)
    }

    fn wanted() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"},
            "spec": {"type": "ClusterIP", "ports": [{"port": 1}], "selector": {"app": "x"}}})
    }

    #[test]
    fn an_ignored_field_is_not_wanted_any_more_and_wins_over_the_patch() {
        let patch = r#"[{"op": "replace", "path": "/spec/type", "value": "NodePort"}]"#;
        let overrides = read(Some(patch), "/spec/type, /spec/nothing").unwrap();
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
            let outcome = read(None, mask);
            let expected = mask == "/";
            assert_eq!(outcome.is_ok(), expected, "{mask}");
        }
        let overrides = read(None, "/spec/ports/0/port").unwrap();
        let Reason::IgnoreFieldsRefused { why } = overrides.apply(&wanted()).unwrap_err() else { panic!() };
        assert_eq!(why, "/spec/ports/0/port leads into a list; ignore /spec/ports as a whole");
    }
}
