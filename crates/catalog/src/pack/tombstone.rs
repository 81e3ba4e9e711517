//! Tombstones: objects of former releases that must be deleted.

use crate::pack::fault::Fault;
use crate::pack::files::Files;
use crate::yaml::node::{self, Content, YamlNode};

/// An object of a former release that must be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tombstone {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// The namespace, if the file has one.
    pub namespace: Option<String>,
    /// The name.
    pub name: String,
    /// The file of the tombstone.
    pub file: String,
}

/// Reads all tombstones; they are never rendered as templates, whatever the name of their file.
pub fn read(files: &Files, faults: &mut Vec<Fault>) -> Vec<Tombstone> {
    let mut tombstones = Vec::new();
    for (file, content) in files.iter() {
        if !file.starts_with("tombstones/") || !(file.ends_with(".yaml") || file.ends_with(".yaml.tpl")) {
            continue;
        }
        let mut note = |line: Option<usize>, message: String| {
            faults.push(Fault { file: file.to_owned(), line, message });
        };
        let Ok(text) = std::str::from_utf8(content) else {
            note(None, "it is not UTF-8 text".into());
            continue;
        };
        match node::documents(text) {
            Err(fault) => note(fault.line, fault.message),
            Ok(documents) => {
                for document in &documents {
                    match one(file, document) {
                        Ok(tombstone) => tombstones.push(tombstone),
                        Err(message) => note(Some(document.line), message),
                    }
                }
            }
        }
    }
    tombstones
}

fn one(file: &str, document: &YamlNode) -> Result<Tombstone, String> {
    let needed = |path: &[&str]| {
        let found = text_at(document, path).filter(|text| !text.is_empty());
        found.ok_or_else(|| format!("a tombstone needs `{}`", path.join(".")))
    };
    // Only objects with our label were managed by us.
    let (key, value) = api::MANAGED_BY;
    if text_at(document, &["metadata", "labels", key]).as_deref() != Some(value) {
        return Err(format!("a tombstone needs the label `{key}: {value}`"));
    }
    Ok(Tombstone {
        api_version: needed(&["apiVersion"])?,
        kind: needed(&["kind"])?,
        namespace: text_at(document, &["metadata", "namespace"]),
        name: needed(&["metadata", "name"])?,
        file: file.to_owned(),
    })
}

fn text_at(node: &YamlNode, path: &[&str]) -> Option<String> {
    let Some((key, rest)) = path.split_first() else {
        return match &node.content {
            Content::Text(text) => Some(text.clone()),
            _ => None,
        };
    };
    match &node.content {
        Content::Map(map) => map.iter().find(|(name, ..)| name == key).and_then(|(_, _, value)| text_at(value, rest)),
        _ => None,
    }
}
