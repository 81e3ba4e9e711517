//! Metrics of the advisor's profiles.

use super::register;
use advisor::Notice;
use api::advisor::Phase;
use api::metric;
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The label of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Profile {
    profile: String,
}

/// The labels of a phase.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct InPhase {
    profile: String,
    phase: &'static str,
}

/// From seconds to a rollout of a day.
#[derive(Clone)]
struct Durations;

impl MetricConstructor<Histogram> for Durations {
    fn new_metric(&self) -> Histogram {
        Histogram::new([1.0, 10.0, 60.0, 300.0, 900.0, 3600.0, 14_400.0, 86_400.0])
    }
}

/// The metrics of profiles; nothing of them exists before there is a profile.
#[derive(Default)]
pub(super) struct Profiles {
    families: OnceLock<Families>,
}

struct Families {
    registry: Registry,
    phase: Family<InPhase, Gauge>,
    drift: Family<Profile, Gauge>,
    waiting: Family<Profile, Gauge>,
    duration: Family<Profile, Histogram, Durations>,
    ignored: Family<Profile, Gauge>,
    /// What is shown of each profile: its phase, and since when its plan is being applied.
    shown: Mutex<HashMap<String, (Phase, Option<Timestamp>)>>,
}

impl Families {
    fn new() -> Families {
        let mut all = Registry::with_prefix(metric::ADVISOR_PREFIX);
        let registry = &mut all;
        Families {
            phase: register(registry, &metric::ADVISOR_PHASE, Family::default()),
            drift: register(registry, &metric::ADVISOR_DRIFT, Family::default()),
            waiting: register(registry, &metric::ADVISOR_WAITING_SINCE, Family::default()),
            duration: register(registry, &metric::ADVISOR_APPLY_DURATION, Family::new_with_constructor(Durations)),
            ignored: register(registry, &metric::ADVISOR_IGNORED, Family::default()),
            shown: Mutex::default(),
            registry: all,
        }
    }

    fn show(&self, name: &str, phase: Phase, differing: usize, since: Timestamp) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shown.remove(name);
        let begun = before.and_then(|(_, begun)| begun);
        let profile = Profile { profile: name.to_owned() };
        if let Some((before, _)) = before {
            self.phase.remove(&InPhase { profile: name.to_owned(), phase: advisor::conditions::name(before) });
        }
        let in_phase = InPhase { profile: name.to_owned(), phase: advisor::conditions::name(phase) };
        self.phase.get_or_create_owned(&in_phase).set(1);
        let drifted = if phase == Phase::Drifted { differing } else { 0 };
        self.drift.get_or_create_owned(&profile).set(i64::try_from(drifted).unwrap_or(i64::MAX));
        self.ignored.get_or_create_owned(&profile).set(i64::from(phase == Phase::Ignored));
        match matches!(phase, Phase::ReviewRequired | Phase::CompletedWithUpgrade) {
            true => {
                self.waiting.get_or_create_owned(&profile).set(since.as_second());
            }
            false => {
                self.waiting.remove(&profile);
            }
        }
        let begun = match phase {
            Phase::InProgress => begun.or(Some(since)),
            Phase::Completed => {
                if let Some(begun) = begun {
                    self.duration.get_or_create_owned(&profile).observe(since.duration_since(begun).as_secs_f64());
                }
                None
            }
            _ => None,
        };
        shown.insert(name.to_owned(), (phase, begun));
    }

    fn forget(&self, name: &str) {
        let before = self.shown.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        if let Some((phase, _)) = before {
            self.phase.remove(&InPhase { profile: name.to_owned(), phase: advisor::conditions::name(phase) });
        }
        let profile = Profile { profile: name.to_owned() };
        for family in [&self.drift, &self.waiting, &self.ignored] {
            family.remove(&profile);
        }
    }
}

impl Profiles {
    pub(super) fn record(&self, notice: &Notice) {
        match notice {
            Notice::Judged { name, phase, differing, since, .. } => {
                self.families.get_or_init(Families::new).show(name, *phase, *differing, *since);
            }
            Notice::Withdrawn { name, .. } => {
                if let Some(families) = self.families.get() {
                    families.forget(name);
                }
            }
            _ => {}
        }
    }

    /// The metrics as text; nothing without a profile.
    pub(super) fn text(&self) -> Option<String> {
        let families = self.families.get()?;
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &families.registry);
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Profiles;
    use advisor::Notice;
    use api::advisor::Phase;
    use jiff::Timestamp;

    fn judged(phase: Phase, since: i64) -> Notice {
        Notice::Judged {
            name: "load".into(),
            uid: "u".into(),
            phase,
            reason: "R",
            message: String::new(),
            digest: None,
            differing: 1,
            since: Timestamp::from_second(since).unwrap(),
            is_news: true,
        }
    }

    #[test]
    fn a_profile_is_in_one_phase_and_the_time_of_its_rollout_is_measured() {
        let profiles = Profiles::default();
        assert_eq!(profiles.text(), None);
        profiles.record(&judged(Phase::ReviewRequired, 100));
        let text = profiles.text().unwrap();
        assert!(text.contains("virt_advisor_phase{profile=\"load\",phase=\"ReviewRequired\"} 1"), "{text}");
        assert!(text.contains("virt_advisor_waiting_since_timestamp_seconds{profile=\"load\"} 100"), "{text}");
        profiles.record(&judged(Phase::InProgress, 200));
        profiles.record(&judged(Phase::InProgress, 230));
        profiles.record(&judged(Phase::Completed, 250));
        let text = profiles.text().unwrap();
        assert!(!text.contains("InProgress") && !text.contains("waiting_since_timestamp_seconds{"), "{text}");
        assert!(text.contains("virt_advisor_apply_duration_seconds_sum{profile=\"load\"} 50.0"), "{text}");
        profiles.record(&Notice::Withdrawn { name: "load".into(), uid: "u".into() });
        assert!(!profiles.text().unwrap().contains("phase=\""));
    }
}
