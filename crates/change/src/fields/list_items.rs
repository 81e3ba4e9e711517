//! Which items of a list are meant by the keys in `managedFields`.

use crate::fields::field_set::FieldSet;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// An item in `managedFields`: the server's name for it, and what is in the set of it.
pub(super) type Named<'a> = (&'a str, &'a FieldSet);

/// For each item of a list the one of the set that names it. A key that the item does not have is a default that the server filled in.
pub(super) fn name_items<'a>(list: &[Value], set: &'a BTreeMap<Box<str>, FieldSet>) -> Vec<Option<Named<'a>>> {
    if set.is_empty() {
        return vec![None; list.len()];
    }
    let names = Names::read(set);
    let mut taken = BTreeSet::new();
    let mut named: Vec<Option<Named<'a>>> = list.iter().map(|item| names.exact(item)).collect();
    taken.extend(named.iter().flatten().map(|(step, _)| *step));
    let mut partial = BTreeMap::new();
    for (item, named) in list.iter().zip(&mut named).filter(|(_, named)| named.is_none()) {
        *named = names.partial(item, &mut partial, &taken);
        taken.extend(named.iter().map(|(step, _)| *step));
    }
    named
}

/// The items of a list that the set names.
pub(super) fn items_by_name<'a>(
    list: &'a [Value],
    set: &'a BTreeMap<Box<str>, FieldSet>,
) -> BTreeMap<&'a str, &'a Value> {
    name_items(list, set).into_iter().zip(list).filter_map(|(named, item)| Some((named?.0, item))).collect()
}

/// The names in a set. All items of one list have the same keys.
struct Names<'a> {
    /// The names of the keys; none if items are named by their value.
    keys: Vec<String>,
    /// What a name says, in one spelling.
    exact: BTreeMap<String, Named<'a>>,
    parts: Vec<(Map<String, Value>, Named<'a>)>,
}

/// Items by those of their keys that are given.
type Partial<'a> = BTreeMap<Vec<bool>, BTreeMap<String, Vec<Named<'a>>>>;

impl<'a> Names<'a> {
    fn read(set: &'a BTreeMap<Box<str>, FieldSet>) -> Names<'a> {
        let mut names = Names { keys: Vec::new(), exact: BTreeMap::new(), parts: Vec::new() };
        for (step, below) in set {
            let (sort, text) = step.split_once(':').unwrap_or_default();
            match (sort, serde_json::from_str(text)) {
                ("k", Ok(Value::Object(parts))) => {
                    if names.keys.is_empty() {
                        names.keys = parts.keys().cloned().collect();
                    }
                    names.exact.insert(Value::Object(parts.clone()).to_string(), (step, below));
                    names.parts.push((parts, (step, below)));
                }
                ("v", Ok(value)) => {
                    names.exact.insert(value.to_string(), (step, below));
                }
                _ => {}
            }
        }
        names
    }

    fn exact(&self, item: &Value) -> Option<Named<'a>> {
        if self.keys.is_empty() {
            return self.exact.get(&item.to_string()).copied();
        }
        let key: Option<Map<String, Value>> =
            self.keys.iter().map(|key| Some((key.clone(), item.get(key)?.clone()))).collect();
        self.exact.get(&Value::Object(key?).to_string()).copied()
    }

    /// An item of which some keys are given, unless another item has all of them.
    fn partial(&self, item: &Value, index: &mut Partial<'a>, taken: &BTreeSet<&str>) -> Option<Named<'a>> {
        let given: Vec<bool> = self.keys.iter().map(|key| item.get(key).is_some()).collect();
        if !given.contains(&true) || !given.contains(&false) {
            return None;
        }
        let spelled = |of: &dyn Fn(&String) -> Option<Value>| {
            let keys = self.keys.iter().zip(&given).filter(|(_, given)| **given);
            keys.map(|(key, _)| of(key).unwrap_or_default().to_string()).collect::<Vec<_>>().join(",")
        };
        let by_key = index.entry(given.clone()).or_insert_with(|| {
            let mut by_key: BTreeMap<String, Vec<Named<'a>>> = BTreeMap::new();
            for (parts, named) in &self.parts {
                by_key.entry(spelled(&|key| parts.get(key).cloned())).or_default().push(*named);
            }
            by_key
        });
        let candidates = by_key.get_mut(&spelled(&|key| item.get(key).cloned()))?;
        candidates.retain(|(step, _)| !taken.contains(step));
        candidates.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::name_items;
    use crate::fields::field_set::FieldSet;
    use serde_json::{Value, json};

    fn named(list: &Value, set: &Value) -> Vec<String> {
        let set = FieldSet::read(&json!({"f:list": set}));
        let named = name_items(list.as_array().unwrap(), &set.fields["list"].items);
        named.into_iter().map(|named| named.map_or("-".to_owned(), |(step, _)| step.to_owned())).collect()
    }

    #[test]
    fn items_are_found_by_key_and_by_value() {
        let ports = json!({r#"k:{"port":1,"protocol":"TCP"}"#: {}, r#"k:{"port":1,"protocol":"UDP"}"#: {}, r#"k:{"port":2,"protocol":"TCP"}"#: {}});
        let (tcp, udp) = (r#"k:{"port":1,"protocol":"TCP"}"#, r#"k:{"port":1,"protocol":"UDP"}"#);
        let list =
            json!([{"port": 1}, {"port": 1, "protocol": "UDP"}, {"port": 3}, {"port": 2, "protocol": "UDP"}, {}]);
        assert_eq!(named(&list, &ports), [tcp, udp, "-", "-", "-"], "the server fills in the protocol");
        let list = json!([{"port": 1}, {"port": 1, "protocol": "TCP"}]);
        assert_eq!(named(&list, &ports), [udp, tcp]);
        assert_eq!(named(&list, &json!({udp: {}})), [udp, "-"]);
        let set = json!({r#"v:"a\u003c""#: {}, "v:1": {}});
        assert_eq!(named(&json!(["b", "a<", 1]), &set), ["-", r#"v:"a\u003c""#, "v:1"]);
        assert_eq!(named(&json!([1]), &json!({})), ["-"]);
    }
}
