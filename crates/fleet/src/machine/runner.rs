//! What the runner of a machine means for its end: a machine ends only when its runner can take no job any more.

use super::{Draft, Observed, Since, Step, deletion};
use crate::jobs::runners::Why;
use api::fleet::{ClaimPhase, Span};
use std::time::Duration;

/// A guest ends a machine that is over its lifetime, with whatever runs on it. One that has not done so after this is ended all the same.
const OVERTIME: Duration = Duration::from_secs(10 * 60);

/// What is known of the runner of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runner<'a> {
    /// Whether the guest has proved which claim it belongs to: then it is up.
    pub has_asked: bool,
    /// Why the machine may not end yet; nothing once no runner is left.
    pub held: Option<&'a str>,
    /// Why the claim ends, once its runner is gone.
    pub ended: Option<Why>,
    /// Why its guest has ended, if that is not as it should be: in one word, and as the guest said it.
    pub failure: Option<(&'a str, &'a str)>,
    /// A job on a claim that is being deleted is waited for so long.
    pub job_timeout: Option<Duration>,
}

/// The reason of a claim that ends because of its runner, in one word.
pub(crate) fn reason(why: Why) -> &'static str {
    match why {
        Why::JobDone => "JobCompleted",
        Why::NotNeeded => "Drained",
        Why::MachineEnded => "VMShutdownDetected",
        Why::NeverOnline | Why::NotDelivered => "RunnerNotStarted",
        Why::Offline => "RunnerOffline",
        Why::RunnerGone => "RunnerRemoved",
    }
}

/// Holds what would end a machine whose runner may have a job, and ends one whose runner is gone.
pub(super) fn gate(observed: &Observed<'_>, draft: Draft) -> Draft {
    let Some(runner) = observed.runner else { return draft };
    let claim = observed.claim;
    let is_deleting = claim.deleting.is_some();
    let is_deletion = |draft: &Draft| matches!(draft.step, Step::Delete(_));
    let draft = match runner.ended {
        Some(why) if !is_deleting && draft.phase != ClaimPhase::Failed && !is_deletion(&draft) => {
            deletion(super::End::Runner(why))
        }
        _ => draft,
    };
    let is_end =
        is_deletion(&draft) || draft.step == Step::Destroy || (draft.step == Step::RemoveFinalizer && is_gone(&draft));
    let Some(held) = runner.held.filter(|_| is_end && !is_overdue(observed, runner.job_timeout)) else {
        return explained(draft, runner.failure);
    };
    let phase = if is_deleting { ClaimPhase::Terminating } else { ClaimPhase::Draining };
    let wake = draft.wake;
    Draft { wake, ..Draft::new(Step::Wait, phase, "Deregistering", held) }
}

/// What its guest said says more than that its machine has stopped.
fn explained(draft: Draft, failure: Option<(&str, &str)>) -> Draft {
    let Some((reason, said)) = failure else { return draft };
    let ends =
        ["Destroying", "VMShutdownDetected", "JobCompleted", "RunnerNotStarted", "RunnerOffline", "RunnerRemoved"];
    let is_end = ends.contains(&draft.reason.as_str());
    match draft.phase {
        ClaimPhase::Terminating if is_end => Draft { reason: reason.to_owned(), message: said.to_owned(), ..draft },
        ClaimPhase::Failed if !draft.message.contains(said) => {
            Draft { message: format!("{}; its guest: {said}", draft.message), ..draft }
        }
        _ => draft,
    }
}

/// A machine that is gone took its runner with it, but its registration is left.
fn is_gone(draft: &Draft) -> bool {
    draft.reason == "Destroyed"
}

/// Whether somebody has said that a job must not go on for so long.
fn is_overdue(observed: &Observed<'_>, job_timeout: Option<Duration>) -> bool {
    let (claim, now) = (observed.claim, observed.now.wall);
    let Since { started, deleting, .. } = observed.since;
    let lifetime = claim.spec.max_lifetime.as_ref().and_then(Span::duration);
    let too_old = started.zip(lifetime).map(|(started, most)| change::now::later(started, most + OVERTIME));
    let too_long = deleting.zip(job_timeout).map(|(since, most)| change::now::later(since, most));
    too_old.into_iter().chain(too_long).any(|at| at <= now)
}
