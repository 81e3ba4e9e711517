//! The Prometheus metrics; names and labels are the predecessor's.

use autopilot::{Cause, Notice, ObjectNotice, Rollout, RolloutState, State};
use catalog::Need;
use change::reason::Compliance;
use change::{Key, Kind, Reason};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
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

/// The label of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PoolName {
    pool: String,
}

/// What waits, counted.
struct Waiting {
    reason: &'static str,
    count: Gauge,
}

/// The rollouts of pools.
#[derive(Default)]
struct Rollouts {
    machines: Family<PoolName, Gauge>,
    updated: Family<PoolName, Gauge>,
    degraded: Family<PoolName, Gauge>,
    restarts: Family<PoolName, Counter>,
}

impl Rollouts {
    fn register(registry: &mut Registry) -> Rollouts {
        let rollouts = Rollouts::default();
        registry.register("pool_machines", "Number of machines of the pool", rollouts.machines.clone());
        let help = "Number of machines of the pool that run its configuration";
        registry.register("pool_updated_machines", help, rollouts.updated.clone());
        registry.register("pool_degraded", "1 if the pool is degraded, 0 if not", rollouts.degraded.clone());
        let help = "Number of restarts of nodes of the pool that were seen";
        registry.register("node_restarts", help, rollouts.restarts.clone());
        rollouts
    }

    fn show(&self, rollout: &Rollout) {
        let pool = PoolName { pool: rollout.pool.clone() };
        self.machines.get_or_create_owned(&pool).set(rollout.machines);
        self.updated.get_or_create_owned(&pool).set(rollout.updated);
        self.degraded.get_or_create_owned(&pool).set(i64::from(rollout.state == RolloutState::Degraded));
    }

    fn forget(&self, pool: &str) {
        let pool = PoolName { pool: pool.to_owned() };
        for family in [&self.machines, &self.updated, &self.degraded] {
            family.remove(&pool);
        }
    }
}

/// All metrics.
pub(crate) struct Metrics {
    registry: Registry,
    compliance: Family<Object, Gauge>,
    paused: Family<Object, Gauge>,
    held: Family<Held, Gauge>,
    /// Why each object is held, as shown.
    reasons: Mutex<HashMap<Object, &'static str>>,
    thrashing: Family<Object, Counter>,
    tombstones: Family<Object, Gauge>,
    missing: Family<Dependency, Gauge>,
    waiting: [Waiting; 3],
    rollouts: Rollouts,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("kubevirt_autopilot");
        let (compliance, paused, thrashing) = (Family::default(), Family::default(), Family::default());
        let missing = Family::default();
        let help = "1 if a requested asset needs this kind and the cluster does not serve it";
        registry.register("missing_dependency", help, missing.clone());
        registry.register(
            "compliance_status",
            "1 if the object is in sync, 0 if it failed; absent while it waits or is held",
            compliance.clone(),
        );
        registry.register("paused_resources", "1 if reconciliation of the object is paused, 0 if not", paused.clone());
        let held = Family::default();
        let help = "1 if the object waits or is held for this reason, such as ApprovalRequired";
        registry.register("held_resources", help, held.clone());
        // The library adds _total.
        registry.register(
            "thrashing",
            "Number of times the object was paused because another writer keeps changing it",
            thrashing.clone(),
        );
        let tombstones = Family::default();
        registry.register(
            "tombstone_status",
            "0 if the object is gone, 1 if it still exists, -1 if its deletion failed or is stuck, -2 if it may not be deleted",
            tombstones.clone(),
        );
        let waiting = [
            ("ApprovalRequired", "waiting_for_approval", "Number of objects whose write waits for an approval"),
            ("WindowClosed", "waiting_for_window", "Number of objects whose write waits for a maintenance window"),
            ("PoolNotReady", "waiting_for_pool", "Number of objects whose write waits until its pool is healthy"),
        ];
        let waiting = waiting.map(|(reason, name, help)| {
            let count = Gauge::default();
            registry.register(name, help, count.clone());
            Waiting { reason, count }
        });
        let rollouts = Rollouts::register(&mut registry);
        Metrics {
            registry,
            compliance,
            paused,
            held,
            reasons: Mutex::default(),
            thrashing,
            tombstones,
            missing,
            waiting,
            rollouts,
        }
    }

    /// Updates the metrics of the object or dependency of a notice.
    pub(super) fn record(&self, notice: &Notice) {
        match notice {
            Notice::State(key, state) => self.show(&Object::of(key), state),
            Notice::Object(key, ObjectNotice::Held(Reason::Fighting { .. })) => {
                self.thrashing.get_or_create_owned(&Object::of(key)).inc();
            }
            Notice::Missing(need, _) => {
                self.missing.get_or_create_owned(&Dependency::of(need)).set(1);
            }
            Notice::Served(need, _) | Notice::NotNeeded(need) => {
                self.missing.remove(&Dependency::of(need));
            }
            Notice::Rollout { rollout, .. } => self.rollouts.show(rollout),
            Notice::PoolGone(pool) => self.rollouts.forget(pool),
            Notice::NodeRestarted { pool, .. } => {
                self.rollouts.restarts.get_or_create_owned(&PoolName { pool: pool.clone() }).inc();
            }
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
                        Reason::LeftBehind { .. } | Reason::Unmanaged | Reason::Excluded => -2,
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
            State::Forgotten => self.forget(object),
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
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

#[cfg(test)]
mod tests {
    use super::Metrics;
    use autopilot::{Notice, ObjectNotice, Rollout, RolloutState, State};
    use catalog::Need;
    use change::{Key, Kind, Reason};

    #[test]
    fn names_and_labels_are_the_predecessors() {
        let key = Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        let metrics = Metrics::new();
        let show = |state: State| metrics.record(&Notice::State(key.clone(), state));
        show(State::InSync);
        let fighting = Reason::Fighting { actors: Vec::new(), fields: Vec::new() };
        metrics.record(&Notice::Object(key.clone(), ObjectNotice::Held(fighting)));
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
    fn waiting_is_no_failure_and_a_failed_tombstone_is_one() {
        let key = Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        let metrics = Metrics::new();
        let show = |state: State| {
            metrics.record(&Notice::State(key.clone(), state));
            metrics.text()
        };
        let object = "{kind=\"Service\",name=\"s\",namespace=\"n\"";
        let held = |reason: &str| format!("kubevirt_autopilot_held_resources{object},reason=\"{reason}\"}} 1");
        let text = show(State::Held(Reason::WindowClosed { opens: None, restarts: change::Restarts::default() }));
        assert!(text.contains(&held("WindowClosed")) && !text.contains("compliance_status{"), "{text}");
        assert!(text.contains("waiting_for_window 1") && text.contains("waiting_for_approval 0"), "{text}");
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
        let metrics = Metrics::new();
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
