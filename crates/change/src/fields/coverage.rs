//! An object compared with a set of fields, item by item in lists.

use crate::fields::field_set::{Below, FieldSet};
use crate::fields::list_items::{items_by_name, name_items};
use serde_json::{Map, Value};

impl FieldSet {
    /// The fields of an object that this set does not have. Items of lists are named as in `known`, which is all that is known of the
    /// object; a list with an item that nobody knows is missing itself.
    #[must_use]
    pub fn missing_of(&self, object: &Value, known: &FieldSet) -> FieldSet {
        self.missing(object, known, Empty::Ignored)
    }

    /// The same, with maps and lists that the object wants empty: somebody else may have filled them.
    #[must_use]
    pub(super) fn missing_or_empty_of(&self, object: &Value, known: &FieldSet) -> FieldSet {
        self.missing(object, known, Empty::Counts)
    }

    fn missing(&self, object: &Value, known: &FieldSet, empty: Empty) -> FieldSet {
        let mut missing = missing(Some(self), object, Some(known), empty);
        // What the object is.
        if let Some(metadata) = missing.fields.get_mut("metadata") {
            metadata.fields.retain(|key| !["name", "namespace", "uid", "resourceVersion"].contains(&key));
        }
        missing.fields.retain(|key| key != "apiVersion" && key != "kind");
        FieldSet { fields: missing.fields.iter().map(|(key, set)| (key, set.clone())).collect(), ..missing }
    }

    /// Whether this set has all fields of an object.
    pub fn covers(&self, object: &Value) -> bool {
        self.missing_of(object, &FieldSet::default()).is_empty()
    }

    /// The part of a value that this set has; nothing if it has none of it.
    pub fn part_of(&self, value: &Value) -> Option<Value> {
        if self.is_whole() {
            return Some(value.clone());
        }
        match value {
            Value::Object(map) => {
                let mut below = self.fields.in_order_of();
                let parts = map.iter().filter_map(|(key, value)| Some((key.clone(), below.get(key)?.part_of(value)?)));
                let parts: Map<String, Value> = parts.collect();
                (self.itself || !parts.is_empty()).then_some(Value::Object(parts))
            }
            Value::Array(list) => {
                let named = name_items(list, &self.items).into_iter().zip(list);
                let parts: Vec<Value> = named.filter_map(|(named, item)| named?.1.part_of(item)).collect();
                (self.itself || !parts.is_empty()).then_some(Value::Array(parts))
            }
            plain => self.itself.then(|| plain.clone()),
        }
    }

    /// The fields of this set that an object does not have.
    #[must_use]
    pub fn beyond(&self, object: &Value) -> FieldSet {
        beyond(self, Some(object))
    }

    /// Those of these missing fields that somebody with this set of fields has.
    #[must_use]
    pub(super) fn held_by(&self, theirs: &FieldSet) -> FieldSet {
        if theirs.is_whole() {
            return self.clone();
        }
        let both = |mine: &Below, theirs: &Below| {
            let mut theirs = theirs.in_order_of();
            mine.iter().filter_map(|(step, set)| Some((step, set.held_by(theirs.get(step)?)))).collect()
        };
        FieldSet {
            // Other items of a list are no reason to call the list theirs.
            itself: self.itself && (theirs.itself || !theirs.fields.is_empty()),
            fields: both(&self.fields, &theirs.fields),
            items: both(&self.items, &theirs.items),
        }
    }

    /// The fields of this set in which an object as it is differs from what is wanted of it.
    #[must_use]
    pub fn differing(&self, wanted: &Value, live: Option<&Value>) -> FieldSet {
        if self.is_whole() {
            // Nobody else has a part of it, so what it has beside what is wanted is taken away.
            return FieldSet { itself: Some(wanted) != live, ..FieldSet::default() };
        }
        match wanted {
            // Most of a large object is the same.
            wanted if Some(wanted) == live => FieldSet::default(),
            Value::Object(wanted) => {
                let mut sets = self.fields.in_order_of();
                let fields = wanted.iter().filter_map(|(key, wanted)| {
                    let set = sets.get(key)?;
                    Some((key.as_str(), set.differing(wanted, live.and_then(|live| live.get(key)))))
                });
                FieldSet { fields: fields.collect(), ..FieldSet::default() }
            }
            Value::Array(wanted) => {
                let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let there = items_by_name(live, &self.items);
                let named = name_items(wanted, &self.items).into_iter().zip(wanted);
                let differing = named.filter_map(|(named, item)| {
                    let (step, set) = named?;
                    Some((step, set.differing(item, there.get(step).copied())))
                });
                FieldSet { items: differing.collect(), ..FieldSet::default() }
            }
            // A plain value instead of what has parts.
            _ => FieldSet { itself: self.itself, ..FieldSet::default() },
        }
    }
}

/// Whether a map or list without content counts as a field. The server does not always record it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Empty {
    Ignored,
    Counts,
}

fn missing(owned: Option<&FieldSet>, value: &Value, known: Option<&FieldSet>, empty: Empty) -> FieldSet {
    if owned.is_some_and(FieldSet::is_whole) {
        return FieldSet::default();
    }
    let is_empty = value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty);
    if is_empty && empty == Empty::Counts {
        return FieldSet { itself: owned.is_none(), ..FieldSet::default() };
    }
    match value {
        Value::Object(fields) => {
            let [mut owned, mut known] = [owned, known].map(|set| set.map(|set| set.fields.in_order_of()));
            let below = fields.iter().map(|(key, value)| {
                let [owned, known] = [&mut owned, &mut known].map(|sets| sets.as_mut().and_then(|sets| sets.get(key)));
                (key.as_str(), missing(owned, value, known, empty))
            });
            FieldSet { fields: below.collect(), ..FieldSet::default() }
        }
        Value::Array(list) => {
            let [owned, known] = [owned, known]
                .map(|set| set.map_or_else(|| vec![None; list.len()], |set| name_items(list, &set.items)));
            let is_unknown = owned.iter().zip(&known).any(|(owned, known)| owned.is_none() && known.is_none());
            let items = list.iter().zip(owned).zip(known).filter_map(|((item, owned), known)| {
                let (step, _) = owned.or(known)?;
                let below = missing(owned.map(|(_, set)| set), item, known.map(|(_, set)| set), empty);
                Some((step, FieldSet { itself: below.itself || owned.is_none(), ..below }))
            });
            FieldSet { itself: is_unknown, items: items.collect(), ..FieldSet::default() }
        }
        _ => FieldSet { itself: !owned.is_some_and(|owned| owned.itself), ..FieldSet::default() },
    }
}

fn beyond(set: &FieldSet, value: Option<&Value>) -> FieldSet {
    match value {
        None => set.clone(),
        Some(Value::Object(object)) => {
            // Both are in order; a search for each name would cost most of a decision.
            let mut values = object.iter().peekable();
            let mut value = |name: &str| {
                while values.next_if(|(key, _)| key.as_str() < name).is_some() {}
                values.next_if(|(key, _)| key.as_str() == name).map(|(_, value)| value)
            };
            let fields = set.fields.iter().map(|(name, below)| (name, beyond(below, value(name))));
            FieldSet { itself: false, fields: fields.collect(), items: set.items.clone() }
        }
        Some(Value::Array(list)) => {
            let there = items_by_name(list, &set.items);
            let items = set.items.iter().map(|(step, below)| (step, beyond(below, there.get(step).copied())));
            FieldSet { itself: false, fields: set.fields.clone(), items: items.collect() }
        }
        Some(_) => FieldSet { itself: false, ..set.clone() },
    }
}

#[cfg(test)]
mod tests {
    use crate::fields::field_set::FieldSet;
    use serde_json::{Value, json};

    fn object() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "uid": "u", "labels": {"app": "x", "app.kubernetes.io/name": "y"}},
            "spec": {"type": "A", "selector": {"app": "x"}, "ports": [{"port": 1, "name": "a"}], "none": [], "empty": {}}})
    }

    fn missing(fields: &Value, known: &Value) -> Vec<String> {
        FieldSet::read(fields).missing_of(&object(), &FieldSet::read(known)).paths().collect()
    }

    #[test]
    fn what_an_object_has_and_a_set_has_not_is_missing() {
        let labels = json!({"f:labels": {"f:app": {}, "f:app.kubernetes.io/name": {}}});
        let ports = json!({r#"k:{"port":1}"#: {".": {}, "f:port": {}, "f:name": {}}});
        let all = json!({"f:metadata": labels, "f:spec": {"f:type": {}, "f:selector": {}, "f:ports": ports}});
        assert_eq!(missing(&all, &all), [""; 0]);
        let fewer = json!({"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:typed": {}, "f:selector": {"f:app": {}},
            "f:ports": {r#"k:{"port":1}"#: {".": {}, "f:port": {}}}}});
        let expected = [".metadata.labels.app.kubernetes.io/name", ".spec.ports[port=1].name", ".spec.type"];
        assert_eq!(missing(&fewer, &all), expected);
        // A list whose item nobody owns is missing itself; an item of somebody else is named as theirs.
        let none = json!({"f:metadata": labels, "f:spec": {"f:type": {}, "f:selector": {}}});
        assert_eq!(missing(&none, &none), [".spec.ports"]);
        let item = ".spec.ports[port=1]";
        assert_eq!(missing(&none, &all), [item.to_owned(), format!("{item}.name"), format!("{item}.port")]);
    }

    #[test]
    fn what_a_set_has_and_an_object_has_not_is_beyond_it() {
        let item = json!({".": {}, "f:port": {}, "f:gone": {}});
        let set = json!({"f:spec": {"f:type": {}, "f:gone": {}, "f:selector": {"f:gone": {}},
            "f:ports": {r#"k:{"port":1}"#: item, r#"k:{"port":2}"#: {".": {}}}}});
        let beyond: Vec<String> = FieldSet::read(&set).beyond(&object()).paths().collect();
        assert_eq!(beyond, [".spec.gone", ".spec.ports[port=1].gone", ".spec.ports[port=2]", ".spec.selector.gone"]);
    }

    #[test]
    fn of_an_object_with_nothing_but_a_name_nothing_is_missing() {
        assert!(FieldSet::default().covers(&json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}})));
    }

    #[test]
    fn a_lost_field_is_held_by_whoever_has_it_or_fields_of_it_but_not_by_owners_of_other_items() {
        let held = |theirs: Value| {
            let (lost, theirs) = (FieldSet::read(&json!({"f:a": {}})), FieldSet::read(&json!({"f:a": theirs})));
            !lost.held_by(&theirs).is_empty()
        };
        assert!(held(json!({})) && held(json!({"f:b": {}})) && held(json!({".": {}, "v:1": {}})));
        assert!(!held(json!({"v:1": {}})));
    }

    #[test]
    fn a_plain_value_instead_of_what_has_parts_differs_for_the_owner_of_the_whole() {
        let differing = |set: Value, wanted: Value, live: Value| {
            let [wanted, live] = [wanted, live].map(|a| json!({"a": a, "b": a}));
            let paths: Vec<String> =
                FieldSet::read(&json!({"f:a": set})).differing(&wanted, Some(&live)).paths().collect();
            paths
        };
        let (whole, part) = (json!({".": {}, "f:c": {}}), json!({"f:c": {}}));
        assert_eq!(differing(whole.clone(), json!(1), json!({"c": 2})), [".a"]);
        assert_eq!(differing(part, json!(1), json!({"c": 2})), [""; 0]);
        let same = json!({"a": 1, "b": 1});
        let other = json!({"a": 1, "b": 2});
        assert!(FieldSet::read(&json!({"f:a": whole})).differing(&same, Some(&other)).is_empty());
    }
}
