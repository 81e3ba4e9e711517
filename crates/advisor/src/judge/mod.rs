//! The phase of a profile and what is done next, from what is known and nothing else: the phase that was published before is not read.

pub mod approval;
pub mod items;
#[cfg(test)]
mod model;

use crate::situation::{
    Applied, Approved, Candidate, CandidateItem, Draft, Progress, RequestedAction, Shown, Situation,
};
use api::advisor::Phase;
use approval::{Approval, Why, approval, is_new};
use change::Digest;
use change::now::later;
use items::{ItemJudgement, Walk, unhealthy, walk};
use jiff::Timestamp;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Drift is corrected without a review so often in an hour; then somebody else insists on other values, and a person has to look.
pub const MOST_CORRECTIONS: usize = 5;
/// The reason of a plan whose next item waits for long before it is written.
pub const HELD_FOR_LONG: &str = "WaitingForLong";
/// The reason of a plan whose next item waits for a maintenance window.
pub const WAITS_FOR_WINDOW: &str = "WaitingForWindow";
/// The reason of a plan whose items are all applied, while the own status of one of its objects says that something is wrong with it.
pub const UNHEALTHY: &str = "Unhealthy";
const HOUR: Duration = Duration::from_secs(3600);

/// What is to be known of a profile now, and to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The phase.
    pub phase: Phase,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
    /// How far the items are; empty if there is no plan.
    pub items: Vec<ItemJudgement>,
    /// What is recorded as shown.
    pub shown: Option<Shown>,
    /// What is recorded as approved.
    pub approved: Option<Approved>,
    /// What is recorded as applied.
    pub applied: Option<Applied>,
    /// Inputs that differ from those of the applied plan.
    pub changed_inputs: Vec<String>,
    /// Whether this version of the operator wants something else than was applied.
    pub is_upgrade: bool,
    /// The item to write, once all this is recorded.
    pub write: Option<usize>,
    /// The item whose write has failed and may be tried again.
    pub retry: Option<usize>,
    /// When to judge again, if nothing happens.
    pub wake: Option<Timestamp>,
}

/// Judges a profile.
pub fn judge(situation: &Situation<'_>) -> Judgement {
    let memory = situation.memory;
    if situation.request.action == RequestedAction::Ignore {
        let judgement = without_plan(
            situation,
            Phase::Ignored,
            "Ignored",
            "the action is Ignore: everything is left as it is, by the autopilot, too; to have it take care of its own objects, set spec.handOver to true".to_owned(),
        );
        return Judgement { approved: None, shown: None, ..judgement };
    }
    match situation.draft {
        Draft::Unknown => without_plan(situation, Phase::Pending, "Unknown", "the cluster is not known yet".to_owned()),
        Draft::Incomplete => without_plan(situation, Phase::Drafting, "Drafting", "the plan is being made".to_owned()),
        Draft::Missing(missing) => {
            without_plan(situation, Phase::PrerequisiteFailed, "PrerequisiteMissing", missing.join("; "))
        }
        Draft::Failed(why) => without_plan(
            situation,
            Phase::Failed,
            "PlanFailed",
            format!("the plan cannot be made: {why}; it is tried again"),
        ),
        Draft::Made(plan) => {
            let is_unapproved = memory.approved.as_ref().is_none_or(Approved::is_void);
            let approval = match approval(situation, plan) {
                // Where nothing is to be done, nothing is approved, and what has no effect is not recorded.
                Approval::Given(_) if plan.is_done() && is_unapproved => Approval::None,
                Approval::Void(..) if plan.is_done() => Approval::None,
                approval => approval,
            };
            judge_plan(situation, plan, approval)
        }
    }
}

fn without_plan(situation: &Situation<'_>, phase: Phase, reason: &'static str, message: String) -> Judgement {
    let memory = situation.memory.clone();
    Judgement {
        phase,
        reason,
        message,
        items: Vec::new(),
        shown: memory.shown,
        approved: memory.approved,
        applied: memory.applied,
        changed_inputs: Vec::new(),
        is_upgrade: false,
        write: None,
        retry: None,
        wake: None,
    }
}

fn judge_plan(situation: &Situation<'_>, plan: &Candidate, approval: Approval) -> Judgement {
    let mut approved = match approval {
        Approval::None => return unapproved(situation, plan, None, None),
        Approval::Given(approved) => approved,
        Approval::Void(recorded, why) => return unapproved(situation, plan, recorded, Some(&why)),
    };
    // What was written under an earlier approval is not drift under this one, and what was refused has not failed.
    let (mut plan, mut memory) = (plan.clone(), situation.memory.clone());
    if is_new(&approved, memory.approved.as_ref()) {
        for item in plan.items.iter_mut().filter(|item| !item.is_done) {
            memory.items.remove(&item.name);
            (item.is_written, item.failure) = (false, None);
        }
    }
    let (plan, situation) = (&plan, &Situation { memory: &memory, ..*situation });
    let mut found = walk(situation, plan, Some(&approved));
    let is_stopped = !found.moved.is_empty() || !found.drifted.is_empty();
    let mut applied = situation.memory.applied.clone();
    let is_no_worse = plan.is_no_worse_than_shown(situation.memory);
    let is_first = found.drifted.is_empty() && situation.request.bypasses && is_no_worse;
    let corrects = situation.request.corrects && plan.is_correctable();
    let insists = is_first || (corrects && may_correct(applied.as_ref(), situation.now));
    if is_stopped && insists && approved.content == Some(plan.content) {
        approved = Approved { digest: approved.digest, ..plan.approved(situation.request.generation) };
        applied = applied.map(|applied| corrected(applied, situation.now));
        let mut memory = situation.memory.clone();
        for name in &found.drifted {
            memory.items.remove(name);
        }
        found = walk(&Situation { memory: &memory, ..*situation }, plan, Some(&approved));
    } else if is_stopped && plan.is_done() {
        // What was approved is not wanted any more, and nothing else is to be done.
        return unapproved(situation, plan, None, None);
    } else if is_stopped {
        return stopped(situation, plan, &approved, &found);
    }
    let (phase, reason, message) = phase_of(&found, situation, plan);
    let is_complete = phase == Phase::Completed;
    let digest = approved.digest;
    Judgement {
        phase,
        reason,
        message,
        write: found.next,
        retry: found.retry,
        wake: found.deadline,
        shown: Some(Shown {
            digest: if is_complete { plan.digest } else { digest },
            options: situation.request.options,
        }),
        approved: (!is_complete).then_some(approved),
        applied: if is_complete { Some(now_applied(situation, plan, digest, applied)) } else { applied },
        items: found.items,
        changed_inputs: Vec::new(),
        is_upgrade: false,
    }
}

/// The phase of a plan that is being applied, or has nothing to do.
fn phase_of(found: &Walk, situation: &Situation<'_>, plan: &Candidate) -> (Phase, &'static str, String) {
    let of = |state: Progress| {
        let items = plan.items.iter().zip(&found.items).filter(move |(_, item)| item.state == state);
        items.map(|(item, judged)| format!("{}: {}", item.name, judged.message)).collect::<Vec<_>>()
    };
    let (failed, current) = (of(Progress::Failed), of(Progress::InProgress));
    let pending = of(Progress::Pending);
    let is_waiting = !current.is_empty() || !pending.is_empty();
    match (failed.is_empty(), is_waiting) {
        (true, false) if plan.items.is_empty() && !plan.not_applicable.is_empty() => {
            let why = plan.not_applicable.join("; ");
            (Phase::Completed, "NotApplicable", format!("nothing of the profile applies to this cluster: {why}"))
        }
        (true, false) => match unhealthy(plan.items.iter().map(|item| item.name.as_str()).zip(&found.items)) {
            None => (Phase::Completed, "Applied", "the cluster is as the profile wants it".to_owned()),
            Some(why) => (
                Phase::Completed,
                UNHEALTHY,
                format!("all is written as the profile wants it, and not healthy any more: {why}"),
            ),
        },
        (true, true) if current.is_empty() && found.is_held_for_long => {
            let why = pending.into_iter().next().unwrap_or_default();
            let message = format!("it has waited for an hour: {why}; with spec.waitTimeout such an item fails");
            (Phase::InProgress, HELD_FOR_LONG, message)
        }
        (true, true) if current.is_empty() => {
            let reason = if found.waits_for_window { WAITS_FOR_WINDOW } else { "Waiting" };
            (Phase::InProgress, reason, pending.into_iter().next().unwrap_or_default())
        }
        (true, true) => (Phase::InProgress, "Applying", current.join("; ")),
        (false, true) if situation.request.continues && !current.is_empty() => {
            (Phase::InProgress, "ApplyingAfterFailure", [current, failed].concat().join("; "))
        }
        (false, _) if situation.request.continues => {
            (Phase::CompletedWithErrors, "ItemsFailed", [failed, pending].concat().join("; "))
        }
        (false, _) => (Phase::Failed, "ItemFailed", failed.join("; ")),
    }
}

/// A plan that nobody has approved.
fn unapproved(situation: &Situation<'_>, plan: &Candidate, recorded: Option<Approved>, why: Option<&Why>) -> Judgement {
    let found = walk(situation, plan, None);
    let memory = situation.memory;
    let request = situation.request;
    let shown = Some(Shown { digest: plan.digest, options: request.options });
    let base = Judgement {
        phase: Phase::ReviewRequired,
        reason: "PlanReady",
        message: String::new(),
        items: found.items.clone(),
        shown,
        approved: recorded,
        applied: memory.applied.clone(),
        changed_inputs: Vec::new(),
        is_upgrade: false,
        write: None,
        retry: None,
        wake: found.deadline,
    };
    if plan.is_done() {
        let (phase, reason, message) = phase_of(&found, situation, plan);
        let recorded = memory.applied.as_ref().filter(|applied| {
            (applied.content, applied.options, &applied.inputs) == (plan.content, request.options, &plan.inputs)
        });
        let applied = match (phase == Phase::Completed, recorded) {
            // An earlier version did not record the items.
            (true, Some(applied)) => Some(Applied { items: plan.wanted(), ..applied.clone() }),
            (true, None) => {
                // The same plan later is another one, although nothing was applied for this one.
                let last = memory.applied.as_ref().map(|applied| applied.digest);
                let digest = Digest::of(&json!({"after": last, "plan": plan.digest}));
                Some(now_applied(situation, plan, digest, memory.applied.clone()))
            }
            (false, _) => memory.applied.clone(),
        };
        return Judgement { phase, reason, message, applied, ..base };
    }
    let before = memory.applied.as_ref().filter(|applied| applied.options == request.options);
    let Some(before) = before else {
        let drifted: Vec<&str> = plan
            .items
            .iter()
            .zip(&found.items)
            .filter(|(item, judged)| !item.is_done && judged.written.is_some())
            .map(|(item, _)| item.name.as_str())
            .collect();
        let (phase, reason, message) = review(why, &drifted.join(", "));
        return Judgement { phase, reason, message, ..base };
    };
    let changed_inputs = differing(&before.inputs, &plan.inputs);
    let drifted = plan.drifted_from(before).join(", ");
    if !changed_inputs.is_empty() {
        let mut message = format!("what the plan is derived from has changed: {}", changed_inputs.join(", "));
        if !drifted.is_empty() {
            message = format!("{message}; somebody also changed what was applied: {drifted}");
        }
        return Judgement { reason: "InputsChanged", message, changed_inputs, ..base };
    }
    if before.content != plan.content && !drifted.is_empty() {
        let message = format!(
            "somebody changed what was applied: {drifted}; besides, the profile wants something else now than was applied, so the plan shows both, and nothing is corrected without a review"
        );
        return Judgement { phase: Phase::Drifted, reason: "Drifted", message, is_upgrade: true, ..base };
    }
    if before.content != plan.content {
        let message = "the profile wants something else now than was applied: the operator is another version, or what it looks at on the cluster has changed"
            .to_owned();
        let phase = Phase::CompletedWithUpgrade;
        return Judgement { phase, reason: "LogicChanged", message, is_upgrade: true, ..base };
    }
    let changed = plan.items.iter().filter(|item| !item.is_done).map(|item| item.name.clone());
    let changed = changed.collect::<Vec<_>>().join(", ");
    let is_applying = request.action == RequestedAction::Apply;
    if is_applying && request.corrects && plan.is_correctable() && may_correct(Some(before), situation.now) {
        return correct(situation, plan);
    }
    let (reason, message) = match is_applying && request.corrects {
        true if !plan.is_correctable() => (
            "Drifted",
            format!(
                "somebody changed what was applied: {changed}; what deletes something, restarts nodes or takes fields that somebody else applies is not corrected without a review"
            ),
        ),
        true => (
            "CorrectionsStopped",
            format!("somebody keeps changing {changed}: it was corrected {MOST_CORRECTIONS} times within an hour"),
        ),
        false => ("Drifted", format!("somebody changed what was applied: {changed}")),
    };
    let oldest = before.corrections.iter().min().filter(|_| reason == "CorrectionsStopped");
    let wake = oldest.map(|oldest| later(*oldest, HOUR)).into_iter().chain(found.deadline).min();
    Judgement { phase: Phase::Drifted, reason, message, wake, ..base }
}

/// Applies a plan again without a review, because it was approved before and drift is to be corrected.
fn correct(situation: &Situation<'_>, plan: &Candidate) -> Judgement {
    let mut memory = situation.memory.clone();
    for item in plan.items.iter().filter(|item| !item.is_done) {
        memory.items.remove(&item.name);
    }
    memory.applied = memory.applied.map(|applied| corrected(applied, situation.now));
    let again = Situation { memory: &memory, ..*situation };
    let named = situation.request.approved_plan.as_deref().and_then(Digest::parse);
    let approved = plan.approved(situation.request.generation);
    judge_plan(&again, plan, Approval::Given(Approved { digest: named.unwrap_or(approved.digest), ..approved }))
}

/// A plan that was being applied, and is not what was approved any more.
fn stopped(situation: &Situation<'_>, plan: &Candidate, approved: &Approved, found: &Walk) -> Judgement {
    let (phase, reason, message) = match found.moved.is_empty() {
        false => {
            let message = format!("the cluster has changed since the plan was approved: {}", found.moved.join(", "));
            (Phase::ReviewRequired, "PlanChanged", message)
        }
        true => (Phase::Drifted, "Drifted", format!("somebody changed what was applied: {}", found.drifted.join(", "))),
    };
    // An item that is done now, and was not when the plan was approved, was written under this approval.
    let is_written = |(item, judged): (&CandidateItem, &ItemJudgement)| {
        item.is_done && judged.written.is_some() && approved.items.get(&item.name) != Some(&item.digest)
    };
    let is_spent = !found.drifted.is_empty() || plan.items.iter().zip(&found.items).any(is_written);
    Judgement {
        phase,
        reason,
        message,
        items: found.items.clone(),
        shown: Some(Shown { digest: plan.digest, options: situation.request.options }),
        approved: Some(Approved {
            digest: approved.digest,
            generation: situation.request.generation,
            content: approved.content.filter(|_| is_spent),
            items: BTreeMap::new(),
        }),
        applied: situation.memory.applied.clone(),
        changed_inputs: Vec::new(),
        is_upgrade: false,
        write: None,
        retry: None,
        wake: None,
    }
}

/// Why a plan waits for a review. `drifted` are the items that somebody changed after they were written under an approval that is spent.
fn review(why: Option<&Why>, drifted: &str) -> (Phase, &'static str, String) {
    let (reason, message) = match why {
        None => ("PlanReady", "read the plan; then approve it".to_owned()),
        Some(Why::Moved) => (
            "PlanChanged",
            "this is not the plan that was shown when Apply was written, so nothing is applied; read it, then approve it".to_owned(),
        ),
        Some(Why::Unseen) => (
            "PlanUnseen",
            "the plan was not shown when Apply was written, and it restarts nodes or takes something away, so nothing is applied; read it, then approve it".to_owned(),
        ),
        Some(Why::Spent) if drifted.is_empty() => (
            "PlanChanged",
            "the cluster has changed while the plan was applied, so the rest of it is not applied; read the new plan, then approve it".to_owned(),
        ),
        Some(Why::Spent) => (
            "Drifted",
            format!("somebody changed what was already applied, {drifted}, so the rest of the plan is not applied; read the new plan, then approve it"),
        ),
        Some(Why::AnotherPlan(named)) => {
            ("AnotherPlanApproved", format!("spec.approvedPlan names another plan, {named}, so nothing is applied"))
        }
    };
    let phase = if reason == "Drifted" { Phase::Drifted } else { Phase::ReviewRequired };
    (phase, reason, message)
}

fn now_applied(situation: &Situation<'_>, plan: &Candidate, digest: Digest, before: Option<Applied>) -> Applied {
    Applied {
        digest,
        content: plan.content,
        options: situation.request.options,
        time: situation.now,
        inputs: plan.inputs.clone(),
        items: plan.wanted(),
        corrections: before.map(|before| recent(&before.corrections, situation.now)).unwrap_or_default(),
    }
}

fn corrected(applied: Applied, now: Timestamp) -> Applied {
    let mut corrections = recent(&applied.corrections, now);
    corrections.push(now);
    Applied { corrections, ..applied }
}

fn may_correct(applied: Option<&Applied>, now: Timestamp) -> bool {
    applied.is_some_and(|applied| recent(&applied.corrections, now).len() < MOST_CORRECTIONS)
}

/// Those of the last hour.
fn recent(corrections: &[Timestamp], now: Timestamp) -> Vec<Timestamp> {
    corrections.iter().filter(|time| later(**time, HOUR) > now).copied().collect()
}

/// The names of values that are different.
fn differing(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let is_different = |name: &&&String| before.get(**name) != after.get(**name);
    let text = |value: Option<&String>| value.cloned().unwrap_or_else(|| "nothing".to_owned());
    let names = names.iter().filter(is_different);
    names.map(|name| format!("{name} ({} -> {})", text(before.get(*name)), text(after.get(*name)))).collect()
}
