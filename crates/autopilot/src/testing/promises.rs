//! Promises that hold for every write of the core, in every story and in the simulation.

use crate::testing::fields::leaves;
use crate::testing::requests::Made;
use crate::testing::stored::Stored;
use api::{FIELD_MANAGER, annotation};
use change::consent::{Given, Needed};
use change::{Consent, Digest, Effect, Impact, Key};
use protocol::{Body, Event, WatchEvent, Write};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What the promises depend on.
#[derive(Debug, Default)]
pub(crate) struct Promises {
    /// The HyperConverged's annotations as the core knows them.
    known: BTreeMap<String, String>,
    /// For each object with a write in flight: whether a person agreed to a restart of nodes when it was sent.
    covered: BTreeMap<Key, bool>,
    /// Objects with a deletion in flight that a person approved by its digest.
    approved: BTreeSet<Key>,
    /// By uid: contents that nodes run with the consent of a person.
    running: BTreeMap<String, BTreeSet<String>>,
}

impl Promises {
    /// Takes what the core is told.
    pub(crate) fn observe(&mut self, events: &[Event]) {
        for event in events {
            if let Event::Watched(_, WatchEvent::Present { body: Body::Whole(hco), .. }) = event {
                let annotations = hco["metadata"]["annotations"].as_object().into_iter().flatten();
                let texts = annotations.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
                self.known = texts.collect();
            }
        }
    }

    /// A new core knows nothing.
    pub(crate) fn restart(&mut self) {
        self.known.clear();
        self.covered.clear();
        self.approved.clear();
    }

    /// Nodes run the content that somebody else gave an object when it was created.
    pub(crate) fn runs(&mut self, stored: &Stored) {
        self.running.entry(stored.uid().to_owned()).or_insert_with(|| BTreeSet::from([content(stored)]));
    }

    /// Takes a write that the core asks for.
    pub(crate) fn sent(&mut self, write: &Write) {
        let value = |key: &str| self.known.get(key).map(String::as_str);
        let given = match value(annotation::AUTOPILOT) {
            Some("true") => Given::ToAll,
            None | Some("false") => Given::ByDefault,
            Some(_) => Given::ByName,
        };
        let consent = Consent::read(given, value(annotation::APPROVAL), value(annotation::APPROVED));
        let is_covered = match &write.effect {
            Effect::Apply { object, .. } => {
                // What is applied names its own digest.
                let object = object.value();
                let digest = object["metadata"]["annotations"][annotation::APPLIED].as_str();
                digest.and_then(Digest::parse).is_some_and(|digest| consent.is_approved(&digest))
                    || consent.covers(&Digest::of(&Value::Null), Needed::ByName)
            }
            Effect::Delete { uid, .. } => {
                let key = &write.key;
                let digest = json!({"delete": key.to_string(), "group": key.kind.group, "uid": uid});
                let digest = Digest::of(&digest);
                if consent.is_approved(&digest) {
                    self.approved.insert(key.clone());
                }
                consent.covers(&digest, Needed::ApprovalOrPolicy)
            }
            _ => false,
        };
        self.covered.insert(write.key.clone(), is_covered);
    }

    /// Checks a write that was carried out.
    pub(crate) fn check(&mut self, made: &Made) {
        let Made { write, before, after, .. } = made;
        if !made.has_moved() {
            return;
        }
        assert!(!made.is_needless(), "a needless write: {made}");
        if let Effect::Delete { .. } = &write.effect {
            let before = before.as_ref().expect("it existed");
            let owned = before.applied_by(FIELD_MANAGER).is_some_and(|fields| {
                fields.contains(&["metadata", "annotations", annotation::ORIGIN].map(str::to_owned).to_vec())
            });
            let is_ours = before.creator == FIELD_MANAGER && owned;
            let is_created = is_ours && before.annotation(annotation::ORIGIN) == Some("created");
            // An object of the predecessor has no origin, and is deleted only if a person approved exactly that.
            let is_inherited = before.annotation(annotation::ORIGIN).is_none() && before.live().labelled;
            let is_approved = self.approved.remove(&write.key);
            assert!(is_created || (is_inherited && is_approved), "it is not ours: {made}");
            assert!(!api::NEVER_REMOVED.contains(&write.key.kind.kind.as_str()), "{} is deleted", write.key);
        }
        if let Some(before) = before {
            check_users(made, before, after.as_deref());
        }
        if Impact::implied_by(&write.key.kind.group, &write.key.kind.kind) == Impact::High {
            self.check_restart(made, before.as_deref(), after.as_deref());
        }
    }

    /// Nodes restart only where a person agreed, or where they run that content already.
    fn check_restart(&mut self, made: &Made, before: Option<&Stored>, after: Option<&Stored>) {
        let is_same = before.map(content) == after.map(content);
        let is_covered = self.covered.get(&made.write.key).copied().unwrap_or_default();
        if let Some(before) = before.filter(|before| before.creator != FIELD_MANAGER) {
            self.runs(before);
        }
        let runs = after.is_some_and(|after| {
            self.running.get(after.uid()).is_some_and(|contents| contents.contains(&content(after)))
        });
        assert!(is_same || is_covered || runs, "nodes restart without an approval: {made}");
        if let Some(after) = after {
            self.running.entry(after.uid().to_owned()).or_default().insert(content(after));
        }
    }
}

/// An object that its user took out of our hands is not written, and what others apply stays theirs.
fn check_users(made: &Made, before: &Stored, after: Option<&Stored>) {
    let mode = before.annotation(annotation::MODE).unwrap_or_default();
    assert!(!mode.trim().eq_ignore_ascii_case("unmanaged"), "it is unmanaged: {made}");
    let Some(after) = after else { return };
    let (old, new) = (leaves(&before.object), leaves(&after.object));
    for owner in before.owners.iter().filter(|owner| owner.applies && owner.manager != FIELD_MANAGER) {
        for field in owner.fields.iter().filter(|field| old.contains_key(*field)) {
            let manager = &owner.manager;
            assert_eq!(old.get(field), new.get(field), "{field:?} is applied by {manager}: {made}");
        }
    }
}

/// What nodes depend on.
fn content(stored: &Stored) -> String {
    stored.object["spec"].to_string()
}
