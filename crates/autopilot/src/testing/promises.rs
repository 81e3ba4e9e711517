//! Promises that hold for every write of the core, in every story and in the simulation.

use crate::notice::{Notice, ObjectNotice};
use crate::testing::fields::leaves;
use crate::testing::requests::Made;
use crate::testing::stored::Stored;
use api::{FIELD_MANAGER, annotation};
use catalog::Part;
use change::consent::Needed;
use change::{Consent, Digest, Effect, Impact, Key};
use jiff::{SignedDuration, Timestamp};
use protocol::{Body, Event, WatchEvent, Write};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What the promises depend on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Promises {
    /// The HyperConverged's annotations as the core knows them.
    known: BTreeMap<String, String>,
    /// For each object with a write in flight: what a person agreed to when it was sent.
    covered: BTreeMap<Key, Covered>,
    /// The digests that the core has asked to approve.
    asked: BTreeMap<Key, BTreeSet<Digest>>,
    /// The approved digests that were used: none is used twice.
    used: BTreeSet<Digest>,
    /// What each pool was to run, and why it could take no change, each since when.
    pools: BTreeMap<String, Vec<(Timestamp, PoolPhase)>>,
    /// What a person agreed that each pool runs, and when.
    agreed: BTreeMap<String, (Timestamp, String)>,
}

/// What matters of a pool.
#[derive(Debug, Clone, PartialEq)]
struct PoolPhase {
    wanted: String,
    why_not_ready: Option<String>,
}

/// What a pool was to run so long ago may still count as what it runs.
const FRESH: SignedDuration = SignedDuration::from_secs(4);

/// What a person agreed to.
#[derive(Debug, Clone, Default)]
struct Covered {
    /// Whether nothing needs an approval.
    is_waived: bool,
    /// The approvals of this object that are not used.
    approved: BTreeSet<Digest>,
    /// When the write was sent.
    sent_at: Timestamp,
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
    }

    /// A pool is like this from now on.
    pub(crate) fn pool_changed(&mut self, name: &str, object: &Value, now: Timestamp) {
        let Ok(Part::Pool(pool)) = Part::read("MachineConfigPool", &object.to_string()) else { return };
        let phase = PoolPhase { why_not_ready: pool.why_not_ready(), wanted: pool.wanted_configuration };
        let phases = self.pools.entry(name.to_owned()).or_default();
        if phases.last().is_none_or(|(_, last)| *last != phase) {
            phases.push((now, phase));
        }
    }

    /// Takes what the core reports: what it asks to approve.
    pub(crate) fn noticed(&mut self, notice: &Notice) {
        let Notice::Object(key, ObjectNotice::Held(reason), _) = notice else { return };
        let Some(digest) = reason.asked() else { return };
        self.asked.entry(key.clone()).or_default().insert(*digest);
    }

    /// Takes a write that the core asks for.
    pub(crate) fn sent(&mut self, write: &Write, now: Timestamp) {
        let value = |key: &str| self.known.get(key).map(String::as_str);
        let consent = Consent::read(value(annotation::APPROVAL), value(annotation::APPROVED));
        let asked = self.asked.get(&write.key).into_iter().flatten();
        let approved =
            asked.filter(|digest| consent.is_approved(digest) && !self.used.contains(digest)).copied().collect();
        let is_waived = consent.is_waived(Needed::ApprovalOrPolicy);
        self.covered.insert(write.key.clone(), Covered { is_waived, approved, sent_at: now });
    }

    /// Checks a write that was carried out. With it, these are the configurations of the pools.
    pub(crate) fn check(&mut self, made: &Made, rendered: &BTreeMap<String, String>) {
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
            let is_approved = self.covered.get(&write.key).is_some_and(|covered| !covered.approved.is_empty());
            assert!(is_created || (is_inherited && is_approved), "it is not ours: {made}");
            assert!(!api::NEVER_REMOVED.contains(&write.key.kind.kind.as_str()), "{} is deleted", write.key);
        }
        if let Some(before) = before {
            check_users(made, before, after.as_deref());
        }
        if Impact::implied_by(&write.key.kind.group, &write.key.kind.kind) == Impact::High {
            self.check_restart(made, before.as_deref(), after.as_deref(), rendered);
        }
    }

    /// Nodes restart only where a person agreed, or where they run that content already.
    fn check_restart(
        &mut self,
        made: &Made,
        before: Option<&Stored>,
        after: Option<&Stored>,
        rendered: &BTreeMap<String, String>,
    ) {
        let covered = self.covered.remove(&made.write.key).unwrap_or_default();
        let runs = |pool: &str, name: &str| {
            self.recently(pool, covered.sent_at).any(|phase| phase.wanted == name) || self.is_about_to_run(pool, name)
        };
        let changed: Vec<&String> =
            rendered.iter().filter(|(pool, name)| !runs(pool, name)).map(|(pool, _)| pool).collect();
        if before.map(content) != after.map(content) && !changed.is_empty() {
            for pool in &changed {
                let is_ready = self.recently(pool, covered.sent_at).any(|phase| phase.why_not_ready.is_none());
                assert!(is_ready, "pool {pool} is not healthy: {made}");
            }
            assert!(covered.is_waived || !covered.approved.is_empty(), "nodes restart without an approval: {made}");
            if !covered.is_waived {
                self.used.extend(covered.approved);
            }
            let agreed = rendered.iter().map(|(pool, name)| (pool.clone(), (covered.sent_at, name.clone())));
            self.agreed.extend(agreed);
        }
    }

    /// Whether a person agreed that a pool runs this, and it was to run nothing else since.
    fn is_about_to_run(&self, pool: &str, name: &str) -> bool {
        let Some((since, _)) = self.agreed.get(pool).filter(|(_, agreed)| agreed == name) else { return false };
        let phases = self.pools.get(pool).into_iter().flatten();
        phases.filter(|(at, _)| at > since).all(|(_, phase)| phase.wanted == name)
    }

    /// What a pool was like when a write was sent, or shortly before.
    fn recently(&self, pool: &str, sent_at: Timestamp) -> impl Iterator<Item = &PoolPhase> {
        let earliest = sent_at.checked_sub(FRESH).unwrap_or(sent_at);
        let phases = self.pools.get(pool).map(Vec::as_slice).unwrap_or_default();
        let ends = phases.iter().skip(1).map(|(since, _)| Some(*since)).chain([None]);
        let recent = phases.iter().zip(ends).filter(move |(_, end)| end.is_none_or(|end| end >= earliest));
        recent.map(|((_, phase), _)| phase)
    }
}

/// An object that its user took out of our hands is not written, and what others apply stays theirs.
fn check_users(made: &Made, before: &Stored, after: Option<&Stored>) {
    let mode = before.annotation(annotation::MODE).unwrap_or_default();
    assert!(!mode.trim().eq_ignore_ascii_case("unmanaged"), "it is unmanaged: {made}");
    let Some(after) = after else { return };
    let (old, new) = (leaves(&before.object), leaves(&after.object));
    // What the advisor governs no more is not left to it for ever.
    let ours = [FIELD_MANAGER, api::advisor::FIELD_MANAGER];
    for owner in before.owners.iter().filter(|owner| owner.applies && !ours.contains(&owner.manager.as_str())) {
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
