//! The desired state of one object.

use crate::object::digest::Digest;
use serde_json::Value;

/// Some thousand fields, about which no decision is quick.
pub(super) const LARGE: usize = 64 * 1024;

/// An object as the catalogue renders it. It is stored as text, which takes a fraction of the memory of a tree, and parsed when needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    text: Box<str>,
    digest: Digest,
}

impl Desired {
    /// Stores an object.
    pub fn of(object: &Value) -> Desired {
        Desired { text: object.to_string().into_boxed_str(), digest: Digest::of(object) }
    }

    /// The object.
    pub fn object(&self) -> Value {
        // The text was serialized from a value, so it parses.
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Whether a decision about it may take milliseconds.
    pub fn is_large(&self) -> bool {
        self.text.len() > LARGE
    }

    /// The digest of the object.
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}

#[cfg(test)]
mod tests {
    use super::Desired;
    use crate::object::digest::Digest;
    use serde_json::json;

    #[test]
    fn the_stored_object_equals_the_original() {
        let object =
            json!({"spec": {"text": "a\n\"b\"", "number": 0.1, "big": 18_446_744_073_709_551_615_u64, "none": null}});
        let desired = Desired::of(&object);
        assert_eq!(desired.object(), object);
        assert_eq!(*desired.digest(), Digest::of(&object));
    }

    #[test]
    fn an_object_of_more_than_64_kib_is_large() {
        // With the quotation marks.
        let is_large = |bytes: usize| Desired::of(&json!("x".repeat(bytes - 2))).is_large();
        assert!(!is_large(2) && !is_large(65_536) && is_large(65_537));
    }
}
