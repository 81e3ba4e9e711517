//! The life of a `RunnerPool`: how many machines are wanted, which claims are created, started, drained and deleted for that.

mod schedule;
#[cfg(test)]
mod tests;

use crate::blueprint::shortened;
use crate::cluster::{Keep, keep};
use crate::conditions::{merge, read, shown, wanted};
use crate::object::{Name, Object};
use api::fleet::{IN_USE_FINALIZER, RunnerPoolSpec, RunnerPoolStatus, Span};
use change::{Moment, Now};
use jiff::Timestamp;
use std::time::Duration;

/// A pool.
pub type Pool = Object<RunnerPoolSpec, RunnerPoolStatus>;

/// A claim of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The claim.
    pub name: Name,
    /// When it was created.
    pub created: Timestamp,
    /// What it is to its pool.
    pub state: State,
    /// Whether its machine is configured, so that a spare only has to be started.
    pub is_configured: bool,
    /// Whether it was made of another template than the pool has now, or of an earlier state of it.
    pub is_outdated: bool,
}

impl Member {
    /// A claim of which nothing else is known.
    pub fn new(name: Name, created: Timestamp, state: State) -> Member {
        Member { name, created, state, is_configured: false, is_outdated: false }
    }
}

/// What a claim is to its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It is on its way to be ready.
    Starting,
    /// It is ready since then, and does nothing.
    Idle(Timestamp),
    /// It is ready, and works.
    Busy,
    /// Its machine is created and waits to be started.
    Standby,
    /// It takes no more work since then, and still works.
    Draining(Timestamp),
    /// It has failed, and is kept.
    Failed,
    /// It is being deleted.
    Ending,
}

/// Why no claim is created for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    /// Until when.
    pub until: Moment,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

/// All that a decision about a pool depends on.
#[derive(Debug)]
pub struct Observed<'a> {
    /// The object.
    pub pool: &'a Pool,
    /// Its claims.
    pub members: &'a [Member],
    /// CPUs and memory of one machine, if its template is known.
    pub size: Option<(u32, u64)>,
    /// Why no claim is created for a while.
    pub hold: Option<&'a Hold>,
    /// The present moment.
    pub now: Now,
}

impl Observed<'_> {
    /// What holds it back now.
    fn held(&self) -> Option<&Hold> {
        self.hold.filter(|hold| self.now.monotonic < hold.until)
    }
}

/// A decision about a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// How many claims to create whose machines run.
    pub create: usize,
    /// How many claims to create whose machines wait.
    pub create_standby: usize,
    /// Claims whose machines are started now.
    pub start: Vec<Name>,
    /// Claims that take no more work.
    pub drain: Vec<Name>,
    /// Claims that are deleted at once.
    pub delete: Vec<Name>,
    /// What is done to its finalizer.
    pub keep: Keep,
    /// The status.
    pub status: RunnerPoolStatus,
    /// When to decide again if nothing happens before.
    pub wake: Option<Moment>,
}

/// How many machines are to run, in how many steps of reasons: wanted, at least, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    desired: i32,
    min: i32,
    max: i32,
}

/// A stopped spare of a pool without a maximum lifetime is replaced after this.
const SPARES_LAST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The longest value of a label, and the longest name of a claim that is also the name of its host.
const LONGEST: usize = 63;

/// The value of the label of a pool's claims: its name, or a shorter one for a name that no label can have.
pub fn label(pool: &str) -> String {
    shortened(pool, LONGEST)
}

/// The name of a claim of a pool.
pub fn claim_name(pool: &str, suffix: &str) -> String {
    format!("{}-{suffix}", shortened(pool, LONGEST - 1 - suffix.len()))
}

/// Decides about a pool.
pub fn decide(observed: &Observed<'_>) -> Decision {
    let Observed { pool, members, now, .. } = observed;
    let is_deleting = pool.deleting.is_some();
    let of = |wanted: fn(&State) -> bool| members.iter().filter(move |member| wanted(&member.state));
    let names = |members: &[&Member]| members.iter().map(|member| member.name.clone()).collect::<Vec<Name>>();
    let active: Vec<&Member> = of(|state| matches!(state, State::Starting | State::Idle(_) | State::Busy)).collect();
    let mut standby: Vec<&Member> = of(|state| matches!(state, State::Standby)).collect();
    // Those that only have to be started first, then the oldest.
    standby.sort_by_key(|member| (!member.is_configured, member.is_outdated, member.created, member.name.clone()));
    let ready = of(|state| matches!(state, State::Idle(_) | State::Busy)).count();
    let terminating = terminating(members);
    let (size, schedule_wake) = size(observed);
    let mut decision = Decision {
        create: 0,
        create_standby: 0,
        start: Vec::new(),
        drain: Vec::new(),
        delete: Vec::new(),
        keep: keep(is_deleting, pool.has_finalizer(IN_USE_FINALIZER), members.is_empty()),
        status: pool.status.clone(),
        wake: schedule_wake,
    };
    let mut failed: Vec<&Member> = of(|state| matches!(state, State::Failed)).collect();
    failed.sort_by_key(|member| (std::cmp::Reverse(member.created), member.name.clone()));
    let number = |count: i32| usize::try_from(count).unwrap_or_default();
    // The machines of failed claims use the quota, too: fewer are kept if their places are wanted.
    let quota = by_quota(&pool.spec, observed.size).map_or(usize::MAX, number);
    let wanted = number(size.desired).saturating_add(number(pool.spec.scaling.spares.stopped)).min(number(size.max));
    let used = wanted.max(active.len() + standby.len() + terminating);
    let kept = if is_deleting { 0 } else { number(pool.spec.keep_failed).min(quota.saturating_sub(used)) };
    decision.delete.extend(names(failed.get(kept..).unwrap_or_default()));
    let places = number(size.max).min(quota.saturating_sub(failed.len()));
    let count = i32::try_from(active.len()).unwrap_or(i32::MAX);
    let mut surplus_since = None;
    if is_deleting {
        decision.delete.extend(names(&standby));
        decision.drain.extend(names(&active));
    } else if count < size.desired {
        let missing = number(size.desired - count);
        let startable = number(size.max).saturating_sub(active.len() + terminating).min(missing);
        decision.start = names(&standby[..startable.min(standby.len())]);
        let room = places.saturating_sub(active.len() + standby.len() + terminating);
        let more = (missing - decision.start.len()).min(room);
        match observed.held() {
            None => decision.create = more,
            Some(hold) => decision.wake = earliest(decision.wake, Some(hold.until)),
        }
    } else {
        let delay = duration(Some(&pool.spec.scaling.scale_down_delay)).unwrap_or_default();
        let surplus = number(count - size.desired);
        let since = (surplus > 0).then(|| pool.status.surplus_since.as_ref().and_then(read).unwrap_or(now.wall));
        surplus_since = since;
        let is_over = since.is_some_and(|since| change::now::later(since, delay) <= now.wall);
        let mut idle: Vec<&Member> = active.iter().filter(|member| member.state != State::Busy).copied().collect();
        // Those that are not ready yet first, then those that are outdated, then the oldest.
        idle.sort_by_key(|member| {
            (matches!(member.state, State::Idle(_)), !member.is_outdated, member.created, member.name.clone())
        });
        if is_over {
            decision.drain = names(&idle[..surplus.min(idle.len())]);
        } else if let Some(since) = since {
            decision.wake = earliest(decision.wake, Some(now.moment_of(change::now::later(since, delay))));
        }
        let spare = active.len().saturating_sub(decision.drain.len()).saturating_sub(number(size.desired));
        expire_idle(observed, &idle, spare, &mut decision);
    }
    let mut lacks_spares = false;
    if !is_deleting {
        let room = Room { most: number(size.max), places, active: active.len(), terminating };
        lacks_spares = size_standby(observed, &standby, room, &mut decision);
        replace(observed, active.len() + standby.len(), &mut decision);
    }
    time_out_jobs(observed, &mut decision);
    let counts = Counts { active: count, standby: standby.len(), ready, failed: failed.len().min(kept), lacks_spares };
    decision.status = status(observed, size, counts, surplus_since);
    decision
}

/// How many claims there are.
#[derive(Clone, Copy)]
struct Counts {
    active: i32,
    standby: usize,
    ready: usize,
    failed: usize,
    /// Whether spares are missing for which there is room.
    lacks_spares: bool,
}

/// What spares have to share.
#[derive(Clone, Copy)]
struct Room {
    most: usize,
    /// How many of those the machines of failed claims leave.
    places: usize,
    active: usize,
    terminating: usize,
}

/// How many claims are being deleted or drained: their machines count until they are gone, however long that takes.
fn terminating(members: &[Member]) -> usize {
    members.iter().filter(|member| matches!(member.state, State::Ending | State::Draining(_))).count()
}

/// Idle machines that nobody wants, for too long.
fn expire_idle(observed: &Observed<'_>, idle: &[&Member], spare: usize, decision: &mut Decision) {
    let Some(timeout) = duration(observed.pool.spec.lifecycle.idle_timeout.as_ref()) else { return };
    let mut left = spare;
    for member in idle.iter().filter(|member| !decision.drain.contains(&member.name)).copied().collect::<Vec<_>>() {
        let State::Idle(since) = member.state else { continue };
        let at = change::now::later(since, timeout);
        if at > observed.now.wall {
            decision.wake = earliest(decision.wake, Some(observed.now.moment_of(at)));
        } else if left > 0 {
            left -= 1;
            decision.drain.push(member.name.clone());
        }
    }
}

/// Claims whose machines wait: as many as are wanted, and together with those that run not more than the maximum. Whether some are missing.
fn size_standby(observed: &Observed<'_>, standby: &[&Member], places: Room, decision: &mut Decision) -> bool {
    let running = places.active + decision.start.len() + decision.create;
    let room = places.most.saturating_sub(running);
    let wanted = usize::try_from(observed.pool.spec.scaling.spares.stopped).unwrap_or_default().min(room);
    let there = standby.len().saturating_sub(decision.start.len());
    let free = places.places.saturating_sub(running + there + places.terminating);
    let missing = wanted.saturating_sub(there).min(free);
    match observed.held() {
        None => decision.create_standby = missing,
        Some(hold) if missing > 0 => decision.wake = earliest(decision.wake, Some(hold.until)),
        Some(_) => {}
    }
    let surplus = there.saturating_sub(wanted);
    decision.delete.extend(standby.iter().rev().take(surplus).map(|member| member.name.clone()));
    missing > 0
}

/// Idle machines and stopped spares that are outdated, and stopped spares that are too old, give way to others. Not more than a quarter of all
/// machines, but always one, is on its way at a time, so that a template that does not work empties no pool.
fn replace(observed: &Observed<'_>, there: usize, decision: &mut Decision) {
    if observed.held().is_some() {
        return;
    }
    let now = observed.now;
    let most = duration(observed.pool.spec.lifecycle.max_lifetime.as_ref()).unwrap_or(SPARES_LAST);
    let mut unfit: Vec<&Member> = Vec::new();
    for member in observed.members {
        let is_over = match member.state {
            State::Standby => {
                let end = change::now::later(member.created, most);
                if end > now.wall {
                    decision.wake = earliest(decision.wake, Some(now.moment_of(end)));
                }
                end <= now.wall
            }
            State::Idle(_) => false,
            _ => continue,
        };
        let is_chosen =
            [&decision.start, &decision.drain, &decision.delete].iter().any(|all| all.contains(&member.name));
        if (is_over || member.is_outdated) && !is_chosen {
            unfit.push(member);
        }
    }
    let is_on_its_way = |member: &&Member| match member.state {
        State::Starting | State::Draining(_) | State::Ending => true,
        State::Standby => !member.is_configured,
        State::Idle(_) | State::Busy | State::Failed => false,
    };
    let chosen = decision.create + decision.create_standby + decision.start.len() + decision.drain.len();
    let on_their_way = observed.members.iter().filter(is_on_its_way).count() + chosen;
    unfit.sort_by_key(|member| (member.created, member.name.clone()));
    for member in unfit.into_iter().take((there / 4).max(1).saturating_sub(on_their_way)) {
        let ends = if member.state == State::Standby { &mut decision.delete } else { &mut decision.drain };
        ends.push(member.name.clone());
    }
}

/// Drained machines that are busy for too long.
fn time_out_jobs(observed: &Observed<'_>, decision: &mut Decision) {
    let Some(timeout) = duration(observed.pool.spec.lifecycle.job_timeout.as_ref()) else { return };
    for member in observed.members {
        let State::Draining(since) = member.state else { continue };
        let at = change::now::later(since, timeout);
        match at <= observed.now.wall {
            true => decision.delete.push(member.name.clone()),
            false => decision.wake = earliest(decision.wake, Some(observed.now.moment_of(at))),
        }
    }
}

/// How many machines a pool may have: its maximum, and what its quota allows of this many CPUs and so much memory each.
pub fn maximum(spec: &RunnerPoolSpec, size: Option<(u32, u64)>) -> i32 {
    let max = spec.scaling.max_replicas.max(0);
    by_quota(spec, size).map_or(max, |allowed| max.min(allowed))
}

/// How many machines a quota allows.
fn by_quota(spec: &RunnerPoolSpec, size: Option<(u32, u64)>) -> Option<i32> {
    let (quota, (cpus, memory)) = (spec.quota.as_ref()?, size?);
    let by_cpu = quota.cpu.map(|allowed| u64::from(allowed) / u64::from(cpus.max(1)));
    let by_memory = quota.memory.as_ref().and_then(api::fleet::Quantity::bytes).map(|all| all / memory.max(1));
    by_cpu.into_iter().chain(by_memory).min().map(|allowed| i32::try_from(allowed).unwrap_or(i32::MAX))
}

/// How many machines are to run: demand and spares, at least the minimum of the hour, at most the maximum and the quota.
fn size(observed: &Observed<'_>) -> (Size, Option<Moment>) {
    let spec = &observed.pool.spec;
    let (scheduled, wake) = schedule::minimum(&spec.scaling.schedules, observed.now);
    let max = maximum(spec, observed.size);
    let min = spec.scaling.min_replicas.max(scheduled).clamp(0, max);
    let busy = observed.members.iter().filter(|member| member.state == State::Busy).count();
    let demand = spec.replicas.unwrap_or_default().max(i32::try_from(busy).unwrap_or(i32::MAX));
    let desired = demand.saturating_add(spec.scaling.spares.booted).clamp(min, max);
    (Size { desired, min, max }, wake)
}

fn status(observed: &Observed<'_>, size: Size, counts: Counts, surplus_since: Option<Timestamp>) -> RunnerPoolStatus {
    let Observed { pool, members, now, .. } = observed;
    let Counts { active, standby, ready, failed, lacks_spares } = counts;
    let total = active.saturating_add(i32::try_from(standby).unwrap_or(i32::MAX));
    let ready = i32::try_from(ready).unwrap_or(i32::MAX);
    let is_ready = ready >= size.min;
    let message = format!("{ready} of {} machines are ready", size.desired);
    let scaling = match active.cmp(&size.desired) {
        std::cmp::Ordering::Less => ("DemandIncreased", true),
        std::cmp::Ordering::Equal => ("AsWanted", false),
        std::cmp::Ordering::Greater => ("Surplus", surplus_since.is_some()),
    };
    let terminating = terminating(members);
    let is_full = usize::try_from(size.max).unwrap_or_default()
        <= terminating.saturating_add(usize::try_from(total).unwrap_or_default());
    let (scaling, why) = match scaling {
        ("DemandIncreased", _) if terminating > 0 && is_full => (
            ("WaitingForCleanup", true),
            format!("{} machines are wanted; {terminating} that are not gone yet take their places", size.desired),
        ),
        ("DemandIncreased", _) if let Some(hold) = observed.held() => {
            ((hold.reason, true), format!("{} machines are wanted; {}", size.desired, hold.message))
        }
        _ if lacks_spares && let Some(hold) = observed.held() => {
            ((hold.reason, true), format!("stopped spares are missing; {}", hold.message))
        }
        scaling => (scaling, format!("{} machines are wanted", size.desired)),
    };
    let ready_now = match schedule::invalid(&pool.spec.scaling.schedules) {
        Some(why) => wanted("Ready", false, "ScheduleInvalid", format!("{message}; {why}")),
        None => wanted("Ready", is_ready, if is_ready { "MinimumReady" } else { "Starting" }, message),
    };
    let mut conditions = vec![ready_now, wanted("Scaling", scaling.1, scaling.0, why)];
    if pool.deleting.is_some() {
        let held = format!("{} claims of the pool are not gone yet", members.len());
        conditions.push(wanted("InUse", !members.is_empty(), "Draining", held));
    }
    RunnerPoolStatus {
        observed_generation: Some(pool.generation),
        desired_replicas: Some(size.desired),
        replicas: total,
        ready_replicas: Some(ready),
        failed_replicas: i32::try_from(failed).ok(),
        selector: Some(format!("{POOL_LABEL}={}", label(&pool.name.name))),
        surplus_since: surplus_since.map(shown),
        conditions: merge(conditions, &pool.status.conditions, pool.generation, now.wall),
        // Counts by what runners do are added by whoever knows them.
        ..RunnerPoolStatus::default()
    }
}

/// The highest minimum of the schedules that hold now.
pub fn scheduled_minimum(schedules: &[api::fleet::Schedule], now: Now) -> i32 {
    schedule::minimum(schedules, now).0
}

/// The label of a pool's claims; its value is [`label`].
pub const POOL_LABEL: &str = "hyperfleet.io/pool";

fn duration(span: Option<&Span>) -> Option<Duration> {
    span.and_then(Span::duration)
}

fn earliest(one: Option<Moment>, other: Option<Moment>) -> Option<Moment> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}
