//! The digest of a change, which a person approves.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt;

/// `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(String);

impl Digest {
    /// The digest of a value; it does not depend on the order of keys.
    pub fn of(value: &Value) -> Digest {
        let mut hash = Sha256::new();
        feed(&mut hash, value);
        let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Digest(format!("sha256:{hex}"))
    }

    /// The digest as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Feeds every value with its type and length, so that no two different values feed the same bytes; keys are sorted.
fn feed(hash: &mut Sha256, value: &Value) {
    match value {
        Value::Array(items) => {
            hash.update(format!("[{}", items.len()));
            items.iter().for_each(|item| feed(hash, item));
        }
        Value::Object(fields) => {
            hash.update(format!("{{{}", fields.len()));
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            for key in keys {
                hash.update(format!("k{}:{key}", key.len()));
                feed(hash, &fields[key]);
            }
        }
        Value::String(text) => hash.update(format!("s{}:{text}", text.len())),
        other => hash.update(format!("v{other};")),
    }
}

#[cfg(test)]
mod tests {
    use super::Digest;
    use serde_json::json;

    #[test]
    fn the_digest_depends_on_values_and_not_on_the_order_of_keys() {
        let one: serde_json::Value = serde_json::from_str(r#"{"a": 1, "b": ["x", {"c": null}]}"#).unwrap();
        let other: serde_json::Value = serde_json::from_str(r#"{"b": ["x", {"c": null}], "a": 1}"#).unwrap();
        assert_eq!(Digest::of(&one), Digest::of(&other));
        assert!(Digest::of(&one).as_str().starts_with("sha256:"));
        assert_eq!(Digest::of(&one).as_str().len(), 71);
    }

    #[test]
    fn values_of_different_shape_have_different_digests() {
        let values = [
            json!(1),
            json!("1"),
            json!([1]),
            json!([[1]]),
            json!({"1": 1}),
            json!(null),
            json!("null"),
            json!([]),
            json!({}),
            json!(["a", "b"]),
            json!(["ab"]),
            json!({"a": "b"}),
            json!(["1a"]),
            json!([1, "a"]),
        ];
        let mut digests: Vec<Digest> = values.iter().map(Digest::of).collect();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), values.len());
    }
}
