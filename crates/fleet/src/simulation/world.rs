//! Two clusters with an operator each, the hypervisor that they share, the people, and the faults.

use super::api_server::{ApiServer, Id, id, kinds, report};
use super::hypervisor::{FakeHypervisor, Vm};
use super::random::Random;
use super::wording::{shown, written};
use crate::core::{Concurrency, Config, Core};
use crate::hypervisor::{Answer, Failure, Operation, Owner, Power, Request};
use crate::machine::End;
use crate::notice::Notice;
use crate::outside::{self, Answer::Hypervisor};
use api::fleet::ClaimPhase;
use change::{Moment, Now};
use jiff::Timestamp;
use protocol::{Command, Core as _, Discovered, Event, WatchEvent, WatchTarget, Write, WriteError};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Which faults there are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Faults {
    /// Whether anything fails at all.
    pub(super) is_on: bool,
    /// Whether orphans are destroyed; otherwise there must not be any.
    pub(super) sweeps: bool,
}

struct Site {
    api: ApiServer,
    core: Core,
    operator: String,
    started: u64,
    /// Counts the processes: answers to an earlier one are lost.
    epoch: u64,
    /// How far each open watch has read the log.
    watches: BTreeMap<WatchTarget, usize>,
    next_wake: Option<u64>,
}

enum Action {
    Deliver(usize, u64, Box<Event<outside::Answer>>),
    Write(usize, u64, Box<Write>),
    /// A request arrives at the hypervisor; its answer is sent, or lost, or nobody waits for it.
    Operate {
        site: usize,
        epoch: u64,
        number: u64,
        request: Box<Request>,
        is_answered: bool,
        /// Whether it was sent once and arrives once more.
        is_repeated: bool,
    },
    Follow(usize, u64, WatchTarget),
    Wake(usize, u64),
    People,
}

pub(super) struct World {
    random: Random,
    faults: Faults,
    now: u64,
    /// How far the wall clock was set forth, in milliseconds.
    ahead: i64,
    sequence: u64,
    actions: BTreeMap<(u64, u64), Action>,
    sites: Vec<Site>,
    hypervisor: FakeHypervisor,
    concurrency: Concurrency,
    /// Whether nothing fails any more.
    is_quiet: bool,
    /// Whether everybody has deleted everything, too.
    is_calm: bool,
    claims: u64,
    /// When something last went wrong with a machine, or, under the empty id, with the hypervisor or an operator.
    troubles: BTreeMap<String, u64>,
    /// Since when machines have stopped, by id and serial, and since when claims say that theirs runs, by uid.
    stopped: BTreeMap<(String, u64), u64>,
    running: BTreeMap<String, u64>,
    /// Which operator, and which of its processes, was told that a machine is not its, by id and serial, and when.
    told: BTreeMap<(usize, u64, String, u64), u64>,
    /// The uids of claims that a person has given up.
    forced: BTreeSet<String>,
    pub(super) ready: u64,
    broken: Vec<String>,
    steps: u64,
    /// What happened, for people who look into a broken promise.
    history: Option<Vec<String>>,
}

const EPOCH_SECOND: i64 = 1_800_000_000;
/// So long machines of pools live, in milliseconds.
const LIFETIME: u64 = 300_000;
/// A machine that has stopped is gone so soon, and one that is too old is ended, in milliseconds.
const GONE_WITHIN: u64 = 300_000;
const ENDED_WITHIN: u64 = 120_000;
/// Both operators use the same few ids.
const IDS: (u64, u64) = (200, 239);

impl World {
    pub(super) fn new(seed: u64, faults: Faults) -> World {
        let mut world = World {
            random: Random(seed.wrapping_mul(7_919)),
            faults,
            now: 0,
            ahead: 0,
            sequence: 0,
            actions: BTreeMap::new(),
            sites: Vec::new(),
            hypervisor: FakeHypervisor::default(),
            concurrency: super::concurrency(seed),
            is_quiet: false,
            is_calm: false,
            claims: 0,
            troubles: BTreeMap::new(),
            stopped: BTreeMap::new(),
            running: BTreeMap::new(),
            told: BTreeMap::new(),
            forced: BTreeSet::new(),
            ready: 0,
            broken: Vec::new(),
            steps: 0,
            history: None,
        };
        for number in 0..2 {
            let operator = format!("operator-{number}");
            let config = Config { operator: operator.clone(), concurrency: world.concurrency };
            let core = Core::new(config, world.time(0));
            let (api, watches) = (ApiServer::default(), BTreeMap::new());
            world.sites.push(Site { api, core, operator, started: 0, epoch: 0, watches, next_wake: None });
            world.set_up(number);
            world.handle(number, vec![Event::Tick]);
        }
        world.at(1_000, Action::People);
        world
    }

    fn set_up(&mut self, site: usize) {
        let policy = if self.faults.sweeps { "Delete" } else { "Report" };
        let cluster = json!({
            "apiVersion": "hyperfleet.io/v1alpha1", "kind": "HypervisorCluster", "metadata": {"name": "pve"},
            "spec": {
                "provider": "proxmox", "endpoint": "https://pve:8006", "vmIds": {"from": IDS.0, "to": IDS.1},
                "credentials": {"tokenId": {"name": "pve", "key": "id"}, "tokenSecret": {"name": "pve", "key": "s"}},
                "orphans": {"policy": policy, "gracePeriod": "2m"},
            },
        });
        let template = json!({
            "apiVersion": "hyperfleet.io/v1alpha1", "kind": "HypervisorMachineTemplate", "metadata": {"name": "small"},
            "spec": {
                "hypervisorClusterRef": {"name": "pve"}, "template": {"proxmox": {"tag": "base"}},
                "resources": {"cpu": 1, "memory": "1Gi"}, "cloudInit": {"userData": "#!/bin/sh\n"},
            },
        });
        let pool = json!({
            "apiVersion": "hyperfleet.io/v1alpha1", "kind": "RunnerPool", "metadata": {"name": "pool"},
            "spec": {
                "templateRef": {"name": "small"},
                "scaling": {"minReplicas": 1, "maxReplicas": 3, "scaleDownDelay": "30s", "spares": {"stopped": 1}},
                "lifecycle": {"maxLifetime": "5m"},
            },
        });
        let now = self.wall();
        for object in [cluster, template, pool] {
            self.sites[site].api.create(object, &format!("s{site}"), now);
        }
    }

    fn wall(&self) -> Timestamp {
        Timestamp::from_millisecond(EPOCH_SECOND * 1_000 + i64::try_from(self.now).unwrap() + self.ahead).unwrap()
    }

    fn time(&self, started: u64) -> Now {
        Now { wall: self.wall(), monotonic: Moment::since_start(Duration::from_millis(self.now - started)) }
    }

    fn at(&mut self, time: u64, action: Action) {
        self.sequence += 1;
        self.actions.insert((time, self.sequence), action);
    }

    fn after(&mut self, from: u64, to: u64, action: Action) {
        let time = self.now + self.random.between(from, to);
        self.at(time, action);
    }

    fn fails(&mut self, percent: u64) -> bool {
        self.faults.is_on && !self.is_quiet && self.random.chance(percent)
    }

    pub(super) fn run_for(&mut self, seconds: u64) {
        let end = self.now + seconds * 1_000;
        while self.broken.is_empty() && !(self.is_calm && self.is_empty()) {
            if self.actions.first_key_value().is_none_or(|((time, _), _)| *time > end) {
                break;
            }
            let Some(((time, _), action)) = self.actions.pop_first() else { break };
            self.now = self.now.max(time);
            self.steps += 1;
            if self.steps > 400_000 {
                self.broken.push("it does not come to rest".into());
            }
            self.act(action);
        }
        self.now = end;
    }

    /// Whether nothing is left that could change.
    fn is_empty(&self) -> bool {
        let has_claims = |site: &Site| site.api.objects.keys().any(|(kind, _, _)| !kind.starts_with("Hypervisor"));
        let is_on_its_way = |action: &Action| matches!(action, Action::Operate { .. });
        self.hypervisor.vms.len() == self.hypervisor.foreign.len()
            && !self.sites.iter().any(has_claims)
            && !self.actions.values().any(is_on_its_way)
            && (self.keeps_hypervisors() || self.sites.iter().all(|site| site.api.objects.is_empty()))
    }

    /// Whether people keep the hypervisors at the end: a sweep needs them.
    fn keeps_hypervisors(&self) -> bool {
        !self.faults.is_on || self.faults.sweeps
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Deliver(site, epoch, event) => {
                if self.sites[site].epoch == epoch {
                    self.handle(site, vec![*event]);
                }
            }
            Action::Wake(site, epoch) => {
                if self.sites[site].epoch == epoch {
                    self.sites[site].next_wake = None;
                    self.handle(site, vec![Event::Tick]);
                }
            }
            Action::Write(site, epoch, write) => self.write(site, epoch, &write),
            Action::Operate { site, epoch, number, request, is_answered, is_repeated } => {
                self.hypervisor.is_repeated = is_repeated;
                let refusal = self.refusal(&request.operation);
                // What fails with a class other than Permanent may have been done all the same.
                let is_done = match &refusal {
                    Some(Failure::Permanent(_)) => false,
                    Some(_) => self.random.chance(40),
                    None => true,
                };
                let answer = match is_done {
                    true => self.hypervisor.carry_out(&request.operation, self.now, &mut self.random),
                    false => Ok(Answer::Done),
                };
                let answer = refusal.map_or(answer, Err);
                if request.operation.machine().is_some() && self.history.is_some() {
                    let line = format!(
                        "{} site {site}: {} -> {answer:?}, answered: {is_answered}",
                        self.now,
                        shown(&request.operation)
                    );
                    self.note(line);
                }
                let answer = if is_answered { answer } else { Err(Failure::Transient("no answer".into())) };
                if answer.is_err() {
                    self.trouble_with(&request.operation);
                }
                self.tell(site, epoch, &request.operation, &answer);
                if self.fails(3) {
                    let again = Event::Elsewhere(number, Hypervisor(answer.clone()));
                    self.after(5, 20_000, Action::Deliver(site, epoch, again.into()));
                }
                self.after(5, 500, Action::Deliver(site, epoch, Event::Elsewhere(number, Hypervisor(answer)).into()));
            }
            Action::Follow(site, epoch, target) => self.follow(site, epoch, &target),
            Action::People => self.people(),
        }
    }

    /// Why an operation on a machine is refused, if it is: a person has to do something, there is no room, or it is wrong for ever.
    fn refusal(&mut self, operation: &Operation) -> Option<Failure> {
        operation.machine()?;
        let (message, remedy) = ("refused".to_owned(), "do something".to_owned());
        if self.fails(2) {
            return Some(Failure::Configuration { message, remedy });
        }
        if self.fails(2) {
            return Some(Failure::Resource { message, remedy });
        }
        self.fails(1).then_some(Failure::Permanent(message))
    }

    fn handle(&mut self, site: usize, events: Vec<Event<outside::Answer>>) {
        let now = self.time(self.sites[site].started);
        let epoch = self.sites[site].epoch;
        let commands = self.sites[site].core.handle(events, now);
        for command in commands {
            self.carry_out(site, epoch, command);
        }
        let Site { core, started, next_wake, .. } = &self.sites[site];
        if let Some(wake) = core.wake_at() {
            if wake <= now.monotonic {
                self.broken.push(format!("it wakes itself for nothing at {}", self.now));
            }
            let at = (started + u64::try_from(wake.elapsed().as_millis()).unwrap()).max(self.now + 1);
            if next_wake.is_none_or(|next| at < next) {
                self.sites[site].next_wake = Some(at);
                self.at(at, Action::Wake(site, epoch));
            }
        }
    }

    fn carry_out(&mut self, site: usize, epoch: u64, command: Command<Notice, outside::Request>) {
        match command {
            Command::Watch { target, .. } => {
                self.sites[site].watches.insert(target.clone(), usize::MAX);
                self.after(1, 200, Action::Follow(site, epoch, target));
            }
            Command::Unwatch(target) => {
                self.sites[site].watches.remove(&target);
            }
            Command::Discover { .. } => {
                let event = Event::Discovered(Ok(Discovered::All(kinds())));
                self.after(1, 100, Action::Deliver(site, epoch, event.into()));
            }
            Command::Write(write) => self.after(1, 300, Action::Write(site, epoch, write)),
            Command::Elsewhere(number, outside::Request::Hypervisor(request)) => {
                self.send(site, epoch, number, request);
            }
            Command::Notify(Notice::Claim { phase: Some(ClaimPhase::Ready), ready_after: Some(_), .. }) => {
                self.ready += 1;
            }
            Command::Notify(Notice::Ended { name, uid, end: End::Stopped }) => {
                let is_of = |vm: &&Vm| vm.owner.as_ref().is_some_and(|owner| owner.uid == uid);
                if self.hypervisor.vms.values().filter(is_of).any(|vm| vm.power == Power::Running && !vm.has_stopped) {
                    self.broken
                        .push(format!("claim {name} is said to have stopped, and its machine runs all the time"));
                }
            }
            Command::Notify(Notice::Ended { name, uid, end: End::TooOld }) => {
                let started = self.sites[site].started;
                let is_of = |vm: &&Vm| vm.owner.as_ref().is_some_and(|owner| owner.uid == uid);
                // An earlier process has written the times of other machines, perhaps before the clock was set.
                let is_young = |vm: &Vm| vm.started_at > started && self.now < vm.started_at + LIFETIME * 9 / 10;
                if self.hypervisor.vms.values().filter(is_of).any(is_young) {
                    self.broken
                        .push(format!("claim {name} is said to be too old, and its machine was started just now"));
                }
            }
            Command::Notify(_) | Command::Readiness(_) => {}
            other => panic!("{other:?}"),
        }
    }

    /// Sends a request to the hypervisor: it may be lost, late, repeated, or its answer may be lost.
    fn send(&mut self, site: usize, epoch: u64, number: u64, request: Request) {
        let request = Box::new(request);
        self.check_request(site, epoch, &request.operation);
        let slow = match request.operation {
            Operation::Create(_) => 15_000,
            Operation::Destroy(_) | Operation::Start(_) | Operation::Configure(_) => 3_000,
            _ => 500,
        };
        let lost = || Event::Elsewhere(number, Hypervisor(Err(Failure::Transient("connection reset".into()))));
        if self.fails(8) {
            // It never arrives.
            self.trouble_with(&request.operation);
            return self.after(10, 5_000, Action::Deliver(site, epoch, lost().into()));
        }
        if self.fails(8) {
            // Nobody waits any more when it arrives.
            self.trouble_with(&request.operation);
            self.after(10, 5_000, Action::Deliver(site, epoch, lost().into()));
            let operate =
                Action::Operate { site, epoch: u64::MAX, number, request, is_answered: false, is_repeated: false };
            return self.after(5_000, 40_000, operate);
        }
        let is_answered = !self.fails(8);
        // A second machine of a request that was repeated on its way is left to the sweep.
        if (self.faults.sweeps || !matches!(request.operation, Operation::Create(_))) && self.fails(4) {
            let again = Action::Operate {
                site,
                epoch: u64::MAX,
                number,
                request: request.clone(),
                is_answered: false,
                is_repeated: true,
            };
            self.after(10, slow, again);
        }
        self.after(10, slow, Action::Operate { site, epoch, number, request, is_answered, is_repeated: false });
    }

    fn write(&mut self, site: usize, epoch: u64, write: &Write) {
        let (key, now) = (write.key.clone(), self.wall());
        let lost = Err(WriteError::Transient { key: key.clone(), message: "no answer".into() });
        let answer = if self.fails(5) {
            lost
        } else {
            let gone = self.sites[site].api.gone.len();
            let answer = self.sites[site].api.write(write, &format!("s{site}"), now);
            self.check_gone(site, gone);
            if self.history.is_some() {
                let result =
                    answer.as_ref().map(|written| written.live.as_ref().map(|live| live.resource_version.clone()));
                self.note(format!("{} site {site}: {key} {} -> {result:?}", self.now, written(&write.effect)));
            }
            if self.fails(5) { lost } else { answer }
        };
        if answer.is_err() {
            self.troubles.insert(String::new(), self.now);
        }
        self.after(1, 200, Action::Deliver(site, epoch, Event::Written(key, answer).into()));
    }

    /// A claim that is gone has no machine any more.
    fn check_gone(&mut self, site: usize, before: usize) {
        for uid in &self.sites[site].api.gone[before..] {
            for (id, vm) in &self.hypervisor.vms {
                let operator = &self.sites[site].operator;
                let is_of = |owner: &Owner| owner.uid == *uid && owner.operator == *operator;
                if vm.owner.as_ref().is_some_and(is_of) && !vm.is_repeated && !self.forced.contains(uid) {
                    self.broken.push(format!("claim {uid} went before its machine {id}"));
                }
            }
        }
    }

    fn follow(&mut self, site: usize, epoch: u64, target: &WatchTarget) {
        if self.sites[site].epoch != epoch {
            return;
        }
        let must_list = self.fails(1);
        let Site { api, watches, .. } = &mut self.sites[site];
        let Some(position) = watches.get_mut(target) else { return };
        let kind = &target.kind.kind;
        let mut events = Vec::new();
        if *position == usize::MAX || must_list {
            for (id, object) in api.objects.iter().filter(|(id, _)| id.0 == *kind) {
                events.push(report(&(0, id.clone(), Some(object.clone()))));
            }
            let version = api.log.len().to_string();
            events.push(WatchEvent::Listed { all: api.all(kind), version, verifies: false });
        } else {
            events.extend(api.log[*position..].iter().filter(|(_, id, _)| id.0 == *kind).map(report));
        }
        *position = api.log.len();
        if !events.is_empty() {
            let events = events.into_iter().map(|event| Event::Watched(target.clone(), event)).collect();
            self.handle(site, events);
        }
        let slowest = if self.is_calm { 6_000 } else { 3_000 };
        self.after(10, slowest, Action::Follow(site, epoch, target.clone()));
    }

    /// What people, guests and the world do, once a second.
    fn people(&mut self) {
        let now = self.wall();
        self.hypervisor.pass_time(self.now);
        self.after(1_000, 1_000, Action::People);
        self.check_ends();
        if self.is_calm {
            return;
        }
        for site in 0..self.sites.len() {
            let name = format!("c-{}", self.claims);
            if self.random.chance(2) && self.claims < 16 {
                self.claims += 1;
                let claim = json!({
                    "apiVersion": "hyperfleet.io/v1alpha1", "kind": "MachineClaim", "metadata": {"name": name},
                    "spec": {"templateRef": {"name": "small"}},
                });
                self.sites[site].api.create(claim, &format!("s{site}"), now);
            }
            let claims: Vec<_> = self.sites[site].api.all("MachineClaim").into_iter().collect();
            if claims.is_empty() {
                continue;
            }
            let (_, name) = &claims[usize::try_from(self.random.below(claims.len() as u64)).unwrap()];
            let claim = id("MachineClaim", name);
            if self.fails(2) {
                self.sites[site].api.touch(&claim);
            }
            if self.random.chance(1) && self.faults.is_on {
                self.sites[site].api.delete(&claim, now);
            }
            if self.fails(5) {
                self.give_up(site, &claim);
            }
            if self.fails(1) && self.random.chance(60) {
                self.crash(site);
            }
        }
        self.trouble();
        self.machines_change();
        self.check_now();
    }

    /// A person deletes a claim without its machine, which they delete by hand unless the sweep does it.
    fn give_up(&mut self, site: usize, claim: &Id) {
        let now = self.now;
        let Site { api, operator, .. } = &self.sites[site];
        let Some(object) = api.objects.get(claim).filter(|object| object["metadata"]["deletionTimestamp"].is_string())
        else {
            return;
        };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let is_of = |vm: &Vm| vm.owner.as_ref().is_some_and(|owner| owner.uid == uid && owner.operator == *operator);
        let found = self.hypervisor.vms.iter().find(|(_, vm)| is_of(vm)).map(|(id, vm)| (id.clone(), vm.started_at));
        // A request to create it is not on its way any more.
        let Some((id, _)) = found.filter(|(_, started)| *started > 0 && started + 60_000 < now) else { return };
        if !self.faults.sweeps {
            self.hypervisor.vms.remove(&id);
        }
        self.note(format!("{now} machine {id} of {uid} is given up"));
        self.forced.insert(uid);
        self.sites[site].api.annotate(claim, api::fleet::FORCE_DELETE, Some("true"));
    }

    /// Somebody overwrites the notes of a machine, or takes the right to see it, and mends that later.
    fn machines_change(&mut self) {
        let now = self.now;
        let foreign = &self.hypervisor.foreign;
        let ours = self.hypervisor.vms.iter().filter(|(id, vm)| vm.is_configured && !foreign.contains_key(*id));
        let ours: Vec<String> = ours.map(|(id, _)| id.clone()).collect();
        for (percent, hides) in [(1, false), (1, true)] {
            if !self.fails(percent) || ours.is_empty() {
                continue;
            }
            let id = ours[usize::try_from(self.random.below(ours.len() as u64)).unwrap()].clone();
            let Some(vm) = self.hypervisor.vms.get_mut(&id) else { continue };
            match hides {
                // One that was only just made may not be recorded yet.
                true => vm.is_hidden |= vm.started_at > 0 && vm.started_at + 60_000 < now,
                false => vm.has_record = false,
            }
            self.note(format!("{now} machine {id}: hidden or without its record ({hides})"));
        }
        for id in ours {
            let (seen, restored) = (self.random.chance(10), self.random.chance(2));
            let Some(vm) = self.hypervisor.vms.get_mut(&id) else { continue };
            vm.is_hidden &= !seen;
            vm.has_record |= restored;
        }
    }

    /// Nothing fails any more, and everything is as it was.
    pub(super) fn heal(&mut self) {
        self.is_quiet = true;
        self.troubles.insert(String::new(), self.now);
        self.hypervisor.is_down = false;
        self.hypervisor.has_no_template = false;
        self.hypervisor.offline.clear();
        for vm in self.hypervisor.vms.values_mut() {
            (vm.is_hidden, vm.has_record) = (false, true);
        }
    }

    fn trouble_with(&mut self, operation: &Operation) {
        let id = operation.machine().map(|id| id.0.clone()).unwrap_or_default();
        self.troubles.insert(id, self.now);
    }

    /// Remembers which operator learns that a machine is not its.
    fn tell(&mut self, site: usize, epoch: u64, operation: &Operation, answer: &Result<Answer, Failure>) {
        let operator = &self.sites[site].operator;
        let is_not_its = match answer {
            Ok(Answer::Inspected(Some(found))) => found.owner.as_ref().is_none_or(|owner| owner.operator != *operator),
            Err(Failure::NotOurs { .. }) => true,
            _ => false,
        };
        let Some(id) = operation.machine().filter(|_| is_not_its && epoch == self.sites[site].epoch) else { return };
        if let Some(serial) = self.hypervisor.foreign.get(&id.0) {
            // The answer is there half a second later at most.
            self.told.insert((site, epoch, id.0.clone(), *serial), self.now + 500);
        }
    }

    /// P26: what is changed is this operator's, as far as it can know.
    fn check_request(&mut self, site: usize, epoch: u64, operation: &Operation) {
        let owner = match operation {
            Operation::Create(blueprint) | Operation::Configure(blueprint) => &blueprint.owner,
            Operation::Start(target)
            | Operation::Stop(target)
            | Operation::Destroy(target)
            | Operation::RemoveSeed(target) => &target.owner,
            Operation::Deliver(delivery) => &delivery.target.owner,
            _ => return,
        };
        let operator = &self.sites[site].operator;
        if owner.operator != *operator {
            self.broken.push(format!("{operator} changes a machine of {owner:?}"));
        }
        // One with an id that is taken is refused, and the list need not show that it is.
        let Some(id) = operation.machine().filter(|_| !matches!(operation, Operation::Create(_))) else { return };
        let serial = self.hypervisor.foreign.get(&id.0).copied().unwrap_or_default();
        let told = self.told.get(&(site, epoch, id.0.clone(), serial));
        if told.is_some_and(|at| *at < self.now) {
            let operation = shown(operation);
            self.broken.push(format!("machine {} is foreign, {operator} was told so, and tries: {operation}", id.0));
        }
    }

    /// P10 and P27: while nothing goes wrong, a machine that has stopped is gone within five minutes, and none of a pool is older than it may be.
    fn check_ends(&mut self) {
        let now = self.now;
        for (id, vm) in &self.hypervisor.vms {
            if vm.is_hidden || !vm.has_record || self.hypervisor.offline.contains(&vm.node) {
                self.troubles.insert(id.clone(), now);
            }
        }
        if self.hypervisor.is_down {
            self.troubles.insert(String::new(), now);
        }
        let mut stopped = BTreeMap::new();
        for (id, vm) in self.hypervisor.vms.iter().filter(|(_, vm)| !vm.is_repeated) {
            let Some(owner) = &vm.owner else { continue };
            let Some(site) = self.sites.iter().find(|site| site.operator == owner.operator) else { continue };
            let Some(claim) = site.api.objects.values().find(|object| object["metadata"]["uid"] == json!(owner.uid))
            else {
                continue;
            };
            // What has failed is kept for people.
            if claim["status"]["phase"] == "Failed" {
                continue;
            }
            let trouble = |id: &str| self.troubles.get(id).copied().unwrap_or_default();
            let quiet_since = trouble(id).max(trouble(""));
            if vm.has_stopped && vm.power == Power::Stopped {
                let key = (id.clone(), vm.serial);
                let since = self.stopped.get(&key).copied().unwrap_or(now);
                if now > since.max(quiet_since) + GONE_WITHIN {
                    self.broken
                        .push(format!("machine {id} of {} has stopped at {since} and is there at {now}", owner.claim));
                }
                stopped.insert(key, since);
            }
            if claim["status"]["startedTime"].is_null() || claim["spec"]["maxLifetime"].is_null() {
                continue;
            }
            let since = *self.running.entry(owner.uid.clone()).or_insert(now);
            // An earlier process has written the times of other machines, perhaps before the clock was set.
            let is_of_process = since > site.started + 2_000;
            if vm.power == Power::Running && is_of_process && now > (since + LIFETIME).max(quiet_since) + ENDED_WITHIN {
                self.broken.push(format!("machine {id} of {} runs since {since} and still at {now}", owner.claim));
            }
        }
        self.stopped = stopped;
    }

    fn trouble(&mut self) {
        if self.fails(3) {
            let id = self.random.between(IDS.0, IDS.1).to_string();
            let other = Owner { operator: "somebody".into(), claim: "x/y".into(), uid: "s0-4".into() };
            let owner = self.random.chance(40).then_some(other);
            self.hypervisor.foreigner_creates(id, owner);
        }
        if self.fails(3)
            && let Some(id) = self.hypervisor.foreign.keys().next().cloned()
        {
            self.hypervisor.foreign.remove(&id);
            self.hypervisor.vms.remove(&id);
        }
        if self.fails(1) && self.random.chance(20) {
            // Somebody deletes a machine of ours by hand.
            let ours = self.hypervisor.vms.iter().find(|(id, _)| !self.hypervisor.foreign.contains_key(*id));
            if let Some(id) = ours.map(|(id, _)| id.clone()) {
                self.hypervisor.vms.remove(&id);
            }
        }
        if self.fails(1) {
            let vm = self.hypervisor.vms.iter_mut().find(|(id, _)| !self.hypervisor.foreign.contains_key(*id));
            if let Some((_, vm)) = vm {
                vm.switch_off();
            }
        }
        if self.fails(1) {
            self.hypervisor.has_no_template = true;
        } else if self.random.chance(5) {
            self.hypervisor.has_no_template = false;
        }
        if self.fails(1) {
            self.hypervisor.is_down = !self.hypervisor.is_down;
        } else if self.hypervisor.is_down && self.random.chance(10) {
            self.hypervisor.is_down = false;
        }
        if self.fails(1) && self.random.chance(40) {
            let by = i64::try_from(self.random.between(60_000, 100_000_000)).unwrap();
            self.ahead += if self.random.chance(50) { by } else { -by };
            self.note(format!("{} the clock is set to {}", self.now, self.wall()));
        }
        if self.fails(1) {
            self.hypervisor.offline.insert("b".into());
        } else if self.random.chance(5) {
            self.hypervisor.offline.clear();
        }
    }

    /// Remembers what happens from now on.
    pub(super) fn remember(&mut self) {
        self.history = Some(Vec::new());
    }

    fn note(&mut self, line: String) {
        if let Some(history) = &mut self.history {
            history.push(line);
        }
    }

    /// What happened to a claim or a machine.
    pub(super) fn history_of(&self, word: &str) -> String {
        let lines = self.history.iter().flatten().filter(|line| line.contains(word) || line.contains("crash"));
        lines.map(|line| line.chars().take(300).collect::<String>()).collect::<Vec<_>>().join("\n")
    }

    /// The process ends at any moment and another one starts; requests on their way arrive all the same.
    fn crash(&mut self, site: usize) {
        self.note(format!("{} site {site}: crash", self.now));
        self.troubles.insert(String::new(), self.now);
        let config = Config { operator: self.sites[site].operator.clone(), concurrency: self.concurrency };
        let core = Core::new(config, self.time(self.now));
        let found = &mut self.sites[site];
        (found.core, found.started, found.next_wake) = (core, self.now, None);
        found.epoch += 1;
        found.watches.clear();
        self.handle(site, vec![Event::Tick]);
    }

    /// Faults end, and everybody deletes what they have.
    pub(super) fn calm_down(&mut self) {
        self.heal();
        self.is_calm = true;
        let (now, keeps) = (self.wall(), self.keeps_hypervisors());
        for site in &mut self.sites {
            for kind in ["RunnerPool", "MachineClaim", "HypervisorMachineTemplate", "HypervisorCluster"] {
                for (_, name) in site.api.all(kind) {
                    if !kind.starts_with("Hypervisor") || !keeps {
                        site.api.delete(&id(kind, &name), now);
                    }
                }
            }
        }
    }

    fn check_now(&mut self) {
        let mut owners: BTreeMap<&Owner, u32> = BTreeMap::new();
        for (id, vm) in self.hypervisor.vms.iter().filter(|(id, _)| !self.hypervisor.foreign.contains_key(*id)) {
            let Some(owner) = vm.owner.as_ref().filter(|_| !vm.is_repeated) else { continue };
            *owners.entry(owner).or_default() += 1;
            if owners[owner] > 1 {
                self.broken.push(format!("{owner:?} has two machines, the second is {id}"));
            }
        }
        self.check_foreign();
    }

    fn check_foreign(&mut self) {
        for (id, serial) in &self.hypervisor.foreign {
            if self.hypervisor.vms.get(id).is_none_or(|vm| vm.serial != *serial || vm.power != Power::Stopped) {
                self.broken.push(format!("the foreign machine {id} was touched"));
            }
        }
    }

    /// Every promise that was broken.
    pub(super) fn broken(&mut self) -> Vec<String> {
        self.check_now();
        self.broken.append(&mut self.hypervisor.broken);
        for (id, vm) in self.hypervisor.vms.iter().filter(|(id, _)| !self.hypervisor.foreign.contains_key(*id)) {
            self.broken.push(format!("machine {id} of {:?} is left", vm.owner));
        }
        for site in &self.sites {
            let kinds = ["RunnerPool", "MachineClaim", "HypervisorMachineTemplate", "HypervisorCluster"];
            for (kind, _, name) in site.api.objects.keys().filter(|(kind, _, _)| kinds.contains(&kind.as_str())) {
                let is_kept = self.keeps_hypervisors() && kind.starts_with("Hypervisor");
                if !is_kept {
                    let object = &site.api.objects[&id(kind, name)];
                    self.broken.push(format!(
                        "{kind} {name} of {} is left: {:.300}",
                        site.operator,
                        object["status"].to_string()
                    ));
                }
            }
        }
        std::mem::take(&mut self.broken)
    }
}
