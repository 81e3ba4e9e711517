//! Which items of a list are meant by the keys in `managedFields`.

use crate::fields::field_set::{Below, FieldSet};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// An item in `managedFields`: the server's name for it, and what is in the set of it.
pub(super) type Named<'a> = (&'a str, &'a FieldSet);

/// For each item of a list the one of the set that names it. A key that the item does not have is a default that the server filled in.
pub(super) fn name_items<'a>(list: &[Value], set: &'a Below) -> Vec<Option<Named<'a>>> {
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
pub(super) fn items_by_name<'a>(list: &'a [Value], set: &'a Below) -> BTreeMap<&'a str, &'a Value> {
    name_items(list, set).into_iter().zip(list).filter_map(|(named, item)| Some((named?.0, item))).collect()
}

/// The names in a set. All items of one list have the same keys.
struct Names<'a> {
    /// The keys; none if items are named by their value.
    keys: Vec<String>,
    /// The values of all keys, or the value of the item, in one spelling.
    exact: BTreeMap<String, Named<'a>>,
    parts: Vec<(Value, Named<'a>)>,
}

/// Items by the values of those keys that are given.
type Partial<'a> = BTreeMap<Vec<bool>, BTreeMap<String, Vec<Named<'a>>>>;

impl<'a> Names<'a> {
    fn read(set: &'a Below) -> Names<'a> {
        let mut names = Names { keys: Vec::new(), exact: BTreeMap::new(), parts: Vec::new() };
        for (step, below) in set.iter() {
            let (sort, text) = step.split_once(':').unwrap_or_default();
            match (sort, serde_json::from_str::<Value>(text)) {
                ("k", Ok(key)) => {
                    if names.keys.is_empty() {
                        names.keys = key.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
                    }
                    if let Some(spelled) = spell(&key, &names.keys) {
                        names.exact.insert(spelled, (step, below));
                    }
                    names.parts.push((key, (step, below)));
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
        let spelled = if self.keys.is_empty() { item.to_string() } else { spell(item, &self.keys)? };
        self.exact.get(&spelled).copied()
    }

    /// An item of which some keys are given, unless another item has all of them.
    fn partial(&self, item: &Value, index: &mut Partial<'a>, taken: &BTreeSet<&str>) -> Option<Named<'a>> {
        let given: Vec<bool> = self.keys.iter().map(|key| item.get(key).is_some()).collect();
        if !given.contains(&true) || !given.contains(&false) {
            return None;
        }
        let keys = || self.keys.iter().zip(&given).filter(|(_, given)| **given).map(|(key, _)| key);
        let spelled = spell(item, keys())?;
        let by_key = index.entry(given.clone()).or_insert_with(|| {
            let mut by_key: BTreeMap<String, Vec<Named<'a>>> = BTreeMap::new();
            for (key, named) in &self.parts {
                by_key.entry(spell(key, keys()).unwrap_or_default()).or_default().push(*named);
            }
            by_key
        });
        by_key.get(&spelled)?.iter().find(|(step, _)| !taken.contains(step)).copied()
    }
}

/// The values of these keys of an item, in one spelling; `None` if it does not have them all.
fn spell<'k>(item: &Value, keys: impl IntoIterator<Item = &'k String>) -> Option<String> {
    let mut spelled = String::new();
    for key in keys {
        let _ = write!(spelled, "{},", item.get(key)?);
    }
    Some(spelled)
}

#[cfg(test)]
mod tests {
    use super::name_items;
    use crate::fields::field_set::FieldSet;
    use serde_json::{Value, json};

    fn named(list: &Value, set: &Value) -> Vec<String> {
        let set = FieldSet::read(&json!({"f:list": set}));
        let named = name_items(list.as_array().unwrap(), &set.fields.get("list").unwrap().items);
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
