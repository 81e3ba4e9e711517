//! The digest of a change, which a person approves.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::fmt::{self, Write as _};

/// A SHA-256 digest; as text `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of a value; it does not depend on the order of keys.
    pub fn of(value: &Value) -> Digest {
        let mut hash = Fed(Sha256::new());
        // Neither a value nor this hash fails to be written.
        let _ = feed(&mut hash, value);
        Digest(hash.0.finalize().into())
    }

    /// The digest of a file's content, as `sha256sum` prints it.
    pub fn of_bytes(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// Its first digits, which tell a few digests apart for a person and prove nothing.
    pub fn short(&self) -> String {
        self.0[..4].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads the text of a digest; `None` if it is none.
    pub fn parse(text: &str) -> Option<Digest> {
        let hex = text
            .strip_prefix("sha256:")
            .filter(|hex| hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        let mut bytes = [0; 32];
        for (position, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * position..2 * position + 2], 16).ok()?;
        }
        Some(Digest(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Digest, D::Error> {
        let text = String::deserialize(deserializer)?;
        Digest::parse(&text).ok_or_else(|| de::Error::custom(format!("{text:?} is not a digest")))
    }
}

/// Feeds every value with its type and length, so that no two different values feed the same bytes; keys are sorted.
fn feed(hash: &mut Fed, value: &Value) -> fmt::Result {
    match value {
        Value::Array(items) => {
            write!(hash, "[{}", items.len())?;
            items.iter().try_for_each(|item| feed(hash, item))
        }
        Value::Object(fields) => {
            write!(hash, "{{{}", fields.len())?;
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            fields.into_iter().try_for_each(|(key, value)| {
                write!(hash, "k{}:{key}", key.len())?;
                feed(hash, value)
            })
        }
        Value::String(text) => write!(hash, "s{}:{text}", text.len()),
        other => write!(hash, "v{other};"),
    }
}

/// Takes text without keeping it.
struct Fed(Sha256);

impl fmt::Write for Fed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
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
        let text = Digest::of(&one).to_string();
        assert!(text.starts_with("sha256:"));
        assert_eq!(text.len(), 71);
        assert_eq!(Digest::parse(&text), Some(Digest::of(&one)));
    }

    #[test]
    fn what_is_no_digest_is_not_read_as_one() {
        let digits = "0123456789abcdef".repeat(4);
        assert!(Digest::parse(&format!("sha256:{digits}")).is_some());
        for text in [
            digits.clone(),
            format!("sha256:{}", &digits[1..]),
            format!("sha256:{}é", &digits[2..]),
            format!("sha256:+{}", &digits[1..]),
        ] {
            assert_eq!(Digest::parse(&text), None, "{text}");
        }
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
