//! What is to be done about an object that is not wanted any more.

use crate::decision::{Decision, Effect, Tell, Verdict};
use crate::scope::Consent;
use crate::standing::{Origin, Standing};
use api::annotation;
use change::{Digest, Impact, Key, Live, Mode, Pause, Reason, Steering, handback};
use serde_json::json;

/// Why an object is to go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its user took back what asked for it.
    OptedOut,
    /// Its user's list does not name it.
    NotNamed,
    /// A former release made it.
    Tombstone,
}

/// All that a decision about parting may depend on.
#[derive(Debug, Clone)]
pub struct Parting<'a> {
    /// The object.
    pub key: &'a Key,
    /// Why it is to go.
    pub cause: Cause,
    /// The object's metadata as of its last event; `None` if it does not exist.
    pub live: Option<&'a Live>,
    /// What its going does to the cluster.
    pub impact: Impact,
    /// Since when it can have been wanted; `None` if we saw it wanted ourselves, so that only its user can have changed that.
    pub since: Option<Since<'a>>,
    /// Whether its asset says that it stays, whatever happens.
    pub stays: bool,
    /// Whether anything is deleted at all.
    pub prune: bool,
    /// Whether what is wanted as a whole is unclear.
    pub frozen: bool,
    /// Whether the user excluded it.
    pub excluded: bool,
    /// To what the user said yes.
    pub consent: &'a Consent,
    /// The nodes that restart, in words.
    pub restarts: &'a str,
}

/// What an object was made by, if its user can have stopped wanting it.
#[derive(Debug, Clone, Copy)]
pub struct Since<'a> {
    /// The fingerprint of its asset.
    pub source: &'a str,
    /// When the HyperConverged was made, in milliseconds since 1970.
    pub hco_created: Option<i64>,
}

/// A deletion that takes longer than this is told: most finalizers need moments.
const STUCK_AFTER: i64 = 60_000;

/// Decides about one object that is not wanted. `now` is in milliseconds since 1970. What is in sync is gone, or none of ours.
pub fn part(parting: &Parting<'_>, now: i64) -> Decision {
    let Some(live) = parting.live else { return Decision::in_sync() };
    if parting.excluded {
        return Decision::hold(Reason::Excluded);
    }
    if let Some(since) = live.deleting {
        let stuck = since.saturating_add(STUCK_AFTER);
        if now < stuck || live.finalizers.is_empty() {
            return Decision { wake: Some(stuck.max(now + 1_000)), ..Decision::in_sync() };
        }
        return Decision::hold(Reason::DeletionStuck { finalizers: live.finalizers.clone() });
    }
    if !live.labelled {
        // It is none of ours, or not any more.
        return match parting.cause {
            Cause::Tombstone => left("it does not carry our label"),
            Cause::OptedOut | Cause::NotNamed => Decision::in_sync(),
        };
    }
    let steering = match Steering::read(&live.annotations) {
        Ok(steering) => steering,
        Err(reason) => return Decision::hold(reason),
    };
    match (steering.mode, steering.pause) {
        (Mode::Unmanaged, _) => return Decision::hold(Reason::Unmanaged),
        (_, Pause::UntilRemoved) => return Decision::hold(Reason::Paused),
        (_, Pause::Until(end)) if end > now => return Decision { wake: Some(end), ..Decision::hold(Reason::Paused) },
        (_, Pause::Unclear(value)) => return Decision::hold(Reason::PauseUnclear { value }),
        _ => {}
    }
    if parting.frozen {
        return Decision::hold(Reason::Frozen);
    }
    let digest = fingerprint(parting.key, live);
    let is_tombstone = parting.cause == Cause::Tombstone;
    match Standing::of(live, None) {
        Standing::Ours(_) => {}
        Standing::Inherited if is_tombstone && parting.consent.is_approved(&digest) => {}
        Standing::Inherited if is_tombstone => {
            return left(&format!("it has no origin, so a person has to decide; approve {digest} to delete it"));
        }
        Standing::Inherited | Standing::Foreign => return left("it has no origin, so it may be somebody else's"),
    }
    if !is_tombstone && !parting.is_users_act(live) {
        return left("no user of this HyperConverged took back that it is wanted; delete it by hand");
    }
    if !parting.prune {
        return left("the operator was told to delete nothing");
    }
    if Standing::of(live, None) == Standing::Ours(Origin::Adopted) {
        let effect = Effect::HandBack { patch: handback::patch(live) };
        return Decision { tell: Some(Tell::HandedBack), ..act(effect) };
    }
    if parting.stays || api::NEVER_REMOVED.contains(&parting.key.kind.kind.as_str()) {
        return left("objects like it are never deleted");
    }
    let is_covered = match parting.cause {
        // Who does not name it has not said yes to what its going does.
        Cause::NotNamed => parting.consent.covers_exactly(&digest),
        Cause::OptedOut => parting.consent.covers(&digest),
        Cause::Tombstone => parting.consent.covers_unnamed(&digest),
    };
    if parting.impact == Impact::High && !is_covered {
        let (restarts, changes) = (parting.restarts.to_owned(), vec!["all of it: it is deleted".to_owned()]);
        return Decision::hold(Reason::NeedsApproval { digest, restarts, changes });
    }
    let (uid, resource_version) = (live.uid.clone(), live.resource_version.clone());
    let theirs = live.annotations.iter().filter(|(key, _)| annotation::USERS.contains(&key.as_str()));
    let dropped = theirs.map(|(key, value)| (key.clone(), value.clone())).collect();
    let tell = if is_tombstone { Tell::Buried } else { Tell::Pruned { dropped } };
    Decision { tell: Some(tell), ..act(Effect::Delete { uid, resource_version }) }
}

impl Parting<'_> {
    /// Whether a user of this HyperConverged stopped wanting it: not another version of ourselves, and not a HyperConverged made anew.
    fn is_users_act(&self, live: &Live) -> bool {
        let Some(Since { source, hco_created }) = &self.since else { return true };
        let is_of_this_version = live.annotations.get(annotation::SOURCE).is_some_and(|written| written == source);
        // What was adopted may be older than both; it is given back, which loses nothing.
        let is_of_this_hco = live.created.zip(*hco_created).is_some_and(|(object, hco)| object >= hco);
        is_of_this_version && (is_of_this_hco || Standing::of(live, None) == Standing::Ours(Origin::Adopted))
    }
}

/// What a yes to a deletion has to name: this object and no other of its name.
fn fingerprint(key: &Key, live: &Live) -> Digest {
    Digest::of(&json!({"delete": key.to_string(), "group": key.kind.group, "uid": live.uid}))
}

fn left(why: &str) -> Decision {
    Decision::hold(Reason::LeftBehind { why: why.to_owned() })
}

fn act(effect: Effect) -> Decision {
    Decision::of(Verdict::Do(effect))
}

#[cfg(test)]
mod tests;
