//! Reads YAML into plain values.

use crate::template::budget::{DEPTH, TEXT_BYTES};
use serde_json::{Number, Value};

/// What is wrong, and in which line.
#[derive(Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The line, where it is known.
    pub line: Option<usize>,
    /// The reason.
    pub message: String,
}

/// Our way of reading: `0644` is a number in base eight, as in YAML 1.1.
pub fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        legacy_octal_numbers: true,
        budget: serde_saphyr::budget! { max_depth: DEPTH },
        // An alias stands for what it names, so a short text can be a large document.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 20_000 },
        with_snippet: false,
    }
}

/// The documents of a text that are more than comments.
pub fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    if text.len() > TEXT_BYTES {
        return Err(YamlError { line: None, message: format!("it is longer than {TEXT_BYTES} bytes") });
    }
    let mut documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| yaml_error(&error))?;
    for document in &mut documents {
        make_whole(document);
    }
    Ok(documents)
}

/// An error of the reader, without the place it repeats in its text.
pub fn yaml_error(error: &serde_saphyr::Error) -> YamlError {
    let line = error.location().and_then(|place| usize::try_from(place.line()).ok()).filter(|line| *line > 0);
    let message = error.without_snippet().to_string();
    let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
    let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or(&message).to_owned();
    YamlError { line, message }
}

/// `1.0` and `1e3` are whole numbers to Kubernetes: its JSON does not know the difference.
fn make_whole(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or(0.0);
            if float.fract() == 0.0 && float.abs() < 9.2e18 {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(entries) => entries.values_mut().for_each(make_whole),
        _ => {}
    }
}

/// What kind of value this is, in words.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}
