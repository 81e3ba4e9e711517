//! Whether Go's YAML parser would read an unquoted word as something other than text.

use crate::template::functions::{parse_float, parse_int};

/// Words that are a boolean, null or a special number.
const WORDS: [&str; 39] = [
    "", "~", "y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON", "n", "N", "no", "No", "NO",
    "false", "False", "FALSE", "off", "Off", "OFF", "null", "Null", "NULL", ".nan", ".NaN", ".NAN", ".inf", ".Inf",
    ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF",
];

/// Whether the unquoted word is text in YAML 1.1.
pub fn is_text(word: &str) -> bool {
    if WORDS.contains(&word) {
        return false;
    }
    match word.as_bytes().first() {
        Some(b'.') => parse_float(word).is_none(),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let plain = word.replace('_', "");
            !(is_timestamp(word) || is_int(&plain) || is_float(&plain) || is_base_60(word))
        }
        _ => true,
    }
}

fn is_int(word: &str) -> bool {
    if parse_int(word).is_some() {
        return true;
    }
    // A number above the signed range may still be unsigned.
    let unsigned = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
    match unsigned {
        Some(digits) => u64::from_str_radix(digits, 16).is_ok() && !digits.starts_with('+'),
        None => word.starts_with(|first: char| first.is_ascii_digit()) && word.parse::<u64>().is_ok(),
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, which is how Rust reads floats but for its words for what is not finite.
fn is_float(word: &str) -> bool {
    word.parse::<f64>().is_ok_and(f64::is_finite)
}

/// `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`
fn is_base_60(word: &str) -> bool {
    let word = word.strip_prefix(['-', '+']).unwrap_or(word);
    let word = match word.split_once('.') {
        Some((word, fraction)) if fraction.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_') => word,
        Some(_) => return false,
        None => word,
    };
    let mut parts = word.split(':');
    let first = parts.next().unwrap_or("");
    let first_is_number = first.starts_with(|character: char| character.is_ascii_digit())
        && first.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    let mut rest = parts.peekable();
    first_is_number
        && rest.peek().is_some()
        && rest.all(|part| match part.as_bytes() {
            [digit] => digit.is_ascii_digit(),
            [tens, digit] => (b'0'..=b'5').contains(tens) && digit.is_ascii_digit(),
            _ => false,
        })
}

/// A date, or a date and a time, that exists.
fn is_timestamp(word: &str) -> bool {
    let Some((year, rest)) = word.split_once('-') else { return false };
    if year.len() != 4 || !year.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let (date, time) = match rest.find(['T', 't', ' ']) {
        Some(position) => (&rest[..position], Some(&rest[position..])),
        None => (rest, None),
    };
    let Some((month, day)) = date.split_once('-') else { return false };
    let (Some(month), Some(day)) = (small(month), small(day)) else { return false };
    let is_leap = year.parse::<u32>().is_ok_and(|year| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return false,
    };
    (1..=days).contains(&day) && time.is_none_or(is_time)
}

/// One or two digits.
fn small(text: &str) -> Option<u32> {
    let is_small = matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_small { text.parse().ok() } else { None }
}

/// `T15:04:05.9Z` or `T15:04:05+01:00`; a time after spaces has no zone.
fn is_time(text: &str) -> bool {
    let (mark, time) = text.split_at(1);
    let time = if mark == " " { time.trim_start_matches(' ') } else { time };
    let zone_at = time.find(['Z', '+', '-']);
    let (clock, zone) = match zone_at {
        Some(position) => (&time[..position], Some(&time[position..])),
        None => (time, None),
    };
    let zone_is_valid = match (mark, zone) {
        (" ", None) | ("T" | "t", Some("Z")) => true,
        ("T" | "t", Some(zone)) => {
            let parts = zone[1..].split_once(':');
            parts.is_some_and(|(hours, minutes)| {
                hours.len() == 2
                    && minutes.len() == 2
                    && small(hours).is_some_and(|hours| hours <= 24)
                    && small(minutes).is_some_and(|minutes| minutes <= 60)
            })
        }
        _ => false,
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let [hours, minutes, seconds] = parts.as_slice() else { return false };
    let (seconds, fraction) = seconds.split_once(['.', ',']).unwrap_or((seconds, "0"));
    zone_is_valid
        && small(hours).is_some_and(|hours| hours < 24)
        && small(minutes).is_some_and(|minutes| minutes < 60)
        && small(seconds).is_some_and(|seconds| seconds < 60)
        && !fraction.is_empty()
        && fraction.bytes().all(|byte| byte.is_ascii_digit())
}
