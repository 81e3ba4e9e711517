//! Two clusters with an operator each, the hypervisor that they share, the people, and the faults.

mod checks;
mod people;

use super::api_server::{ApiServer, id, kinds, report};
use super::hypervisor::{FakeHypervisor, Vm};
use super::random::Random;
use super::wording::{shown, written};
use crate::core::{Concurrency, Config, Core};
use crate::hypervisor::{Answer, Failure, Operation, Power, Request};
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
/// What a person has to mend is tried again after so long at most, in milliseconds.
const PERSONS_PAUSE: u64 = 750_000;
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
                if let (Err(Failure::Configuration { .. } | Failure::Hidden(_)), Some(id)) =
                    (&answer, request.operation.machine())
                {
                    self.troubles.insert(id.0.clone(), self.now + PERSONS_PAUSE);
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
        let until = self.troubles.entry(id).or_default();
        *until = self.now.max(*until);
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
}
