//! The end of a claim: its finalizer goes only when its machine is surely gone, or when a person says so.

use super::{Draft, ENDS, Observed, Sight, Step};
use api::fleet::{CLEANUP_FINALIZER, ClaimPhase, FORCE_DELETE, VmRef};
use jiff::Timestamp;
use std::time::Duration;

/// The reason of a claim whose machine is there and does not say any more whose it is.
pub(super) const UNRECORDED: &str = "OwnerRecordMissing";
/// A person may have restored the record, or have deleted the machine.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

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
        Sight::Unrecorded { at, record, .. } => {
            let message = unrecorded(vm_ref, record);
            let again = observed.failed.map_or(*at, |failed| failed.retry_at.max(*at)).max(at.after(LOOK_AGAIN));
            let is_due = again <= observed.now.monotonic && !observed.is_working;
            let draft = terminating(if is_due { Step::Inspect } else { Step::Wait }, UNRECORDED, message);
            return if is_due || observed.is_working { draft } else { draft.wake_at(again) };
        }
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

/// What to do about a machine without its record. Only a person can tell that it is not somebody else's.
pub(super) fn unrecorded(vm_ref: &VmRef, record: &str) -> String {
    format!(
        "machine {} of {} has the name of this claim, but its owner record was overwritten, so that it is left alone: put this line back into its \
         notes (KubeVirt: what follows the colon, as annotation hyperfleet.io/owner), and it is destroyed with the claim; or delete it by hand; or, to \
         delete the claim without it, set the annotation {FORCE_DELETE} to true. The line: {record}",
        vm_ref.vm_id, vm_ref.hypervisor_cluster
    )
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
    let deadline = change::now::later(since, observed.cleanup);
    if observed.now.wall < deadline {
        return draft.wake_at(observed.now.moment_of(deadline));
    }
    let message = format!(
        "{}; machine {} of {} was not gone after {} s, and the operator keeps trying; to delete the claim without its machine, set the \
         annotation {FORCE_DELETE} to true and remove the machine by hand",
        draft.message,
        vm_ref.vm_id,
        vm_ref.hypervisor_cluster,
        observed.cleanup.as_secs()
    );
    Draft { reason: "CleanupStuck".to_owned(), message, ..draft }
}
