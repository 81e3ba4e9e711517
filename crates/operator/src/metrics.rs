//! The Prometheus metrics; their names and labels are in `api::metric`.

mod fleet;
mod history;
mod profiles;
mod rollouts;

use api::metric::{self, Metric};
use autopilot::{Cause, Notice, ObjectNotice, State};
use catalog::Need;
use change::reason::Compliance;
use change::{Key, Kind, Reason};
use fleet::Fleet;
use history::History;
use profiles::Profiles;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric as Registered, Registry};
use protocol::{WatchEvent, WatchTarget};
use rollouts::Rollouts;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// The labels of an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Object {
    kind: String,
    name: String,
    namespace: String,
}

impl Object {
    fn of(key: &Key) -> Object {
        Object { kind: key.kind.kind.clone(), name: key.name.clone(), namespace: key.namespace.clone() }
    }
}

/// The labels of an object that waits or is held.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Held {
    #[prometheus(flatten)]
    object: Object,
    reason: &'static str,
}

/// The labels of a kind that assets need.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Dependency {
    group: String,
    version: String,
    kind: String,
}

impl Dependency {
    fn of(need: &Need) -> Dependency {
        let Kind { group, version, kind } = need.labels();
        Dependency { group, version, kind }
    }
}

/// The labels of a build.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
    commit: &'static str,
    catalogue: String,
}

/// What waits, counted.
struct Waiting {
    reason: &'static str,
    count: Gauge,
}

/// All metrics.
pub(crate) struct Metrics {
    registry: Registry,
    compliance: Family<Object, Gauge>,
    paused: Family<Object, Gauge>,
    held: Family<Held, Gauge>,
    /// Why each object is held, as shown.
    reasons: Mutex<HashMap<Object, &'static str>>,
    history: History,
    tombstones: Family<Object, Gauge>,
    missing: Family<Dependency, Gauge>,
    waiting: [Waiting; 3],
    rollouts: Rollouts,
    profiles: Profiles,
    leader: Gauge,
    /// Those of the fleet, if it runs in this process.
    fleet: Option<Fleet>,
    /// Whether anything but the fleet runs in this process.
    is_of_platform: bool,
}

/// Registers a metric with the name and the text of the table.
fn register<M: Registered + Clone>(registry: &mut Registry, metric: &Metric, value: M) -> M {
    registry.register(metric.registered(), metric.help, value.clone());
    value
}

impl Metrics {
    /// The metrics of an operator with this asset pack.
    pub(crate) fn new(catalogue: &str) -> Metrics {
        let mut all = Registry::with_prefix(metric::PREFIX);
        let registry = &mut all;
        let waiting = [
            ("ApprovalRequired", metric::PENDING_APPROVALS),
            ("WindowClosed", metric::WAITING_FOR_WINDOW),
            ("PoolNotReady", metric::WAITING_FOR_POOL),
        ];
        let waiting =
            waiting.map(|(reason, metric)| Waiting { reason, count: register(registry, &metric, Gauge::default()) });
        let build = register(registry, &metric::BUILD_INFO, Family::<Build, Gauge>::default());
        let (version, commit) = (env!("CARGO_PKG_VERSION"), env!("VIRTPILOT_COMMIT"));
        build.get_or_create_owned(&Build { version, commit, catalogue: catalogue.to_owned() }).set(1);
        Metrics {
            compliance: register(registry, &metric::COMPLIANCE_STATUS, Family::default()),
            paused: register(registry, &metric::PAUSED_RESOURCES, Family::default()),
            held: register(registry, &metric::HELD_RESOURCES, Family::default()),
            reasons: Mutex::default(),
            history: History::register(registry),
            tombstones: register(registry, &metric::TOMBSTONE_STATUS, Family::default()),
            missing: register(registry, &metric::MISSING_DEPENDENCY, Family::default()),
            waiting,
            rollouts: Rollouts::register(registry),
            leader: register(registry, &metric::LEADER, Gauge::default()),
            profiles: Profiles::default(),
            fleet: None,
            is_of_platform: true,
            registry: all,
        }
    }

    /// The metrics of a process in which the fleet runs: alone, or beside the autopilot or the advisor.
    pub(crate) fn with_fleet(mut self, is_alone: bool) -> Metrics {
        (self.fleet, self.is_of_platform) = (Some(Fleet::new()), !is_alone);
        self
    }

    /// Shows that this replica leads.
    pub(crate) fn leads(&self) {
        self.leader.set(1);
    }

    /// Whether it does.
    pub(crate) fn is_leader(&self) -> bool {
        self.leader.get() == 1
    }

    /// Updates the metrics of a profile.
    pub(crate) fn record_profile(&self, notice: &advisor::Notice) {
        self.profiles.record(notice);
    }

    /// Shows that this replica of the fleet leads.
    pub(crate) fn fleet_leads(&self) {
        self.fleet.iter().for_each(Fleet::leads);
    }

    /// Counts a request to a hypervisor.
    pub(crate) fn exchanged(&self, exchange: &hypervisor::Exchange) {
        self.fleet.iter().for_each(|fleet| fleet.exchanged(exchange));
    }

    /// Counts a request to one of the servers of the fleet.
    pub(crate) fn fleet_request(&self, server: &'static str, result: &'static str) {
        self.fleet.iter().for_each(|fleet| fleet.requested(server, result));
    }

    /// Updates the metrics of an object of the fleet.
    pub(crate) fn observe_fleet(&self, target: &WatchTarget, event: &WatchEvent) {
        self.fleet.iter().for_each(|fleet| fleet.observe(target, event));
    }

    /// Updates what happened in the fleet.
    pub(crate) fn record_fleet(&self, notice: &::fleet::Notice) {
        self.fleet.iter().for_each(|fleet| fleet.record(notice));
    }

    /// Updates the metrics of the object or dependency of a notice.
    pub(crate) fn record(&self, notice: &Notice) {
        match notice {
            Notice::State(key, state) => self.show(&Object::of(key), state),
            Notice::Object(key, ObjectNotice::Held(Reason::Fighting { .. }), _) => {
                self.history.fought(&Object::of(key));
            }
            Notice::Object(key, ObjectNotice::Corrected { actors, .. }, _) => {
                self.history.corrected(&Object::of(key), actors);
            }
            Notice::Object(key, ObjectNotice::Recreated { .. }, _) => self.history.corrected(&Object::of(key), &[]),
            Notice::Overridden(key, overrides) => self.history.overridden(&Object::of(key), overrides),
            Notice::Answered { key, took, is_error } => self.history.answered(&Object::of(key), *took, *is_error),
            Notice::Missing(need, _) => {
                self.missing.get_or_create_owned(&Dependency::of(need)).set(1);
            }
            Notice::Served(need, _) | Notice::NotNeeded(need) => {
                self.missing.remove(&Dependency::of(need));
            }
            Notice::Rollout { rollout, .. } => self.rollouts.show(rollout),
            Notice::PoolGone(pool) => self.rollouts.forget(pool),
            Notice::NodeRestarted { pool, .. } => self.rollouts.restarted(pool),
            _ => {}
        }
    }

    fn show(&self, object: &Object, state: &State) {
        match state {
            State::InSync => {
                self.hold(object, None);
                self.compliance.get_or_create_owned(object).set(1);
                self.paused.get_or_create_owned(object).set(0);
            }
            State::Failed => {
                self.compliance.get_or_create_owned(object).set(0);
            }
            State::Held(reason) => {
                self.hold(object, (reason.compliance() == Compliance::Waiting).then(|| reason.name()));
                self.paused
                    .get_or_create_owned(object)
                    .set(i64::from(matches!(reason, Reason::Paused | Reason::PauseUnclear { .. })));
                match reason.compliance() {
                    Compliance::Failed => {
                        self.compliance.get_or_create_owned(object).set(0);
                    }
                    Compliance::Waiting | Compliance::Exempt => {
                        self.compliance.remove(object);
                    }
                }
            }
            State::RemovalHeld(cause, reason) => {
                self.forget(object);
                self.hold(object, (reason.compliance() == Compliance::Waiting).then(|| reason.name()));
                if *cause == Cause::Tombstone {
                    self.tombstones.get_or_create_owned(object).set(match reason {
                        Reason::LeftBehind { .. } | Reason::Unmanaged | Reason::Excluded | Reason::Governed { .. } => {
                            -2
                        }
                        Reason::DeletionStuck { .. } => -1,
                        _ => 1,
                    });
                }
            }
            State::TombstonePresent => {
                self.tombstones.get_or_create_owned(object).set(1);
            }
            State::TombstoneFailed => {
                self.tombstones.get_or_create_owned(object).set(-1);
            }
            State::TombstoneAbsent => {
                self.tombstones.get_or_create_owned(object).set(0);
            }
            State::Forgotten => {
                self.forget(object);
                self.history.forget(object);
            }
        }
    }

    /// Shows why an object is held, or that it is not.
    fn hold(&self, object: &Object, reason: Option<&'static str>) {
        let mut reasons = self.reasons.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(reason) = reasons.remove(object) {
            self.held.remove(&Held { object: object.clone(), reason });
        }
        if let Some(reason) = reason {
            reasons.insert(object.clone(), reason);
            self.held.get_or_create_owned(&Held { object: object.clone(), reason }).set(1);
        }
        for Waiting { reason, count } in &self.waiting {
            let waiting = reasons.values().filter(|held| *held == reason).count();
            count.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        }
    }

    fn forget(&self, object: &Object) {
        self.hold(object, None);
        self.compliance.remove(object);
        self.paused.remove(object);
    }

    /// The metrics in the Prometheus text format.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if self.is_of_platform {
            // Writing to a string cannot fail.
            let _ = encode(&mut text, &self.registry);
        }
        for part in self.profiles.text().into_iter().chain(self.fleet.as_ref().map(Fleet::text)) {
            // Each ends with a line that says so; only the last one may.
            text.truncate(text.trim_end().trim_end_matches("# EOF").len());
            text.push_str(&part);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Metrics;
    use api::metric::Form;
    use autopilot::{Notice, ObjectNotice, OverrideKind, Rollout, RolloutState, State};
    use catalog::Need;
    use change::{Key, Kind, Reason};
    use std::time::Duration;

    #[test]
    fn names_and_labels_are_the_predecessors() {
        let key = Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        let metrics = Metrics::new("sha256:1");
        let show = |state: State| metrics.record(&Notice::State(key.clone(), state));
        show(State::InSync);
        let fighting = Reason::Fighting { actors: Vec::new(), fields: Vec::new() };
        metrics.record(&Notice::Object(key.clone(), ObjectNotice::Held(fighting), None));
        let labels = "{kind=\"Service\",name=\"s\",namespace=\"n\"}";
        for line in ["compliance_status{} 1", "paused_resources{} 0", "thrashing_total{} 1"] {
            let line = format!("kubevirt_autopilot_{}", line.replace("{}", labels));
            assert!(metrics.text().contains(&line), "{line}\n{}", metrics.text());
        }
        let need = Need::of(&Kind::new("g.io/v1", "K"));
        let line = "kubevirt_autopilot_missing_dependency{group=\"g.io\",version=\"v1\",kind=\"K\"} 1";
        metrics.record(&Notice::Missing(need.clone(), Vec::new()));
        assert!(metrics.text().contains(line), "{}", metrics.text());
        metrics.record(&Notice::Served(need, Vec::new()));
        assert!(!metrics.text().contains(line), "it is served now");
        show(State::Held(Reason::Unmanaged));
        assert!(!metrics.text().contains("compliance_status{"), "an unmanaged object has no compliance");
        show(State::Held(Reason::Paused));
        assert!(metrics.text().contains(&format!("kubevirt_autopilot_paused_resources{labels} 1")));
    }

    #[test]
    fn a_fleet_alone_exports_nothing_of_the_platform_and_the_text_ends_once() {
        let (alone, both) = (Metrics::new("x").with_fleet(true).text(), Metrics::new("x").with_fleet(false).text());
        assert!(alone.contains("virtpilot_fleet_leader 0") && !alone.contains("kubevirt_autopilot"), "{alone}");
        assert!(both.contains("virtpilot_fleet_leader 0") && both.contains("kubevirt_autopilot_leader 0"), "{both}");
        for text in [alone, both, Metrics::new("x").text()] {
            assert!(text.ends_with("# EOF\n") && text.matches("# EOF").count() == 1, "{text}");
        }
        assert!(!Metrics::new("x").text().contains("virtpilot_fleet"));
    }

    #[test]
    fn every_metric_of_the_table_is_exported_with_its_labels() {
        let key = Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        let metrics = Metrics::new("sha256:1");
        metrics.record(&Notice::State(key.clone(), State::InSync));
        metrics.record(&Notice::Missing(Need::of(&key.kind), Vec::new()));
        let (fighting, corrected) = (
            ObjectNotice::Held(Reason::Fighting { actors: Vec::new(), fields: Vec::new() }),
            ObjectNotice::Corrected {
                actors: vec!["them".into()],
                fields: Vec::new(),
                values: change::Corrections::default(),
            },
        );
        metrics.record(&Notice::Object(key.clone(), fighting, None));
        metrics.record(&Notice::Object(key.clone(), corrected, None));
        metrics.record(&Notice::Overridden(key.clone(), vec![OverrideKind::Patch, OverrideKind::Unmanaged]));
        metrics.record(&Notice::Answered { key: key.clone(), took: Duration::from_millis(70), is_error: true });
        let rollout = Rollout { pool: "worker".into(), state: RolloutState::Done, updated: 1, machines: 1 };
        metrics.record(&Notice::Rollout { rollout, before: None });
        metrics.record(&Notice::NodeRestarted { node: "w0".into(), pool: "worker".into() });
        let other = Key { name: "held".into(), ..key.clone() };
        metrics.record(&Notice::State(other.clone(), State::TombstonePresent));
        metrics.record(&Notice::State(other.clone(), State::Held(Reason::Paused)));
        let text = metrics.text();
        for metric in api::metric::ALL {
            let name = format!("{}{{", metric.full_name());
            let line = text.lines().find(|line| match metric.form {
                Form::Histogram => line.starts_with(&format!("{}_count{{", metric.full_name())),
                _ if metric.labels.is_empty() => line.starts_with(&format!("{} ", metric.full_name())),
                _ => line.starts_with(&name),
            });
            let line = line.unwrap_or_else(|| panic!("{metric:?}\n{text}"));
            for label in metric.labels {
                assert!(line.contains(&format!("{label}=\"")), "{label}: {line}");
            }
            assert_eq!(line.matches("=\"").count(), metric.labels.len(), "{line}");
        }
        assert!(text.contains("manager=\"them\"") && text.contains("le=\"0.1\""), "{text}");
        metrics.record(&Notice::Overridden(key.clone(), vec![OverrideKind::Patch]));
        assert!(!metrics.text().contains("type=\"unmanaged\""), "{}", metrics.text());
        metrics.record(&Notice::State(key, State::Forgotten));
        assert!(!metrics.text().contains("name=\"s\""), "{}", metrics.text());
    }

    #[test]
    fn waiting_is_no_failure_and_a_failed_tombstone_is_one() {
        let key = Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        let metrics = Metrics::new("sha256:1");
        let show = |state: State| {
            metrics.record(&Notice::State(key.clone(), state));
            metrics.text()
        };
        let object = "{kind=\"Service\",name=\"s\",namespace=\"n\"";
        let held = |reason: &str| format!("kubevirt_autopilot_held_resources{object},reason=\"{reason}\"}} 1");
        let text = show(State::Held(Reason::WindowClosed { opens: None, restarts: Box::default() }));
        assert!(text.contains(&held("WindowClosed")) && !text.contains("compliance_status{"), "{text}");
        assert!(text.contains("waiting_for_window 1") && text.contains("pending_approvals 0"), "{text}");
        let text = show(State::Held(Reason::Paused));
        assert!(text.contains(&held("Paused")) && !text.contains("WindowClosed"), "{text}");
        assert!(text.contains("waiting_for_window 0"), "{text}");
        let text = show(State::Held(Reason::WriteFailed { message: "x".into() }));
        assert!(
            text.contains(&format!("compliance_status{object}}} 0")) && !text.contains("held_resources{"),
            "{text}"
        );
        assert!(show(State::TombstoneFailed).contains(&format!("tombstone_status{object}}} -1")));
    }

    #[test]
    fn the_rollout_of_a_pool_is_followed_and_restarts_are_counted() {
        let metrics = Metrics::new("sha256:1");
        let (state, updated, machines) = (RolloutState::Degraded, 1, 3);
        let rollout = Rollout { pool: "worker".into(), state, updated, machines };
        metrics.record(&Notice::Rollout { rollout, before: None });
        metrics.record(&Notice::NodeRestarted { node: "w0".into(), pool: "worker".into() });
        for line in ["pool_machines{} 3", "pool_updated_machines{} 1", "pool_degraded{} 1", "node_restarts_total{} 1"] {
            let line = format!("kubevirt_autopilot_{}", line.replace("{}", "{pool=\"worker\"}"));
            assert!(metrics.text().contains(&line), "{line}\n{}", metrics.text());
        }
        metrics.record(&Notice::PoolGone("worker".into()));
        assert!(!metrics.text().contains("pool_machines{") && metrics.text().contains("node_restarts_total{"));
    }
}
