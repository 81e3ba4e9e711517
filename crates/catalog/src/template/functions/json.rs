//! Conversions between values and JSON or YAML.

use super::argument::text as take;
use crate::template::budget::{DEPTH, Text};
use crate::template::print::{json_float, too_deep};
use crate::template::run::{RenderContext, Stop};
use crate::template::value::Value;
use crate::yaml;
use serde_json::Value as Json;

/// `fromJson`: as in sprig, invalid JSON is nil and every number is a float.
pub fn from_json(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let text = take(&arguments[0])?;
    // Each item takes at least two characters, and a value takes far more memory than its text.
    context.budget.items(text.len() / 8)?;
    Ok(serde_json::from_str::<Json>(text).map(|json| Value::from_parsed(&json)).unwrap_or(Value::Nil))
}

/// `fromYaml`: a map. Invalid YAML stops the render, because an empty map instead would delete a user's text.
pub fn from_yaml(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let text = take(&arguments[0])?;
    context.budget.items(text.len() / 8)?;
    let read = context.yaml.read(text, |documents| match documents {
        [] | [Json::Null] => Ok(Value::map(Default::default())),
        [object @ Json::Object(_)] => Ok(Value::from_parsed(object)),
        [other] => Err(format!("expected a map, got {}", yaml::read::kind_of(other)).into()),
        _ => Err("the text has several documents".into()),
    });
    read.map_err(|fault| match fault.line {
        Some(line) => format!("line {line} of its text: {}", fault.message),
        None => fault.message,
    })?
}

/// `toYaml`, without the final line break.
pub fn to_yaml(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut text = yaml::write::written(&arguments[0], &context.budget)?;
    if text.ends_with('\n') {
        text.pop();
    }
    Ok(Value::text(text))
}

#[derive(Clone, Copy)]
struct Style {
    escapes_html: bool,
    is_pretty: bool,
}

fn written(context: &RenderContext<'_>, value: &Value, style: Style) -> Result<Value, Stop> {
    let mut text = Text::new(&context.budget);
    write(value, &mut text, style, 0)?;
    Ok(Value::text(text.finish()))
}

/// `toJson`.
pub fn to_json(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    written(context, &arguments[0], Style { escapes_html: true, is_pretty: false })
}

/// `toPrettyJson`.
pub fn to_pretty_json(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    written(context, &arguments[0], Style { escapes_html: true, is_pretty: true })
}

/// `toRawJson`: without escapes for `<`, `>` and `&`.
pub fn to_raw_json(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    written(context, &arguments[0], Style { escapes_html: false, is_pretty: false })
}

fn write(value: &Value, text: &mut Text<'_>, style: Style, depth: usize) -> Result<(), String> {
    text.budget().step(1)?;
    if depth >= DEPTH {
        return Err(too_deep());
    }
    match value {
        Value::Nil => text.push("null"),
        Value::Bool(truth) => text.push(if *truth { "true" } else { "false" }),
        Value::Int(number) => text.push(&number.to_string()),
        Value::Float(number) if number.is_finite() => text.push(&json_float(*number)),
        Value::Float(_) => Err("JSON has no such number".into()),
        Value::Text(words) => string(words, text, style),
        Value::Bytes(_) => Err("bytes are not text: pass them through b64enc".into()),
        Value::List(list) => {
            text.push("[")?;
            for (position, item) in list.0.iter().enumerate() {
                separate(text, style, position > 0, depth + 1)?;
                write(item, text, style, depth + 1)?;
            }
            end(text, style, list.0.is_empty(), depth, "]")
        }
        Value::Map(map) => {
            let entries = map.entries.borrow();
            text.push("{")?;
            for (position, (key, item)) in entries.iter().enumerate() {
                separate(text, style, position > 0, depth + 1)?;
                string(key, text, style)?;
                text.push(if style.is_pretty { ": " } else { ":" })?;
                write(item, text, style, depth + 1)?;
            }
            end(text, style, entries.is_empty(), depth, "}")
        }
    }
}

fn separate(text: &mut Text<'_>, style: Style, has_before: bool, depth: usize) -> Result<(), String> {
    if has_before {
        text.push(",")?;
    }
    new_line(text, style, depth)
}

fn end(text: &mut Text<'_>, style: Style, is_empty: bool, depth: usize, bracket: &str) -> Result<(), String> {
    if !is_empty {
        new_line(text, style, depth)?;
    }
    text.push(bracket)
}

fn new_line(text: &mut Text<'_>, style: Style, depth: usize) -> Result<(), String> {
    if style.is_pretty { text.push(&format!("\n{}", "  ".repeat(depth))) } else { Ok(()) }
}

fn string(words: &str, text: &mut Text<'_>, style: Style) -> Result<(), String> {
    let mut out = String::with_capacity(words.len() + 2);
    out.push('"');
    for character in words.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '<' | '>' | '&' if style.escapes_html => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            '\u{0}'..='\u{1f}' | '\u{2028}' | '\u{2029}' => out.push_str(&format!("\\u{:04x}", u32::from(character))),
            character => out.push(character),
        }
    }
    out.push('"');
    text.push(&out)
}
