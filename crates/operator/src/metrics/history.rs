//! Metrics of what happened to objects: fights, corrections, overrides, failures, and how long writes take.

use super::{Object, register};
use api::metric;
use autopilot::OverrideKind;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The predecessor's buckets.
const BUCKETS: [f64; 9] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];
/// Field managers may have any name: more of one object than this are counted together, so that nobody can make endless series.
const MOST_MANAGERS: usize = 16;
/// The label of drift that nobody can be named for.
const UNKNOWN: &str = "unknown";
/// The label of field managers beyond the most.
const OTHERS: &str = "others";

/// The labels of a correction.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Correction {
    #[prometheus(flatten)]
    object: Object,
    manager: String,
}

/// The labels of an override.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Override {
    #[prometheus(flatten)]
    object: Object,
    r#type: &'static str,
}

/// What happened to objects.
pub(super) struct History {
    thrashing: Family<Object, Counter>,
    errors: Family<Object, Counter>,
    durations: Family<Object, Histogram, fn() -> Histogram>,
    corrections: Family<Correction, Counter>,
    overrides: Family<Override, Gauge>,
    shown: Mutex<HashMap<Object, Shown>>,
}

/// The further labels that the series of an object have.
#[derive(Default)]
struct Shown {
    managers: BTreeSet<String>,
    overrides: Vec<OverrideKind>,
}

impl History {
    pub(super) fn register(registry: &mut Registry) -> History {
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let durations = Family::new_with_constructor(histogram);
        History {
            thrashing: register(registry, &metric::THRASHING, Family::default()),
            errors: register(registry, &metric::APPLY_ERRORS, Family::default()),
            durations: register(registry, &metric::RECONCILE_DURATION, durations),
            corrections: register(registry, &metric::DRIFT_CORRECTIONS, Family::default()),
            overrides: register(registry, &metric::CUSTOMIZATION_INFO, Family::default()),
            shown: Mutex::default(),
        }
    }

    pub(super) fn fought(&self, object: &Object) {
        self.thrashing.get_or_create_owned(object).inc();
    }

    pub(super) fn answered(&self, object: &Object, took: Duration, is_error: bool) {
        self.durations.get_or_create_owned(object).observe(took.as_secs_f64());
        if is_error {
            self.errors.get_or_create_owned(object).inc();
        }
    }

    pub(super) fn corrected(&self, object: &Object, actors: &[String]) {
        let mut shown = self.shown();
        let managers = &mut shown.entry(object.clone()).or_default().managers;
        let unknown = [UNKNOWN.to_owned()];
        for manager in if actors.is_empty() { &unknown } else { actors } {
            let is_room = managers.contains(manager) || managers.len() < MOST_MANAGERS;
            let manager = if is_room { manager.clone() } else { OTHERS.to_owned() };
            managers.insert(manager.clone());
            self.corrections.get_or_create_owned(&Correction { object: object.clone(), manager }).inc();
        }
    }

    pub(super) fn overridden(&self, object: &Object, overrides: &[OverrideKind]) {
        let mut shown = self.shown();
        let before = std::mem::replace(&mut shown.entry(object.clone()).or_default().overrides, overrides.to_vec());
        for kind in before.into_iter().filter(|kind| !overrides.contains(kind)) {
            self.overrides.remove(&labels(object, kind));
        }
        for kind in overrides {
            self.overrides.get_or_create_owned(&labels(object, *kind)).set(1);
        }
    }

    /// Removes all series of an object.
    pub(super) fn forget(&self, object: &Object) {
        self.thrashing.remove(object);
        self.errors.remove(object);
        self.durations.remove(object);
        let Some(Shown { managers, overrides }) = self.shown().remove(object) else { return };
        for manager in managers {
            self.corrections.remove(&Correction { object: object.clone(), manager });
        }
        for kind in overrides {
            self.overrides.remove(&labels(object, kind));
        }
    }

    fn shown(&self) -> MutexGuard<'_, HashMap<Object, Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn labels(object: &Object, kind: OverrideKind) -> Override {
    Override { object: object.clone(), r#type: kind.name() }
}
