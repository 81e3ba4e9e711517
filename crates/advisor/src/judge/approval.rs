//! Whether a person has approved the plan as it is now.

use crate::situation::{Approved, Candidate, RequestedAction, Situation};
use change::Digest;

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
    /// The spec names another plan.
    AnotherPlan(String),
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
            Some(void) if void.items.is_empty() && named != Some(plan.digest) => {
                Approval::Void(Some(Approved { generation: request.generation, ..void.clone() }), Why::Moved)
            }
            Some(approved) if !approved.items.is_empty() => {
                Approval::Given(Approved { generation: request.generation, ..approved.clone() })
            }
            _ if named == Some(plan.digest) => Approval::Given(plan.approved(request.generation)),
            _ if request.bypasses && named.is_some() && named == shown(situation) => {
                Approval::Given(plan.approved(request.generation))
            }
            _ => Approval::Void(None, Why::AnotherPlan(text.clone())),
        };
    }
    // Apply alone approves the plan that was shown when it was written.
    match recorded {
        Some(approved) if approved.generation == request.generation => match approved.items.is_empty() {
            false => Approval::Given(approved.clone()),
            true => Approval::Void(Some(approved.clone()), Why::Moved),
        },
        Some(approved) if !approved.items.is_empty() && is_shown_for_options(situation) => {
            // Something else of the spec has changed meanwhile.
            Approval::Given(Approved { generation: request.generation, ..approved.clone() })
        }
        _ => match shown(situation) {
            Some(shown) if shown != plan.digest && !request.bypasses => {
                let void = Approved {
                    digest: shown,
                    generation: request.generation,
                    content: None,
                    items: std::collections::BTreeMap::new(),
                };
                Approval::Void(Some(void), Why::Moved)
            }
            _ => Approval::Given(plan.approved(request.generation)),
        },
    }
}

/// The plan that was shown for these options.
fn shown(situation: &Situation<'_>) -> Option<Digest> {
    let shown = situation.memory.shown.as_ref();
    shown.filter(|shown| shown.options == situation.request.options).map(|shown| shown.digest)
}

fn is_shown_for_options(situation: &Situation<'_>) -> bool {
    shown(situation).is_some()
}
