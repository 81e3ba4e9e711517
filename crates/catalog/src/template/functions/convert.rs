//! Type conversions and defaults.

use super::argument::as_text;
use crate::template::run::{RenderContext, Stop, a};
use crate::template::value::Value;

/// `default`: the given value, or the first argument if it is empty.
pub fn default(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(arguments.get(1).filter(|given| given.is_true()).unwrap_or(&arguments[0]).clone())
}

/// `empty`: whether it is the zero value of its type.
pub fn empty(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(!arguments[0].is_true()))
}

/// `coalesce`: the first argument that is not empty.
pub fn coalesce(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(arguments.iter().find(|value| value.is_true()).cloned().unwrap_or(Value::Nil))
}

/// `ternary`: the first argument if the third is true, otherwise the second.
pub fn ternary(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    match &arguments[2] {
        Value::Bool(true) => Ok(arguments[0].clone()),
        Value::Bool(false) => Ok(arguments[1].clone()),
        other => Err(format!("expected true or false, got {}", a(other)).into()),
    }
}

/// `toString`.
pub fn to_string(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Text(as_text(&arguments[0], &context.budget)?))
}

/// `toInt` and `toInt64`: 0 if the value is not a number.
pub fn to_int(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Int(as_int(&arguments[0])))
}

/// `toFloat64`: 0 if the value is not a number.
pub fn to_float64(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Float(as_float(&arguments[0])))
}

/// `toBool`: false if the value is not a boolean.
pub fn to_bool(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(match &arguments[0] {
        Value::Text(text) => matches!(text.as_ref(), "1" | "t" | "T" | "true" | "TRUE" | "True"),
        Value::Bool(truth) => *truth,
        Value::Int(number) => *number != 0,
        Value::Float(number) => *number != 0.0,
        _ => false,
    }))
}

/// A whole number as parsed by `spf13/cast`.
pub fn as_int(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        Value::Float(number) => truncated(*number),
        Value::Bool(truth) => i64::from(*truth),
        Value::Text(text) => parse_int(without_zero_fraction(text)).unwrap_or(0),
        Value::Nil | Value::Bytes(_) | Value::List(_) | Value::Map(_) => 0,
    }
}

/// A float as parsed by `spf13/cast`.
pub fn as_float(value: &Value) -> f64 {
    match value {
        Value::Int(number) => *number as f64,
        Value::Float(number) => *number,
        Value::Bool(truth) => f64::from(u8::from(*truth)),
        Value::Text(text) => parse_float(text).unwrap_or(0.0),
        Value::Nil | Value::Bytes(_) | Value::List(_) | Value::Map(_) => 0.0,
    }
}

/// `strconv.ParseFloat`: `_` may separate digits, and a number that is too large is an error.
pub fn parse_float(text: &str) -> Option<f64> {
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let bytes = text.as_bytes();
    let is_between =
        |position: usize| position > 0 && is_digit(bytes.get(position - 1)) && is_digit(bytes.get(position + 1));
    if !text.match_indices('_').all(|(position, _)| is_between(position)) {
        return None;
    }
    let number: f64 = text.replace('_', "").parse().ok()?;
    let is_word = !bytes.iter().any(u8::is_ascii_digit);
    (number.is_finite() || is_word).then_some(number)
}

/// On amd64, Go converts floats that are out of range to the least integer.
fn truncated(number: f64) -> i64 {
    const BEYOND: f64 = 9_223_372_036_854_775_808.0;
    if (-BEYOND..BEYOND).contains(&number) { number as i64 } else { i64::MIN }
}

fn without_zero_fraction(text: &str) -> &str {
    match text.rsplit_once('.') {
        Some((whole, zeros)) if !zeros.is_empty() && zeros.bytes().all(|digit| digit == b'0') => whole,
        _ => text,
    }
}

/// `strconv.ParseInt` with base 0: a prefix selects the base, and `_` may separate digits.
pub fn parse_int(text: &str) -> Option<i64> {
    let (sign, digits) = match text.as_bytes().first()? {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let lower = digits.to_ascii_lowercase();
    let (base, digits) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'o', ..] => (8, &lower[2..]),
        [b'0', _, ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let has_prefix = base != 10;
    let underscores_are_right = !digits.contains("__")
        && !digits.ends_with('_')
        && (has_prefix || !digits.starts_with('_'))
        && !digits.starts_with(['+', '-']);
    if !underscores_are_right {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{}", digits.replace('_', "")), base).ok()
}
