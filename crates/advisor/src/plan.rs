//! A plan: what is done to each object, compared with the object as it is and as the server would make it.

use crate::before::{self, Mark};
use crate::identity::{FIELD_MANAGER, PROFILE};
use crate::overrides::{self, Hold};
use crate::situation::{Health, ReviewReason};
use crate::wanted::Wanted;
use crate::{health, situation};
use api::advisor::Operation;
use catalog::rollout::Contribution;
use change::entry::Loser;
use change::{Difference, Digest, Edit, Entry, Impact, Key, Precondition, Restarts, content, diff};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// One item, as far as its object decides.
#[derive(Debug, Clone)]
pub struct Compared {
    /// The version of the object that it was compared with; nothing if there was none.
    pub precondition: Precondition,
    /// What is done.
    pub operation: Operation,
    /// Whether the profile does not want the object, or its own changes of it, any more.
    pub is_removal: bool,
    /// What is wanted of the object; nothing if it is to go.
    pub wanted: Option<Wanted>,
    /// What is applied: what is wanted, with the mark of the profile. Nothing if it is deleted.
    pub applied: Option<Value>,
    /// The difference as the server would make it.
    pub diff: Vec<Difference>,
    /// What it replaces, as digests by path.
    replaces: Vec<(String, Digest)>,
    /// Field managers whose fields it takes.
    pub takes_from: Vec<Loser>,
    /// How the object is by its own status.
    pub health: Health,
    /// What the object brings into the configuration of nodes, before and after.
    pub contributions: [Option<Contribution>; 2],
    /// Whether users want it to be left alone.
    pub is_skipped: bool,
    /// What users say about it, for people.
    pub note: Option<String>,
    /// Why users do not want it to be written now.
    pub hold: Option<Hold>,
}

impl Compared {
    /// Whether its object is deleted, or was, and not restored.
    pub fn deletes(&self) -> bool {
        self.is_removal && self.contributions[1].is_none()
    }

    /// The same with what users say about it.
    #[must_use]
    pub fn said(self, note: Option<String>, hold: Option<Hold>) -> Compared {
        let notes: Vec<String> = self.note.iter().cloned().chain(note).collect();
        Compared { note: (!notes.is_empty()).then(|| notes.join("; ")), hold, ..self }
    }
}

/// An item whose object users want to be left alone.
pub fn skipped(why: &str, is_removal: bool) -> Compared {
    let compared = Compared { is_removal, is_skipped: true, ..without_object(Health::Healthy, [None, None]) };
    compared.said(Some(format!("skipped: {why}")), None)
}

/// Compares what is wanted of an object with the object as it is and as the server would make it.
/// `is_former` says that it has the name that the Go operator gave it, `is_looked_at` that its own template looks at it, and `reports` that its
/// operator says in its status what it made of it.
pub fn compare(
    profile: &str,
    key: &Key,
    wanted: &Value,
    live: Option<&Value>,
    answer: &Value,
    [is_former, is_looked_at, reports]: [bool; 3],
) -> Compared {
    let diff = difference(live, answer);
    let operation = match live {
        None => Operation::Create,
        Some(_) if diff.is_empty() => Operation::Keep,
        Some(_) => Operation::Update,
    };
    let is_made_by_go = live.is_some_and(|live| is_made_by_go(key, live, is_former));
    let recorded = before::before(live, wanted, answer, is_made_by_go);
    let contribution = |object: &Value| Contribution::of(&key.kind, object);
    Compared {
        precondition: precondition(live),
        is_removal: false,
        operation,
        replaces: replaces(live, wanted, &diff),
        takes_from: losers(live, wanted),
        health: live.map_or(Health::Healthy, |live| health::of_object(live, reports)),
        contributions: [live.map(contribution), Some(contribution(answer))],
        applied: Some(before::marked(wanted, profile, recorded.as_ref(), is_looked_at)),
        wanted: Some(Wanted::new(&key.kind, wanted)),
        diff,
        is_skipped: false,
        note: None,
        hold: None,
    }
}

/// What a removal does to an object that is as `live` says, given the mark it carries: it is deleted if the profile created it, and restored
/// if the profile changed it. Without a mark, applied under our name and under the name that only the Go operator gives, as `is_former` says,
/// that one made it, and it is deleted. `None` if it is none of the profile's.
pub fn removal(profile: &str, key: &Key, live: &Value, is_former: bool) -> Option<Removal> {
    match Mark::of(live) {
        Mark::Created(of) if of == profile => Some(Removal::Delete),
        Mark::Changed(of, values) if of == profile => {
            let mut restoring = match before::restoring(live, &values) {
                Ok(restoring) => restoring,
                Err(version) => return Some(Removal::Leave(version)),
            };
            // Without a mark, one with this name would be taken for what the Go operator applied.
            if is_former || key.kind.kind == api::hco::KIND {
                restoring["metadata"]["annotations"][PROFILE] = json!(profile);
            }
            Some(Removal::Restore(overrides::restored(key, live, restoring)))
        }
        Mark::None if is_made_by_go(key, live, is_former) => Some(Removal::Delete),
        _ => None,
    }
}

/// Whether the Go operator made an object, which has the name that only that one gives, as `is_former` says. It made no HyperConverged.
fn is_made_by_go(key: &Key, live: &Value, is_former: bool) -> bool {
    is_former && Mark::of(live) == Mark::None && is_of_advisor(live) && key.kind.kind != api::hco::KIND
}

/// An object that the profile does not want, and that others made: it stays, and people are told who made it.
pub fn left(live: &Value) -> Compared {
    let made_for = match Mark::of(live) {
        Mark::Created(other) | Mark::Changed(other, _) => Some(format!("the profile {other}")),
        Mark::None | Mark::Restored => None,
    };
    let managers: Vec<String> =
        made_for.into_iter().chain(others(live).into_iter().map(|other| other.manager)).collect();
    let who = match managers.is_empty() {
        true if is_of_advisor(live) => "the Go operator".to_owned(),
        true => "somebody else".to_owned(),
        false => managers.join(" and "),
    };
    let note =
        format!("it stays: {who} made it, and this profile has never written it; delete it by hand if nobody needs it");
    Compared { is_skipped: true, ..without_object(Health::Healthy, [None, None]) }.said(Some(note), None)
}

/// An object that is never deleted, because data would be lost with it: it stays, and people are told how it goes.
pub fn never_deleted(key: &Key) -> Compared {
    let Key { kind, namespace, name } = key;
    let group = if kind.group.is_empty() { String::new() } else { format!(".{}", kind.group) };
    let place = if namespace.is_empty() { String::new() } else { format!(" --namespace {namespace}") };
    let note = format!(
        "it stays: the operator never deletes it, because data would be lost with it; if nobody needs it, delete it by hand: kubectl delete {}{group} {name}{place}",
        kind.kind.to_lowercase()
    );
    Compared { is_skipped: true, ..without_object(Health::Healthy, [None, None]) }.said(Some(note), None)
}

/// An object whose values from before the profile were recorded under a version of its kind that nobody can translate: people restore them.
pub fn untranslated(live: &Value, version: &str) -> Compared {
    let (present, before) = (live["apiVersion"].as_str().unwrap_or_default(), crate::identity::BEFORE);
    let note = format!(
        "it stays: its annotation {before} has the values of {version} from before this profile, and the operator does not know where {present} has them; set them by hand, then remove that annotation and {PROFILE}"
    );
    Compared { is_skipped: true, ..without_object(Health::Healthy, [None, None]) }.said(Some(note), None)
}

/// The HyperConverged, whose values from before the profile are not recorded; nothing if it has nothing of what the profile wants. As long as it
/// has, it is named, and what it needs stays, too.
pub fn left_hyperconverged(live: &Value, wanted: &Value) -> Option<Compared> {
    if Mark::of(live) != Mark::None {
        return None;
    }
    let differing = |object: &Value| content::changes(wanted, object, true).0.len();
    let (differing, all) = (differing(live), differing(&json!({})));
    let has_all = all > 0 && differing == 0;
    let has_some_of_ours = differing < all && is_of_advisor(live);
    if !has_all && !has_some_of_ours {
        return None;
    }
    let note = "it stays: it is as this profile wants it, and what was there before is not recorded; change its spec by hand, and the plan goes on";
    let left = Compared { is_skipped: true, ..without_object(Health::Healthy, [None, None]) };
    Some(left.said(Some(note.to_owned()), None))
}

/// An object that another profile wants, too: it stays, whatever this profile says.
pub fn shared(other: &str) -> Compared {
    let note = format!("it stays: VirtPlatformConfig {other} wants it, too");
    Compared { is_skipped: true, ..without_object(Health::Healthy, [None, None]) }.said(Some(note), None)
}

/// The field managers beside the advisor that an object is of; the latest comes first.
fn others(live: &Value) -> Vec<Loser> {
    change::entry::others(&Entry::all(&live["metadata"]["managedFields"]), FIELD_MANAGER)
}

/// The objects that an object belongs to, as its ownerReferences say: the deletion takes it from them, too.
fn owners(live: &Value) -> Vec<Loser> {
    let references = live["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    let text = |reference: &Value, key: &str| reference[key].as_str().unwrap_or_default().to_owned();
    let name = |reference: &Value| format!("{}/{}", text(reference, "kind"), text(reference, "name"));
    references.map(|reference| Loser { manager: name(reference), applies: reference["controller"] == true }).collect()
}

/// Whether the advisor has applied an object, also the Go operator under the same name.
pub fn is_of_advisor(live: &Value) -> bool {
    Entry::ours(&Entry::all(&live["metadata"]["managedFields"]), FIELD_MANAGER).is_some()
}

/// How an object is removed from a profile.
#[derive(Debug, Clone, PartialEq)]
pub enum Removal {
    /// It is deleted.
    Delete,
    /// This is applied, with the values that were there before.
    Restore(Value),
    /// It stays: those values were recorded under this version of its kind, and nobody knows where they are in the present one.
    Leave(String),
}

/// The item that deletes an object. All of its content is lost, whoever wrote it, so all of it is shown and approved.
pub fn deletion(key: &Key, live: &Value) -> Compared {
    let content = before::content(live);
    let uid = Digest::of(&live["metadata"]["uid"]);
    let owners = owners(live);
    Compared {
        precondition: precondition(Some(live)),
        is_removal: true,
        operation: Operation::Delete,
        wanted: None,
        applied: None,
        diff: diff::of_wanted(None, &content, &[]).into_iter().map(removed_instead).collect(),
        replaces: vec![("uid".to_owned(), uid), ("content".to_owned(), Digest::of(&content))],
        takes_from: others(live).into_iter().chain(owners.clone()).collect(),
        health: Health::Healthy,
        contributions: [Some(Contribution::of(&key.kind, live)), None],
        is_skipped: false,
        note: (!owners.is_empty()).then(|| {
            let owners: Vec<&str> = owners.iter().map(|owner| owner.manager.as_str()).collect();
            format!("it belongs to {}, whose controller may create it again", owners.join(" and "))
        }),
        hold: None,
    }
}

/// The difference of a deletion, from that of a creation.
fn removed_instead(Difference { path, edit }: Difference) -> Difference {
    let edit = match edit {
        Edit::Added { after } => Edit::Removed { before: after },
        Edit::Lines { lines } => {
            let removed = |line: String| line.strip_prefix('+').map(|rest| format!("-{rest}")).unwrap_or(line);
            Edit::Lines { lines: lines.into_iter().map(removed).collect() }
        }
        other => other,
    };
    Difference { path, edit }
}

/// An item whose object is deleted already, or restored: then it is as `rest` says. Nodes may still follow.
pub fn removed(key: &Key, rest: Option<&Value>) -> Compared {
    let contributions = [None, rest.map(|rest| Contribution::of(&key.kind, rest))];
    without_object(rest.map_or(Health::Healthy, |rest| health::of_object(rest, false)), contributions)
}

/// An item whose object is deleted, but not gone yet.
pub fn being_deleted() -> Compared {
    without_object(Health::Progressing("it is being deleted".to_owned()), [None, None])
}

fn without_object(health: Health, contributions: [Option<Contribution>; 2]) -> Compared {
    Compared {
        precondition: Precondition::None,
        is_removal: true,
        operation: Operation::Keep,
        wanted: None,
        applied: None,
        diff: Vec::new(),
        replaces: Vec::new(),
        takes_from: Vec::new(),
        health,
        contributions,
        is_skipped: false,
        note: None,
        hold: None,
    }
}

/// The item that restores an object: `answer` is what the server would make of it.
pub fn restoration(key: &Key, restoring: &Value, live: &Value, answer: &Value) -> Compared {
    let diff = difference(Some(live), answer);
    Compared {
        precondition: precondition(Some(live)),
        is_removal: true,
        // Our mark goes, too, so it is written in any case.
        operation: Operation::Update,
        replaces: replaces(Some(live), restoring, &diff),
        takes_from: losers(Some(live), restoring),
        health: health::of_object(live, false),
        contributions: [Some(Contribution::of(&key.kind, live)), Some(Contribution::of(&key.kind, answer))],
        applied: Some(restoring.clone()),
        wanted: Some(Wanted::new(&key.kind, restoring)),
        diff,
        is_skipped: false,
        note: None,
        hold: None,
    }
}

/// The difference that the server would make, without our own marks.
fn difference(live: Option<&Value>, answer: &Value) -> Vec<Difference> {
    let live = live.map(before::unmarked);
    diff::of_answer(live.as_ref(), &before::unmarked(answer), FIELD_MANAGER)
}

fn precondition(live: Option<&Value>) -> Precondition {
    let Some(live) = live else { return Precondition::Absent };
    let text = |key: &str| live["metadata"][key].as_str().unwrap_or_default().to_owned();
    Precondition::Present { uid: text("uid"), resource_version: text("resourceVersion") }
}

fn losers(live: Option<&Value>, wanted: &Value) -> Vec<Loser> {
    let Some(live) = live else { return Vec::new() };
    change::entry::losers(wanted, live, &Entry::all(&live["metadata"]["managedFields"]), FIELD_MANAGER)
}

/// What is replaced: the fields that are wanted and differ, and those that the server removes.
fn replaces(live: Option<&Value>, wanted: &Value, diff: &[Difference]) -> Vec<(String, Digest)> {
    let Some(live) = live else { return Vec::new() };
    let mut all: Vec<(String, Digest)> =
        content::changes(wanted, live, true).0.into_iter().map(|change| (change.path, change.digest)).collect();
    let removed = diff.iter().filter(|difference| matches!(difference.edit, Edit::Removed { .. }));
    all.extend(removed.map(|difference| {
        (difference.path.clone(), Digest::of(&serde_json::to_value(&difference.edit).unwrap_or_default()))
    }));
    all
}

/// One item of a plan.
#[derive(Debug, Clone)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// What it does, in a sentence.
    pub description: String,
    /// Earlier items that it relies on.
    pub needs: Vec<String>,
    /// The item before it, whose object does the same: both are written in one rollout.
    pub joins: Option<String>,
    /// Its object.
    pub key: Key,
    /// What is done to it.
    pub compared: Compared,
    /// How much that disturbs.
    pub impact: Impact,
    /// The nodes that restart, if any may.
    pub restarts: Option<Restarts>,
    /// Why it is not written now.
    pub hold: Option<situation::Hold>,
    /// How it is.
    pub health: Health,
}

impl Item {
    /// Whether there is nothing to do.
    pub fn is_done(&self) -> bool {
        self.compared.operation == Operation::Keep
    }

    /// Why it is never done without a review; empty if it may be.
    fn review(&self) -> BTreeSet<ReviewReason> {
        let applying = self.compared.takes_from.iter().filter(|loser| loser.applies);
        let mut review: BTreeSet<ReviewReason> =
            applying.map(|loser| ReviewReason::TakesFrom(loser.manager.clone())).collect();
        if self.compared.is_removal {
            review.insert(ReviewReason::Removes);
        }
        if self.impact == Impact::High {
            review.insert(ReviewReason::Restarts);
        }
        review
    }

    /// What is wanted of its object, whatever that is now.
    fn wanted(&self) -> Option<situation::WantedContent> {
        let wanted = self.compared.wanted.as_ref().filter(|_| !self.compared.is_removal)?;
        Some(situation::WantedContent { object: self.key.to_string(), content: wanted.digest })
    }

    /// The digest of what is done, to what it is done, and what that disturbs.
    pub fn digest(&self) -> Digest {
        let Compared { operation, wanted, replaces, takes_from, .. } = &self.compared;
        let wanted = wanted.as_ref().map(|wanted| wanted.digest);
        let what = json!({"name": self.name, "object": self.key, "operation": operation, "wanted": wanted});
        if self.is_done() {
            return Digest::of(&what);
        }
        // The latest comes first, for people; an edit of something else changes nothing of the plan.
        let takes_from: BTreeSet<&String> = takes_from.iter().map(|loser| &loser.manager).collect();
        Digest::of(&json!({
            "what": what,
            "replaces": replaces,
            "takesFrom": takes_from,
            "impact": self.impact,
            "restarts": self.restarts.as_ref().filter(|restarts| restarts.is_any()).map(|restarts| &restarts.scope),
        }))
    }
}

/// What became of the last write of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was made.
    Written,
    /// It failed.
    Failed(String),
}

/// What a spec says about applying a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// Whether it is applied although the cluster has changed since it was shown.
    pub bypasses: bool,
    /// Whether drift is corrected afterwards.
    pub corrects: bool,
    /// Whether the rest is applied when an item fails.
    pub continues: bool,
}

/// An item that cannot be planned now.
#[derive(Debug, Clone)]
pub struct Unplanned {
    /// Its place among all items.
    pub place: usize,
    /// Its name.
    pub name: String,
    /// Its object.
    pub key: Key,
    /// Why, and what helps.
    pub why: String,
}

/// A plan of a profile.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Its items in their order.
    pub items: Vec<Item>,
    /// The items of the profile that do not apply to this cluster, and why.
    pub not_applicable: Vec<String>,
    /// The values that it was derived from.
    pub inputs: BTreeMap<String, String>,
    /// The items that cannot be planned now: the others are shown, and nothing can be approved.
    pub unplanned: Vec<Unplanned>,
    /// How it is applied, and what happens afterwards without a review: whoever approves the plan approves that, too.
    pub terms: Terms,
}

impl Plan {
    /// The plan as it is judged. `last` is the digest of the plan before it: the same plan, once more, is another one.
    pub fn candidate(&self, last: Option<&Digest>, outcomes: &BTreeMap<String, Outcome>) -> situation::Candidate {
        let items: Vec<situation::CandidateItem> = self
            .items
            .iter()
            .map(|item| situation::CandidateItem {
                name: item.name.clone(),
                needs: item.needs.clone(),
                joins: item.joins.clone(),
                digest: item.digest(),
                wanted: item.wanted(),
                is_missing: item.compared.operation == Operation::Create,
                is_done: item.is_done(),
                review: item.review(),
                hold: item.hold.clone(),
                health: item.health.clone(),
                is_written: matches!(outcomes.get(&item.name), Some(Outcome::Written)),
                failure: match outcomes.get(&item.name) {
                    Some(Outcome::Failed(why)) => Some(why.clone()),
                    _ => None,
                },
            })
            .collect();
        let digests: Vec<&Digest> = items.iter().map(|item| &item.digest).collect();
        let last = last.filter(|_| items.iter().any(|item| !item.is_done));
        let digest = Digest::of(&json!({
            "items": digests, "inputs": self.inputs, "after": last, "terms": self.terms,
        }));
        let contents: Vec<Value> = self
            .items
            .iter()
            .filter(|item| !item.compared.is_removal)
            .map(|item| {
                let wanted = item.compared.wanted.as_ref().map(|wanted| wanted.digest);
                json!({"name": item.name, "object": item.key, "wanted": wanted})
            })
            .collect();
        situation::Candidate {
            digest,
            content: Digest::of(&json!(contents)),
            inputs: self.inputs.clone(),
            not_applicable: self.not_applicable.clone(),
            items,
        }
    }

    /// Why it is not complete; nothing if it is.
    pub fn failure(&self) -> Option<String> {
        let whys: Vec<&str> = self.unplanned.iter().map(|unplanned| unplanned.why.as_str()).collect();
        (!whys.is_empty()).then(|| whys.join("; "))
    }

    /// The worst impact.
    pub fn impact(&self) -> Option<Impact> {
        self.items.iter().filter(|item| !item.is_done()).map(|item| item.impact).max()
    }
}
