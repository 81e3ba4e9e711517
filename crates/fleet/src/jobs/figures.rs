//! Numbers about jobs and runners, for metrics: what there is now.

use super::Dispatch;
use super::exchange::{Decision, Objects};
use super::job::State;
use super::runners::Phase;
use super::table::Job;
use super::twins::twins;
use crate::object::Name;
use crate::versions;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The phases of runners, as metrics name them.
pub const PHASES: [&str; 4] = ["starting", "idle", "busy", "ending"];

/// What there is now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Jobs that wait, by the reason: how many, and since when the first one does.
    pub waiting: BTreeMap<&'static str, (usize, Timestamp)>,
    /// Runners by pool and phase.
    pub runners: BTreeMap<(String, &'static str), usize>,
    /// Requests to GitHub that are left and that there are in an hour, by owner.
    pub budgets: BTreeMap<String, (u32, u32)>,
    /// Runner versions by pool.
    pub versions: BTreeMap<String, versions::Shown>,
    /// How many pools expect webhooks.
    pub webhooks_expected: usize,
}

/// What is known beside jobs.
#[derive(Debug, Clone, Default)]
pub struct Beside {
    /// What keeps a pool from running jobs, such as a runner version that GitHub refuses.
    pub troubles: BTreeMap<Name, String>,
    /// Runner versions by pool.
    pub versions: BTreeMap<Name, versions::Shown>,
    /// How many pools name the secret of a webhook.
    pub webhooks_expected: usize,
}

impl Figures {
    /// Those that are known beside jobs.
    pub fn beside(beside: &Beside) -> Figures {
        let versions = beside.versions.iter().map(|(name, shown)| (name.to_string(), shown.clone())).collect();
        Figures { versions, webhooks_expected: beside.webhooks_expected, ..Figures::default() }
    }

    /// Adds those of another GitHub.
    pub fn add(&mut self, other: &Figures) {
        for (reason, (count, since)) in &other.waiting {
            let known = self.waiting.entry(reason).or_insert((0, *since));
            *known = (known.0 + count, known.1.min(*since));
        }
        self.runners.extend(other.runners.iter().map(|(key, count)| (key.clone(), *count)));
        for (owner, (left, limit)) in &other.budgets {
            // Owners of the same name on two servers: the one with less left counts.
            let known = self.budgets.entry(owner.clone()).or_insert((*left, *limit));
            *known = (*left, *limit).min(*known);
        }
    }
}

/// The numbers of one GitHub.
pub fn figures(dispatch: &Dispatch, objects: Objects<'_>, decision: &Decision) -> Figures {
    let mut figures = Figures { budgets: dispatch.budgets(), ..Figures::default() };
    // A job that is assigned to a scale set counts as the scale set names it.
    let twice = twins(dispatch.table());
    let is_waiting = |job: &&Job| job.is_open() && job.facts.state < State::InProgress;
    for job in dispatch.table().all().filter(|job| is_waiting(job) && !twice.contains_key(&job.facts.key)) {
        let Some(wait) = dispatch.waits().get(&job.facts.key) else { continue };
        let (count, since) = figures.waiting.entry(wait.reason()).or_insert((0, job.since()));
        (*count, *since) = (*count + 1, (*since).min(job.since()));
    }
    for pool in objects.pools {
        figures.runners.extend(PHASES.map(|phase| ((pool.name.to_string(), phase), 0)));
    }
    for claim in objects.claims {
        let phase = match decision.phases.get(&claim.name) {
            Some(Phase::Starting) => "starting",
            Some(Phase::Online(_)) => "idle",
            Some(Phase::Busy(_)) => "busy",
            Some(Phase::Ending) => "ending",
            None => continue,
        };
        if let Some(count) = figures.runners.get_mut(&(claim.pool.to_string(), phase)) {
            *count += 1;
        }
    }
    figures
}
