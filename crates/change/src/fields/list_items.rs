//! Which items of a list are meant by the keys in `managedFields`.

use crate::fields::field_set::{Below, FieldSet};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// An item in `managedFields`: the server's name for it, and what is in the set of it.
pub(super) type Named<'a> = (&'a str, &'a FieldSet);

/// For each item of a list the one of the set that names it. A key that the item does not have is a default that the server filled in.
pub(super) fn name_items<'a>(list: &[Value], set: &'a Below) -> Vec<Option<Named<'a>>> {
    let names: Vec<Named<'a>> = set.iter().collect();
    let mut found = if names.iter().any(|(step, _)| step.starts_with("k:")) {
        Keys::read(&names).find(list)
    } else {
        by_value(&names, list)
    };
    found.resize(list.len(), None);
    found.into_iter().map(|index| Some(names[index?])).collect()
}

/// The items of a list that the set names.
pub(super) fn items_by_name<'a>(list: &'a [Value], set: &'a Below) -> BTreeMap<&'a str, &'a Value> {
    name_items(list, set).into_iter().zip(list).filter_map(|(named, item)| Some((named?.0, item))).collect()
}

/// Items that are named by their values.
fn by_value(names: &[Named<'_>], list: &[Value]) -> Vec<Option<usize>> {
    if names.is_empty() {
        return Vec::new();
    }
    let values = names.iter().enumerate().filter_map(|(index, (step, _))| {
        let value: &RawValue = serde_json::from_str(step.strip_prefix("v:")?).ok()?;
        Some((spelling(value).into_owned(), index))
    });
    let values: BTreeMap<String, usize> = values.collect();
    list.iter().map(|item| values.get(&item.to_string()).copied()).collect()
}

/// Items that are named by the values of some keys. All items of one list have the same keys.
struct Keys<'a> {
    keys: Vec<Cow<'a, str>>,
    values: Vec<Values<'a>>,
}

type Values<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// Names by the values of those keys that an item has.
type Index = BTreeMap<String, Vec<usize>>;

impl<'a> Keys<'a> {
    fn read(names: &[Named<'a>]) -> Keys<'a> {
        let values = |step: &'a str| serde_json::from_str(step.strip_prefix("k:")?).ok();
        let values: Vec<Values<'a>> = names.iter().map(|(step, _)| values(step).unwrap_or_default()).collect();
        let keys = values.iter().find(|values| !values.is_empty());
        Keys { keys: keys.into_iter().flat_map(BTreeMap::keys).cloned().collect(), values }
    }

    fn find(&self, list: &[Value]) -> Vec<Option<usize>> {
        let given: Vec<Vec<bool>> = list.iter().map(|item| self.given(item)).collect();
        let mut indexes: BTreeMap<&[bool], Index> = BTreeMap::new();
        for given in given.iter().filter(|given| given.contains(&true)) {
            indexes.entry(given).or_insert_with(|| self.index(given));
        }
        let (mut found, mut is_taken) = (vec![None; list.len()], vec![false; self.values.len()]);
        // An item that has all keys is meant rather than one that has some of them.
        for has_all in [true, false] {
            for (position, item) in list.iter().enumerate() {
                let given = given[position].as_slice();
                let Some(index) = indexes.get(given).filter(|_| given.contains(&false) != has_all) else { continue };
                let named = index.get(&self.spelled(given, |key| item.get(key).map(spell)));
                let free = named.into_iter().flatten().find(|name| has_all || !is_taken[**name]);
                found[position] = free.copied();
                free.into_iter().for_each(|name| is_taken[*name] = true);
            }
        }
        found
    }

    /// Which of the keys an item has.
    fn given(&self, item: &Value) -> Vec<bool> {
        self.keys.iter().map(|key| item.get(&**key).is_some()).collect()
    }

    fn index(&self, given: &[bool]) -> Index {
        let mut index = Index::new();
        for (name, values) in self.values.iter().enumerate() {
            let spelled = self.spelled(given, |key| values.get(key).map(|value| spelling(value)));
            index.entry(spelled).or_default().push(name);
        }
        index
    }

    /// The values of those keys, in one spelling.
    fn spelled<'v>(&self, given: &[bool], value: impl Fn(&str) -> Option<Cow<'v, str>>) -> String {
        let mut spelled = String::new();
        for (key, _) in self.keys.iter().zip(given).filter(|(_, given)| **given) {
            spelled.push_str(&value(key).unwrap_or_default());
            spelled.push(',');
        }
        spelled
    }
}

/// A value of the server in our spelling: it escapes more characters.
fn spelling(value: &RawValue) -> Cow<'_, str> {
    match value.get() {
        text if text.contains('\\') => Cow::Owned(serde_json::from_str::<Value>(text).unwrap_or_default().to_string()),
        text => Cow::Borrowed(text),
    }
}

fn spell(value: &Value) -> Cow<'static, str> {
    let is_plain = |text: &String| text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    match value {
        Value::String(text) if is_plain(text) => Cow::Owned(["\"", text, "\""].concat()),
        value => Cow::Owned(value.to_string()),
    }
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

    #[test]
    fn an_item_is_found_by_a_key_with_any_characters() {
        for name in ["a", "", "\"", "\\", "\n", "a\"b", "a\\b", "a\nb", "ü<"] {
            let step = format!("k:{}", json!({"name": name}));
            assert_eq!(
                named(&json!([{"name": "other"}, {"name": name}]), &json!({&step: {}})),
                ["-", &step],
                "{name:?}"
            );
        }
    }
}
