//! The fields of a spec, which are taken one by one, so that none is lost without a note.

use serde_json::{Map, Value};

/// The fields that were not taken yet, and what was said about others.
#[derive(Debug)]
pub(super) struct Fields {
    left: Map<String, Value>,
    pub(super) notes: Vec<String>,
    pub(super) errors: Vec<String>,
}

impl Fields {
    pub(super) fn new(spec: &Map<String, Value>) -> Fields {
        Fields { left: spec.clone(), notes: Vec::new(), errors: Vec::new() }
    }

    /// Takes a field by its path below spec, such as `tls.insecureSkipVerify`; nothing if it is absent or null.
    pub(super) fn take(&mut self, path: &str) -> Option<Value> {
        let mut parts: Vec<&str> = path.split('.').collect();
        let last = parts.pop()?;
        let mut map = &mut self.left;
        for part in parts {
            map = map.get_mut(part)?.as_object_mut()?;
        }
        map.remove(last).filter(|value| !value.is_null())
    }

    /// The same, of a text; anything else is an error.
    pub(super) fn text(&mut self, path: &str) -> Option<String> {
        match self.take(path)? {
            Value::String(text) => Some(text),
            other => {
                self.error(&format!("spec.{path}"), &format!("{other} is not a text; put it in quotes"));
                None
            }
        }
    }

    /// A text that has to be there.
    pub(super) fn required(&mut self, path: &str) -> String {
        let errors = self.errors.len();
        let found = self.text(path).filter(|text| !text.is_empty());
        if found.is_none() && self.errors.len() == errors {
            self.error(&format!("spec.{path}"), "it is missing");
        }
        found.unwrap_or_default()
    }

    /// Says that a field is not carried over.
    pub(super) fn note(&mut self, path: &str, why: &str) {
        self.notes.push(format!("{path} is not carried over: {why}"));
    }

    /// Says that a field means something else.
    pub(super) fn remark(&mut self, path: &str, what: &str) {
        self.notes.push(format!("{path}: {what}"));
    }

    /// Says that a field is wrong.
    pub(super) fn error(&mut self, path: &str, why: &str) {
        self.errors.push(format!("{path}: {why}"));
    }

    /// Takes a field, with all that is below it, that has no counterpart.
    pub(super) fn drop_all(&mut self, path: &str, why: &str) {
        if let Some(value) = self.take(path) {
            for leaf in leaves(&format!("spec.{path}"), &value) {
                self.note(&leaf, why);
            }
        }
    }

    /// What nobody has taken.
    pub(super) fn rest(&mut self) {
        for (field, value) in std::mem::take(&mut self.left) {
            for leaf in leaves(&format!("spec.{field}"), &value) {
                self.note(&leaf, "there is no such field");
            }
        }
    }
}

/// The paths of all values; an empty object is none.
fn leaves(path: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(map) => map.iter().flat_map(|(field, value)| leaves(&format!("{path}.{field}"), value)).collect(),
        Value::Null => Vec::new(),
        _ => vec![path.to_owned()],
    }
}
