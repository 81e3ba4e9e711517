//! Pools: their claims are created, started, drained and deleted as was decided.

use super::claims::{KIND as CLAIM, Managed};
use super::entry::Entry;
use super::times::Known;
use super::{Core, Due};
use crate::backoff::hash;
use crate::cluster::Keep;
use crate::conditions;
use crate::machine::Sight;
use crate::notice::Notice;
use crate::object::{Name, fleet_kind};
use crate::pool::{self, Decision, Hold, Member, Observed, POOL_LABEL, State};
use crate::versions::Version;
use api::fleet::{
    BUSY, CLEANUP_FINALIZER, ClaimPhase, ClaimPower, DRAIN, Github, Gitlab, IN_USE_FINALIZER, MANAGED_BY,
    RunnerPoolSpec, RunnerPoolStatus, Runners, Workload, WorkloadConfig,
};
use change::{Effect, Moment, Now};
use protocol::{Command, Write, WriteError, Written};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

const KIND: &str = "RunnerPool";
/// So many claims of a pool may fail within [`WITHIN`] before the next are created slowly.
const MANY_FAILURES: usize = 5;
const WITHIN: Duration = Duration::from_secs(600);
const SLOWLY: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_secs(2);

/// A pool and what is known of it.
#[derive(Debug)]
pub(super) struct ManagedPool {
    pub(super) entry: Entry<RunnerPoolSpec, RunnerPoolStatus>,
    /// Claims that were sent to the server and that the watch has not reported yet.
    creating: BTreeMap<Name, Creating>,
    /// Claims that have failed lately.
    failures: BTreeMap<Arc<str>, Moment>,
    /// Why no claim is created for a while.
    hold: Option<Hold>,
    counter: u32,
    reported: Option<(i32, i32, i32)>,
    /// The hold that was reported.
    reported_hold: Option<&'static str>,
    /// Since when it has more machines than are wanted.
    surplus: Known,
}

#[derive(Debug)]
struct Creating {
    power: ClaimPower,
    /// The version of its runner, if the fleet chooses it.
    version: Option<Version>,
    state: Sent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    InFlight,
    /// Perhaps it exists: the same name is sent again.
    Unknown(Moment),
    Exists,
}

impl ManagedPool {
    pub(super) fn new(entry: Entry<RunnerPoolSpec, RunnerPoolStatus>) -> ManagedPool {
        let (creating, failures) = (BTreeMap::new(), BTreeMap::new());
        let (reported, reported_hold, surplus) = (None, None, Known::default());
        ManagedPool { entry, creating, failures, hold: None, counter: 0, reported, reported_hold, surplus }
    }

    /// Why no claim is created now, in one word.
    pub(super) fn held(&self, now: Moment) -> Option<&'static str> {
        self.hold.as_ref().filter(|hold| now < hold.until).map(|hold| hold.reason)
    }

    /// The runner versions of claims that were sent to the server.
    pub(super) fn creating_versions(&self) -> impl Iterator<Item = (&Name, Option<Version>)> {
        self.creating.iter().map(|(claim, creating)| (claim, creating.version))
    }
}

impl Core {
    /// The watch has reported a claim. While its creation is not answered it stays here: an answer names only the object.
    pub(super) fn pool_claim_seen(&mut self, pool: &Name, claim: &Name) {
        if let Some(managed) = self.pools.get_mut(pool)
            && managed.creating.get(claim).is_some_and(|creating| creating.state != Sent::InFlight)
        {
            managed.creating.remove(claim);
        }
    }

    /// Whether the answer to the creation of a claim is on its way, so that no other write of it may begin.
    pub(super) fn is_being_created(&self, claim: &Name) -> bool {
        let spec = self.claims.get(claim).map(|managed| &managed.entry.object.spec);
        let Some(pool) = spec.and_then(|spec| spec.runner_pool_ref.as_ref()) else { return false };
        let managed = self.pools.get(&claim.beside(None, &pool.name));
        let creating = managed.and_then(|managed| managed.creating.get(claim));
        creating.is_some_and(|creating| creating.state == Sent::InFlight)
    }

    /// All claims were listed: those that exist were reported.
    pub(super) fn pool_claims_listed(&mut self) {
        for managed in self.pools.values_mut() {
            managed.creating.retain(|_, creating| creating.state != Sent::Exists);
        }
    }

    /// Takes the answer to the creation of a claim; false if it is not that.
    pub(super) fn claim_created(&mut self, claim: &Name, result: &Result<Written, WriteError>) -> bool {
        let now = self.now.monotonic;
        let found = self.pools.iter_mut().find_map(|(name, managed)| {
            let creating = managed.creating.get_mut(claim).filter(|creating| creating.state == Sent::InFlight)?;
            match result {
                _ if self.claims.contains_key(claim) => {
                    managed.creating.remove(claim);
                }
                Ok(_) => creating.state = Sent::Exists,
                Err(WriteError::Transient { .. }) => creating.state = Sent::Unknown(now.after(AGAIN)),
                Err(error) => {
                    managed.creating.remove(claim);
                    let message =
                        format!("the API server refuses new claims: {error}; the next attempt is a minute later");
                    managed.hold = Some(Hold { until: now.after(SLOWLY), reason: "ClaimRefused", message });
                }
            }
            Some(name.clone())
        });
        let Some(pool) = found else { return false };
        if let Err(error) = result {
            self.wake(Due::Pool(pool.clone()), now.after(AGAIN));
            self.notify(Notice::WriteFailed { key: claim.key(CLAIM), why: error.to_string() });
        }
        self.due.insert(Due::Pool(pool));
        self.due.insert(Due::Claim(claim.clone()));
        true
    }

    /// Reconciles a pool.
    pub(super) fn reconcile_pool(&mut self, name: &Name) {
        // Before all claims are known, none is missing.
        if !self.watches.is_listed(&super::observing::target(CLAIM)) {
            return;
        }
        self.decide_versions(name);
        let members = self.members(name);
        if let Some(managed) = self.pools.get_mut(name) {
            let since = managed.entry.object.status.surplus_since.as_ref().and_then(conditions::read);
            managed.surplus.follow(since, self.now);
        }
        self.note_failures(name, &members);
        let (Some(managed), Some(mut pool)) = (self.pools.get(name), self.pool_with_demand(name)) else { return };
        let template = name.beside(None, &managed.entry.object.spec.template_ref.name);
        let size = self.templates.get(&template).and_then(super::templates::ManagedTemplate::size);
        // If the clock was set, it is published by the clock as it is now.
        let since = managed.surplus.at(self.now).map(conditions::shown);
        pool.status.surplus_since = pool.status.surplus_since.and(since);
        let no_version = self.version_hold(name);
        let hold = no_version.as_ref().or(managed.hold.as_ref());
        let observed = Observed { pool: &pool, members: &members, size, hold, now: self.now };
        let mut decision = pool::decide(&observed);
        self.complete_pool(name, &members, &mut decision.status);
        if decision.keep == Keep::Remove && !self.has_left(name) {
            decision.keep = Keep::AsIs;
        }
        if let Some(wake) = decision.wake {
            self.wake(Due::Pool(name.clone()), wake);
        }
        self.report_pool(name, &decision);
        self.carry_out_pool(name, decision);
    }

    fn members(&self, name: &Name) -> Vec<Member> {
        // A template that cannot be used replaces nothing.
        let template = self.pools.get(name).and_then(|pool| {
            let reference = &pool.entry.object.spec.template_ref;
            let template = self.templates.get(&name.beside(None, &reference.name)).filter(|found| found.is_valid)?;
            Some((reference, template.entry.object.generation))
        });
        let claims = self.of_pool.get(name).into_iter().flatten();
        let known = claims.filter_map(|claim| {
            let Some(managed) = self.claims.get(claim) else {
                // Its machine takes a place all the same.
                let unreadable = self.unreadable.get_key_value(claim)?;
                return Some(Member::new(unreadable.0.clone(), self.now.wall, State::Ending));
            };
            let state = self.runner_state(claim).unwrap_or_else(|| state(managed, self.now));
            let spec = &managed.entry.object.spec;
            Some(Member {
                is_configured: matches!(managed.sight, Sight::Ours { is_configured: true, .. }),
                is_outdated: template.is_some_and(|(name, generation)| {
                    spec.template_ref != *name || spec.template_generation.is_some_and(|of| of != generation)
                }),
                ..Member::new(claim.clone(), managed.created(self.now), state)
            })
        });
        let mut members: Vec<Member> = known.collect();
        let creating = self.pools.get(name).into_iter().flat_map(|managed| &managed.creating);
        for (claim, creating) in creating.filter(|(claim, _)| !self.claims.contains_key(*claim)) {
            let state = match creating.power {
                ClaimPower::Running => State::Starting,
                ClaimPower::Stopped => State::Standby,
            };
            members.push(Member::new(claim.clone(), self.now.wall, state));
        }
        members
    }

    /// A pool whose claims keep failing creates them slowly.
    fn note_failures(&mut self, name: &Name, members: &[Member]) {
        let now = self.now.monotonic;
        let has_failed = |member: &&Member| {
            let claim = self.claims.get(&member.name).map(|managed| &managed.entry.object);
            // A machine that stopped before it was ready is no success either.
            let is_dead = claim.is_some_and(|claim| {
                claim.deleting.is_some()
                    && claim.status.started_time.is_some()
                    && claim.status.ready_time.is_none()
                    && !claim.is_switched(DRAIN)
            });
            let has_failed = self.claims.get(&member.name).and_then(|managed| managed.runner.as_deref());
            member.state == State::Failed || is_dead || has_failed.is_some_and(|hosted| hosted.failure.is_some())
        };
        let failed: Vec<&Member> = members.iter().filter(has_failed).collect();
        let Some(managed) = self.pools.get_mut(name) else { return };
        managed.failures.retain(|_, at| at.after(WITHIN) > now);
        for member in failed {
            let is_new = !managed.failures.contains_key(&member.name.name);
            managed.failures.entry(member.name.name.clone()).or_insert(now);
            if is_new && managed.failures.len() >= MANY_FAILURES {
                let message = format!(
                    "{} claims have failed within {} min, so that one is created a minute at most: look at the failed claims",
                    managed.failures.len(),
                    WITHIN.as_secs() / 60
                );
                managed.hold = Some(Hold { until: now.after(SLOWLY), reason: "BackingOff", message });
            }
        }
    }

    fn carry_out_pool(&mut self, name: &Name, decision: Decision) {
        let now = self.now.monotonic;
        self.create_again(name);
        for (count, power) in [(decision.create, ClaimPower::Running), (decision.create_standby, ClaimPower::Stopped)] {
            for _ in 0..count {
                if self.slots.free() == 0 {
                    self.slots.wait(Due::Pool(name.clone()));
                    break;
                }
                self.create_claim(name, power);
            }
        }
        for claim in decision.start {
            self.change_claim(name, &claim, |entry, kinds| {
                entry.spec(CLAIM, kinds, &json!({"op": "add", "path": "/spec/power", "value": "Running"}))
            });
        }
        for claim in decision.drain.into_iter().chain(self.unfit_claims(name)) {
            self.change_claim(name, &claim, |entry, kinds| entry.annotate(CLAIM, kinds, DRAIN, "true"));
        }
        for claim in decision.delete {
            self.change_claim(name, &claim, |entry, kinds| entry.delete(CLAIM, kinds));
        }
        let Some(managed) = self.pools.get_mut(name) else { return };
        if !managed.entry.is_writable(now) {
            if let Some(until) = managed.entry.blocked_until.filter(|until| *until > now) {
                self.wake(Due::Pool(name.clone()), until);
            }
            return;
        }
        let (entry, kinds) = (&mut managed.entry, &self.discovery.kinds);
        let write = match decision.keep {
            Keep::Add => entry.finalizer(KIND, kinds, IN_USE_FINALIZER, true),
            Keep::Remove => entry.finalizer(KIND, kinds, IN_USE_FINALIZER, false),
            Keep::AsIs if decision.status != entry.object.status => entry.status(KIND, kinds, decision.status),
            Keep::AsIs => None,
        };
        self.commands.extend(write.map(|write| Command::Write(Box::new(write))));
    }

    /// Writes a claim of a pool, unless a write of it is in flight: then the pool is looked at again when that has ended.
    fn change_claim(
        &mut self,
        pool: &Name,
        claim: &Name,
        change: impl FnOnce(
            &mut Entry<api::fleet::MachineClaimSpec, api::fleet::MachineClaimStatus>,
            &protocol::Kinds,
        ) -> Option<Write>,
    ) {
        let now = self.now.monotonic;
        if self.is_being_created(claim) {
            return;
        }
        let Some(managed) = self.claims.get_mut(claim) else { return };
        if managed.entry.object.deleting.is_some() {
            return;
        }
        if !managed.entry.is_writable(now) {
            if let Some(until) = managed.entry.blocked_until.filter(|until| *until > now) {
                self.wake(Due::Pool(pool.clone()), until);
            }
            return;
        }
        if self.slots.free() == 0 {
            return self.slots.wait(Due::Pool(pool.clone()));
        }
        if let Some(write) = change(&mut managed.entry, &self.discovery.kinds) {
            self.slots.acquire(claim);
            self.commands.push(Command::Write(Box::new(write)));
        }
    }

    /// Sends claims again of which nobody knows whether they exist.
    fn create_again(&mut self, name: &Name) {
        let now = self.now.monotonic;
        let Some(managed) = self.pools.get_mut(name) else { return };
        let (mut again, free) = (Vec::new(), self.slots.free());
        for (claim, creating) in &mut managed.creating {
            if again.len() == free {
                self.slots.wait(Due::Pool(name.clone()));
                break;
            }
            if matches!(creating.state, Sent::Unknown(at) if at <= now) {
                creating.state = Sent::InFlight;
                again.push(claim.clone());
            }
        }
        for claim in again {
            self.send_claim(name, &claim);
        }
    }

    fn create_claim(&mut self, pool: &Name, power: ClaimPower) {
        let wall = self.now.wall.as_nanosecond();
        let Ok(version) = self.next_version(pool) else { return };
        let Some(managed) = self.pools.get_mut(pool) else { return };
        let claim = loop {
            managed.counter = managed.counter.wrapping_add(1);
            let suffix = suffix(hash(&format!("{}{wall}", managed.entry.object.uid), managed.counter));
            let claim = pool.beside(None, &pool::claim_name(&pool.name, &suffix));
            if !self.claims.contains_key(&claim) && !managed.creating.contains_key(&claim) {
                break claim;
            }
        };
        managed.creating.insert(claim.clone(), Creating { power, version, state: Sent::InFlight });
        self.send_claim(pool, &claim);
    }

    fn send_claim(&mut self, pool: &Name, claim: &Name) {
        let (Some(managed), key) = (self.pools.get(pool), claim.key(CLAIM)) else { return };
        let Some(creating) = managed.creating.get(claim) else { return };
        let Some(served) = self.discovery.kinds.find(&key.kind) else { return };
        let template = self.templates.get(&pool.beside(None, &managed.entry.object.spec.template_ref.name));
        let generation = template.map(|template| template.entry.object.generation);
        let effect = Effect::Create { object: claim_object(&managed.entry.object, claim, creating, generation) };
        self.slots.acquire(claim);
        self.commands.push(Command::Write(Box::new(Write { key, served, effect, attempt: 0, backup: None })));
    }

    fn report_pool(&mut self, name: &Name, decision: &Decision) {
        let now = self.now.monotonic;
        let Some(managed) = self.pools.get_mut(name) else { return };
        managed.hold.take_if(|hold| hold.until <= now);
        let held = managed.hold.as_ref().map(|hold| hold.reason);
        if std::mem::replace(&mut managed.reported_hold, held) != held
            && let Some(Hold { reason, message, .. }) = managed.hold.clone()
        {
            let uid = managed.entry.object.uid.clone();
            self.notify(Notice::PoolHeld { name: name.clone(), uid, reason, message });
        }
        let Some(managed) = self.pools.get_mut(name) else { return };
        let status = &decision.status;
        let desired = status.desired_replicas.unwrap_or_default();
        let (replicas, ready) = (status.replicas, status.ready_replicas.unwrap_or_default());
        if managed.reported.replace((desired, replicas, ready)) == Some((desired, replicas, ready)) {
            return;
        }
        let uid = managed.entry.object.uid.clone();
        let message = status.conditions.first().map(|condition| condition.message.clone()).unwrap_or_default();
        self.notify(Notice::Pool { name: name.clone(), uid, desired, replicas, ready, message });
    }
}

/// What a claim is to its pool.
fn state(managed: &Managed, now: Now) -> State {
    let claim = &managed.entry.object;
    match claim.status.phase {
        _ if claim.deleting.is_some() => State::Ending,
        Some(ClaimPhase::Failed) => State::Failed,
        _ if claim.is_switched(DRAIN) => {
            let turned = managed.times.draining.at(now).or_else(|| managed.turned());
            State::Draining(turned.unwrap_or(claim.created))
        }
        _ if claim.spec.power == ClaimPower::Stopped => State::Standby,
        Some(ClaimPhase::Ready) if claim.is_switched(BUSY) => State::Busy,
        // Its next status says since when it is idle.
        Some(ClaimPhase::Ready) => {
            let since = claim.status.idle_since.as_ref().and_then(conditions::read);
            since.map(|since| managed.times.idle.at(now).unwrap_or(since)).map_or(State::Busy, State::Idle)
        }
        _ => State::Starting,
    }
}

/// A claim of a pool. It has its finalizer from the first moment.
fn claim_object(pool: &pool::Pool, claim: &Name, creating: &Creating, template: Option<i64>) -> Value {
    let kind = fleet_kind(CLAIM);
    let mut spec = json!({
        "templateRef": pool.spec.template_ref,
        "runnerPoolRef": {"name": &*pool.name.name},
        "power": creating.power,
    });
    if let Some(generation) = template {
        spec["templateGeneration"] = json!(generation);
    }
    if let Some(version) = creating.version {
        spec["runnerVersion"] = json!(version);
    }
    if let Some(most) = &pool.spec.lifecycle.max_lifetime {
        spec["maxLifetime"] = json!(most);
    }
    if let Some(workload) = &pool.spec.workload {
        spec["workloadConfig"] = json!(of_claim(workload));
    }
    json!({
        "apiVersion": kind.api_version(),
        "kind": kind.kind,
        "metadata": {
            "name": &*claim.name,
            "namespace": &*claim.namespace,
            "labels": {POOL_LABEL: pool::label(&pool.name.name), MANAGED_BY.0: MANAGED_BY.1},
            "finalizers": [CLEANUP_FINALIZER],
            "ownerReferences": [{
                "apiVersion": kind.api_version(), "kind": KIND, "name": &*pool.name.name, "uid": pool.uid, "controller": true,
            }],
        },
        "spec": spec,
    })
}

/// What a claim says about its work: of the settings of runners only those that say whose they are, since thousands of claims repeat them.
fn of_claim(workload: &Workload) -> Workload {
    let config = match workload.runners() {
        None => return workload.clone(),
        Some(Runners::Github(github)) => {
            let kept = Github {
                server: github.server.clone(),
                organization: github.organization.clone(),
                repository: github.repository.clone(),
                enterprise: github.enterprise.clone(),
                labels: github.labels.clone(),
                runner_group: github.runner_group.clone(),
                credentials: github.credentials.clone(),
                sources: github.sources.clone(),
                ..Github::default()
            };
            WorkloadConfig { github: Some(Box::new(kept)), ..WorkloadConfig::default() }
        }
        Some(Runners::Gitlab(gitlab)) => {
            let kept = Gitlab {
                url: gitlab.url.clone(),
                group: gitlab.group.clone(),
                project: gitlab.project.clone(),
                tags: gitlab.tags.clone(),
                run_untagged: gitlab.run_untagged,
                credentials: gitlab.credentials.clone(),
                sources: gitlab.sources.clone(),
                ..Gitlab::default()
            };
            WorkloadConfig { gitlab: Some(Box::new(kept)), ..WorkloadConfig::default() }
        }
    };
    Workload { r#type: workload.r#type.clone(), config: Some(config) }
}

/// Five characters that a name may have, without vowels.
fn suffix(number: u64) -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut number = number;
    let mut text = String::new();
    for _ in 0..5 {
        let letter = usize::try_from(number % 27).unwrap_or_default();
        text.push(char::from(LETTERS[letter]));
        number /= 27;
    }
    text
}
