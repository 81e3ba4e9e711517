//! YAML with line numbers, for the messages about faults of a pack.

use super::read::{YamlError, options, yaml_error};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};
use serde_saphyr::Spanned;
use std::fmt;

/// A value and the line where it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct YamlNode {
    /// The line, counted from one.
    pub line: usize,
    /// The value.
    pub content: Content,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Null or an empty document.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<YamlNode>),
    /// Keys, their lines and their values, in the order of the file.
    Map(Vec<(String, usize, YamlNode)>),
}

impl YamlNode {
    /// The type of the value, for messages.
    pub fn kind(&self) -> &'static str {
        match self.content {
            Content::Null => "nothing",
            Content::Bool(_) => "true or false",
            Content::Int(_) | Content::Float(_) => "a number",
            Content::Text(_) => "text",
            Content::List(_) => "a list",
            Content::Map(_) => "a map",
        }
    }

    /// The value without its lines.
    pub fn to_json(&self) -> Value {
        match &self.content {
            Content::Null => Value::Null,
            Content::Bool(value) => json!(value),
            Content::Int(value) => json!(value),
            Content::Float(value) => json!(value),
            Content::Text(value) => json!(value),
            Content::List(items) => items.iter().map(YamlNode::to_json).collect(),
            Content::Map(map) => map.iter().map(|(key, _, value)| (key.clone(), value.to_json())).collect(),
        }
    }
}

/// Parses the documents of a text, without those that have only comments.
pub fn documents(text: &str) -> Result<Vec<YamlNode>, YamlError> {
    serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| yaml_error(&error))
}

fn line_of<T>(spanned: &Spanned<T>) -> usize {
    usize::try_from(spanned.referenced.line()).unwrap_or(0)
}

impl<'de> Deserialize<'de> for YamlNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<YamlNode, D::Error> {
        let spanned = Spanned::<Content>::deserialize(deserializer)?;
        Ok(YamlNode { line: line_of(&spanned), content: spanned.value })
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Content, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Content, E> {
        Ok(Content::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Content, D::Error> {
        Content::deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<Content, E> {
        Ok(Content::Bool(truth))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Content, E> {
        Ok(Content::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Content, E> {
        Ok(i64::try_from(number).map_or(Content::Float(number as f64), Content::Int))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Content, E> {
        Ok(Content::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Content::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Content, A::Error> {
        let mut map = Vec::new();
        while let Some((key, value)) = entries.next_entry::<Spanned<String>, YamlNode>()? {
            let line = line_of(&key);
            map.push((key.value, line, value));
        }
        Ok(Content::Map(map))
    }
}
