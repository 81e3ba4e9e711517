//! One object we want.

use crate::object::digest::Digest;
use serde_json::Value;

/// An object as the catalogue wants it. It is kept as text, which is a fraction of its size as a tree, and read when it is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    text: Box<str>,
    digest: Digest,
}

impl Desired {
    /// From an object.
    pub fn of(object: &Value) -> Desired {
        Desired { text: object.to_string().into_boxed_str(), digest: Digest::of(object) }
    }

    /// The object.
    pub fn object(&self) -> Value {
        // It was written from a value, so it reads as one.
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Its fingerprint.
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
    fn it_reads_back_as_it_was() {
        let object =
            json!({"spec": {"text": "a\n\"b\"", "number": 0.1, "big": 18_446_744_073_709_551_615_u64, "none": null}});
        let desired = Desired::of(&object);
        assert_eq!(desired.object(), object);
        assert_eq!(*desired.digest(), Digest::of(&object));
    }
}
