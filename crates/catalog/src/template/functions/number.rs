//! Arithmetic as in sprig, on integers that wrap around as in Go.

use super::argument::int;
use super::convert::{as_float, as_int};
use crate::template::run::{RenderContext, Stop, a};
use crate::template::value::Value;

fn fold(arguments: &[Value], with: fn(i64, i64) -> i64) -> Result<Value, Stop> {
    let mut numbers = arguments.iter().map(as_int);
    let first = numbers.next().unwrap_or(0);
    Ok(Value::Int(numbers.fold(first, with)))
}

/// `add`.
pub fn add(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    fold(arguments, i64::wrapping_add)
}

/// `add1`.
pub fn add1(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Int(as_int(&arguments[0]).wrapping_add(1)))
}

/// `sub`.
pub fn sub(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    fold(arguments, i64::wrapping_sub)
}

/// `mul`.
pub fn mul(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    fold(arguments, i64::wrapping_mul)
}

/// `div`.
pub fn div(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    match as_int(&arguments[1]) {
        0 => Err("division by zero".into()),
        divisor => Ok(Value::Int(as_int(&arguments[0]).wrapping_div(divisor))),
    }
}

/// `mod`.
pub fn modulo(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    match as_int(&arguments[1]) {
        0 => Err("division by zero".into()),
        divisor => Ok(Value::Int(as_int(&arguments[0]).wrapping_rem(divisor))),
    }
}

/// `max`.
pub fn max(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    fold(arguments, i64::max)
}

/// `min`.
pub fn min(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    fold(arguments, i64::min)
}

/// `floor`.
pub fn floor(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Float(as_float(&arguments[0]).floor()))
}

/// `ceil`.
pub fn ceil(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Float(as_float(&arguments[0]).ceil()))
}

/// `round`: to this many decimal places; a third argument is the fraction from which it rounds up.
pub fn round(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let places = int(&arguments[1])? as f64;
    let mut up_from = 0.5;
    for argument in &arguments[2..] {
        if !matches!(argument, Value::Float(_) | Value::Int(_)) {
            return Err(format!("expected a number, got {}", a(argument)).into());
        }
    }
    if let Some(argument) = arguments.get(2) {
        up_from = as_float(argument);
    }
    let power = 10f64.powf(places);
    let digit = power * as_float(&arguments[0]);
    let rounded = if digit.fract() >= up_from { digit.ceil() } else { digit.floor() };
    Ok(Value::Float(rounded / power))
}
