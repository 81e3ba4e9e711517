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
