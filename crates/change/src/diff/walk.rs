//! Compares two values field by field and item by item, and writes down where they differ.

use super::lines;
use super::{Difference, Edit, Shown};
use crate::fields::field_set::{FieldSet, readable_item};
use crate::fields::redact::Place;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// An added map or list that does not fit into a line with its path is shown part by part.
const LINE: usize = 72;
/// Fields that tell the items of a list apart, in this order.
const NAMES: [&str; 6] = ["name", "key", "path", "id", "port", "type"];

/// A comparison in progress.
#[derive(Default)]
pub(super) struct Walk {
    path: String,
    pub(super) found: Vec<Difference>,
}

impl Walk {
    /// Does something one step further down.
    pub(super) fn at(&mut self, step: &str, work: impl FnOnce(&mut Walk)) {
        let length = self.path.len();
        self.path.push_str(step);
        work(self);
        self.path.truncate(length);
    }

    /// Writes down a difference at the place where the comparison is.
    pub(super) fn push(&mut self, edit: Edit) {
        self.found.push(Difference { path: self.path.clone(), edit });
    }

    /// Compares the fields of this set; our own label and annotations are no difference.
    pub(super) fn owned(&mut self, before: Option<&Value>, after: Option<&Value>, set: &FieldSet, place: Place) {
        if before == after || self.is_stamp() {
            return;
        }
        if set.is_whole() || after.is_none() {
            return self.whole(before, after, place);
        }
        if before.is_none() && !self.path.is_empty() && !self.has_stamps() {
            let ours = after.map(|after| pick(after, set));
            return self.whole(None, ours.as_ref(), place);
        }
        let place = [before, after].into_iter().flatten().fold(place, Place::of);
        for (key, below) in set.fields() {
            let [before, after] = [before, after].map(|value| value.and_then(|value| value.get(key)));
            self.at(&format!(".{key}"), |walk| walk.owned(before, after, below, place.field(key)));
        }
        let items = |value: Option<&'_ Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
        let (before, after) = (items(before), items(after));
        let [before, after] = [&before, &after].map(|list| set.items_of(list));
        for (item, below) in set.items() {
            let step = place.shown_items(&readable_item(item));
            let [before, after] = [&before, &after].map(|items| items.get(item).copied());
            self.at(&step, |walk| walk.owned(before, after, below, place));
        }
    }

    /// Compares everything below.
    pub(super) fn whole(&mut self, before: Option<&Value>, after: Option<&Value>, place: Place) {
        let (before, after) = match (before, after) {
            (before, after) if before == after => return,
            (None, None) => return,
            (None, Some(after)) => return self.added(after, place),
            (Some(before), None) => return self.push(Edit::Removed { before: shown(before, place) }),
            (Some(before), Some(after)) => (before, after),
        };
        let place = place.of(before).of(after);
        match (before, after) {
            (Value::Object(before), Value::Object(after)) => {
                let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
                for key in keys {
                    let (before, after) = (before.get(key), after.get(key));
                    self.at(&format!(".{key}"), |walk| walk.whole(before, after, place.field(key)));
                }
            }
            (Value::Array(before), Value::Array(after)) => self.lists(before, after, place),
            (Value::String(one), Value::String(other)) if one.contains('\n') || other.contains('\n') => {
                match place.shown(before).and(place.shown(after)) {
                    Some(_) => self.push(lines::compare(one, other)),
                    None => self.push(Edit::Changed { before: Shown::Redacted, after: Shown::Redacted }),
                }
            }
            _ => self.push(Edit::Changed { before: shown(before, place), after: shown(after, place) }),
        }
    }

    fn lists(&mut self, before: &[Value], after: &[Value], place: Place) {
        let is_plain = |item: &Value| !item.is_object() && !item.is_array();
        if before.iter().chain(after).all(is_plain) {
            let differing = |these: &[Value], others: &[Value]| {
                these.iter().filter(|item| !others.contains(item)).cloned().collect::<Vec<Value>>()
            };
            let (removed, added) = (differing(before, after), differing(after, before));
            // What is left has to be the same list: another order, or an item more often, is a change of its own.
            let rest = |list: &[Value], gone: &[Value]| {
                list.iter().filter(|item| !gone.contains(item)).cloned().collect::<Vec<Value>>()
            };
            if rest(before, &removed) != rest(after, &added) {
                let [before, after] = [before, after].map(|list| shown(&Value::Array(list.to_vec()), place));
                return self.push(Edit::Changed { before, after });
            }
            return self.at("[]", |walk| {
                removed.iter().for_each(|item| walk.push(Edit::Removed { before: shown(item, place) }));
                added.iter().for_each(|item| walk.push(Edit::Added { after: shown(item, place) }));
            });
        }
        let by_name = NAMES.iter().find_map(|name| Some((names(before, name)?, names(after, name)?)));
        let index = |list: &[Value]| (0..list.len()).map(|index| format!("[{index}]")).collect::<Vec<_>>();
        let (before_names, after_names) = by_name.unwrap_or_else(|| (index(before), index(after)));
        let find = |name: &String, names: &[String], list: &'_ [Value]| {
            names.iter().position(|other| other == name).map(|position| list[position].clone())
        };
        for (name, item) in before_names.iter().zip(before) {
            let other = find(name, &after_names, after);
            self.at(&place.shown_items(name), |walk| walk.whole(Some(item), other.as_ref(), place));
        }
        for (name, item) in after_names.iter().zip(after).filter(|(name, _)| !before_names.contains(name)) {
            self.at(&place.shown_items(name), |walk| walk.added(item, place));
        }
    }

    /// Writes down a value that is added: short ones as a whole, long ones part by part.
    pub(super) fn added(&mut self, value: &Value, place: Place) {
        let place = place.of(value);
        match value {
            _ if self.is_stamp() => {}
            Value::Object(fields) if self.path.is_empty() || self.has_stamps() || self.is_long(value, place) => {
                for (key, value) in fields {
                    self.at(&format!(".{key}"), |walk| walk.added(value, place.field(key)));
                }
            }
            Value::Array(items) if self.is_long(value, place) => {
                let is_plain = |item: &Value| !item.is_object() && !item.is_array();
                if items.iter().all(is_plain) {
                    return self.at("[]", |walk| items.iter().for_each(|item| walk.added(item, place)));
                }
                let named = NAMES.iter().find_map(|name| names(items, name));
                let named = named.unwrap_or_else(|| (0..items.len()).map(|index| format!("[{index}]")).collect());
                for (name, item) in named.iter().zip(items) {
                    self.at(&place.shown_items(name), |walk| walk.added(item, place));
                }
            }
            _ => self.push(Edit::Added { after: shown(value, place) }),
        }
    }

    fn is_long(&self, value: &Value, place: Place) -> bool {
        let room = LINE.saturating_sub(self.path.chars().count());
        !place.is_hidden(value) && place.shown_length(value, room) > room
    }

    /// Whether the place is a label or annotation that we write beside what is wanted.
    pub(super) fn is_stamp(&self) -> bool {
        let key = [".metadata.labels.", ".metadata.annotations."].iter().find_map(|map| self.path.strip_prefix(map));
        key.is_some_and(|key| [api::annotation::PREFIX, api::advisor::PREFIX].iter().any(|ours| key.starts_with(ours)))
    }

    /// Whether such ones are directly below.
    fn has_stamps(&self) -> bool {
        [".metadata", ".metadata.labels", ".metadata.annotations"].contains(&self.path.as_str())
    }
}

/// The value as far as it may be shown; of a text of many lines both its lines and their number.
fn shown(value: &Value, place: Place) -> Shown {
    match place.shown(value) {
        None => Shown::Redacted,
        Some(Value::String(text)) if text.contains('\n') => {
            Shown::Text { summary: lines::count(&text), lines: text.lines().map(str::to_owned).collect() }
        }
        Some(value) => Shown::Value(value),
    }
}

/// A name for every item of a list by this field, if all have one and no two the same.
fn names(items: &[Value], field: &str) -> Option<Vec<String>> {
    let name = |item: &Value| {
        let value = item.get(field).filter(|value| value.is_string() || value.is_number())?;
        Some(format!("[{field}={value}]"))
    };
    let names: Vec<String> = items.iter().map(name).collect::<Option<_>>()?;
    (names.iter().collect::<BTreeSet<_>>().len() == names.len()).then_some(names)
}

/// The part of a value that is in this set.
fn pick(value: &Value, set: &FieldSet) -> Value {
    if set.is_whole() {
        return value.clone();
    }
    match value {
        Value::Object(fields) => {
            let below = set.fields().filter_map(|(key, below)| Some((key.to_owned(), pick(fields.get(key)?, below))));
            Value::Object(below.collect::<Map<_, _>>())
        }
        Value::Array(list) => {
            let named = set.items_of(list);
            set.items().filter_map(|(item, below)| Some(pick(named.get(item)?, below))).collect()
        }
        plain => plain.clone(),
    }
}

/// Leaves out what an object is: kind, name and namespace.
pub(super) fn without_identity(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    fields.retain(|key, _| !["apiVersion", "kind"].contains(&key.as_str()));
    if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.retain(|key, _| ["labels", "annotations"].contains(&key.as_str()));
    }
}
