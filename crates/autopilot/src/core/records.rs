//! What an object cannot carry itself, because it must outlive the object: its budget of recreation, and how many approvals were used
//! for it. One ConfigMap carries it for all objects.

use crate::budget::Budget;
use catalog::{Answer, Query};
use change::{Effect, Key, Kind, Precondition};
use jiff::Timestamp;
use protocol::{Kinds, Served};
use serde_json::json;
use std::collections::BTreeMap;

/// The longest key that a ConfigMap takes.
const LONGEST_KEY: usize = 253;

/// Precedes the entries that count used approvals.
const USED: &str = "used-approvals.";

/// The records by object.
#[derive(Debug)]
pub(crate) struct Records {
    key: Key,
    left: BTreeMap<String, Budget>,
    /// How many approvals were used.
    used: BTreeMap<String, u32>,
    /// What was written, whether or not the approval was used in the end: it is never taken back.
    recorded: BTreeMap<String, u32>,
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

impl Records {
    pub(crate) fn new(namespace: &str) -> Records {
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: namespace.to_owned(), name: api::STATE.into() };
        Records {
            key,
            left: BTreeMap::new(),
            used: BTreeMap::new(),
            recorded: BTreeMap::new(),
            state: Reading::Pending,
        }
    }

    /// The query that reads the ConfigMap.
    pub(crate) fn query(&self) -> Query {
        Query::of(&self.key)
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
            for (name, text) in found["data"].as_object().into_iter().flatten() {
                let text = text.as_str();
                match name.strip_prefix(USED) {
                    Some(name) => {
                        let Some(recorded) = text.and_then(|text| text.parse::<u32>().ok()) else {
                            // A count that cannot be read is not zero.
                            self.state = Reading::Failed;
                            continue;
                        };
                        let used = self.used.entry(name.to_owned()).or_default();
                        *used = recorded.max(*used);
                    }
                    None => {
                        if let Some(left) = Budget::parse(text) {
                            self.left.entry(name.clone()).or_insert(left);
                        }
                    }
                }
            }
        }
    }

    /// What is left for an object, if anything was recorded.
    pub(crate) fn left(&self, key: &Key) -> Option<Budget> {
        self.left.get(&entry(key)).copied()
    }

    /// How many approvals were used for an object.
    pub(crate) fn used(&self, key: &Key) -> u32 {
        self.used.get(&entry(key)).copied().unwrap_or_default()
    }

    /// Notes what is left for an object.
    pub(crate) fn spend(&mut self, key: &Key, left: Budget) {
        self.left.insert(entry(key), left);
    }

    /// Notes that an approval was used.
    pub(crate) fn use_approval(&mut self, key: &Key) {
        *self.used.entry(entry(key)).or_default() += 1;
    }

    /// The write that records everything, with one more used approval for this object. Budgets that are full again are dropped.
    pub(crate) fn record(
        &mut self,
        using: Option<&Key>,
        kinds: &Kinds,
        now: Timestamp,
    ) -> Option<(Key, Served, Effect)> {
        self.left.retain(|_, left| left.is_worn(now));
        let served = kinds.find(&self.key.kind)?;
        if let Some(key) = using {
            let next = self.used(key) + 1;
            let recorded = self.recorded.entry(entry(key)).or_default();
            *recorded = next.max(*recorded);
        }
        for (name, used) in &self.used {
            let recorded = self.recorded.entry(name.clone()).or_default();
            *recorded = (*used).max(*recorded);
        }
        let used = self.recorded.clone();
        let left = self.left.iter().map(|(name, left)| (name.clone(), left.to_string()));
        let used = used.iter().map(|(name, used)| (format!("{USED}{name}"), used.to_string()));
        let data: BTreeMap<String, String> = left.chain(used).collect();
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
    name.chars()
        .map(|character| if valid(character) { character } else { '_' })
        .take(LONGEST_KEY - USED.len())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Records;
    use crate::budget::Budget;
    use catalog::Answer;
    use change::{Key, Kind};
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn a_configmap_that_cannot_be_read_is_not_an_empty_one() {
        let mut records = Records::new("n");
        assert!(!records.is_attempted() && !records.is_read());
        records.read(&Answer::Unknown);
        assert!(records.is_attempted() && !records.is_read(), "creations wait, everything else goes on");
        let left = Budget::full(Timestamp::UNIX_EPOCH).spend(Timestamp::UNIX_EPOCH).unwrap();
        records.read(&Answer::Found(
            json!({"data": {"ConfigMap.n.x": left.to_string(), "bad": "?", "used-approvals.ConfigMap.n.x": "3"}}),
        ));
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
        assert!(records.is_read() && records.left(&key) == Some(left) && records.used(&key) == 3);
    }
}
