//! What is to be done about one object, from what its last event says.

use crate::budget::Budget;
use crate::release;
use crate::scope::Consent;
use crate::wish::Wish;
use api::annotation;
use change::field_set::{applied_by_another, takers};
use change::{Claim, Desired, Digest, Entry, FieldSet, Impact, Key, Live, Mode, Openings, Pause, Reason, Steering};
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
    pub openings: &'a Openings,
    /// Whether the user excluded it.
    pub excluded: bool,
    /// The nodes a High write restarts, in words.
    pub restarts: &'a str,
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
}

/// An apply that the server refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The digest of what we wanted, overrides included.
    pub digest: Digest,
    /// The server's words.
    pub words: String,
}

/// What to do, and what to say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// What to say, if it was not said before.
    pub tell: Option<Tell>,
    /// What of the user's wishes was refused; the object is then kept at its last good state.
    pub refused: Option<Reason>,
    /// When waiting alone changes the answer, in milliseconds since 1970.
    pub wake: Option<i64>,
}

/// The answer for one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is as it should be.
    InSync,
    /// It is left as it is, for this reason.
    Hold(Reason),
    /// Do this; the answer tells whether it is as it should be.
    Do(Effect),
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Apply this object; on an existing one only in the version we know.
    Apply {
        /// The object.
        object: Value,
        /// The digest to remember with the answer.
        digest: Digest,
        /// What is left after it.
        budget: Budget,
        /// What is left of its budget of creations, if it is one after a deletion.
        deletions: Option<Budget>,
    },
    /// Give up our claim on these fields without changing their values; the next decision applies without them.
    Release {
        /// A JSON patch on managedFields, guarded by the version we know.
        patch: Value,
    },
    /// Write these annotations and nothing else, in the version we know.
    Annotate {
        /// The annotations.
        annotations: BTreeMap<String, String>,
        /// The version.
        resource_version: String,
        /// What is left after it.
        budget: Budget,
    },
}

/// Something worth an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Tell {
    /// It was created, or what we want of it has changed.
    Applied,
    /// Somebody deleted it and it was created again.
    Recreated {
        /// The users' wishes that were on it: key and value.
        dropped: Vec<(String, String)>,
    },
    /// Somebody changed these fields and they were put back.
    Corrected {
        /// Who, as far as the object tells.
        actors: Vec<String>,
        /// Which fields.
        fields: Vec<String>,
    },
    /// It is held, for this reason.
    Held(Reason),
}

/// Decides about one object. `now` is in milliseconds since 1970.
pub fn decide(observed: &Observed<'_>, now: i64) -> Decision {
    if observed.excluded {
        return hold(Reason::Excluded);
    }
    let Some(live) = observed.live else {
        let refused = observed.refusal(observed.wanted.digest());
        return Decision { refused, ..create(observed, now) };
    };
    if live.deleting {
        // It is on its way out; its end is an event of its own.
        return in_sync();
    }
    let steering = match Steering::read(&live.annotations) {
        Ok(steering) => steering,
        Err(reason) => return hold(reason),
    };
    if steering.mode == Mode::Unmanaged {
        return hold(Reason::Unmanaged);
    }
    match steering.pause {
        Pause::No => {}
        Pause::UntilRemoved => return hold(Reason::Paused),
        Pause::Until(end) if end <= now => {}
        Pause::Until(end) => return Decision { wake: Some(end), ..hold(Reason::Paused) },
        Pause::Unclear(value) => return hold(Reason::PauseUnclear { value }),
    }
    let (wish, refused) = match Wish::of(observed, live) {
        Ok(wish) => wish,
        Err(reason) => return hold(reason),
    };
    let decision = keep(observed, live, wish, now);
    match (refused, decision.verdict) {
        (Some(reason), Verdict::InSync) => hold(reason),
        (refused, verdict) => Decision { verdict, refused, ..decision },
    }
}

/// Keeps an object that exists as wished.
fn keep(observed: &Observed<'_>, live: &Live, mut wish: Wish, now: i64) -> Decision {
    let claim = live.managed_fields.claim(api::FIELD_MANAGER);
    let remembered =
        observed.remembered.filter(|remembered| remembered.uid == live.uid && remembered.digest == wish.digest);
    if let (Some(remembered), Some(claim)) = (remembered, &claim)
        && remembered.claim.is_still(claim)
    {
        return in_sync();
    }
    let object = wish.take_object(observed.wanted);
    let entries = live.managed_fields.entries();
    if let Some((manager, fields)) = applied_by_another(&object, &entries, api::FIELD_MANAGER) {
        return hold(Reason::OwnedByAnother { manager, fields: fields.paths().collect() });
    }
    if let Some(patch) = release::patch(wish.overrides.ignored(), live) {
        return Decision { verdict: Verdict::Do(Effect::Release { patch }), tell: None, refused: None, wake: None };
    }
    let applied = live.annotations.get(annotation::APPLIED);
    let ran_already = applied.is_some_and(|applied| applied == wish.digest.as_str());
    let written = live.annotations.get(annotation::BUDGET).map(String::as_str);
    let budget = Budget::read(written, now).at_most(observed.budget, now);
    let lost = match remembered {
        Some(remembered) => remembered.claim.fields().without(&claim.as_ref().map(Claim::fields).unwrap_or_default()),
        // After a start nothing is remembered, but what we applied and do not own any more was taken meanwhile.
        None if ran_already => claim.as_ref().map(Claim::fields).unwrap_or_default().missing_of(&object),
        None => FieldSet::default(),
    };
    // Somebody who changed it while we watched is put back before the nodes follow; what was changed while we did not look may run by
    // now, and putting it back would restart them.
    let runs_so = ran_already && (remembered.is_some() || lost.is_empty());
    let is_covered = match applied {
        Some(_) => observed.consent.covers(&wish.digest),
        // It was somebody else's until now: moving over restarts nothing.
        None => observed.consent.covers_exactly(&wish.digest),
    };
    if observed.impact == Impact::High && !runs_so && !is_covered {
        return hold(Reason::NeedsApproval { digest: wish.digest, restarts: observed.restarts.to_owned() });
    }
    if remembered.is_none() && lost.is_empty() {
        // One apply, which changes nothing if all is as it was.
        let tell = (!ran_already).then_some(Tell::Applied);
        let kept = Budget::parse(written).unwrap_or(budget);
        return apply(object, &wish, kept, tell);
    }
    let fields: Vec<String> = lost.paths().collect();
    let actors = actors(&lost, &entries);
    match budget.spend(now) {
        Some(left) => apply(object, &wish, left, Some(Tell::Corrected { actors, fields })),
        None => pause(live, Reason::Fighting { actors, fields }, now),
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
    Decision { verdict: Verdict::Do(effect), tell: Some(Tell::Held(reason)), refused: None, wake: None }
}

/// An object that does not exist has no overrides: they lived on it.
fn create(observed: &Observed<'_>, now: i64) -> Decision {
    if observed.frozen {
        return hold(Reason::Frozen);
    }
    let wish = Wish::bare(observed.wanted);
    if observed.impact == Impact::High && !observed.consent.covers(&wish.digest) {
        return hold(Reason::NeedsApproval { digest: wish.digest, restarts: observed.restarts.to_owned() });
    }
    let (object, budget) = (observed.wanted.object(), Budget::full(now));
    let Some(deletions) = observed.deletions else {
        return apply(object, &wish, budget, Some(Tell::Applied));
    };
    let Some(left) = deletions.spend(now) else {
        // There is nothing to write a pause on: it waits until there is budget again.
        return Decision { wake: Some(deletions.next(now)), ..hold(Reason::DeletedAgain) };
    };
    let decision = apply(object, &wish, budget, Some(Tell::Recreated { dropped: observed.dropped.to_vec() }));
    match decision.verdict {
        Verdict::Do(Effect::Apply { object, digest, budget, .. }) => {
            let effect = Effect::Apply { object, digest, budget, deletions: Some(left) };
            Decision { verdict: Verdict::Do(effect), ..decision }
        }
        verdict => Decision { verdict, ..decision },
    }
}

fn in_sync() -> Decision {
    Decision { verdict: Verdict::InSync, tell: None, refused: None, wake: None }
}

fn hold(reason: Reason) -> Decision {
    let tell = Some(Tell::Held(reason.clone()));
    Decision { verdict: Verdict::Hold(reason), tell, refused: None, wake: None }
}

/// What is sent: what is wanted, our label, and what we have to know after a restart.
fn apply(mut object: Value, wish: &Wish, budget: Budget, tell: Option<Tell>) -> Decision {
    let metadata = &mut object["metadata"];
    metadata["labels"][api::MANAGED_BY.0] = json!(api::MANAGED_BY.1);
    metadata["annotations"][annotation::BUDGET] = json!(budget.to_string());
    metadata["annotations"][annotation::APPLIED] = json!(wish.digest);
    for (key, value) in &wish.last_good {
        metadata["annotations"][*key] = json!(value);
    }
    let effect = Effect::Apply { object, digest: wish.digest.clone(), budget, deletions: None };
    Decision { verdict: Verdict::Do(effect), tell, refused: None, wake: None }
}

#[cfg(test)]
mod tests;
