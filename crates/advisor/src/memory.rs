//! What a status remembers, read back after a start. Nothing of it is executed: it only says what was shown, approved and applied.

use crate::situation::{
    Applied, Approved, ItemMemory, Memory, Request, RequestedAction, ReviewReason, Shown, WantedContent, continues,
    shown_inputs,
};
use api::advisor::{
    AppliedItem, AppliedPlan, ApprovedItem, ApprovedPlan, Impact, Input, Item, Operation, Phase, Remediation, Time,
    VirtPlatformConfigSpec, VirtPlatformConfigStatus,
};
use change::Digest;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

impl Request {
    /// What a spec asks for; the error says what of it cannot be read.
    pub fn of(spec: &VirtPlatformConfigSpec, generation: i64) -> Result<Request, String> {
        let corrects = spec.bypass_optimistic_lock || spec.remediation == Some(Remediation::Automatic);
        Ok(Request {
            generation,
            action: RequestedAction::from(spec.action),
            approved_plan: spec.approved_plan.clone().filter(|digest| !digest.trim().is_empty()),
            continues: continues(spec.failure_policy),
            bypasses: spec.bypass_optimistic_lock,
            corrects,
            wait: spec.wait_timeout.as_deref().map(duration).transpose()?,
            options: options_digest(spec.options.as_ref(), spec.rollback),
        })
    }
}

/// The digest of what a plan is made for.
pub fn options_digest(options: Option<&Map<String, Value>>, rollback: Option<bool>) -> Digest {
    Digest::of(
        &json!({"options": options.filter(|options| !options.is_empty()), "rollback": rollback.unwrap_or(false)}),
    )
}

/// A duration as Go writes it, such as `1h30m`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("spec.waitTimeout is {text:?}; write a duration such as 30m or 1h30m");
    let read: SignedDuration = text.trim().parse().map_err(|_| wrong())?;
    Duration::try_from(read).ok().filter(|wait| !wait.is_zero()).ok_or_else(wrong)
}

impl Memory {
    /// What a status remembers.
    pub fn of(status: &VirtPlatformConfigStatus) -> Memory {
        let shown = status
            .plan_digest
            .as_deref()
            .and_then(Digest::parse)
            .map(|digest| Shown { digest, options: options_digest(status.applied_options.as_ref(), status.rollback) });
        let items = status.items.iter().filter_map(|item| {
            let since = time(item.last_transition_time.as_ref())?;
            let written = time(item.applied_time.as_ref());
            let review = shown_review(item, status.rollback == Some(true));
            let held = time(item.held_since.as_ref());
            let was_done = item.operation == Some(Operation::Keep);
            Some((item.name.clone(), ItemMemory { state: item.state.into(), since, written, held, was_done, review }))
        });
        Memory {
            shown,
            approved: status.approved.as_ref().and_then(approved),
            applied: status.applied.as_ref().and_then(applied),
            items: items.collect(),
            had_another_plan: status.plan_digest.is_none()
                && (status.phase.is_some_and(has_plan) || status.source_snapshot_hash.is_some()),
        }
    }
}

/// What of an item people could see that needs a review.
fn shown_review(item: &Item, is_rollback: bool) -> BTreeSet<ReviewReason> {
    let mut review: BTreeSet<ReviewReason> = item.takes_from.iter().cloned().map(ReviewReason::TakesFrom).collect();
    if item.impact_severity == Some(Impact::High) {
        review.insert(ReviewReason::Restarts);
    }
    if is_rollback || item.operation == Some(Operation::Delete) {
        review.insert(ReviewReason::Removes);
    }
    review
}

/// Whether a status in this phase has a plan, and so the digest of one if we wrote it.
fn has_plan(phase: Phase) -> bool {
    !matches!(phase, Phase::Pending | Phase::Drafting | Phase::PrerequisiteFailed | Phase::Failed | Phase::Ignored)
}

fn approved(status: &ApprovedPlan) -> Option<Approved> {
    let items: Option<BTreeMap<String, Digest>> =
        status.items.iter().map(|item| Some((item.name.clone(), Digest::parse(&item.digest)?))).collect();
    Some(Approved {
        digest: Digest::parse(&status.digest)?,
        generation: status.generation,
        content: status.content.as_deref().and_then(Digest::parse),
        items: items?,
    })
}

fn applied(status: &AppliedPlan) -> Option<Applied> {
    Some(Applied {
        digest: Digest::parse(&status.digest)?,
        content: Digest::parse(&status.content)?,
        options: Digest::parse(&status.request)?,
        time: time(Some(&status.time))?,
        inputs: status.inputs.iter().map(|Input { name, value }| (name.clone(), value.clone())).collect(),
        items: status.items.iter().filter_map(applied_item).collect(),
        corrections: status.corrections.iter().filter_map(|at| time(Some(at))).collect(),
    })
}

fn applied_item(item: &AppliedItem) -> Option<(String, WantedContent)> {
    let content = Digest::parse(&item.content)?;
    Some((item.name.clone(), WantedContent { object: item.object.clone(), content }))
}

/// As a status shows it.
pub fn shown_approval(approved: &Approved) -> ApprovedPlan {
    let items = approved.items.iter();
    ApprovedPlan {
        digest: approved.digest.to_string(),
        generation: approved.generation,
        content: approved.content.map(|digest| digest.to_string()),
        items: items.map(|(name, digest)| ApprovedItem { name: name.clone(), digest: digest.to_string() }).collect(),
    }
}

/// As a status shows it.
pub fn shown_applied(applied: &Applied) -> AppliedPlan {
    AppliedPlan {
        digest: applied.digest.to_string(),
        content: applied.content.to_string(),
        request: applied.options.to_string(),
        time: shown_time(applied.time),
        inputs: shown_inputs(&applied.inputs),
        items: applied.items.iter().map(shown_item).collect(),
        corrections: applied.corrections.iter().map(|at| shown_time(*at)).collect(),
    }
}

fn shown_item((name, wanted): (&String, &WantedContent)) -> AppliedItem {
    AppliedItem { name: name.clone(), object: wanted.object.clone(), content: wanted.content.to_string() }
}

/// As a status shows it: whole seconds, as all Kubernetes times.
pub fn shown_time(at: Timestamp) -> Time {
    Time(at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn time(shown: Option<&Time>) -> Option<Timestamp> {
    shown?.0.parse().ok()
}

/// The moment as a status can remember it.
pub fn whole_second(at: Timestamp) -> Timestamp {
    Timestamp::from_second(at.as_second()).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::{Memory, Request};
    use api::advisor::{VirtPlatformConfigSpec, VirtPlatformConfigStatus};
    use serde_json::json;

    fn request(spec: &serde_json::Value) -> Result<Request, String> {
        let mut whole = json!({"profile": "p"});
        if let (Some(whole), Some(spec)) = (whole.as_object_mut(), spec.as_object()) {
            whole.extend(spec.clone());
        }
        let spec: VirtPlatformConfigSpec = serde_json::from_value(whole).unwrap();
        Request::of(&spec, 3)
    }

    #[test]
    fn a_wait_is_a_duration_and_anything_else_is_refused_with_an_example() {
        assert_eq!(request(&json!({"waitTimeout": "1h30m"})).unwrap().wait.unwrap().as_secs(), 5400);
        assert_eq!(request(&json!({"waitTimeout": "4s"})).unwrap().wait.unwrap().as_secs(), 4);
        for wrong in ["soon", "-5m", "0s", "5"] {
            let message = request(&json!({"waitTimeout": wrong})).unwrap_err();
            assert!(message.contains(wrong) && message.contains("30m"), "{message}");
        }
    }

    #[test]
    fn options_and_rollback_make_another_request_and_nothing_else_does() {
        let of = |spec: serde_json::Value| request(&spec).unwrap().options;
        assert_eq!(of(json!({})), of(json!({"action": "Apply", "waitTimeout": "3m", "options": {}})));
        assert_ne!(of(json!({})), of(json!({"rollback": true})));
        assert_ne!(of(json!({})), of(json!({"options": {"loadAware": {"mode": "Predictive"}}})));
    }

    #[test]
    fn a_status_of_the_predecessor_is_no_approval() {
        let status = json!({"phase": "ReviewRequired", "sourceSnapshotHash": "abc", "items": [
            {"name": "a", "targetRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "x"}, "state": "Pending"}]});
        let status: VirtPlatformConfigStatus = serde_json::from_value(status).unwrap();
        assert_eq!(Memory::of(&status), Memory { had_another_plan: true, ..Memory::default() });
    }
}
