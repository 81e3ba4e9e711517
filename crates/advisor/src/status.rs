//! The status of a `VirtPlatformConfig`: a judgement and its plan, as people read them.

use crate::changes::history;
use crate::conditions::conditions;
use crate::judge::Judgement;
use crate::judge::items::{ItemJudgement, unhealthy};
use crate::memory::{options_digest, shown_applied, shown_approval, shown_time};
use crate::plan::{Item, Plan, Unplanned};
use crate::situation::{Memory, Progress, shown_inputs};
use api::advisor::{self, Action, ItemState, Operation, TargetRef, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
use change::{Digest, Impact, Key, diff};
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
    let names = plan.iter().flat_map(|plan| &plan.items).map(|item| item.name.as_str());
    let unhealthy = unhealthy(names.zip(&judgement.items));
    let mut status = VirtPlatformConfigStatus {
        phase: Some(judgement.phase),
        observed_generation: Some(*generation),
        approved: judgement.approved.as_ref().map(shown_approval),
        applied: judgement.applied.as_ref().map(shown_applied),
        conditions: conditions(judgement, unhealthy.as_deref(), &before.conditions, *generation, *now),
        ..VirtPlatformConfigStatus::default()
    };
    let is_same_request = options_digest(spec.options.as_ref(), spec.rollback)
        == options_digest(before.applied_options.as_ref(), before.rollback);
    match plan {
        // Nothing can be approved: the only digest to show is that of a plan that is being applied.
        Some(plan) if !plan.unplanned.is_empty() => {
            let is_approved = judgement.approved.as_ref().is_some_and(|approved| !approved.is_void());
            let digest = judgement.shown.as_ref().filter(|_| is_approved).map(|shown| shown.digest.to_string());
            status.plan_digest = digest;
            status.impact_severity = plan.impact().map(shown_impact).or(before.impact_severity);
            status.inputs = shown_inputs(&plan.inputs);
            status.items = incomplete(plan, &spec.profile, memory, *now);
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
            status.items = plan
                .items
                .iter()
                .zip(&judgement.items)
                .map(|(item, judged)| shown(&spec.profile, item, judged))
                .collect();
        }
        None => {
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
    (status.replaced_plan, status.interrupted_plan) = history(before, &status, is_same_request);
    status
}

/// The items of a plan of which some cannot be planned: how far each was is remembered.
fn incomplete(plan: &Plan, profile: &str, memory: &Memory, now: Timestamp) -> Vec<advisor::Item> {
    let judged = |name: &str| {
        let before = memory.items.get(name);
        ItemJudgement {
            state: before.map_or(Progress::Pending, |before| before.state),
            since: before.map_or(now, |before| before.since),
            written: before.and_then(|before| before.written),
            held: before.and_then(|before| before.held),
            message: String::new(),
        }
    };
    let mut items: Vec<advisor::Item> =
        plan.items.iter().map(|item| shown(profile, item, &judged(&item.name))).collect();
    for Unplanned { place, name, key, why } in &plan.unplanned {
        let ItemJudgement { state, since, written, held, .. } = judged(name);
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
            held_since: held.map(shown_time),
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
        held_since: None,
        managed_fields: Vec::new(),
        restarts: Vec::new(),
        takes_from: Vec::new(),
        ..item.clone()
    })
}

fn shown(profile: &str, item: &Item, judged: &ItemJudgement) -> advisor::Item {
    let compared = &item.compared;
    let desired_state = compared.wanted.as_ref().and_then(|wanted| wanted.shown.clone());
    let judged_message = Some(judged.message.clone()).filter(|message| !message.is_empty());
    let restarts = item.restarts.as_ref().filter(|_| !item.is_done()).map(ToString::to_string);
    let hold = item.hold.as_ref().map(|hold| hold.why.clone());
    let hold = hold.filter(|why| compared.hold.is_some() && Some(why) != judged_message.as_ref());
    let said: Vec<String> = [judged_message.or(restarts), hold, compared.note.clone()].into_iter().flatten().collect();
    let message = Some(said.join("; ")).filter(|message| !message.is_empty());
    advisor::Item {
        name: item.name.clone(),
        target_ref: target_ref(&item.key),
        digest: Some(item.digest().to_string()),
        operation: Some(compared.operation),
        impact_severity: Some(shown_impact(if item.is_done() { Impact::Low } else { item.impact })),
        diff: Some(cut(diff::text(&compared.diff), profile, desired_state.is_some())).filter(|diff| !diff.is_empty()),
        desired_state,
        state: judged.state.into(),
        message,
        last_transition_time: Some(shown_time(judged.since)),
        applied_time: judged.written.map(shown_time),
        held_since: judged.held.map(shown_time),
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

/// As much of a difference as a status has room for, in whole lines; then how to see the rest.
fn cut(mut text: String, profile: &str, has_desired_state: bool) -> String {
    if text.len() > LONGEST_DIFF {
        let end = text[..text.floor_char_boundary(LONGEST_DIFF)].rfind('\n').map_or(0, |last| last + 1);
        let left = text[end..].lines().count();
        text.truncate(end);
        let rest = match has_desired_state {
            true => format!("\"virtpilot plan show {profile} --full\" shows all that is applied"),
            false => "the status has no room for them, nor for the whole object".to_owned(),
        };
        text.push_str(&format!("... {left} more lines: {rest}\n"));
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

#[cfg(test)]
mod tests {
    use super::{ItemJudgement, LONGEST_DIFF, Progress, shown};
    use crate::identity::FIELD_MANAGER;
    use crate::plan::{Item, compare, deletion};
    use crate::situation::Health;
    use change::{Impact, Key, Kind};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn machine_config(script: &str) -> Value {
        let encoded: String = script.bytes().map(|byte| format!("%{byte:02x}")).collect();
        json!({
            "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "90-swap"},
            "spec": {"config": {
                "ignition": {"version": "3.2.0"},
                "storage": {"files": [{"path": "/usr/local/bin/swap", "mode": 0o755, "contents": {"source": format!("data:,{encoded}")}}]},
                "systemd": {"units": [{"name": "swap.service", "enabled": true, "contents": "[Service]\nExecStart=/usr/local/bin/swap\n"}]},
            }},
        })
    }

    fn key() -> Key {
        let kind = Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig");
        Key { kind, namespace: String::new(), name: "90-swap".into() }
    }

    fn of(compared: crate::plan::Compared) -> api::advisor::Item {
        let item = Item {
            name: "swap".into(),
            description: String::new(),
            needs: Vec::new(),
            joins: None,
            key: key(),
            compared,
            impact: Impact::High,
            restarts: None,
            hold: None,
            health: Health::Healthy,
        };
        let since = Timestamp::UNIX_EPOCH;
        shown(
            "density",
            &item,
            &ItemJudgement { state: Progress::Pending, since, written: None, held: None, message: String::new() },
        )
    }

    fn created(script: &str) -> api::advisor::Item {
        let wanted = machine_config(script);
        let mut answer = wanted.clone();
        answer["metadata"]["managedFields"] = json!([{"manager": FIELD_MANAGER, "operation": "Apply", "fieldsV1": {
            "f:spec": {"f:config": {}},
        }}]);
        of(compare("density", &key(), &wanted, None, &answer, [false; 3]))
    }

    #[test]
    fn a_script_that_is_to_run_on_nodes_can_be_read_in_the_status() {
        let item = created("#!/bin/sh\nswapon -a\n");
        let expected = [
            r#"+.spec: {"config":{"ignition":{"version":"3.2.0"}}}"#,
            "+file /usr/local/bin/swap (0755, 2 lines)",
            "+  #!/bin/sh",
            "+  swapon -a",
            "+unit swap.service (enabled, 2 lines)",
            "+  [Service]",
            "+  ExecStart=/usr/local/bin/swap",
        ];
        assert_eq!(item.diff.unwrap().lines().collect::<Vec<_>>(), expected);
        let desired = Value::Object(item.desired_state.unwrap());
        assert_eq!(desired["spec"], machine_config("#!/bin/sh\nswapon -a\n")["spec"], "it can be decoded, too");
        let removed = of(deletion(&key(), &machine_config("#!/bin/sh\nswapon -a\n"))).diff.unwrap();
        assert!(removed.contains("-  swapon -a\n"), "{removed}");
    }

    #[test]
    fn a_difference_that_has_no_room_is_cut_after_a_line_and_says_how_to_see_the_rest() {
        let script = "echo 'a line of a long script'\n".repeat(1_000);
        let unpacked = |item: &api::advisor::Item| item.diff.clone().unwrap();
        let diff = unpacked(&created(&script));
        let last = diff.lines().last().unwrap();
        let shown = diff.lines().count() - 1;
        assert_eq!(diff.lines().nth(shown - 1), Some("+  echo 'a line of a long script'"));
        assert!(diff.len() < LONGEST_DIFF + 200, "{}", diff.len());
        // The spec, the file with its 1,000 lines, and the unit with its two.
        let left = 1_005 - shown;
        assert_eq!(last, format!("... {left} more lines: the status has no room for them, nor for the whole object"));
        let packed = super::cut("+x\n".repeat(20_000), "density", true);
        let rest = packed.lines().last().unwrap();
        assert!(
            rest.ends_with("more lines: \"virtpilot plan show density --full\" shows all that is applied"),
            "{rest}"
        );
    }
}
