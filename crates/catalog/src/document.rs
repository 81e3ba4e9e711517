//! Documents inside of objects that several people edit, such as `config.yaml` in a ConfigMap. An asset that reads its own object wants some
//! keys of such a document; the rest belongs to others and stays as it is, byte for byte.

mod edit;

use crate::yaml::read;
use change::pointer::Pointer;
use serde_json::{Map, Value, json};

/// What is wanted of one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// Where its text is in the object.
    pub field: Pointer,
    edits: Vec<Edit>,
}

/// One key of a document: its path, and its value, or nothing if it must not be there.
#[derive(Debug, Clone, PartialEq)]
struct Edit {
    path: Vec<String>,
    value: Option<Value>,
}

impl Document {
    /// Takes the documents out of a rendered object, which was rendered from `live`: what they say beyond the live ones is wanted.
    pub fn take(rendered: &mut Value, live: &Value) -> Vec<Document> {
        let mut documents = Vec::new();
        if let (Some(Value::Object(fields)), Some(Value::Object(live))) = (rendered.get_mut("data"), live.get("data")) {
            fields.retain(|key, value| {
                let document = value.as_str().zip(live.get(key).and_then(Value::as_str)).and_then(|(wanted, live)| {
                    let wanted = map(wanted).ok()?;
                    let mut edits = Vec::new();
                    // Where the live document cannot be read, all of it is wanted, and the edit says why it cannot be done.
                    compare(&map(live).unwrap_or_default(), &wanted, &mut Vec::new(), &mut edits);
                    Some(Document { field: Pointer::of(["data", key]), edits })
                });
                let is_plain = document.is_none();
                documents.extend(document);
                is_plain
            });
            if fields.is_empty()
                && let Some(object) = rendered.as_object_mut()
            {
                object.remove("data");
            }
        }
        documents
    }

    /// The text with what is wanted, `None` if it has that already; the error says why it cannot be edited.
    pub fn edited(&self, object: &Value) -> Result<Option<String>, String> {
        let Some(text) = object.pointer(&self.field.to_string()).and_then(Value::as_str) else { return Ok(None) };
        let before = map(text)?;
        let mut after = before.clone();
        let mut edited = text.to_owned();
        for Edit { path, value } in &self.edits {
            if set(&mut after, path, value.as_ref()) {
                edited = edit::set(&edited, path, value.as_ref())?;
            }
        }
        if after == before {
            return Ok(None);
        }
        match map(&edited) {
            Ok(result) if result == after => Ok(Some(edited)),
            _ => Err("it is written in a way that cannot be edited without changing other parts of it".to_owned()),
        }
    }

    /// The wanted keys.
    pub fn keys(&self) -> impl Iterator<Item = String> {
        self.edits.iter().map(|edit| edit.path.join("."))
    }
}

/// The map that a text is as YAML.
fn map(text: &str) -> Result<Map<String, Value>, String> {
    let mut documents = read::documents(text).map_err(|error| match error.line {
        Some(line) => format!("line {line}: {}", error.message),
        None => error.message,
    })?;
    documents.retain(|document| !document.is_null());
    match (documents.pop(), documents.is_empty()) {
        (None, _) => Ok(Map::new()),
        (Some(Value::Object(map)), true) => Ok(map),
        (Some(other), true) => Err(format!("it is {}, and not a map", read::kind_of(&other))),
        (Some(_), false) => Err("it consists of several documents".to_owned()),
    }
}

/// The keys in which two maps differ.
fn compare(live: &Map<String, Value>, wanted: &Map<String, Value>, path: &mut Vec<String>, edits: &mut Vec<Edit>) {
    for (key, wanted) in wanted {
        path.push(key.clone());
        match (live.get(key), wanted) {
            (Some(Value::Object(live)), Value::Object(wanted)) => compare(live, wanted, path, edits),
            (None, Value::Object(wanted)) if !wanted.is_empty() => compare(&Map::new(), wanted, path, edits),
            (live, wanted) if live == Some(wanted) => {}
            (_, wanted) => edits.push(Edit { path: path.clone(), value: Some(wanted.clone()) }),
        }
        path.pop();
    }
    for key in live.keys().filter(|key| !wanted.contains_key(*key)) {
        path.push(key.clone());
        edits.push(Edit { path: path.clone(), value: None });
        path.pop();
    }
}

/// Sets or removes a key; whether that changed anything.
fn set(map: &mut Map<String, Value>, path: &[String], value: Option<&Value>) -> bool {
    let Some((key, rest)) = path.split_first() else { return false };
    match (rest.is_empty(), value) {
        (true, Some(value)) => map.insert(key.clone(), value.clone()).as_ref() != Some(value),
        (true, None) => map.remove(key).is_some(),
        (false, _) => {
            if value.is_none() && !map.get(key).is_some_and(Value::is_object) {
                return false;
            }
            let below = map.entry(key.clone()).or_insert_with(|| json!({}));
            if !below.is_object() {
                *below = json!({});
            }
            below.as_object_mut().is_some_and(|below| set(below, rest, value))
        }
    }
}

#[cfg(test)]
mod tests;
