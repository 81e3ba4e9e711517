//! What a Prometheus scrapes; names and labels are the predecessor's.

use autopilot::Cause;
use catalog::Need;
use change::{Key, Kind, Reason};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// One object.
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

/// A kind that assets need.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Dependency {
    group: String,
    version: String,
    kind: String,
}

/// All metrics.
pub(crate) struct Metrics {
    registry: Registry,
    compliance: Family<Object, Gauge>,
    paused: Family<Object, Gauge>,
    thrashing: Family<Object, Counter>,
    tombstones: Family<Object, Gauge>,
    missing: Family<Dependency, Gauge>,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut registry = Registry::with_prefix("kubevirt_autopilot");
        let (compliance, paused, thrashing) = (Family::default(), Family::default(), Family::default());
        let missing = Family::default();
        let words = "1 somebody asked for what needs it, and the cluster does not serve it";
        registry.register("missing_dependency", words, missing.clone());
        registry.register("compliance_status", "1 as it should be, 0 not", compliance.clone());
        registry.register("paused_resources", "1 paused, 0 not", paused.clone());
        // The library adds _total.
        registry.register("thrashing", "Fights over an object that ended in a pause", thrashing.clone());
        let tombstones = Family::default();
        registry.register(
            "tombstone_status",
            "0 gone, 1 still there, -1 stuck, -2 not ours to delete",
            tombstones.clone(),
        );
        Metrics { registry, compliance, paused, thrashing, tombstones, missing }
    }

    /// The object is as it should be.
    pub(crate) fn kept(&self, key: &Key) {
        self.compliance.get_or_create_owned(&Object::of(key)).set(1);
        self.paused.get_or_create_owned(&Object::of(key)).set(0);
    }

    /// The object could not be written.
    pub(crate) fn failed(&self, key: &Key) {
        self.compliance.get_or_create_owned(&Object::of(key)).set(0);
    }

    /// The object is held; what the user took out of our hands has no compliance.
    pub(crate) fn held(&self, key: &Key, reason: &Reason) {
        let object = Object::of(key);
        self.paused.get_or_create_owned(&object).set(i64::from(*reason == Reason::Paused));
        if matches!(reason, Reason::Unmanaged | Reason::Excluded) {
            self.compliance.remove(&object);
        } else {
            self.compliance.get_or_create_owned(&object).set(0);
        }
    }

    /// What is left of an object of a former release.
    pub(crate) fn tombstone(&self, key: &Key, status: i64) {
        self.tombstones.get_or_create_owned(&Object::of(key)).set(status);
    }

    /// The object is not wanted, and cannot go.
    pub(crate) fn kept_back(&self, key: &Key, cause: Cause, reason: &Reason) {
        self.forget(key);
        if cause == Cause::Tombstone {
            self.tombstone(
                key,
                match reason {
                    Reason::LeftBehind { .. } | Reason::Unmanaged | Reason::Excluded => -2,
                    Reason::DeletionStuck { .. } => -1,
                    _ => 1,
                },
            );
        }
    }

    /// A fight ended in a pause.
    pub(crate) fn fought(&self, key: &Key) {
        self.thrashing.get_or_create_owned(&Object::of(key)).inc();
    }

    /// Somebody asked for what needs this, and the cluster does not serve it; or not any more.
    pub(crate) fn missing(&self, need: &Need, is_missing: bool) {
        let Kind { group, version, kind } = need.labels();
        let dependency = Dependency { group, version, kind };
        if is_missing {
            self.missing.get_or_create_owned(&dependency).set(1);
        } else {
            self.missing.remove(&dependency);
        }
    }

    /// The object is none of ours any more.
    pub(crate) fn forget(&self, key: &Key) {
        self.compliance.remove(&Object::of(key));
        self.paused.remove(&Object::of(key));
    }

    /// As text for a scrape.
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
    use catalog::Need;
    use change::{Key, Kind, Reason};

    #[test]
    fn names_and_labels_are_the_predecessors() {
        let key = Key { kind: Kind::new("v1", "Service"), namespace: "n".into(), name: "s".into() };
        let metrics = Metrics::new();
        metrics.kept(&key);
        metrics.fought(&key);
        let labels = "{kind=\"Service\",name=\"s\",namespace=\"n\"}";
        for line in ["compliance_status{} 1", "paused_resources{} 0", "thrashing_total{} 1"] {
            let line = format!("kubevirt_autopilot_{}", line.replace("{}", labels));
            assert!(metrics.text().contains(&line), "{line}\n{}", metrics.text());
        }
        let need = Need::of(&Kind::new("g.io/v1", "K"));
        let line = "kubevirt_autopilot_missing_dependency{group=\"g.io\",version=\"v1\",kind=\"K\"} 1";
        metrics.missing(&need, true);
        assert!(metrics.text().contains(line), "{}", metrics.text());
        metrics.missing(&need, false);
        assert!(!metrics.text().contains(line), "it has come");
        metrics.held(&key, &Reason::Unmanaged);
        assert!(!metrics.text().contains("compliance_status{"), "what is unmanaged has no compliance");
        metrics.held(&key, &Reason::Paused);
        assert!(metrics.text().contains(&format!("kubevirt_autopilot_paused_resources{labels} 1")));
    }
}
