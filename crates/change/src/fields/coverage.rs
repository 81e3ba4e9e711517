//! An object compared with a set of fields, item by item in lists.

use crate::content;
use crate::fields::field_set::FieldSet;
use crate::fields::list_items::{items_by_name, name_items};
use serde_json::Value;
use std::collections::BTreeMap;

impl FieldSet {
    /// The fields of an object that this set does not have. Items of lists are named as in `known`, which is all that is known of the
    /// object; a list with an item that nobody knows is missing itself.
    #[must_use]
    pub fn missing_of(&self, object: &Value, known: &FieldSet) -> FieldSet {
        let mut missing = missing(Some(self), object, Some(known));
        // What the object is.
        missing.fields.remove("apiVersion");
        missing.fields.remove("kind");
        if let Some(metadata) = missing.fields.get_mut("metadata") {
            for key in ["name", "namespace", "uid", "resourceVersion"] {
                metadata.fields.remove(key);
            }
        }
        missing
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
        let both = |mine: &BTreeMap<Box<str>, FieldSet>, theirs: &BTreeMap<Box<str>, FieldSet>| {
            mine.iter().filter_map(|(step, set)| Some((step.clone(), set.held_by(theirs.get(step)?)))).collect()
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
    pub(super) fn differing(&self, wanted: &Value, live: Option<&Value>) -> FieldSet {
        if self.is_whole() {
            return FieldSet { itself: content::differs(wanted, live), ..FieldSet::default() };
        }
        match wanted {
            Value::Object(wanted) => {
                let of = |(key, wanted): (&String, &Value)| {
                    let set = self.fields.get(key.as_str())?;
                    Some((key.as_str().into(), set.differing(wanted, live.and_then(|live| live.get(key)))))
                };
                FieldSet { fields: wanted.iter().filter_map(of).collect(), ..FieldSet::default() }
            }
            Value::Array(wanted) => {
                let live = live.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let there = items_by_name(live, &self.items);
                let named = name_items(wanted, &self.items).into_iter().zip(wanted);
                let differing = named.filter_map(|(named, item)| {
                    let (step, set) = named?;
                    Some((step.into(), set.differing(item, there.get(step).copied())))
                });
                FieldSet { items: differing.collect(), ..FieldSet::default() }
            }
            wanted => FieldSet { itself: content::differs(wanted, live), ..FieldSet::default() },
        }
    }
}

fn missing(owned: Option<&FieldSet>, value: &Value, known: Option<&FieldSet>) -> FieldSet {
    let mut missing_here = FieldSet::default();
    if owned.is_some_and(FieldSet::is_whole) {
        return missing_here;
    }
    match value {
        Value::Object(fields) => {
            for (key, below) in fields {
                let [owned, known] = [owned, known].map(|set| set.and_then(|set| set.fields.get(key.as_str())));
                let missing = missing(owned, below, known);
                if !missing.is_empty() {
                    missing_here.fields.insert(key.as_str().into(), missing);
                }
            }
        }
        Value::Array(list) => {
            let [owned, known] = [owned, known]
                .map(|set| set.map_or_else(|| vec![None; list.len()], |set| name_items(list, &set.items)));
            for ((item, owned), known) in list.iter().zip(owned).zip(known) {
                let Some((step, _)) = owned.or(known) else {
                    missing_here.itself = true;
                    continue;
                };
                let mut missing = missing(owned.map(|(_, set)| set), item, known.map(|(_, set)| set));
                missing.itself |= owned.is_none();
                if !missing.is_empty() {
                    missing_here.items.insert(step.into(), missing);
                }
            }
        }
        _ => missing_here.itself = !owned.is_some_and(|owned| owned.itself),
    }
    missing_here
}

fn beyond(set: &FieldSet, value: Option<&Value>) -> FieldSet {
    match value {
        None => set.clone(),
        Some(Value::Object(object)) => {
            let fields = set.fields.iter().map(|(name, below)| (name.clone(), beyond(below, object.get(&**name))));
            FieldSet { itself: false, fields: not_empty(fields), items: set.items.clone() }
        }
        Some(Value::Array(list)) => {
            let there = items_by_name(list, &set.items);
            let items =
                set.items.iter().map(|(step, below)| (step.clone(), beyond(below, there.get(&**step).copied())));
            FieldSet { itself: false, fields: set.fields.clone(), items: not_empty(items) }
        }
        Some(_) => FieldSet { itself: false, ..set.clone() },
    }
}

fn not_empty(sets: impl Iterator<Item = (Box<str>, FieldSet)>) -> BTreeMap<Box<str>, FieldSet> {
    sets.filter(|(_, set)| !set.is_empty()).collect()
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
}
