//! An object's metadata, as an event or an answer carries it.

use crate::managed_fields::ManagedFields;
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
    /// Whether it is being deleted.
    pub deleting: bool,
}

impl Live {
    /// Whether this is an older look at the same object than `other`. Versions are comparable as numbers.
    pub fn is_older_than(&self, other: &Live) -> bool {
        let number = |live: &Live| live.resource_version.parse::<u128>().ok();
        self.uid == other.uid && number(self).zip(number(other)).is_some_and(|(one, two)| one < two)
    }
}
