//! Writes YAML byte for byte as `sigs.k8s.io/yaml` does: the text ends up in objects, where a different quote is drift.
//!
//! The rules for line breaks and quotes are those of libyaml's emitter, of which Go's is a port.

use super::resolve;
use super::scalar::{ScalarStyles, escaped, is_break, is_printable};
use crate::template::budget::{DEPTH, RenderBudget, Text};
use crate::template::print::{float, json_float, too_deep};
use crate::template::value::Value;
use std::cmp::Ordering;
use std::rc::Rc;

/// A line is broken at the first space beyond this column.
const WIDTH: usize = 80;
/// The additional indentation of a nested block.
const STEP: usize = 2;
/// A longer key is written with `?` before it.
const KEY_BYTES: usize = 128;

/// A value as a YAML document, with a final line break.
pub fn written(value: &Value, budget: &RenderBudget) -> Result<String, String> {
    let mut writer = Writer { out: Text::new(budget), indent: None, column: 0, after_space: true, at_indent: true };
    writer.node(value, false, 0)?;
    writer.go_to_indent()?;
    Ok(writer.out.finish())
}

struct Writer<'a> {
    out: Text<'a>,
    /// The indentation of the current block; `None` outside of any block.
    indent: Option<usize>,
    column: usize,
    /// Whether the last character was white space.
    after_space: bool,
    /// Whether the current line has only indentation and dashes.
    at_indent: bool,
}

impl Writer<'_> {
    fn put(&mut self, text: &str) -> Result<(), String> {
        self.column += text.chars().count();
        self.out.push(text)
    }

    fn put_character(&mut self, character: char) -> Result<(), String> {
        self.column += 1;
        self.out.push(character.encode_utf8(&mut [0; 4]))
    }

    fn put_break(&mut self, character: char) -> Result<(), String> {
        self.column = 0;
        self.out.push(character.encode_utf8(&mut [0; 4]))
    }

    /// Moves to the indentation of the current block, on a new line if this one is used.
    fn go_to_indent(&mut self) -> Result<(), String> {
        let indent = self.indent.unwrap_or(0);
        if !self.at_indent || self.column > indent || (self.column == indent && !self.after_space) {
            self.put_break('\n')?;
        }
        let missing = indent.saturating_sub(self.column);
        self.put(&" ".repeat(missing))?;
        self.after_space = true;
        self.at_indent = true;
        Ok(())
    }

    fn mark(&mut self, mark: &str, needs_space: bool, keeps_indent: bool) -> Result<(), String> {
        if needs_space && !self.after_space {
            self.put(" ")?;
        }
        self.put(mark)?;
        self.after_space = false;
        self.at_indent = self.at_indent && keeps_indent;
        Ok(())
    }

    fn node(&mut self, value: &Value, in_map: bool, depth: usize) -> Result<(), String> {
        self.out.budget().step(1)?;
        if depth >= DEPTH {
            return Err(too_deep());
        }
        let outer = self.indent;
        match value {
            Value::List(list) if !list.0.is_empty() => {
                // A list has the indentation of its key.
                let is_below_key = in_map && !self.at_indent;
                self.indent = Some(outer.map_or(0, |indent| if is_below_key { indent } else { indent + STEP }));
                for item in &list.0 {
                    self.go_to_indent()?;
                    self.mark("-", true, true)?;
                    self.node(item, false, depth + 1)?;
                }
            }
            Value::Map(map) if !map.entries.borrow().is_empty() => {
                self.indent = Some(outer.map_or(0, |indent| indent + STEP));
                let entries = map.entries.borrow();
                for key in sorted(&entries.keys().collect::<Vec<_>>()) {
                    self.key(key)?;
                    if let Some(item) = entries.get(key) {
                        self.node(item, true, depth + 1)?;
                    }
                }
            }
            scalar => self.scalar(scalar)?,
        }
        self.indent = outer;
        Ok(())
    }

    fn key(&mut self, key: &str) -> Result<(), String> {
        self.go_to_indent()?;
        if !ScalarStyles::of(key).has_breaks && key.len() <= KEY_BYTES {
            self.text(key, true)?;
            return self.mark(":", false, false);
        }
        self.mark("?", true, true)?;
        self.text(key, false)?;
        self.go_to_indent()?;
        self.mark(":", true, true)
    }

    fn scalar(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::Text(text) => self.text(text, false),
            Value::Nil => self.word("null"),
            Value::Bool(truth) => self.word(if *truth { "true" } else { "false" }),
            Value::Int(number) => self.word(&number.to_string()),
            Value::Float(number) if number.is_finite() => {
                // Go converts through JSON, where a whole number has neither point nor exponent.
                let json = json_float(*number);
                let signed = json.parse::<i64>().map(|whole| whole.to_string());
                let whole = signed.or_else(|_| json.parse::<u64>().map(|whole| whole.to_string()));
                self.word(&whole.unwrap_or_else(|_| float(*number)))
            }
            Value::Float(_) => Err("JSON has no such number".into()),
            Value::Bytes(_) => Err("bytes are not text: pass them through b64enc".into()),
            Value::List(_) => self.mark("[]", true, false),
            Value::Map(_) => self.mark("{}", true, false),
        }
    }

    fn word(&mut self, word: &str) -> Result<(), String> {
        self.mark(word, true, false)
    }

    fn text(&mut self, text: &str, is_key: bool) -> Result<(), String> {
        let styles = ScalarStyles::of(text);
        let outer = self.indent;
        self.indent = Some(outer.map_or(STEP, |indent| indent + STEP));
        if text.contains('\n') && styles.allows_block && !is_key {
            self.literal(text)?;
        } else if text.contains('\n') || !resolve::is_text(text) {
            self.double(text, is_key)?;
        } else if styles.allows_plain {
            self.plain(text, is_key)?;
        } else if styles.allows_single {
            self.single(text, is_key)?;
        } else {
            self.double(text, is_key)?;
        }
        self.indent = outer;
        Ok(())
    }

    fn plain(&mut self, text: &str, is_key: bool) -> Result<(), String> {
        if !self.after_space {
            self.put(" ")?;
        }
        self.folded(text, is_key, false)
    }

    fn single(&mut self, text: &str, is_key: bool) -> Result<(), String> {
        self.mark("'", true, false)?;
        self.folded(text, is_key, true)?;
        self.mark("'", false, false)
    }

    /// Text whose long lines are folded at spaces.
    fn folded(&mut self, text: &str, is_key: bool, is_quoted: bool) -> Result<(), String> {
        let mut after_space = false;
        let mut after_break = false;
        let mut characters = text.char_indices().peekable();
        while let Some((position, character)) = characters.next() {
            if character == ' ' {
                let next = characters.peek().map(|(_, next)| *next);
                let is_inside = !is_quoted || (position > 0 && next.is_some());
                if !is_key && !after_space && self.column > WIDTH && is_inside && next != Some(' ') {
                    self.go_to_indent()?;
                } else {
                    self.put(" ")?;
                }
                after_space = true;
            } else if is_break(character) {
                self.put_break(character)?;
                self.at_indent = true;
                after_break = true;
            } else {
                if after_break {
                    self.go_to_indent()?;
                }
                if character == '\'' && is_quoted {
                    self.put("'")?;
                }
                self.put_character(character)?;
                self.at_indent = false;
                after_space = false;
                after_break = false;
            }
        }
        self.after_space = false;
        self.at_indent = false;
        Ok(())
    }

    fn double(&mut self, text: &str, is_key: bool) -> Result<(), String> {
        self.mark("\"", true, false)?;
        let begins_with_mark = text.starts_with('\u{feff}');
        let mut after_space = false;
        let mut characters = text.char_indices().peekable();
        while let Some((position, character)) = characters.next() {
            if !is_printable(character) || begins_with_mark || is_break(character) || matches!(character, '"' | '\\') {
                self.put(&escaped(character))?;
                after_space = false;
            } else if character == ' ' {
                let next = characters.peek().map(|(_, next)| *next);
                if !is_key && !after_space && self.column > WIDTH && position > 0 && next.is_some() {
                    self.go_to_indent()?;
                    if next == Some(' ') {
                        self.put("\\")?;
                    }
                } else {
                    self.put(" ")?;
                }
                after_space = true;
            } else {
                self.put_character(character)?;
                after_space = false;
            }
        }
        self.mark("\"", false, false)
    }

    fn literal(&mut self, text: &str) -> Result<(), String> {
        self.mark("|", true, false)?;
        if text.starts_with(|first| first == ' ' || is_break(first)) {
            self.mark(&STEP.to_string(), false, false)?;
        }
        let mut backwards = text.chars().rev();
        match (backwards.next(), backwards.next()) {
            // Nothing but a line break.
            (Some(_), None) => self.mark("+", false, false)?,
            (Some(last), Some(before)) if is_break(last) && is_break(before) => self.mark("+", false, false)?,
            (Some(last), _) if is_break(last) => {}
            _ => self.mark("-", false, false)?,
        }
        self.put_break('\n')?;
        self.at_indent = true;
        self.after_space = true;
        let mut after_break = true;
        for character in text.chars() {
            if is_break(character) {
                self.put_break(character)?;
                self.at_indent = true;
                after_break = true;
            } else {
                if after_break {
                    self.go_to_indent()?;
                }
                self.put_character(character)?;
                self.at_indent = false;
                after_break = false;
            }
        }
        Ok(())
    }
}

/// Sorts keys in Go's order. That order contradicts itself for some keys, for which `sort_by` would panic.
fn sorted<'a>(keys: &[&'a Rc<str>]) -> Vec<&'a Rc<str>> {
    if keys.len() < 2 {
        return keys.to_vec();
    }
    let (left, right) = keys.split_at(keys.len() / 2);
    let (mut left, mut right) = (sorted(left).into_iter().peekable(), sorted(right).into_iter().peekable());
    let mut merged = Vec::with_capacity(keys.len());
    loop {
        let next = match (left.peek(), right.peek()) {
            (Some(one), Some(other)) if natural(one, other).is_gt() => right.next(),
            (Some(_), _) => left.next(),
            (None, _) => right.next(),
        };
        match next {
            Some(key) => merged.push(key),
            None => return merged,
        }
    }
}

/// Go's order of keys: letters come last, and numbers within keys are compared by value (`a2` before `a10`).
fn natural(left: &str, right: &str) -> Ordering {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let Some(position) = left.iter().zip(&right).position(|(left, right)| left != right) else {
        return left.len().cmp(&right.len());
    };
    let (from_left, from_right) = (left[position], right[position]);
    match (from_left.is_alphabetic(), from_right.is_alphabetic()) {
        (true, true) => return from_left.cmp(&from_right),
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    // In `a10` and `a1b`, the number begins before the first difference.
    let mut start = 0;
    if from_left == '0' || from_right == '0' {
        let before = left[..position].iter().rev().take_while(|character| character.is_ascii_digit());
        start = i64::from(before.into_iter().any(|digit| *digit != '0'));
    }
    let number = |characters: &[char]| {
        let digits = characters[position..].iter().take_while(|character| character.is_ascii_digit());
        digits.fold((start, 0), |(number, length), digit| {
            let digit = i64::from(u32::from(*digit) - u32::from('0'));
            (number.wrapping_mul(10).wrapping_add(digit), length + 1)
        })
    };
    number(&left).cmp(&number(&right)).then(from_left.cmp(&from_right))
}
