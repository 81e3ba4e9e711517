//! Functions on text as in sprig, with its order of arguments.

use super::argument::{as_text, int, text as take};
use super::list::texts;
use crate::template::print::{printed, quoted};
use crate::template::run::{RenderContext, Stop};
use crate::template::value::Value;

/// `cat`: all arguments, separated by spaces.
pub fn cat(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let present = arguments.iter().filter(|argument| !matches!(argument, Value::Nil));
    let words = present.map(|argument| printed(argument, &context.budget)).collect::<Result<Vec<_>, _>>()?;
    Ok(Value::text(words.join(" ")))
}

/// `quote`: each argument in double quotes.
pub fn quote(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut words = Vec::new();
    for argument in arguments.iter().filter(|argument| !matches!(argument, Value::Nil)) {
        words.push(quoted(&as_text(argument, &context.budget)?));
    }
    Ok(Value::text(words.join(" ")))
}

/// `squote`: each argument in single quotes, without escapes.
pub fn squote(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut words = Vec::new();
    for argument in arguments.iter().filter(|argument| !matches!(argument, Value::Nil)) {
        words.push(format!("'{}'", printed(argument, &context.budget)?));
    }
    Ok(Value::text(words.join(" ")))
}

/// `trim`.
pub fn trim(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(take(&arguments[0])?.trim()))
}

/// `trimAll`: without these characters at both ends.
pub fn trim_all(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let characters = take(&arguments[0])?;
    Ok(Value::text(take(&arguments[1])?.trim_matches(|character| characters.contains(character))))
}

/// `trimPrefix`.
pub fn trim_prefix(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (prefix, text) = (take(&arguments[0])?, take(&arguments[1])?);
    Ok(Value::text(text.strip_prefix(prefix).unwrap_or(text)))
}

/// `trimSuffix`.
pub fn trim_suffix(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (suffix, text) = (take(&arguments[0])?, take(&arguments[1])?);
    Ok(Value::text(text.strip_suffix(suffix).unwrap_or(text)))
}

/// `contains`.
pub fn contains(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (part, text) = (take(&arguments[0])?, take(&arguments[1])?);
    Ok(Value::Bool(text.contains(part)))
}

/// `hasPrefix`.
pub fn has_prefix(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (prefix, text) = (take(&arguments[0])?, take(&arguments[1])?);
    Ok(Value::Bool(text.starts_with(prefix)))
}

/// `hasSuffix`.
pub fn has_suffix(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (suffix, text) = (take(&arguments[0])?, take(&arguments[1])?);
    Ok(Value::Bool(text.ends_with(suffix)))
}

/// `nospace`: without white space. Unlike sprig, it does not corrupt characters beyond ASCII.
pub fn nospace(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let kept: String = take(&arguments[0])?.chars().filter(|character| !character.is_whitespace()).collect();
    Ok(Value::text(kept))
}

/// `repeat`.
pub fn repeat(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (count, text) = (int(&arguments[0])?, take(&arguments[1])?);
    let count = usize::try_from(count).map_err(|_| format!("cannot repeat {count} times"))?;
    context.budget.text(count.saturating_mul(text.len()))?;
    Ok(Value::text(text.repeat(if text.is_empty() { 0 } else { count })))
}

/// `replace`: replaces the first argument with the second in the third.
pub fn replace(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (old, new, text) = (take(&arguments[0])?, take(&arguments[1])?, take(&arguments[2])?);
    let places = text.matches(old).count();
    context.budget.text(text.len().saturating_add(places.saturating_mul(new.len())))?;
    Ok(Value::text(text.replace(old, new)))
}

/// `plural`: the first argument for one, otherwise the second.
pub fn plural(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (one, many) = (take(&arguments[0])?, take(&arguments[1])?);
    Ok(Value::text(if int(&arguments[2])? == 1 { one } else { many }))
}

/// `indent`: indents every line, including the first, by this many spaces.
pub fn indent(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(indented("", context, arguments)?))
}

/// `nindent`: `indent` after a line break.
pub fn nindent(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(indented("\n", context, arguments)?))
}

fn indented(before: &str, context: &RenderContext<'_>, arguments: &[Value]) -> Result<String, Stop> {
    let (spaces, text) = (int(&arguments[0])?, take(&arguments[1])?);
    let spaces = usize::try_from(spaces).map_err(|_| format!("cannot indent by {spaces} spaces"))?;
    let lines = text.matches('\n').count() + 1;
    context.budget.text(text.len().saturating_add(lines.saturating_mul(spaces)))?;
    let pad = " ".repeat(spaces);
    Ok(format!("{before}{pad}{}", text.replace('\n', &format!("\n{pad}"))))
}

/// `substr`: the text between two bytes; it never splits a character.
pub fn substr(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (start, end, text) = (int(&arguments[0])?, int(&arguments[1])?, take(&arguments[2])?);
    let position = |number: i64| usize::try_from(number).ok();
    let part = if start < 0 {
        position(end).and_then(|end| text.get(..end))
    } else if end < 0 || position(end).is_none_or(|end| end > text.len()) {
        position(start).and_then(|start| text.get(start..))
    } else {
        position(start).zip(position(end)).and_then(|(start, end)| text.get(start..end))
    };
    match part {
        Some(part) => Ok(Value::text(part)),
        None => Err(format!("{start} to {end} is out of range of the text, or splits a character").into()),
    }
}

/// `splitList`.
pub fn split_list(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let (separator, text) = (take(&arguments[0])?, take(&arguments[1])?);
    if separator.is_empty() {
        context.budget.items(text.chars().count())?;
        return Ok(Value::texts(text.chars().map(String::from)));
    }
    context.budget.items(text.matches(separator).count() + 1)?;
    Ok(Value::texts(text.split(separator)))
}

/// `join`.
pub fn join(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let separator = take(&arguments[0])?;
    let words = texts(&arguments[1], &context.budget)?;
    let characters: usize = words.iter().map(|word| word.len()).sum();
    context.budget.text(characters.saturating_add(words.len().saturating_mul(separator.len())))?;
    Ok(Value::text(words.join(separator)))
}

/// `toStrings`.
pub fn to_strings(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::texts(texts(&arguments[0], &context.budget)?))
}

/// `wrap`: lines of about this many bytes, broken only at spaces.
pub fn wrap(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    wrapped(context, int(&arguments[0])?, "\n", take(&arguments[1])?, false)
}

/// `wrapWith`: lines of at most this many bytes, joined with this separator; long words are broken.
pub fn wrap_with(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let between = take(&arguments[1])?;
    let between = if between.is_empty() { "\n" } else { between };
    wrapped(context, int(&arguments[0])?, between, take(&arguments[2])?, true)
}

fn wrapped(
    context: &RenderContext<'_>,
    width: i64,
    between: &str,
    text: &str,
    breaks_words: bool,
) -> Result<Value, Stop> {
    let width = usize::try_from(width.max(1)).unwrap_or(usize::MAX);
    let bytes = text.as_bytes();
    context.budget.text(text.len().saturating_add((text.len() / width + 1).saturating_mul(between.len())))?;
    let mut out = crate::template::budget::Text::new(&context.budget);
    let cut = |start: usize, end: usize| text.get(start..end).ok_or("a character would be split".to_owned());
    let mut at = 0;
    while bytes.len() - at > width {
        if bytes[at] == b' ' {
            at += 1;
            continue;
        }
        let end = if let Some(space) = bytes[at..=at + width].iter().rposition(|byte| *byte == b' ') {
            at + space
        } else if breaks_words {
            out.push(cut(at, at + width)?)?;
            out.push(between)?;
            at += width;
            continue;
        } else if let Some(space) = bytes[at + width..].iter().position(|byte| *byte == b' ') {
            at + width + space
        } else {
            break;
        };
        out.push(cut(at, end)?)?;
        out.push(between)?;
        at = end + 1;
    }
    out.push(cut(at, text.len())?)?;
    Ok(Value::text(out.finish()))
}
