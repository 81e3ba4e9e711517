//! Takes a function's arguments for what they must be.

use crate::template::budget::RenderBudget;
use crate::template::print::printed;
use crate::template::run::a;
use crate::template::value::{List, Map, Value};
use std::rc::Rc;

/// Text.
pub fn text(value: &Value) -> Result<&str, String> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(format!("text is needed here, not {}", a(other))),
    }
}

/// A whole number.
pub fn int(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(format!("a whole number is needed here, not {}", a(other))),
    }
}

/// A list.
pub fn list(value: &Value) -> Result<&Rc<List>, String> {
    match value {
        Value::List(list) => Ok(list),
        other => Err(format!("a list is needed here, not {}", a(other))),
    }
}

/// A map; nothing is an empty one.
pub fn map(value: &Value) -> Result<Rc<Map>, String> {
    match value {
        Value::Map(map) => Ok(Rc::clone(map)),
        Value::Nil => Ok(Rc::default()),
        other => Err(format!("a map is needed here, not {}", a(other))),
    }
}

/// Any value as sprig turns it into text.
pub fn as_text(value: &Value, budget: &RenderBudget) -> Result<Rc<str>, String> {
    match value {
        Value::Text(text) => Ok(Rc::clone(text)),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Rc::from(text)),
            Err(_) => Err("these bytes are no text: pass them through b64enc".into()),
        },
        other => printed(other, budget).map(Rc::from),
    }
}
