//! What is left of the budgets of creation: an object that is gone cannot carry it, so one ConfigMap does.

use autopilot::Budget;
use change::{Key, Kind};
use cluster::act::{self, Act};
use cluster::kinds::Served;
use cluster::{Kinds, Permit, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Budgets by object.
pub(super) struct Deletions {
    key: Key,
    left: BTreeMap<String, Budget>,
}

/// One write of all of them.
pub(super) struct Record {
    key: Key,
    served: Served,
    object: Value,
}

impl Deletions {
    /// None that were written down.
    pub(super) fn none(namespace: &str) -> Deletions {
        let kind = Kind::new("v1", "ConfigMap");
        Deletions { key: Key { kind, namespace: namespace.to_owned(), name: api::STATE.into() }, left: BTreeMap::new() }
    }

    /// Reads what an earlier process left; what cannot be read is nothing.
    pub(super) async fn read(server: &Server, kinds: &Kinds, namespace: &str) -> Deletions {
        let Deletions { key, mut left } = Deletions::none(namespace);
        if let Some(served) = kinds.find(&key.kind) {
            let query = catalog::Query::Object {
                api_version: key.kind.api_version(),
                kind: key.kind.kind.clone(),
                namespace: key.namespace.clone(),
                name: key.name.clone(),
            };
            if let catalog::Answer::Found(found) = cluster::answer::answer(server, &served, &query).await {
                let entries = found["data"].as_object().into_iter().flatten();
                left.extend(entries.filter_map(|(name, text)| Some((name.clone(), Budget::parse(text.as_str())?))));
            }
        }
        Deletions { key, left }
    }

    /// What is left for an object, if anything was written down.
    pub(super) fn left(&self, key: &Key) -> Option<Budget> {
        self.left.get(&entry(key)).copied()
    }

    /// Notes what is left for an object.
    pub(super) fn insert(&mut self, key: &Key, left: Budget) {
        self.left.insert(entry(key), left);
    }

    /// What is to be written down now; what is full again is forgotten.
    pub(super) fn record(&mut self, kinds: &Kinds, now: i64) -> Option<Record> {
        self.left.retain(|_, left| left.is_worn(now));
        let served = kinds.find(&self.key.kind)?;
        let data: BTreeMap<&String, String> = self.left.iter().map(|(name, left)| (name, left.to_string())).collect();
        let metadata = json!({"name": self.key.name, "namespace": self.key.namespace});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        Some(Record { key: self.key.clone(), served, object })
    }
}

impl Record {
    pub(super) async fn write(self, server: &Server, permit: &Permit) {
        let act = Act::apply(self.object, act::Guard::None);
        if let Err(error) = act::act(server, permit, &self.served, &self.key, act, 0).await {
            tracing::warn!("what is left of the budgets of creation could not be written down: {error}");
        }
    }
}

/// A name that a ConfigMap takes.
fn entry(key: &Key) -> String {
    let name = format!("{}.{}.{}", key.kind.kind, key.namespace, key.name);
    // Some names have letters a key cannot have; two that differ only in those share a budget.
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' })
        .take(253)
        .collect()
}
