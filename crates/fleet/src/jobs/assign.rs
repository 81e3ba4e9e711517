//! How many runners each pool needs, and why each job waits.
//!
//! Jobs are not bound to machines: GitHub gives a job to any runner with its labels. A pool needs as many machines as it runs jobs, plus one
//! for each job that was granted one, whichever machine takes it.

use super::demand::{Pool, Wait, candidates, missing_labels};
use super::fair::{Queue, Rules, Usage};
use super::job::{JobKey, State};
use super::table::{Job, Table};
use crate::object::Name;
use crate::pool::scheduled_minimum;
use change::Now;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The machines of a pool that can run a job now or soon, or run one. Machines that failed, have done their job or are to end are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Supply {
    /// Claims whose machines start, and since when.
    pub starting: Vec<(String, Timestamp)>,
    /// Runners that are online without a job, and since when.
    pub idle: Vec<(String, Timestamp)>,
    /// How many run a job.
    pub busy: u32,
    /// How many of those without a job, the first ones, run one that the table still shows as one that waits.
    pub unnamed: u32,
}

impl Supply {
    fn total(&self) -> u32 {
        self.busy.saturating_add(u32::try_from(self.idle.len() + self.starting.len()).unwrap_or(u32::MAX))
    }
}

/// All that is decided from.
#[derive(Debug)]
pub struct Observed<'a> {
    /// All jobs.
    pub table: &'a Table,
    /// All pools.
    pub pools: &'a [Pool],
    /// The machines of each pool.
    pub supply: &'a BTreeMap<Name, Supply>,
    /// How many jobs are assigned to each scale set and have not ended, as GitHub said last.
    pub assigned: &'a BTreeMap<u64, u32>,
    /// Shares and quotas.
    pub rules: &'a Rules,
    /// Until when no runner can be registered, for each owner whose budget is used up.
    pub limited: &'a BTreeMap<String, Timestamp>,
    /// What the names of our runners begin with.
    pub prefix: &'a str,
    /// The present moment.
    pub now: Now,
}

/// What a pool needs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scale {
    /// How many machines jobs need: those that run, and those that were granted a machine. For `pool::decide`, as `replicas`.
    pub demand: i32,
    /// How many machines are wanted, with spares, between minimum and maximum.
    pub desired: i32,
    /// How many jobs could run at the same time, to be reported to a scale set.
    pub capacity: u32,
    /// How many jobs wait for this pool.
    pub waiting: u32,
}

/// What follows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assignment {
    /// Each pool.
    pub scale: BTreeMap<Name, Scale>,
    /// Each job that waits.
    pub waits: BTreeMap<JobKey, Wait>,
}

/// Assigns jobs to pools.
pub fn assign(observed: &Observed<'_>) -> Assignment {
    let mut state = Granting::new(observed);
    let usage = state.usage.clone();
    let unmet = observed.table.all().filter(|job| job.is_unmet());
    let mut queue = Queue::new(unmet, &usage, observed.rules, observed.now.wall);
    while let Some(job) = queue.take() {
        let wait = state.place(job);
        state.waits.insert(job.facts.key, wait);
        queue.again(&job.facts.repository, &state.usage);
    }
    let held = observed.table.all().filter(|job| job.is_open() && job.facts.state == State::Waiting);
    state.waits.extend(held.map(|job| (job.facts.key, Wait::OnGitHub)));
    let scale = observed.pools.iter().map(|pool| (pool.name.clone(), state.scale(pool))).collect();
    Assignment { scale, waits: state.waits }
}

struct Granting<'a> {
    observed: &'a Observed<'a>,
    usage: Usage,
    /// How many jobs of each pool were granted a machine.
    granted: BTreeMap<&'a Name, u32>,
    /// How many machines are to be created on each hypervisor.
    created: BTreeMap<&'a str, u32>,
    waiting: BTreeMap<&'a Name, u32>,
    waits: BTreeMap<JobKey, Wait>,
}

impl<'a> Granting<'a> {
    fn new(observed: &'a Observed<'a>) -> Granting<'a> {
        let mut usage = Usage::default();
        let is_running = |job: &&Job| job.is_open() && job.facts.state == State::InProgress;
        for job in observed.table.all().filter(is_running) {
            if job.facts.runner.as_deref().is_some_and(|runner| runner.starts_with(observed.prefix)) {
                usage.add(&job.facts.repository);
            }
        }
        let (granted, created) = (BTreeMap::new(), BTreeMap::new());
        Granting { observed, usage, granted, created, waiting: BTreeMap::new(), waits: BTreeMap::new() }
    }

    /// Grants a job a machine, or says why not.
    fn place(&mut self, job: &Job) -> Wait {
        let pools = candidates(&job.facts, self.observed.pools);
        let Some(first) = pools.first() else {
            return Wait::NoPool { missing: missing_labels(&job.facts, self.observed.pools) };
        };
        *self.waiting.entry(&first.name).or_default() += 1;
        if first.scale_set.is_some() && matches!(job.facts.key, JobKey::Job { .. }) {
            let capacity = self.capacity(first);
            return Wait::NotAssigned { pool: first.name.to_string(), capacity };
        }
        if let Some((of, allowed)) = self.usage.exceeded(&job.facts.repository, self.observed.rules) {
            return Wait::Quota { of, allowed };
        }
        let mut why = None;
        for pool in pools {
            match self.grant(pool) {
                Ok(wait) => {
                    self.usage.add(&job.facts.repository);
                    return wait;
                }
                Err(wait) => why = why.or(Some(wait)),
            }
        }
        why.unwrap_or(Wait::NoPool { missing: Vec::new() })
    }

    fn grant(&mut self, pool: &'a Pool) -> Result<Wait, Wait> {
        let supply = self.supply(pool);
        let granted = self.granted.get(&pool.name).copied().unwrap_or_default();
        let name = || pool.name.to_string();
        let at = usize::try_from(granted).unwrap_or(usize::MAX);
        let wait = if let Some((runner, since)) = supply.idle.get(at) {
            Wait::Idle { runner: runner.clone(), since: *since }
        } else if let Some((claim, since)) = supply.starting.get(at.saturating_sub(supply.idle.len())) {
            Wait::Booting { claim: claim.clone(), since: *since }
        } else if pool.is_paused {
            return Err(Wait::Paused { pool: name() });
        } else if i64::from(supply.busy) + i64::from(granted) >= i64::from(pool.scaling.max_replicas) {
            return Err(Wait::PoolFull { pool: name(), max: pool.scaling.max_replicas });
        } else if pool.room.is_some_and(|room| self.created.get(&*pool.hypervisor).copied().unwrap_or_default() >= room)
        {
            return Err(Wait::NoCapacity { pool: name() });
        } else if let Some(until) = self.observed.limited.get(&pool.scope.owner) {
            // The machine is made all the same: the limit may be over when it has started.
            Wait::RateLimited { until: *until }
        } else {
            Wait::Creating { pool: name() }
        };
        self.granted.insert(&pool.name, granted + 1);
        if !matches!(wait, Wait::Idle { .. } | Wait::Booting { .. }) {
            *self.created.entry(&pool.hypervisor).or_default() += 1;
        }
        Ok(wait)
    }

    fn supply(&self, pool: &Pool) -> &'a Supply {
        static NONE: Supply = Supply { starting: Vec::new(), idle: Vec::new(), busy: 0, unnamed: 0 };
        self.observed.supply.get(&pool.name).unwrap_or(&NONE)
    }

    /// How many jobs a scale set could run at the same time: by the maximum, the room of the hypervisor, and the quota of its owner.
    fn capacity(&self, pool: &Pool) -> u32 {
        let supply = self.supply(pool);
        let max = u32::try_from(pool.scaling.max_replicas).unwrap_or_default();
        let by_room = pool.room.map_or(u32::MAX, |room| supply.total().saturating_add(room));
        let by_quota = self.observed.rules.owners.get(&pool.scope.owner).copied().unwrap_or(u32::MAX);
        if pool.is_paused { supply.busy.saturating_add(supply.unnamed) } else { max.min(by_room).min(by_quota) }
    }

    fn scale(&self, pool: &Pool) -> Scale {
        let supply = self.supply(pool);
        let max = pool.scaling.max_replicas.max(0);
        let needed = match pool.scale_set {
            Some(id) => self
                .observed
                .assigned
                .get(&id)
                .copied()
                .unwrap_or_default()
                .max(supply.busy.saturating_add(supply.unnamed)),
            None => {
                let granted = self.granted.get(&pool.name).copied().unwrap_or_default();
                supply.busy.saturating_add(granted.max(supply.unnamed))
            }
        };
        let demand = i32::try_from(needed).unwrap_or(i32::MAX);
        let scheduled = scheduled_minimum(&pool.scaling.schedules, self.observed.now);
        let min = pool.scaling.min_replicas.max(scheduled).clamp(0, max);
        let desired = if pool.is_paused { demand } else { demand.saturating_add(pool.scaling.spares.booted).max(min) };
        Scale {
            demand,
            desired: desired.min(max),
            capacity: self.capacity(pool),
            waiting: self.waiting.get(&pool.name).copied().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests;
