//! Records what the fleet reports as log lines, as metrics, and as Kubernetes events about claims, clusters, templates and pools.

use crate::metrics::Metrics;
use api::fleet::FailureClass;
use change::Key;
use cluster::event::{Event, Reference};
use fleet::hypervisor::MachineId;
use fleet::jobs::milestones::Milestone;
use fleet::machine::End;
use fleet::object::Name;
use fleet::{Notice, Weight};
use runtime::Journal;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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
    /// The last line about each of the last subjects, and when that was logged, in numbers.
    lines: BTreeMap<String, (u64, String)>,
    last: u64,
}

/// So many subjects are remembered: claims and images come and go for years.
const SUBJECTS: usize = 500;

impl Journal<Notice> for FleetJournal {
    fn record(&self, notice: Notice) -> Vec<Event> {
        self.metrics.record_fleet(&notice);
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let weight = notice.weight();
        let warning = weight == Weight::Warning;
        match notice {
            Notice::Claim { name, phase: None, machine, .. } => {
                let machine = machine.as_ref().map(|id| id.0.as_str());
                tracing::info!(claim = %name, machine, "{} is gone", name.key(CLAIM));
                Vec::new()
            }
            Notice::Claim { name, uid, phase: Some(phase), reason, message, machine, ready_after } => {
                let id = machine.as_ref().map(|id| id.0.as_str());
                let machine = id.map(|id| format!(" (machine {id})")).unwrap_or_default();
                let after = ready_after.map(|time| format!(" after {:.1} s", time.as_secs_f64())).unwrap_or_default();
                let note = format!("{}{after}: {message}{machine}", phase.name());
                let (key, phase) = (name.key(CLAIM), phase.name());
                match warning {
                    true => tracing::warn!(claim = %name, machine = id, phase, reason, "{key}: {note}"),
                    false => tracing::info!(claim = %name, machine = id, phase, reason, "{key}: {note}"),
                }
                match weight {
                    Weight::Step => Vec::new(),
                    _ => vec![unlogged(key, uid, warning, &reason, note)],
                }
            }
            Notice::Ended { name, uid, end } => {
                let (reason, why) = match end {
                    End::Stopped => ("MachineStopped", "its machine has stopped"),
                    End::Expired => ("Expired", "its ttl is over"),
                    End::TooOld => ("MaxLifetimeReached", "the maximum lifetime of its machine is over"),
                    End::Drained => ("Drained", "it was drained"),
                    End::Runner(why) => (fleet::machine::ended_reason(why), why.message()),
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
            Notice::Operation { cluster, claim, machine, node, operation, took, failure } => {
                Step { cluster: &cluster, claim: claim.as_ref(), machine: machine.as_ref(), node: node.as_deref() }
                    .log(operation, took, failure.as_ref());
                Vec::new()
            }
            // Metrics show it.
            Notice::Machines { .. } => Vec::new(),
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
            Notice::Forge { pool, uid, reason, message, .. } => {
                if weight == Weight::Step {
                    tracing::info!("{}: {message}", pool.key(POOL));
                    return Vec::new();
                }
                vec![event(pool.key(POOL), uid, warning, reason, message)]
            }
            Notice::ForgeFailed { what, message } => {
                reported.warn(&format!("forge {what}"), format!("the fleet could not {what}: {message}; trying again"))
            }
            Notice::GuestEnded { claim, is_expected: true, message, .. } => {
                tracing::info!("{}: its guest has ended: {message}", claim.key(CLAIM));
                Vec::new()
            }
            Notice::GuestEnded { claim, uid, reason, message, .. } => {
                vec![event(claim.key(CLAIM), uid, warning, reason, message)]
            }
            Notice::TokenReused { claim, uid } => {
                let note = "the bootstrap token of its machine was presented by somebody else, too, and refused: one of them has \
                            stolen it; look for who has read its cloud-init data, and delete the claim";
                vec![event(claim.key(CLAIM), uid, warning, "TokenReused", note.to_owned())]
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
            Notice::Unrecorded { cluster, machine, name } => {
                let note = format!(
                    "machine {} ({name}) has the tag or the resource pool of the fleet and no owner record, so that it is left alone: restore the \
                     record in its notes, take the tag away, or delete it",
                    machine.0
                );
                let uid = reported.clusters.get(&cluster).cloned().unwrap_or_default();
                vec![event(cluster.key(CLUSTER), uid, warning, "OwnerRecordMissing", note)]
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
            Notice::Job(milestone) => {
                match *milestone {
                    Milestone::Noticed(_) => {}
                    Milestone::Started { key, repository, pool, queued, .. } => tracing::info!(
                        "job {key} of {repository} was started on a machine of pool {pool} after {:.1} s",
                        queued.as_secs_f64()
                    ),
                    Milestone::Ended { key, repository, pool, conclusion } => {
                        tracing::info!("job {key} of {repository} has ended on a machine of pool {pool}: {conclusion}");
                    }
                }
                Vec::new()
            }
            Notice::JobFigures(_) => Vec::new(),
            Notice::OrphanRunner { pool, uid, owner, id } => {
                let note =
                    format!("runner {id} of {owner} was registered by this fleet and has no claim: it is removed");
                vec![event(pool.key(POOL), uid, warning, "OrphanRunner", note)]
            }
            Notice::RunnerVersion { pool, uid, news } => {
                vec![event(pool.key(POOL), uid, warning, news.reason(), news.to_string())]
            }
            Notice::RunnerVersionTrouble { pool, uid, warning: trouble } => {
                vec![event(pool.key(POOL), uid, warning, trouble.reason(), trouble.to_string())]
            }
            Notice::WebhooksRedelivered { pool, uid, asked, given_up } => {
                let mut note = format!("{asked} deliveries of the webhook failed and are made again");
                if given_up > 0 {
                    note = format!("{note}; {given_up} failed too often or are too old, and are left to polls");
                }
                vec![event(pool.key(POOL), uid, warning, "WebhooksRedelivered", note)]
            }
            Notice::QueueNotWritten(why) => {
                let queue = api::fleet::QUEUE;
                let line = format!(
                    "could not write ConfigMap {queue}: {why}; virtpilot queue shows what it had before; trying again"
                );
                reported.warn(queue, line)
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
        self.last += 1;
        if self.lines.get(subject).is_none_or(|(_, known)| *known != line) {
            tracing::warn!("{line}");
        }
        self.lines.insert(subject.to_owned(), (self.last, line));
        if self.lines.len() > SUBJECTS
            && let Some(oldest) = self.lines.iter().min_by_key(|(_, (at, _))| *at).map(|(subject, _)| subject.clone())
        {
            self.lines.remove(&oldest);
        }
        Vec::new()
    }
}

/// What an operation was about.
struct Step<'a> {
    cluster: &'a Name,
    claim: Option<&'a Name>,
    machine: Option<&'a MachineId>,
    node: Option<&'a str>,
}

/// The steps that change a machine. Others are asked for every few seconds, and what fails again and again is reported as the state of its object.
const CHANGES: [&str; 4] = ["create", "configure", "start", "destroy"];

impl Step<'_> {
    fn log(&self, step: &'static str, took: Duration, failure: Option<&(FailureClass, String)>) {
        let Step { cluster, node, .. } = self;
        let of = self.claim.map(|claim| format!(" for MachineClaim {claim}")).unwrap_or_default();
        let (claim, machine) = (self.claim.map(tracing::field::display), self.machine.map(|id| id.0.as_str()));
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        // The fields of a line have to be spelled out where its level is.
        macro_rules! line {
            ($level:ident, $($end:tt)+) => {
                tracing::$level!(%cluster, claim, machine, node, step, duration_ms, $($end)+)
            };
        }
        match failure {
            Some((class, message)) => {
                line!(debug, class = ?class, "{step} on {cluster}{of} failed after {duration_ms} ms ({class:?}): {message}");
            }
            None if CHANGES.contains(&step) => line!(info, "{step} on {cluster}{of}: done after {duration_ms} ms"),
            None => line!(debug, "{step} on {cluster}{of}: done after {duration_ms} ms"),
        }
    }
}

fn event(key: Key, uid: String, warning: bool, reason: &str, note: String) -> Event {
    match warning {
        true => tracing::warn!(reason, object = %key, "{key}: {note}"),
        false => tracing::info!(reason, object = %key, "{key}: {note}"),
    }
    unlogged(key, uid, warning, reason, note)
}

fn unlogged(key: Key, uid: String, warning: bool, reason: &str, note: String) -> Event {
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
    use serde_json::json;
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
        let list = Notice::Operation {
            cluster: name("pve"),
            claim: None,
            machine: None,
            node: None,
            operation: "list",
            took: Duration::ZERO,
            failure,
        };
        assert!(published(&journal, list).is_empty(), "the state of its object says it");
    }

    /// Subjects come and go for as long as the process runs.
    #[test]
    fn only_the_last_subjects_of_log_lines_are_remembered() {
        let journal = FleetJournal::new(Arc::new(Metrics::new("")));
        let seed = |number: usize| Notice::Unreadable {
            kind: "MachineClaim".into(),
            name: name(&format!("c-{number}")),
            why: "no".into(),
        };
        for number in 0..3 * super::SUBJECTS {
            journal.record(seed(number));
            // One that is reported again and again stays known.
            journal.record(seed(0));
        }
        let reported = journal.reported.lock().unwrap();
        assert_eq!(reported.lines.len(), super::SUBJECTS);
        assert!(
            reported.lines.contains_key("MachineClaim ci/c-0") && !reported.lines.contains_key("MachineClaim ci/c-1")
        );
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What is logged of a notice, and the level.
    fn logged(notice: Notice) -> serde_json::Value {
        let (lines, journal) = (Lines::default(), FleetJournal::new(Arc::new(Metrics::new(""))));
        let writer = lines.clone();
        let log = tracing_subscriber::fmt().json().flatten_event(true).with_max_level(tracing::Level::DEBUG);
        tracing::subscriber::with_default(log.with_writer(move || writer.clone()).finish(), || journal.record(notice));
        let mut line: serde_json::Value = serde_json::from_slice(&lines.0.lock().unwrap()).unwrap();
        for field in ["timestamp", "target", "message"] {
            assert!(line.as_object_mut().unwrap().remove(field).is_some(), "{line}");
        }
        line
    }

    #[test]
    fn a_step_is_logged_with_its_claim_machine_node_and_duration_as_fields() {
        let step = |operation, failure| Notice::Operation {
            cluster: name("pve"),
            claim: Some(name("one")),
            machine: Some(MachineId("100".into())),
            node: Some("pve2".into()),
            operation,
            took: Duration::from_millis(1_500),
            failure,
        };
        let fields = |level: &str, step: &str| {
            json!({
                "level": level, "cluster": "ci/pve", "claim": "ci/one", "machine": "100", "node": "pve2", "step": step, "duration_ms": 1_500,
            })
        };
        for (operation, level) in [("create", "INFO"), ("start", "INFO"), ("destroy", "INFO"), ("addresses", "DEBUG")] {
            assert_eq!(logged(step(operation, None)), fields(level, operation));
        }
        let mut failed = fields("DEBUG", "create");
        failed["class"] = json!("Transient");
        assert_eq!(logged(step("create", Some((FailureClass::Transient, "no answer".into())))), failed);
        let phase =
            json!({"level": "INFO", "claim": "ci/one", "machine": "100", "phase": "Provisioning", "reason": "Cloning"});
        assert_eq!(logged(claim(ClaimPhase::Provisioning, "Cloning", "creating machine 100")), phase);
    }

    #[test]
    fn runner_versions_and_runners_without_a_claim_are_events_about_their_pool_as_the_reference_says() {
        use fleet::versions::{News, NoVersion, Version, Warning};
        let journal = FleetJournal::new(Arc::new(Metrics::new("")));
        let (version, refused) = (Version::new(2, 331, 0), "2026-12-01T00:00:00Z".parse().unwrap());
        let news = |news: News| Notice::RunnerVersion { pool: name("linux"), uid: "p".into(), news };
        let trouble = |warning: Warning| Notice::RunnerVersionTrouble { pool: name("linux"), uid: "p".into(), warning };
        for (notice, start) in [
            (news(News::CanaryStarted(version)), "Normal RunnerVersionCanary: runner version 2.331.0 is tried"),
            (news(News::Promoted(version)), "Normal RunnerVersionPromoted: runner version 2.331.0 is for all"),
            (
                news(News::RolledBack(version, "why".into())),
                "Warning RunnerVersionRolledBack: runner version 2.331.0 is not",
            ),
            (
                trouble(Warning::Ageing { version, refused }),
                "Warning RunnerVersionAgeing: GitHub gives runners of version",
            ),
            (trouble(Warning::Refused { version }), "Warning RunnerVersionRefused: GitHub refuses"),
            (trouble(Warning::NoVersion(NoVersion::NotKnown)), "Warning NoRunnerVersion: GitHub has not said"),
            (
                Notice::OrphanRunner { pool: name("linux"), uid: "p".into(), owner: "acme".into(), id: 7 },
                "Warning OrphanRunner: runner 7 of acme was registered by this fleet",
            ),
            (
                Notice::WebhooksRedelivered { pool: name("linux"), uid: "p".into(), asked: 3, given_up: 1 },
                "Normal WebhooksRedelivered: 3 deliveries of the webhook failed and are made again; 1 failed too often",
            ),
        ] {
            let events = published(&journal, notice);
            assert!(events[0].starts_with(&format!("RunnerPool ci/linux p {start}")), "{events:?}");
            let (kind, rest) = events[0].trim_start_matches("RunnerPool ci/linux p ").split_once(' ').unwrap();
            let reason = rest.split(':').next().unwrap();
            let row = api::reference::FLEET_EVENTS.iter().find(|row| row.name == reason);
            assert_eq!(row.map(|row| row.warning), Some(kind == "Warning"), "{reason}");
        }
    }
}
