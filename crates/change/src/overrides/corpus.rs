//! Tests of overrides with the cases of `tests-data`: benign annotations are honoured exactly, hostile ones gain nothing, and every guard
//! stops at least one of them.

use crate::fields::atomic::{self, Atomic};
use crate::fields::entry::Entry;
use crate::fields::pointer::{Pointer, escape};
use crate::object::key::Key;
use crate::overrides::Overrides;
use crate::overrides::allow::{PatchableKinds, explain, rows};
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use crate::overrides::steering::{Pause, Steering};
use crate::reason::Reason;
use api::annotation;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

/// A hostile annotation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hostile {
    name: String,
    on: String,
    key: String,
    value: Option<String>,
    #[serde(default)]
    pieces: Vec<Piece>,
    #[serde(default)]
    with: BTreeMap<String, String>,
    outcome: Outcome,
    /// The row of the table that alone stops it.
    row: Option<String>,
    /// Fields that have one owner.
    #[serde(default)]
    atomic: Vec<String>,
    #[serde(default)]
    #[allow(dead_code)]
    unit: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Piece {
    Text(String),
    Times { text: String, times: usize },
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Refused,
    Harmless,
    Held,
}

/// A benign annotation, with its expected result.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Benign {
    name: String,
    on: String,
    patch: Option<String>,
    ignore_fields: Option<String>,
    #[serde(default)]
    set: BTreeMap<String, Value>,
    #[serde(default)]
    gone: Vec<String>,
    #[serde(default)]
    #[allow(dead_code)]
    unit: bool,
}

pub(crate) fn objects() -> &'static BTreeMap<String, Value> {
    static OBJECTS: LazyLock<BTreeMap<String, Value>> =
        LazyLock::new(|| serde_saphyr::from_str(include_str!("../../tests-data/objects.yaml")).unwrap());
    &OBJECTS
}

/// The hostile annotations that this crate parses; the autopilot crate parses the others.
fn hostile() -> Vec<Hostile> {
    let all: Vec<Hostile> = serde_saphyr::from_str(include_str!("../../tests-data/hostile.yaml")).unwrap();
    all.into_iter().filter(|case| case.key != "disabled-resources").collect()
}

fn benign() -> Vec<Benign> {
    serde_saphyr::from_str(include_str!("../../tests-data/benign.yaml")).unwrap()
}

impl Hostile {
    fn annotations(&self) -> BTreeMap<String, String> {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Times { text, times } => text.repeat(*times),
        });
        let value = self.value.clone().unwrap_or_else(|| pieces.collect());
        let all = self.with.iter().map(|(key, value)| (key.clone(), value.clone())).chain([(self.key.clone(), value)]);
        all.map(|(key, value)| (format!("{}{key}", annotation::PREFIX), value)).collect()
    }

    /// Our claim on the fields, some of which have one owner.
    fn entries(&self) -> Vec<Entry> {
        let mut fields = json!({});
        for field in &self.atomic {
            let steps = field.split('/').skip(1);
            *steps.fold(&mut fields, |fields, step| &mut fields[format!("f:{step}")]) = json!({});
        }
        Entry::all(&json!([{"manager": "us", "operation": "Apply", "time": "t", "fieldsV1": fields}]))
    }

    /// Checks that the case has its expected outcome.
    fn play(&self, bare: &Value, guards: OverrideGuards) -> Result<(), String> {
        let annotations = self.annotations();
        let steering = Steering::read_with(&annotations, guards);
        let held = match &steering {
            Err(Reason::ModeUnknown { .. }) => true,
            Err(other) => return Err(format!("it is held for another reason: {other}")),
            Ok(steering) => matches!(steering.pause, Pause::Unclear(_)),
        };
        if held != (self.outcome == Outcome::Held) {
            return Err(format!("it is {}held", if held { "" } else { "not " }));
        }
        let text = |key: &str| annotations.get(key).map(String::as_str);
        let key = Key::of(bare).unwrap();
        let (patch, ignored_fields) = (text(annotation::PATCH), text(annotation::IGNORE_FIELDS));
        let overrides = Overrides::read_with(patch, ignored_fields, &key, &PatchableKinds::none(), guards);
        let result = overrides.and_then(|overrides| {
            let applied = overrides.apply(bare)?;
            let whole = |field: &&Pointer| {
                matches!(atomic::around(field, &applied, &self.entries(), "us"), Some(Atomic::Whole(_)))
            };
            match overrides.ignored().iter().find(whole) {
                Some(field) => Err(Reason::IgnoreFieldsRefused { why: field.to_string() }),
                None => Ok(applied),
            }
        });
        match (result, self.outcome) {
            (Err(_), Outcome::Refused) => Ok(()),
            (Err(reason), _) => Err(format!("it is refused: {reason}")),
            (Ok(_), Outcome::Refused) => Err("it is accepted".into()),
            (Ok(result), _) => nothing_gained(bare, &result),
        }
    }
}

/// Separates the index of a list item from its name.
const NAME: char = '\0';

/// The leaves of an object by their steps, where a list item is its index and its name. Independent of the checks under test.
fn flat(value: &Value, path: &str, into: &mut BTreeMap<String, Value>) {
    let step = |step: &str| format!("{path}/{}", escape(step));
    let item = |index: usize, item: &Value| match item["name"].as_str() {
        Some(name) => step(&format!("{index}{NAME}{name}")),
        None => step(&index.to_string()),
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            fields.iter().for_each(|(key, value)| flat(value, &step(key), into));
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(index, value)| flat(value, &item(index, value), into));
        }
        leaf => {
            into.insert(path.to_owned(), leaf.clone());
        }
    }
}

/// Whether a path and the text at its end match a pattern, by trying all possibilities.
fn path_fits(pattern: &[&str], path: &[&str], text: Option<&str>) -> bool {
    match (pattern, path) {
        ([], []) => true,
        (["**", rest @ ..], path) => {
            path_fits(rest, path, text) || (!path.is_empty() && path_fits(pattern, &path[1..], text))
        }
        ([step, pattern @ ..], [name, path @ ..]) => {
            step_fits(step, name, text.filter(|_| path.is_empty())) && path_fits(pattern, path, text)
        }
        _ => false,
    }
}

/// Whether one step matches a pattern.
fn step_fits(step: &str, name: &str, text: Option<&str>) -> bool {
    let like = |pattern: &str, name: &str| {
        let (pattern, name): (Vec<char>, Vec<char>) = (pattern.chars().collect(), name.chars().collect());
        name_fits(&pattern, &name)
    };
    let (key, item) = name.split_once(NAME).map_or((name, name), |(index, name)| (index, name));
    if let Some(names) = step.strip_prefix("[name=").map(|names| names.trim_end_matches(']')) {
        return names.split('|').any(|name| like(&name.to_lowercase(), &item.to_ascii_lowercase()));
    }
    if let Some((step, wanted)) = step.split_once('=') {
        return like(step, key) && text.is_some_and(|text| like(wanted, text));
    }
    match step.split_once("!(") {
        Some((step, except)) => {
            like(step, key) && !except.trim_end_matches(')').split('|').any(|except| like(except, key))
        }
        None => like(step, key),
    }
}

/// Whether a name matches a pattern, by trying all possibilities.
pub(crate) fn name_fits(pattern: &[char], name: &[char]) -> bool {
    match (pattern, name) {
        ([], []) => true,
        (['*', rest @ ..], name) => name_fits(rest, name) || (!name.is_empty() && name_fits(pattern, &name[1..])),
        (['?', pattern @ ..], [_, name @ ..]) => name_fits(pattern, name),
        ([character, pattern @ ..], [other, name @ ..]) => character == other && name_fits(pattern, name),
        _ => false,
    }
}

/// Checks that two objects differ only in fields that the table opens to users.
pub(crate) fn nothing_gained(before: &Value, after: &Value) -> Result<(), String> {
    let (mut was, mut is) = (BTreeMap::new(), BTreeMap::new());
    flat(before, "", &mut was);
    flat(after, "", &mut is);
    if Key::of(before) != Key::of(after) {
        return Err("it is another object".into());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let object = format!("{}/{}", text(&before["kind"]), text(&before["metadata"]["name"]));
    let rules = explain(&object, &PatchableKinds::none());
    let any = |patterns: &[crate::overrides::allow::PathRule], path: &str, value: Option<&Value>| {
        let path: Vec<&str> = path.split('/').collect();
        let text = value.and_then(Value::as_str);
        patterns.iter().any(|rule| path_fits(&rule.path.split('/').collect::<Vec<_>>(), &path, text))
    };
    for path in was.keys().chain(is.keys()).filter(|path| was.get(*path) != is.get(*path)) {
        let is_closed = |value: Option<&Value>| value.is_some() && any(&rules.closed, path, value);
        if !any(&rules.open, path, None) || is_closed(was.get(path)) || is_closed(is.get(path)) {
            return Err(format!("{path} has changed"));
        }
    }
    Ok(())
}

#[test]
fn every_hostile_annotation_gains_nothing() {
    let (objects, cases) = (objects(), hostile());
    assert!(cases.len() >= 450, "{}", cases.len());
    for case in &cases {
        let outcome = case.play(&objects[&case.on], OverrideGuards::ALL);
        assert_eq!(outcome, Ok(()), "{} on {}", case.name, case.on);
    }
}

#[test]
fn every_benign_annotation_is_honoured_exactly() {
    let (objects, cases) = (objects(), benign());
    assert!(cases.len() >= 70, "{}", cases.len());
    for case in &cases {
        let bare = &objects[&case.on];
        let key = Key::of(bare).unwrap();
        let (patch, ignored_fields) = (case.patch.as_deref(), case.ignore_fields.as_deref());
        let overrides = Overrides::read(patch, ignored_fields, &key, &PatchableKinds::none());
        let result = overrides.and_then(|overrides| overrides.apply(bare));
        let mut expected = bare.clone();
        for (path, value) in &case.set {
            let (parent, last) = path.rsplit_once('/').unwrap();
            let last = last.replace("~1", "/").replace("~0", "~");
            match expected.pointer_mut(parent) {
                Some(Value::Object(fields)) => drop(fields.insert(last, value.clone())),
                other => panic!("{}: {path} has no parent: {other:?}", case.name),
            }
        }
        for path in &case.gone {
            let (parent, last) = path.rsplit_once('/').unwrap();
            let last = last.replace("~1", "/").replace("~0", "~");
            let removed =
                expected.pointer_mut(parent).and_then(Value::as_object_mut).and_then(|fields| fields.remove(&last));
            assert!(removed.is_some(), "{}: {path} was missing", case.name);
        }
        assert_eq!(result.map_err(|reason| reason.to_string()), Ok(expected), "{} on {}", case.name, case.on);
    }
}

/// Every guard with one annotation that only it stops. Where other guards would stop it first, those are disabled as well, so that the
/// effect of the guard itself is shown.
const STOPPED_BY: [(OverrideGuard, &str, &[OverrideGuard]); 20] = [
    (OverrideGuard::PatchLength, "many-bytes", &[OverrideGuard::PatchLength]),
    (OverrideGuard::OperationCount, "many-operations", &[OverrideGuard::OperationCount]),
    (OverrideGuard::DuplicateKeys, "path-twice", &[OverrideGuard::DuplicateKeys]),
    (OverrideGuard::Members, "path-in-another-case", &[OverrideGuard::Members]),
    (OverrideGuard::LeadingSlash, "no-leading-slash", &[OverrideGuard::LeadingSlash]),
    (OverrideGuard::Escapes, "tilde-of-two", &[OverrideGuard::Escapes]),
    (OverrideGuard::Indexes, "leading-zero", &[OverrideGuard::Indexes]),
    (OverrideGuard::SensitiveKinds, "machine-kernel", &[OverrideGuard::SensitiveKinds]),
    (OverrideGuard::Operations, "finalizer-put-and-taken-back", &[OverrideGuard::Operations]),
    (OverrideGuard::ChangedFields, "env-from-a-secret", &[OverrideGuard::ChangedFields]),
    (
        OverrideGuard::Identity,
        "name",
        &[OverrideGuard::Operations, OverrideGuard::ChangedFields, OverrideGuard::Identity],
    ),
    (OverrideGuard::Size, "copies-side-by-side", &[OverrideGuard::Size]),
    (OverrideGuard::Depth, "deep-value", &[OverrideGuard::Depth]),
    (OverrideGuard::IgnoredIdentity, "ignore-the-name", &[OverrideGuard::IgnoredIdentity]),
    (OverrideGuard::IgnoredOwnKeys, "ignore-our-label", &[OverrideGuard::IgnoredOwnKeys]),
    (OverrideGuard::IgnoredListItems, "ignore-into-a-list", &[OverrideGuard::IgnoredListItems]),
    (OverrideGuard::IgnoredNames, "ignore-nothing", &[OverrideGuard::IgnoredNames]),
    (OverrideGuard::IgnoredCount, "many-ignored-fields", &[OverrideGuard::IgnoredCount]),
    (OverrideGuard::ModeKnown, "mode-off", &[OverrideGuard::ModeKnown]),
    (OverrideGuard::PauseRead, "pause-tomorrow", &[OverrideGuard::PauseRead]),
];

#[test]
fn without_a_guard_an_annotation_gets_through() {
    let (objects, cases) = (objects(), hostile());
    for (guard, name, off) in STOPPED_BY {
        let case = cases.iter().find(|case| case.name == name).unwrap_or_else(|| panic!("there is no case {name}"));
        let bare = &objects[&case.on];
        assert!(case.play(bare, OverrideGuards::without(off)).is_err(), "{name} is stopped even without {guard:?}");
        assert_eq!(off.last(), Some(&guard));
        let front: &'static [OverrideGuard] = &off[..off.len() - 1];
        assert_eq!(case.play(bare, OverrideGuards::without(front)), Ok(()), "{guard:?} alone does not stop {name}");
    }
}

#[test]
fn every_guard_stops_some_annotation() {
    // The list above must name every guard, also new ones.
    let source = include_str!("guards.rs");
    let body = source.split("enum OverrideGuard {").nth(1).unwrap().split("\n}").next().unwrap();
    let names: Vec<&str> =
        body.lines().map(str::trim).filter(|line| line.ends_with(',')).map(|line| line.trim_end_matches(',')).collect();
    let shown: Vec<String> = STOPPED_BY.iter().map(|(guard, _, _)| format!("{guard:?}")).collect();
    assert_eq!(shown, names);
}

#[test]
fn the_names_of_cases_are_unique() {
    let mut seen = Map::new();
    for name in hostile().into_iter().map(|case| case.name).chain(benign().into_iter().map(|case| case.name)) {
        assert!(seen.insert(name.clone(), Value::Null).is_none(), "{name}");
    }
}

#[test]
fn every_row_of_the_table_stops_an_annotation_of_its_own() {
    let (objects, cases) = (objects(), hostile());
    let rows: BTreeSet<&'static str> = rows().collect();
    let named: BTreeSet<&str> = cases.iter().filter_map(|case| case.row.as_deref()).collect();
    assert_eq!(rows.iter().filter(|row| !named.contains(*row)).collect::<Vec<_>>(), Vec::<&&str>::new(), "no case");
    let mut needless = Vec::new();
    for case in &cases {
        let Some(row) = &case.row else { continue };
        let row = rows.get(row.as_str()).unwrap_or_else(|| panic!("{}: there is no row {row}", case.name));
        if case.play(&objects[&case.on], OverrideGuards::without_row(row)).is_ok() {
            needless.push(format!("{} is stopped even without {row}", case.name));
        }
    }
    assert_eq!(needless, Vec::<String>::new());
}
