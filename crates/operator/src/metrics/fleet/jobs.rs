//! Metrics of CI jobs and their runners. What there is now is replaced as a whole; what happened is counted.

use super::Pool;
use crate::metrics::register;
use api::metric;
use fleet::Notice;
use fleet::jobs::Source;
use fleet::jobs::figures::Figures;
use fleet::jobs::milestones::Milestone;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct PoolPhase {
    pool: String,
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, EncodeLabelSet)]
struct Ended {
    pool: String,
    result: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct From {
    source: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Owner {
    owner: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionRole {
    pool: String,
    version: String,
    role: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfVersion {
    pool: String,
    version: String,
}

/// From a runner that waits already to a queue of hours.
#[derive(Clone)]
struct Waiting;

impl MetricConstructor<Histogram> for Waiting {
    fn new_metric(&self) -> Histogram {
        Histogram::new([1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0])
    }
}

/// The metrics of jobs.
pub(super) struct Jobs {
    waiting: Family<Reason, Gauge>,
    waiting_since: Family<Reason, Gauge>,
    queue: Family<Pool, Histogram, Waiting>,
    phases: Family<PoolPhase, Histogram, Waiting>,
    results: Family<Ended, Counter>,
    noticed: Family<From, Counter>,
    runners: Family<PoolPhase, Gauge>,
    remaining: Family<Owner, Gauge>,
    limit: Family<Owner, Gauge>,
    orphans: Family<Owner, Counter>,
    versions: Family<VersionRole, Gauge>,
    refused: Family<OfVersion, Gauge>,
    webhooks: Gauge,
    redeliveries: Family<Outcome, Counter>,
    counted: Mutex<Counted>,
}

/// Which series count what happened in a pool: they end with it.
#[derive(Default)]
struct Counted {
    phases: BTreeSet<PoolPhase>,
    results: BTreeSet<Ended>,
    pools: BTreeSet<String>,
}

impl Jobs {
    pub(super) fn new(registry: &mut Registry) -> Jobs {
        let histogram = || Family::new_with_constructor(Waiting);
        Jobs {
            waiting: register(registry, &metric::FLEET_JOBS_WAITING, Family::default()),
            waiting_since: register(registry, &metric::FLEET_JOBS_WAITING_SINCE, Family::default()),
            queue: register(registry, &metric::FLEET_JOB_QUEUE, histogram()),
            phases: register(registry, &metric::FLEET_JOB_START_PHASE, Family::new_with_constructor(Waiting)),
            results: register(registry, &metric::FLEET_JOB_RESULTS, Family::default()),
            noticed: register(registry, &metric::FLEET_JOBS_NOTICED, Family::default()),
            runners: register(registry, &metric::FLEET_RUNNERS, Family::default()),
            remaining: register(registry, &metric::FLEET_FORGE_REMAINING, Family::default()),
            limit: register(registry, &metric::FLEET_FORGE_LIMIT, Family::default()),
            orphans: register(registry, &metric::FLEET_ORPHAN_RUNNERS, Family::default()),
            versions: register(registry, &metric::FLEET_RUNNER_VERSION, Family::default()),
            refused: register(registry, &metric::FLEET_RUNNER_VERSION_REFUSED, Family::default()),
            webhooks: register(registry, &metric::FLEET_WEBHOOKS_EXPECTED, Gauge::default()),
            redeliveries: register(registry, &metric::FLEET_WEBHOOK_REDELIVERIES, Family::default()),
            counted: Mutex::default(),
        }
    }

    pub(super) fn record(&self, notice: &Notice) {
        match notice {
            Notice::Job(milestone) => self.count(milestone),
            Notice::JobFigures(figures) => self.show(figures),
            Notice::OrphanRunner { owner, .. } => {
                self.orphans.get_or_create_owned(&Owner { owner: owner.clone() }).inc();
            }
            Notice::WebhooksRedelivered { asked, given_up, .. } => {
                for (result, count) in [("asked", *asked), ("given-up", *given_up)] {
                    self.redeliveries.get_or_create_owned(&Outcome { result }).inc_by(count);
                }
            }
            _ => {}
        }
    }

    fn count(&self, milestone: &Milestone) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        match milestone {
            Milestone::Noticed(source) => {
                self.noticed.get_or_create_owned(&From { source: source_name(*source) }).inc();
            }
            Milestone::Started { pool, queued, phases, .. } => {
                self.queue.get_or_create_owned(&Pool { pool: pool.clone() }).observe(queued.as_secs_f64());
                for (phase, took) in phases {
                    let labels = PoolPhase { pool: pool.clone(), phase: phase.label() };
                    self.phases.get_or_create_owned(&labels).observe(took.as_secs_f64());
                    counted.phases.insert(labels);
                }
                counted.pools.insert(pool.clone());
            }
            Milestone::Ended { pool, conclusion, .. } => {
                let labels = Ended { pool: pool.clone(), result: result_name(conclusion).to_owned() };
                self.results.get_or_create_owned(&labels).inc();
                counted.results.insert(labels);
            }
        }
    }

    fn show(&self, figures: &Figures) {
        self.waiting.clear();
        self.waiting_since.clear();
        for (reason, (count, since)) in &figures.waiting {
            let labels = Reason { reason };
            self.waiting.get_or_create_owned(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
            self.waiting_since.get_or_create_owned(&labels).set(since.as_second());
        }
        self.runners.clear();
        for ((pool, phase), count) in &figures.runners {
            let labels = PoolPhase { pool: pool.clone(), phase };
            self.runners.get_or_create_owned(&labels).set(i64::try_from(*count).unwrap_or(i64::MAX));
        }
        self.remaining.clear();
        self.limit.clear();
        for (owner, (remaining, limit)) in &figures.budgets {
            let labels = Owner { owner: owner.clone() };
            self.remaining.get_or_create_owned(&labels).set(i64::from(*remaining));
            self.limit.get_or_create_owned(&labels).set(i64::from(*limit));
        }
        self.versions.clear();
        self.refused.clear();
        for (pool, shown) in &figures.versions {
            let current = shown.current.iter().map(|version| (version, "current"));
            let canary = shown.canary.iter().map(|version| (version, "canary"));
            let rolled_back = shown.rolled_back.iter().map(|version| (version, "rolled-back"));
            for (version, role) in current.chain(canary).chain(rolled_back) {
                let labels = VersionRole { pool: pool.clone(), version: version.to_string(), role };
                self.versions.get_or_create_owned(&labels).set(1);
            }
            if let Some((version, at)) = shown.refused {
                let labels = OfVersion { pool: pool.clone(), version: version.to_string() };
                self.refused.get_or_create_owned(&labels).set(at.as_second());
            }
        }
        self.webhooks.set(i64::try_from(figures.webhooks_expected).unwrap_or(i64::MAX));
        self.forget(figures);
    }

    /// The series of pools that are gone.
    fn forget(&self, figures: &Figures) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = |pool: &str| figures.runners.keys().any(|(found, _)| found == pool);
        counted.pools.retain(|pool| {
            let is_kept = is_there(pool);
            if !is_kept {
                self.queue.remove(&Pool { pool: pool.clone() });
            }
            is_kept
        });
        counted.phases.retain(|labels| is_there(&labels.pool) || !self.phases.remove(labels));
        counted.results.retain(|labels| is_there(&labels.pool) || !self.results.remove(labels));
    }
}

fn source_name(source: Source) -> &'static str {
    match source {
        Source::Webhook => "webhook",
        Source::ScaleSet => "scale-set",
        Source::Poll => "poll",
    }
}

/// GitHub's conclusions, so that a text of somebody else makes no series of its own. Scale sets have other words for three of them.
fn result_name(conclusion: &str) -> &'static str {
    match conclusion {
        "success" | "succeeded" => "success",
        "failure" | "failed" => "failure",
        "cancelled" | "canceled" => "cancelled",
        "timed_out" => "timed_out",
        "skipped" => "skipped",
        "neutral" => "neutral",
        "action_required" => "action_required",
        "stale" => "stale",
        _ => "unknown",
    }
}

#[cfg(test)]
pub(super) mod tests;
