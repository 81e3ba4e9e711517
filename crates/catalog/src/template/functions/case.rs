//! Upper and lower case, letter by letter as Go maps them, and names in other styles of writing.

use super::argument::text as take;
use crate::template::run::{Stop, World};
use crate::template::value::Value;

/// `upper`.
pub fn upper(_: &World<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(take(&arguments[0])?.chars().map(to_upper).collect::<String>()))
}

/// `lower`.
pub fn lower(_: &World<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(take(&arguments[0])?.chars().map(to_lower).collect::<String>()))
}

/// `title`: every word begins with a capital.
pub fn title(_: &World<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut before = ' ';
    let titled: String = take(&arguments[0])?
        .chars()
        .map(|letter| {
            let begins = is_separator(before);
            before = letter;
            if begins { to_title(letter) } else { letter }
        })
        .collect();
    Ok(Value::text(titled))
}

/// `untitle`: every word begins without a capital.
pub fn untitle(_: &World<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut begins = true;
    let untitled: String = take(&arguments[0])?
        .chars()
        .map(|letter| {
            if letter.is_whitespace() {
                begins = true;
                return letter;
            }
            if std::mem::take(&mut begins) { to_lower(letter) } else { letter }
        })
        .collect();
    Ok(Value::text(untitled))
}

/// `snakecase`: `first_name`.
pub fn snake(_: &World<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(connected(take(&arguments[0])?, '_')))
}

/// `kebabcase`: `first-name`.
pub fn kebab(_: &World<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(connected(take(&arguments[0])?, '-')))
}

/// `camelcase`: `FirstName`.
pub fn camel(_: &World<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(camelled(take(&arguments[0])?)))
}

/// Go maps one letter to one letter: what Unicode would make two of stays, but for the Greek letters with an iota.
fn to_upper(letter: char) -> char {
    let code = u32::from(letter);
    let mut mapped = letter.to_uppercase();
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ => match code {
            0x1f80..=0x1faf => char::from_u32(code | 8).unwrap_or(letter),
            0x1fb3 | 0x1fc3 | 0x1ff3 => char::from_u32(code + 9).unwrap_or(letter),
            _ => letter,
        },
    }
}

fn to_lower(letter: char) -> char {
    let mut mapped = letter.to_lowercase();
    match (mapped.next(), mapped.next()) {
        (Some(only), None) => only,
        _ if letter == 'İ' => 'i',
        _ => letter,
    }
}

/// Title case is upper case, but for four digraphs, and for Georgian, which has none.
fn to_title(letter: char) -> char {
    match letter {
        'Ǆ'..='ǆ' => 'ǅ',
        'Ǉ'..='ǉ' => 'ǈ',
        'Ǌ'..='ǌ' => 'ǋ',
        'Ǳ'..='ǳ' => 'ǲ',
        'ა'..='ჿ' => letter,
        letter => to_upper(letter),
    }
}

fn is_separator(letter: char) -> bool {
    if letter.is_ascii() {
        return !letter.is_ascii_alphanumeric() && letter != '_';
    }
    !letter.is_alphanumeric() && letter.is_whitespace()
}

fn is_connector(letter: char) -> bool {
    matches!(letter, '-' | '_') || letter.is_whitespace()
}

/// ASCII punctuation by Unicode's classes, which do not count `$+<=>^`|~`, and what Latin-1 and the general block have.
fn is_punctuation(letter: char) -> bool {
    match letter {
        '$' | '+' | '<' | '=' | '>' | '^' | '`' | '|' | '~' => false,
        '¡' | '§' | '«' | '¶' | '·' | '»' | '¿' => true,
        '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' => !matches!(letter, '\u{2044}' | '\u{2052}'),
        '\u{3001}'..='\u{3003}' | '\u{3008}'..='\u{3011}' => true,
        letter => letter.is_ascii_punctuation(),
    }
}

/// Letters of scripts that have words; Chinese characters are words of their own.
fn is_letter(letter: char) -> bool {
    letter.is_alphabetic()
        && !matches!(letter, '\u{4e00}'..='\u{9fcc}' | '\u{3400}'..='\u{4db5}' | '\u{20000}'..='\u{2b81d}')
}

fn camelled(text: &str) -> String {
    let start = text.find(|letter| !is_connector(letter)).unwrap_or(text.len());
    let mut out = text[..start].to_owned();
    let mut letters = text[start..].chars();
    let Some(first) = letters.next() else {
        // Only connectors: xstrings writes the last of them twice.
        out.extend(text.chars().next_back());
        return out;
    };
    let mut first_was_upper = first.is_uppercase();
    let mut current = to_upper(first);
    for next in letters {
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

/// The first word of a text and its kind.
fn next_word(text: &str) -> (Word, &str, &str) {
    let mut letters = text.chars();
    let Some(first) = letters.next() else { return (Word::None, "", "") };
    let take_while = |so_far: usize, belongs: &dyn Fn(char) -> bool| {
        let more: usize = text[so_far..].chars().take_while(|letter| belongs(*letter)).map(char::len_utf8).sum();
        so_far + more
    };
    let size = first.len_utf8();
    let (word, end) = if is_connector(first) {
        (Word::Connector, take_while(size, &is_connector))
    } else if is_punctuation(first) {
        (Word::Punctuation, take_while(size, &is_punctuation))
    } else if first.is_uppercase() {
        (Word::Upper, upper_end(text, size))
    } else if is_letter(first) {
        (Word::Letters, take_while(size, &|letter| is_letter(letter) && !letter.is_uppercase()))
    } else if first.is_numeric() {
        (Word::Number, take_while(size, &char::is_numeric))
    } else {
        let ends =
            |letter: char| is_connector(letter) || is_letter(letter) || letter.is_numeric() || is_punctuation(letter);
        (Word::Other, take_while(size, &|letter| !ends(letter)))
    };
    (word, &text[..end], &text[end..])
}

/// Where a word ends that begins with a capital: `HTTPStatus` is `HTTP` and `Status`.
fn upper_end(text: &str, size: usize) -> usize {
    let mut end = size;
    let Some(second) = text[end..].chars().next() else { return end };
    if second.is_uppercase() {
        let mut last = 0;
        for letter in text[end..].chars().take_while(|letter| letter.is_uppercase()) {
            last = letter.len_utf8();
            end += last;
        }
        if text[end..].chars().next().is_some_and(is_letter) {
            end -= last;
        }
    } else if is_letter(second) {
        let rest = text[end..].chars().take_while(|letter| is_letter(*letter) && !letter.is_uppercase());
        end += rest.map(char::len_utf8).sum::<usize>();
    }
    end
}

fn write_lower(out: &mut String, word: Word, text: &str, connector: char) {
    if !matches!(word, Word::Upper | Word::Connector) {
        out.push_str(text);
        return;
    }
    out.extend(text.chars().map(|letter| if is_connector(letter) { connector } else { to_lower(letter) }));
}

/// The rules of `xstrings`, step by step, because its exceptions are what people rely on.
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
                // A number belongs to the word before it, unless small letters follow: `bld4_floor`, `http_2xx`.
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
