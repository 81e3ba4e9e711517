//! An operator that crashes, its claims and machines, and a GitHub whose events and answers get lost, late and repeated.

use super::github::{Github, GithubRunner, LIMIT, OWNER, Removed, SCALE_SET, wall};
use super::random::Random;
use crate::jobs::demand::{Pool, Scope};
use crate::jobs::dispatch::Dispatch;
use crate::jobs::exchange::{Ask, Event, Objects, Order, Registration, Removal};
use crate::jobs::fair::Rules;
use crate::jobs::hmac::hmac;
use crate::jobs::job::{JobKey, Observation, Source, State};
use crate::jobs::runners::{Claim, Machine, Phase, prefix, runner_name};
use crate::jobs::table::{List, LookUp};
use crate::jobs::webhook::{Delivery, Receiver, Verdict, check};
use crate::object::Name;
use api::fleet::RunnerPoolSpec;
use change::{Moment, Now};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SECRET: &[u8] = b"a secret";
const OPERATOR: &str = "operator-1";
/// How many machines the hypervisor has room for.
const ROOM: usize = 7;

pub(super) struct Vm {
    /// When it has booted; never if that fails.
    pub(super) boots_at: Option<u64>,
    pub(super) fails_at: Option<u64>,
    /// The runner that it was configured with, and when that is online.
    pub(super) runner: Option<(u64, u64)>,
    pub(super) ends_at: Option<u64>,
}

pub(super) struct Kept {
    pub(super) claim: Claim,
    pub(super) vm: Vm,
    pub(super) created: u64,
    pub(super) visible_at: u64,
}

enum Action {
    Webhook(String, String),
    /// A request arrives at GitHub.
    Arrive(u64, Ask),
    Answer(u64, Box<Event>),
    Write(Name, Order),
}

pub(super) struct World {
    pub(super) random: Random,
    pub(super) now: u64,
    started: u64,
    epoch: u64,
    is_calm: bool,
    faults: bool,
    pub(super) github: Github,
    dispatch: Dispatch,
    receiver: Receiver,
    pub(super) pools: Vec<Pool>,
    pub(super) spec: RunnerPoolSpec,
    rules: Rules,
    pub(super) claims: BTreeMap<Name, Kept>,
    /// Configurations of runners that the process has at hand.
    configs: BTreeMap<Name, u64>,
    actions: BTreeMap<(u64, u64), Action>,
    sequence: u64,
    wake: u64,
    bodies: Vec<String>,
    pub(super) phases: BTreeMap<Name, Phase>,
    pub(super) replicas: BTreeMap<Name, i32>,
    pub(super) surplus: BTreeMap<Name, api::fleet::RunnerPoolStatus>,
    pub(super) broken: Vec<String>,
    pub(super) history: Option<Vec<String>>,
    pub(super) machines: u64,
}

fn pools() -> Vec<Pool> {
    let pool = |name: &str, labels: &[&str], scale_set: Option<u64>| Pool {
        name: Name::new("ci", name),
        scope: Scope { owner: OWNER.into(), repository: None },
        organizations: BTreeSet::new(),
        repositories: None,
        group: None,
        labels: labels.iter().map(|&label| label.into()).collect(),
        scale_set,
        hearing: crate::jobs::demand::Hearing::Open,
        scaling: api::fleet::Scaling { max_replicas: 4, ..api::fleet::Scaling::default() },
        priority: 0,
        is_paused: false,
        readiness: crate::jobs::demand::Readiness::Open,
        polls: true,
        hypervisor: "pve".into(),
        room: None,
    };
    vec![
        pool("small", &["self-hosted", "pve"], None),
        pool("large", &["self-hosted", "pve", "large"], None),
        pool("set", &["set"], Some(SCALE_SET)),
    ]
}

impl World {
    pub(super) fn new(seed: u64, faults: bool) -> World {
        let mut world = World {
            random: Random(seed.wrapping_mul(0x9e37_79b9).wrapping_add(17)),
            now: 1_000,
            started: 1_000,
            epoch: 0,
            is_calm: false,
            faults,
            github: Github::new(),
            dispatch: Dispatch::new(OPERATOR),
            receiver: Receiver::default(),
            pools: pools(),
            spec: serde_json::from_value(serde_json::json!({
                "templateRef": {"name": "small"},
                "scaling": {"maxReplicas": 4, "scaleDownDelay": "30s"},
                "lifecycle": {"idleTimeout": "3m"},
            }))
            .unwrap(),
            rules: Rules::default(),
            claims: BTreeMap::new(),
            configs: BTreeMap::new(),
            actions: BTreeMap::new(),
            sequence: 0,
            wake: 0,
            bodies: Vec::new(),
            phases: BTreeMap::new(),
            replicas: BTreeMap::new(),
            surplus: BTreeMap::new(),
            broken: Vec::new(),
            history: None,
            machines: 0,
        };
        world.github.lag = world.random.below(25);
        if faults {
            world.rules.owners.insert(OWNER.into(), 3 + u32::try_from(world.random.below(6)).unwrap());
        }
        // Runners of others: one takes jobs too, one looks like an orphan of another installation.
        for (name, is_online) in [("somebodys-runner", true), ("vp-01234567-linux-x-0123456789", false)] {
            let id = world.github.register(name, &["self-hosted".into(), "pve".into()].into(), false, 0).unwrap();
            world.github.runners.get_mut(&id).unwrap().is_online = is_online && world.random.chance(30);
        }
        world
    }

    pub(super) fn fails(&mut self, percent: u64) -> bool {
        self.faults && !self.is_calm && self.random.chance(percent)
    }

    pub(super) fn time(&self) -> Now {
        Now { wall: wall(self.now), monotonic: Moment::since_start(Duration::from_secs(self.now - self.started)) }
    }

    fn at(&mut self, after: u64, action: Action) {
        self.sequence += 1;
        self.actions.insert((self.now + after, self.sequence), action);
    }

    pub(super) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(history) = &mut self.history {
            history.push(format!("{} {}", self.now, text()));
        }
    }

    pub(super) fn calm_down(&mut self) {
        self.is_calm = true;
        self.github.lag = 0;
        self.rules = Rules::default();
    }

    /// One second.
    pub(super) fn tick(&mut self) {
        self.now += 1;
        if !self.is_calm {
            self.people();
        }
        self.github.tick(&mut self.random, self.is_calm, self.now);
        self.webhooks();
        self.messages();
        self.machines();
        let mut is_due = self.wake <= self.now;
        while let Some((&key, _)) = self.actions.first_key_value().filter(|((at, _), _)| *at <= self.now) {
            let action = self.actions.remove(&key).unwrap();
            self.carry_out(action);
            is_due = true;
        }
        if is_due {
            self.decide();
        }
        if self.now.is_multiple_of(5) {
            self.scale();
            self.check_table();
        }
        self.broken.append(&mut self.github.broken);
    }

    /// A job that has not ended is never taken for one that has.
    fn check_table(&mut self) {
        for job in self.dispatch.table().all().filter(|job| !job.is_open()) {
            let JobKey::Job { id, .. } = job.facts.key else { continue };
            if self.github.jobs.get(&id).is_some_and(|found| found.facts.state != State::Completed) {
                self.broken.push(format!("job {id} has ended in the table and not on GitHub"));
            }
        }
    }

    fn people(&mut self) {
        if self.random.below(40) == 0 {
            let repository = ["shop", "web", "app"][usize::try_from(self.random.below(3)).unwrap()];
            let labels: &[&str] = match self.random.below(10) {
                0..5 => &["pve"],
                5..7 => &["self-hosted", "large"],
                7..9 => &["set"],
                _ => &["pve", "no-such-label"],
            };
            for _ in 0..=self.random.below(3) {
                self.github.push(repository, labels, &mut self.random, self.now);
            }
        }
        if self.faults && self.random.below(400) == 0 {
            self.crash();
        }
        if self.fails(1) && self.random.chance(30) {
            // A machine crashes.
            let running: Vec<Name> = self
                .claims
                .iter()
                .filter(|(_, kept)| kept.claim.machine == Machine::Running)
                .map(|(name, _)| name.clone())
                .collect();
            if let Some(name) = running.first() {
                self.claims.get_mut(name).unwrap().vm.ends_at = Some(self.now);
            }
        }
    }

    fn crash(&mut self) {
        self.note(|| "crash".into());
        self.epoch += 1;
        self.started = self.now;
        self.dispatch = Dispatch::new(OPERATOR);
        self.receiver = Receiver::default();
        self.configs.clear();
        self.phases.clear();
        self.wake = 0;
        // The API server that answers the next list may be behind.
        if self.random.chance(50) {
            let (now, until) = (self.now, self.now + self.random.between(10, 60));
            for kept in self.claims.values_mut().filter(|kept| kept.created + 60 > now) {
                kept.visible_at = until;
            }
        }
    }

    fn webhooks(&mut self) {
        for body in std::mem::take(&mut self.github.outbox) {
            self.sequence += 1;
            let id = format!("delivery-{}", self.sequence);
            self.bodies.push(body.clone());
            if self.fails(25) {
                continue;
            }
            let delay = if self.fails(25) { self.random.between(10, 1_500) } else { self.random.below(4) };
            if self.fails(15) {
                let again = self.random.between(1, 300);
                self.at(delay + again, Action::Webhook(id.clone(), body.clone()));
            }
            self.at(delay, Action::Webhook(id, body));
        }
        if self.fails(2) && !self.bodies.is_empty() {
            // Somebody who has recorded an event sends it again.
            let body = self.bodies[usize::try_from(self.random.below(self.bodies.len() as u64)).unwrap()].clone();
            self.sequence += 1;
            let id = format!("replay-{}", self.sequence);
            self.at(0, Action::Webhook(id, body));
        }
    }

    /// The listener of the scale set: a message comes again until it is handled, so it is late but not lost.
    fn messages(&mut self) {
        if std::mem::take(&mut self.github.has_news) {
            self.github.messages += 1;
            let order = (self.epoch, self.github.messages);
            let event = Event::Assigned { scale_set: SCALE_SET, order, jobs: self.github.assigned(), offered: 0 };
            let delay = if self.fails(20) { self.random.between(5, 120) } else { 1 };
            let now = self.time().wall;
            for facts in std::mem::take(&mut self.github.requests) {
                // GitHub's own listener acknowledges before it handles: what a message says may be lost, but not how the set stands.
                if !self.fails(10) {
                    let observation = Observation { source: Source::ScaleSet, at: now, facts };
                    self.at(delay, Action::Answer(self.epoch, Box::new(Event::Observed(Box::new(observation)))));
                }
            }
            self.at(delay, Action::Answer(self.epoch, Box::new(event)));
        }
        if self.started == self.now {
            // A new session begins with how the scale set stands.
            self.github.has_news = true;
        }
    }

    fn machines(&mut self) {
        let (now, mut lost) = (self.now, Vec::new());
        for kept in self.claims.values_mut() {
            let (claim, vm) = (&mut kept.claim, &mut kept.vm);
            if claim.machine == Machine::Starting && vm.boots_at.is_some_and(|at| at <= now) {
                (claim.machine, claim.since) = (Machine::Running, wall(now));
            }
            if claim.machine == Machine::Starting && vm.fails_at.is_some_and(|at| at <= now) {
                (claim.machine, claim.since) = (Machine::Ended, wall(now));
            }
            if claim.machine != Machine::Running {
                continue;
            }
            if let Some((id, online_at)) = vm.runner {
                match self.github.runners.get_mut(&id) {
                    Some(runner) if online_at == now => runner.is_online = true,
                    // Its job is done, or it was removed: the machine switches itself off.
                    None if online_at <= now && vm.ends_at.is_none() => vm.ends_at = Some(now + 5),
                    _ => {}
                }
            }
            if vm.ends_at.is_some_and(|at| at <= now) {
                (claim.machine, claim.since) = (Machine::Ended, wall(now));
                lost.extend(vm.runner.map(|(id, _)| id));
            }
        }
        for id in lost {
            if let Some(runner) = self.github.runners.get_mut(&id) {
                runner.lost.get_or_insert(now + 60);
            }
        }
    }

    fn carry_out(&mut self, action: Action) {
        match action {
            Action::Webhook(id, body) => {
                let digits: String = hmac(SECRET, body.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
                let signature = format!("sha256={digits}");
                let (event, id) = (Some("workflow_job"), Some(id.as_str()));
                let delivery = Delivery { event, id, signature: Some(&signature), body: body.as_bytes() };
                let verdict = self.receiver.take(&check(&delivery, &[SECRET], wall(self.now)));
                if let Verdict::Accepted(observation) = verdict {
                    let facts = &observation.facts;
                    let text = format!("webhook {} {:?} {:?}", facts.key, facts.state, facts.runner);
                    self.note(|| text);
                    self.dispatch.take(Event::Observed(observation), self.time());
                }
            }
            Action::Answer(epoch, event) => {
                if epoch == self.epoch {
                    self.note(|| format!("answer {:.200}", format!("{event:?}")));
                    self.dispatch.take(*event, self.time());
                }
            }
            Action::Arrive(epoch, ask) => self.arrive(epoch, ask),
            Action::Write(name, order) => self.write(&name, order),
        }
    }

    /// GitHub carries out a request; its answer may be lost.
    fn arrive(&mut self, epoch: u64, ask: Ask) {
        self.note(|| format!("ask {ask:?}"));
        let (is_lost, now) = (self.fails(6), self.now);
        let is_refused = self.fails(6);
        if !matches!(ask, Ask::Limits(_)) {
            let cost =
                if let Ask::ListJobs(..) = ask { 2 + u32::try_from(self.github.open_runs()).unwrap() } else { 1 };
            self.github.spend(cost);
        }
        let is_failed = is_refused || is_lost;
        let event = match ask {
            Ask::Limits(_) => None,
            Ask::ListJobs(owner) if is_failed => Some(Event::ListFailed(owner)),
            Ask::ListJobs(owner) => {
                let jobs = self.github.list_jobs(now);
                let read = self.github.jobs.values().map(|job| job.facts.repository.clone()).collect();
                Some(Event::Listed(Box::new(List { owner, read, asked: wall(now - 1), jobs })))
            }
            Ask::LookUp(_, key) => {
                let JobKey::Job { id, .. } = key else { return };
                let found = self.github.jobs.get(&id).map(|job| LookUp::Found(Box::new(job.facts.clone())));
                let answer = if is_failed { LookUp::Failed } else { found.unwrap_or(LookUp::Absent) };
                Some(Event::LookedUp { key, asked: wall(now - 1), answer })
            }
            Ask::ListRunners(scope) => {
                let asked = Moment::since_start(Duration::from_secs((now - 1).saturating_sub(self.started)));
                let runners = (!is_failed).then(|| self.github.list_runners(now));
                Some(Event::Runners { scope, asked, runners })
            }
            Ask::Register { claim, .. } if is_refused => {
                Some(Event::Registered { claim, answer: Registration::Refused })
            }
            Ask::Register { claim, name, .. } => {
                let pool = self.claims.get(&claim).map(|kept| kept.claim.pool.clone());
                let Some(pool) = self.pools.iter().find(|found| Some(&found.name) == pool.as_ref()) else { return };
                let id = self.github.register(&name, &pool.labels, pool.scale_set.is_some(), now);
                let answer = match id {
                    _ if is_lost => Registration::Unknown,
                    None => Registration::NameTaken,
                    Some(id) => {
                        if epoch == self.epoch {
                            self.configs.insert(claim.clone(), id);
                        }
                        Registration::Done(id)
                    }
                };
                Some(Event::Registered { claim, answer })
            }
            Ask::Find { claim, name, .. } => {
                let found = self.github.runners.iter().find(|(_, runner)| runner.name == name).map(|(id, _)| *id);
                Some(Event::Found { claim, answer: if is_failed { Err(()) } else { Ok(found) } })
            }
            Ask::Remove { scope, id, claim } if is_refused => {
                Some(Event::Removed { scope, id, claim, answer: Removal::Unknown })
            }
            Ask::Remove { scope, id, claim } => {
                self.check_removal(id, claim.is_none());
                let answer = match self.github.remove(id, now) {
                    _ if is_lost => Removal::Unknown,
                    Removed::Yes => Removal::Removed,
                    Removed::Busy => Removal::Busy,
                };
                Some(Event::Removed { scope, id, claim, answer })
            }
        };
        let delay = self.random.between(0, 2);
        if let Some(event) = event {
            self.at(delay, Action::Answer(epoch, Box::new(event)));
        }
        let limits = Event::Limits {
            owner: OWNER.into(),
            limit: LIMIT,
            remaining: self.github.remaining,
            reset: wall(self.github.reset),
        };
        if !is_lost {
            self.at(delay, Action::Answer(epoch, Box::new(limits)));
        }
    }

    fn check_removal(&mut self, id: u64, is_orphan: bool) {
        let Some(name) = self.github.runners.get(&id).map(|runner| runner.name.clone()) else { return };
        if !name.starts_with(&prefix(OPERATOR)) {
            self.broken.push(format!("runner {name} of somebody else was removed"));
        }
        let claims = self.claims.values().map(|kept| &kept.claim);
        let has_claim = claims.clone().any(|claim| runner_name(OPERATOR, &claim.name, &claim.uid) == name);
        if is_orphan && has_claim {
            self.broken.push(format!("runner {name} was removed as an orphan, and has a claim"));
        }
    }

    fn write(&mut self, name: &Name, order: Order) {
        self.note(|| format!("order {name} {order:?}"));
        let (is_failed, now) = (self.fails(10), self.now);
        let boots_late = self.fails(5);
        let Some(kept) = self.claims.get_mut(name) else { return };
        match order {
            Order::Record(record) => kept.claim.runner = record,
            Order::Deliver => {
                let config = self.configs.get(name).copied().filter(|_| kept.claim.machine == Machine::Running);
                let is_delivered = config.is_some() && !is_failed;
                if let Some(id) = config.filter(|_| is_delivered) {
                    // Now and then the runner does not start.
                    let wait = if boots_late { 100_000 } else { self.random.between(2, 10) };
                    kept.vm.runner = Some((id, now + wait));
                }
                let event = Event::Delivered { claim: name.clone(), is_delivered };
                self.at(1, Action::Answer(self.epoch, Box::new(event)));
            }
            Order::End(why) => {
                let runner = kept.vm.runner.and_then(|(id, _)| self.github.runners.get(&id));
                let runs = |runner: &GithubRunner| runner.job.is_some() && runner.lost.is_none();
                if runner.is_some_and(runs) {
                    self.broken.push(format!("the machine of {name} was ended ({why:?}) while a job ran on it"));
                }
                if let Some((id, _)) = kept.vm.runner
                    && let Some(runner) = self.github.runners.get_mut(&id)
                {
                    runner.lost.get_or_insert(now + 60);
                }
                self.claims.remove(name);
            }
        }
    }

    fn decide(&mut self) {
        let live = self.claims.values().filter(|kept| kept.claim.machine != Machine::Ended).count();
        let room = u32::try_from(ROOM.saturating_sub(live)).unwrap();
        self.pools.iter_mut().for_each(|pool| pool.room = Some(room));
        let visible = self.claims.values().filter(|kept| kept.visible_at <= self.now);
        let is_off = |claim: &Claim| claim.machine == Machine::Ended;
        let claims: Vec<Claim> =
            visible.map(|kept| Claim { is_off: is_off(&kept.claim), ..kept.claim.clone() }).collect();
        let objects = Objects { pools: &self.pools, claims: &claims, is_complete: true, rules: &self.rules };
        let decision = self.dispatch.decide(objects, self.time());
        for ask in decision.asks {
            let delay = self.random.between(0, 2);
            self.at(delay, Action::Arrive(self.epoch, ask));
        }
        for (name, order) in decision.orders {
            let delay = self.random.between(0, 1);
            self.at(delay, Action::Write(name, order));
        }
        self.phases = decision.phases;
        self.replicas = decision.scale.iter().map(|(name, scale)| (name.clone(), scale.demand)).collect();
        self.github.capacity =
            decision.scale.iter().find(|(name, _)| &*name.name == "set").map_or(0, |(_, scale)| scale.capacity);
        self.wake = self.started + decision.wake.elapsed().as_secs().max(self.now + 1 - self.started);
    }

    /// Whether everything has come to rest.
    pub(super) fn is_settled(&self) -> bool {
        self.left().is_empty()
    }

    /// What is not at rest.
    pub(super) fn left(&self) -> Vec<String> {
        let mut left: Vec<String> =
            self.claims.keys().map(|name| format!("claim {name} and its machine are left")).collect();
        let ours = self.github.runners.values().filter(|runner| runner.name.starts_with(&prefix(OPERATOR)));
        left.extend(ours.map(|runner| format!("runner {} is left", runner.name)));
        for (id, job) in &self.github.jobs {
            let is_possible = !job.facts.labels.contains("no-such-label");
            if is_possible && job.facts.state != State::Completed {
                left.push(format!("job {id} is {:?} since {}", job.facts.state, job.created));
            }
        }
        let open =
            self.dispatch.table().all().filter(|job| job.is_open() && !job.facts.labels.contains("no-such-label"));
        left.extend(open.map(|job| format!("job {} is {:?} in the table", job.facts.key, job.facts.state)));
        left
    }

    pub(super) fn foreign(&self) -> usize {
        self.github.runners.values().filter(|runner| !runner.name.starts_with(&prefix(OPERATOR))).count()
    }
}
