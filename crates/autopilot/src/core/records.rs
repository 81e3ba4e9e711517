//! What an object cannot carry itself, because it must outlive the object: its budget of recreation, how many approvals were used for it,
//! and whether its deletion was approved together with others. One ConfigMap carries it for all objects.

use crate::budget::Budget;
use catalog::{Answer, Query};
use change::{Digest, Effect, Key, Kind, Precondition};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The longest key that a ConfigMap takes.
const LONGEST_KEY: usize = 253;

/// Precedes the entries that count used approvals.
const USED: &str = "used-approvals.";
/// Precedes the entries of approved deletions.
const DELETION: &str = "approved-deletion.";
/// The entry with the sum of all used approvals: counts that come to less were edited, and so were those without it. If that ever happened,
/// the version of the ConfigMap from then follows.
const TOTAL: &str = "used-approvals";

/// The records by object.
#[derive(Debug)]
pub(crate) struct Records {
    pub(crate) key: Key,
    /// The uid of the ConfigMap, if it exists: with another one, its counts begin anew.
    uid: Option<String>,
    /// Since which version of the ConfigMap nobody took a count away; nothing if nobody ever did.
    since: String,
    /// What counts used approvals: the ConfigMap, and since when. `None` until it is written that it does.
    counter: Option<String>,
    left: BTreeMap<String, Budget>,
    /// How many approvals were used.
    used: BTreeMap<String, u32>,
    /// The deletions that a person approved together with others: the uid of the object, and what was approved.
    deletions: BTreeMap<String, (String, Digest)>,
    state: Reading,
    /// How often something has changed that has to be written.
    pub(crate) changes: u64,
}

/// A count cannot be read.
struct Unreadable;

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
            since: String::new(),
            counter: None,
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

    /// What counts used approvals, if it was read: with another one, no earlier digest is valid.
    pub(crate) fn counter(&self) -> Option<&str> {
        self.counter.as_deref().filter(|_| self.is_read())
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
        let data = found.map(|found| &found["data"]).unwrap_or_default();
        if self.is_read() && self.uid == uid {
            // The rest is our own last word. A process before us may have written its last count after we read.
            if self.take_used(data).is_ok_and(|is_raised| is_raised) {
                self.changes += 1;
            }
            return;
        }
        if self.is_read() {
            self.changes += 1;
        }
        (self.state, self.uid) = (Reading::Done, uid);
        if self.take_used(data).is_err() {
            self.state = Reading::Failed;
        }
        self.take_counter(found);
        for (name, text) in data.as_object().into_iter().flatten() {
            let text = text.as_str();
            if let Some(name) = name.strip_prefix(DELETION) {
                let parts = text.and_then(|text| text.split_once(' '));
                if let Some((uid, digest)) = parts.and_then(|(uid, digest)| Some((uid, Digest::parse(digest)?))) {
                    self.deletions.insert(name.to_owned(), (uid.to_owned(), digest));
                }
            } else if let Some(left) = Budget::parse(text) {
                self.left.entry(name.clone()).or_insert(left);
            }
        }
    }

    /// Takes the counts that are higher than ours; whether there are any. A count that cannot be read is not zero.
    fn take_used(&mut self, data: &Value) -> Result<bool, Unreadable> {
        let (mut is_raised, mut result) = (false, Ok(()));
        for (name, count) in counts(data) {
            let Some(count) = count else {
                result = Err(Unreadable);
                continue;
            };
            let used = self.used.entry(name.to_owned()).or_default();
            is_raised |= count > *used;
            *used = count.max(*used);
        }
        result.map(|()| is_raised)
    }

    /// Takes what counts used approvals. If somebody has taken a count away, nobody knows which digests were used: all earlier ones become
    /// invalid, because from now on another version of the ConfigMap counts.
    fn take_counter(&mut self, found: Option<&Value>) {
        (self.since, self.counter) = (String::new(), None);
        let (Some(found), Some(uid)) = (found, &self.uid) else { return };
        let sum: u64 = counts(&found["data"]).filter_map(|(_, count)| count).map(u64::from).sum();
        let text = found["data"][TOTAL].as_str().unwrap_or_default();
        let (total, since) = text.split_once(' ').unwrap_or((text, ""));
        if total.parse::<u64>().is_ok_and(|total| total <= sum) {
            (self.since, self.counter) = (since.to_owned(), Some(dated(uid, since)));
        } else {
            found["metadata"]["resourceVersion"].as_str().unwrap_or_default().clone_into(&mut self.since);
            self.changes += 1;
        }
    }

    /// Whether somebody has edited what counts used approvals since we wrote it.
    pub(crate) fn is_edited(&self, answer: &Answer) -> bool {
        let Answer::Found(found) = answer else { return false };
        self.counted().iter().any(|(name, text)| found["data"][name] != json!(text))
    }

    /// The entries that count used approvals.
    fn counted(&self) -> BTreeMap<String, String> {
        let used = self.used.iter().map(|(name, used)| (format!("{USED}{name}"), used.to_string()));
        let total: u64 = self.used.values().copied().map(u64::from).sum();
        used.chain([(TOTAL.to_owned(), dated(&total.to_string(), &self.since))]).collect()
    }

    /// The ConfigMap was written, and has this uid.
    pub(crate) fn written(&mut self, uid: String) {
        self.counter = Some(dated(&uid, &self.since));
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
        let deletions = self.deletions.iter();
        let deletions = deletions.map(|(name, (uid, digest))| (format!("{DELETION}{name}"), format!("{uid} {digest}")));
        let data: BTreeMap<String, String> = left.chain(self.counted()).chain(deletions).collect();
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

/// A text, and since when it holds.
fn dated(text: &str, since: &str) -> String {
    if since.is_empty() { text.to_owned() } else { format!("{text} {since}") }
}

/// The counts by object; `None` if one cannot be read.
fn counts(data: &Value) -> impl Iterator<Item = (&str, Option<u32>)> {
    let entries = data.as_object().into_iter().flatten();
    entries
        .filter_map(|(name, text)| Some((name.strip_prefix(USED)?, text.as_str().and_then(|text| text.parse().ok()))))
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
    use super::{DELETION, Records, entry};
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

    fn used(count: u32) -> Value {
        json!({"used-approvals.ConfigMap.n.x": count.to_string(), "used-approvals": count.to_string()})
    }

    #[test]
    fn counts_that_somebody_took_away_are_counted_anew() {
        for data in [json!(null), json!({"used-approvals": "3"}), json!({"used-approvals.ConfigMap.n.x": "3"})] {
            let mut records = Records::new("n");
            let object = json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "data": data});
            records.read(&Answer::Found(object));
            assert_eq!((records.counter(), records.changes), (None, 1), "nobody can be asked yet: {data}");
            records.written("u".into());
            assert_eq!(records.counter(), Some("u 7"), "{data}");
            let saved = records.counted();
            let mut later = Records::new("n");
            later.read(&found("u", &json!(saved)));
            assert_eq!((later.counter(), later.changes), (Some("u 7"), 0), "{data}");
        }
    }

    #[test]
    fn counts_that_were_edited_are_written_again_and_the_highest_holds() {
        let mut records = Records::new("n");
        records.read(&found("u", &used(3)));
        assert!(!records.is_edited(&found("u", &used(3))) && !records.is_edited(&Answer::Unknown));
        for edited in [json!(null), used(2), json!({"used-approvals": "3"})] {
            assert!(records.is_edited(&found("u", &edited)), "{edited}");
            records.read(&found("u", &edited));
            assert_eq!((records.counter(), records.used(&key()), records.changes), (Some("u"), 3, 0));
        }
        records.read(&found("u", &used(4)));
        assert_eq!((records.used(&key()), records.changes), (4, 1));
    }

    #[test]
    fn an_approved_deletion_is_forgotten_once_it_is_done() {
        let mut records = Records::new("n");
        records.approve_deletion(&key(), "u", Digest::of(&json!(1)));
        assert_eq!(records.approved_deletion(&key(), "u"), Some(&Digest::of(&json!(1))));
        records.end_deletion(&key());
        assert_eq!(records.approved_deletion(&key(), "u"), None);
    }

    #[test]
    fn the_longest_entry_is_as_long_as_a_configmap_allows() {
        let long = Key { name: "x".repeat(300), ..key() };
        assert_eq!(format!("{DELETION}{}", entry(&long)).len(), 253);
    }

    #[test]
    fn a_configmap_that_cannot_be_read_is_not_an_empty_one() {
        let mut records = Records::new("n");
        assert!(!records.is_attempted() && !records.is_read());
        records.read(&Answer::Unknown);
        assert!(records.is_attempted() && !records.is_read(), "creations wait, everything else goes on");
        let left = Budget::full(Timestamp::UNIX_EPOCH).spend(Timestamp::UNIX_EPOCH).unwrap();
        let data = json!({"ConfigMap.n.x": left.to_string(), "bad": "?", "used-approvals.ConfigMap.n.x": "3", "used-approvals": "3"});
        records.read(&found("u", &data));
        assert!(records.is_read() && records.left(&key()) == Some(left) && records.used(&key()) == 3);
        assert_eq!((records.counter(), records.changes), (Some("u"), 0));
        records.read(&Answer::Unknown);
        assert!(records.is_read(), "what was read once is known");
    }

    #[test]
    fn a_configmap_that_was_replaced_takes_no_count_back() {
        let mut records = Records::new("n");
        records.read(&found("u", &used(3)));
        records.read(&found("v", &used(1)));
        assert_eq!((records.counter(), records.used(&key()), records.changes), (Some("v"), 3, 1));
        records.read(&Answer::Absent);
        assert_eq!((records.counter(), records.used(&key()), records.changes), (None, 3, 2));
    }

    #[test]
    fn an_approved_deletion_is_read_for_the_object_it_was_written_for() {
        let (mut records, digest) = (Records::new("n"), Digest::of(&json!(1)));
        records.read(&found(
            "u",
            &json!({"approved-deletion.ConfigMap.n.x": format!("one {digest}"), "used-approvals": "0"}),
        ));
        assert_eq!(records.approved_deletion(&key(), "one"), Some(&digest));
        assert_eq!(records.approved_deletion(&key(), "two"), None);
        records.forget_deletion(&key());
        assert_eq!((records.approved_deletion(&key(), "one"), records.changes), (None, 1));
    }
}
