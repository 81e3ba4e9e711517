//! What a MachineConfig changes on nodes: files with decoded content, and systemd units.

use super::lines;
use super::walk::Walk;
use super::{Edit, Shown};
use crate::data_url;
use crate::fields::redact::{self, Place};
use crate::object::digest::Digest;
use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::Read;

const FILES: &str = "/spec/config/storage/files";
const UNITS: &str = "/spec/config/systemd/units";

pub(super) fn is_machine_config(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().and_then(|version| version.split('/').next());
    group == Some("machineconfiguration.openshift.io") && object["kind"] == "MachineConfig"
}

/// The object without what [`compare`] compares.
pub(super) fn without_files(object: &Value) -> Value {
    let mut object = object.clone();
    for pointer in [FILES, UNITS] {
        let Some((parent, key)) = pointer.rsplit_once('/') else { continue };
        if let Some(fields) = object.pointer_mut(parent).and_then(Value::as_object_mut)
            && is_named(fields.get(key), name_of(pointer))
        {
            fields.remove(key);
            let is_empty = fields.is_empty();
            // What held nothing else is no difference either.
            if let Some((above, parent)) = parent.rsplit_once('/').filter(|_| is_empty)
                && let Some(fields) = object.pointer_mut(above).and_then(Value::as_object_mut)
            {
                fields.remove(parent);
            }
        }
    }
    object
}

/// Compares files and units; lists that are no lists of named parts are left to others.
pub(super) fn compare(before: Option<&Value>, after: Option<&Value>, walk: &mut Walk) {
    for pointer in [FILES, UNITS] {
        let name = name_of(pointer);
        let lists = [before, after].map(|object| object.and_then(|object| object.pointer(pointer)));
        let [before, after] = lists.map(|list| list.filter(|list| is_named(Some(list), name)));
        let [before, after] = [before, after].map(|list| list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice));
        let keys: BTreeSet<&str> = before.iter().chain(after).filter_map(|item| item[name].as_str()).collect();
        for key in keys {
            let find = |list: &'_ [Value]| list.iter().find(|item| item[name] == key).cloned();
            let (before, after) = (find(before), find(after));
            match pointer {
                FILES => walk.at(&format!("file {key}"), |walk| file(key, before.as_ref(), after.as_ref(), walk)),
                _ => walk.at(&format!("unit {key}"), |walk| unit(before.as_ref(), after.as_ref(), walk)),
            }
        }
    }
}

fn name_of(pointer: &str) -> &'static str {
    if pointer == FILES { "path" } else { "name" }
}

fn is_named(list: Option<&Value>, name: &str) -> bool {
    let items = list.and_then(Value::as_array);
    items.is_some_and(|items| {
        let names: BTreeSet<&str> = items.iter().filter_map(|item| item[name].as_str()).collect();
        names.len() == items.len()
    })
}

fn file(path: &str, before: Option<&Value>, after: Option<&Value>, walk: &mut Walk) {
    let (before, after) = match (before, after) {
        (None, None) => return,
        (None, Some(after)) => return walk.push(Edit::Added { after: new_file(path, after) }),
        (Some(before), None) => return walk.push(Edit::Removed { before: Shown::Summary(about_file(before)) }),
        (Some(before), Some(after)) => (before, after),
    };
    if before == after {
        return;
    }
    let [old, new] = [before, after].map(Content::of);
    match (&old, &new) {
        (old, new) if old == new && before["contents"] == after["contents"] => {}
        (old, new) if old == new => {
            // It is another configuration, although it reads the same.
            let shown = |text: &str| Shown::Summary(text.to_owned());
            walk.push(Edit::Changed {
                before: shown("the same content"),
                after: shown("encoded or verified differently"),
            });
        }
        (Content::Text(one), Content::Text(other)) if is_public(path, one) && is_public(path, other) => {
            walk.push(lines::compare(one, other));
        }
        (old, new) => {
            let shown = |content: &Content| match content {
                Content::Text(_) => Shown::Redacted,
                content => Shown::Summary(content.about()),
            };
            walk.push(Edit::Changed { before: shown(old), after: shown(new) });
        }
    }
    if before["mode"] != after["mode"] {
        let mode = |file: &Value| Shown::Summary(mode(file).unwrap_or_else(|| "default".to_owned()));
        walk.at(" mode", |walk| walk.push(Edit::Changed { before: mode(before), after: mode(after) }));
    }
    let rest = |file: &Value| without(file, &["path", "mode", "contents"]);
    walk.at(" ", |walk| walk.whole(Some(&rest(before)), Some(&rest(after)), Place::default()));
}

/// What is said instead of a text.
const NOT_SHOWN: &str = "(not shown: its path or a line looks like a secret)";

/// Puts the contents of files and units back that may be shown.
pub(super) fn with_public_texts(shown: &mut Value, object: &Value) {
    for pointer in [FILES, UNITS] {
        let whole = object.pointer(pointer).and_then(Value::as_array);
        let Some(shown) = shown.pointer_mut(pointer).and_then(Value::as_array_mut) else { continue };
        for (shown, whole) in shown.iter_mut().zip(whole.into_iter().flatten()) {
            match pointer {
                FILES => {
                    let path = whole["path"].as_str().unwrap_or_default();
                    if matches!(Content::of(whole), Content::Text(text) if is_public(path, &text)) {
                        shown["contents"] = whole["contents"].clone();
                    }
                }
                _ if is_public_unit(whole) => *shown = whole.clone(),
                _ => {}
            }
        }
    }
}

fn is_public_unit(unit: &Value) -> bool {
    unit_lines(unit).iter().all(|line| redact::text(line) == *line)
}

fn new_file(path: &str, file: &Value) -> Shown {
    let summary = about_file(file);
    match Content::of(file) {
        Content::Text(text) if is_public(path, &text) => Shown::Text { summary, lines: split(&text) },
        Content::Text(_) => Shown::Text { summary, lines: vec![NOT_SHOWN.to_owned()] },
        _ => Shown::Summary(summary),
    }
}

fn new_unit(unit: &Value) -> Shown {
    let summary = about_unit(unit);
    let lines = if is_public_unit(unit) { unit_lines(unit) } else { vec![NOT_SHOWN.to_owned()] };
    if lines.is_empty() { Shown::Summary(summary) } else { Shown::Text { summary, lines } }
}

/// The text of a unit, with its drop-ins.
fn unit_lines(unit: &Value) -> Vec<String> {
    let mut lines = unit["contents"].as_str().map(split).unwrap_or_default();
    for dropin in unit["dropins"].as_array().into_iter().flatten() {
        lines.push(format!("# drop-in {}", dropin["name"].as_str().unwrap_or_default()));
        lines.extend(split(dropin["contents"].as_str().unwrap_or_default()));
    }
    lines
}

fn split(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

/// Parts of the paths of files that hold secrets.
const SECRET_PATHS: [&str; 10] =
    ["system-connections", "shadow", "netrc", "pgpass", "ipsec", "htpasswd", "snmp", "wpa_supplicant", "krb5", "auth"];
/// What a file with a secret has in some line: names of secrets, and how hashes and tokens begin.
const SECRET_TEXTS: [&str; 17] = [
    "psk",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "community",
    "createuser",
    "$1$",
    // Not "$2" alone, which every other script has.
    "$2$",
    "$2a$",
    "$2b$",
    "$2x$",
    "$2y$",
    "$5$",
    "$6$",
    "$apr1$",
    "eyj",
];

/// Whether the text of a file may be shown.
fn is_public(path: &str, text: &str) -> bool {
    let named = Place::default().field(path).shown(&json!(text));
    let (path, lower) = (path.to_lowercase(), text.to_lowercase());
    let is_secret =
        SECRET_PATHS.iter().any(|part| path.contains(part)) || SECRET_TEXTS.iter().any(|part| lower.contains(part));
    let is_hidden =
        |line: &str| redact::text(line) != line || line.split_whitespace().any(|word| redact::text(word) != word);
    named.is_some() && !is_secret && redact::text(text) == text && !text.lines().any(is_hidden)
}

fn unit(before: Option<&Value>, after: Option<&Value>, walk: &mut Walk) {
    let (before, after) = match (before, after) {
        (None, None) => return,
        (None, Some(after)) => return walk.push(Edit::Added { after: new_unit(after) }),
        (Some(before), None) => return walk.push(Edit::Removed { before: Shown::Summary(about_unit(before)) }),
        (Some(before), Some(after)) => (before, after),
    };
    text(&before["contents"], &after["contents"], walk);
    let dropins = |unit: &Value| unit["dropins"].as_array().cloned().unwrap_or_default();
    let (old, new) = (dropins(before), dropins(after));
    let names: BTreeSet<&str> = old.iter().chain(&new).filter_map(|dropin| dropin["name"].as_str()).collect();
    for name in names {
        let find = |list: &[Value]| list.iter().find(|dropin| dropin["name"] == name).cloned().unwrap_or_default();
        walk.at(&format!(" dropin {name}"), |walk| text(&find(&old)["contents"], &find(&new)["contents"], walk));
    }
    let rest = |unit: &Value| without(unit, &["name", "contents", "dropins"]);
    walk.at(" ", |walk| walk.whole(Some(&rest(before)), Some(&rest(after)), Place::default()));
}

/// Compares the texts of a unit, which are shown unless one looks like a secret.
fn text(before: &Value, after: &Value, walk: &mut Walk) {
    if before == after {
        return;
    }
    let [one, other] = [before, after].map(|text| text.as_str().unwrap_or_default());
    match redact::text(one) == one && redact::text(other) == other {
        true => walk.push(lines::compare(one, other)),
        false => walk.push(Edit::Changed { before: Shown::Redacted, after: Shown::Redacted }),
    }
}

fn without(item: &Value, keys: &[&str]) -> Value {
    let fields = item.as_object().into_iter().flatten().filter(|(key, _)| !keys.contains(&key.as_str()));
    Value::Object(fields.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>())
}

fn mode(file: &Value) -> Option<String> {
    file["mode"].as_u64().map(|mode| format!("{mode:04o}"))
}

fn about_file(file: &Value) -> String {
    let parts = [mode(file), Some(Content::of(file).about())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn about_unit(unit: &Value) -> String {
    let state = match (unit["mask"].as_bool(), unit["enabled"].as_bool()) {
        (Some(true), _) => Some("masked".to_owned()),
        (_, Some(true)) => Some("enabled".to_owned()),
        (_, Some(false)) => Some("disabled".to_owned()),
        (_, None) => None,
    };
    let lines = unit["contents"].as_str().map(lines::count);
    let dropins = unit["dropins"].as_array().map(Vec::len).filter(|count| *count > 0);
    let dropins = dropins.map(|count| format!("{count} drop-in{}", if count == 1 { "" } else { "s" }));
    [state, lines, dropins].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Larger files are not shown.
const LARGEST: u64 = 1 << 20;

/// The text in a gzip file.
fn unpacked(bytes: &[u8]) -> Option<String> {
    let mut text = String::new();
    let read = GzDecoder::new(bytes).take(LARGEST + 1).read_to_string(&mut text).ok()?;
    (u64::try_from(read).ok()? <= LARGEST && !text.contains('\0')).then_some(text)
}

/// The content of a file, as far as it can be decoded here.
#[derive(PartialEq)]
enum Content {
    /// Text.
    Text(String),
    /// Anything else, of which size and digest tell enough.
    Opaque { what: &'static str, bytes: usize, digest: Digest },
    /// It is fetched from elsewhere.
    Remote(Digest),
    /// There is none.
    None,
}

impl Content {
    fn of(file: &Value) -> Content {
        let contents = &file["contents"];
        let source = match contents["source"].as_str() {
            None | Some("") => return Content::None,
            Some(source) => source,
        };
        let Some(bytes) = data_url::decode(source) else { return Content::Remote(Digest::of(&json!(source))) };
        let digest = Digest::of_bytes(&bytes);
        let is_packed = contents["compression"].as_str().is_some_and(|compression| !compression.is_empty());
        let size = bytes.len();
        if let Some(text) = unpacked(&bytes).filter(|_| is_packed) {
            return Content::Text(text);
        }
        match (is_packed, String::from_utf8(bytes)) {
            (true, _) => Content::Opaque { what: "compressed", bytes: size, digest },
            (false, Ok(text)) if !text.contains('\0') => Content::Text(text),
            (false, _) => Content::Opaque { what: "binary", bytes: size, digest },
        }
    }

    /// What is to be known of it without its text.
    fn about(&self) -> String {
        match self {
            // A digest would let others try what the secret may be.
            Content::Text(text) => lines::count(text),
            Content::Opaque { what, bytes, digest } => format!("{what}, {bytes} bytes, sha256 {}", digest.short()),
            Content::Remote(_) => "fetched from elsewhere".to_owned(),
            Content::None => "empty".to_owned(),
        }
    }
}
