//! What a template or a condition asks of the cluster, and the answer.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// One question.
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

/// What the cluster said. That it failed to answer is never that the thing is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// It is there. A list is an array of objects sorted by name.
    Found(Value),
    /// It is not there, or its kind is not installed.
    Absent,
    /// The cluster did not say.
    Unknown,
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
