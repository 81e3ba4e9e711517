//! One write. The writer sends it as it is and decides nothing.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One write to one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Server-side apply; made by [`Effect::apply`].
    Apply {
        /// The object, with the precondition in its metadata.
        object: Manifest,
        /// What must be true of the live object.
        precondition: Precondition,
        /// Whether fields of other managers are taken: plain updates are drift, but what others apply is theirs.
        force: bool,
    },
    /// Replace the list items that make an apply of this object fail with a duplicate key; the apply after it succeeds.
    RepairLists {
        /// The object that is to be applied, with the precondition in its metadata.
        object: Manifest,
        /// What must be true of the live object.
        precondition: Precondition,
    },
    /// A JSON patch, guarded by the resourceVersion: it gives up ownership in managedFields, or edits a document.
    JsonPatch {
        /// The patch.
        patch: Value,
    },
    /// Set or remove these annotations and nothing else.
    Annotate {
        /// The annotations; one without a value is removed.
        annotations: BTreeMap<String, Option<String>>,
        /// The version it was decided for.
        resource_version: String,
    },
    /// Drop our label, our annotations and our ownership; every other value stays.
    HandBack {
        /// A merge patch that names uid and resourceVersion, from [`crate::handback`].
        patch: Value,
    },
    /// Delete exactly this object in exactly this version; dependents are deleted in the background.
    Delete {
        /// Its uid.
        uid: String,
        /// The version it was decided for.
        resource_version: String,
    },
    /// Create this object; an existing one is left as it is.
    Create {
        /// The object.
        object: Value,
    },
    /// Replace the whole object in the version it names.
    Replace {
        /// The object.
        object: Value,
    },
    /// Replace the status of an object of our own.
    ReplaceStatus {
        /// The object: apiVersion, kind, metadata and status. A uid and a version in the metadata have to be those of the object.
        object: Value,
    },
}

/// An object as JSON text. Several writes wait at a time, and as trees they would need many times the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest(Box<str>);

impl Manifest {
    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// The object.
    pub fn value(&self) -> Value {
        // It was written from a value, so it reads as one.
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

impl Effect {
    /// Server-side apply of an object.
    pub fn apply(mut object: Value, precondition: Precondition, force: bool) -> Effect {
        precondition.stamp(&mut object);
        // A value always serializes; this is quicker than its `Display`.
        let text = serde_json::to_string(&object).unwrap_or_default();
        Effect::Apply { object: Manifest(text.into_boxed_str()), precondition, force }
    }
}

/// What must be true for an apply to happen; else the write is stale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Precondition {
    /// Nothing.
    None,
    /// The object does not exist.
    Absent,
    /// It is this object in this version.
    Present {
        /// Its uid.
        uid: String,
        /// Its version.
        resource_version: String,
    },
}

/// No object has this version: an apply with it conflicts with an existing object, and on creation the server ignores it.
const NO_VERSION: &str = "1";

impl Precondition {
    /// Writes the precondition into the object that is applied.
    pub fn stamp(&self, object: &mut Value) {
        let metadata = &mut object["metadata"];
        match self {
            Precondition::None => {}
            Precondition::Absent => metadata["resourceVersion"] = json!(NO_VERSION),
            Precondition::Present { uid, resource_version } => {
                metadata["resourceVersion"] = json!(resource_version);
                metadata["uid"] = json!(uid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Effect, Precondition};
    use serde_json::json;

    #[test]
    fn an_apply_carries_its_precondition() {
        let metadata = |precondition: Precondition| {
            let Effect::Apply { object, .. } = Effect::apply(json!({"metadata": {"name": "x"}}), precondition, true)
            else {
                panic!()
            };
            assert_eq!(object.text(), object.value().to_string());
            object.value()["metadata"].clone()
        };
        let present = Precondition::Present { uid: "u".into(), resource_version: "7".into() };
        assert_eq!(metadata(present), json!({"name": "x", "uid": "u", "resourceVersion": "7"}));
        assert_eq!(metadata(Precondition::Absent), json!({"name": "x", "resourceVersion": "1"}));
        assert_eq!(metadata(Precondition::None), json!({"name": "x"}));
    }
}
