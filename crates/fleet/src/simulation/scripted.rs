//! One operator beside a hypervisor some of whose answers a test chooses, with a clock that moves only when nothing else does.

use super::api_server::{ApiServer, id, kinds, report};
use super::hypervisor::FakeHypervisor;
use super::random::Random;
use crate::core::{Concurrency, Config, Core, HypervisorAnswer};
use crate::hypervisor::{Failure, Operation};
use crate::notice::Notice;
use crate::outside::{Answer, Request};
use change::{Moment, Now};
use jiff::Timestamp;
use protocol::{Command, Core as _, Discovered, Event, WatchEvent, WatchTarget};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// How a request is answered.
pub(super) enum Reply {
    /// As the fake hypervisor does.
    Usual,
    /// Like this; nothing is done.
    Instead(HypervisorAnswer),
    /// Not before [`Scripted::release`].
    Later,
}

/// A person has to change something.
pub(super) fn configuration(message: &str) -> Reply {
    let (message, remedy) = (message.to_owned(), "correct it".to_owned());
    Reply::Instead(Err(Failure::Configuration { message, remedy }))
}

/// The hypervisor `pve` and the template `small`; claims come later.
pub(super) struct Scripted {
    core: Core,
    pub(super) api: ApiServer,
    pub(super) hypervisor: FakeHypervisor,
    random: Random,
    /// In milliseconds.
    now: u64,
    /// How far the wall clock was set forth, in milliseconds.
    ahead: i64,
    /// How far watches have read the log.
    followed: usize,
    watched: BTreeSet<WatchTarget>,
    /// What was asked, and at which second.
    pub(super) asked: Vec<(u64, Operation)>,
    held: Vec<(u64, Operation)>,
    /// How often a status or a finalizer of a claim was written.
    pub(super) claim_writes: usize,
    pub(super) notices: Vec<Notice>,
}

impl Scripted {
    pub(super) fn new() -> Scripted {
        let mut scripted = Scripted {
            core: Core::new(Config { operator: "o".into(), concurrency: Concurrency::default() }, time(0)),
            api: ApiServer::default(),
            hypervisor: FakeHypervisor::default(),
            random: Random(7),
            now: 0,
            ahead: 0,
            followed: 0,
            watched: BTreeSet::new(),
            asked: Vec::new(),
            held: Vec::new(),
            claim_writes: 0,
            notices: Vec::new(),
        };
        scripted.create("HypervisorCluster", "pve", &json!({"provider": "proxmox", "endpoint": "https://pve:8006"}));
        scripted.create(
            "HypervisorMachineTemplate",
            "small",
            &json!({
                "hypervisorClusterRef": {"name": "pve"}, "template": {"proxmox": {"tag": "base"}},
                "resources": {"cpu": 1, "memory": "1Gi"},
            }),
        );
        scripted
    }

    pub(super) fn create(&mut self, kind: &str, name: &str, spec: &Value) {
        let object = json!({
            "apiVersion": "hyperfleet.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
        });
        self.api.create(object, "u", self.time().wall);
    }

    pub(super) fn claim(&mut self, name: &str) {
        self.create("MachineClaim", name, &json!({"templateRef": {"name": "small"}}));
    }

    pub(super) fn delete(&mut self, kind: &str, name: &str) {
        self.api.delete(&id(kind, name), self.time().wall);
    }

    /// The process ends and another one starts: what was asked is answered to nobody.
    pub(super) fn restart(&mut self) {
        let config = Config { operator: "o".into(), concurrency: Concurrency::default() };
        self.core = Core::new(config, self.time());
        (self.followed, self.watched) = (self.api.log.len(), BTreeSet::new());
        self.held.clear();
    }

    /// Somebody sets the wall clock.
    pub(super) fn set_clock(&mut self, seconds: i64) {
        self.ahead += seconds * 1_000;
    }

    /// How many timers are set.
    pub(super) fn timers(&self) -> usize {
        self.core.timers()
    }

    fn time(&self) -> Now {
        let now = time(self.now);
        let wall = now.wall.as_millisecond() + self.ahead;
        Now { wall: Timestamp::from_millisecond(wall).unwrap(), ..now }
    }

    /// The CPUs that all machines take, as the operator counts them.
    pub(super) fn cpus_taken(&self) -> u32 {
        self.core.cpus_taken()
    }

    pub(super) fn second(&self) -> u64 {
        self.now / 1_000
    }

    /// Phase and reason, and the message, of a claim; nothing if it is gone.
    pub(super) fn said(&self, name: &str) -> Option<(String, String)> {
        let claim = self.api.objects.get(&id("MachineClaim", name))?;
        let (_, reason, message) = condition(claim, "Ready");
        Some((format!("{} {reason}", claim["status"]["phase"].as_str().unwrap_or_default()), message))
    }

    /// Status, reason and message of a condition of the hypervisor.
    pub(super) fn cluster_condition(&self, kind: &str) -> (String, String, String) {
        condition(&self.api.objects[&id("HypervisorCluster", "pve")], kind)
    }

    /// At which seconds an operation was asked for.
    pub(super) fn times(&self, is_it: impl Fn(&Operation) -> bool) -> Vec<u64> {
        self.asked.iter().filter(|(_, operation)| is_it(operation)).map(|(second, _)| *second).collect()
    }

    /// Answers what was held, as the fake hypervisor does.
    pub(super) fn release(&mut self, mut reply: impl FnMut(&Operation, u64) -> Reply) {
        for (number, operation) in std::mem::take(&mut self.held) {
            let answer = self.hypervisor.carry_out(&operation, self.now, &mut self.random);
            self.handle(vec![Event::Elsewhere(number, Answer::Hypervisor(answer))], &mut reply);
        }
    }

    /// Lets time pass until this second.
    pub(super) fn run_until(&mut self, second: u64, mut reply: impl FnMut(&Operation, u64) -> Reply) {
        self.handle(vec![Event::Tick], &mut reply);
        while let Some(wake) = self.core.wake_at() {
            let at = u64::try_from(wake.elapsed().as_millis()).unwrap().max(self.now + 1);
            if at > second * 1_000 {
                break;
            }
            self.now = at;
            self.handle(vec![Event::Tick], &mut reply);
        }
        self.now = self.now.max(second * 1_000);
    }

    fn handle(&mut self, mut events: Vec<Event<Answer>>, reply: &mut dyn FnMut(&Operation, u64) -> Reply) {
        loop {
            for (version, key, object) in self.api.log[self.followed..].iter().cloned() {
                let target = self.watched.iter().find(|target| target.kind.kind == key.0).cloned();
                let event = report(&(version, key, object));
                events.extend(target.map(|target| Event::Watched(target, event)));
            }
            self.followed = self.api.log.len();
            if events.is_empty() {
                return;
            }
            for command in self.core.handle(std::mem::take(&mut events), self.time()) {
                events.extend(self.carry_out(command, reply));
            }
        }
    }

    fn carry_out(
        &mut self,
        command: Command<Notice, Request>,
        reply: &mut dyn FnMut(&Operation, u64) -> Reply,
    ) -> Vec<Event<Answer>> {
        match command {
            Command::Discover { .. } => vec![Event::Discovered(Ok(Discovered::All(kinds())))],
            Command::Watch { target, .. } => {
                let kind = target.kind.kind.clone();
                let objects = self.api.objects.iter().filter(|(key, _)| key.0 == kind);
                let mut events: Vec<WatchEvent> =
                    objects.map(|(key, object)| report(&(0, key.clone(), Some(object.clone())))).collect();
                let version = self.api.log.len().to_string();
                events.push(WatchEvent::Listed { all: self.api.all(&kind), version, verifies: false });
                self.watched.insert(target.clone());
                events.into_iter().map(|event| Event::Watched(target.clone(), event)).collect()
            }
            Command::Write(write) => {
                self.claim_writes += usize::from(write.key.kind.kind == "MachineClaim");
                let answer = self.api.write(&write, "u", self.time().wall);
                vec![Event::Written(write.key, answer)]
            }
            Command::Elsewhere(number, Request::Hypervisor(request)) => {
                let operation = request.operation;
                self.asked.push((self.second(), operation.clone()));
                let answer = match reply(&operation, self.now / 1_000) {
                    Reply::Usual => self.hypervisor.carry_out(&operation, self.now, &mut self.random),
                    Reply::Instead(answer) => answer,
                    Reply::Later => {
                        self.held.push((number, operation));
                        return Vec::new();
                    }
                };
                vec![Event::Elsewhere(number, Answer::Hypervisor(answer))]
            }
            Command::Notify(notice) => {
                self.notices.push(notice);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

fn condition(object: &Value, kind: &str) -> (String, String, String) {
    let all = object["status"]["conditions"].as_array();
    let found = all.into_iter().flatten().find(|found| found["type"] == kind);
    let text = |field: &str| found.and_then(|found| found[field].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("reason"), text("message"))
}

fn time(millis: u64) -> Now {
    let wall = Timestamp::from_millisecond(1_800_000_000_000 + i64::try_from(millis).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_millis(millis)) }
}
