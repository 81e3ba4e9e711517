//! The values of a template: like Go's untyped values, with maps that are shared and mutable.

use serde_json::Value as Json;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A value inside a template.
#[derive(Debug, Clone)]
pub enum Value {
    /// Go's `nil`.
    Nil,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    Text(Rc<str>),
    /// Bytes that need not be UTF-8, such as the output of `gzip`.
    Bytes(Rc<[u8]>),
    /// An immutable list.
    List(Rc<List>),
    /// A map; `set` and similar functions change it in place.
    Map(Rc<Map>),
}

/// The items of a list.
#[derive(Debug, Default)]
pub struct List(pub Vec<Value>);

/// The entries of a map.
#[derive(Debug, Default)]
pub struct Map {
    /// Sorted by key, which is the order of iteration in Go's templates.
    pub entries: RefCell<BTreeMap<Rc<str>, Value>>,
    /// Whether all values are text, like Go's `map[string]string`; `index` then returns `""` for a missing key.
    pub of_text: bool,
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<Rc<str>>) -> Value {
        Value::Text(text.into())
    }

    /// A list.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(List(items)))
    }

    /// A list of texts.
    pub fn texts<T: Into<Rc<str>>>(items: impl IntoIterator<Item = T>) -> Value {
        Value::list(items.into_iter().map(Value::text).collect())
    }

    /// A map.
    pub fn map(entries: BTreeMap<Rc<str>, Value>) -> Value {
        Value::Map(Rc::new(Map { entries: RefCell::new(entries), of_text: false }))
    }

    /// A map whose values are all text.
    pub fn map_of_text(entries: &BTreeMap<String, String>) -> Value {
        let entries =
            entries.iter().map(|(key, value)| (Rc::from(key.as_str()), Value::text(value.as_str()))).collect();
        Value::Map(Rc::new(Map { entries: RefCell::new(entries), of_text: true }))
    }

    /// Converts an object of the cluster; whole numbers become integers.
    pub fn from_json(json: &Json) -> Value {
        convert(json, false)
    }

    /// Converts parsed JSON as Go does; every number becomes a float.
    pub fn from_parsed(json: &Json) -> Value {
        convert(json, true)
    }

    /// Whether `if` treats it as true.
    pub fn is_true(&self) -> bool {
        match self {
            Value::Nil => false,
            Value::Bool(truth) => *truth,
            Value::Int(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::Bytes(bytes) => !bytes.is_empty(),
            Value::List(list) => !list.0.is_empty(),
            Value::Map(map) => !map.entries.borrow().is_empty(),
        }
    }

    /// The name of the type for messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::Nil => "nil",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float64",
            Value::Text(_) => "string",
            Value::Bytes(_) => "bytes",
            Value::List(_) => "list",
            Value::Map(_) => "map",
        }
    }
}

fn convert(json: &Json, floats_only: bool) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(truth) => Value::Bool(*truth),
        Json::Number(number) => match number.as_i64() {
            Some(whole) if !floats_only => Value::Int(whole),
            _ => Value::Float(number.as_f64().unwrap_or(0.0)),
        },
        Json::String(text) => Value::text(text.as_str()),
        Json::Array(items) => Value::list(items.iter().map(|item| convert(item, floats_only)).collect()),
        Json::Object(entries) => Value::map(
            entries.iter().map(|(key, value)| (Rc::from(key.as_str()), convert(value, floats_only))).collect(),
        ),
    }
}

/// Drops values without recursion, because a template may nest them deeper than the stack.
fn drop_all(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::List(mut list) => {
                if let Some(list) = Rc::get_mut(&mut list) {
                    pending.append(&mut list.0);
                }
            }
            Value::Map(mut map) => {
                if let Some(map) = Rc::get_mut(&mut map) {
                    pending.extend(std::mem::take(map.entries.get_mut()).into_values());
                }
            }
            _ => {}
        }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if !self.0.is_empty() {
            drop_all(std::mem::take(&mut self.0));
        }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let entries = self.entries.get_mut();
        if !entries.is_empty() {
            drop_all(std::mem::take(entries).into_values().collect());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Value;
    use crate::template::run::a;
    use std::rc::Rc;

    #[test]
    fn a_value_nested_deeper_than_the_stack_is_dropped() {
        let mut value = Value::Nil;
        for _ in 0..1_000_000 {
            value = Value::list(vec![value]);
        }
        drop(value);
        let mut value = Value::Nil;
        for _ in 0..1_000_000 {
            value = Value::map([(Rc::from("a"), value)].into());
        }
        drop(value);
    }

    #[test]
    fn a_message_names_the_type_of_a_value() {
        let named = [
            (Value::Nil, "nil"),
            (Value::Bool(true), "a bool"),
            (Value::Int(1), "an int"),
            (Value::Float(1.5), "a float64"),
            (Value::text("x"), "a string"),
            (Value::Bytes(Rc::from([255])), "bytes"),
            (Value::list(vec![]), "a list"),
            (Value::map([].into()), "a map"),
        ];
        for (value, name) in named {
            assert_eq!(a(&value), name);
        }
        assert!(Value::Bytes(Rc::from([255])).is_true() && !Value::Bytes(Rc::from([])).is_true());
    }
}
