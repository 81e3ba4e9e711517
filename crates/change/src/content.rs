//! Where an object as it is differs from what is wanted of it: what a write would change.

use crate::fields::pointer::Pointer;
use crate::fields::redact::{Place, REDACTED};
use crate::object::digest::Digest;
use crate::object::key::Kind;
use serde::Serialize;
use serde_json::{Value, json};
use std::fmt;

/// The fields a write would change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Changes(pub Vec<Change>);

/// One field a write would change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The way to it, such as `.spec.type`.
    pub path: String,
    /// Its values; `None` if they may not be shown.
    pub values: Option<Values>,
    /// The digest of both values, which also covers what may not be shown.
    #[serde(skip)]
    pub digest: Digest,
}

/// What a field is and what is wanted of it, as far as that may be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Values {
    /// What is there; `None` for nothing.
    pub before: Option<Value>,
    /// What is wanted.
    pub after: Value,
}

/// As much of a value as fits into a line with others.
const SHOWN: usize = 40;
/// The server cuts the note of an event after 1,024 characters; more changes than these are counted.
const MOST: usize = 10;

impl Changes {
    /// Whether nothing would change.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, change) in self.0.iter().take(MOST).enumerate() {
            write!(f, "{}{change}", if index == 0 { "" } else { ", " })?;
        }
        if self.0.len() > MOST { write!(f, ", and {} more", self.0.len() - MOST) } else { Ok(()) }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(Values { before, after }) = &self.values else { return write!(f, "{} {REDACTED}", self.path) };
        let before = before.as_ref().map_or("nothing".to_owned(), short);
        write!(f, "{} ({before} -> {})", self.path, short(after))
    }
}

fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= SHOWN {
        return text;
    }
    let cut: String = text.chars().take(SHOWN).collect();
    format!("{cut}...")
}

/// Every field that is wanted and is not so, whatever else the object has: other fields are none of ours. A list is ours as a whole where
/// that is asked for; else what the server adds to its items is passed over. Values that may not be shown are left out.
pub fn changes(wanted: &Value, live: &Value, lists_whole: bool) -> Changes {
    let text = |key: &str| wanted[key].as_str().unwrap_or_default();
    let top = Place::top(&Kind::new(text("apiVersion"), text("kind")));
    let mut comparison = Comparison { lists_whole, path: String::new(), changes: Vec::new() };
    for (key, value) in wanted.as_object().into_iter().flatten() {
        match key.as_str() {
            // What the object is.
            "apiVersion" | "kind" => {}
            "metadata" => {
                // One by one, also where there are none yet.
                let none = Value::Object(serde_json::Map::new());
                for part in ["labels", "annotations"] {
                    let (wanted, live) = (value.get(part), live.pointer(&format!("/metadata/{part}")));
                    let (step, place) = (format!(".metadata.{part}"), top.field("metadata").field(part));
                    let wanted = wanted.filter(|wanted| !wanted.is_null());
                    comparison.below(&step, wanted.unwrap_or(&none), live.or(Some(&none)), place);
                }
            }
            _ => comparison.below(&format!(".{key}"), value, live.get(key), top.field(key)),
        }
    }
    Changes(comparison.changes)
}

impl Changes {
    /// Adds fields that have something beside what is wanted, and have one owner, so that it would be taken away.
    pub fn add_whole(&mut self, fields: &[Pointer], wanted: &Value, live: &Value) {
        for field in fields {
            let path = format!(".{}", field.steps().join("."));
            if !self.0.iter().any(|change| is_at_or_below(&change.path, &path)) {
                let pointer = field.to_string();
                let digest = Digest::of(&json!([wanted.pointer(&pointer), live.pointer(&pointer)]));
                self.0.push(Change { path, values: None, digest });
            }
        }
    }
}

/// Whether a path leads to a field or to a part of it: `.spec.type` is no part of `.spec.t`.
pub(crate) fn is_at_or_below(path: &str, field: &str) -> bool {
    path.strip_prefix(field).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

struct Comparison {
    lists_whole: bool,
    /// The way to what is compared now.
    path: String,
    changes: Vec<Change>,
}

impl Comparison {
    fn below(&mut self, step: &str, wanted: &Value, live: Option<&Value>, place: Place) {
        let length = self.path.len();
        self.path.push_str(step);
        self.compare(wanted, live, place);
        self.path.truncate(length);
    }

    fn compare(&mut self, wanted: &Value, live: Option<&Value>, place: Place) {
        // Most of a large object is the same.
        if Some(wanted) == live {
            return;
        }
        let place = live.map_or(place, |live| place.of(live)).of(wanted);
        match (wanted, live) {
            (Value::Object(wanted), Some(Value::Object(live))) => {
                for (key, value) in wanted {
                    self.below(&format!(".{key}"), value, live.get(key), place.field(key));
                }
            }
            (Value::Array(_), Some(live)) if self.lists_whole && !is_list_of_plain(live) => {
                self.push(Some(live), wanted, place);
            }
            (Value::Array(wanted), Some(Value::Array(live))) if wanted.len() == live.len() => {
                for (index, (wanted, live)) in wanted.iter().zip(live).enumerate() {
                    self.below(&format!("[{index}]"), wanted, Some(live), place);
                }
            }
            // The server leaves out what says nothing.
            (Value::Null, None) => {}
            (Value::Object(wanted), None) if wanted.is_empty() => {}
            (Value::Array(wanted), None) if wanted.is_empty() => {}
            (wanted, live) => self.push(live, wanted, place),
        }
    }

    fn push(&mut self, before: Option<&Value>, after: &Value, place: Place) {
        let digest = Digest::of(&json!([before, after]));
        let before = before.map_or(Some(None), |before| place.shown(before).map(Some));
        let values = before.zip(place.shown(after)).map(|(before, after)| Values { before, after });
        self.changes.push(Change { path: self.path.clone(), values, digest });
    }
}

/// Items without parts can be told one by one.
fn is_list_of_plain(list: &Value) -> bool {
    list.as_array().is_some_and(|items| items.iter().all(|item| !item.is_object() && !item.is_array()))
}

/// The content as an apply of `wanted` makes it, if it removes nothing: maps are merged, anything else is replaced.
pub fn merged(live: &Value, wanted: &Value) -> Value {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => {
            let mut result = live.clone();
            for (key, value) in wanted {
                let below = result.get(key).map_or_else(|| value.clone(), |live| merged(live, value));
                result.insert(key.clone(), below);
            }
            Value::Object(result)
        }
        (_, wanted) => wanted.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::changes;
    use crate::fields::pointer::Pointer;
    use serde_json::{Value, json};

    #[test]
    fn only_what_is_wanted_and_not_so_is_a_change() {
        let wanted = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "labels": {"a": "b"}},
            "spec": {"same": 1, "other": {"deep": "long ".repeat(20)}, "list": [{"name": "a"}, 2], "grown": [1, 2], "none": {}}});
        let live = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "uid": "u"},
            "spec": {"same": 1, "other": {"deep": 3, "theirs": 4}, "list": [{"name": "a", "theirs": 5}, 3], "grown": [1]}});
        let found = changes(&wanted, &live, false);
        let printed = [
            ".metadata.labels.a (nothing -> \"b\")".into(),
            ".spec.grown ([1] -> [1,2])".into(),
            ".spec.list[1] (3 -> 2)".into(),
            format!(".spec.other.deep (3 -> \"{}...)", &"long ".repeat(20)[..39]),
        ];
        assert_eq!(found.to_string(), printed.join(", "));
        assert!(changes(&wanted, &wanted, true).is_empty());
        let more = |value: Value| json!({"spec": {"units": [value]}});
        let (named, masked) = (more(json!({"name": "a"})), more(json!({"name": "a", "mask": true})));
        assert!(changes(&named, &masked, false).is_empty() && changes(&named, &masked, true).0.len() == 1);
        let many = changes(
            &json!({"data": (0..12).map(|n| (n.to_string(), n.into())).collect::<serde_json::Map<_, _>>()}),
            &json!({"data": {}}),
            false,
        );
        assert_eq!(many.to_string().matches("->").count(), 10);
        assert!(many.to_string().ends_with(", and 2 more"));
    }

    #[test]
    fn an_apply_merges_maps_and_replaces_lists() {
        let (live, wanted) = (json!({"a": {"b": 1, "c": [1]}, "d": 1}), json!({"a": {"c": [2], "e": 3}}));
        assert_eq!(super::merged(&live, &wanted), json!({"a": {"b": 1, "c": [2], "e": 3}, "d": 1}));
    }

    #[test]
    fn an_empty_list_that_is_not_there_is_no_change_and_any_other_list_is() {
        let changed = |list: Value| changes(&json!({"spec": {"list": list}}), &json!({"spec": {}}), false).0.len();
        assert_eq!((changed(json!([])), changed(json!([1]))), (0, 1));
    }

    #[test]
    fn a_field_that_changes_as_a_whole_is_added_unless_one_of_its_parts_is_a_change() {
        let wanted = json!({"spec": {"selector": {"a": 1}, "sel": {"a": 1}, "type": "B", "list": [{"a": 2}]}});
        let live =
            json!({"spec": {"selector": {"a": 2, "b": 2}, "sel": {"a": 1, "b": 2}, "type": "A", "list": [{"a": 1}]}});
        let mut found = changes(&wanted, &live, false);
        let before = found.clone();
        found.add_whole(&["selector", "type", "list"].map(|field| Pointer::of(["spec", field])), &wanted, &live);
        assert_eq!(found, before, "what is below them is a change");
        found.add_whole(&[Pointer::of(["spec", "sel"])], &wanted, &live);
        assert_eq!(found.0.len(), before.0.len() + 1);
        assert_eq!((found.0[3].path.as_str(), &found.0[3].values), (".spec.sel", &None));
    }
}
