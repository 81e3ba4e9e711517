//! The metrics of jobs follow what the core reports.

use super::super::Fleet;
use fleet::Notice;
use fleet::jobs::figures::Figures;
use fleet::jobs::milestones::{Milestone, StartPhase};
use fleet::jobs::{JobKey, Source};
use fleet::object::Name;
use fleet::versions::{Shown, Version};
use std::time::Duration;

const KEY: JobKey = JobKey::Job { id: 7, attempt: 1 };

fn figures() -> Figures {
    let at = "2026-11-18T12:00:00Z".parse().unwrap();
    let (old, new) = (Version::new(2, 330, 0), Version::new(2, 331, 0));
    let shown = Shown { current: Some(old), canary: Some(new), rolled_back: Vec::new(), refused: Some((old, at)) };
    Figures {
        waiting: [("Booting", (2, at))].into(),
        runners: [(("ci/linux".to_owned(), "busy"), 3)].into(),
        budgets: [("acme".to_owned(), (4_000, 5_000))].into(),
        versions: [("ci/linux".to_owned(), shown)].into(),
        webhooks_expected: 1,
    }
}

/// Every metric has a series.
pub(in crate::metrics::fleet) fn fill(fleet: &Fleet) {
    let (repository, pool) = (|| "acme/web".to_owned(), || "ci/linux".to_owned());
    let phases = vec![(StartPhase::Boot, Duration::from_secs(20))];
    let queued = Duration::from_secs(42);
    let conclusion = "made-up\"} 1".to_owned();
    for milestone in [
        Milestone::Noticed(Source::ScaleSet),
        Milestone::Started { key: KEY, repository: repository(), pool: pool(), queued, phases },
        Milestone::Ended { key: KEY, repository: repository(), pool: pool(), conclusion: "failed".into() },
        Milestone::Ended { key: KEY, repository: repository(), pool: pool(), conclusion },
    ] {
        fleet.record(&Notice::Job(Box::new(milestone)));
    }
    let (pool, uid, owner) = (Name::new("ci", "linux"), String::new(), "acme".to_owned());
    let redelivered = Notice::WebhooksRedelivered { pool: pool.clone(), uid: uid.clone(), asked: 3, given_up: 1 };
    fleet.record(&redelivered);
    fleet.record(&Notice::OrphanRunner { pool, uid, owner, id: 7 });
    fleet.record(&Notice::JobFigures(Box::new(figures())));
}

#[test]
fn jobs_are_counted_and_what_is_over_has_no_series() {
    let fleet = Fleet::new();
    fill(&fleet);
    let text = fleet.text();
    for line in [
        "jobs_waiting{reason=\"Booting\"} 2",
        "jobs_waiting_since_timestamp_seconds{reason=\"Booting\"} 1795003200",
        "job_queue_seconds_sum{pool=\"ci/linux\"} 42.0",
        "job_start_phase_seconds_sum{pool=\"ci/linux\",phase=\"boot\"} 20.0",
        "job_results_total{pool=\"ci/linux\",result=\"failure\"} 1",
        "job_results_total{pool=\"ci/linux\",result=\"unknown\"} 1",
        "jobs_noticed_total{source=\"scale-set\"} 1",
        "runners{pool=\"ci/linux\",phase=\"busy\"} 3",
        "github_requests_remaining{owner=\"acme\"} 4000",
        "orphan_runners_found_total{owner=\"acme\"} 1",
        "runner_version_info{pool=\"ci/linux\",version=\"2.331.0\",role=\"canary\"} 1",
        "runner_version_refused_timestamp_seconds{pool=\"ci/linux\",version=\"2.330.0\"} 1795003200",
        "webhooks_expected 1",
        "webhook_redeliveries_total{result=\"asked\"} 3",
        "webhook_redeliveries_total{result=\"given-up\"} 1",
    ] {
        assert!(text.contains(&format!("\nvirtpilot_fleet_{line}\n")), "{line}\n{text}");
    }
    assert!(!text.contains("acme/web"), "repositories would be series without end");
    fleet.record(&Notice::JobFigures(Box::default()));
    let text = fleet.text();
    assert!(!text.contains("ci/linux") && !text.contains("Booting"), "{text}");
}
