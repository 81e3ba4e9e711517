//! What an object cannot carry itself, because it must outlive the object: its budget of recreation, how many approvals were used for it,
//! and whether its deletion was approved together with others. One ConfigMap carries it for all objects.

use crate::budget::Budget;
use catalog::{Answer, Query};
use change::{Digest, Effect, Key, Kind, Precondition};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;

/// The longest key that a ConfigMap takes.
const LONGEST_KEY: usize = 253;

/// Precedes the entries that count used approvals.
const USED: &str = "used-approvals.";
/// Precedes the entries of approved deletions.
const DELETION: &str = "approved-deletion.";

/// The records by object.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) key: Key,
    /// The uid of the ConfigMap, if it exists: with another one, its counts begin anew.
    uid: Option<String>,
    left: BTreeMap<String, Budget>,
    /// How many approvals were used.
    used: BTreeMap<String, u32>,
    /// The deletions that a person approved together with others: the uid of the object, and what was approved.
    deletions: BTreeMap<String, (String, Digest)>,
    state: Reading,
    /// How often something has changed that has to be written.
    pub(crate) changes: u64,
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
            uid: None,
            left: BTreeMap::new(),
            used: BTreeMap::new(),
            deletions: BTreeMap::new(),
            state: Reading::Pending,
            changes: 0,
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

    /// The uid of the ConfigMap, if it was read.
    pub(crate) fn uid(&self) -> Option<&str> {
        self.uid.as_deref().filter(|_| self.is_read())
    }

    /// Takes what an earlier process left, or that somebody deleted or replaced the ConfigMap. One that cannot be read is not an empty one.
    pub(crate) fn read(&mut self, answer: &Answer) {
        let found = match answer {
            Answer::Unknown if self.is_read() => return,
            Answer::Unknown => {
                self.state = Reading::Failed;
                return;
            }
            Answer::Absent => None,
            Answer::Found(found) => Some(found),
        };
        let uid = found.and_then(|found| found["metadata"]["uid"].as_str()).map(str::to_owned);
        if self.is_read() && self.uid == uid {
            // What is in it is our own last word.
            return;
        }
        if self.is_read() {
            self.changes += 1;
        }
        (self.state, self.uid) = (Reading::Done, uid);
        for (name, text) in found.and_then(|found| found["data"].as_object()).into_iter().flatten() {
            let text = text.as_str();
            if let Some(name) = name.strip_prefix(USED) {
                let Some(recorded) = text.and_then(|text| text.parse::<u32>().ok()) else {
                    // A count that cannot be read is not zero.
                    self.state = Reading::Failed;
                    continue;
                };
                let used = self.used.entry(name.to_owned()).or_default();
                *used = recorded.max(*used);
            } else if let Some(name) = name.strip_prefix(DELETION) {
                let parts = text.and_then(|text| text.split_once(' '));
                if let Some((uid, digest)) = parts.and_then(|(uid, digest)| Some((uid, Digest::parse(digest)?))) {
                    self.deletions.insert(name.to_owned(), (uid.to_owned(), digest));
                }
            } else if let Some(left) = Budget::parse(text) {
                self.left.entry(name.clone()).or_insert(left);
            }
        }
    }

    /// The ConfigMap was written, and has this uid.
    pub(crate) fn written(&mut self, uid: String) {
        self.uid = Some(uid);
    }

    /// What is left for an object, if anything was recorded.
    pub(crate) fn left(&self, key: &Key) -> Option<Budget> {
        self.left.get(&entry(key)).copied()
    }

    /// How many approvals were used for an object.
    pub(crate) fn used(&self, key: &Key) -> u32 {
        self.used.get(&entry(key)).copied().unwrap_or_default()
    }

    /// What was approved with the deletion of the object with this uid.
    pub(crate) fn approved_deletion(&self, key: &Key, uid: &str) -> Option<&Digest> {
        self.deletions.get(&entry(key)).filter(|(of, _)| of == uid).map(|(_, digest)| digest)
    }

    /// Notes what is left for an object.
    pub(crate) fn spend(&mut self, key: &Key, left: Budget) {
        self.left.insert(entry(key), left);
        self.changes += 1;
    }

    /// Notes that an approval is used.
    pub(crate) fn use_approval(&mut self, key: &Key) {
        *self.used.entry(entry(key)).or_default() += 1;
        self.changes += 1;
    }

    /// Notes that a person approved to delete the object with this uid.
    pub(crate) fn approve_deletion(&mut self, key: &Key, uid: &str, digest: Digest) {
        self.deletions.insert(entry(key), (uid.to_owned(), digest));
        self.changes += 1;
    }

    /// Somebody wants an object again: a later deletion is another one.
    pub(crate) fn forget_deletion(&mut self, key: &Key) {
        if self.deletions.remove(&entry(key)).is_some() {
            self.changes += 1;
        }
    }

    /// A deletion is done. The next write drops it: no other object has its uid.
    pub(crate) fn end_deletion(&mut self, key: &Key) {
        self.deletions.remove(&entry(key));
    }

    /// The write that records everything, into the ConfigMap that was read and no other. Budgets that are full again are dropped.
    pub(crate) fn save(&mut self, now: Timestamp) -> Effect {
        self.left.retain(|_, left| left.is_worn(now));
        let left = self.left.iter().map(|(name, left)| (name.clone(), left.to_string()));
        let used = self.used.iter().map(|(name, used)| (format!("{USED}{name}"), used.to_string()));
        let deletions = self.deletions.iter();
        let deletions = deletions.map(|(name, (uid, digest))| (format!("{DELETION}{name}"), format!("{uid} {digest}")));
        let data: BTreeMap<String, String> = left.chain(used).chain(deletions).collect();
        let mut metadata = json!({"name": self.key.name, "namespace": self.key.namespace});
        let precondition = match &self.uid {
            Some(uid) => {
                metadata["uid"] = json!(uid);
                Precondition::None
            }
            None => Precondition::Absent,
        };
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        Effect::apply(object, precondition, true)
    }
}

/// A key that a ConfigMap takes. Two objects whose names differ only in other characters share a budget.
fn entry(key: &Key) -> String {
    let name = format!("{}.{}.{}", key.kind.kind, key.namespace, key.name);
    let valid = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    name.chars()
        .map(|character| if valid(character) { character } else { '_' })
        .take(LONGEST_KEY - DELETION.len())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Records;
    use crate::budget::Budget;
    use catalog::Answer;
    use change::{Digest, Key, Kind};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn key() -> Key {
        Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() }
    }

    fn found(uid: &str, data: &Value) -> Answer {
        Answer::Found(json!({"metadata": {"uid": uid}, "data": data}))
    }

    #[test]
    fn a_configmap_that_cannot_be_read_is_not_an_empty_one() {
        let mut records = Records::new("n");
        assert!(!records.is_attempted() && !records.is_read());
        records.read(&Answer::Unknown);
        assert!(records.is_attempted() && !records.is_read(), "creations wait, everything else goes on");
        let left = Budget::full(Timestamp::UNIX_EPOCH).spend(Timestamp::UNIX_EPOCH).unwrap();
        let data = json!({"ConfigMap.n.x": left.to_string(), "bad": "?", "used-approvals.ConfigMap.n.x": "3"});
        records.read(&found("u", &data));
        assert!(records.is_read() && records.left(&key()) == Some(left) && records.used(&key()) == 3);
        assert_eq!((records.uid(), records.changes), (Some("u"), 0));
        records.read(&Answer::Unknown);
        assert!(records.is_read(), "what was read once is known");
    }

    #[test]
    fn a_configmap_that_was_replaced_takes_no_count_back() {
        let mut records = Records::new("n");
        records.read(&found("u", &json!({"used-approvals.ConfigMap.n.x": "3"})));
        records.read(&found("v", &json!({"used-approvals.ConfigMap.n.x": "1"})));
        assert_eq!((records.uid(), records.used(&key()), records.changes), (Some("v"), 3, 1));
        records.read(&Answer::Absent);
        assert_eq!((records.uid(), records.used(&key()), records.changes), (None, 3, 2));
    }

    #[test]
    fn an_approved_deletion_is_read_for_the_object_it_was_written_for() {
        let (mut records, digest) = (Records::new("n"), Digest::of(&json!(1)));
        records.read(&found("u", &json!({"approved-deletion.ConfigMap.n.x": format!("one {digest}")})));
        assert_eq!(records.approved_deletion(&key(), "one"), Some(&digest));
        assert_eq!(records.approved_deletion(&key(), "two"), None);
        records.forget_deletion(&key());
        assert_eq!((records.approved_deletion(&key(), "one"), records.changes), (None, 1));
    }
}
