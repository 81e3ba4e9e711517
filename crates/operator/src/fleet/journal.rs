//! Records what the fleet reports as log lines and as Kubernetes events about claims, clusters, templates and pools.

use api::fleet::ClaimPhase;
use change::Key;
use cluster::event::{Event, Reference};
use fleet::Notice;
use fleet::machine::End;
use fleet::object::Name;
use runtime::Journal;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

const CLAIM: &str = "MachineClaim";
const CLUSTER: &str = "HypervisorCluster";
const TEMPLATE: &str = "HypervisorMachineTemplate";
const POOL: &str = "RunnerPool";

/// Publishes events about each object of the fleet.
#[derive(Default)]
pub(super) struct FleetJournal {
    reported: Mutex<Reported>,
}

/// What was reported before, so that the same is reported once.
#[derive(Default)]
struct Reported {
    /// The uids of hypervisors, for events about their orphans.
    clusters: BTreeMap<Name, String>,
    /// How many machines each pool wanted.
    pools: BTreeMap<Name, i32>,
    /// The last line about each subject.
    lines: BTreeMap<String, String>,
}

impl Journal<Notice> for FleetJournal {
    fn record(&self, notice: Notice) -> Vec<Event> {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        match notice {
            Notice::Claim { name, phase: None, .. } => {
                tracing::info!("{} is gone", name.key(CLAIM));
                Vec::new()
            }
            Notice::Claim { name, uid, phase: Some(phase), reason, message, machine, ready_after } => {
                let machine = machine.map(|id| format!(" (machine {})", id.0)).unwrap_or_default();
                let after = ready_after.map(|time| format!(" after {:.1} s", time.as_secs_f64())).unwrap_or_default();
                let note = format!("{}{after}: {message}{machine}", phase.name());
                let warning = phase == ClaimPhase::Failed || WARNINGS.contains(&reason.as_str());
                vec![event(name.key(CLAIM), uid, warning, &reason, note)]
            }
            Notice::Ended { name, uid, end } => {
                let (reason, why) = match end {
                    End::Stopped => ("MachineStopped", "its machine has stopped"),
                    End::Expired => ("Expired", "its ttl is over"),
                    End::TooOld => ("MaxLifetimeReached", "the maximum lifetime of its machine is over"),
                    End::Drained => ("Drained", "it was drained"),
                };
                vec![event(name.key(CLAIM), uid, false, reason, format!("the claim is deleted: {why}"))]
            }
            Notice::Forced { name, uid, machine } => {
                let machine = machine.map_or("its machine".to_owned(), |id| format!("machine {}", id.0));
                let note = format!(
                    "the claim is deleted although {machine} was not seen to be gone, as the annotation {} asks; check the hypervisor",
                    api::fleet::FORCE_DELETE
                );
                vec![event(name.key(CLAIM), uid, true, "ForceDeleted", note)]
            }
            Notice::Operation { cluster, claim, operation, took, failure } => {
                let of = claim.map(|claim| format!(" for MachineClaim {claim}")).unwrap_or_default();
                let took = took.as_millis();
                match failure {
                    // What fails again and again is reported as the state of its object.
                    Some((class, message)) => {
                        tracing::debug!("{operation} on {cluster}{of} failed after {took} ms ({class:?}): {message}");
                    }
                    None => tracing::debug!("{operation} on {cluster}{of}: done after {took} ms"),
                }
                Vec::new()
            }
            Notice::Cluster { name, uid, is_ready, reason, message } => {
                reported.clusters.insert(name.clone(), uid.clone());
                if reason == "Connecting" {
                    tracing::info!("{}: {message}", name.key(CLUSTER));
                    return Vec::new();
                }
                vec![event(name.key(CLUSTER), uid, !is_ready, reason, message)]
            }
            Notice::Template { name, uid, is_valid, reason, message } => {
                vec![event(name.key(TEMPLATE), uid, !is_valid, reason, message)]
            }
            Notice::Pool { name, uid, desired, replicas, ready, message } => {
                let note = format!("{desired} wanted, {replicas} there, {ready} ready: {message}");
                if reported.pools.insert(name.clone(), desired) == Some(desired) {
                    tracing::info!("{}: {note}", name.key(POOL));
                    return Vec::new();
                }
                vec![event(name.key(POOL), uid, false, "Scaling", note)]
            }
            Notice::Orphan { cluster, machine, owner, is_destroyed } => {
                let what = if is_destroyed { "is destroyed" } else { "has no claim any more" };
                let note = format!("machine {} of MachineClaim {} {what}", machine.0, owner.claim);
                let uid = reported.clusters.get(&cluster).cloned().unwrap_or_default();
                let reason = if is_destroyed { "OrphanDestroyed" } else { "OrphanFound" };
                vec![event(cluster.key(CLUSTER), uid, true, reason, note)]
            }
            Notice::Unreadable { kind, name, why } => {
                reported.warn(&format!("{kind} {name}"), format!("{kind} {name} cannot be read: {why}"))
            }
            Notice::WriteFailed { key, why } => {
                reported.warn(&key.to_string(), format!("could not write {key}: {why}; trying again"))
            }
            Notice::DiscoveryFailed(why) => {
                let line = format!("the fleet could not ask the API server what it serves: {why}; trying again");
                reported.warn("discovery", line)
            }
            Notice::WatchLost { kind, why } => {
                reported.warn(&format!("watch {kind}"), format!("the fleet cannot watch {kind} now: {why}"))
            }
        }
    }
}

/// The reasons of claims that need somebody's attention.
const WARNINGS: [&str; 10] = [
    "CleanupFailed",
    "CleanupStuck",
    "ClusterNotFound",
    "ClusterNotReady",
    "ConfigurationError",
    "Forced",
    "InsufficientResources",
    "NoFreeId",
    "TemplateInvalid",
    "TemplateNotFound",
];

impl Reported {
    /// Logs a line, unless it is the last one about its subject.
    fn warn(&mut self, subject: &str, line: String) -> Vec<Event> {
        if self.lines.get(subject) != Some(&line) {
            tracing::warn!("{line}");
            self.lines.insert(subject.to_owned(), line);
        }
        Vec::new()
    }
}

fn event(key: Key, uid: String, warning: bool, reason: &str, note: String) -> Event {
    match warning {
        true => tracing::warn!(reason, object = %key, "{key}: {note}"),
        false => tracing::info!(reason, object = %key, "{key}: {note}"),
    }
    Event { regarding: Reference { key, uid }, related: None, warning, reason: reason.to_owned(), about: None, note }
}
