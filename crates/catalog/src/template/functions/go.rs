//! The functions of Go's `text/template`.

use crate::template::budget::{DEPTH, RenderBudget};
use crate::template::print::{is_printable, printed, too_deep};
use crate::template::run::{RenderContext, Stop, a};
use crate::template::value::Value;
use gotmpl::{Template, Value as Foreign};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

/// `and` and `or`, if only the last argument can decide.
pub fn and_or(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(arguments.last().cloned().unwrap_or(Value::Nil))
}

/// `not`.
pub fn not(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(!arguments[0].is_true()))
}

/// `eq`: whether the first argument equals any of the others.
pub fn eq(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    for other in &arguments[1..] {
        if is_equal(&arguments[0], other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

/// `ne`.
pub fn ne(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(!is_equal(&arguments[0], &arguments[1])?))
}

fn is_equal(left: &Value, right: &Value) -> Result<bool, String> {
    match (left, right) {
        (Value::Nil, Value::Nil) => Ok(true),
        (Value::Nil, _) | (_, Value::Nil) => Ok(false),
        (Value::Bool(left), Value::Bool(right)) => Ok(left == right),
        (Value::Int(left), Value::Int(right)) => Ok(left == right),
        (Value::Float(left), Value::Float(right)) => Ok(left == right),
        (Value::Text(left), Value::Text(right)) => Ok(left == right),
        _ => Err(not_comparable(left, right)),
    }
}

fn not_comparable(left: &Value, right: &Value) -> String {
    format!("{} and {} cannot be compared", a(left), a(right))
}

fn order(left: &Value, right: &Value) -> Result<Option<Ordering>, String> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => Ok(Some(left.cmp(right))),
        (Value::Float(left), Value::Float(right)) => Ok(left.partial_cmp(right)),
        (Value::Text(left), Value::Text(right)) => Ok(Some(left.cmp(right))),
        _ => Err(not_comparable(left, right)),
    }
}

/// `lt`.
pub fn lt(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(order(&arguments[0], &arguments[1])? == Some(Ordering::Less)))
}

/// `le`.
pub fn le(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(matches!(order(&arguments[0], &arguments[1])?, Some(Ordering::Less | Ordering::Equal))))
}

/// `gt`.
pub fn gt(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(!matches!(order(&arguments[0], &arguments[1])?, Some(Ordering::Less | Ordering::Equal))))
}

/// `ge`.
pub fn ge(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(order(&arguments[0], &arguments[1])? != Some(Ordering::Less)))
}

/// `len`.
pub fn len(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let length = match &arguments[0] {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        Value::List(list) => list.0.len(),
        Value::Map(map) => map.entries.borrow().len(),
        other => return Err(format!("{} has no length", a(other)).into()),
    };
    Ok(Value::Int(length as i64))
}

/// `index`: follows keys and indexes.
pub fn index(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (first, indexes) = arguments.split_first().ok_or("nothing to index")?;
    if matches!(first, Value::Nil) {
        return Err("nothing to index".into());
    }
    let mut item = first.clone();
    for index in indexes {
        item = match (&item, index) {
            (Value::List(list), Value::Int(position)) => {
                let found = usize::try_from(*position).ok().and_then(|position| list.0.get(position));
                found
                    .cloned()
                    .ok_or_else(|| format!("{position} is out of range of a list of {} items", list.0.len()))?
            }
            (Value::Text(text), Value::Int(position)) => {
                let found = usize::try_from(*position).ok().and_then(|position| text.as_bytes().get(position));
                let byte =
                    found.ok_or_else(|| format!("{position} is out of range of a text of {} bytes", text.len()))?;
                Value::Int(i64::from(*byte))
            }
            (Value::Map(map), Value::Text(key)) => match map.entries.borrow().get(key) {
                Some(found) => found.clone(),
                None if map.of_text => Value::text(""),
                None => Value::Nil,
            },
            (item, index) => return Err(format!("{} cannot be indexed with {}", a(item), a(index)).into()),
        };
    }
    Ok(item)
}

/// `print`: with spaces between values that are both not text.
pub fn print(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut out = String::new();
    let mut after_text = true;
    for argument in arguments {
        let is_text = matches!(argument, Value::Text(_));
        if !is_text && !after_text {
            out.push(' ');
        }
        out.push_str(&printed(argument, &context.budget)?);
        after_text = is_text;
    }
    Ok(Value::text(out))
}

/// `println`: with spaces between all values, and a line break.
pub fn println(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let words = arguments.iter().map(|argument| printed(argument, &context.budget)).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::text(words.join(" ") + "\n"))
}

/// `printf`: that of gotmpl, except for floats and lists, which gotmpl prints differently from Go.
pub fn printf(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut format = super::argument::text(&arguments[0])?.to_owned();
    let verbs = verbs(&format);
    let mut call = "{{printf .format".to_owned();
    let mut data = BTreeMap::new();
    let mut longest = 0;
    for (position, argument) in arguments.iter().enumerate().skip(1) {
        let text = printed(argument, &context.budget)?;
        longest = longest.max(text.len());
        let value = match verbs.get(position - 1) {
            Some((at, verb)) if is_ours(*verb, argument) => {
                format.replace_range(at..&(at + 1), "s");
                let printed = if matches!((verb, argument), ('d', Value::Float(_))) {
                    format!("%!d(float64={text})")
                } else {
                    text
                };
                Foreign::String(Arc::from(printed))
            }
            _ => foreign(argument, &context.budget, DEPTH)?,
        };
        let _ = write!(call, " .a{position}");
        data.insert(Arc::from(format!("a{position}")), value);
    }
    // A verb with a width produces up to 65535 characters of padding.
    let has_widths = format.contains(|character: char| character.is_ascii_digit() || character == '*');
    let widest = longest.saturating_mul(6).saturating_add(if has_widths { 65_535 } else { 0 });
    context.budget.text(format.len().saturating_add(format.matches('%').count().saturating_mul(widest)))?;
    data.insert(Arc::from("format"), Foreign::String(Arc::from(format)));
    let printed = Template::new("printf")
        .parse(&(call + "}}"))
        .and_then(|template| template.execute_to_string(&Foreign::Map(Arc::new(data))));
    printed.map(Value::text).map_err(|error| Stop::Failed(error.to_string()))
}

/// Whether we format the argument ourselves.
fn is_ours(verb: char, argument: &Value) -> bool {
    match (verb, argument) {
        ('v', Value::Float(_) | Value::List(_) | Value::Map(_)) | ('d', Value::Float(_)) => true,
        ('s', Value::List(list)) => list.0.iter().all(|item| matches!(item, Value::Text(_))),
        ('d', Value::List(list)) => list.0.iter().all(|item| matches!(item, Value::Int(_))),
        _ => false,
    }
}

/// The position and verb of each argument; empty if the format selects its arguments explicitly.
fn verbs(format: &str) -> Vec<(usize, char)> {
    if format.contains(['[', '*']) {
        return vec![];
    }
    let mut verbs = Vec::new();
    let mut characters = format.char_indices();
    while characters.by_ref().any(|(_, character)| character == '%') {
        let is_verb = |(_, character): &(usize, char)| !matches!(character, '0'..='9' | '+' | '-' | '#' | ' ' | '.');
        match characters.by_ref().find(is_verb) {
            Some((_, '%')) | None => {}
            Some(verb) => verbs.push(verb),
        }
    }
    verbs
}

fn foreign(value: &Value, budget: &RenderBudget, depth: usize) -> Result<Foreign, String> {
    budget.step(1)?;
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    Ok(match value {
        Value::Nil => Foreign::Nil,
        Value::Bool(truth) => Foreign::Bool(*truth),
        Value::Int(number) => Foreign::Int(*number),
        Value::Float(number) => Foreign::Float(*number),
        Value::Text(text) => Foreign::String(Arc::from(text.as_ref())),
        Value::Bytes(_) => return Err("bytes are not text: pass them through b64enc".into()),
        Value::List(list) => {
            let items = list.0.iter().map(|item| foreign(item, budget, depth)).collect::<Result<Vec<_>, _>>()?;
            Foreign::List(Arc::from(items))
        }
        Value::Map(map) => {
            let mut entries = BTreeMap::new();
            for (key, item) in map.entries.borrow().iter() {
                entries.insert(Arc::from(key.as_ref()), foreign(item, budget, depth)?);
            }
            Foreign::Map(Arc::new(entries))
        }
    })
}

fn escaped(context: &RenderContext<'_>, arguments: &[Value], with: fn(&str) -> String) -> Result<Value, Stop> {
    let text = match arguments {
        [Value::Nil] => "<no value>".to_owned(),
        _ => match print(context, arguments)? {
            Value::Text(text) => text.to_string(),
            _ => String::new(),
        },
    };
    Ok(Value::text(with(&text)))
}

/// `html`.
pub fn html(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    escaped(context, arguments, gotmpl::html_escape)
}

/// `js`.
pub fn js(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    escaped(context, arguments, |text| {
        let mut out = String::new();
        for character in gotmpl::js_escape(text).chars() {
            // Unlike Go, gotmpl does not escape invisible characters.
            if character.is_ascii() || is_printable(character) {
                out.push(character);
            } else {
                let _ = write!(out, "\\u{:04X}", u32::from(character));
            }
        }
        out
    })
}

/// `urlquery`.
pub fn urlquery(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    escaped(context, arguments, gotmpl::url_encode)
}
