//! Sets one key in the text of a YAML document. Only the lines of that key change. Text that this cannot edit is refused, or the
//! result reads differently, which the caller checks.

use serde_json::Value;
use std::fmt::Write;

/// The text with the key set to a value.
pub(super) fn set(text: &str, path: &[String], value: &Value) -> Result<String, String> {
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let all = Block { first: 0, end: lines.len(), indent: None };
    Editor { lines: &mut lines, newline }.set(all, path, 0, value)?;
    Ok(lines.concat())
}

/// The lines of a map, and how far its keys are indented, if it has any.
#[derive(Clone, Copy)]
struct Block {
    first: usize,
    end: usize,
    indent: Option<usize>,
}

struct Editor<'a> {
    lines: &'a mut Vec<String>,
    newline: &'a str,
}

impl Editor<'_> {
    /// Sets a key in the map of this block, whose keys are at least so far indented.
    fn set(&mut self, block: Block, path: &[String], least: usize, value: &Value) -> Result<(), String> {
        let Some((key, rest)) = path.split_first() else { return Ok(()) };
        let block = self.with_indent(block, least)?;
        // Two more than the key above, where there is one.
        let indent = block.indent.unwrap_or(if least == 0 { 0 } else { least + 1 });
        let Some((first, end)) = self.find(block, indent, key) else {
            let text = written(path, value, indent, self.newline);
            self.insert(block, text);
            return Ok(());
        };
        if rest.is_empty() {
            return self.replace(first, end, indent, value);
        }
        match self.inline(first)?.as_str() {
            "" => {
                let below = Block { first: first + 1, end, indent: None };
                self.set(below, rest, indent + 1, value)
            }
            // Nothing yet.
            "{}" | "null" | "~" => {
                self.cut_inline(first)?;
                let below = Block { first: first + 1, end, indent: None };
                self.set(below, rest, indent + 1, value)
            }
            _ => Err(format!("the value of {key:?} is not written as a block of keys")),
        }
    }

    /// The indentation of the keys of a block: that of its first line with content.
    fn with_indent(&self, block: Block, least: usize) -> Result<Block, String> {
        for line in &self.lines[block.first..block.end] {
            if is_content(line) {
                let indent = indent_of(line);
                if line.trim_start().starts_with(['{', '[', '&', '*', '!', '?', '|', '>', '%']) || indent < least {
                    return Err("it is not written as a block of keys".to_owned());
                }
                return Ok(Block { indent: Some(indent), ..block });
            }
        }
        Ok(block)
    }

    /// The lines of a key and its value: up to the next key, without the comments and empty lines before that.
    fn find(&self, block: Block, indent: usize, key: &str) -> Option<(usize, usize)> {
        let is_key = |line: &String| is_content(line) && indent_of(line) == indent && !is_item(line);
        let first = (block.first..block.end)
            .find(|number| is_key(&self.lines[*number]) && key_of(&self.lines[*number]) == Some(key))?;
        let next = (first + 1..block.end).find(|number| is_key(&self.lines[*number])).unwrap_or(block.end);
        Some((first, self.last_content(first, next).unwrap_or(first) + 1))
    }

    /// The last of these lines that is neither empty nor a comment. In a block of text nothing is a comment.
    fn last_content(&self, first: usize, end: usize) -> Option<usize> {
        let mut last = None;
        let mut text: Option<TextBlock> = None;
        for (number, line) in self.lines.iter().enumerate().take(end).skip(first) {
            if let Some(TextBlock { indent, keeps_empty }) = text {
                let is_empty = line.trim().is_empty();
                if is_empty || indent_of(line) > indent {
                    last = if is_empty && !keeps_empty { last } else { Some(number) };
                    continue;
                }
                text = None;
            }
            if is_content(line) {
                (last, text) = (Some(number), TextBlock::after(line));
            }
        }
        last
    }

    /// What follows the colon of a key, without a comment.
    fn inline(&self, number: usize) -> Result<String, String> {
        let line = &self.lines[number];
        let (start, end) = value_of(line).ok_or("a key is written in an unusual way")?;
        Ok(line[start..end].to_owned())
    }

    fn cut_inline(&mut self, number: usize) -> Result<(), String> {
        let (start, end) = value_of(&self.lines[number]).ok_or("a key is written in an unusual way")?;
        let start = self.lines[number][..start].trim_end().len();
        self.lines[number].replace_range(start..end, "");
        Ok(())
    }

    /// Replaces the value of a key; a comment behind it stays.
    fn replace(&mut self, first: usize, end: usize, indent: usize, value: &Value) -> Result<(), String> {
        let inline = self.inline(first)?;
        if inline.starts_with(['&', '*', '!']) {
            return Err("a value has an anchor or a tag".to_owned());
        }
        let below = &self.lines[first + 1..end];
        let is_text = inline.starts_with(['|', '>']);
        // Less indented than the text, it is a comment.
        let text_indent = below.iter().find(|line| !line.trim().is_empty()).map_or(0, |line| indent_of(line));
        let has_comment = |line: &String| match is_text {
            true => !line.trim().is_empty() && indent_of(line) < text_indent,
            false => comment_in(line).is_some(),
        };
        if below.iter().any(has_comment) {
            return Err("there are comments inside of a value".to_owned());
        }
        self.cut_inline(first)?;
        self.lines.drain(first + 1..end);
        let (start, _) = value_of(&self.lines[first]).ok_or("a key is written in an unusual way")?;
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                let below: String = fields
                    .iter()
                    .map(|(key, value)| written(std::slice::from_ref(key), value, indent + 2, self.newline))
                    .collect();
                self.insert(Block { first: first + 1, end: first + 1, indent: None }, below);
            }
            value => self.lines[first].insert_str(start, &format!(" {value}")),
        }
        Ok(())
    }

    /// Inserts lines behind the last line of a block that is neither empty nor a comment.
    fn insert(&mut self, block: Block, text: String) {
        // A map without keys yet ends at the top behind the comments, and below a key right behind it.
        let at = self.last_content(block.first, block.end).map_or(block.end, |last| last + 1);
        if let Some(before) = at.checked_sub(1).and_then(|before| self.lines.get_mut(before))
            && !before.ends_with('\n')
        {
            before.push_str(self.newline);
        }
        self.lines.insert(at, text);
    }
}

/// The lines of a key with its value.
fn written(path: &[String], value: &Value, indent: usize, newline: &str) -> String {
    let mut text = String::new();
    let Some((key, rest)) = path.split_first() else { return text };
    let key = if is_plain(key) { key.clone() } else { Value::from(key.as_str()).to_string() };
    let _ = write!(text, "{:indent$}{key}:", "");
    match value {
        _ if !rest.is_empty() => {
            text.push_str(newline);
            text.push_str(&written(rest, value, indent + 2, newline));
        }
        Value::Object(fields) if !fields.is_empty() => {
            text.push_str(newline);
            for (key, value) in fields {
                text.push_str(&written(std::slice::from_ref(key), value, indent + 2, newline));
            }
        }
        // JSON is YAML, too.
        value => {
            let _ = write!(text, " {value}{newline}");
        }
    }
    text
}

/// Whether a key needs no quotes.
fn is_plain(key: &str) -> bool {
    key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.chars().all(|character| character.is_ascii_alphanumeric() || "_-./".contains(character))
        && !["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&key.to_ascii_lowercase().as_str())
}

fn is_content(line: &str) -> bool {
    let text = line.trim();
    !text.is_empty() && !text.starts_with('#') && text != "---"
}

/// A block of text, such as that of `key: |`.
#[derive(Clone, Copy)]
struct TextBlock {
    /// The indentation of the line that it follows; its own lines are further indented.
    indent: usize,
    /// Whether empty lines at its end are part of it.
    keeps_empty: bool,
}

impl TextBlock {
    /// The one that follows a line, if the line announces one.
    fn after(line: &str) -> Option<TextBlock> {
        let text = line[..comment_in(line).unwrap_or(line.len())].trim_end();
        let word = text.rsplit(char::is_whitespace).next()?;
        let how = word.strip_prefix(['|', '>'])?;
        let is_header = how.chars().all(|character| character.is_ascii_digit() || "+-".contains(character));
        is_header.then(|| TextBlock { indent: indent_of(line), keeps_empty: how.contains('+') })
    }
}

/// Where a comment begins, if what is before it is not quoted.
fn comment_in(line: &str) -> Option<usize> {
    let mut before = ' ';
    line.char_indices().find_map(|(at, character)| {
        let is_comment = character == '#' && before.is_whitespace();
        before = character;
        is_comment.then_some(at)
    })
}

/// The length of a quoted text with its quotes, at the beginning of this text.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next()?;
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        let is_doubled = quote == '\'' && character == quote && characters.peek().is_some_and(|next| next.1 == quote);
        if is_doubled || (quote == '"' && character == '\\') {
            characters.next();
        } else if character == quote {
            return Some(at + 1);
        }
    }
    None
}

/// Where the colon behind a key is.
fn colon(text: &str) -> Option<usize> {
    let ends_key = |at: &usize| text[at + 1..].chars().next().is_none_or(char::is_whitespace);
    text.match_indices(':').map(|(at, _)| at).find(ends_key)
}

fn is_item(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with("- ") || text.trim_end() == "-"
}

fn indent_of(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// The key of a line such as `key: value`.
fn key_of(line: &str) -> Option<&str> {
    let text = line.trim();
    let quote = text.chars().next().filter(|first| ['"', '\''].contains(first));
    match quote {
        Some(quote) => {
            let (key, rest) = text[1..].split_once(quote)?;
            // An escaped quote or a backslash: not a key that anybody asks for.
            (!key.contains('\\') && rest.trim_start().starts_with(':')).then_some(key)
        }
        None => Some(text[..colon(text)?].trim_end()),
    }
}

/// Where the value behind the colon begins and ends, without a comment; both are behind the colon if there is none.
fn value_of(line: &str) -> Option<(usize, usize)> {
    let text = line.trim_end();
    let indent = indent_of(line);
    let behind_key = match text[indent..].chars().next()? {
        '"' | '\'' => indent + quoted(&text[indent..])?,
        _ => indent,
    };
    let colon = behind_key + colon(&text[behind_key..])?;
    let rest = &text[colon + 1..];
    let start = colon + 1 + (rest.len() - rest.trim_start().len());
    let value = &text[start..];
    if value.is_empty() || value.starts_with('#') {
        return Some((colon + 1, colon + 1));
    }
    let end = match value.chars().next() {
        Some('"' | '\'') => start + quoted(value)?,
        _ => comment_in(value).map_or(text.len(), |comment| start + value[..comment].trim_end().len()),
    };
    Some((start, end))
}
