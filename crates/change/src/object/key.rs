//! The identity of an object: kind, namespace and name.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// Group, version and kind.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Kind {
    /// Empty for the core group.
    pub group: String,
    /// The API version, without the group.
    pub version: String,
    /// The kind.
    pub kind: String,
}

impl Kind {
    /// Builds a kind from `group/version` (or `version`) and the kind's name.
    pub fn new(api_version: &str, kind: &str) -> Kind {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Kind { group: group.into(), version: version.into(), kind: kind.into() }
    }

    /// The `apiVersion` of an object of this kind.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// Identifies one object of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Key {
    /// Group, version and kind.
    pub kind: Kind,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// Whether both name the same object, whatever the version of the kind.
    pub fn is_same_object(&self, other: &Key) -> bool {
        (&self.kind.group, &self.kind.kind, &self.namespace, &self.name)
            == (&other.kind.group, &other.kind.kind, &other.namespace, &other.name)
    }

    /// The key of an object; `None` if it lacks a kind or a name.
    pub fn of(object: &Value) -> Option<Key> {
        let kind = Kind::new(object["apiVersion"].as_str()?, object["kind"].as_str()?);
        let metadata = &object["metadata"];
        let namespace = metadata["namespace"].as_str().unwrap_or_default().to_owned();
        Some(Key { kind, namespace, name: metadata["name"].as_str()?.to_owned() })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind.kind, self.namespace, self.name)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, Kind};

    #[test]
    fn the_version_of_a_kind_does_not_tell_objects_apart() {
        let key = |api_version: &str, kind: &str, namespace: &str, name: &str| Key {
            kind: Kind::new(api_version, kind),
            namespace: namespace.into(),
            name: name.into(),
        };
        let one = key("a/v1", "A", "n", "x");
        assert!(one.is_same_object(&key("a/v2", "A", "n", "x")));
        for other in [
            key("b/v1", "A", "n", "x"),
            key("a/v1", "B", "n", "x"),
            key("a/v1", "A", "m", "x"),
            key("a/v1", "A", "n", "y"),
        ] {
            assert!(!one.is_same_object(&other), "{other}");
        }
        assert_eq!((one.to_string(), key("v1", "Node", "", "w0").to_string()), ("A n/x".into(), "Node w0".into()));
    }
}
