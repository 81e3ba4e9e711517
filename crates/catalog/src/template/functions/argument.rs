//! Checks the types of a function's arguments.

use crate::template::budget::RenderBudget;
use crate::template::print::printed;
use crate::template::run::a;
use crate::template::value::{List, Map, Value};
use std::rc::Rc;

/// Text.
pub fn text(value: &Value) -> Result<&str, String> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(format!("expected text, got {}", a(other))),
    }
}

/// A whole number.
pub fn int(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(format!("expected a whole number, got {}", a(other))),
    }
}

/// A list.
pub fn list(value: &Value) -> Result<&Rc<List>, String> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(format!("expected a list, got {}", a(other))),
    }
}

/// A map; nil is an empty map.
pub fn map(value: &Value) -> Result<Rc<Map>, String> {
    match value {
        Value::Map(map) => Ok(Rc::clone(map)),
        Value::Nil => Ok(Rc::default()),
        other => Err(format!("expected a map, got {}", a(other))),
    }
}

/// Any value converted to text as sprig does.
pub fn as_text(value: &Value, budget: &RenderBudget) -> Result<Rc<str>, String> {
    match value {
        Value::Text(text) => Ok(Rc::clone(text)),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Rc::from(text)),
            Err(_) => Err("these bytes are not text: pass them through b64enc".into()),
        },
        other => printed(other, budget).map(Rc::from),
    }
}
