//! What is known of the cluster: the newest version of every object, from watches and from answers to writes.

use kube::api::DynamicObject;
use mco_stand_in::{Kind, Snapshot};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// News of one kind.
pub(super) enum News {
    /// All objects, as of this resource version. The cluster may have been restored, and then older versions count.
    Listed { objects: Vec<DynamicObject>, version: u64, is_restored: bool },
    /// An object was created or changed.
    Changed(Box<DynamicObject>),
    /// An object was deleted.
    Deleted(Box<DynamicObject>),
}

/// The newest known version of every object.
#[derive(Default)]
pub(super) struct Cache {
    snapshot: Snapshot,
    listed: BTreeSet<Option<Kind>>,
    policies: BTreeMap<String, Value>,
}

impl Cache {
    /// What the stand-in sees, once every kind was listed.
    pub(super) fn snapshot(&self) -> Option<&Snapshot> {
        (self.listed.len() == super::WATCHED.len()).then_some(&self.snapshot)
    }

    /// Takes news from a watch, or from the answer to a write.
    pub(super) fn take(&mut self, kind: Option<Kind>, news: News) {
        let objects = match kind {
            Some(kind) => self.snapshot.objects(kind),
            None => &mut self.policies,
        };
        match news {
            News::Listed { objects: found, version, is_restored } => {
                objects.retain(|_, known| !is_restored && version_of(known) > version);
                found.into_iter().for_each(|object| keep_newer(objects, object));
                self.listed.insert(kind);
            }
            News::Changed(object) => keep_newer(objects, *object),
            News::Deleted(object) => {
                let name = object.metadata.name.clone().unwrap_or_default();
                let deleted = serde_json::to_value(&*object).unwrap_or_default();
                if objects.get(&name).is_some_and(|known| version_of(known) <= version_of(&deleted)) {
                    objects.remove(&name);
                }
            }
        }
        if kind.is_none() {
            self.snapshot.machine_configuration = self.policies.get("cluster").cloned();
        }
    }

    /// Forgets an object that does not exist any more.
    pub(super) fn forget(&mut self, kind: Kind, name: &str) {
        self.snapshot.objects(kind).remove(name);
    }
}

fn keep_newer(objects: &mut BTreeMap<String, Value>, object: DynamicObject) {
    let name = object.metadata.name.clone().unwrap_or_default();
    let Ok(object) = serde_json::to_value(object) else { return };
    if objects.get(&name).is_none_or(|known| version_of(known) < version_of(&object)) {
        objects.insert(name, object);
    }
}

fn version_of(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().map(number).unwrap_or_default()
}

/// Versions of one etcd are numbers that only grow.
pub(super) fn number(version: &str) -> u64 {
    version.parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::{Cache, News};
    use kube::api::DynamicObject;
    use mco_stand_in::Kind;
    use serde_json::json;

    fn node(version: u64) -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "n", "resourceVersion": version.to_string()}})).unwrap()
    }

    fn listed(objects: Vec<DynamicObject>, version: u64, is_restored: bool) -> News {
        News::Listed { objects, version, is_restored }
    }

    fn known(cache: &mut Cache) -> Option<String> {
        let node = cache.snapshot.nodes.get("n")?;
        node["metadata"]["resourceVersion"].as_str().map(str::to_owned)
    }

    #[test]
    fn the_newest_version_is_kept_whatever_the_order_of_the_news() {
        let mut cache = Cache::default();
        let kind = Some(Kind::Node);
        for (news, expected) in [
            (listed(vec![node(5)], 5, false), Some("5")),
            (News::Changed(Box::new(node(9))), Some("9")),
            (News::Changed(Box::new(node(7))), Some("9")),
            (News::Deleted(Box::new(node(8))), Some("9")),
            (listed(vec![node(5)], 8, false), Some("9")),
            (listed(vec![], 8, false), Some("9")),
            (listed(vec![node(4)], 6, true), Some("4")),
            (listed(vec![], 10, false), None),
            (News::Changed(Box::new(node(11))), Some("11")),
            (News::Deleted(Box::new(node(12))), None),
        ] {
            cache.take(kind, news);
            assert_eq!(known(&mut cache).as_deref(), expected);
        }
        assert!(cache.snapshot().is_none(), "the other kinds were not listed");
    }
}
