//! What to do about one object that is not wanted any more. This is the only place that decides on a deletion.

use crate::decide::held_by_user;
use crate::decision::{Decision, PendingWrite};
use crate::gated::{Gated, Passage};
use crate::notice::ObjectNotice;
use crate::ownership::{Origin, Ownership};
use api::annotation;
use change::consent::Needed;
use change::gate::Conditions;
use change::now::later;
use change::{Digest, Effect, Impact, Key, Kind, LeftBehind, Live, Now, Planned, Reason, Restarts, handback, redact};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// Why an object is to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Its user opted out.
    OptedOut,
    /// The user's list does not name its asset.
    NotNamed,
    /// A former release created it.
    Tombstone,
}

/// All that a decision about a removal may depend on.
#[derive(Debug, Clone)]
pub struct Removal<'a> {
    /// The object.
    pub key: &'a Key,
    /// Why it is to be removed.
    pub cause: Cause,
    /// The object's metadata as of its last event; `None` if it does not exist.
    pub live: Option<&'a Live>,
    /// What its deletion does to the cluster.
    pub impact: Impact,
    /// The nodes that a High deletion restarts.
    pub restarts: &'a Restarts,
    /// The digest of its asset: an object that shows another one was created by another release of ours, which is no user's act. `None` if
    /// this process saw the object wanted, because then only a user can have changed that.
    pub source: Option<&'a str>,
    /// When the HyperConverged was created: an older object was wanted by another one.
    pub hco_created: Option<Timestamp>,
    /// Whether its asset says that it is never deleted.
    pub never_pruned: bool,
    /// Whether anything is deleted or handed back at all (`--prune`).
    pub prune: bool,
    /// Why what is wanted as a whole is unclear, if it is.
    pub suspended: Option<&'a str>,
    /// Whether the user excluded it.
    pub excluded: bool,
    /// The `VirtPlatformConfig` that governs it.
    pub governor: Option<&'a str>,
    /// The deletions that wait together with this one, if they are many.
    pub many: Option<&'a ManyDeletions>,
    /// What the gate depends on: consent, pool and maintenance window.
    pub conditions: Conditions<'a>,
}

/// Deletions that one edit asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManyDeletions {
    /// What an approval has to name.
    pub digest: Digest,
    /// The objects.
    pub objects: Vec<String>,
}

impl ManyDeletions {
    /// As many deletions go ahead without an approval.
    pub const FEW: usize = 5;

    /// These deletions, each with the uid of its object, if they are many.
    pub fn of(deletions: &[(&Key, &str)]) -> Option<ManyDeletions> {
        let entry = |(key, uid): &(&Key, &str)| json!([key.kind.group, key.to_string(), uid]);
        let all: Vec<Value> = deletions.iter().map(entry).collect();
        let objects = deletions.iter().map(|(key, _)| key.to_string()).collect();
        (all.len() > ManyDeletions::FEW).then(|| ManyDeletions { digest: Digest::of(&json!({"delete": all})), objects })
    }
}

/// A deletion that takes longer than this is reported: most finalizers need moments.
const STUCK_AFTER: Duration = Duration::from_secs(60);
/// A deletion without finalizers is checked again after this.
const NEXT_CHECK: Duration = Duration::from_secs(1);

/// Decides about one object that is not wanted. In sync means that it is gone, being deleted, or not ours.
pub fn decide_removal(removal: &Removal<'_>, now: Now) -> Decision {
    let Some(live) = removal.live else { return Decision::in_sync() };
    if let Some(by) = removal.governor {
        return Decision::hold(Reason::Governed { by: by.to_owned() });
    }
    if removal.excluded {
        return Decision::hold(Reason::Excluded);
    }
    if let Some(since) = live.deleting {
        let stuck = later(since, STUCK_AFTER);
        if now.wall < stuck || live.finalizers.is_empty() {
            return Decision { wake: Some(stuck.max(now.wall_after(NEXT_CHECK))), ..Decision::in_sync() };
        }
        return Decision::hold(Reason::DeletionStuck { finalizers: live.finalizers.clone() });
    }
    if !live.labelled {
        return match removal.cause {
            Cause::Tombstone => left_behind(LeftBehind::NoLabel),
            Cause::OptedOut | Cause::NotNamed => Decision::in_sync(),
        };
    }
    if let Some(held) = held_by_user(live, now) {
        return held;
    }
    if let Some(why) = removal.suspended {
        return Decision::hold(Reason::Suspended { why: why.to_owned() });
    }
    if !live.managed_fields.is_readable() {
        return Decision::hold(Reason::OwnersUnreadable);
    }
    if !removal.prune {
        return left_behind(LeftBehind::PruneOff);
    }
    let is_tombstone = removal.cause == Cause::Tombstone;
    let gated = Gated {
        key: removal.key,
        uid: Some(&live.uid),
        wanted: None,
        planned: Some(Planned::Delete),
        approvals: None,
        impact: removal.impact,
        restarts: removal.restarts,
        needed: Needed::ApprovalOrPolicy,
        changes_nothing: false,
        is_free_if_running: false,
        suspended: removal.suspended,
    };
    match Ownership::read(live) {
        Ownership::Ours(_) => {}
        Ownership::Inherited if is_tombstone && let Some(digest) = gated.approval() => {
            if !removal.conditions.consent.is_approved(&digest) {
                return left_behind(LeftBehind::NoOriginUnlessApproved(digest));
            }
        }
        Ownership::Inherited | Ownership::Foreign => return left_behind(LeftBehind::NoOrigin),
    }
    if !is_tombstone && !removal.is_users_act(live) {
        return left_behind(LeftBehind::NoUserAct);
    }
    if Ownership::read(live) == Ownership::Ours(Origin::Adopted) {
        let effect = Effect::HandBack { patch: handback::patch(live) };
        return Decision::write(effect, PendingWrite::HandBack, Some(ObjectNotice::HandedBack));
    }
    if removal.never_pruned || api::NEVER_REMOVED.contains(&removal.key.kind.kind.as_str()) {
        return left_behind(LeftBehind::NeverDeleted);
    }
    if live.managed_fields.claim(api::advisor::FIELD_MANAGER).is_some() {
        return left_behind(LeftBehind::OfAdvisor);
    }
    if let Passage::Held(held) = gated.pass(&removal.conditions) {
        return *held;
    }
    if let Some(ManyDeletions { digest, objects }) = removal.many
        && !removal.conditions.consent.is_waived(Needed::ApprovalOrPolicy)
        && !removal.conditions.consent.is_approved(digest)
    {
        return Decision::hold(Reason::ManyDeletions { digest: *digest, objects: objects.clone() });
    }
    let (uid, resource_version) = (live.uid.clone(), live.resource_version.clone());
    let notice = if is_tombstone {
        ObjectNotice::TombstoneDeleted
    } else {
        ObjectNotice::Pruned { dropped: overrides_of(&removal.key.kind, live) }
    };
    Decision::write(Effect::Delete { uid, resource_version }, PendingWrite::Delete, Some(notice))
}

/// The overrides that users wrote on an object, and lose with it, as far as they may be shown.
pub(crate) fn overrides_of(kind: &Kind, live: &Live) -> Vec<(String, String)> {
    written_overrides(live).map(|(key, value)| (key.clone(), redact::annotation(kind, key, value))).collect()
}

/// The overrides on an object, as they are written.
pub(crate) fn written_overrides(live: &Live) -> impl Iterator<Item = (&String, &String)> {
    live.annotations.iter().filter(|(key, _)| annotation::USERS.contains(&key.as_str()))
}

impl Removal<'_> {
    /// Whether a user of this HyperConverged opted out: not another release of ours, and not a recreated HyperConverged. Who ran when it
    /// was recreated knows no more than who starts later, so that both decide the same.
    fn is_users_act(&self, live: &Live) -> bool {
        let written = live.annotations.get(annotation::SOURCE).map(String::as_str);
        let is_of_this_release = self.source.is_none_or(|source| written == Some(source));
        // An adopted object may be older than both; handing it back loses nothing.
        let is_of_this_hco = live.created.zip(self.hco_created).is_some_and(|(object, hco)| object >= hco);
        is_of_this_release && (is_of_this_hco || Ownership::read(live) == Ownership::Ours(Origin::Adopted))
    }
}

fn left_behind(why: LeftBehind) -> Decision {
    Decision::hold(Reason::LeftBehind { why })
}

#[cfg(test)]
mod tests;
