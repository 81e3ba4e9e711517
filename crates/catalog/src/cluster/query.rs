//! Queries of templates and conditions to the cluster, and their answers.

use change::{Key, Kind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// One query.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Query {
    /// One object.
    Object {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
        /// The namespace; empty for a cluster-scoped object.
        namespace: String,
        /// The name.
        name: String,
    },
    /// One CustomResourceDefinition.
    Crd {
        /// Its name, `plural.group`.
        name: String,
    },
    /// All objects of a kind.
    List {
        /// Group and version.
        api_version: String,
        /// The kind.
        kind: String,
    },
}

/// The answer to a query. A failure is never treated as absence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// The object, or an array of objects sorted by name for a list.
    Found(Value),
    /// The object does not exist, or its kind is not served.
    Absent,
    /// The cluster could not answer.
    Unknown,
}

impl Query {
    /// The query for an object.
    pub fn of(key: &Key) -> Query {
        Query::Object {
            api_version: key.kind.api_version(),
            kind: key.kind.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        }
    }

    /// The kind it asks about.
    pub fn kind(&self) -> Kind {
        match self {
            Query::Object { api_version, kind, .. } | Query::List { api_version, kind } => Kind::new(api_version, kind),
            Query::Crd { .. } => Kind::new("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        }
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Query::Object { api_version, kind, namespace, name } if namespace.is_empty() => {
                write!(f, "{api_version} {kind} {name}")
            }
            Query::Object { api_version, kind, namespace, name } => {
                write!(f, "{api_version} {kind} {namespace}/{name}")
            }
            Query::Crd { name } => write!(f, "CustomResourceDefinition {name}"),
            Query::List { api_version, kind } => write!(f, "the list of {api_version} {kind}"),
        }
    }
}
