//! A set of fields of one object, as `metadata.managedFields` records which field manager owns which field.

use crate::fields::list_items::items_by_name;
use crate::fields::pointer::Pointer;
use crate::fields::redact::Place;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// A set of fields, shown as `.spec.replicas` or `.spec.ports[port=80].name`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Whether the field itself is in the set. With nothing below it that means the whole field: a plain value, an atomic map or list.
    pub(super) itself: bool,
    pub(super) fields: Below,
    /// Items of a list, by key or by value, in the server's words: `k:{"port":80}` or `v:"x"`.
    pub(super) items: Below,
}

/// Sets by the step that leads to them, in order. A set has as many of these as an object has fields, so they are small.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Below(Vec<(Box<str>, FieldSet)>);

impl Below {
    pub(super) fn get(&self, step: &str) -> Option<&FieldSet> {
        let at = self.0.binary_search_by(|(other, _)| (**other).cmp(step)).ok()?;
        Some(&self.0[at].1)
    }

    /// The sets at steps that are asked for in order.
    pub(super) fn in_order_of(&self) -> InOrder<'_> {
        InOrder(&self.0)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &FieldSet)> {
        self.0.iter().map(|(step, set)| (&**step, set))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Leaves some out.
    pub(super) fn retain(&mut self, is_kept: impl Fn(&str) -> bool) {
        self.0.retain(|(step, _)| is_kept(step));
    }

    pub(super) fn get_mut(&mut self, step: &str) -> Option<&mut FieldSet> {
        let at = self.0.binary_search_by(|(other, _)| (**other).cmp(step)).ok()?;
        Some(&mut self.0[at].1)
    }
}

/// Finds the sets at steps that are asked for in order, as the keys of a map are: a search for each would cost most of a decision.
#[derive(Clone, Copy)]
pub(super) struct InOrder<'a>(&'a [(Box<str>, FieldSet)]);

impl<'a> InOrder<'a> {
    pub(super) fn get(&mut self, step: &str) -> Option<&'a FieldSet> {
        while let Some(((next, set), rest)) = self.0.split_first() {
            match (**next).cmp(step) {
                Ordering::Less => self.0 = rest,
                Ordering::Equal => return Some(set),
                Ordering::Greater => return None,
            }
        }
        None
    }
}

/// Empty sets are left out.
impl<'a> FromIterator<(&'a str, FieldSet)> for Below {
    fn from_iter<I: IntoIterator<Item = (&'a str, FieldSet)>>(sets: I) -> Below {
        let sets = sets.into_iter().filter(|(_, set)| !set.is_empty());
        Below::in_order(sets.map(|(step, set)| (step.into(), set)).collect())
    }
}

impl Below {
    fn in_order(mut sets: Vec<(Box<str>, FieldSet)>) -> Below {
        // The server sends them in order.
        if !sets.is_sorted_by(|(one, _), (other, _)| one < other) {
            sets.sort_by(|(one, _), (other, _)| one.cmp(other));
            sets.dedup_by(|(one, _), (other, _)| one == other);
        }
        Below(sets)
    }
}

impl FieldSet {
    /// Parses `fieldsV1`.
    pub fn parse(text: &str) -> Result<FieldSet, String> {
        serde_json::from_str(text).map(FieldSet::at_top).map_err(|error| error.to_string())
    }

    /// Reads `fieldsV1`; anything else is an empty set.
    pub fn read(fields: &Value) -> FieldSet {
        FieldSet::deserialize(fields).map(FieldSet::at_top).unwrap_or_default()
    }

    /// An apply of nothing but a name owns no field, and not the whole object.
    pub(super) fn at_top(self) -> FieldSet {
        FieldSet { itself: false, ..self }
    }

    /// The fields of this set that the other does not have.
    #[must_use]
    pub fn without(&self, other: &FieldSet) -> FieldSet {
        self.select(other, |here, there| here && !there)
    }

    /// The fields that are in both sets.
    #[must_use]
    pub fn common(&self, other: &FieldSet) -> FieldSet {
        self.select(other, |here, there| here && there)
    }

    /// The fields of this set that are chosen by whether both sets have them.
    fn select(&self, other: &FieldSet, is_chosen: fn(bool, bool) -> bool) -> FieldSet {
        let nothing = FieldSet::default();
        let below = |mine: &Below, theirs: &Below| {
            let mut theirs = theirs.in_order_of();
            mine.iter().map(|(step, set)| (step, set.select(theirs.get(step).unwrap_or(&nothing), is_chosen))).collect()
        };
        FieldSet {
            itself: is_chosen(self.itself, other.itself),
            fields: below(&self.fields, &other.fields),
            items: below(&self.items, &other.items),
        }
    }

    /// The fields that are in one of the sets.
    #[must_use]
    pub fn with(&self, other: &FieldSet) -> FieldSet {
        let below = |mine: &Below, theirs: &Below| {
            let both = mine
                .iter()
                .map(|(step, set)| (step, theirs.get(step).map_or_else(|| set.clone(), |more| set.with(more))));
            let more = theirs.iter().filter(|(step, _)| mine.get(step).is_none());
            both.chain(more.map(|(step, set)| (step, set.clone()))).collect()
        };
        FieldSet {
            itself: self.itself || other.itself,
            fields: below(&self.fields, &other.fields),
            items: below(&self.items, &other.items),
        }
    }

    /// The sets of the fields below, each by its name.
    pub(crate) fn fields(&self) -> impl Iterator<Item = (&str, &FieldSet)> {
        self.fields.iter()
    }

    /// The sets of the list items below, each by the server's name for it.
    pub(crate) fn items(&self) -> impl Iterator<Item = (&str, &FieldSet)> {
        self.items.iter()
    }

    /// The items of a list that this set has, by the server's names for them.
    pub(crate) fn items_of<'a>(&'a self, list: &'a [Value]) -> BTreeMap<&'a str, &'a Value> {
        items_by_name(list, &self.items)
    }

    /// Whether the set has no field.
    pub fn is_empty(&self) -> bool {
        !self.itself && !self.has_parts()
    }

    /// Whether this stands for the field and everything below it.
    pub fn is_whole(&self) -> bool {
        self.itself && !self.has_parts()
    }

    /// What is in the set at and below a field that no list leads to.
    pub fn at<'a>(&self, mut steps: impl Iterator<Item = &'a str>) -> Option<&FieldSet> {
        steps.try_fold(self, |set, step| set.fields.get(step))
    }

    /// Whether this set has a map as a whole of which the other has a part.
    pub(super) fn shares_map(&self, other: &FieldSet) -> bool {
        let below = |mine: &Below, theirs: &Below| {
            let mut theirs = theirs.in_order_of();
            mine.iter().any(|(step, set)| theirs.get(step).is_some_and(|other| set.shares_map(other)))
        };
        match self.is_whole() {
            true => other.has_parts(),
            false => below(&self.fields, &other.fields) || below(&self.items, &other.items),
        }
    }

    fn has_parts(&self) -> bool {
        !self.fields.is_empty() || !self.items.is_empty()
    }

    /// This set without maps of which another has parts: what is left of them is only that they exist, and not that they are ours as a
    /// whole. The server records both in the same way.
    #[must_use]
    pub(super) fn without_shared_maps(&self, other: &FieldSet) -> FieldSet {
        if !other.has_parts() {
            return self.clone();
        }
        let nothing = FieldSet::default();
        let below = |mine: &Below, theirs: &Below| {
            let mut theirs = theirs.in_order_of();
            mine.iter()
                .map(|(step, set)| (step, set.without_shared_maps(theirs.get(step).unwrap_or(&nothing))))
                .collect()
        };
        FieldSet {
            itself: self.itself && !self.is_whole(),
            fields: below(&self.fields, &other.fields),
            items: below(&self.items, &other.items),
        }
    }

    /// Leaves out what is at and below a field that no list leads to.
    pub fn leave_out(&mut self, steps: &[String]) {
        match steps {
            [] => {}
            [last] => self.fields.retain(|step| step != last),
            [first, rest @ ..] => {
                if let Some(below) = self.fields.get_mut(first) {
                    below.leave_out(rest);
                    if below.is_empty() {
                        self.fields.retain(|step| step != first);
                    }
                }
            }
        }
    }

    /// The fields that no list leads to.
    pub fn pointers(&self) -> Vec<Pointer> {
        let mut pointers = Vec::new();
        self.collect_pointers(&mut Vec::new(), &mut pointers);
        pointers
    }

    fn collect_pointers(&self, steps: &mut Vec<String>, pointers: &mut Vec<Pointer>) {
        if self.itself {
            pointers.push(Pointer::from_steps(steps.clone()));
        }
        for (name, below) in self.fields.iter() {
            steps.push(name.to_owned());
            below.collect_pointers(steps, pointers);
            steps.pop();
        }
    }

    /// The paths in order, in readable form.
    pub fn paths(&self) -> impl Iterator<Item = String> {
        let mut paths = Vec::new();
        self.collect_paths(&mut String::new(), Place::default(), &mut paths);
        paths.into_iter()
    }

    fn collect_paths(&self, path: &mut String, place: Place, paths: &mut Vec<String>) {
        if self.itself {
            paths.push(path.clone());
        }
        let length = path.len();
        for (name, below) in self.fields.iter() {
            path.push('.');
            path.push_str(name);
            below.collect_paths(path, place.field(name), paths);
            path.truncate(length);
        }
        for (item, below) in self.items.iter() {
            // A list item may be named by its value, which may not be shown.
            path.push_str(&place.shown_items(&readable_item(item)));
            below.collect_paths(path, place, paths);
            path.truncate(length);
        }
    }
}

/// Shows `k:{"port":80,"protocol":"TCP"}` as `[port=80,protocol="TCP"]` and `v:"x"` as `["x"]`.
pub(crate) fn readable_item(item: &str) -> String {
    let (_, text) = item.split_once(':').unwrap_or_default();
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(parts)) if item.starts_with('k') => {
            let parts: Vec<String> = parts.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("[{}]", parts.join(","))
        }
        _ => format!("[{text}]"),
    }
}

/// `f:name` is a field, `k:{...}` a list item by its key, `v:...` a list item by its value, `.` the field itself; an empty map is the
/// whole field.
impl<'de> Deserialize<'de> for FieldSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldSet, D::Error> {
        struct Steps;
        impl<'de> Visitor<'de> for Steps {
            type Value = FieldSet;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut steps: A) -> Result<FieldSet, A::Error> {
                let (mut itself, mut fields, mut items) = (false, Vec::new(), Vec::new());
                while let Some(step) = steps.next_key::<std::borrow::Cow<'de, str>>()? {
                    match step.split_at_checked(2) {
                        Some(("f:", name)) => {
                            fields.push((name.into(), steps.next_value()?));
                        }
                        Some(("k:" | "v:" | "i:", _)) => {
                            items.push((step.into(), steps.next_value()?));
                        }
                        // `.`, or a step that we do not know: then it may be any part of the field.
                        _ => {
                            itself = true;
                            steps.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                itself |= fields.is_empty() && items.is_empty();
                Ok(FieldSet { itself, fields: Below::in_order(fields), items: Below::in_order(items) })
            }
        }
        deserializer.deserialize_map(Steps)
    }
}

#[cfg(test)]
mod tests {
    use super::FieldSet;
    use serde_json::{Value, json};

    fn paths(set: &FieldSet) -> Vec<String> {
        set.paths().collect()
    }

    #[test]
    fn a_set_is_read_and_shown() {
        let fields = json!({"f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}}, "f:finalizers": {"v:\"x\"": {}}},
            "f:spec": {"f:ports": {"k:{\"port\":8080,\"protocol\":\"TCP\"}": {".": {}, "f:name": {}}}}});
        let expected = [
            ".metadata.finalizers[\"x\"]",
            ".metadata.labels.app.kubernetes.io/name",
            ".spec.ports[port=8080,protocol=\"TCP\"]",
            ".spec.ports[port=8080,protocol=\"TCP\"].name",
        ];
        assert_eq!(paths(&FieldSet::read(&fields)), expected);
        assert_eq!(FieldSet::parse(&fields.to_string()), Ok(FieldSet::read(&fields)));
        for nothing in [json!({}), json!(null), json!([])] {
            assert!(FieldSet::read(&nothing).is_empty(), "{nothing}");
        }
        assert_eq!(paths(&FieldSet::read(&json!({"f:a": {"x:new": {}}}))), [".a"], "a step of a later version");
    }

    #[test]
    fn sets_are_compared_field_by_field() {
        let set = |fields: Value| FieldSet::read(&fields);
        let one = set(json!({"f:a": {}, "f:b": {"f:c": {}, "f:d": {}}, "f:l": {"k:{\"n\":1}": {".": {}, "f:n": {}}}}));
        let two = set(json!({"f:b": {"f:c": {}}, "f:l": {"k:{\"n\":1}": {".": {}}, "k:{\"n\":2}": {".": {}}}}));
        assert_eq!(paths(&one.without(&two)), [".a", ".b.d", ".l[n=1].n"]);
        assert_eq!(paths(&one.common(&two)), [".b.c", ".l[n=1]"]);
        assert_eq!(paths(&two.without(&one)), [".l[n=2]"]);
        assert!(one.without(&one).is_empty());
        let all = one.with(&two);
        assert!(one.without(&all).is_empty() && two.without(&all).is_empty());
        assert_eq!(paths(&all).len(), 6);
        let parts = set(json!({"f:b": {"f:c": {}}}));
        assert_eq!(paths(&parts.with(&set(json!({"f:b": {}})))), [".b", ".b.c"], "a field and its parts");
    }

    #[test]
    fn a_field_that_is_given_twice_is_in_the_set_once() {
        assert_eq!(paths(&FieldSet::parse(r#"{"f:a":{},"f:a":{}}"#).unwrap()), [".a"]);
        assert_eq!(paths(&FieldSet::parse(r#"{"f:b":{},"f:a":{},"f:b":{}}"#).unwrap()), [".a", ".b"]);
    }

    #[test]
    fn a_set_that_is_no_map_is_an_error_that_says_what_it_should_be() {
        let error = FieldSet::parse("[]").unwrap_err();
        assert!(error.contains("expected a map of fields"), "{error}");
    }

    #[test]
    fn an_item_that_is_named_by_a_value_with_parts_is_shown_as_it_is() {
        assert_eq!(paths(&FieldSet::read(&json!({"f:a": {"v:{\"b\":1}": {}}}))), [".a[{\"b\":1}]"]);
    }

    #[test]
    fn what_is_left_out_is_gone_with_the_fields_around_it_that_are_left_empty() {
        let without = |steps: &[&str]| {
            let mut set = FieldSet::read(&json!({"f:a": {"f:b": {}}, "f:c": {"f:d": {}, "f:e": {".": {}, "f:f": {}}}}));
            set.leave_out(&steps.iter().map(|step| (*step).to_owned()).collect::<Vec<_>>());
            (paths(&set).join(" "), set.at(["a"].into_iter()).is_some())
        };
        let all = ".a.b .c.d .c.e .c.e.f";
        assert_eq!(without(&[]), (all.into(), true));
        assert_eq!(without(&["x", "b"]), (all.into(), true));
        assert_eq!(without(&["a", "x"]), (all.into(), true));
        assert_eq!(without(&["a", "b"]), (".c.d .c.e .c.e.f".into(), false));
        assert_eq!(without(&["c", "e", "f"]), (".a.b .c.d .c.e".into(), true));
        assert_eq!(without(&["c"]), (".a.b".into(), true));
    }

    #[test]
    fn the_pointers_of_a_set_are_its_fields_outside_of_lists() {
        let set = FieldSet::read(&json!({"f:a": {"f:b/c": {}, "f:d": {".": {}, "f:e": {}}}, "f:l": {"v:1": {}}}));
        let pointers: Vec<String> = set.pointers().iter().map(ToString::to_string).collect();
        assert_eq!(pointers, ["/a/b~1c", "/a/d", "/a/d/e"]);
    }
}
