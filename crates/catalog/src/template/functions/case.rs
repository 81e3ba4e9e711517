//! Upper and lower case as in Go, character by character, and conversions such as snake case.

use super::argument::text as take;
use crate::template::run::{RenderContext, Stop};
use crate::template::value::Value;

/// `upper`.
pub fn upper(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(take(&arguments[0])?.chars().map(to_upper).collect::<String>()))
}

/// `lower`.
pub fn lower(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(take(&arguments[0])?.chars().map(to_lower).collect::<String>()))
}

/// `title`: every word begins with an upper-case letter.
pub fn title(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut before = ' ';
    let titled: String = take(&arguments[0])?
        .chars()
        .map(|character| {
            let begins = is_separator(before);
            before = character;
            if begins { to_title(character) } else { character }
        })
        .collect();
    Ok(Value::text(titled))
}

/// `untitle`: every word begins with a lower-case letter.
pub fn untitle(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut begins = true;
    let untitled: String = take(&arguments[0])?
        .chars()
        .map(|character| {
            if character.is_whitespace() {
                begins = true;
                return character;
            }
            if std::mem::take(&mut begins) { to_lower(character) } else { character }
        })
        .collect();
    Ok(Value::text(untitled))
}

/// `snakecase`: `first_name`.
pub fn snake(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(connected(take(&arguments[0])?, '_')))
}

/// `kebabcase`: `first-name`.
pub fn kebab(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(connected(take(&arguments[0])?, '-')))
}

/// `camelcase`: `FirstName`.
pub fn camel(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(camelled(take(&arguments[0])?)))
}

/// Go maps one character to one character; those that Unicode maps to two stay unchanged, except Greek letters with an iota.
fn to_upper(character: char) -> char {
    let code = u32::from(character);
    let mut mapped = character.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => match code {
            0x1f80..=0x1faf => char::from_u32(code | 8).unwrap_or(character),
            0x1fb3 | 0x1fc3 | 0x1ff3 => char::from_u32(code + 9).unwrap_or(character),
            _ => character,
        },
    }
}

fn to_lower(character: char) -> char {
    let mut mapped = character.to_lowercase();
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ if character == 'İ' => 'i',
        _ => character,
    }
}

/// Title case equals upper case, except for four digraphs and for Georgian, which has no title case.
fn to_title(character: char) -> char {
    match character {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        'ა'..='ჿ' => character,
        character => to_upper(character),
    }
}

fn is_separator(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_alphanumeric() && character != '_';
    }
    !character.is_alphanumeric() && character.is_whitespace()
}

fn is_connector(character: char) -> bool {
    matches!(character, '-' | '_') || character.is_whitespace()
}

/// Punctuation by Unicode's classes, which exclude `$+<=>^`|~`, in ASCII, Latin-1 and the general punctuation block.
fn is_punctuation(character: char) -> bool {
    match character {
        '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~' => false,
        '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' => true,
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' => !matches!(character, '\u{2044}' | '\u{2052}'),
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' => true,
        character => character.is_ascii_punctuation(),
    }
}

/// Letters of scripts that have words; each Chinese character is a word of its own.
fn is_word_character(character: char) -> bool {
    character.is_alphabetic()
        && !matches!(character, '\u{4e00}'..='\u{9fcc}' | '\u{3400}'..='\u{4db5}' | '\u{20000}'..='\u{2b81d}')
}

fn camelled(text: &str) -> String {
    let start = text.find(|character| !is_connector(character)).unwrap_or(text.len());
    let mut out = text[..start].to_owned();
    let mut characters = text[start..].chars();
    let Some(first) = characters.next() else {
        // For a text of only connectors, xstrings repeats the last one.
        out.extend(text.chars().next_back());
        return out;
    };
    let mut first_was_upper = first.is_uppercase();
    let mut current = to_upper(first);
    for next in characters {
        let before = std::mem::replace(&mut current, next);
        if is_connector(current) && is_connector(before) {
            out.push(before);
            continue;
        }
        if is_connector(before) {
            first_was_upper = current.is_uppercase();
            current = to_upper(current);
            continue;
        }
        if first_was_upper {
            if current.is_uppercase() {
                current = to_lower(current);
            } else {
                first_was_upper = false;
            }
        }
        out.push(before);
    }
    out.push(current);
    out
}

#[derive(Clone, Copy, PartialEq)]
enum Word {
    None,
    Number,
    Upper,
    Letters,
    Connector,
    Punctuation,
    Other,
}

/// The kind of the first word of a text, the word and the rest.
fn next_word(text: &str) -> (Word, &str, &str) {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return (Word::None, "", "") };
    let take_while = |so_far: usize, belongs: &dyn Fn(char) -> bool| {
        let more: usize = text[so_far..].chars().take_while(|character| belongs(*character)).map(char::len_utf8).sum();
        so_far + more
    };
    let size = first.len_utf8();
    let (word, end) = if is_connector(first) {
        (Word::Connector, take_while(size, &is_connector))
    } else if is_punctuation(first) {
        (Word::Punctuation, take_while(size, &is_punctuation))
    } else if first.is_uppercase() {
        (Word::Upper, upper_end(text, size))
    } else if is_word_character(first) {
        (Word::Letters, take_while(size, &|character| is_word_character(character) && !character.is_uppercase()))
    } else if first.is_numeric() {
        (Word::Number, take_while(size, &char::is_numeric))
    } else {
        let ends = |character: char| {
            is_connector(character)
                || is_word_character(character)
                || character.is_numeric()
                || is_punctuation(character)
        };
        (Word::Other, take_while(size, &|character| !ends(character)))
    };
    (word, &text[..end], &text[end..])
}

/// The end of a word that begins with an upper-case letter: `HTTPStatus` is `HTTP` and `Status`.
fn upper_end(text: &str, size: usize) -> usize {
    let mut end = size;
    let Some(second) = text[end..].chars().next() else { return end };
    if second.is_uppercase() {
        let mut last = 0;
        for character in text[end..].chars().take_while(|character| character.is_uppercase()) {
            last = character.len_utf8();
            end += last;
        }
        if text[end..].chars().next().is_some_and(is_word_character) {
            end -= last;
        }
    } else if is_word_character(second) {
        let rest =
            text[end..].chars().take_while(|character| is_word_character(*character) && !character.is_uppercase());
        end += rest.map(char::len_utf8).sum::<usize>();
    }
    end
}

fn write_lower(out: &mut String, word: Word, text: &str, connector: char) {
    if !matches!(word, Word::Upper | Word::Connector) {
        out.push_str(text);
        return;
    }
    out.extend(text.chars().map(|character| if is_connector(character) { connector } else { to_lower(character) }));
}

/// The rules of `xstrings`, step by step, because users rely on its exceptions.
fn connected(text: &str, connector: char) -> String {
    let mut out = String::new();
    let (mut word, mut part, mut rest) = next_word(text);
    while !rest.is_empty() {
        if word != Word::Connector {
            write_lower(&mut out, word, part, connector);
        }
        let (before, last) = (word, part);
        (word, part, rest) = next_word(rest);
        match before {
            Word::Number => {
                while matches!(word, Word::Letters | Word::Number) {
                    write_lower(&mut out, word, part, connector);
                    (word, part, rest) = next_word(rest);
                }
                if !matches!(word, Word::None | Word::Punctuation | Word::Connector) {
                    out.push(connector);
                }
            }
            Word::Connector => write_lower(&mut out, before, last, connector),
            Word::Punctuation => {}
            Word::None | Word::Upper | Word::Letters | Word::Other => {
                if word != Word::Number {
                    if !matches!(word, Word::Connector | Word::Punctuation) {
                        out.push(connector);
                    }
                    continue;
                }
                if rest.is_empty() {
                    continue;
                }
                let number = part;
                (word, part, rest) = next_word(rest);
                // A number belongs to the preceding word, unless lower-case letters follow: `bld4_floor`, `http_2xx`.
                if word != Word::Letters {
                    write_lower(&mut out, Word::Number, number, connector);
                    if !matches!(word, Word::Connector | Word::Punctuation) {
                        out.push(connector);
                    }
                    continue;
                }
                out.push(connector);
                write_lower(&mut out, Word::Number, number, connector);
                while matches!(word, Word::Letters | Word::Number) {
                    write_lower(&mut out, word, part, connector);
                    (word, part, rest) = next_word(rest);
                }
                if !matches!(word, Word::None | Word::Connector | Word::Punctuation) {
                    out.push(connector);
                }
            }
        }
    }
    write_lower(&mut out, word, part, connector);
    out
}
