//! Objects of the fleet as the core keeps them: a few fields of metadata, spec and status.

use crate::hypervisor::ClusterKey;
use change::{Key, Kind, Live};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Namespace and name of an object. Thousands of claims are named in many places, so that a copy takes no memory of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Name {
    /// The namespace.
    pub namespace: Arc<str>,
    /// The name.
    pub name: Arc<str>,
}

impl Name {
    /// From both parts.
    pub fn new(namespace: &str, name: &str) -> Name {
        Name { namespace: namespace.into(), name: name.into() }
    }

    /// Another object of the same namespace, or of the one that is named.
    pub fn beside(&self, namespace: Option<&str>, name: &str) -> Name {
        Name { namespace: namespace.map_or_else(|| self.namespace.clone(), Arc::from), name: name.into() }
    }

    /// From `NAMESPACE/NAME`.
    pub fn read(text: &str) -> Option<Name> {
        text.split_once('/').map(|(namespace, name)| Name::new(namespace, name))
    }

    /// The key of an object of a kind of the fleet.
    pub fn key(&self, kind: &str) -> Key {
        Key { kind: fleet_kind(kind), namespace: self.namespace.to_string(), name: self.name.to_string() }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl From<&Name> for ClusterKey {
    fn from(name: &Name) -> ClusterKey {
        ClusterKey { namespace: name.namespace.to_string(), name: name.name.to_string() }
    }
}

/// A kind of the fleet's group.
pub fn fleet_kind(kind: &str) -> Kind {
    Kind { group: api::fleet::GROUP.into(), version: api::fleet::VERSION.into(), kind: kind.into() }
}

/// One object.
#[derive(Debug, Clone, PartialEq)]
pub struct Object<S, T> {
    /// Namespace and name.
    pub name: Name,
    /// Its uid.
    pub uid: String,
    /// Its resourceVersion.
    pub version: String,
    /// The generation of its spec.
    pub generation: i64,
    /// When it was created.
    pub created: Timestamp,
    /// Since when it is being deleted.
    pub deleting: Option<Timestamp>,
    /// Its finalizers.
    pub finalizers: Vec<String>,
    /// Those of its annotations that are the fleet's.
    pub annotations: BTreeMap<String, String>,
    /// What is wanted.
    pub spec: S,
    /// The status as the server has it.
    pub status: T,
}

impl<S: DeserializeOwned, T: DeserializeOwned + Default> Object<S, T> {
    /// From a report of a watch; an error names what cannot be read.
    pub fn read(name: Name, live: &Live, generation: i64, mut body: Value) -> Result<Object<S, T>, String> {
        let spec = serde_json::from_value(body["spec"].take()).map_err(|error| format!("spec: {error}"))?;
        let status = match body["status"].take() {
            Value::Null => T::default(),
            // A status is ours; one that cannot be read is written again, except that a machine in it must not be forgotten.
            status => serde_json::from_value(status).map_err(|error| format!("status: {error}"))?,
        };
        let annotations = own_annotations(&live.annotations);
        Ok(Object {
            name,
            uid: live.uid.clone(),
            version: live.resource_version.clone(),
            generation,
            created: live.created.unwrap_or(Timestamp::UNIX_EPOCH),
            deleting: live.deleting,
            finalizers: live.finalizers.clone(),
            annotations,
            spec,
            status,
        })
    }
}

/// Those of some annotations that are the fleet's.
pub(crate) fn own_annotations(all: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let own = all.iter().filter(|(key, _)| key.starts_with(api::fleet::PREFIX));
    own.map(|(key, value)| (key.clone(), value.clone())).collect()
}

impl<S, T> Object<S, T> {
    /// Whether an annotation of the fleet is `true`.
    pub fn is_switched(&self, annotation: &str) -> bool {
        self.annotations.get(annotation).is_some_and(|value| value == "true")
    }

    /// Whether it has a finalizer.
    pub fn has_finalizer(&self, finalizer: &str) -> bool {
        self.finalizers.iter().any(|found| found == finalizer)
    }

    /// Its version as a number, to compare it with others of the same object.
    pub fn version_number(&self) -> u128 {
        self.version.parse().unwrap_or_default()
    }
}
