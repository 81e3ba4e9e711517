//! The status of a `VirtPlatformConfig`: a judgement and its plan, as people read them.

use crate::changes::replaced;
use crate::conditions::conditions;
use crate::judge::Judgement;
use crate::judge::items::ItemJudgement;
use crate::memory::{options_digest, shown_applied, shown_approval, shown_time};
use crate::plan::{Item, Plan, Unplanned, diff_text};
use crate::situation::{Memory, Progress, shown_inputs};
use api::advisor::{self, Action, ItemState, Operation, TargetRef, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
use change::{Digest, Impact, Key};
use jiff::Timestamp;
use serde_json::Value;

/// More of a diff is not shown: a status has to fit into an object of 1.5 MiB with all others.
const LONGEST_DIFF: usize = 32 * 1024;

/// What a status is made of.
pub struct Parts<'a> {
    /// The judgement.
    pub judgement: &'a Judgement,
    /// The plan, if there is one.
    pub plan: Option<&'a Plan>,
    /// The spec that it is about.
    pub spec: &'a VirtPlatformConfigSpec,
    /// Its generation.
    pub generation: i64,
    /// The status before.
    pub before: &'a VirtPlatformConfigStatus,
    /// What is remembered.
    pub memory: &'a Memory,
    /// The version of the operator.
    pub version: &'a str,
    /// The present moment.
    pub now: Timestamp,
}

/// The status now.
pub fn status(parts: &Parts<'_>) -> VirtPlatformConfigStatus {
    let Parts { judgement, plan, spec, generation, before, memory, version, now } = parts;
    let mut status = VirtPlatformConfigStatus {
        phase: Some(judgement.phase),
        observed_generation: Some(*generation),
        approved: judgement.approved.as_ref().map(shown_approval),
        applied: judgement.applied.as_ref().map(shown_applied),
        conditions: conditions(judgement, &before.conditions, *generation, *now),
        ..VirtPlatformConfigStatus::default()
    };
    match plan {
        // Nothing can be approved: the only digest to show is that of a plan that is being applied.
        Some(plan) if !plan.unplanned.is_empty() => {
            let is_approved = judgement.approved.as_ref().is_some_and(|approved| !approved.is_void());
            let digest = judgement.shown.as_ref().filter(|_| is_approved).map(|shown| shown.digest.to_string());
            status.plan_digest = digest;
            status.impact_severity = plan.impact().map(shown_impact).or(before.impact_severity);
            status.inputs = shown_inputs(&plan.inputs);
            status.items = incomplete(plan, memory, *now);
            if is_approved {
                keep_review(&mut status.items, &before.items);
            }
            // Whoever writes Apply after this has seen only a part of the plan, so that it approves nothing of the rest. Where Apply was there
            // before, the first complete plan is the first plan.
            let is_seen = spec.action != Action::Apply;
            status.source_snapshot_hash =
                before.source_snapshot_hash.clone().or_else(|| is_seen.then(|| snapshot(plan)));
            status.operator_version.clone_from(&before.operator_version);
            status.applied_options.clone_from(&before.applied_options);
            status.rollback = before.rollback;
        }
        Some(plan) => {
            status.impact_severity = plan.impact().map(shown_impact).or(Some(advisor::Impact::Low));
            status.plan_digest = judgement.shown.as_ref().map(|shown| shown.digest.to_string());
            status.source_snapshot_hash = Some(snapshot(plan));
            status.operator_version = Some((*version).to_owned());
            status.applied_options.clone_from(&spec.options);
            status.rollback = spec.rollback.filter(|rollback| *rollback);
            status.inputs = shown_inputs(&plan.inputs);
            status.items = plan.items.iter().zip(&judgement.items).map(|(item, judged)| shown(item, judged)).collect();
        }
        None => {
            let is_same_request = options_digest(spec.options.as_ref(), spec.rollback)
                == options_digest(before.applied_options.as_ref(), before.rollback);
            match is_same_request {
                true => {
                    status.impact_severity = before.impact_severity;
                    status.plan_digest = judgement.shown.as_ref().map(|shown| shown.digest.to_string());
                    status.inputs.clone_from(&before.inputs);
                    status.items.clone_from(&before.items);
                }
                // Nobody is to approve a plan for other options; how far its items are is still needed.
                false => status.items = before.items.iter().filter_map(progress).collect(),
            }
            status.source_snapshot_hash.clone_from(&before.source_snapshot_hash);
            status.operator_version.clone_from(&before.operator_version);
            status.applied_options.clone_from(&before.applied_options);
            status.rollback = before.rollback;
        }
    }
    status.replaced_plan = replaced(before, &status);
    status
}

/// The items of a plan of which some cannot be planned: how far each was is remembered.
fn incomplete(plan: &Plan, memory: &Memory, now: Timestamp) -> Vec<advisor::Item> {
    let judged = |name: &str| {
        let before = memory.items.get(name);
        ItemJudgement {
            state: before.map_or(Progress::Pending, |before| before.state),
            since: before.map_or(now, |before| before.since),
            written: before.and_then(|before| before.written),
            message: String::new(),
        }
    };
    let mut items: Vec<advisor::Item> = plan.items.iter().map(|item| shown(item, &judged(&item.name))).collect();
    for Unplanned { place, name, key, why } in &plan.unplanned {
        let ItemJudgement { state, since, written, .. } = judged(name);
        let item = advisor::Item {
            name: name.clone(),
            target_ref: target_ref(key),
            digest: None,
            operation: None,
            impact_severity: None,
            diff: None,
            desired_state: None,
            state: state.into(),
            message: Some(format!("it cannot be planned: {why}")),
            last_transition_time: Some(shown_time(since)),
            applied_time: written.map(shown_time),
            managed_fields: Vec::new(),
            restarts: Vec::new(),
            takes_from: Vec::new(),
        };
        items.insert((*place).min(items.len()), item);
    }
    items
}

/// While a plan is being applied, what of its items needs a review stays as it was shown with that plan. What a part of another plan adds was
/// approved by nobody, and what cannot be planned now is not forgotten.
fn keep_review(items: &mut [advisor::Item], before: &[advisor::Item]) {
    for item in items {
        let known = before.iter().find(|known| known.name == item.name);
        item.operation = known.and_then(|known| known.operation);
        item.impact_severity = known.and_then(|known| known.impact_severity);
        item.takes_from = known.map(|known| known.takes_from.clone()).unwrap_or_default();
    }
}

fn target_ref(key: &Key) -> TargetRef {
    TargetRef {
        api_version: key.kind.api_version(),
        kind: key.kind.kind.clone(),
        name: key.name.clone(),
        namespace: (!key.namespace.is_empty()).then(|| key.namespace.clone()),
    }
}

/// How far an item is that was begun, without what was planned for it.
fn progress(item: &advisor::Item) -> Option<advisor::Item> {
    (item.state != ItemState::Pending).then(|| advisor::Item {
        digest: None,
        impact_severity: None,
        diff: None,
        desired_state: None,
        message: None,
        managed_fields: Vec::new(),
        restarts: Vec::new(),
        takes_from: Vec::new(),
        ..item.clone()
    })
}

fn shown(item: &Item, judged: &ItemJudgement) -> advisor::Item {
    let compared = &item.compared;
    let judged_message = Some(judged.message.clone()).filter(|message| !message.is_empty());
    let restarts = item.restarts.as_ref().filter(|_| !item.is_done()).map(ToString::to_string);
    let hold = item.hold.clone().filter(|why| compared.hold.is_some() && Some(why) != judged_message.as_ref());
    let said: Vec<String> = [judged_message.or(restarts), hold, compared.note.clone()].into_iter().flatten().collect();
    let message = Some(said.join("; ")).filter(|message| !message.is_empty());
    advisor::Item {
        name: item.name.clone(),
        target_ref: target_ref(&item.key),
        digest: Some(item.digest().to_string()),
        operation: Some(compared.operation),
        impact_severity: Some(shown_impact(if item.is_done() { Impact::Low } else { item.impact })),
        diff: Some(cut(diff_text(&compared.diff))).filter(|diff| !diff.is_empty()),
        desired_state: compared.wanted.as_ref().and_then(|wanted| wanted.shown.clone()),
        state: judged.state.into(),
        message,
        last_transition_time: Some(shown_time(judged.since)),
        applied_time: judged.written.map(shown_time),
        managed_fields: compared.wanted.as_ref().map(|wanted| wanted.paths.clone()).unwrap_or_default(),
        restarts: match &item.restarts {
            Some(restarts) if restarts.is_any() && !item.is_done() => restarts.nodes.clone(),
            _ => Vec::new(),
        },
        takes_from: match compared.operation {
            Operation::Keep => Vec::new(),
            _ => compared.takes_from.iter().map(|loser| loser.manager.clone()).collect(),
        },
    }
}

fn cut(mut text: String) -> String {
    if text.len() > LONGEST_DIFF {
        let mut end = LONGEST_DIFF;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let left = text[end..].lines().count();
        text.truncate(end);
        text.push_str(&format!("\n... {left} more lines\n"));
    }
    text
}

/// The digest of what the plan found, as the published API writes it.
fn snapshot(plan: &Plan) -> String {
    let found: Vec<Value> =
        plan.items.iter().map(|item| serde_json::json!({"object": item.key, "diff": item.compared.diff})).collect();
    Digest::of(&Value::Array(found)).to_string().trim_start_matches("sha256:").to_owned()
}

fn shown_impact(impact: Impact) -> advisor::Impact {
    match impact {
        Impact::None | Impact::Low => advisor::Impact::Low,
        Impact::Medium => advisor::Impact::Medium,
        Impact::High => advisor::Impact::High,
    }
}
