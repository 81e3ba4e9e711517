//! Strict JSON: an object with a duplicate key is refused at any depth; and measures of a value's size.

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// A value in which no object has a duplicate key.
pub(crate) struct StrictJson(pub(crate) Value);

impl<'de> Deserialize<'de> for StrictJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader).map(StrictJson)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number is not finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(StrictJson(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let StrictJson(value) = fields.next_value()?;
            if map.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("duplicate key {key:?}")));
            }
        }
        Ok(Value::Object(map))
    }
}

/// The nesting depth of a value; a scalar has depth 1.
pub(crate) fn depth(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(depth).max().unwrap_or(0),
        Value::Object(fields) => fields.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// The number of values in a value, itself included. It estimates memory: a list counts as five scalars and a map as twelve, however short
/// their text is.
pub(crate) fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(count).fold(5, usize::saturating_add),
        Value::Object(fields) => fields.values().map(count).fold(12, usize::saturating_add),
        _ => 1,
    }
}

/// An upper bound of the size of a value as JSON, in bytes.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 6,
        Value::Number(number) => match number.as_u64() {
            Some(number) => number.checked_ilog10().map_or(2, |digits| digits as usize + 2),
            None => 26,
        },
        Value::String(text) => text_size(text) + 1,
        Value::Array(items) => items.iter().map(size).fold(3, usize::saturating_add),
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| text_size(key) + 1 + size(value)).fold(3, usize::saturating_add)
        }
    }
}

fn text_size(text: &str) -> usize {
    let character = |byte: u8| match byte {
        b'"' | b'\\' => 2,
        0..0x20 => 6,
        _ => 1,
    };
    text.bytes().map(character).fold(2, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::{StrictJson, count, depth, size};
    use serde_json::{Value, json};

    #[test]
    fn every_value_keeps_its_type() {
        let text =
            r#"[-1, 0.5, -0.25, 0, 18446744073709551615, -9223372036854775808, 1e3, null, true, "-1", {"a": [-1]}]"#;
        let StrictJson(value) = serde_json::from_str(text).unwrap();
        assert_eq!(value, serde_json::from_str::<Value>(text).unwrap(), "as without strictness");
        assert_eq!((&value[0], &value[1], &value[2]), (&json!(-1), &json!(0.5), &json!(-0.25)));
        assert!((0..7).all(|index| value[index].is_number()));
    }

    #[test]
    fn maps_and_lists_count_by_what_they_hold() {
        for (value, depth_of, count_of) in [
            (json!(1), 1, 1),
            (json!([]), 1, 5),
            (json!({}), 1, 12),
            (json!([[1, 2]]), 3, 12),
            (json!({"a": {"b": 1}}), 3, 25),
            (json!([{"a": [1]}, 1]), 4, 24),
        ] {
            assert_eq!((depth(&value), count(&value)), (depth_of, count_of), "{value}");
        }
    }

    #[test]
    fn the_size_of_a_number_is_not_underestimated() {
        for value in [json!(0), json!(7), json!(10), json!(999), json!(u64::MAX), json!(-1), json!(0.5)] {
            assert!(value.to_string().len() <= size(&value), "{value}");
        }
    }
}
