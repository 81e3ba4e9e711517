//! The conditions of a status: Ready, Progressing and Degraded for everybody, and the published ones, one for each phase.

use crate::judge::{HELD_FOR_LONG, Judgement, UNHEALTHY};
use crate::memory::shown_time;
use api::advisor::{Condition, Phase, Truth};
use jiff::Timestamp;

/// The phases that have a condition of their own name.
const PHASES: [Phase; 11] = [
    Phase::Pending,
    Phase::Drafting,
    Phase::PrerequisiteFailed,
    Phase::ReviewRequired,
    Phase::InProgress,
    Phase::Completed,
    Phase::CompletedWithErrors,
    Phase::CompletedWithUpgrade,
    Phase::Failed,
    Phase::Drifted,
    Phase::Ignored,
];

const UPGRADE: &str = "UpgradeAvailable";
const INPUTS: &str = "InputDependencyDrift";

/// The conditions now; one whose status stays the same keeps its time, its reason and its message unless they say something new. `unhealthy` is what
/// objects of completed items say of themselves.
pub fn conditions(
    judgement: &Judgement,
    unhealthy: Option<&str>,
    before: &[Condition],
    generation: i64,
    now: Timestamp,
) -> Vec<Condition> {
    let phase = judgement.phase;
    let is = |truth: bool| if truth { Truth::True } else { Truth::False };
    let is_moving = matches!(phase, Phase::InProgress | Phase::Drafting | Phase::Pending);
    let is_broken =
        matches!(phase, Phase::Failed | Phase::CompletedWithErrors | Phase::PrerequisiteFailed | Phase::Drifted)
            || judgement.reason == HELD_FOR_LONG;
    let is_complete = matches!(phase, Phase::Completed | Phase::CompletedWithUpgrade);
    // Without a plan nobody knows whether an upgrade or another input waits for a review: what was found before holds.
    let is_unknown = judgement.items.is_empty() && matches!(phase, Phase::Pending | Phase::Drafting | Phase::Failed);
    let waits = |kind: &str, truth: bool| {
        let was = before.iter().any(|condition| condition.r#type == kind && condition.status == Truth::True);
        is(truth || (is_unknown && was))
    };
    let mut all = vec![
        ("Ready", is(is_complete && unhealthy.is_none())),
        ("Progressing", is(is_moving)),
        ("Degraded", is(is_broken || unhealthy.is_some())),
        (UPGRADE, waits(UPGRADE, judgement.is_upgrade)),
        (INPUTS, waits(INPUTS, !judgement.changed_inputs.is_empty())),
    ];
    all.extend(PHASES.iter().map(|other| (name(*other), is(*other == phase))));
    let made = all.into_iter().map(|(kind, status)| {
        let known = before.iter().find(|condition| condition.r#type == kind && condition.status == status);
        let is_kept = is_unknown && [UPGRADE, INPUTS].contains(&kind);
        let is_said = (status == Truth::True && !is_kept) || kind == "Ready";
        let is_unhealthy = match kind {
            "Ready" => is_complete,
            "Degraded" => !is_broken,
            _ => false,
        };
        let (reason, message) = match (is_said, known) {
            (true, _) if let Some(why) = unhealthy.filter(|_| is_unhealthy) => (UNHEALTHY.to_owned(), why.to_owned()),
            (true, _) => (judgement.reason.to_owned(), judgement.message.clone()),
            (false, Some(known)) => (known.reason.clone(), known.message.clone()),
            (false, None) => (format!("Not{kind}"), String::new()),
        };
        Condition {
            r#type: kind.to_owned(),
            status,
            observed_generation: Some(generation),
            last_transition_time: known.map_or_else(|| shown_time(now), |known| known.last_transition_time.clone()),
            reason,
            message,
        }
    });
    // A published condition that was never true is not shown.
    made.filter(|condition| {
        condition.status == Truth::True
            || ["Ready", "Progressing", "Degraded"].contains(&condition.r#type.as_str())
            || before.iter().any(|known| known.r#type == condition.r#type)
    })
    .collect()
}

/// The name of a phase.
pub fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Drafting => "Drafting",
        Phase::PrerequisiteFailed => "PrerequisiteFailed",
        Phase::ReviewRequired => "ReviewRequired",
        Phase::InProgress => "InProgress",
        Phase::Completed => "Completed",
        Phase::CompletedWithErrors => "CompletedWithErrors",
        Phase::CompletedWithUpgrade => "CompletedWithUpgrade",
        Phase::Failed => "Failed",
        Phase::Drifted => "Drifted",
        Phase::Ignored => "Ignored",
    }
}
