//! A text that is not shown, and is overwritten when it is dropped.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt::{Debug, Formatter};
use zeroize::Zeroizing;

/// A secret. It is written out only as JSON to the other side.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// This text as a secret.
    pub fn new(text: String) -> Secret {
        Secret(Zeroizing::new(text))
    }

    /// The text; the caller neither shows nor stores it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl Debug for Secret {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("***")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        String::deserialize(deserializer).map(Secret::new)
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Some(Secret::new("canary".to_owned()))), "Some(***)");
    }
}
