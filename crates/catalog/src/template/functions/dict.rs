//! Functions on maps. As in sprig, `set`, `unset`, `merge` and `mergeOverwrite` change a map in place.

use super::argument::{as_text, map as take_map, text as take_text};
use crate::template::budget::{DEPTH, RenderBudget};
use crate::template::print::{printed, too_deep};
use crate::template::run::{RenderContext, Stop, a};
use crate::template::value::{Map, Value};
use std::collections::BTreeMap;
use std::rc::Rc;

/// `dict`: alternating keys and values; a last key without a value gets `""`.
pub fn dict(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut entries = BTreeMap::new();
    for pair in arguments.chunks(2) {
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::text(""));
        entries.insert(as_text(&pair[0], &context.budget)?, value);
    }
    context.budget.items(entries.len())?;
    Ok(Value::map(entries))
}

/// `set`.
pub fn set(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let Value::Map(map) = &arguments[0] else {
        return Err(format!("expected a map, got {}", a(&arguments[0])).into());
    };
    insert(map, Rc::from(take_text(&arguments[1])?), arguments[2].clone(), &context.budget)?;
    Ok(arguments[0].clone())
}

/// Inserts a value into a map, unless the map would contain itself: it could never be printed or freed.
fn insert(map: &Rc<Map>, key: Rc<str>, value: Value, budget: &RenderBudget) -> Result<(), String> {
    budget.items(1)?;
    if reaches(&value, map, budget, DEPTH)? {
        return Err("a map cannot contain itself".into());
    }
    map.entries.borrow_mut().insert(key, value);
    Ok(())
}

fn reaches(value: &Value, target: &Rc<Map>, budget: &RenderBudget, depth: usize) -> Result<bool, String> {
    budget.step(1)?;
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    match value {
        Value::Map(map) => {
            if Rc::ptr_eq(map, target) {
                return Ok(true);
            }
            for item in map.entries.borrow().values() {
                if reaches(item, target, budget, depth)? {
                    return Ok(true);
                }
            }
        }
        Value::List(list) => {
            for item in &list.0 {
                if reaches(item, target, budget, depth)? {
                    return Ok(true);
                }
            }
        }
        _ => {}
    }
    Ok(false)
}

/// `unset`.
pub fn unset(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let map = take_map(&arguments[0])?;
    map.entries.borrow_mut().remove(take_text(&arguments[1])?);
    Ok(Value::Map(map))
}

/// `hasKey`.
pub fn has_key(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let key = take_text(&arguments[1])?;
    Ok(Value::Bool(take_map(&arguments[0])?.entries.borrow().contains_key(key)))
}

/// `pluck`: the values of one key in several maps.
pub fn pluck(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let key = take_text(&arguments[0])?;
    let mut values = Vec::new();
    for argument in &arguments[1..] {
        values.extend(take_map(argument)?.entries.borrow().get(key).cloned());
    }
    Ok(Value::list(values))
}

/// `keys`: sorted, whereas sprig returns them in random order.
pub fn keys(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut keys = Vec::new();
    for argument in arguments {
        keys.extend(take_map(argument)?.entries.borrow().keys().cloned());
    }
    Ok(Value::texts(keys))
}

/// `values`: in the order of their keys, whereas sprig returns them in random order.
pub fn values(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::list(take_map(&arguments[0])?.entries.borrow().values().cloned().collect()))
}

fn filtered(arguments: &[Value], keeps: fn(&[&str], &str) -> bool) -> Result<Value, Stop> {
    let keys = arguments[1..].iter().map(take_text).collect::<Result<Vec<_>, _>>()?;
    let map = take_map(&arguments[0])?;
    let entries = map.entries.borrow();
    let kept = entries.iter().filter(|(key, _)| keeps(&keys, key));
    Ok(Value::map(kept.map(|(key, value)| (Rc::clone(key), value.clone())).collect()))
}

/// `pick`: a new map with only these keys.
pub fn pick(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    context.budget.items(arguments.len())?;
    filtered(arguments, |keys, key| keys.contains(&key))
}

/// `omit`: a new map without these keys.
pub fn omit(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    context.budget.items(take_map(&arguments[0])?.entries.borrow().len())?;
    filtered(arguments, |keys, key| !keys.contains(&key))
}

/// `merge`: fills missing and empty entries of the first map from the others.
pub fn merge(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    merged(context, arguments, false)
}

/// `mergeOverwrite`: the last map wins.
pub fn merge_overwrite(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    merged(context, arguments, true)
}

fn merged(context: &RenderContext<'_>, arguments: &[Value], overwrite: bool) -> Result<Value, Stop> {
    let into = take_map(&arguments[0])?;
    for argument in &arguments[1..] {
        let from = take_map(argument)?;
        merge_into(&into, &from, overwrite, &context.budget, DEPTH)?;
    }
    Ok(Value::Map(into))
}

/// The rules of mergo, which sprig uses.
fn merge_into(
    into: &Rc<Map>,
    from: &Rc<Map>,
    overwrite: bool,
    budget: &RenderBudget,
    depth: usize,
) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    if Rc::ptr_eq(into, from) {
        return Ok(());
    }
    let news: Vec<_> = from.entries.borrow().iter().map(|(key, value)| (Rc::clone(key), value.clone())).collect();
    budget.items(news.len())?;
    for (key, new) in news {
        let old = into.entries.borrow().get(&key).cloned();
        if let (Some(Value::Map(old)), Value::Map(new)) = (&old, &new) {
            merge_into(old, new, overwrite, budget, depth)?;
        }
        let has_old = old.as_ref().is_some_and(Value::is_true);
        let is_merged = has_old && matches!((&old, &new), (Some(Value::Map(_)), Value::Map(_)));
        if !is_merged && (overwrite || (!has_old && !matches!(new, Value::Nil))) {
            insert(into, key, new, budget)?;
        }
    }
    Ok(())
}

/// `dig`: follows keys into a map; the default, which precedes the map, if a step is missing or not a map.
pub fn dig(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let [keys @ .., default, map] = arguments else {
        return Err("expected keys, a default and a map".into());
    };
    let mut value = map.clone();
    for key in keys {
        let key = take_text(key)?;
        let next = match &value {
            Value::Map(map) => map.entries.borrow().get(key).cloned(),
            _ => None,
        };
        match next {
            Some(next) => value = next,
            None => return Ok(default.clone()),
        }
    }
    Ok(value)
}

/// `hasAnnotation`: whether an object's annotation has this value, compared as printed.
pub fn has_annotation(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let key = take_text(&arguments[1])?;
    let field = |value: Option<Value>, name: &str| match value {
        Some(Value::Map(map)) => map.entries.borrow().get(name).cloned(),
        _ => None,
    };
    let annotations = field(field(Some(arguments[0].clone()), "metadata"), "annotations");
    Ok(Value::Bool(match field(annotations, key) {
        Some(found) => printed(&found, &context.budget)? == printed(&arguments[2], &context.budget)?,
        None => false,
    }))
}
