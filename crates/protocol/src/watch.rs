//! What is watched, and what a watch reports.

use catalog::Part;
use change::{Key, Kind, Live};
use serde_json::Value;
use std::collections::BTreeSet;

/// A kind in one namespace or in the whole cluster, or one object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchTarget {
    /// The kind.
    pub kind: Kind,
    /// Empty for cluster-scoped kinds and for all namespaces.
    pub namespace: String,
    /// The only object that is watched; empty for all.
    pub name: String,
}

impl WatchTarget {
    /// The target that reports an object.
    pub fn of(key: &Key) -> WatchTarget {
        WatchTarget { kind: key.kind.clone(), namespace: key.namespace.clone(), name: String::new() }
    }

    /// The target that reports this object and no other.
    pub fn only(key: &Key) -> WatchTarget {
        WatchTarget { name: key.name.clone(), ..WatchTarget::of(key) }
    }

    /// A kind in the whole cluster.
    pub fn all(api_version: &str, kind: &str) -> WatchTarget {
        WatchTarget { kind: Kind::new(api_version, kind), namespace: String::new(), name: String::new() }
    }

    /// CustomResourceDefinitions.
    pub fn crds() -> WatchTarget {
        WatchTarget::all("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    }
}

/// How much of each object is transferred and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Metadata: it carries managedFields and annotations.
    Metadata,
    /// Names and versions; the rest is dropped on arrival.
    Names,
    /// The fields of a [`Part`]: the little that facts depend on.
    Part,
    /// The whole object.
    Whole,
}

/// What of an object is reported beside its metadata.
#[derive(Debug, Clone)]
pub enum Body {
    /// Nothing.
    None,
    /// The fields that facts depend on.
    Part(Part),
    /// The whole object.
    Whole(Value),
}

/// One report of a watch.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "nearly every report is the large one")]
pub enum WatchEvent {
    /// An object as it is now.
    Present {
        /// Its namespace, or nothing.
        namespace: String,
        /// Its name.
        name: String,
        /// Its metadata.
        live: Live,
        /// Its `metadata.generation`.
        generation: i64,
        /// As much of the rest as was asked for.
        body: Body,
    },
    /// An object was deleted.
    Gone {
        /// Its namespace, or nothing.
        namespace: String,
        /// Its name.
        name: String,
        /// The resourceVersion of the deletion.
        version: String,
    },
    /// The list is complete: an object that it does not name does not exist.
    Listed {
        /// Namespace and name of every object.
        all: BTreeSet<(String, String)>,
        /// The resourceVersion of the list.
        version: String,
        /// Whether it was made because time has passed, to verify what is known, and not because something was missed.
        verifies: bool,
    },
    /// Nobody watched for a while. What has changed meanwhile follows, and may have had its effect already.
    Unseen,
    /// The server's versions are lower than before, as after a restore of etcd: a list follows, and what was known says nothing about it.
    WentBack,
    /// The target cannot be listed now; nothing is known until the next `Listed`.
    Lost {
        /// Why.
        why: String,
        /// Whether the server answers that it does not serve the kind.
        is_unserved: bool,
    },
}
