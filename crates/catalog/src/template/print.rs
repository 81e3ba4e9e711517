//! Prints values as Go does: `%v`, `%q` and numbers.

use super::budget::{DEPTH, RenderBudget, Text};
use super::value::Value;

/// `fmt.Sprint` of one value.
pub fn printed(value: &Value, budget: &RenderBudget) -> Result<String, String> {
    let mut text = Text::new(budget);
    print(value, &mut text, DEPTH)?;
    Ok(text.finish())
}

fn print(value: &Value, text: &mut Text<'_>, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or_else(too_deep)?;
    text.budget().step(1)?;
    match value {
        Value::Nil => text.push("<nil>"),
        Value::Bool(truth) => text.push(if *truth { "true" } else { "false" }),
        Value::Int(number) => text.push(&number.to_string()),
        Value::Float(number) => text.push(&float(*number)),
        Value::Text(content) => text.push(content),
        Value::Bytes(_) => Err("bytes are not text: pass them through b64enc".into()),
        Value::List(list) => {
            text.push("[")?;
            for (index, item) in list.0.iter().enumerate() {
                if index > 0 {
                    text.push(" ")?;
                }
                print(item, text, depth)?;
            }
            text.push("]")
        }
        Value::Map(map) => {
            text.push("map[")?;
            for (index, (key, item)) in map.entries.borrow().iter().enumerate() {
                if index > 0 {
                    text.push(" ")?;
                }
                text.push(key)?;
                text.push(":")?;
                print(item, text, depth)?;
            }
            text.push("]")
        }
    }
}

/// The message for a value that is nested too deep.
pub fn too_deep() -> String {
    format!("a value nests deeper than {DEPTH}")
}

/// `strconv.FormatFloat` with `'g'` in the shortest form, which is also `%v`; it uses an exponent from a million on.
pub fn float(number: f64) -> String {
    if number.is_nan() {
        return "NaN".into();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    let (sign, digits, exponent) = shortest(number);
    if !(-4..6).contains(&exponent) {
        return with_exponent(sign, &digits, exponent);
    }
    plain(sign, &digits, exponent)
}

/// A float as in Go's JSON; it uses an exponent below a millionth and from ten to the 21st on.
pub fn json_float(number: f64) -> String {
    let (sign, digits, exponent) = shortest(number);
    if !(-6..21).contains(&exponent) {
        // Go shortens `e-09` to `e-9` here, and only here.
        return with_exponent(sign, &digits, exponent).replace("e-0", "e-");
    }
    plain(sign, &digits, exponent)
}

/// The sign, the shortest digits that parse as the same number, and the power of ten of the first digit.
fn shortest(number: f64) -> (&'static str, String, i32) {
    let scientific = format!("{:e}", number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let sign = if number.is_sign_negative() { "-" } else { "" };
    (sign, mantissa.replace('.', ""), exponent.parse().unwrap_or(0))
}

fn with_exponent(sign: &str, digits: &str, exponent: i32) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let direction = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{point}{rest}e{direction}{:02}", exponent.abs())
}

fn plain(sign: &str, digits: &str, exponent: i32) -> String {
    if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = usize::try_from(exponent).unwrap_or(0) + 1;
    if digits.len() <= whole {
        return format!("{sign}{digits}{}", "0".repeat(whole - digits.len()));
    }
    let (whole, fraction) = digits.split_at(whole);
    format!("{sign}{whole}.{fraction}")
}

/// `strconv.Quote`: the text in double quotes, with Go's escapes.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            character if is_printable(character) => out.push(character),
            character => {
                let code = u32::from(character);
                out.push_str(&match code {
                    0..=0x7f => format!("\\x{code:02x}"),
                    0x80..=0xffff => format!("\\u{code:04x}"),
                    _ => format!("\\U{code:08x}"),
                });
            }
        }
    }
    out.push('"');
    out
}

/// Go's `unicode.IsPrint`. Rust leaves the same characters unescaped, except combining marks at the start of a text.
pub fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    let mut buffer = String::from("a");
    buffer.push(character);
    buffer.escape_debug().nth(1) == Some(character)
}

#[cfg(test)]
mod tests {
    use super::{float, json_float, quoted};

    #[test]
    fn floats_are_printed_as_go_prints_them() {
        let cases = [
            (0.0, "0", "0"),
            (1.0, "1", "1"),
            (-2.5, "-2.5", "-2.5"),
            (1e6, "1e+06", "1000000"),
            (123_456_789.0, "1.23456789e+08", "123456789"),
            (0.000_01, "1e-05", "0.00001"),
            (0.000_000_1, "1e-07", "1e-7"),
            (1e21, "1e+21", "1e+21"),
            (0.1 + 0.2, "0.30000000000000004", "0.30000000000000004"),
        ];
        for (number, general, json) in cases {
            assert_eq!(float(number), general);
            assert_eq!(json_float(number), json);
        }
    }

    #[test]
    fn text_is_quoted_as_go_quotes_it() {
        let quoted = quoted("a\"b\\\n\u{1}\u{a0}\u{e9}\u{1f600}e\u{301}\u{ad}");
        assert_eq!(quoted, "\"a\\\"b\\\\\\n\\x01\\u00a0\u{e9}\u{1f600}e\u{301}\\u00ad\"");
    }
}
