//! Metrics of the advisor's profiles.

use super::register;
use advisor::Notice;
use advisor::judge::WAITS_FOR_WINDOW;
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
    window: Family<Profile, Gauge>,
    duration: Family<Profile, Histogram, Durations>,
    ignored: Family<Profile, Gauge>,
    shown: Mutex<HashMap<String, Shown>>,
}

/// What is shown of a profile.
#[derive(Clone, Copy)]
struct Shown {
    phase: Phase,
    /// Since when a person is waited for. A plan that replaces another one does not begin the wait anew.
    waiting: Option<Timestamp>,
    /// Since when a plan is being applied, also after a failure of an item.
    begun: Option<Timestamp>,
}

impl Shown {
    /// The next one, in a phase that holds since a point in time.
    fn next(before: Option<Shown>, phase: Phase, since: Timestamp) -> Shown {
        let (waiting, begun) = before.map_or((None, None), |before| (before.waiting, before.begun));
        let (waiting, begun) = match phase {
            // A plan that takes a while to be made ends neither.
            Phase::Pending | Phase::Drafting => (waiting, begun),
            Phase::ReviewRequired | Phase::CompletedWithUpgrade => (waiting.or(Some(since)), None),
            Phase::InProgress => (None, begun.or(Some(since))),
            // It is tried again under the same approval.
            Phase::Failed | Phase::CompletedWithErrors => (None, begun),
            Phase::Completed | Phase::Drifted | Phase::PrerequisiteFailed | Phase::Ignored => (None, None),
        };
        Shown { phase, waiting, begun }
    }

    /// The wait that is shown.
    fn shown_wait(self) -> Option<Timestamp> {
        self.waiting.filter(|_| matches!(self.phase, Phase::ReviewRequired | Phase::CompletedWithUpgrade))
    }
}

impl Families {
    fn new() -> Families {
        let mut all = Registry::with_prefix(metric::ADVISOR_PREFIX);
        let registry = &mut all;
        Families {
            phase: register(registry, &metric::ADVISOR_PHASE, Family::default()),
            drift: register(registry, &metric::ADVISOR_DRIFT, Family::default()),
            waiting: register(registry, &metric::ADVISOR_WAITING_SINCE, Family::default()),
            window: register(registry, &metric::ADVISOR_WAITING_FOR_WINDOW, Family::default()),
            duration: register(registry, &metric::ADVISOR_APPLY_DURATION, Family::new_with_constructor(Durations)),
            ignored: register(registry, &metric::ADVISOR_IGNORED, Family::default()),
            shown: Mutex::default(),
            registry: all,
        }
    }

    fn show(&self, name: &str, phase: Phase, reason: &str, drifted: usize, since: Timestamp) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let before = shown.remove(name);
        let now = Shown::next(before, phase, since);
        let profile = Profile { profile: name.to_owned() };
        let in_phase = |phase: Phase| InPhase { profile: name.to_owned(), phase: advisor::conditions::name(phase) };
        if let Some(before) = before {
            self.phase.remove(&in_phase(before.phase));
        }
        self.phase.get_or_create_owned(&in_phase(phase)).set(1);
        self.drift.get_or_create_owned(&profile).set(i64::try_from(drifted).unwrap_or(i64::MAX));
        self.ignored.get_or_create_owned(&profile).set(i64::from(phase == Phase::Ignored));
        self.window.get_or_create_owned(&profile).set(i64::from(reason == WAITS_FOR_WINDOW));
        match now.shown_wait() {
            Some(waiting) => {
                self.waiting.get_or_create_owned(&profile).set(waiting.as_second());
            }
            None => {
                self.waiting.remove(&profile);
            }
        }
        if let Some(begun) = before.and_then(|before| before.begun).filter(|_| phase == Phase::Completed) {
            self.duration.get_or_create_owned(&profile).observe(since.duration_since(begun).as_secs_f64());
        }
        shown.insert(name.to_owned(), now);
    }

    fn forget(&self, name: &str) {
        let before = self.shown.lock().unwrap_or_else(PoisonError::into_inner).remove(name);
        if let Some(Shown { phase, .. }) = before {
            self.phase.remove(&InPhase { profile: name.to_owned(), phase: advisor::conditions::name(phase) });
        }
        let profile = Profile { profile: name.to_owned() };
        for family in [&self.drift, &self.waiting, &self.window, &self.ignored] {
            family.remove(&profile);
        }
    }
}

impl Profiles {
    pub(super) fn record(&self, notice: &Notice) {
        match notice {
            Notice::Judged { name, phase, reason, drifted, since, .. } => {
                self.families.get_or_init(Families::new).show(name, *phase, reason, *drifted, *since);
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
        drifted(phase, since, 0)
    }

    fn drifted(phase: Phase, since: i64, drifted: usize) -> Notice {
        Notice::Judged {
            name: "load".into(),
            uid: "u".into(),
            phase,
            reason: "R",
            message: String::new(),
            digest: None,
            drifted,
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
        assert!(!text.contains("phase=\"InProgress") && !text.contains("waiting_since_timestamp_seconds{"), "{text}");
        assert!(text.contains("virt_advisor_apply_duration_seconds_sum{profile=\"load\"} 50.0"), "{text}");
        profiles.record(&Notice::Withdrawn { name: "load".into(), uid: "u".into() });
        assert!(!profiles.text().unwrap().contains("phase=\""));
    }
    #[test]
    fn a_profile_that_is_ignored_is_counted_and_has_no_drift() {
        let profiles = Profiles::default();
        profiles.record(&drifted(Phase::Drifted, 100, 2));
        let text = profiles.text().unwrap();
        assert!(text.contains("virt_advisor_drift{profile=\"load\"} 2"), "{text}");
        assert!(text.contains("virt_advisor_ignored{profile=\"load\"} 0"), "{text}");
        profiles.record(&judged(Phase::Ignored, 200));
        let text = profiles.text().unwrap();
        assert!(text.contains("virt_advisor_ignored{profile=\"load\"} 1"), "{text}");
        assert!(text.contains("virt_advisor_drift{profile=\"load\"} 0"), "{text}");
        assert!(text.contains("virt_advisor_phase{profile=\"load\",phase=\"Ignored\"} 1"), "{text}");
    }

    #[test]
    fn a_profile_that_waits_for_a_maintenance_window_says_so() {
        let profiles = Profiles::default();
        let reported = |reason: &'static str| {
            let Notice::Judged { name, uid, message, since, .. } = judged(Phase::InProgress, 100) else { panic!() };
            let (phase, digest, drifted, is_news) = (Phase::InProgress, None, 0, true);
            profiles.record(&Notice::Judged { name, uid, phase, reason, message, digest, drifted, since, is_news });
            profiles.text().unwrap()
        };
        assert!(reported("WaitingForWindow").contains("virt_advisor_waiting_for_window{profile=\"load\"} 1"));
        assert!(reported("Applying").contains("virt_advisor_waiting_for_window{profile=\"load\"} 0"));
    }

    #[test]
    fn drift_is_counted_also_while_a_changed_input_asks_for_a_review() {
        let profiles = Profiles::default();
        profiles.record(&drifted(Phase::ReviewRequired, 100, 1));
        let text = profiles.text().unwrap();
        assert!(text.contains("virt_advisor_drift{profile=\"load\"} 1"), "{text}");
    }

    #[test]
    fn a_plan_that_replaces_another_one_does_not_begin_the_wait_anew() {
        let profiles = Profiles::default();
        profiles.record(&judged(Phase::ReviewRequired, 100));
        profiles.record(&judged(Phase::Drafting, 200));
        assert!(!profiles.text().unwrap().contains("waiting_since_timestamp_seconds{"));
        profiles.record(&judged(Phase::ReviewRequired, 210));
        let waits = |since: &str| format!("virt_advisor_waiting_since_timestamp_seconds{{profile=\"load\"}} {since}\n");
        assert!(profiles.text().unwrap().contains(&waits("100")));
        profiles.record(&judged(Phase::InProgress, 300));
        profiles.record(&judged(Phase::ReviewRequired, 400));
        assert!(profiles.text().unwrap().contains(&waits("400")), "it was approved in between");
    }

    #[test]
    fn the_time_of_a_plan_includes_a_failure_that_was_overcome() {
        let profiles = Profiles::default();
        for (phase, since) in
            [(Phase::InProgress, 200), (Phase::Failed, 220), (Phase::InProgress, 280), (Phase::Completed, 300)]
        {
            profiles.record(&judged(phase, since));
        }
        let text = profiles.text().unwrap();
        assert!(text.contains("virt_advisor_apply_duration_seconds_sum{profile=\"load\"} 100.0"), "{text}");
        for (phase, since) in [(Phase::InProgress, 400), (Phase::ReviewRequired, 420), (Phase::Completed, 900)] {
            profiles.record(&judged(phase, since));
        }
        let text = profiles.text().unwrap();
        assert!(text.contains("virt_advisor_apply_duration_seconds_count{profile=\"load\"} 1"), "{text}");
    }
}
