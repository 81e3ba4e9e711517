//! One operator with a pool of runners: its API server, hypervisor, GitHub, border and guests, of which answers get lost and which it survives.

mod answers;
mod guests;
mod machines;
mod troubles;

use super::api_server::{ApiServer, id, kinds, report};
use super::hub::{Hub, LABEL};
use super::hub_sets::HubPoll;
use super::hypervisor::FakeHypervisor;
use super::random::Random;
use crate::bootstrap::Registry;
use crate::core::{Concurrency, Config, Core};
use crate::forge::ScaleSetAsk;
use crate::forge::budget::{Budget, Limits};
use crate::hypervisor::Operation;
use crate::inbox::{Received, Signed};
use crate::jobs::job::{Facts, JobKey, Observation, Repository, Source, State};
use crate::notice::Notice;
use crate::object::Name;
use crate::outside::{Answer, Ask, Minted, Reply, Request};
use crate::{bootstrap as border, forge};
use bootstrap::{Config as GuestConfig, Step};
use change::{Moment, Now};
use guests::Guest;
use jiff::Timestamp;
use protocol::{Command, Core as _, Discovered, Event, WatchEvent, WatchTarget};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// So long a machine boots, a runner starts, and a job takes, in milliseconds.
const BOOT: u64 = 8_000;
const JOB: u64 = 45_000;
const TICK: u64 = 500;

pub(super) struct Site {
    core: Core,
    pub(super) api: ApiServer,
    pub(super) hypervisor: FakeHypervisor,
    pub(super) hub: Hub,
    registry: Registry,
    is_open: bool,
    inbox: Vec<Received>,
    receiving: Option<u64>,
    /// By machine.
    guests: BTreeMap<String, Guest>,
    /// The configuration that each machine would start with.
    seeds: BTreeMap<String, GuestConfig>,
    pub(super) random: Random,
    /// Whether GitHub and the operator fail.
    pub(super) has_faults: bool,
    /// Whether the hypervisor, the API server and machines fail, too.
    pub(super) is_rough: bool,
    pub(super) webhooks: bool,
    pub(super) refuses_logins: bool,
    /// Pools whose every request is refused.
    pub(super) refused_pools: BTreeSet<&'static str>,
    /// Whether jobs say in the name of their guests that the runner was refused.
    pub(super) has_liars: bool,
    /// What was asked, at which address.
    pub(super) asked: Vec<(String, forge::Ask)>,
    /// At this step every guest fails.
    pub(super) fails_at: Option<Step>,
    /// Whether no webhook arrives.
    pub(super) is_unreachable: bool,
    /// How each job stood when webhooks were sent last.
    announced: BTreeSet<(u64, String)>,
    now: u64,
    started: u64,
    followed: usize,
    watched: BTreeSet<WatchTarget>,
    /// Answers that are late, with the process that asked.
    late: Vec<(u64, u64, u64, Answer)>,
    /// Requests to the hypervisor that arrive when nobody waits for their answer any more.
    stray: Vec<(u64, Operation)>,
    /// What this process knows of GitHub's limit.
    budget: Budget,
    /// How often GitHub has refused a request of this process because none was left.
    refused: u32,
    /// How many machines have lost their power.
    pub(super) power_failures: u64,
    /// The most claims at a time that had not ended or failed.
    pub(super) most_claims: usize,
    /// Polls of scale sets that wait for their answer, of this process.
    polls: Vec<(u64, HubPoll)>,
    epoch: u64,
    pub(super) notices: Vec<Notice>,
    /// Everything that was written to the API server, for canaries.
    pub(super) tokens: Vec<String>,
}

impl Site {
    pub(super) fn new(seed: u64) -> Site {
        let mut site = Site {
            core: core(now(0, 0)),
            api: ApiServer::default(),
            hypervisor: FakeHypervisor::default(),
            hub: Hub::default(),
            registry: Registry::default(),
            is_open: false,
            inbox: Vec::new(),
            receiving: None,
            guests: BTreeMap::new(),
            seeds: BTreeMap::new(),
            random: Random(seed.wrapping_mul(6_271).wrapping_add(3)),
            has_faults: false,
            is_rough: false,
            webhooks: false,
            refuses_logins: false,
            refused_pools: BTreeSet::new(),
            has_liars: false,
            asked: Vec::new(),
            fails_at: None,
            is_unreachable: false,
            announced: BTreeSet::new(),
            now: 0,
            started: 0,
            followed: 0,
            watched: BTreeSet::new(),
            late: Vec::new(),
            stray: Vec::new(),
            budget: Budget::new(Limits::default()),
            refused: 0,
            power_failures: 0,
            most_claims: 0,
            polls: Vec::new(),
            epoch: 0,
            notices: Vec::new(),
            tokens: Vec::new(),
        };
        site.hypervisor.keeps_running = true;
        site.create("HypervisorCluster", "pve", &json!({"provider": "proxmox", "endpoint": "https://pve:8006"}));
        let resources = json!({"cpu": 1, "memory": "1Gi"});
        let template = json!({
            "hypervisorClusterRef": {"name": "pve"}, "template": {"proxmox": {"tag": "base"}},
            "resources": resources, "cloudInit": {},
        });
        site.create("HypervisorMachineTemplate", "small", &template);
        site.handle(vec![Event::Tick]);
        site
    }

    pub(super) fn create(&mut self, kind: &str, name: &str, spec: &Value) {
        let metadata = json!({"name": name});
        let object = json!({"apiVersion": "hyperfleet.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec});
        self.api.create(object, "u", wall(self.now));
    }

    /// A pool of runners.
    pub(super) fn pool(&mut self, more: &Value) {
        self.pool_of("linux", &json!({}), more);
    }

    /// A pool of runners with more settings.
    pub(super) fn pool_of(&mut self, name: &str, settings: &Value, more: &Value) {
        let mut github = json!({
            "organization": "acme", "labels": [LABEL], "credentials": {"token": {"name": "gh", "key": "token"}},
        });
        github.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        let mut spec = json!({
            "templateRef": {"name": "small"},
            "scaling": {"maxReplicas": 4, "scaleDownDelay": "20s"},
            "workload": {"type": "github-actions", "config": {"github": github}},
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.create("RunnerPool", name, &spec);
    }

    /// A person changes settings of the pool.
    pub(super) fn change(&mut self, settings: &Value) {
        self.api.edit(&id("RunnerPool", "linux"), |spec| {
            let github = spec["workload"]["config"]["github"].as_object_mut().unwrap();
            github.extend(settings.as_object().unwrap().clone());
        });
    }

    pub(super) fn delete(&mut self, kind: &str, name: &str) {
        self.api.delete(&id(kind, name), wall(self.now));
    }

    pub(super) fn push(&mut self, label: &str) -> u64 {
        self.hub.push("shop", label, wall(self.now))
    }

    pub(super) fn push_to(&mut self, repository: &str) -> u64 {
        self.hub.push(repository, LABEL, wall(self.now))
    }

    pub(super) fn rerun(&mut self, job: u64) -> u64 {
        self.hub.rerun(job, wall(self.now))
    }

    /// Why jobs wait.
    pub(super) fn waits(&self) -> Vec<&'static str> {
        self.core
            .jobs()
            .flat_map(|(_, dispatch)| dispatch.waits().values().map(crate::jobs::demand::Wait::reason))
            .collect()
    }

    pub(super) fn second(&self) -> u64 {
        self.now / 1_000
    }

    /// The process ends and another one starts: what was in memory is gone.
    pub(super) fn crash(&mut self) {
        self.epoch += 1;
        self.started = self.now;
        self.core = core(self.time());
        (self.registry, self.is_open) = (Registry::default(), false);
        (self.inbox, self.receiving) = (Vec::new(), None);
        self.polls.clear();
        (self.budget, self.refused) = (Budget::new(Limits::default()), 0);
        (self.followed, self.watched) = (self.api.log.len(), BTreeSet::new());
        self.handle(vec![Event::Tick]);
    }

    /// Lets time pass.
    pub(super) fn run_for(&mut self, seconds: u64) {
        let end = self.now + seconds * 1_000;
        while self.now < end {
            self.now += TICK;
            self.hub.pass_time(self.now, JOB);
            self.send_webhooks();
            self.pass_guests();
            self.pass_troubles();
            if self.has_faults && self.random.below(240) == 0 {
                self.crash();
            }
            let due: Vec<_> = self.late.iter().filter(|late| late.0 <= self.now).cloned().collect();
            self.late.retain(|late| late.0 > self.now);
            let mut events: Vec<Event<Answer>> = vec![Event::Tick];
            let mine = due.into_iter().filter(|late| late.1 == self.epoch);
            events.extend(mine.map(|(_, _, number, answer)| Event::Elsewhere(number, answer)));
            events.extend(self.pass_polls());
            self.handle(events);
        }
    }

    /// Polls that are answered now. An answer may get lost: its message comes again.
    fn pass_polls(&mut self) -> Vec<Event<Answer>> {
        if self.has_faults && self.random.below(600) == 0 {
            self.hub.lose_sessions();
        }
        if self.has_faults && self.random.below(1_200) == 0 {
            let sets: Vec<u64> = self.hub.sets.keys().copied().collect();
            sets.into_iter().for_each(|set| self.hub.delete_set(set));
        }
        let mut answers = Vec::new();
        for (number, poll) in std::mem::take(&mut self.polls) {
            match self.hub.poll(&poll) {
                Some(answer) => answers.push((number, answer)),
                None => self.polls.push((number, poll)),
            }
        }
        answers.into_iter().flat_map(|(number, answer)| self.deliver(number, answer)).collect()
    }

    fn time(&self) -> Now {
        now(self.now, self.started)
    }

    /// How each job stands.
    fn shown(&self) -> BTreeSet<(u64, String)> {
        let shown = |job: &super::hub::HubJob| format!("{:?} {}", job.runner, job.is_done);
        self.hub.jobs.iter().map(|(id, job)| (*id, shown(job))).collect()
    }

    fn send_webhooks(&mut self) {
        let after = self.shown();
        let before = std::mem::replace(&mut self.announced, after.clone());
        let at = wall(self.now);
        let is_reached = self.webhooks && self.is_open && !self.is_unreachable;
        let all = self.api.all("RunnerPool");
        let pools: BTreeSet<Name> = all.iter().map(|(namespace, name)| Name::new(namespace, name)).collect();
        for facts in self.hub.deliveries.again(at, is_reached) {
            self.hear(facts, pools.clone());
        }
        for (id, _) in after.difference(&before).cloned() {
            if !self.webhooks {
                continue;
            }
            let is_lost = !is_reached || (self.has_faults && self.random.chance(20));
            let job = &self.hub.jobs[&id];
            let state = match (&job.runner, job.is_done) {
                (_, true) => State::Completed,
                (Some(_), false) => State::InProgress,
                (None, false) => State::Queued,
            };
            let facts = Facts {
                key: JobKey::Job { id, attempt: job.attempt },
                repository: Repository::new("acme", &job.repository),
                run: job.run,
                name: "build".into(),
                labels: [job.label.clone()].into(),
                group: None,
                state,
                runner: job.runner.as_ref().map(|(_, name)| name.clone()),
                conclusion: job.is_done.then(|| job.conclusion().to_owned()),
                created: Some(job.created),
                started: None,
                completed: None,
            };
            self.hub.deliveries.sent(&facts, at, !is_lost);
            if !is_lost {
                self.hear(facts, pools.clone());
            }
        }
    }

    /// A webhook that was signed with the secrets of these pools.
    pub(super) fn hear(&mut self, facts: Facts, pools: BTreeSet<Name>) {
        let observation = Observation { source: Source::Webhook, at: wall(self.now), facts };
        self.inbox.push(Received::Job(Box::new(Signed { observation, pools })));
    }

    fn handle(&mut self, mut events: Vec<Event<Answer>>) {
        for round in 0.. {
            assert!(round < 2_000, "it does not come to rest");
            for (version, key, object) in self.api.log[self.followed..].iter().cloned() {
                let target = self.watched.iter().find(|target| target.kind.kind == key.0).cloned();
                let event = report(&(version, key, object));
                events.extend(target.map(|target| Event::Watched(target, event)));
            }
            self.followed = self.api.log.len();
            if let Some(number) = self.receiving.filter(|_| !self.inbox.is_empty()) {
                self.receiving = None;
                let received = std::mem::take(&mut self.inbox);
                let records = self.registry_records(&received);
                events.push(Event::Elsewhere(number, Answer::Border(Reply::Received(received, records))));
            }
            if events.is_empty() {
                return;
            }
            for command in self.core.handle(std::mem::take(&mut events), self.time()) {
                events.extend(self.carry_out(command));
            }
        }
    }

    fn registry_records(&self, received: &[Received]) -> Vec<border::Record> {
        use border::Notice as Said;
        let uid = |one: &Received| match one {
            Received::Guest(
                Said::Attested(claim)
                | Said::Granted(claim)
                | Said::TokenReused(claim)
                | Said::Refused(claim, _)
                | Said::Reported(claim, _),
            ) => Some(claim.uid.clone()),
            Received::Guest(Said::Ended(end)) => Some(end.claim.uid.clone()),
            Received::Job(_) => None,
        };
        let uids: BTreeSet<String> = received.iter().filter_map(uid).collect();
        uids.iter().filter_map(|uid| self.registry.record(uid).cloned()).collect()
    }

    fn carry_out(&mut self, command: Command<Notice, Request>) -> Vec<Event<Answer>> {
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
                let answer = self.write(&write);
                vec![Event::Written(write.key, answer)]
            }
            Command::Elsewhere(number, Request::Hypervisor(request)) => self.send(number, &request.operation),
            Command::Elsewhere(number, Request::Forge(request)) => match request.ask {
                // This repository has no jobs.
                forge::Ask::ListJobs { .. } if request.address.ends_with("/acme/other") => {
                    let read = [forge::RepositoryName { owner: "acme".into(), name: "other".into() }].into();
                    let none = forge::Jobs { read, ..forge::Jobs::default() };
                    vec![Event::Elsewhere(number, Answer::Forge(Ok(forge::Answer::Jobs(none))))]
                }
                forge::Ask::Check if self.refuses_logins => vec![Event::Elsewhere(number, refused())],
                _ if self.refused_pools.contains(request.forge.name.as_str()) => {
                    vec![Event::Elsewhere(number, refused())]
                }
                ask => {
                    self.asked.push((request.address, ask.clone()));
                    self.ask_hub(number, &ask)
                }
            },
            Command::Elsewhere(number, Request::ForgetForge(_)) => {
                vec![Event::Elsewhere(number, Answer::Border(Reply::Done))]
            }
            Command::Elsewhere(number, Request::Border(ask)) => self.ask_border(number, ask),
            Command::Notify(notice) => {
                self.notices.push(notice);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Some requests never arrive, of others the answer is lost, and some answers are late.
    fn ask_hub(&mut self, number: u64, ask: &forge::Ask) -> Vec<Event<Answer>> {
        let ticket = match self.admit(ask) {
            Ok(ticket) => ticket,
            Err(failure) => return vec![Event::Elsewhere(number, Answer::Forge(Err(failure)))],
        };
        let fails = self.has_faults && *ask != forge::Ask::Check;
        if fails && self.random.chance(8) {
            self.unmetered(ticket);
            return vec![Event::Elsewhere(number, lost())];
        }
        if let forge::Ask::ScaleSet(ScaleSetAsk::Poll { session, last, capacity }) = ask {
            return match self.hub.begin_poll(session, *last, *capacity) {
                Ok(poll) => {
                    if self.polls.iter().any(|(_, known)| known.session == *session) {
                        self.hub.broken.push("two polls at a time".into());
                    }
                    self.polls.push((number, poll));
                    Vec::new()
                }
                Err(failure) => vec![Event::Elsewhere(number, Answer::Forge(Err(failure)))],
            };
        }
        if let Err(failure) = self.meter(ticket) {
            return vec![Event::Elsewhere(number, Answer::Forge(Err(failure)))];
        }
        let mut answer = self.hub.carry_out(ask);
        if let (forge::Ask::Check, Ok(forge::Answer::Checked(checked))) = (ask, &mut answer) {
            (checked.budget, checked.reset) = (self.budget.left(), self.budget.reset());
            return vec![Event::Elsewhere(number, Answer::Forge(answer))];
        }
        if *ask == forge::Ask::Check {
            return vec![Event::Elsewhere(number, Answer::Forge(answer))];
        }
        self.deliver(number, answer)
    }

    fn deliver(&mut self, number: u64, answer: Result<forge::Answer, forge::Failure>) -> Vec<Event<Answer>> {
        if self.has_faults && self.random.chance(8) {
            return vec![Event::Elsewhere(number, lost())];
        }
        if self.has_faults && self.random.chance(20) {
            return self.later(number, Answer::Forge(answer));
        }
        vec![Event::Elsewhere(number, Answer::Forge(answer))]
    }

    fn later(&mut self, number: u64, answer: Answer) -> Vec<Event<Answer>> {
        let at = self.now + self.random.between(500, 8_000);
        self.late.push((at, self.epoch, number, answer));
        Vec::new()
    }

    fn ask_border(&mut self, number: u64, ask: Ask) -> Vec<Event<Answer>> {
        let reply = match ask {
            Ask::Receive => {
                assert_eq!(self.receiving.replace(number), None, "one waits at a time");
                return Vec::new();
            }
            Ask::Mint { claim, life } => {
                let mut random = [0; 32];
                random.iter_mut().for_each(|byte| *byte = u8::try_from(self.random.below(256)).unwrap());
                let (uid, at) = (claim.uid.clone(), wall(self.now));
                let token = self.registry.mint(claim, random, life, at).unwrap();
                self.tokens.push(token.expose().to_owned());
                let record = self.registry.record(&uid).cloned().unwrap();
                let (endpoint, ca) = ("https://operator:8444".to_owned(), "pem".to_owned());
                Reply::Minted(Box::new(Minted { token, record, endpoint, ca }))
            }
            Ask::Restore(records) => {
                self.registry.add(records);
                self.is_open = true;
                Reply::Done
            }
            Ask::Offer { uid, offer } => {
                self.registry.offer(&uid, *offer);
                Reply::Done
            }
            Ask::Drain(uid) => {
                self.registry.drain(&uid);
                Reply::Done
            }
            Ask::Forget(uid) => {
                self.registry.forget(&uid);
                Reply::Done
            }
        };
        vec![Event::Elsewhere(number, Answer::Border(reply))]
    }
}

fn refused() -> Answer {
    let (message, remedy) = ("bad credentials".into(), String::new());
    Answer::Forge(Err(forge::Failure::Configuration { message, remedy }))
}

fn lost() -> Answer {
    Answer::Forge(Err(forge::Failure::Transient("connection reset".into())))
}

fn core(now: Now) -> Core {
    Core::new(Config { operator: "o".into(), concurrency: Concurrency::default() }, now)
}

fn wall(millis: u64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + i64::try_from(millis).unwrap()).unwrap()
}

fn now(millis: u64, started: u64) -> Now {
    Now { wall: wall(millis), monotonic: Moment::since_start(Duration::from_millis(millis - started)) }
}
