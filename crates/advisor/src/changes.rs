//! What is different in a plan since it was shown, for people who have read the former one.

use api::advisor::{ApprovedItem, InterruptedPlan, Item, Operation, Phase, ReplacedPlan, VirtPlatformConfigStatus};
use std::collections::BTreeSet;

/// More is not shown: whoever has so much to read reads the plan.
const MOST_CHANGES: usize = 20;
/// A line of a difference is cut after so many characters.
const LONGEST_LINE: usize = 200;
/// So many lines of a difference are quoted for one item.
const MOST_LINES: usize = 3;

/// The plan that this status replaces, if it waits for a review, and somebody may have read the former one for the same options; and the plan
/// that was interrupted, because a part of it cannot be planned now. Both survive while no plan can be made.
pub fn history(
    before: &VirtPlatformConfigStatus,
    after: &VirtPlatformConfigStatus,
    is_same_request: bool,
) -> (Option<ReplacedPlan>, Option<InterruptedPlan>) {
    if !is_same_request {
        return (None, None);
    }
    if is_reviewed(after) {
        return (replaced(before, after), None);
    }
    if !is_without_plan(after) {
        return (None, None);
    }
    match (&before.plan_digest, &after.plan_digest) {
        (former, Some(_)) if *former == after.plan_digest => (before.replaced_plan.clone(), None),
        (Some(digest), None) if is_read(before) => {
            let items = before.items.iter().filter_map(|item| {
                let digest = item.digest.clone()?;
                Some(ApprovedItem { name: item.name.clone(), digest })
            });
            let replaced = before.replaced_plan.clone();
            (None, Some(InterruptedPlan { digest: digest.clone(), items: items.collect(), replaced }))
        }
        (None, None) => (None, before.interrupted_plan.clone()),
        _ => (None, None),
    }
}

fn replaced(before: &VirtPlatformConfigStatus, after: &VirtPlatformConfigStatus) -> Option<ReplacedPlan> {
    if before.plan_digest == after.plan_digest {
        return before.replaced_plan.clone();
    }
    let (digest, changes) = match &before.interrupted_plan {
        Some(interrupted) if Some(&interrupted.digest) == after.plan_digest.as_ref() => {
            return interrupted.replaced.clone();
        }
        Some(interrupted) => (interrupted.digest.clone(), changes(&resumed(interrupted, before, after), after)),
        None if is_read(before) => (before.plan_digest.clone()?, changes(before, after)),
        None => return None,
    };
    (!changes.is_empty()).then_some(ReplacedPlan { digest, changes })
}

/// A plan that was interrupted, as far as it is still known: what could be planned all the time is.
fn resumed(
    interrupted: &InterruptedPlan,
    before: &VirtPlatformConfigStatus,
    after: &VirtPlatformConfigStatus,
) -> VirtPlatformConfigStatus {
    let item = |former: &ApprovedItem| {
        let find = |all: &[Item]| all.iter().find(|item| item.name == former.name).cloned();
        let known = find(&before.items).or_else(|| find(&after.items))?;
        let digest = Some(former.digest.clone());
        Some(match known.digest == digest {
            true => known,
            false => Item { digest, operation: None, ..known },
        })
    };
    let items = interrupted.items.iter().filter_map(item).collect();
    VirtPlatformConfigStatus { items, inputs: before.inputs.clone(), ..VirtPlatformConfigStatus::default() }
}

fn is_reviewed(status: &VirtPlatformConfigStatus) -> bool {
    let phases = [Phase::ReviewRequired, Phase::Drifted, Phase::CompletedWithUpgrade];
    status.plan_digest.is_some() && status.phase.is_some_and(|phase| phases.contains(&phase))
}

/// Whether no plan can be made, or a part of it cannot be.
fn is_without_plan(status: &VirtPlatformConfigStatus) -> bool {
    let phases = [Phase::Pending, Phase::Drafting, Phase::PrerequisiteFailed, Phase::Failed];
    status.phase.is_some_and(|phase| phases.contains(&phase))
}

/// Whether people were to read the plan: it waited for a review, or was being applied, and no other plan was made since.
fn is_read(status: &VirtPlatformConfigStatus) -> bool {
    let is_known = match status.phase {
        Some(Phase::InProgress | Phase::Failed | Phase::CompletedWithErrors) => true,
        Some(Phase::Pending | Phase::Drafting | Phase::PrerequisiteFailed) => {
            status.items.iter().any(|item| item.operation.is_some_and(|operation| operation != Operation::Keep))
        }
        _ => is_reviewed(status),
    };
    is_known && status.plan_digest.is_some()
}

/// Whether an item is as it was planned because it was written.
fn is_applied(item: &Item) -> bool {
    item.operation == Some(Operation::Keep) && item.applied_time.is_some()
}

fn changes(before: &VirtPlatformConfigStatus, after: &VirtPlatformConfigStatus) -> Vec<String> {
    let mut all = Vec::new();
    for input in &after.inputs {
        let former = before.inputs.iter().find(|former| former.name == input.name);
        if let Some(former) = former.filter(|former| former.value != input.value) {
            all.push(format!("{} was {}, and is {} now", input.name, former.value, input.value));
        }
    }
    for item in &after.items {
        match before.items.iter().find(|former| former.name == item.name) {
            None => all.push(format!("{} is new: {}", item.name, object(item))),
            Some(former) if former.digest != item.digest && !is_applied(item) => {
                all.push(format!("{}: {}", item.name, change(former, item)));
            }
            Some(_) => {}
        }
    }
    let is_gone = |former: &&Item| !after.items.iter().any(|item| item.name == former.name);
    let gone = before.items.iter().filter(is_gone);
    all.extend(gone.map(|former| format!("{} is not planned any more: {}", former.name, object(former))));
    let left_out = all.len().saturating_sub(MOST_CHANGES);
    if left_out > 0 {
        all.truncate(MOST_CHANGES);
        all.push(format!("{left_out} more changes"));
    }
    all
}

/// What is different about one item.
fn change(before: &Item, after: &Item) -> String {
    let mut said = Vec::new();
    if before.operation.is_none() {
        let now = after.operation.map(|operation| format!("{operation:?}").to_lowercase()).unwrap_or_default();
        return format!("it was planned anew, and is to {now} {}", object(after));
    }
    if before.operation != after.operation {
        let name = |item: &Item| item.operation.map(|operation| format!("{operation:?}").to_lowercase());
        let (former, now) = (name(before).unwrap_or_default(), name(after).unwrap_or_default());
        said.push(format!("the plan was to {former}, and is to {now} {}", object(after)));
    }
    if before.impact_severity != after.impact_severity
        && let (Some(former), Some(now)) = (before.impact_severity, after.impact_severity)
    {
        said.push(format!("its impact was {former:?}, and is {now:?} now"));
    }
    if before.takes_from != after.takes_from && !after.takes_from.is_empty() {
        said.push(format!("it takes fields from {} now", after.takes_from.join(", ")));
    }
    let (former, now) = (lines(before), lines(after));
    let (gone, new) = (quoted(&former, &now), quoted(&now, &former));
    match (gone.is_empty(), new.is_empty()) {
        (true, true) => {}
        (false, true) => said.push(format!("without {gone}")),
        (true, false) => said.push(format!("also {new}")),
        (false, false) => said.push(format!("was {gone}, and is {new} now")),
    }
    match said.is_empty() {
        true => format!("something else of {} would be replaced", object(after)),
        false => said.join("; "),
    }
}

fn lines(item: &Item) -> BTreeSet<&str> {
    item.diff.as_deref().unwrap_or_default().lines().collect()
}

/// The lines of one difference that another does not have.
fn quoted(lines: &BTreeSet<&str>, others: &BTreeSet<&str>) -> String {
    let different: Vec<&str> = lines.difference(others).copied().collect();
    let shown = different.iter().take(MOST_LINES).map(|line| format!("{:?}", shortened(line)));
    let mut shown: Vec<String> = shown.collect();
    if different.len() > MOST_LINES {
        shown.push(format!("{} more lines", different.len() - MOST_LINES));
    }
    shown.join(", ")
}

fn shortened(line: &str) -> String {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

fn object(item: &Item) -> String {
    let target = &item.target_ref;
    match &target.namespace {
        Some(namespace) => format!("{} {namespace}/{}", target.kind, target.name),
        None => format!("{} {}", target.kind, target.name),
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_CHANGES, history};
    use api::advisor::{ReplacedPlan, VirtPlatformConfigStatus};
    use serde_json::{Value, json};

    fn status(phase: &str, digest: &str, items: &Value) -> VirtPlatformConfigStatus {
        let mut status = json!({"phase": phase, "planDigest": digest, "items": items});
        for item in status["items"].as_array_mut().unwrap() {
            item["targetRef"] = json!({"apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "x"});
        }
        serde_json::from_value(status).unwrap()
    }

    fn replaced(before: &VirtPlatformConfigStatus, after: &VirtPlatformConfigStatus) -> Option<ReplacedPlan> {
        history(before, after, before.rollback == after.rollback).0
    }

    /// The status that follows, with what it says of the plans before it.
    fn then(before: &VirtPlatformConfigStatus, mut after: VirtPlatformConfigStatus) -> VirtPlatformConfigStatus {
        (after.replaced_plan, after.interrupted_plan) = history(before, &after, true);
        after
    }

    /// No plan can be made, and the former one stays on display.
    fn without_plan(phase: &str, before: &VirtPlatformConfigStatus) -> VirtPlatformConfigStatus {
        let phase = serde_json::from_value(json!(phase)).unwrap();
        then(before, VirtPlatformConfigStatus { phase: Some(phase), ..before.clone() })
    }

    /// The item `a` cannot be planned.
    fn incomplete(before: &VirtPlatformConfigStatus) -> VirtPlatformConfigStatus {
        let mut items = serde_json::to_value(&before.items).unwrap();
        items[0] = json!({"name": "a", "message": "it cannot be planned: x"});
        let mut after = status("Failed", "", &items);
        after.plan_digest = None;
        then(before, after)
    }

    #[test]
    fn why_a_plan_was_replaced_survives_while_no_plan_can_be_made() {
        let plan = |digest: &str, items: Value| status("ReviewRequired", digest, &items);
        let first = plan("sha256:1", json!([item("a", "1", "+.x: 1\n"), item("b", "2", "+.y: 1\n")]));
        let second = plan("sha256:2", json!([item("a", "3", "+.x: 2\n"), item("b", "2", "+.y: 1\n")]));
        let third = plan("sha256:3", json!([item("a", "5", "+.x: 3\n"), item("b", "4", "+.y: 4\n")]));
        let shown = then(&first, second.clone());
        let expected = shown.replaced_plan.clone().unwrap();
        assert_eq!(expected.changes, [r#"a: was "+.x: 1", and is "+.x: 2" now"#]);
        for phase in ["Pending", "Drafting", "PrerequisiteFailed"] {
            let meanwhile = without_plan(phase, &shown);
            assert_eq!(meanwhile.replaced_plan, shown.replaced_plan, "{phase}");
            assert_eq!(then(&meanwhile, second.clone()).replaced_plan, shown.replaced_plan, "{phase}");
            let next = then(&meanwhile, third.clone()).replaced_plan.unwrap();
            assert_eq!((next.digest.as_str(), next.changes.len()), ("sha256:2", 2), "{phase}: {next:?}");
        }
        let meanwhile = without_plan("Drafting", &incomplete(&shown));
        assert_eq!(meanwhile.replaced_plan, None, "it is not about what is on display");
        assert_eq!(then(&meanwhile, second).replaced_plan, Some(expected));
        let next = then(&meanwhile, third.clone()).replaced_plan.unwrap();
        let changes =
            ["a: it was planned anew, and is to update ConfigMap n/x", r#"b: was "+.y: 1", and is "+.y: 4" now"#];
        assert_eq!((next.digest.as_str(), next.changes.as_slice()), ("sha256:2", &changes.map(String::from)[..]));
        let next = then(&incomplete(&first), third).replaced_plan.unwrap();
        assert_eq!(next.digest, "sha256:1", "the first plan is known as well");
        let done = status("Completed", "sha256:4", &json!([{"name": "a", "operation": "Keep"}]));
        assert_eq!(then(&without_plan("Drafting", &done), first).replaced_plan, None, "nobody was to read that");
    }

    fn item(name: &str, digest: &str, diff: &str) -> Value {
        json!({"name": name, "digest": digest, "operation": "Update", "impactSeverity": "Low", "diff": diff})
    }

    #[test]
    fn what_is_different_since_a_plan_was_shown_is_said_and_stays_until_the_next_plan() {
        let before =
            status("ReviewRequired", "sha256:1", &json!([item("a", "1", "-.x: 100\n+.x: 150\n"), item("b", "2", "")]));
        let after =
            status("ReviewRequired", "sha256:2", &json!([item("a", "3", "-.x: 110\n+.x: 150\n"), item("c", "4", "")]));
        let mut shown = replaced(&before, &after).unwrap();
        assert_eq!(shown.digest, "sha256:1");
        assert_eq!(
            shown.changes,
            [
                r#"a: was "-.x: 100", and is "-.x: 110" now"#,
                "c is new: ConfigMap n/x",
                "b is not planned any more: ConfigMap n/x"
            ]
        );
        let kept = VirtPlatformConfigStatus { replaced_plan: Some(shown.clone()), ..after.clone() };
        assert_eq!(replaced(&kept, &after), Some(shown.clone()), "nothing has changed since");
        shown.digest = "sha256:2".into();
        let third = status("Drifted", "sha256:3", &json!([item("a", "5", "-.x: 110\n+.x: 150\n"), item("c", "4", "")]));
        let again = replaced(&kept, &third).unwrap();
        assert_eq!((again.digest.as_str(), again.changes.len()), ("sha256:2", 1));
        assert_eq!(again.changes, ["a: something else of ConfigMap n/x would be replaced"]);
    }

    #[test]
    fn nothing_is_said_about_a_plan_that_nobody_was_to_review_or_that_was_made_for_other_options() {
        let plan = |phase: &str, digest: &str| status(phase, digest, &json!([item("a", digest, "")]));
        let (review, done) = (plan("ReviewRequired", "sha256:1"), plan("Completed", "sha256:1"));
        assert!(replaced(&plan("InProgress", "sha256:1"), &plan("Drifted", "sha256:2")).is_some(), "it was approved");
        let next = plan("ReviewRequired", "sha256:2");
        assert!(replaced(&review, &next).is_some());
        assert_eq!(replaced(&done, &next), None);
        assert_eq!(replaced(&review, &plan("InProgress", "sha256:2")), None);
        let rollback = VirtPlatformConfigStatus { rollback: Some(true), ..next.clone() };
        assert_eq!(replaced(&review, &rollback), None);
        assert_eq!(replaced(&VirtPlatformConfigStatus::default(), &next), None);
    }

    #[test]
    fn operation_impact_owners_and_inputs_are_named_and_the_list_is_short() {
        let mut before = status("ReviewRequired", "sha256:1", &json!([item("a", "1", "")]));
        before.inputs = serde_json::from_value(json!([{"name": "limit", "value": "5"}])).unwrap();
        let mut changed = item("a", "2", "");
        changed["operation"] = json!("Create");
        changed["impactSeverity"] = json!("High");
        changed["takesFrom"] = json!(["argocd"]);
        let mut after = status("ReviewRequired", "sha256:2", &json!([changed]));
        after.inputs = serde_json::from_value(json!([{"name": "limit", "value": "50"}])).unwrap();
        assert_eq!(
            replaced(&before, &after).unwrap().changes,
            [
                "limit was 5, and is 50 now",
                "a: the plan was to update, and is to create ConfigMap n/x; its impact was Low, and is High now; it takes fields from argocd now"
            ]
        );
        let many: Vec<Value> = (0..30).map(|number| item(&format!("new-{number}"), "9", "")).collect();
        let after = status("ReviewRequired", "sha256:2", &json!(many));
        let changes = replaced(&before, &after).unwrap().changes;
        assert_eq!((changes.len(), changes[MOST_CHANGES].as_str()), (MOST_CHANGES + 1, "11 more changes"));
    }
}
