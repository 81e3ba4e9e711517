//! Functions on lists, which are immutable.

use super::argument::{as_text, list as take_list};
use super::convert::as_int;
use crate::template::budget::{DEPTH, RenderBudget};
use crate::template::print::too_deep;
use crate::template::run::{RenderContext, Stop};
use crate::template::value::Value;
use std::rc::Rc;

/// `list`.
pub fn list(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::list(arguments.to_vec()))
}

/// `append`.
pub fn append(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut items = take_list(&arguments[0])?.0.clone();
    items.push(arguments[1].clone());
    Ok(Value::list(items))
}

/// `prepend`.
pub fn prepend(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut items = vec![arguments[1].clone()];
    items.extend_from_slice(&take_list(&arguments[0])?.0);
    Ok(Value::list(items))
}

/// `concat`.
pub fn concat(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut items = Vec::new();
    for argument in arguments {
        items.extend_from_slice(&take_list(argument)?.0);
    }
    Ok(Value::list(items))
}

/// `chunk`: splits a list into lists of at most this size.
pub fn chunk(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let size = super::argument::int(&arguments[0])?;
    let items = &take_list(&arguments[1])?.0;
    let size = usize::try_from(size).ok().filter(|size| *size > 0).ok_or("the size must be greater than zero")?;
    context.budget.items(items.len())?;
    Ok(Value::list(items.chunks(size).map(|part| Value::list(part.to_vec())).collect()))
}

/// `first`.
pub fn first(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(take_list(&arguments[0])?.0.first().cloned().unwrap_or(Value::Nil))
}

/// `last`.
pub fn last(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(take_list(&arguments[0])?.0.last().cloned().unwrap_or(Value::Nil))
}

/// `rest`: all items except the first.
pub fn rest(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let items = &take_list(&arguments[0])?.0;
    Ok(Value::list(items.get(1..).unwrap_or_default().to_vec()))
}

/// `initial`: all items except the last.
pub fn initial(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let items = &take_list(&arguments[0])?.0;
    Ok(Value::list(items.split_last().map(|(_, before)| before.to_vec()).unwrap_or_default()))
}

/// `reverse`.
pub fn reverse(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::list(take_list(&arguments[0])?.0.iter().rev().cloned().collect()))
}

/// `compact`: without empty items.
pub fn compact(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::list(take_list(&arguments[0])?.0.iter().filter(|item| item.is_true()).cloned().collect()))
}

/// `uniq`: each item once, in the order of first occurrence.
pub fn uniq(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut items: Vec<Value> = Vec::new();
    for item in &take_list(&arguments[0])?.0 {
        if !contains(&items, item, &context.budget)? {
            items.push(item.clone());
        }
    }
    Ok(Value::list(items))
}

/// `without`: the list without these items.
pub fn without(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut items = Vec::new();
    for item in &take_list(&arguments[0])?.0 {
        if !contains(&arguments[1..], item, &context.budget)? {
            items.push(item.clone());
        }
    }
    Ok(Value::list(items))
}

/// `has`: whether the list has the item; false if it is not a list.
pub fn has(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::Bool(match &arguments[1] {
        Value::List(list) => contains(&list.0, &arguments[0], &context.budget)?,
        _ => false,
    }))
}

/// `slice`: the items between two indexes.
pub fn slice(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let items = &take_list(&arguments[0])?.0;
    if items.is_empty() {
        return Ok(Value::Nil);
    }
    let start = arguments.get(1).map_or(0, as_int);
    let end = arguments.get(2).map_or(items.len() as i64, as_int);
    let part = match (usize::try_from(start), usize::try_from(end)) {
        (Ok(start), Ok(end)) => items.get(start..end),
        _ => None,
    };
    match part {
        Some(part) => Ok(Value::list(part.to_vec())),
        None => Err(format!("{start} to {end} is out of range of a list of {} items", items.len()).into()),
    }
}

fn contains(items: &[Value], wanted: &Value, budget: &RenderBudget) -> Result<bool, String> {
    for item in items {
        if is_same(item, wanted, budget, DEPTH)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Go's `reflect.DeepEqual`, except that whole numbers of different widths are equal.
fn is_same(left: &Value, right: &Value, budget: &RenderBudget, depth: usize) -> Result<bool, String> {
    budget.step(1)?;
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    Ok(match (left, right) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) => left == right,
        (Value::Float(left), Value::Float(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Bytes(left), Value::Bytes(right)) => left == right,
        (Value::List(left), Value::List(right)) => {
            if left.0.len() != right.0.len() {
                return Ok(false);
            }
            for (left, right) in left.0.iter().zip(&right.0) {
                if !is_same(left, right, budget, depth)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(left), Value::Map(right)) => {
            if Rc::ptr_eq(left, right) {
                return Ok(true);
            }
            let (left, right) = (left.entries.borrow(), right.entries.borrow());
            if left.len() != right.len() {
                return Ok(false);
            }
            for ((left_key, left), (right_key, right)) in left.iter().zip(right.iter()) {
                if left_key != right_key || !is_same(left, right, budget, depth)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}

/// The items of a list as texts, without nil; a single value counts as a list of one item.
pub fn texts(value: &Value, budget: &RenderBudget) -> Result<Vec<Rc<str>>, String> {
    match value {
        Value::Nil => Ok(vec![]),
        Value::List(list) => {
            budget.items(list.0.len())?;
            let present = list.0.iter().filter(|item| !matches!(item, Value::Nil));
            present.map(|item| as_text(item, budget)).collect()
        }
        other => Ok(vec![as_text(other, budget)?]),
    }
}
