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
    keys: Vec<Key>,
}

/// A document with what is wanted of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Edited {
    /// Its text.
    pub text: String,
    /// The keys that were set.
    pub keys: Vec<String>,
}

/// One key of a document: its path, and its value.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    path: Vec<String>,
    value: Value,
}

impl Document {
    /// The texts of an object that a render of it has, too, and that may be documents: the same object with all of them empty.
    pub fn emptied(rendered: &Value, live: &Value) -> Value {
        let mut emptied = live.clone();
        if let Some(Value::Object(texts)) = emptied.get_mut("data") {
            let is_rendered = |key: &str| rendered["data"][key].is_string();
            texts.iter_mut().filter(|(key, _)| is_rendered(key)).for_each(|(_, text)| *text = json!(""));
        }
        emptied
    }

    /// Takes the documents out of a rendered object, which was rendered from `live`. What they say is wanted if `alone`, which was
    /// rendered from empty documents, says the same: the rest is only what the template makes of the keys of others.
    pub fn take(rendered: &mut Value, live: &Value, alone: &Value) -> Vec<Document> {
        let mut documents = Vec::new();
        if let (Some(Value::Object(fields)), Some(Value::Object(live))) = (rendered.get_mut("data"), live.get("data")) {
            fields.retain(|key, value| {
                let text = value.as_str().filter(|_| live.get(key).is_some_and(Value::is_string));
                let Some(wanted) = text.and_then(|text| map(text).ok()) else { return true };
                let alone = alone["data"][key].as_str().and_then(|text| map(text).ok()).unwrap_or_default();
                let mut keys = Vec::new();
                agreed(&alone, &wanted, &mut Vec::new(), &mut keys);
                documents.push(Document { field: Pointer::of(["data", key]), keys });
                false
            });
            if fields.is_empty()
                && let Some(object) = rendered.as_object_mut()
            {
                object.remove("data");
            }
        }
        documents
    }

    /// What has to be edited, `None` if nothing has to; the error says why it cannot be edited.
    pub fn edited(&self, object: &Value) -> Result<Option<Edited>, String> {
        let Some(text) = object.pointer(&self.field.to_string()).and_then(Value::as_str) else { return Ok(None) };
        let before = map(text)?;
        let mut after = before.clone();
        let mut edited = Edited { text: text.to_owned(), keys: Vec::new() };
        for Key { path, value } in &self.keys {
            if is_set(&after, path, value) {
                continue;
            }
            // What is in the way of a map is replaced by it.
            let place = place_of(&after, path);
            let (path_in_text, rest) = path.split_at(place);
            edited.text = edit::set(&edited.text, path_in_text, &nested(rest, value))?;
            edited.keys.push(path.join("."));
            set(&mut after, path, value);
        }
        if edited.keys.is_empty() {
            return Ok(None);
        }
        match map(&edited.text) {
            Ok(result) if result == after => Ok(Some(edited)),
            _ => Err("it is written in a way that cannot be edited without changing other parts of it".to_owned()),
        }
    }

    /// The wanted keys with their values.
    pub fn wanted(&self) -> Value {
        let keys: Vec<Value> = self.keys.iter().map(|key| json!([key.path, key.value])).collect();
        json!([self.field.to_string(), keys])
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

/// The keys that two maps have with the same value.
fn agreed(ours: &Map<String, Value>, rendered: &Map<String, Value>, path: &mut Vec<String>, keys: &mut Vec<Key>) {
    for (key, ours) in ours {
        path.push(key.clone());
        match (ours, rendered.get(key)) {
            (Value::Object(ours), Some(Value::Object(rendered))) if !ours.is_empty() => {
                agreed(ours, rendered, path, keys);
            }
            (ours, Some(rendered)) if ours == rendered => {
                keys.push(Key { path: path.clone(), value: ours.clone() });
            }
            _ => {}
        }
        path.pop();
    }
}

/// Whether a key has a value; a map that is wanted empty may have keys of others.
fn is_set(map: &Map<String, Value>, path: &[String], value: &Value) -> bool {
    match value_at(map, path) {
        Some(Value::Object(_)) if value.is_object() => true,
        live => live == Some(value),
    }
}

fn value_at<'a>(map: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (key, rest) = path.split_first()?;
    rest.iter().try_fold(map.get(key)?, |below, key| below.get(key))
}

/// How much of a path can be edited: up to the first value that is neither a map nor nothing.
fn place_of(map: &Map<String, Value>, path: &[String]) -> usize {
    let is_in_the_way =
        |length: &usize| value_at(map, &path[..*length]).is_some_and(|value| !value.is_object() && !value.is_null());
    (1..path.len()).find(is_in_the_way).unwrap_or(path.len())
}

/// A value below these keys.
fn nested(path: &[String], value: &Value) -> Value {
    path.iter().rev().fold(value.clone(), |below, key| json!({ key: below }))
}

/// Sets a key.
fn set(map: &mut Map<String, Value>, path: &[String], value: &Value) {
    let Some((key, rest)) = path.split_first() else { return };
    if rest.is_empty() {
        map.insert(key.clone(), value.clone());
        return;
    }
    let below = map.entry(key.clone()).or_insert_with(|| json!({}));
    if !below.is_object() {
        *below = json!({});
    }
    if let Some(below) = below.as_object_mut() {
        set(below, rest, value);
    }
}

#[cfg(test)]
mod tests;
