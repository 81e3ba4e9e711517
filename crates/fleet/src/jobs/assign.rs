//! How many runners each pool needs, and why each job waits.
//!
//! Jobs are not bound to machines: GitHub gives a job to any runner with its labels. A pool needs as many machines as it runs jobs, plus one
//! for each job that was granted one, whichever machine takes it.

use super::demand::{Hearing, Pool, Readiness, Wait, candidates, missing_labels};
use super::fair::{Queue, Rules, Usage};
use super::job::{JobKey, State};
use super::table::{Job, Table};
use super::twins::twins;
use crate::object::Name;
use crate::pool::scheduled_minimum;
use change::Now;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// The machines of a pool that can run a job now or soon, or run one. Machines that failed, have done their job or are to end are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Supply {
    /// Claims whose machines start, and since when.
    pub starting: Vec<(String, Timestamp)>,
    /// Runners that are online without a job, and since when.
    pub idle: Vec<(String, Timestamp)>,
    /// How many run a job.
    pub busy: u32,
    /// How many of these do not belong to the scale set of the pool, so that they run none of its jobs.
    pub others: u32,
    /// How many have no place on a hypervisor yet.
    pub unplaced: u32,
    /// How many of those without a job, the first ones, run one that the table still shows as one that waits.
    pub unnamed: u32,
}

impl Supply {
    /// All, also those that have no place yet.
    pub fn machines(&self) -> u32 {
        self.total().saturating_add(self.unplaced)
    }

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
    /// The names of the runners of all claims.
    pub runners: &'a BTreeSet<&'a str>,
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
    /// Offers to scale sets that are to be acquired.
    pub acquire: BTreeMap<u64, BTreeSet<u64>>,
}

/// Assigns jobs to pools.
pub fn assign(observed: &Observed<'_>) -> Assignment {
    let mut state = Granting::new(observed);
    let usage = state.usage.clone();
    let needs = |job: &&Job| job.is_unmet() || is_offer(job);
    // A job that a scale set has told about is placed as the scale set names it.
    let unmet = observed.table.all().filter(|job| needs(job) && !state.twins.contains_key(&job.facts.key));
    let mut queue = Queue::new(unmet, &usage, observed.rules, observed.now.wall);
    while let Some(job) = queue.take() {
        if !state.started.contains(&job.facts.key) {
            let wait = state.place(job);
            state.waits.insert(job.facts.key, wait);
        }
        queue.again(&job.facts.repository, &state.usage);
    }
    let held = |job: &&Job| job.is_open() && job.facts.state == State::Waiting && !is_offer(job);
    let held: Vec<JobKey> = observed.table.all().filter(held).map(|job| job.facts.key).collect();
    state.waits.extend(held.into_iter().map(|key| (key, Wait::OnGitHub)));
    state.share_waits();
    let scale = observed.pools.iter().map(|pool| (pool.name.clone(), state.scale(pool))).collect();
    Assignment { scale, waits: state.waits, acquire: state.acquire }
}

/// Whether it is offered to a scale set, which has not acquired it.
fn is_offer(job: &Job) -> bool {
    matches!(job.facts.key, JobKey::Request { .. }) && job.is_open() && job.facts.state == State::Waiting
}

/// Whether GitHub has assigned it to a scale set.
fn is_assigned(job: &Job) -> bool {
    matches!(job.facts.key, JobKey::Request { .. }) && job.is_unmet()
}

struct Granting<'a> {
    observed: &'a Observed<'a>,
    usage: Usage,
    /// Open jobs, with what a scale set calls them.
    twins: BTreeMap<JobKey, JobKey>,
    /// Requests whose jobs were started, as another source says.
    started: BTreeSet<JobKey>,
    /// How many jobs of each pool were granted a machine.
    granted: BTreeMap<&'a Name, u32>,
    /// How many jobs each scale set may be assigned beyond those that it is assigned already.
    offered: BTreeMap<&'a Name, u32>,
    /// How many machines are to be created on each hypervisor, and for each pool.
    created: BTreeMap<&'a str, u32>,
    created_of: BTreeMap<&'a Name, u32>,
    waiting: BTreeMap<&'a Name, u32>,
    /// Jobs that no pool takes while this one, which they would go to, is held.
    held: BTreeMap<&'a Name, u32>,
    waits: BTreeMap<JobKey, Wait>,
    acquire: BTreeMap<u64, BTreeSet<u64>>,
}

/// What keeps a scale set from more jobs.
enum Limit {
    Max(i32),
    Room,
    Quota(String, u32),
    NotReady(&'static str),
}

impl<'a> Granting<'a> {
    fn new(observed: &'a Observed<'a>) -> Granting<'a> {
        let mut usage = Usage::default();
        // Several sources may name a job; the runner that has it runs one.
        let mut running: BTreeMap<&str, Option<&Job>> = BTreeMap::new();
        for job in observed.table.all().filter(|job| job.facts.state >= State::InProgress) {
            // Without a claim there is no machine any more, whatever GitHub still shows.
            let Some(runner) = job.facts.runner.as_deref().filter(|name| observed.runners.contains(name)) else {
                continue;
            };
            let known = running.entry(runner).or_insert(Some(job));
            if !job.is_open() {
                *known = None;
            }
        }
        running.values().flatten().for_each(|job| usage.add(&job.facts.repository));
        let twins = twins(observed.table);
        let is_started = |(job, request): (&JobKey, &JobKey)| {
            let job = observed.table.get(job).filter(|job| job.facts.state >= State::InProgress);
            job.map(|_| *request)
        };
        let started: BTreeSet<JobKey> = twins.iter().filter_map(is_started).collect();
        // What GitHub has assigned it gives to a runner, whatever others wait for.
        let is_assigned = |job: &&Job| is_assigned(job) && !started.contains(&job.facts.key);
        observed.table.all().filter(is_assigned).for_each(|job| usage.add(&job.facts.repository));
        Granting {
            observed,
            usage,
            twins,
            started,
            granted: BTreeMap::new(),
            offered: BTreeMap::new(),
            created: BTreeMap::new(),
            created_of: BTreeMap::new(),
            waiting: BTreeMap::new(),
            held: BTreeMap::new(),
            waits: BTreeMap::new(),
            acquire: BTreeMap::new(),
        }
    }

    /// A job waits for the same as what the scale set calls it.
    fn share_waits(&mut self) {
        for (job, request) in &self.twins {
            if let Some(wait) = self.waits.get(request).cloned() {
                self.waits.insert(*job, wait);
            }
        }
    }

    /// Grants a job a machine, or says why not.
    fn place(&mut self, job: &Job) -> Wait {
        let mut pools = candidates(&job.facts, self.observed.pools);
        if is_offer(job) {
            // Others may run it as long as no scale set has it, if they hear of it.
            let named = self.twins.iter().find(|(_, request)| **request == job.facts.key);
            let named = named.and_then(|(name, _)| self.observed.table.get(name));
            let others = named.map(|job| candidates(&job.facts, self.observed.pools)).unwrap_or_default();
            pools.extend(others.into_iter().filter(|pool| pool.listens().is_none()));
        }
        let Some(first) = pools.first().copied() else {
            let unproved = self.observed.pools.iter().find(|pool| !pool.is_proved() && pool.may_run(&job.facts));
            let not_ready = unproved.and_then(|pool| Some(not_ready(pool, pool.readiness.trouble()?)));
            return not_ready.unwrap_or(Wait::NoPool { missing: missing_labels(&job.facts, self.observed.pools) });
        };
        *self.waiting.entry(&first.name).or_default() += 1;
        let mut why = None;
        for pool in pools {
            let found = match (pool.listens(), job.facts.key) {
                // Whatever its quota is: GitHub gives assigned jobs to runners of the scale set.
                (Some(_), JobKey::Request { .. }) if !is_offer(job) => self.grant(pool),
                (Some(set), JobKey::Request { id, .. }) => self.within_quota(job).and_then(|()| {
                    let wait = self.let_assign(pool)?;
                    self.acquire.entry(set).or_default().insert(id);
                    Ok(wait)
                }),
                (Some(_), JobKey::Job { .. }) => self.let_assign(pool),
                (None, JobKey::Request { .. }) if !is_offer(job) => {
                    Err(Wait::NotListening { pool: pool.name.to_string(), is_taken: false })
                }
                (None, _) => self.within_quota(job).and_then(|()| self.grant(pool)),
            };
            match found {
                Ok(wait) => {
                    if !is_assigned(job) {
                        self.usage.add(&job.facts.repository);
                    }
                    return wait;
                }
                Err(wait) => why = why.or(Some(wait)),
            }
        }
        if matches!(why, Some(Wait::NotReady { .. }))
            && matches!(first.readiness, Readiness::Held(_))
            && first.listens().is_none()
        {
            *self.held.entry(&first.name).or_default() += 1;
        }
        why.unwrap_or(Wait::NoPool { missing: Vec::new() })
    }

    fn within_quota(&self, job: &Job) -> Result<(), Wait> {
        match self.usage.exceeded(&job.facts.repository, self.observed.rules) {
            Some((of, allowed)) => Err(Wait::Quota { of, allowed }),
            None => Ok(()),
        }
    }

    /// Leaves a job to the scale set of a pool, if that can run it.
    fn let_assign(&mut self, pool: &'a Pool) -> Result<Wait, Wait> {
        let name = || pool.name.to_string();
        if pool.is_paused {
            return Err(Wait::Paused { pool: name() });
        }
        if pool.hearing == Hearing::Taken {
            return Err(Wait::NotListening { pool: name(), is_taken: true });
        }
        let (capacity, limit) = self.capacity(pool);
        let offered = self.offered.get(&pool.name).copied().unwrap_or_default();
        if self.needed(pool).saturating_add(offered) >= capacity {
            return Err(match limit {
                Limit::Max(max) => Wait::PoolFull { pool: name(), max },
                Limit::Room => Wait::NoCapacity { pool: name() },
                Limit::Quota(of, allowed) => Wait::Quota { of, allowed },
                Limit::NotReady(why) => not_ready(pool, why),
            });
        }
        self.offered.insert(&pool.name, offered + 1);
        Ok(Wait::NotAssigned { pool: name(), capacity })
    }

    fn grant(&mut self, pool: &'a Pool) -> Result<Wait, Wait> {
        let supply = self.supply(pool);
        let granted = self.granted.get(&pool.name).copied().unwrap_or_default();
        let name = || pool.name.to_string();
        let at = usize::try_from(granted).unwrap_or(usize::MAX);
        let wait = if let Some((runner, since)) = supply.idle.get(at) {
            Wait::Idle { runner: runner.clone(), since: *since }
        } else if let Some((claim, since)) = supply.starting.get(at.saturating_sub(supply.idle.len()))
            && pool.readiness != Readiness::Disconnected
        {
            Wait::Booting { claim: claim.clone(), since: *since }
        } else if pool.is_paused {
            return Err(Wait::Paused { pool: name() });
        } else if let Some(why) = pool.readiness.trouble() {
            return Err(not_ready(pool, why));
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
            *self.created_of.entry(&pool.name).or_default() += 1;
        }
        Ok(wait)
    }

    fn supply(&self, pool: &Pool) -> &'a Supply {
        static NONE: Supply =
            Supply { starting: Vec::new(), idle: Vec::new(), busy: 0, others: 0, unplaced: 0, unnamed: 0 };
        self.observed.supply.get(&pool.name).unwrap_or(&NONE)
    }

    /// How many jobs a scale set could run at the same time, and what keeps it from more: the maximum, the room that other pools leave on the
    /// hypervisor, a quota, or that no machine is made now.
    fn capacity(&self, pool: &Pool) -> (u32, Limit) {
        let supply = self.supply(pool);
        if pool.is_paused {
            return (supply.busy.saturating_add(supply.unnamed), Limit::Max(0));
        }
        let all = self.created.get(&*pool.hypervisor).copied().unwrap_or_default();
        let own = self.created_of.get(&pool.name).copied().unwrap_or_default();
        let left = |room: u32| supply.total().saturating_add(room.saturating_sub(all.saturating_sub(own)));
        let (owner, rules) = (&pool.scope.owner, self.observed.rules);
        let of_owner = rules.owners.get(owner).map(|quota| (owner.clone(), *quota));
        // That of a repository can be kept only if there is no other.
        let of_repository = pool.only_repository().and_then(|only| Some((only.to_string(), rules.of(&only).quota?)));
        let max = u32::try_from(pool.scaling.max_replicas).unwrap_or_default();
        let mut found = (max, Limit::Max(pool.scaling.max_replicas));
        if let Some(by_room) = pool.room.map(left).filter(|by_room| *by_room < found.0) {
            found = (by_room, Limit::Room);
        }
        for (of, quota) in of_owner.into_iter().chain(of_repository) {
            if quota < found.0 {
                found = (quota, Limit::Quota(of, quota));
            }
        }
        let there = match pool.readiness {
            Readiness::Disconnected => {
                supply.total().saturating_sub(u32::try_from(supply.starting.len()).unwrap_or(u32::MAX))
            }
            _ => supply.total(),
        };
        match pool.readiness.trouble() {
            Some(why) if there < found.0 => (there, Limit::NotReady(why)),
            _ => found,
        }
    }

    /// How many machines a pool needs for jobs.
    fn needed(&self, pool: &Pool) -> u32 {
        let supply = self.supply(pool);
        match pool.listens() {
            Some(id) => {
                let assigned = match pool.hearing {
                    Hearing::Taken => 0,
                    _ => self.observed.assigned.get(&id).copied().unwrap_or_default(),
                };
                let busy = supply.busy.saturating_add(supply.unnamed).saturating_sub(supply.others);
                assigned.max(busy).saturating_add(supply.others)
            }
            None => {
                let granted = self.granted.get(&pool.name).copied().unwrap_or_default();
                supply.busy.saturating_add(granted.max(supply.unnamed))
            }
        }
    }

    fn scale(&self, pool: &Pool) -> Scale {
        let max = pool.scaling.max_replicas.max(0);
        let needed = self.needed(pool);
        // A pool that is held has this demand all the same: it is what its condition says it cannot meet.
        let held = self.held.get(&pool.name).copied().unwrap_or_default();
        let demand = i32::try_from(needed.saturating_add(held)).unwrap_or(i32::MAX);
        let scheduled = scheduled_minimum(&pool.scaling.schedules, self.observed.now);
        let min = pool.scaling.min_replicas.max(scheduled).clamp(0, max);
        let desired = if pool.is_paused { demand } else { demand.saturating_add(pool.scaling.spares.booted).max(min) };
        Scale {
            demand,
            desired: desired.min(max),
            capacity: self.capacity(pool).0,
            waiting: self.waiting.get(&pool.name).copied().unwrap_or_default(),
        }
    }
}

fn not_ready(pool: &Pool, why: &str) -> Wait {
    Wait::NotReady { pool: pool.name.to_string(), why: why.to_owned() }
}

#[cfg(test)]
mod tests;
