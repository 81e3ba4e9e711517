//! The end of a claim: its finalizer goes only when its machine is surely gone, or when a person says so.

use super::{CLEANUP_DEADLINE, Draft, ENDS, Observed, Sight, Step};
use api::fleet::{CLEANUP_FINALIZER, ClaimPhase, FORCE_DELETE, VmRef};
use jiff::Timestamp;

/// Decides about a claim that is being deleted.
pub(super) fn decide(observed: &Observed<'_>, since: Timestamp) -> Draft {
    let claim = observed.claim;
    let terminating = |step, reason: &str, message: String| Draft::new(step, ClaimPhase::Terminating, reason, message);
    if !claim.has_finalizer(CLEANUP_FINALIZER) {
        return terminating(Step::Wait, "Deleting", "other finalizers keep the claim".into());
    }
    let Some(vm_ref) = &claim.status.vm_ref else {
        // The hypervisor is asked to create a machine only after its id is recorded here.
        return terminating(Step::RemoveFinalizer, "NeverCreated", "no machine was created".into());
    };
    if claim.is_switched(FORCE_DELETE) {
        let message = format!("forced: machine {} was not seen to be gone", vm_ref.vm_id);
        return terminating(Step::RemoveFinalizer, "Forced", message);
    }
    let draft = match observed.sight {
        // An answer may still come.
        _ if observed.is_working => {
            let message = format!("waiting for an operation on machine {}", vm_ref.vm_id);
            because(observed, terminating(Step::Wait, "Destroying", message))
        }
        Sight::Absent(at) | Sight::Foreign(at) if *at >= observed.unresolved_until => {
            return terminating(Step::RemoveFinalizer, "Destroyed", format!("machine {} is gone", vm_ref.vm_id));
        }
        Sight::Absent(_) | Sight::Foreign(_) if observed.now.monotonic < observed.unresolved_until => {
            let message = format!("machine {} may still be created by an earlier request", vm_ref.vm_id);
            terminating(Step::Wait, "WaitingForRequests", message).wake_at(observed.unresolved_until)
        }
        Sight::Unknown | Sight::Absent(_) | Sight::Foreign(_) => attempt(observed, vm_ref, Step::Inspect),
        Sight::Ours { .. } => attempt(observed, vm_ref, Step::Destroy),
    };
    overdue(observed, since, vm_ref, draft)
}

fn attempt(observed: &Observed<'_>, vm_ref: &VmRef, step: Step) -> Draft {
    let draft = Draft::new(step, ClaimPhase::Terminating, "Destroying", format!("destroying machine {}", vm_ref.vm_id));
    let Some(failed) = observed.failed else { return because(observed, draft) };
    let message = format!("could not destroy machine {}: {}", vm_ref.vm_id, failed.message);
    let draft = Draft { reason: "CleanupFailed".to_owned(), message, ..draft };
    match failed.retry_at <= observed.now.monotonic {
        true => draft,
        false => Draft { step: Step::Wait, ..draft }.wake_at(failed.retry_at),
    }
}

/// While all goes well, the status keeps saying why the operator has deleted the claim.
fn because(observed: &Observed<'_>, draft: Draft) -> Draft {
    let conditions = &observed.claim.status.conditions;
    let ready = conditions.iter().find(|condition| condition.r#type == "Ready");
    match ready.filter(|ready| ENDS.contains(&ready.reason.as_str())) {
        Some(ready) => Draft { reason: ready.reason.clone(), message: ready.message.clone(), ..draft },
        None => draft,
    }
}

/// After the deadline a person is told what they can do.
fn overdue(observed: &Observed<'_>, since: Timestamp, vm_ref: &VmRef, draft: Draft) -> Draft {
    let deadline = change::now::later(since, CLEANUP_DEADLINE);
    if observed.now.wall < deadline {
        return draft.wake_at(observed.now.moment_of(deadline));
    }
    let message = format!(
        "{}; machine {} of {} was not gone after {} min, and the operator keeps trying; to delete the claim without its machine, set the \
         annotation {FORCE_DELETE} to true and remove the machine by hand",
        draft.message,
        vm_ref.vm_id,
        vm_ref.hypervisor_cluster,
        CLEANUP_DEADLINE.as_secs() / 60
    );
    Draft { reason: "CleanupStuck".to_owned(), message, ..draft }
}
