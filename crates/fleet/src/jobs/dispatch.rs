//! The state machine of jobs and runners: events in, requests to GitHub and orders about claims out.
//!
//! `take` notes what happened; `decide` looks at everything that is known and says what to do. It may be called at any time and any number
//! of times. Nothing here has to survive a crash: the table is filled again by polls, and runners are in the status of their claims.

use super::assign::{self, Assignment, Supply};
use super::budget::{Allowance, Purpose};
use super::demand::{self, Hearing, Pool, Scope, Wait};
use super::exchange::{Ask, Decision, Event, Objects, Order, Registration, Removal};
use super::job::{JobKey, Repository, Source, is_below};
use super::look_ups::LookUps;
use super::orphan_runners::Marks;
use super::runners::{self, Claim, Known, Phase, Seen, Step, runner_name, work};
use super::story::What;
use super::table::{Change, Job, LookUp, Table};
use crate::object::Name;
use change::{Moment, Now};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How often jobs are listed, and while none is open, no machine exists and webhooks or a scale set are heard of. What has not changed since
/// the last list costs nothing.
const LIST_JOBS: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(300));
/// A source works that was heard of since.
const LATELY: Duration = Duration::from_secs(3_600);
/// How often runners are listed while machines exist, and otherwise.
const LIST_RUNNERS: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));
/// A job that nobody has said to be open for so long is looked up: its repository may be gone, or is in no list.
const UNCONFIRMED: Duration = LIST_JOBS.1;
/// After a list that failed.
const AGAIN: Duration = Duration::from_secs(20);
/// While anything goes on, it is looked at again so often at least.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How a scale set stands is known for so long without a session.
const SEEN: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, Default)]
struct Poll {
    is_waiting: bool,
    next: Moment,
}

/// All that is known.
#[derive(Debug)]
pub struct Dispatch {
    operator: String,
    /// What the names of our runners begin with.
    prefix: String,
    table: Table,
    /// The uid of each claim and the name of its runner.
    names: BTreeMap<Name, (String, String)>,
    known: BTreeMap<Name, Known>,
    marks: Marks,
    /// Orphans that may be removed.
    orphans: BTreeMap<(Scope, u64), bool>,
    /// Lists of runners that were not looked at yet.
    lists: BTreeMap<Scope, (Moment, Vec<Seen>)>,
    /// How many jobs are assigned to each scale set: which message says so, how many, and when that was heard.
    assigned: BTreeMap<u64, ((u64, u64), u32, Moment)>,
    allowances: BTreeMap<String, Allowance>,
    job_polls: BTreeMap<String, Poll>,
    /// When a webhook or a scale set was heard of last, by the owner of the repository.
    heard: BTreeMap<String, Moment>,
    runner_polls: BTreeMap<Scope, Poll>,
    look_ups: LookUps,
    waits: BTreeMap<JobKey, Wait>,
    asked_limits: BTreeMap<String, Moment>,
}

impl Dispatch {
    /// Nothing is known yet.
    pub fn new(operator: &str) -> Dispatch {
        Dispatch {
            operator: operator.to_owned(),
            prefix: runners::prefix(operator),
            names: BTreeMap::new(),
            table: Table::default(),
            known: BTreeMap::new(),
            marks: Marks::default(),
            orphans: BTreeMap::new(),
            lists: BTreeMap::new(),
            assigned: BTreeMap::new(),
            allowances: BTreeMap::new(),
            job_polls: BTreeMap::new(),
            heard: BTreeMap::new(),
            runner_polls: BTreeMap::new(),
            look_ups: LookUps::default(),
            waits: BTreeMap::new(),
            asked_limits: BTreeMap::new(),
        }
    }

    /// All jobs.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Why jobs wait, as was decided last.
    pub fn waits(&self) -> &BTreeMap<JobKey, Wait> {
        &self.waits
    }

    /// What is left of the limit of requests and the limit itself, by owner.
    pub fn budgets(&self) -> BTreeMap<String, (u32, u32)> {
        self.allowances.iter().filter_map(|(owner, allowance)| Some((owner.clone(), allowance.left()?))).collect()
    }

    /// What is left of the limit of requests for an owner.
    pub fn allowance(&mut self, owner: &str) -> &mut Allowance {
        self.allowances.entry(owner.to_owned()).or_default()
    }

    /// The claim of a runner of ours.
    pub fn claim_of(&self, runner: &str) -> Option<&Name> {
        self.names.iter().find(|(_, (_, name))| name == runner).map(|(claim, _)| claim)
    }

    /// Takes an event.
    pub fn take(&mut self, event: Event, now: Now) {
        match event {
            Event::Observed(observation) => {
                if self.table.observe(&observation, now.wall) == Change::Unproven {
                    self.look_ups.doubt(&observation.facts);
                } else if observation.source != Source::Poll {
                    self.heard.insert(observation.facts.repository.owner, now.monotonic);
                }
            }
            Event::Doubted(observation) => self.look_ups.doubt(&observation.facts),
            Event::Listed(list) => {
                self.table.listed(&list, now.wall);
                self.polled(&list.owner, None, now);
            }
            Event::ListFailed(owner) => self.polled(&owner, Some(AGAIN), now),
            Event::LookedUp { key, asked, answer } => {
                let repository = self.look_ups.repository(&key);
                // That another repository has no such job says nothing about it.
                let is_about = |job: &Job| repository.is_none_or(|found| job.facts.repository == *found);
                if answer != LookUp::Absent || self.table.get(&key).is_some_and(is_about) {
                    self.table.looked_up(&key, asked, &answer, now.wall);
                }
                self.look_ups.answered(&key, answer == LookUp::Failed, now.monotonic);
            }
            Event::Runners { scope, asked, runners } => {
                let next = if runners.is_none() { now.monotonic.after(AGAIN) } else { Moment::default() };
                let poll = self.runner_polls.entry(scope.clone()).or_default();
                *poll = Poll { is_waiting: false, next: poll.next.max(next) };
                if let Some(runners) = runners {
                    self.lists.insert(scope, (asked, runners));
                }
            }
            Event::Assigned { scale_set, order, jobs, offered } => {
                let heard = (order, jobs, now.monotonic);
                let known = self.assigned.entry(scale_set).or_insert(heard);
                if order >= known.0 {
                    *known = heard;
                    self.table.scale_set_stands(scale_set, jobs, offered, now.wall);
                }
            }
            Event::Withdrawn { scale_set, requests } => self.table.withdrawn(scale_set, &requests, now.wall),
            Event::ScaleSetGone(scale_set) => {
                self.assigned.remove(&scale_set);
                self.table.scale_set_is_gone(scale_set, now.wall);
            }
            Event::Limits { owner, limit, remaining, reset } => {
                self.allowances.entry(owner).or_default().set(limit, remaining, reset);
            }
            Event::Paused { owner, until } => self.allowances.entry(owner).or_default().pause(until),
            Event::Removed { scope, id, claim: None, answer } => match answer {
                Removal::Removed => drop(self.orphans.remove(&(scope, id))),
                Removal::Busy | Removal::Unknown => drop(self.orphans.insert((scope, id), false)),
            },
            Event::Registered { claim, answer } => self.of_claim(&claim, now, |known, now| match answer {
                Registration::Done(id) => {
                    *known = Known::registered(id, known.asked_set, known.asked_scope.take(), now.wall);
                    Ok(())
                }
                Registration::NameTaken => {
                    known.is_uncertain = true;
                    Ok(())
                }
                Registration::Refused => Err(()),
                Registration::Unknown => {
                    known.is_uncertain = true;
                    Err(())
                }
            }),
            Event::Found { claim, answer } => self.of_claim(&claim, now, |known, _| {
                known.stray = answer?;
                known.is_uncertain = false;
                Ok(())
            }),
            Event::Reported { claim, is_busy } => {
                let runner = self.names.get(&claim).map(|(_, name)| name.clone()).unwrap_or_default();
                if let Some(known) = self.known.get_mut(&claim) {
                    known.reported(is_busy, now);
                    if is_busy && work(&self.table, &runner) == runners::Work::None {
                        // Which job it is, nobody has said: until then the job seems to wait for another machine.
                        self.job_polls.values_mut().for_each(|poll| poll.next = poll.next.min(now.monotonic));
                    }
                }
            }
            Event::Delivered { claim, is_delivered } => self.of_claim(&claim, now, |known, now| {
                known.failed_deliveries += u32::from(!is_delivered);
                known.delivered = is_delivered.then_some(now.wall);
                is_delivered.then_some(()).ok_or(())
            }),
            Event::Removed { id, claim: Some(claim), answer, .. } => {
                self.of_claim(&claim, now, |known, _| match answer {
                    Removal::Removed if known.stray == Some(id) => {
                        known.stray = None;
                        Ok(())
                    }
                    Removal::Removed => {
                        known.is_removed = true;
                        Ok(())
                    }
                    Removal::Busy => {
                        known.is_busy = true;
                        Err(())
                    }
                    Removal::Unknown => Err(()),
                });
            }
        }
    }

    /// An answer about a claim's runner: an error is tried again later.
    fn of_claim(&mut self, claim: &Name, now: Now, take: impl FnOnce(&mut Known, Now) -> Result<(), ()>) {
        let Some(known) = self.known.get_mut(claim) else { return };
        known.is_waiting = false;
        match take(known, now) {
            Ok(()) => known.failures = 0,
            Err(()) => known.failed(now.monotonic, &claim.name),
        }
    }

    fn polled(&mut self, owner: &str, again: Option<Duration>, now: Now) {
        let poll = self.job_polls.entry(owner.to_owned()).or_default();
        poll.is_waiting = false;
        if let Some(again) = again {
            poll.next = now.monotonic.after(again);
        }
    }

    /// Decides what to do.
    pub fn decide(&mut self, objects: Objects<'_>, now: Now) -> Decision {
        let mut decision = Decision { wake: now.monotonic.after(LIST_JOBS.1), ..Decision::default() };
        self.table.prune(now.wall);
        self.table.forget(|facts| !demand::concerns(facts, objects.pools, &self.prefix));
        self.name_runners(objects);
        self.read_lists(objects, now);
        let supply = self.decide_runners(objects, now, &mut decision);
        let assignment = self.assign(objects, &supply, now);
        self.note_waits(&assignment, now);
        (decision.scale, decision.waits) = (assignment.scale, assignment.waits.clone());
        decision.acquire = assignment.acquire;
        self.waits = assignment.waits;
        self.remove_orphans(now, &mut decision);
        self.ask_limits(objects, now, &mut decision);
        self.poll(objects, now, &mut decision);
        if !objects.claims.is_empty() || self.table.all().any(Job::is_open) {
            decision.wake = decision.wake.min(now.monotonic.after(LOOK_AGAIN));
        }
        decision
    }

    fn assign(&mut self, objects: Objects<'_>, supply: &BTreeMap<Name, Supply>, now: Now) -> Assignment {
        let mut limited = BTreeMap::new();
        for (owner, allowance) in &mut self.allowances {
            if let Err(until) = allowance.check(Purpose::Runner, 1, now.wall) {
                limited.insert(owner.clone(), until);
            }
        }
        let runners = self.names.values().map(|(_, name)| name.as_str()).collect();
        assign::assign(&assign::Observed {
            table: &self.table,
            pools: objects.pools,
            supply,
            assigned: &self.assigned(objects.pools, supply, now),
            rules: objects.rules,
            limited: &limited,
            runners: &runners,
            now,
        })
    }

    /// How many jobs are assigned to each scale set.
    fn assigned(&self, pools: &[Pool], supply: &BTreeMap<Name, Supply>, now: Now) -> BTreeMap<u64, u32> {
        let counted = self.assigned.iter().map(|(id, (_, jobs, heard))| {
            let opening = pools.iter().find(|pool| pool.scale_set == Some(*id) && pool.hearing == Hearing::Opening);
            // Without a session nobody tells when a job ends: what was seen a while ago is no reason for another machine.
            let most = opening
                .filter(|_| heard.after(SEEN) < now.monotonic)
                .map(|pool| supply.get(&pool.name).map_or(0, Supply::machines));
            (*id, (*jobs).min(most.unwrap_or(u32::MAX)))
        });
        counted.collect()
    }

    fn note_waits(&mut self, assignment: &Assignment, now: Now) {
        for (key, wait) in &assignment.waits {
            if let Some(story) = self.table.story_of(key) {
                story.add(now.wall, What::Waits(wait.clone()));
            }
        }
    }

    /// The names of all runners. A claim with the name of an earlier one has another runner.
    fn name_runners(&mut self, objects: Objects<'_>) {
        if objects.is_complete {
            let claims: BTreeSet<&Name> = objects.claims.iter().map(|claim| &claim.name).collect();
            self.names.retain(|name, _| claims.contains(name));
            self.known.retain(|name, _| claims.contains(name));
        }
        for claim in objects.claims {
            if self.names.get(&claim.name).is_none_or(|(uid, _)| *uid != claim.uid) {
                let name = runner_name(&self.operator, &claim.name, &claim.uid);
                self.names.insert(claim.name.clone(), (claim.uid.clone(), name));
                self.known.insert(claim.name.clone(), Known::default());
            }
        }
    }

    /// Takes what lists of runners say about claims and orphans.
    fn read_lists(&mut self, objects: Objects<'_>, now: Now) {
        if self.lists.is_empty() {
            return;
        }
        let names: BTreeSet<&str> = self.names.values().map(|(_, name)| name.as_str()).collect();
        for (scope, (asked, runners)) in std::mem::take(&mut self.lists) {
            let by_name: BTreeMap<&str, &Seen> = runners.iter().map(|runner| (runner.name.as_str(), runner)).collect();
            for claim in objects.claims {
                let pool = objects.pools.iter().find(|pool| pool.name == claim.pool);
                let (Some((_, name)), Some(known)) = (self.names.get(&claim.name), self.known.get_mut(&claim.name))
                else {
                    continue;
                };
                let id = claim.runner.as_ref().map(|runner| runner.id).or(known.registered.map(|(id, _)| id));
                if id.is_some() && known.scope_of(id, claim, pool) == Some(&scope) {
                    known.listed(by_name.get(name.as_str()).copied(), asked, now);
                }
            }
            if objects.is_complete {
                let is_orphan = |name: &str| name.starts_with(&self.prefix) && !names.contains(name);
                for id in self.marks.listed(&scope, &runners, asked, is_orphan) {
                    self.orphans.entry((scope.clone(), id)).or_insert(false);
                }
                self.orphans.retain(|(of, id), is_waiting| {
                    *is_waiting
                        || *of != scope
                        || runners.iter().any(|runner| runner.id == *id && is_orphan(&runner.name))
                });
            }
        }
    }

    /// Decides about every runner; what machines there are for jobs.
    fn decide_runners(&mut self, objects: Objects<'_>, now: Now, decision: &mut Decision) -> BTreeMap<Name, Supply> {
        let mut supply: BTreeMap<Name, Supply> = BTreeMap::new();
        for claim in objects.claims {
            let Some((_, name)) = self.names.get(&claim.name).cloned() else { continue };
            let known = self.known.entry(claim.name.clone()).or_default();
            let pool = objects.pools.iter().find(|pool| pool.name == claim.pool);
            if claim.is_off {
                known.off_since.get_or_insert(now.monotonic);
            }
            let id = claim.runner.as_ref().map(|runner| runner.id);
            let scope = known.scope_of(id, claim, pool);
            // Nobody else's job runs on it, whatever an event says.
            let is_possible =
                |job: &Job| pool.is_none_or(|pool| scope.is_some_and(|scope| pool.can_run(&job.facts, scope)));
            let is_its = self.table.of_runner(&name).is_some_and(is_possible);
            let work = if is_its { work(&self.table, &name) } else { runners::Work::None };
            let set = pool.and_then(Pool::registers);
            let is_foreign = claim.runner.as_ref().is_some_and(|found| {
                set.is_some_and(|set| found.scale_set != set) || pool.is_some_and(|pool| scope != Some(&pool.scope))
            });
            let observed = runners::Observed { claim, known, work, name: &name, is_foreign, now };
            let (phase, step) = runners::decide(&observed);
            if let Some(story) = observed.work.job().and_then(|key| self.table.story_of(&key)) {
                story.add(now.wall, What::On { claim: claim.name.to_string(), pool: claim.pool.to_string() });
            }
            let machines = supply.entry(claim.pool.clone()).or_default();
            match &phase {
                _ if claim.machine == runners::Machine::Standby => {}
                // It may wait for its place for ever.
                _ if claim.machine == runners::Machine::Unplaced => machines.unplaced += 1,
                Phase::Starting => machines.starting.push((claim.name.to_string(), claim.since)),
                Phase::Online(since) => machines.idle.push((name.clone(), *since)),
                Phase::Busy(None) if known.is_job_unnamed(now) => {
                    machines.idle.insert(0, (name.clone(), now.wall));
                    machines.unnamed += 1;
                }
                Phase::Busy(_) => {
                    machines.busy += 1;
                    machines.others += u32::from(is_foreign);
                }
                Phase::Ending => {}
            }
            decision.phases.insert(claim.name.clone(), phase);
            self.carry_out(claim, name, step, pool, now, decision);
        }
        supply
    }

    fn carry_out(
        &mut self,
        claim: &Claim,
        name: String,
        step: Step,
        pool: Option<&Pool>,
        now: Now,
        decision: &mut Decision,
    ) {
        let (Some(known), owner) = (self.known.get_mut(&claim.name), claim.name.clone()) else { return };
        let id = match step {
            Step::Remove(id) => Some(id),
            _ => None,
        };
        let scope = match step {
            Step::Register => pool.map(|pool| pool.scope.clone()),
            _ => known.scope_of(id, claim, pool).cloned(),
        };
        let ask = match (step, scope) {
            (Step::Wait, _) => return,
            (Step::Record(record), _) => {
                if record.is_none() {
                    *known = Known::default();
                }
                return decision.orders.push((owner, Order::Record(record)));
            }
            (Step::Deliver, _) => {
                known.is_waiting = true;
                return decision.orders.push((owner, Order::Deliver));
            }
            (Step::End(why), _) => {
                if let Some(story) = work(&self.table, &name).job().and_then(|key| self.table.story_of(&key)) {
                    story.add(now.wall, What::MachineEnded(why.message().to_owned()));
                }
                if why.is_failure() {
                    let failed = What::MachineFailed(format!("{owner}: {}", why.message()));
                    note_failure(&mut self.table, &self.waits, &owner.to_string(), &failed, now.wall);
                }
                return decision.orders.push((owner, Order::End(why)));
            }
            // Without its pool nobody knows where the runner is, and another server does not know it.
            (_, None) => return,
            (Step::Register, Some(scope)) => {
                // Whose runner it is to be, is known soon.
                let Some(set) = pool.and_then(Pool::registers) else { return };
                (known.asked_set, known.asked_scope) = (set, Some(scope.clone()));
                (scope, Ask::Register { claim: owner, name, scale_set: known.asked_set })
            }
            (Step::Find, Some(scope)) => (scope.clone(), Ask::Find { scope, claim: owner, name }),
            (Step::Remove(id), Some(scope)) => (scope.clone(), Ask::Remove { scope, id, claim: Some(owner) }),
        };
        let (scope, ask) = ask;
        if self.allowances.entry(scope.owner).or_default().admit(Purpose::Runner, 1, now.wall).is_ok() {
            known.is_waiting = true;
            decision.asks.push(ask);
        }
    }

    fn remove_orphans(&mut self, now: Now, decision: &mut Decision) {
        for ((scope, id), is_waiting) in self.orphans.iter_mut().filter(|(_, is_waiting)| !**is_waiting) {
            let allowance = self.allowances.entry(scope.owner.clone()).or_default();
            if allowance.admit(Purpose::Poll, 1, now.wall).is_ok() {
                *is_waiting = true;
                decision.asks.push(Ask::Remove { scope: scope.clone(), id: *id, claim: None });
            }
        }
    }

    fn ask_limits(&mut self, objects: Objects<'_>, now: Now, decision: &mut Decision) {
        for owner in objects.pools.iter().map(|pool| &pool.scope.owner).collect::<BTreeSet<_>>() {
            let is_known = self.allowances.get(owner).is_some_and(Allowance::is_known);
            let is_due = self.asked_limits.get(owner).is_none_or(|asked| asked.after(AGAIN) <= now.monotonic);
            if !is_known && is_due {
                self.asked_limits.insert(owner.clone(), now.monotonic);
                decision.asks.push(Ask::Limits(owner.clone()));
            }
            if !is_known {
                decision.wake = decision.wake.min(now.monotonic.after(AGAIN));
            }
        }
    }

    /// Lists and look-ups that are due.
    fn poll(&mut self, objects: Objects<'_>, now: Now, decision: &mut Decision) {
        // Those of an enterprise are in no list.
        let listed = objects.pools.iter().filter(|pool| pool.polls);
        for owner in listed.map(|pool| &pool.scope.owner).collect::<BTreeSet<_>>() {
            let open = self.table.all().filter(|job| job.is_open() && job.facts.repository.is_of(owner));
            let runs: BTreeSet<u64> = open.map(|job| job.facts.run).collect();
            let is_heard = self.heard.iter().any(|(one, at)| is_below(one, owner) && now.monotonic < at.after(LATELY));
            let is_active = !runs.is_empty() || !objects.claims.is_empty() || !is_heard;
            let cost = u32::try_from(runs.len()).unwrap_or(u32::MAX).saturating_add(2);
            let poll = self.job_polls.entry(owner.clone()).or_default();
            poll.hurry(is_active, LIST_JOBS, now.monotonic);
            let allowance = self.allowances.entry(owner.clone()).or_default();
            if poll.is_due(now.monotonic) && allowance.admit(Purpose::Poll, cost, now.wall).is_ok() {
                *poll = Poll { is_waiting: true, next: now.monotonic.after(period(LIST_JOBS, is_active)) };
                decision.asks.push(Ask::ListJobs(owner.clone()));
            }
            decision.wake = decision.wake.min(poll.next.max(now.monotonic.after(Duration::from_secs(1))));
        }
        for scope in objects.pools.iter().map(|pool| &pool.scope).collect::<BTreeSet<_>>() {
            let is_active = !objects.claims.is_empty();
            let poll = self.runner_polls.entry(scope.clone()).or_default();
            poll.hurry(is_active, LIST_RUNNERS, now.monotonic);
            let allowance = self.allowances.entry(scope.owner.clone()).or_default();
            let cost = u32::try_from(objects.claims.len() / 100).unwrap_or(u32::MAX).saturating_add(1);
            if poll.is_due(now.monotonic) && allowance.admit(Purpose::Poll, cost, now.wall).is_ok() {
                *poll = Poll { is_waiting: true, next: now.monotonic.after(period(LIST_RUNNERS, is_active)) };
                decision.asks.push(Ask::ListRunners(scope.clone()));
            }
            decision.wake = decision.wake.min(poll.next.max(now.monotonic.after(Duration::from_secs(1))));
        }
        self.look_up(objects, now, decision);
    }

    /// Looks up jobs that lists do not show, after the lists: these say more for what they cost.
    fn look_up(&mut self, objects: Objects<'_>, now: Now, decision: &mut Decision) {
        let is_wanted = |job: &&Job| job.is_suspect() || job.is_unconfirmed(UNCONFIRMED, now.wall);
        let wanted = self.table.all().filter(is_wanted).map(|job| &job.facts);
        self.look_ups.set(wanted, |facts| demand::concerns(facts, objects.pools, &self.prefix));
        let allowances = &mut self.allowances;
        let asked = self.look_ups.ask(now.monotonic, |repository| {
            let Some(scope) = payer(objects.pools, repository) else { return false };
            allowances.entry(scope.owner.clone()).or_default().admit(Purpose::Poll, 1, now.wall).is_ok()
        });
        decision.asks.extend(asked.into_iter().map(|(repository, key)| Ask::LookUp(repository, key)));
    }
}

/// Jobs that waited for a machine that has failed say so.
fn note_failure(table: &mut Table, waits: &BTreeMap<JobKey, Wait>, claim: &str, what: &What, at: Timestamp) {
    let waited = waits.iter().filter(|(_, wait)| matches!(wait, Wait::Booting { claim: found, .. } if found == claim));
    for (key, _) in waited {
        if let Some(story) = table.story_of(key) {
            story.add(at, what.clone());
        }
    }
}

fn period((active, quiet): (Duration, Duration), is_active: bool) -> Duration {
    if is_active { active } else { quiet }
}

/// On whose limit a request about a repository is counted: an enterprise is only asked about what no other pool can see.
fn payer<'a>(pools: &'a [Pool], repository: &Repository) -> Option<&'a Scope> {
    let found = pools.iter().filter(|pool| pool.scope.has(repository, &pool.organizations)).map(|pool| &pool.scope);
    found.min_by_key(|scope| scope.is_enterprise())
}

impl Poll {
    fn is_due(&self, now: Moment) -> bool {
        !self.is_waiting && self.next <= now
    }

    /// What became active need not wait for the longer period.
    fn hurry(&mut self, is_active: bool, periods: (Duration, Duration), now: Moment) {
        if is_active {
            self.next = self.next.min(now.after(periods.0));
        }
    }
}

#[cfg(test)]
mod tests;
