//! An object's metadata, as an event or an answer carries it.

use crate::managed_fields::ManagedFields;
use crate::object::desired::LARGE;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What of an object's metadata a decision needs.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Live {
    /// Its identity.
    pub uid: String,
    /// Its version.
    pub resource_version: String,
    /// Those of its annotations that are ours to name; nothing depends on the others.
    pub annotations: BTreeMap<String, String>,
    /// Who owns which field.
    pub managed_fields: ManagedFields,
    /// Whether it carries the label of what we manage.
    pub labelled: bool,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// Since when it is being deleted.
    pub deleting: Option<Timestamp>,
    /// Who has to agree before it can go.
    pub finalizers: Vec<String>,
}

impl Live {
    /// Its version as a number: those of one kind are comparable, also between objects.
    pub fn version(&self) -> Option<u128> {
        self.resource_version.parse().ok()
    }

    /// Whether a decision about it may take milliseconds.
    pub fn is_large(&self) -> bool {
        self.managed_fields.bytes() + self.annotations.values().map(String::len).sum::<usize>() > LARGE
    }

    /// Whether this is an older look than `other`.
    pub fn is_older_than(&self, other: &Live) -> bool {
        self.version().zip(other.version()).is_some_and(|(one, two)| one < two)
    }
}
