//! What to do about one wanted object, from the metadata of its last event.

use crate::budget::Budget;
use crate::decision::{Decision, PendingWrite, Verdict};
use crate::documents::{self, DocumentEdits};
use crate::effective::EffectiveDesired;
use crate::gated::{Approvals, Gated, Passage};
use crate::notice::{Drift, ObjectNotice};
use crate::ownership::{Origin, Ownership};
use crate::release;
use api::annotation;
use catalog::Document;
use catalog::rollout::Contribution;
use change::consent::Needed;
use change::entry::{applied_by_another, changed_for_another, is_shared, missing, owned, takers};
use change::gate::Conditions;
use change::pointer::Pointer;
use change::{
    Changes, Claim, Corrections, Desired, Digest, Effect, Entry, FieldSet, Impact, Key, Live, Mode, Now, Overrides,
    PatchableKinds, Pause, Planned, Precondition, Reason, Restarts, Steering, backup, content,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All that a decision about one object may depend on.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// The object.
    pub key: &'a Key,
    /// What the catalogue wants it to be.
    pub desired: &'a Desired,
    /// What writing it does to the cluster.
    pub impact: Impact,
    /// The nodes that a High write restarts.
    pub restarts: &'a Restarts,
    /// The digest of the asset it comes from.
    pub source: &'a str,
    /// The object's metadata as of its last event; `None` if it does not exist.
    pub live: Option<&'a Live>,
    /// The answer to our last apply; `None` after a start.
    pub remembered: Option<&'a Remembered>,
    /// The last inspection of its content, if there was one.
    pub inspected: Option<&'a Inspected>,
    /// Whether its values need not be compared although nothing in its metadata has changed.
    pub is_verified: bool,
    /// Documents in it of which only some keys are wanted.
    pub documents: &'a [Document],
    /// Whether they had what is wanted of them before.
    pub had_documents: bool,
    /// Its budget of corrections as we remember it: removing the annotation does not refill it.
    pub budget: Option<Budget>,
    /// Its budget of recreations, if somebody has deleted it before.
    pub recreation: Option<Budget>,
    /// The overrides that were on it when it was deleted.
    pub dropped: &'a [(String, String)],
    /// The applies that the server refused.
    pub refused: &'a [Refused],
    /// Whether it is as our last apply made it, whose answer was lost.
    pub unanswered: bool,
    /// Its approvals so far.
    pub approvals: Approvals<'a>,
    /// Whether an approved write of it is half done: a list was repaired, and the apply follows.
    pub half_done: Option<Digest>,
    /// Why what is wanted as a whole is unclear, if it is, so that nothing new is created.
    pub suspended: Option<&'a str>,
    /// Whether the user excluded it.
    pub excluded: bool,
    /// The `VirtPlatformConfig` that governs it.
    pub governor: Option<&'a str>,
    /// Whether a `VirtPlatformConfig` governs other fields of it.
    pub is_shared_with_advisor: bool,
    /// Whether it is not known what the user excluded.
    pub exclusions_unclear: bool,
    /// Sensitive kinds that users may patch.
    pub patchable: &'a PatchableKinds,
    /// What the gate depends on: consent, pool and maintenance window.
    pub conditions: Conditions<'a>,
}

impl Observed<'_> {
    /// The server's refusal of this digest, if there was one.
    pub(crate) fn refusal(&self, digest: &Digest) -> Option<Reason> {
        let refused = self.refused.iter().find(|refused| refused.digest == *digest)?;
        Some(Reason::RefusedByServer { message: refused.message.clone() })
    }
}

/// The answer to our last apply.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    /// The digest of the desired state with overrides.
    pub digest: Digest,
    /// Our managedFields entry in the answer.
    pub claim: Claim,
    /// The advisor's entry, if it is taken over as the advisor left it: then both entries show whether anything has changed.
    pub beside: Option<Claim>,
    /// The uid of the object we applied to.
    pub uid: String,
    /// How the object came to be ours.
    pub origin: Option<Origin>,
}

impl Remembered {
    /// Whether nobody has written these fields since, as far as metadata shows.
    pub(crate) fn is_still(&self, live: &Live) -> bool {
        let claim = |manager: &str| live.managed_fields.claim(manager).unwrap_or_default();
        let is_beside = |beside: &Claim| beside.is_still(&claim(api::advisor::FIELD_MANAGER));
        self.claim.is_still(&claim(api::FIELD_MANAGER)) && self.beside.as_ref().is_none_or(is_beside)
    }
}

/// What an inspection of an object's content found.
#[derive(Debug, Clone, PartialEq)]
pub struct Inspected {
    /// The version that was inspected.
    pub resource_version: String,
    /// The digest of the desired state at that time, with overrides.
    pub digest: Digest,
    /// What an apply would change.
    pub changes: Changes,
    /// The other manager who applies some of that, and those fields.
    pub changed_for_another: Option<(String, FieldSet)>,
    /// The documents in it that have to be edited.
    pub documents: Result<DocumentEdits, Reason>,
    /// What the object is to bring into the configuration of nodes, if its write may restart them.
    pub contribution: Option<Contribution>,
}

/// An apply that the server refused.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    /// The digest of the desired state with overrides.
    pub digest: Digest,
    /// The server's message.
    pub message: String,
}

/// Decides about one wanted object.
pub fn decide(observed: &Observed<'_>, now: Now) -> Decision {
    if let Some(by) = observed.governor {
        return Decision::hold(Reason::Governed { by: by.to_owned() });
    }
    if observed.excluded {
        return Decision::hold(Reason::Excluded);
    }
    let Some(live) = observed.live else {
        let refused = observed.refusal(observed.desired.digest());
        return Decision { refused, ..create(observed, now) };
    };
    if live.deleting.is_some() {
        // The end of its deletion is an event of its own.
        return Decision::in_sync();
    }
    if let Some(held) = held_by_user(live, now) {
        return held;
    }
    if !live.managed_fields.is_readable() {
        return Decision::hold(Reason::OwnersUnreadable);
    }
    let (effective, refused) = match EffectiveDesired::of(observed, live) {
        Ok(effective) => effective,
        Err(reason) => return Decision::hold(reason),
    };
    let claim = live.managed_fields.claim(api::FIELD_MANAGER);
    let is_new = is_new(observed, live, claim.as_ref());
    if let Some(reason @ (Reason::PatchRefused { .. } | Reason::IgnoreFieldsRefused { .. })) = &refused
        && is_new
    {
        // An object that was never ours has no last good state but the live one.
        return Decision::hold(reason.clone());
    }
    let decision = keep(observed, live, claim.as_ref(), is_new, effective, now);
    let decision = match decision.verdict {
        // A refused override may be meant to keep a document as it is.
        Verdict::InSync if !observed.documents.is_empty() && refused.is_none() => {
            documents::decide(observed, live, now)
        }
        _ => decision,
    };
    let decision = match decision.verdict {
        Verdict::Write(..) if observed.exclusions_unclear && decision.only_learns(live) => Decision::in_sync(),
        Verdict::Write(..) if observed.exclusions_unclear => {
            let drift = decision.notice.as_ref().and_then(ObjectNotice::drift);
            return Decision { drift, ..Decision::hold(Reason::ExclusionsUnclear) };
        }
        _ => decision,
    };
    match (refused, decision.verdict) {
        (Some(reason), Verdict::InSync | Verdict::TakeOver { .. }) => Decision::hold(reason),
        (refused, verdict) => Decision { verdict, refused, ..decision },
    }
}

/// Whether the user's annotations on the object keep us from touching it: mode and pause.
pub(crate) fn held_by_user(live: &Live, now: Now) -> Option<Decision> {
    let steering = match Steering::read(&live.annotations) {
        Ok(steering) => steering,
        Err(reason) => return Some(Decision::hold(reason)),
    };
    match (steering.mode, steering.pause) {
        (Mode::Unmanaged, _) => Some(Decision::hold(Reason::Unmanaged)),
        (Mode::Managed, Pause::UntilRemoved) => Some(Decision::hold(Reason::Paused)),
        (Mode::Managed, Pause::Until(end)) if end > now.wall => {
            Some(Decision { wake: Some(end), ..Decision::hold(Reason::Paused) })
        }
        (Mode::Managed, Pause::Unclear(value)) => Some(Decision::hold(Reason::PauseUnclear { value })),
        (Mode::Managed, Pause::Until(_) | Pause::No) => None,
    }
}

/// Compares the content of an existing object with the effective desired state.
pub fn inspect(observed: &Observed<'_>, content: &Value) -> Option<Inspected> {
    let live = observed.live?;
    let (mut effective, _) = EffectiveDesired::of(observed, live).ok()?;
    let (digest, wanted) = (effective.digest, effective.take_object(observed.desired));
    let mut changes = content::changes(&wanted, content, observed.impact == Impact::High);
    let entries = owners(observed, live);
    if observed.impact == Impact::High {
        // Somebody changed what we own in a way that metadata does not show.
        let hidden = owned(&entries, api::FIELD_MANAGER).differing(&wanted, Some(content));
        changes.add_whole(&hidden.pointers(), &wanted, content);
    }
    let changed_for_another = changed_for_another(&wanted, content, &entries, api::FIELD_MANAGER);
    let resource_version = content["metadata"]["resourceVersion"].as_str()?.to_owned();
    let documents = DocumentEdits::of(observed.documents, effective.overrides.ignored(), &wanted, content);
    let contribution = (observed.impact == Impact::High).then(|| {
        let mut contribution = Contribution::of(&observed.key.kind, &content::merged(content, &wanted));
        let ours = Entry::ours(&entries, api::FIELD_MANAGER);
        if ours.is_some_and(|ours| !removed_fields(&ours.fields, &wanted, &effective.overrides).is_empty()) {
            // What an apply removes is not compared.
            contribution.contents = None;
        }
        contribution
    });
    Some(Inspected { resource_version, digest, changes, changed_for_another, documents, contribution })
}

/// Keeps an existing object at its effective desired state.
fn keep(
    observed: &Observed<'_>,
    live: &Live,
    claim: Option<&Claim>,
    is_new: bool,
    mut effective: EffectiveDesired,
    now: Now,
) -> Decision {
    let known = observed.remembered.filter(|remembered| remembered.uid == live.uid);
    let remembered = known.filter(|remembered| remembered.digest == effective.digest);
    let inspected = observed.inspected.filter(|inspected| {
        inspected.resource_version == live.resource_version && inspected.digest == effective.digest
    });
    // Our claim is as we left it, but not the values.
    let mut is_hidden_drift = false;
    if remembered.is_some_and(|remembered| remembered.is_still(live)) {
        match inspected {
            Some(inspected) if !inspected.changes.is_empty() => is_hidden_drift = true,
            None if !observed.is_verified => return Decision::of(Verdict::Inspect),
            _ => return Decision::in_sync(),
        }
    }
    // What we never wrote is adopted as any other object.
    let remembered = remembered.filter(|remembered| remembered.beside.is_none());
    let object = effective.take_object(observed.desired);
    let entries = owners(observed, live);
    let missing = missing(&object, &entries, api::FIELD_MANAGER);
    if let Some((manager, fields)) = applied_by_another(&object, &entries, api::FIELD_MANAGER) {
        return Decision::hold(owned_by(&manager, &fields));
    }
    if is_shared(&entries, api::FIELD_MANAGER) {
        // Only the content tells whether our apply would take a field from another manager.
        let Some(inspected) = inspected else { return Decision::of(Verdict::Inspect) };
        if let Some((manager, fields)) = &inspected.changed_for_another {
            return Decision::hold(owned_by(manager, fields));
        }
    }
    let nothing = FieldSet::default();
    let ours = Entry::ours(&entries, api::FIELD_MANAGER).map_or(&nothing, |entry| &entry.fields);
    let is_given_back = !observed.is_shared_with_advisor
        && remembered.is_none()
        && takers(&missing, &entries, api::FIELD_MANAGER).contains(&api::advisor::FIELD_MANAGER);
    if is_given_back {
        // The advisor governs it no more. What it wrote stays while it is what is wanted.
        let Some(inspected) = inspected else { return Decision::of(Verdict::Inspect) };
        if inspected.changes.is_empty() && removed_fields(ours, &object, &effective.overrides).is_empty() {
            return Decision::of(Verdict::TakeOver { digest: effective.digest });
        }
    }
    let applied = live.annotations.get(annotation::APPLIED);
    let was_applied = applied.and_then(|applied| Digest::parse(applied)) == Some(effective.digest);
    let ownership = Ownership::of(live, claim, known.and_then(|known| known.origin));
    if let Some(why) = observed.suspended.filter(|_| is_new) {
        return Decision::hold(Reason::Suspended { why: why.to_owned() });
    }
    if ownership == Ownership::Foreign && !backup::has_safe_place(&observed.key.kind) {
        return Decision::hold(Reason::NoSafeBackup);
    }
    let release = || {
        // A document is nobody's as a whole.
        let documents = observed.documents.iter().map(|document| &document.field);
        let documents = documents.filter(|field| object.pointer(&field.to_string()).is_none());
        let released: Vec<Pointer> = effective.overrides.ignored().iter().chain(documents).cloned().collect();
        let effect = Effect::JsonPatch { patch: release::patch(&released, live)? };
        Some(Decision::write(effect, PendingWrite::Release, None))
    };
    // An ignored field is released at once, but an object that was never ours is not touched before the gate is open.
    if let Some(release) = release().filter(|_| !is_new) {
        return release;
    }
    let lost = match remembered {
        Some(remembered) => remembered.claim.fields().without(ours),
        // After a start nothing is remembered: what we applied and do not own any more was taken meanwhile.
        None if was_applied && !is_given_back => missing.clone(),
        None => FieldSet::default(),
    };
    let changes = inspected.map(|inspected| inspected.changes.clone()).unwrap_or_default();
    let is_inherited = is_new && ownership == Ownership::Inherited;
    if is_inherited && inspected.is_none() {
        return Decision::of(Verdict::Inspect);
    }
    if observed.impact == Impact::High && is_inherited && changes.is_empty() && claim.is_some() && missing.is_empty() {
        // Moving over writes nothing that could restart a node, not even a label.
        return Decision::of(Verdict::TakeOver { digest: effective.digest });
    }
    // An apply that neither changes nor removes a value restarts nothing: it records an override, or gives up an ignored field.
    let removed = removed_fields(ours, &object, &effective.overrides);
    let changes_nothing =
        !is_new && inspected.is_some_and(|inspected| inspected.changes.is_empty()) && removed.is_empty();
    let is_none_removed = removed.is_empty();
    let gated = Gated {
        key: observed.key,
        uid: Some(&live.uid),
        wanted: Some(&effective.digest),
        planned: inspected.map(|inspected| Planned::Change { changes: inspected.changes.clone(), removed }),
        approvals: Some(observed.approvals),
        impact: observed.impact,
        restarts: observed.restarts,
        // Moving over from the predecessor restarts nothing without an approval, whatever the policy.
        needed: match applied {
            None if ownership == Ownership::Inherited => Needed::ApprovalOnly,
            _ => Needed::ApprovalOrPolicy,
        },
        changes_nothing: changes_nothing || observed.half_done == Some(effective.digest),
        // What somebody changed is undone before the nodes follow it, but what was never ours waits.
        is_free_if_running: !is_new && is_none_removed,
        suspended: observed.suspended,
    };
    let approval = match gated.pass(&observed.conditions) {
        Passage::Free { approval } => approval,
        Passage::Held(held) => {
            let fields = || lost.paths().collect();
            let drift =
                (!lost.is_empty()).then(|| Drift::Changed { actors: actors(&lost, &entries), fields: fields() });
            return Decision { drift: drift.filter(|_| matches!(held.verdict, Verdict::Hold(_))), ..*held };
        }
    };
    let approved = |decision: Decision| Decision { approval, ..decision };
    if let Some(release) = release().filter(|_| is_new) {
        return release;
    }
    let written = live.annotations.get(annotation::BUDGET).map(String::as_str);
    let budget = Budget::read(written, now.wall).at_most(observed.budget, now.wall);
    let stamp = |budget| {
        // A write that may restart nodes does not happen only to record another source.
        let source =
            live.annotations.get(annotation::SOURCE).filter(|_| was_applied && observed.impact == Impact::High);
        Stamp { budget, origin: ownership.origin(), source: source.map_or(observed.source, String::as_str) }
    };
    let (uid, resource_version) = (live.uid.clone(), live.resource_version.clone());
    let apply = Apply { object, effective: &effective, precondition: Precondition::Present { uid, resource_version } };
    if observed.unanswered || (remembered.is_none() && lost.is_empty()) {
        // One apply, which changes nothing if all is as it was.
        let adopts = ownership == Ownership::Foreign;
        let notice = match ownership {
            Ownership::Foreign => Some(ObjectNotice::Adopted { changes }),
            _ if is_given_back => Some(ObjectNotice::TakenBack { changes }),
            Ownership::Inherited if is_new => Some(ObjectNotice::TakenOver { changes }),
            Ownership::Inherited | Ownership::Ours(_) => (!was_applied).then_some(ObjectNotice::Applied),
        };
        let kept = Budget::parse(written).unwrap_or(budget);
        let decision = match observed.recreation.filter(|_| adopts) {
            // Whoever keeps recreating it is not followed for ever.
            Some(recreation) => match recreation.spend(now.wall) {
                None => deleted_again(recreation, now),
                left => apply.decision(stamp(kept), left, adopts, notice),
            },
            None => apply.decision(stamp(kept), None, adopts, notice),
        };
        return approved(decision);
    }
    if is_hidden_drift {
        // It costs no budget: it is found once a day, and an apply that changes nothing must not change a budget either.
        let fields = changes.0.iter().map(|change| change.path.clone()).collect();
        let values = Corrections::of_changes(&changes);
        let notice = ObjectNotice::Corrected { actors: vec![api::FIELD_MANAGER.to_owned()], fields, values };
        let kept = Budget::parse(written).unwrap_or(budget);
        return approved(apply.decision(stamp(kept), None, false, Some(notice)));
    }
    // What a pause or a repair of ours took is nobody's drift.
    let by_us = entries.iter().find(|entry| entry.manager == api::FIELD_MANAGER && !entry.applied);
    let by_others = by_us.map(|entry| lost.without(&entry.fields));
    if by_others.as_ref().is_some_and(FieldSet::is_empty) && lost.paths().all(|path| is_stamp(&path)) {
        // The answer to an edit of a document was lost, which wrote the budget, too.
        let kept = Budget::parse(written).unwrap_or(budget);
        return approved(apply.decision(stamp(kept), None, false, None));
    }
    let lost = by_others.filter(|fields| !fields.is_empty()).unwrap_or(lost);
    let fields: Vec<String> = lost.paths().collect();
    let actors = actors(&lost, &entries);
    match budget.spend(now.wall) {
        Some(left) => {
            let values = corrections(observed.key, &lost, &apply.object, inspected);
            let notice = ObjectNotice::Corrected { actors, fields, values };
            approved(apply.decision(stamp(left), None, false, Some(notice)))
        }
        None => pause(live, Reason::Fighting { actors, fields }, now),
    }
}

/// Who owns which field. What the advisor governs no more is not left to it for ever, so its applies count as updates.
fn owners(observed: &Observed<'_>, live: &Live) -> Vec<Entry> {
    let mut entries = live.managed_fields.entries();
    if !observed.is_shared_with_advisor {
        let of_advisor = entries.iter_mut().filter(|entry| entry.manager == api::advisor::FIELD_MANAGER);
        of_advisor.for_each(|entry| entry.applied = false);
    }
    entries
}

/// The values of fields that somebody took from us; what we stamp on every object is nobody's concern.
fn corrections(key: &Key, lost: &FieldSet, object: &Value, inspected: Option<&Inspected>) -> Corrections {
    let mut fields = lost.pointers();
    fields.retain(|field| !is_stamp(&format!(".{}", field.steps().join("."))));
    Corrections::of(&key.kind, &fields, object, inspected.map(|inspected| &inspected.changes))
}

/// The fields of ours that an apply of this object removes. We give up ignored fields, and their values stay.
fn removed_fields(ours: &FieldSet, object: &Value, overrides: &Overrides) -> Vec<String> {
    let mut beyond = ours.beyond(object);
    overrides.ignored().iter().for_each(|field| beyond.leave_out(field.steps()));
    beyond.paths().filter(|path| !is_stamp(path)).collect()
}

/// Whether the object was never managed by us, as far as is known: it is inspected, backed up or held before the first write.
fn is_new(observed: &Observed<'_>, live: &Live, claim: Option<&Claim>) -> bool {
    let known = observed.remembered.filter(|remembered| remembered.uid == live.uid);
    match Ownership::of(live, claim, known.and_then(|known| known.origin)) {
        Ownership::Foreign => true,
        Ownership::Inherited => !live.annotations.contains_key(annotation::APPLIED) && known.is_none(),
        Ownership::Ours(_) => false,
    }
}

fn owned_by(manager: &str, fields: &FieldSet) -> Reason {
    Reason::OwnedByAnother { manager: manager.to_owned(), fields: fields.paths().collect() }
}

fn actors(lost: &FieldSet, entries: &[Entry]) -> Vec<String> {
    takers(lost, entries, api::FIELD_MANAGER).into_iter().map(str::to_owned).collect()
}

/// Pauses an object over which another writer fights us; removing the annotation resumes with a full budget.
pub(crate) fn pause(live: &Live, reason: Reason, now: Now) -> Decision {
    let budget = Budget::full(now.wall);
    let annotations = BTreeMap::from([
        (annotation::RECONCILE_PAUSED.to_owned(), Some("true".to_owned())),
        (annotation::BUDGET.to_owned(), Some(budget.to_string())),
    ]);
    let effect = Effect::Annotate { annotations, resource_version: live.resource_version.clone() };
    Decision::write(effect, PendingWrite::Annotate { budget }, Some(ObjectNotice::Held(reason)))
}

/// Creates an object. Overrides lived on the object, so one that does not exist has none.
fn create(observed: &Observed<'_>, now: Now) -> Decision {
    let drift = observed.recreation.map(|_| Drift::Deleted);
    if let Some(why) = observed.suspended {
        return Decision { drift, ..Decision::hold(Reason::Suspended { why: why.to_owned() }) };
    }
    let effective = EffectiveDesired::bare(observed.desired);
    let gated = Gated {
        key: observed.key,
        uid: None,
        wanted: Some(&effective.digest),
        planned: Some(Planned::Create),
        approvals: Some(observed.approvals),
        impact: observed.impact,
        restarts: observed.restarts,
        needed: Needed::ApprovalOrPolicy,
        changes_nothing: false,
        is_free_if_running: true,
        suspended: None,
    };
    let approval = match gated.pass(&observed.conditions) {
        Passage::Free { approval } => approval,
        Passage::Held(held) => {
            return Decision { drift: drift.filter(|_| matches!(held.verdict, Verdict::Hold(_))), ..*held };
        }
    };
    let stamp = Stamp { budget: Budget::full(now.wall), origin: Some(Origin::Created), source: observed.source };
    let object = observed.desired.object();
    let apply = Apply { object, effective: &effective, precondition: Precondition::Absent };
    let decision = match observed.recreation.map(|recreation| (recreation, recreation.spend(now.wall))) {
        None => apply.decision(stamp, None, false, Some(ObjectNotice::Applied)),
        Some((recreation, None)) => Decision { drift, ..deleted_again(recreation, now) },
        Some((_, left)) => {
            let notice = ObjectNotice::Recreated { dropped: observed.dropped.to_vec() };
            apply.decision(stamp, left, false, Some(notice))
        }
    };
    Decision { approval, ..decision }
}

/// Waits until there is budget again: there is no object of ours that could carry a pause.
fn deleted_again(recreation: Budget, now: Now) -> Decision {
    Decision { wake: Some(recreation.next(now.wall)), ..Decision::hold(Reason::DeletedAgain) }
}

/// What we write on an object beside its desired state.
#[derive(Clone, Copy)]
struct Stamp<'a> {
    budget: Budget,
    origin: Option<Origin>,
    source: &'a str,
}

/// Whether a field is one that we write beside the desired state.
pub(crate) fn is_stamp(path: &str) -> bool {
    let key = path.strip_prefix(".metadata.labels.").or_else(|| path.strip_prefix(".metadata.annotations."));
    key.is_some_and(|key| key.starts_with(annotation::PREFIX))
}

/// An apply in the making.
struct Apply<'a> {
    object: Value,
    effective: &'a EffectiveDesired,
    precondition: Precondition,
}

impl Apply<'_> {
    /// Adds our label and the annotations that we need after a restart.
    fn decision(
        self,
        stamp: Stamp<'_>,
        recreation: Option<Budget>,
        adopts: bool,
        notice: Option<ObjectNotice>,
    ) -> Decision {
        let Apply { mut object, effective, precondition } = self;
        let Stamp { budget, origin, source } = stamp;
        let metadata = &mut object["metadata"];
        metadata["labels"][api::MANAGED_BY.0] = json!(api::MANAGED_BY.1);
        let annotations = &mut metadata["annotations"];
        annotations[annotation::BUDGET] = json!(budget.to_string());
        annotations[annotation::APPLIED] = json!(effective.digest);
        annotations[annotation::SOURCE] = json!(source);
        if let Some(origin) = origin {
            annotations[annotation::ORIGIN] = json!(origin.word());
        }
        for (key, value) in &effective.last_good {
            annotations[*key] = json!(value);
        }
        let digest = effective.digest;
        // By force over plain updates: that is drift.
        let effect = Effect::apply(object, precondition, true);
        Decision::write(effect, PendingWrite::Apply { digest, budget, recreation, origin, adopts }, notice)
    }
}

#[cfg(test)]
mod tests;
