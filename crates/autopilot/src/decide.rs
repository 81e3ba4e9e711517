//! What is to be done about one object, from what its last event says.

use crate::budget::Budget;
use crate::decision::{Decision, Effect, Tell, Verdict};
use crate::release;
use crate::restart::{self, Write};
use crate::scope::Consent;
use crate::standing::{Origin, Standing};
use crate::wish::Wish;
use api::annotation;
use change::content;
use change::field_set::{applied_by_another, takers};
use change::{
    Claim, Desired, Digest, Entry, FieldSet, Impact, Key, Live, Mode, PatchableKinds, Pause, Reason, Steering,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All that a decision about one object may depend on.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// The object.
    pub key: &'a Key,
    /// What the catalogue wants it to be.
    pub wanted: &'a Desired,
    /// What writing it does to the cluster.
    pub impact: Impact,
    /// The object's metadata as of its last event; `None` if it does not exist.
    pub live: Option<&'a Live>,
    /// What our last apply was answered with; `None` after a start.
    pub remembered: Option<&'a Remembered>,
    /// What is left of its budget as far as we remember; whoever takes the annotation away gives no new one.
    pub budget: Option<Budget>,
    /// What the server refused.
    pub refused: &'a [Refused],
    /// What is left of its budget of creations, if somebody has deleted it before.
    pub deletions: Option<Budget>,
    /// The users' wishes that were on it when it was deleted.
    pub dropped: &'a [(String, String)],
    /// Whether what is wanted as a whole is unclear, so that nothing new is made.
    pub frozen: bool,
    /// To what the user said yes.
    pub consent: &'a Consent,
    /// Sensitive kinds that may be patched after all.
    pub openings: &'a PatchableKinds,
    /// Whether the user excluded it.
    pub excluded: bool,
    /// The nodes a High write restarts, in words.
    pub restarts: &'a str,
    /// The fingerprint of the asset it comes from.
    pub source: &'a str,
    /// What a look at its content said, if there was one.
    pub inspected: Option<&'a Inspected>,
}

impl Observed<'_> {
    /// What the server said to this, if it refused it.
    pub(crate) fn refusal(&self, digest: &Digest) -> Option<Reason> {
        let refused = self.refused.iter().find(|refused| refused.digest == *digest)?;
        Some(Reason::RefusedByServer { words: refused.words.clone() })
    }
}

/// What our last apply was answered with.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    /// The digest of what we wanted, overrides included.
    pub digest: Digest,
    /// What the answer said is ours.
    pub claim: Claim,
    /// The identity of the object we applied to.
    pub uid: String,
    /// How it came to be ours.
    pub origin: Option<Origin>,
}

/// What a look at an object's content said: what we would change about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// The version that was looked at.
    pub resource_version: String,
    /// The digest of what we wanted then, overrides included.
    pub digest: Digest,
    /// What differs, in words.
    pub changes: Vec<String>,
}

/// An apply that the server refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The digest of what we wanted, overrides included.
    pub digest: Digest,
    /// The server's words.
    pub words: String,
}

/// Decides about one object. `now` is in milliseconds since 1970.
pub fn decide(observed: &Observed<'_>, now: i64) -> Decision {
    if observed.excluded {
        return Decision::hold(Reason::Excluded);
    }
    let Some(live) = observed.live else {
        let refused = observed.refusal(observed.wanted.digest());
        return Decision { refused, ..create(observed, now) };
    };
    if live.deleting.is_some() {
        // It is on its way out; its end is an event of its own.
        return Decision::in_sync();
    }
    let steering = match Steering::read(&live.annotations) {
        Ok(steering) => steering,
        Err(reason) => return Decision::hold(reason),
    };
    if steering.mode == Mode::Unmanaged {
        return Decision::hold(Reason::Unmanaged);
    }
    match steering.pause {
        Pause::No => {}
        Pause::UntilRemoved => return Decision::hold(Reason::Paused),
        Pause::Until(end) if end <= now => {}
        Pause::Until(end) => return Decision { wake: Some(end), ..Decision::hold(Reason::Paused) },
        Pause::Unclear(value) => return Decision::hold(Reason::PauseUnclear { value }),
    }
    let (wish, refused) = match Wish::of(observed, live) {
        Ok(wish) => wish,
        Err(reason) => return Decision::hold(reason),
    };
    if let Some(reason @ (Reason::PatchRefused { .. } | Reason::IgnoreFieldsRefused { .. })) = &refused
        && is_new(observed, live)
    {
        // What it is now is all that is known to be good: who takes it over takes nothing from its user.
        return Decision::hold(reason.clone());
    }
    let decision = keep(observed, live, wish, now);
    match (refused, decision.verdict) {
        (Some(reason), Verdict::InSync | Verdict::TakeOver { .. }) => Decision::hold(reason),
        (refused, verdict) => Decision { verdict, refused, ..decision },
    }
}

/// Looks at the content of an object that exists: what our wish would change about it.
pub fn inspect(observed: &Observed<'_>, content: &Value) -> Option<Inspected> {
    let (mut wish, _) = Wish::of(observed, observed.live?).ok()?;
    let digest = wish.digest.clone();
    let changes =
        content::words(&content::changes(&wish.take_object(observed.wanted), content, observed.impact == Impact::High));
    let resource_version = content["metadata"]["resourceVersion"].as_str()?.to_owned();
    Some(Inspected { resource_version, digest, changes })
}

/// Keeps an object that exists as wished.
fn keep(observed: &Observed<'_>, live: &Live, mut wish: Wish, now: i64) -> Decision {
    let claim = live.managed_fields.claim(api::FIELD_MANAGER);
    let known = observed.remembered.filter(|remembered| remembered.uid == live.uid);
    let remembered = known.filter(|remembered| remembered.digest == wish.digest);
    if let (Some(remembered), Some(claim)) = (remembered, &claim)
        && remembered.claim.is_still(claim)
    {
        return Decision::in_sync();
    }
    let object = wish.take_object(observed.wanted);
    let entries = live.managed_fields.entries();
    if let Some((manager, fields)) = applied_by_another(&object, &entries, api::FIELD_MANAGER) {
        return Decision::hold(Reason::OwnedByAnother { manager, fields: fields.paths().collect() });
    }
    let applied = live.annotations.get(annotation::APPLIED);
    let ran_already = applied.is_some_and(|applied| applied == wish.digest.as_str());
    let standing = Standing::of(live, known.and_then(|known| known.origin));
    let is_new = is_new(observed, live);
    if is_new && observed.frozen {
        return Decision::hold(Reason::Frozen);
    }
    let release = || {
        let effect = Effect::Release { patch: release::patch(wish.overrides.ignored(), live)? };
        Some(Decision::of(Verdict::Do(effect)))
    };
    // Whoever ignores a field gets it at once; only what was never ours is not touched before it may be.
    if let Some(release) = release().filter(|_| !is_new) {
        return release;
    }
    let lost = match remembered {
        Some(remembered) => remembered.claim.fields().without(&claim.as_ref().map(Claim::fields).unwrap_or_default()),
        // After a start nothing is remembered, but what we applied and do not own any more was taken meanwhile.
        None if ran_already => claim.as_ref().map(Claim::fields).unwrap_or_default().missing_of(&object),
        None => FieldSet::default(),
    };
    let looked_at = observed
        .inspected
        .filter(|inspected| inspected.resource_version == live.resource_version && inspected.digest == wish.digest);
    let changes = looked_at.map(|inspected| inspected.changes.clone()).unwrap_or_default();
    if is_new && standing == Standing::Inherited && looked_at.is_none() {
        return Decision::of(Verdict::Look);
    }
    if observed.impact == Impact::High {
        let owns_all = || claim.as_ref().is_some_and(|claim| claim.fields().missing_of(&object).is_empty());
        if is_new && standing == Standing::Inherited && changes.is_empty() && owns_all() {
            // Not even a label is written: moving over writes nothing that could restart a node.
            return Decision::of(Verdict::TakeOver { digest: wish.digest.clone() });
        }
        // Somebody who changed it while we watched is put back before the nodes follow; what was changed while we did not look may run
        // by now, and putting it back would restart them.
        let runs_so = remembered.is_some() || (ran_already && lost.is_empty());
        let write = Write { observed, live, digest: &wish.digest, standing, runs_so, looked_at };
        if let Some(decision) = restart::instead(&write) {
            return decision;
        }
    }
    if let Some(release) = release().filter(|_| is_new) {
        return release;
    }
    let written = live.annotations.get(annotation::BUDGET).map(String::as_str);
    let budget = Budget::read(written, now).at_most(observed.budget, now);
    let stamp = |budget| {
        // Nothing is written that may restart nodes only to say that it came from elsewhere.
        let source =
            live.annotations.get(annotation::SOURCE).filter(|_| ran_already && observed.impact == Impact::High);
        Stamp { budget, origin: standing.origin(), source: source.map_or(observed.source, String::as_str) }
    };
    if remembered.is_none() && lost.is_empty() {
        // One apply, which changes nothing if all is as it was.
        let tell = match standing {
            Standing::Foreign => Some(Tell::Adopted { changes }),
            Standing::Inherited if is_new => Some(Tell::TakenOver { changes }),
            _ => (!ran_already).then_some(Tell::Applied),
        };
        let kept = Budget::parse(written).unwrap_or(budget);
        let left = match observed.deletions.filter(|_| standing == Standing::Foreign) {
            // Whoever makes it anew again and again is not followed for ever.
            Some(deletions) => match deletions.spend(now) {
                None => return deleted_again(deletions, now),
                left => left,
            },
            None => None,
        };
        let mut decision = apply(object, &wish, stamp(kept), tell);
        if let Verdict::Do(Effect::Apply { adopts, deletions, .. }) = &mut decision.verdict {
            (*adopts, *deletions) = (standing == Standing::Foreign, left);
        }
        return decision;
    }
    let fields: Vec<String> = lost.paths().collect();
    let actors = actors(&lost, &entries);
    match budget.spend(now) {
        Some(left) => apply(object, &wish, stamp(left), Some(Tell::Corrected { actors, fields })),
        None => pause(live, Reason::Fighting { actors, fields }, now),
    }
}

/// Whether it was never ours as far as is known: whoever takes it over looks first, copies, or waits.
fn is_new(observed: &Observed<'_>, live: &Live) -> bool {
    let known = observed.remembered.filter(|remembered| remembered.uid == live.uid);
    match Standing::of(live, known.and_then(|known| known.origin)) {
        Standing::Foreign => true,
        Standing::Inherited => !live.annotations.contains_key(annotation::APPLIED) && known.is_none(),
        Standing::Ours(_) => false,
    }
}

fn actors(lost: &FieldSet, entries: &[Entry]) -> Vec<String> {
    takers(lost, entries, api::FIELD_MANAGER).into_iter().map(str::to_owned).collect()
}

/// Pauses an object over which somebody fights; whoever removes the annotation starts with a full budget.
fn pause(live: &Live, reason: Reason, now: i64) -> Decision {
    let budget = Budget::full(now);
    let annotations = BTreeMap::from([
        (annotation::RECONCILE_PAUSED.to_owned(), "true".to_owned()),
        (annotation::BUDGET.to_owned(), budget.to_string()),
    ]);
    let effect = Effect::Annotate { annotations, resource_version: live.resource_version.clone(), budget };
    Decision { tell: Some(Tell::Held(reason)), ..Decision::of(Verdict::Do(effect)) }
}

/// An object that does not exist has no overrides: they lived on it.
fn create(observed: &Observed<'_>, now: i64) -> Decision {
    if observed.frozen {
        return Decision::hold(Reason::Frozen);
    }
    let wish = Wish::bare(observed.wanted);
    if observed.impact == Impact::High && !observed.consent.covers(&wish.digest) {
        let (restarts, changes) = (observed.restarts.to_owned(), Vec::new());
        return Decision::hold(Reason::NeedsApproval { digest: wish.digest, restarts, changes });
    }
    let object = observed.wanted.object();
    let stamp = Stamp { budget: Budget::full(now), origin: Some(Origin::Created), source: observed.source };
    let Some(deletions) = observed.deletions else {
        return apply(object, &wish, stamp, Some(Tell::Applied));
    };
    let Some(left) = deletions.spend(now) else {
        return deleted_again(deletions, now);
    };
    let mut decision = apply(object, &wish, stamp, Some(Tell::Recreated { dropped: observed.dropped.to_vec() }));
    if let Verdict::Do(Effect::Apply { deletions, .. }) = &mut decision.verdict {
        *deletions = Some(left);
    }
    decision
}

/// There is nothing of ours to write a pause on: it waits until there is budget again.
fn deleted_again(deletions: Budget, now: i64) -> Decision {
    Decision { wake: Some(deletions.next(now)), ..Decision::hold(Reason::DeletedAgain) }
}

/// What we write on an object beside what is wanted.
#[derive(Clone, Copy)]
struct Stamp<'a> {
    budget: Budget,
    origin: Option<Origin>,
    source: &'a str,
}

/// What is sent: what is wanted, our label, and what we have to know after a restart.
fn apply(mut object: Value, wish: &Wish, stamp: Stamp<'_>, tell: Option<Tell>) -> Decision {
    let Stamp { budget, origin, source } = stamp;
    let metadata = &mut object["metadata"];
    metadata["labels"][api::MANAGED_BY.0] = json!(api::MANAGED_BY.1);
    let annotations = &mut metadata["annotations"];
    annotations[annotation::BUDGET] = json!(budget.to_string());
    annotations[annotation::APPLIED] = json!(wish.digest);
    annotations[annotation::SOURCE] = json!(source);
    if let Some(origin) = origin {
        annotations[annotation::ORIGIN] = json!(origin.word());
    }
    for (key, value) in &wish.last_good {
        annotations[*key] = json!(value);
    }
    let digest = wish.digest.clone();
    let effect = Effect::Apply { object, digest, budget, deletions: None, origin, adopts: false };
    Decision { tell, ..Decision::of(Verdict::Do(effect)) }
}

#[cfg(test)]
mod tests;
