//! Parameters in a query and in a body: a form, JSON or an upload.

use crate::request::{File, Request};
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Decodes `%XX`, and in a form `+`.
pub(crate) fn decode(text: &str, is_form: bool) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match (bytes[at], escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
                continue;
            }
            (b'+', _) if is_form => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// Between the values of a list, in one text: no value contains it.
pub(crate) const SEPARATOR: char = '\0';

/// The parameters of a form. One that is given several times is a list.
pub(crate) fn form(text: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for part in text.split('&').filter(|part| !part.is_empty()) {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (decode(name, true), decode(value, true));
        match found.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => {
                entry.get_mut().push(SEPARATOR);
                entry.get_mut().push_str(&value);
            }
        }
    }
    found
}

/// Adds what is in the body to a request.
pub(crate) fn read(request: &mut Request, content_type: &str, content: &[u8]) -> Result<(), String> {
    if content.is_empty() {
        return Ok(());
    }
    let kind = content_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    match kind.as_str() {
        "application/json" => request.parameters.extend(json(content)?),
        "multipart/form-data" => {
            let boundary = content_type.split(';').find_map(|part| part.trim().strip_prefix("boundary="));
            let boundary = boundary.ok_or("multipart/form-data without a boundary")?.trim_matches('"');
            multipart(request, boundary, content)?;
        }
        "" | "application/x-www-form-urlencoded" => {
            request.parameters.extend(form(&String::from_utf8_lossy(content)));
        }
        other => return Err(format!("upload Content-Type '{other}' not supported")),
    }
    Ok(())
}

fn json(content: &[u8]) -> Result<BTreeMap<String, String>, String> {
    let value: Value = serde_json::from_slice(content).map_err(|error| format!("malformed JSON string: {error}"))?;
    let Value::Object(fields) = value else { return Err("malformed JSON string: not an object".to_owned()) };
    let mut found = BTreeMap::new();
    for (name, value) in fields {
        if value.is_null() {
            continue;
        }
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        let texts: Option<Vec<String>> = values.into_iter().map(plain).collect();
        let texts = texts.ok_or_else(|| format!("parameter '{name}' is not a plain value"))?;
        let text = texts.join(&SEPARATOR.to_string());
        found.insert(name, text);
    }
    Ok(found)
}

/// A value as a form has it.
pub(crate) fn plain(value: Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text),
        Value::Bool(flag) => Some(u8::from(flag).to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Reads the parts of an upload: plain ones are parameters, one has a file.
fn multipart(request: &mut Request, boundary: &str, content: &[u8]) -> Result<(), String> {
    let delimiter = format!("--{boundary}");
    let mut rest = content;
    let mut is_complete = false;
    while let Some(at) = find(rest, delimiter.as_bytes()) {
        rest = &rest[at + delimiter.len()..];
        if rest.starts_with(b"--") {
            is_complete = true;
            break;
        }
        let end = find(rest, delimiter.as_bytes()).ok_or("upload ended before its last boundary")?;
        let part = rest[..end].strip_prefix(b"\r\n").unwrap_or(&rest[..end]);
        let part = part.strip_suffix(b"\r\n").unwrap_or(part);
        let split = find(part, b"\r\n\r\n").ok_or("a part of the upload has no headers")?;
        let headers = String::from_utf8_lossy(&part[..split]).into_owned();
        let value = &part[split + 4..];
        let name = attribute(&headers, "name").ok_or("a part of the upload has no name")?;
        match attribute(&headers, "filename") {
            Some(file) => {
                if !headers.to_lowercase().contains("\ncontent-type:") {
                    return Err("the file of the upload has no Content-Type".to_owned());
                }
                let file = file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
                if request.parameters.insert("filename".to_owned(), file.clone()).is_some() {
                    return Err("parameter 'filename' is given twice".to_owned());
                }
                request.file = Some(File { name: file, content: value.to_vec() });
            }
            None => {
                let value = String::from_utf8_lossy(value).into_owned();
                if request.parameters.insert(name.clone(), value).is_some() {
                    return Err(format!("parameter '{name}' is given twice"));
                }
            }
        }
        rest = &rest[end..];
    }
    if is_complete { Ok(()) } else { Err("upload ended before its last boundary".to_owned()) }
}

fn attribute(headers: &str, name: &str) -> Option<String> {
    let line = headers.lines().find(|line| line.to_lowercase().starts_with("content-disposition:"))?;
    line.split(';').find_map(|part| {
        let (found, value) = part.trim().split_once('=')?;
        (found == name).then(|| value.trim_matches('"').to_owned())
    })
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    while let Some(at) = text.get(from..)?.iter().position(|byte| *byte == first) {
        if text[from + at..].starts_with(wanted) {
            return Some(from + at);
        }
        from += at + 1;
    }
    None
}
