//! Objects that the Go advisor made under another name than we do: they are managed there, and not made a second time.

use catalog::{Catalog, FormerObject};
use change::{Key, Live};
use protocol::WatchTarget;
use std::collections::BTreeSet;

/// What is known of such objects.
#[derive(Debug, Default)]
pub(crate) struct Formers {
    all: Vec<FormerObject>,
    /// Those of their objects that exist, under either name.
    existing: BTreeSet<Key>,
    /// How many existed under both names when that was asked for last.
    doubles: usize,
}

impl Formers {
    pub(crate) fn new(catalog: &Catalog, namespace: &str) -> Formers {
        Formers { all: catalog.former_objects(namespace), ..Formers::default() }
    }

    /// Takes an object as it is. A person's object under the former name is none of ours.
    pub(crate) fn observe(&mut self, key: &Key, live: &Live) {
        let is_own = self.all.iter().any(|object| object.own == *key);
        let is_former = self.all.iter().any(|object| object.former == *key);
        let is_ours = || live.labelled || live.managed_fields.claim(api::advisor::FIELD_MANAGER).is_some();
        if is_own || (is_former && is_ours()) {
            self.existing.insert(key.clone());
        } else if is_former {
            self.existing.remove(key);
        }
    }

    /// An object is gone.
    pub(crate) fn observe_absent(&mut self, key: &Key) {
        self.existing.remove(key);
    }

    /// Takes a complete list, or that a kind is not served any more: then there is nothing.
    pub(crate) fn listed(&mut self, target: &WatchTarget, exists: impl Fn(&Key) -> bool) {
        self.existing.retain(|key| WatchTarget::of(key) != *target || exists(key));
    }

    /// The assets whose object has its former name, and only that.
    pub(crate) fn formerly_named(&self) -> BTreeSet<String> {
        let is_named = |object: &&FormerObject| self.exists(&object.former) && !self.exists(&object.own);
        self.all.iter().filter(is_named).map(|object| object.asset.clone()).collect()
    }

    /// Whether the number of objects that exist under both names has changed.
    pub(crate) fn have_doubles_changed(&mut self) -> bool {
        let doubles = self.doubles().count();
        std::mem::replace(&mut self.doubles, doubles) != doubles
    }

    fn doubles(&self) -> impl Iterator<Item = &FormerObject> {
        self.all.iter().filter(|object| self.exists(&object.former) && self.exists(&object.own))
    }

    /// What is to be said about objects that exist under both names.
    pub(crate) fn advice(&self) -> impl Iterator<Item = String> {
        self.doubles().map(|FormerObject { own, former, .. }| {
            format!("{former} of the Go advisor does the same as {own}; delete it, or let the advisor replace it")
        })
    }

    fn exists(&self, key: &Key) -> bool {
        self.existing.contains(key)
    }
}

#[cfg(test)]
mod tests {
    use super::Formers;
    use crate::testing::pack::Pack;
    use change::{Key, Kind, Live};

    #[test]
    fn an_object_with_our_label_keeps_its_former_name_although_nothing_of_the_advisor_is_left_in_it() {
        let pack = Pack::standard().only(&["kernel"]).profile_with_former("density", "kernel", "99-kernel");
        let mut formers = Formers::new(&pack.catalog(), "virt");
        let kind = Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig");
        let key = Key { kind, namespace: String::new(), name: "99-kernel".into() };
        for (labelled, named) in [(true, 1), (false, 0)] {
            formers.observe(&key, &Live { labelled, ..Live::default() });
            assert_eq!(formers.formerly_named().len(), named, "{labelled}");
        }
    }
}
