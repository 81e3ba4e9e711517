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
}

#[cfg(test)]
mod tests {
    use super::Live;
    use crate::managed_fields::ManagedFields;

    #[test]
    fn a_version_is_compared_as_a_number() {
        let version = |text: &str| Live { resource_version: text.into(), ..Live::default() }.version();
        assert!(version("9") < version("10") && version("9").is_some());
        assert_eq!(version("later"), None);
    }

    #[test]
    fn metadata_of_more_than_64_kib_is_large() {
        let is_large = |managed: usize, annotation: usize| {
            let (managed_fields, value) = (ManagedFields::new(&"x".repeat(managed)), "x".repeat(annotation));
            Live { managed_fields, annotations: [("a".into(), value)].into(), ..Live::default() }.is_large()
        };
        assert!(!is_large(65_536, 0) && !is_large(65_535, 1) && !is_large(300, 300));
        assert!(is_large(65_537, 0) && is_large(65_535, 2) && is_large(0, 65_537));
    }
}
