//! The status of a claim, from a decision and the status before.

use super::{Draft, Observed, Sight};
use crate::conditions::{Wanted, merge, shown, wanted};
use crate::hypervisor::{GuestNetwork, Power};
use api::fleet::{BUSY, ClaimPhase, LastFailure, MachineClaimStatus, NetworkInfo};

/// The status that a decision leads to. It is the same as before unless something has changed.
pub(super) fn status(observed: &Observed<'_>, draft: Draft) -> MachineClaimStatus {
    let (claim, now) = (observed.claim, observed.now.wall);
    let before = &claim.status;
    let mut status = MachineClaimStatus {
        phase: Some(draft.phase),
        observed_generation: Some(claim.generation),
        conditions: Vec::new(),
        ..before.clone()
    };
    if draft.vm_ref.is_some() {
        status.vm_ref.clone_from(&draft.vm_ref);
    }
    if let Sight::Ours { power, node, .. } = observed.sight {
        if let Some(vm_ref) = &mut status.vm_ref
            && vm_ref.node.as_ref() != Some(node)
        {
            vm_ref.node = Some(node.clone());
        }
        status.created_time = before.created_time.clone().or_else(|| Some(shown(now)));
        if *power == Power::Running {
            status.started_time = before.started_time.clone().or_else(|| Some(shown(now)));
        }
    }
    if draft.phase == ClaimPhase::Ready {
        status.ready_time = before.ready_time.clone().or_else(|| Some(shown(now)));
    }
    let is_idle = draft.phase == ClaimPhase::Ready && !claim.is_switched(BUSY);
    status.idle_since = is_idle.then(|| before.idle_since.clone().unwrap_or_else(|| shown(now)));
    if observed.is_seeded {
        status.seeded_time = before.seeded_time.clone().or_else(|| Some(shown(now)));
    }
    if !observed.guest.addresses.is_empty() {
        let GuestNetwork { addresses, mac } = observed.guest.clone();
        status.network_info = Some(NetworkInfo { ip_address: addresses.first().cloned(), addresses, mac_address: mac });
    }
    match observed.failed {
        Some(failed) => {
            let known = before.last_failure.as_ref().filter(|known| known.message == failed.message);
            status.attempts = failed.count;
            status.last_failure = Some(LastFailure {
                class: failed.class,
                message: failed.message.clone(),
                time: known.map_or_else(|| shown(now), |known| known.time.clone()),
            });
        }
        None => status.attempts = 0,
    }
    status.conditions = merge(conditions(&status, draft), &before.conditions, claim.generation, now);
    status
}

fn conditions(status: &MachineClaimStatus, draft: Draft) -> Vec<Wanted> {
    let Draft { phase, reason, message, .. } = draft;
    let provisioning = match (phase, &status.created_time) {
        (ClaimPhase::Pending | ClaimPhase::Provisioning, _) => {
            wanted("Provisioning", phase == ClaimPhase::Provisioning, &*reason, message.clone())
        }
        (_, Some(_)) => wanted("Provisioning", false, "Provisioned", "the machine was created"),
        (_, None) => wanted("Provisioning", false, &*reason, message.clone()),
    };
    let bootstrapped = match &status.ready_time {
        Some(_) => wanted("Bootstrapped", true, "Bootstrapped", "the machine was ready"),
        None => wanted("Bootstrapped", false, "NotReadyYet", "the machine was not ready yet"),
    };
    let mut all = vec![provisioning, bootstrapped];
    if phase == ClaimPhase::Terminating {
        let is_gone = ["Destroyed", "NeverCreated"].contains(&reason.as_str());
        all.push(wanted("VMCleanedUp", is_gone, &*reason, message.clone()));
    }
    all.push(wanted("Ready", phase == ClaimPhase::Ready, reason, message));
    all
}
