//! Encodings of bytes as text.

use super::argument::text as take;
use crate::template::run::{RenderContext, Stop, a};
use crate::template::value::Value;
use base64::Engine;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use std::io::Write;
use std::rc::Rc;

/// Go ignores the unused bits of the last character.
const LENIENT: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

const BASE32: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

fn bytes(value: &Value) -> Result<&[u8], String> {
    match value {
        Value::Text(text) => Ok(text.as_bytes()),
        Value::Bytes(bytes) => Ok(bytes),
        other => Err(format!("expected text or bytes, got {}", a(other))),
    }
}

/// Decoded bytes become text if they are UTF-8.
fn text_or_bytes(bytes: Vec<u8>) -> Value {
    match String::from_utf8(bytes) {
        Ok(text) => Value::text(text),
        Err(error) => Value::Bytes(Rc::from(error.into_bytes())),
    }
}

/// `b64enc`.
pub fn b64enc(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Ok(Value::text(STANDARD.encode(bytes(&arguments[0])?)))
}

/// `b64dec`: like sprig, it returns the text of an error.
pub fn b64dec(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let text = take(&arguments[0])?;
    if let Some(position) = first_wrong(text.as_bytes()) {
        return Ok(Value::text(format!("illegal base64 data at input byte {position}")));
    }
    let characters: Vec<u8> = text.bytes().filter(|byte| !is_line_end(*byte)).collect();
    match LENIENT.decode(characters) {
        Ok(decoded) => Ok(text_or_bytes(decoded)),
        Err(error) => Ok(Value::text(error.to_string())),
    }
}

fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}

/// The position in Go's error, if Go would fail; Go skips line breaks.
fn first_wrong(text: &[u8]) -> Option<usize> {
    let next = |from: usize| (from..text.len()).find(|position| !is_line_end(text[*position]));
    let mut in_group = 0;
    let mut at = 0;
    while let Some(position) = next(at) {
        at = position + 1;
        match text[position] {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => in_group = (in_group + 1) % 4,
            b'=' if in_group == 3 => return next(at),
            b'=' if in_group == 2 => {
                return match next(at) {
                    None => Some(text.len()),
                    Some(second) if text[second] == b'=' => next(second + 1),
                    Some(second) => Some(second - 1),
                };
            }
            _ => return Some(position),
        }
    }
    (in_group > 0).then_some(text.len() - in_group)
}

/// `b32enc`.
pub fn b32enc(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let mut out = String::new();
    for group in bytes(&arguments[0])?.chunks(5) {
        let mut five = [0u8; 5];
        five[..group.len()].copy_from_slice(group);
        let bits = five.iter().fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        let characters = (group.len() * 8).div_ceil(5);
        for position in 0..8 {
            let index = (bits >> (35 - 5 * position)) & 31;
            out.push(if position < characters { char::from(BASE32[index as usize]) } else { '=' });
        }
    }
    Ok(Value::text(out))
}

/// `b32dec`: like sprig, it returns the text of an error.
pub fn b32dec(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let text: Vec<u8> = take(&arguments[0])?.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')).collect();
    Ok(match base32_decoded(&text) {
        Ok(decoded) => text_or_bytes(decoded),
        Err(position) => Value::text(format!("illegal base32 data at input byte {position}")),
    })
}

/// Decodes group by group like Go; the error is the position in Go's error.
fn base32_decoded(text: &[u8]) -> Result<Vec<u8>, usize> {
    let mut out = Vec::new();
    let mut start = 0;
    while start < text.len() {
        let mut bits = 0u64;
        let mut characters = 0;
        while characters < 8 {
            let position = start + characters;
            let byte = *text.get(position).ok_or(start)?;
            let behind = &text[position + 1..];
            if byte == b'=' && characters >= 2 && behind.len() < 8 {
                if behind.len() + characters < 7 {
                    return Err(text.len());
                }
                if let Some(wrong) = behind.iter().take(7 - characters).position(|byte| *byte != b'=') {
                    return Err(position + wrong);
                }
                break;
            }
            let value = BASE32.iter().position(|character| *character == byte).ok_or(position)?;
            bits |= (value as u64) << (35 - 5 * characters);
            characters += 1;
        }
        if matches!(characters, 1 | 3 | 6) {
            return Err(start + characters);
        }
        out.extend_from_slice(&bits.to_be_bytes()[3..3 + characters * 5 / 8]);
        if characters < 8 {
            break;
        }
        start += 8;
    }
    Ok(out)
}

/// `gzip`: bytes for `b64enc`. The header has no time, so that equal texts give equal bytes.
pub fn gzip(context: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    let text = take(&arguments[0])?;
    let packed = context.gzipped.of(text, || {
        let mut encoder = flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::default());
        encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish())
    });
    match packed {
        Ok(packed) => Ok(Value::Bytes(Rc::from(&*packed))),
        Err(error) => Err(error.to_string().into()),
    }
}
