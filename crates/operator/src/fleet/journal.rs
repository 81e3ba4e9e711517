//! Records what the fleet reports as log lines, as metrics, and as Kubernetes events about claims, clusters, templates and pools.

use crate::metrics::Metrics;
use change::Key;
use cluster::event::{Event, Reference};
use fleet::machine::End;
use fleet::object::Name;
use fleet::{Notice, Weight};
use runtime::Journal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

const CLAIM: &str = "MachineClaim";
const CLUSTER: &str = "HypervisorCluster";
const TEMPLATE: &str = "HypervisorMachineTemplate";
const POOL: &str = "RunnerPool";

/// Publishes events about each object of the fleet.
pub(super) struct FleetJournal {
    metrics: Arc<Metrics>,
    reported: Mutex<Reported>,
}

impl FleetJournal {
    pub(super) fn new(metrics: Arc<Metrics>) -> FleetJournal {
        FleetJournal { metrics, reported: Mutex::default() }
    }
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
        self.metrics.record_fleet(&notice);
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let weight = notice.weight();
        let warning = weight == Weight::Warning;
        match notice {
            Notice::Claim { name, phase: None, .. } => {
                tracing::info!("{} is gone", name.key(CLAIM));
                Vec::new()
            }
            Notice::Claim { name, uid, phase: Some(phase), reason, message, machine, ready_after } => {
                let machine = machine.map(|id| format!(" (machine {})", id.0)).unwrap_or_default();
                let after = ready_after.map(|time| format!(" after {:.1} s", time.as_secs_f64())).unwrap_or_default();
                let note = format!("{}{after}: {message}{machine}", phase.name());
                if weight == Weight::Step {
                    tracing::info!("{}: {note}", name.key(CLAIM));
                    return Vec::new();
                }
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
                vec![event(name.key(CLAIM), uid, warning, "ForceDeleted", note)]
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
            Notice::Cluster { name, uid, reason, message, .. } => {
                reported.clusters.insert(name.clone(), uid.clone());
                if weight == Weight::Step {
                    tracing::info!("{}: {message}", name.key(CLUSTER));
                    return Vec::new();
                }
                vec![event(name.key(CLUSTER), uid, warning, reason, message)]
            }
            Notice::Template { name, uid, reason, message, .. } => {
                if weight == Weight::Step {
                    tracing::info!("{}: {message}", name.key(TEMPLATE));
                    return Vec::new();
                }
                vec![event(name.key(TEMPLATE), uid, warning, reason, message)]
            }
            Notice::Pool { name, uid, desired, replicas, ready, message } => {
                let note = format!("{desired} wanted, {replicas} there, {ready} ready: {message}");
                if reported.pools.insert(name.clone(), desired) == Some(desired) {
                    tracing::info!("{}: {note}", name.key(POOL));
                    return Vec::new();
                }
                vec![event(name.key(POOL), uid, false, "Scaling", note)]
            }
            Notice::PoolHeld { name, uid, reason, message } => {
                vec![event(name.key(POOL), uid, warning, reason, message)]
            }
            Notice::Orphan { cluster, machine, owner, is_destroyed } => {
                let what = if is_destroyed { "is destroyed" } else { "has no claim any more" };
                let note = format!("machine {} of MachineClaim {} {what}", machine.0, owner.claim);
                let uid = reported.clusters.get(&cluster).cloned().unwrap_or_default();
                let reason = if is_destroyed { "OrphanDestroyed" } else { "OrphanFound" };
                vec![event(cluster.key(CLUSTER), uid, warning, reason, note)]
            }
            Notice::Seed { cluster, volume, uid, is_deleted } => {
                let what = if is_deleted { "it is deleted" } else { "delete it, or set orphans.policy to Delete" };
                let line = format!(
                    "{}: the image {volume} was made for a MachineClaim that is gone (uid {uid}): {what}",
                    cluster.key(CLUSTER)
                );
                reported.warn(&format!("seed {volume}"), line)
            }
            Notice::SeedTrouble { cluster, message } => {
                let uid = reported.clusters.get(&cluster).cloned().unwrap_or_default();
                let note = format!(
                    "images of cloud-init data that nobody needs could not be removed: {message}; trying again"
                );
                vec![event(cluster.key(CLUSTER), uid, warning, "SeedCleanupFailed", note)]
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

#[cfg(test)]
mod tests {
    use super::FleetJournal;
    use crate::metrics::Metrics;
    use api::fleet::{ClaimPhase, FailureClass};
    use fleet::Notice;
    use fleet::hypervisor::{MachineId, Owner};
    use fleet::machine::End;
    use fleet::object::Name;
    use runtime::Journal;
    use std::sync::Arc;
    use std::time::Duration;

    /// What is published of each notice: the object, whether it is a warning, its reason and its note.
    fn published(journal: &FleetJournal, notice: Notice) -> Vec<String> {
        let line = |event: cluster::event::Event| {
            let kind = if event.warning { "Warning" } else { "Normal" };
            format!("{} {} {kind} {}: {}", event.regarding.key, event.regarding.uid, event.reason, event.note)
        };
        journal.record(notice).into_iter().map(line).collect()
    }

    fn name(name: &str) -> Name {
        Name::new("ci", name)
    }

    fn claim(phase: ClaimPhase, reason: &str, message: &str) -> Notice {
        Notice::Claim {
            name: name("one"),
            uid: "u".into(),
            phase: Some(phase),
            reason: reason.into(),
            message: message.into(),
            machine: Some(MachineId("100".into())),
            ready_after: (phase == ClaimPhase::Ready).then(|| Duration::from_millis(1_500)),
        }
    }

    #[test]
    fn what_happens_to_a_claim_is_an_event_about_it_and_trouble_is_a_warning() {
        let journal = FleetJournal::new(Arc::new(Metrics::new("")));
        for (notice, event) in [
            (
                claim(ClaimPhase::Ready, "Ready", "the machine is ready"),
                "Normal Ready: Ready after 1.5 s: the machine is ready (machine 100)",
            ),
            (
                claim(ClaimPhase::Pending, "ClusterNotReady", "not ready"),
                "Warning ClusterNotReady: Pending: not ready (machine 100)",
            ),
            (
                claim(ClaimPhase::Failed, "BootTimeout", "too long"),
                "Warning BootTimeout: Failed: too long (machine 100)",
            ),
            (
                Notice::Ended { name: name("one"), uid: "u".into(), end: End::Expired },
                "Normal Expired: the claim is deleted: its ttl is over",
            ),
        ] {
            assert_eq!(published(&journal, notice), [format!("MachineClaim ci/one u {event}")]);
        }
        let forced = Notice::Forced { name: name("one"), uid: "u".into(), machine: None };
        assert!(
            published(&journal, forced)[0].contains("Warning ForceDeleted") && published(&journal, gone()).is_empty()
        );
    }

    fn gone() -> Notice {
        let (reason, message) = ("Gone".into(), String::new());
        Notice::Claim {
            name: name("one"),
            uid: "u".into(),
            phase: None,
            reason,
            message,
            machine: None,
            ready_after: None,
        }
    }

    #[test]
    fn a_pool_has_an_event_when_it_wants_another_number_and_an_orphan_is_about_its_hypervisor() {
        let journal = FleetJournal::new(Arc::new(Metrics::new("")));
        let pool = |desired: i32, ready: i32| {
            let message = "m".to_owned();
            Notice::Pool { name: name("pool"), uid: "p".into(), desired, replicas: 1, ready, message }
        };
        let counts = [pool(2, 0), pool(2, 1), pool(3, 1)].map(|notice| published(&journal, notice).len());
        assert_eq!(counts, [1, 0, 1]);
        let cluster = |reason: &'static str| {
            let (uid, message) = ("c".into(), "m".into());
            Notice::Cluster { name: name("pve"), uid, is_ready: reason == "ConnectionSuccessful", reason, message }
        };
        assert!(published(&journal, cluster("Connecting")).is_empty(), "every start would be a warning");
        assert_eq!(published(&journal, cluster("NoQuorum")), ["HypervisorCluster ci/pve c Warning NoQuorum: m"]);
        let owner = Owner { operator: "o".into(), claim: "ci/old".into(), uid: "x".into() };
        let orphan = Notice::Orphan { cluster: name("pve"), machine: MachineId("7".into()), owner, is_destroyed: true };
        let note = "HypervisorCluster ci/pve c Warning OrphanDestroyed: machine 7 of MachineClaim ci/old is destroyed";
        assert_eq!(published(&journal, orphan), [note]);
        let failure = Some((FailureClass::Transient, "no answer".to_owned()));
        let operation =
            Notice::Operation { cluster: name("pve"), claim: None, operation: "list", took: Duration::ZERO, failure };
        assert!(published(&journal, operation).is_empty(), "the state of its object says it");
    }
}
