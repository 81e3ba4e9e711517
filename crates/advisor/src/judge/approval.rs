//! Whether a person has approved the plan as it is now.

use crate::situation::{Approved, Candidate, RequestedAction, Situation};
use change::Digest;
use std::collections::BTreeMap;

/// What was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Approval {
    /// Nothing.
    None,
    /// This: its items may be applied as far as they are still the same.
    Given(Approved),
    /// A plan that is not the present one: nothing is applied, and that is recorded.
    Void(Option<Approved>, Why),
}

/// Why an approval has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The cluster has changed since the plan was shown.
    Moved,
    /// The cluster has changed after a part of the plan was applied.
    Spent,
    /// Nobody could have seen the plan before, and it needs a review.
    Unseen,
    /// The spec names another plan.
    AnotherPlan(String),
}

impl Why {
    fn of(void: &Approved, plan: &Candidate) -> Why {
        match void.is_spent() {
            true => Why::Spent,
            false if void.digest == plan.digest && !plan.is_correctable() => Why::Unseen,
            false => Why::Moved,
        }
    }
}

/// Whether this plan is approved.
pub fn approval(situation: &Situation<'_>, plan: &Candidate) -> Approval {
    let Situation { request, memory, .. } = situation;
    if request.action != RequestedAction::Apply {
        return Approval::None;
    }
    let recorded = memory.approved.as_ref();
    if let Some(text) = &request.approved_plan {
        let named = Digest::parse(text);
        return match recorded.filter(|approved| Some(approved.digest) == named) {
            Some(void) if void.is_spent() || (void.is_void() && named != Some(plan.digest)) => {
                Approval::Void(Some(Approved { generation: request.generation, ..void.clone() }), Why::of(void, plan))
            }
            Some(approved) if !approved.is_void() && is_shown_for_options(situation) => {
                Approval::Given(Approved { generation: request.generation, ..approved.clone() })
            }
            // The options were edited, or a rollback was asked for: another plan, although it may have items of the approved one.
            Some(approved) if !approved.is_void() && named != Some(plan.digest) => {
                Approval::Void(Some(void(approved.digest, request.generation)), Why::Moved)
            }
            _ if named == Some(plan.digest) => Approval::Given(plan.approved(request.generation)),
            // It is recorded under the digest that the spec names, or it would be taken for another plan from now on.
            _ if let Some(digest) = named.filter(|_| named == shown(situation) && bypasses(situation, plan)) => {
                Approval::Given(Approved { digest, ..plan.approved(request.generation) })
            }
            // It is recorded, so that a spec that names no plan any more approves nothing by that.
            _ => Approval::Void(Some(void(plan.digest, request.generation)), Why::AnotherPlan(text.clone())),
        };
    }
    // Apply alone approves the plan that was shown when it was written.
    match recorded {
        Some(approved) if approved.generation == request.generation => match approved.is_void() {
            false => Approval::Given(approved.clone()),
            true => Approval::Void(Some(approved.clone()), Why::of(approved, plan)),
        },
        Some(approved) if is_shown_for_options(situation) => {
            // Something else of the spec has changed meanwhile, which approves nothing.
            let carried = Approved { generation: request.generation, ..approved.clone() };
            match approved.is_void() {
                false => Approval::Given(carried),
                true => Approval::Void(Some(carried), Why::of(approved, plan)),
            }
        }
        _ if is_unseen(situation, plan) && !bypasses(situation, plan) => {
            let void = void(shown(situation).unwrap_or(plan.digest), request.generation);
            let why = Why::of(&void, plan);
            Approval::Void(Some(void), why)
        }
        _ => Approval::Given(plan.approved(request.generation)),
    }
}

/// Whether another plan was shown when Apply was written: for another cluster, for other options, or by the predecessor. Where none was
/// shown at all, Apply approves the first one, unless it restarts nodes or needs a review for another reason.
fn is_unseen(situation: &Situation<'_>, plan: &Candidate) -> bool {
    let Situation { request, memory, .. } = situation;
    match &memory.shown {
        Some(shown) => (shown.digest, shown.options) != (plan.digest, request.options),
        None => memory.had_another_plan || !plan.is_correctable(),
    }
}

/// Whether a plan is applied although the cluster has changed since it was shown. Once it was applied, drift is corrected, a limited number of times, and
/// what changes with an input or with another release of the operator needs a review.
fn bypasses(situation: &Situation<'_>, plan: &Candidate) -> bool {
    let applied = situation.memory.applied.as_ref();
    // A plan for these options was shown, and this one needs no review for another reason; or it needs none.
    let is_known = match shown(situation) {
        Some(_) => plan.is_no_worse_than_shown(situation.memory),
        None => plan.is_correctable(),
    };
    let is_first = applied.is_none_or(|applied| applied.options != situation.request.options);
    situation.request.bypasses && is_first && is_known
}

/// An approval of which nothing is applied.
fn void(digest: Digest, generation: i64) -> Approved {
    Approved { digest, generation, content: None, items: BTreeMap::new() }
}

/// Whether an approval was given anew: what was written under an earlier one does not count for it.
pub fn is_new(given: &Approved, recorded: Option<&Approved>) -> bool {
    recorded.is_none_or(|recorded| recorded.digest != given.digest)
}

/// The plan that was shown for these options.
fn shown(situation: &Situation<'_>) -> Option<Digest> {
    let shown = situation.memory.shown.as_ref();
    shown.filter(|shown| shown.options == situation.request.options).map(|shown| shown.digest)
}

fn is_shown_for_options(situation: &Situation<'_>) -> bool {
    shown(situation).is_some()
}
