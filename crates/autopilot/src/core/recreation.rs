//! The budgets of recreation. A deleted object cannot carry its own, so one ConfigMap carries them all.

use crate::budget::Budget;
use catalog::{Answer, Query};
use change::{Effect, Key, Kind, Precondition};
use jiff::Timestamp;
use protocol::{Kinds, Served};
use serde_json::json;
use std::collections::BTreeMap;

/// The longest key that a ConfigMap takes.
const LONGEST_KEY: usize = 253;

/// The budgets by object.
#[derive(Debug)]
pub(crate) struct RecreationBudgets {
    key: Key,
    left: BTreeMap<String, Budget>,
    state: Reading,
}

/// Whether the ConfigMap was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// Not yet: nothing is rendered before the first attempt.
    Pending,
    /// It could not be read: nothing is created, everything else goes on.
    Failed,
    /// It was read, or does not exist.
    Done,
}

impl RecreationBudgets {
    pub(crate) fn new(namespace: &str) -> RecreationBudgets {
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: namespace.to_owned(), name: api::STATE.into() };
        RecreationBudgets { key, left: BTreeMap::new(), state: Reading::Pending }
    }

    /// The query that reads the ConfigMap.
    pub(crate) fn query(&self) -> Query {
        Query::Object {
            api_version: self.key.kind.api_version(),
            kind: self.key.kind.kind.clone(),
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
        }
    }

    /// Whether the ConfigMap was read.
    pub(crate) fn is_read(&self) -> bool {
        self.state == Reading::Done
    }

    /// Whether there was an attempt to read the ConfigMap.
    pub(crate) fn is_attempted(&self) -> bool {
        self.state != Reading::Pending
    }

    /// Takes what an earlier process left. A ConfigMap that cannot be read is not an empty one.
    pub(crate) fn read(&mut self, answer: &Answer) {
        self.state = if *answer == Answer::Unknown { Reading::Failed } else { Reading::Done };
        if let Answer::Found(found) = answer {
            let entries = found["data"].as_object().into_iter().flatten();
            let recorded = entries.filter_map(|(name, text)| Some((name.clone(), Budget::parse(text.as_str())?)));
            for (name, left) in recorded {
                self.left.entry(name).or_insert(left);
            }
        }
    }

    /// What is left for an object, if anything was recorded.
    pub(crate) fn left(&self, key: &Key) -> Option<Budget> {
        self.left.get(&entry(key)).copied()
    }

    /// Notes what is left for an object; the write that records it. Budgets that are full again are dropped.
    pub(crate) fn record(
        &mut self,
        key: &Key,
        left: Budget,
        kinds: &Kinds,
        now: Timestamp,
    ) -> Option<(Key, Served, Effect)> {
        self.left.insert(entry(key), left);
        self.left.retain(|_, left| left.is_worn(now));
        let served = kinds.find(&self.key.kind)?;
        let data: BTreeMap<&String, String> = self.left.iter().map(|(name, left)| (name, left.to_string())).collect();
        let metadata = json!({"name": self.key.name, "namespace": self.key.namespace});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        let effect = Effect::apply(object, Precondition::None, true);
        Some((self.key.clone(), served, effect))
    }
}

/// A key that a ConfigMap takes. Two objects whose names differ only in other characters share a budget.
fn entry(key: &Key) -> String {
    let name = format!("{}.{}.{}", key.kind.kind, key.namespace, key.name);
    let valid = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    name.chars().map(|character| if valid(character) { character } else { '_' }).take(LONGEST_KEY).collect()
}

#[cfg(test)]
mod tests {
    use super::RecreationBudgets;
    use crate::budget::Budget;
    use catalog::Answer;
    use change::{Key, Kind};
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn a_configmap_that_cannot_be_read_is_not_an_empty_one() {
        let mut budgets = RecreationBudgets::new("n");
        assert!(!budgets.is_attempted() && !budgets.is_read());
        budgets.read(&Answer::Unknown);
        assert!(budgets.is_attempted() && !budgets.is_read(), "creations wait, everything else goes on");
        let left = Budget::full(Timestamp::UNIX_EPOCH).spend(Timestamp::UNIX_EPOCH).unwrap();
        budgets.read(&Answer::Found(json!({"data": {"ConfigMap.n.x": left.to_string(), "bad": "?"}})));
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
        assert!(budgets.is_read() && budgets.left(&key) == Some(left));
    }
}
