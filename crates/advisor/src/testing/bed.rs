//! Runs the core against the model: carries out its commands, delivers answers and watch events, and moves the clock.

use super::pack::{self, DENSITY, NAMESPACE, PROFILE};
use super::promises::Promises;
use crate::{Config, Core, IDENTITY, Notice};
use catalog::{Answer, Catalog};
use change::{Effect, Key, Kind, Moment, Now, PatchableKinds};
use jiff::Timestamp;
use mco_stand_in::{StandIn, Timing};
use protocol::{Command, Core as _, Event, WatchTarget, Write, WriteError, Written};
use serde_json::{Value, json};
use server_model::fields::merge;
use server_model::server::{ApiServer, Failure, Outcome};
use server_model::serving::Crd;
use server_model::stored::Stored;
use server_model::watching::OpenWatch;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::time::Duration;

pub(crate) const HCO: &str = "HyperConverged virt/kubevirt-hyperconverged";
pub(crate) const MACHINE_CONFIGS: Crd = Crd {
    api_version: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    plural: "machineconfigs",
    namespaced: false,
};
const CRDS: [Crd; 4] = [
    Crd { api_version: "hco.kubevirt.io/v1", kind: "HyperConverged", plural: "hyperconvergeds", namespaced: true },
    Crd {
        api_version: "machineconfiguration.openshift.io/v1",
        kind: "MachineConfigPool",
        plural: "machineconfigpools",
        namespaced: false,
    },
    Crd { api_version: "loki.grafana.com/v1", kind: "LokiStack", plural: "lokistacks", namespaced: true },
    Crd {
        api_version: "advisor.kubevirt.io/v1alpha1",
        kind: "VirtPlatformConfig",
        plural: "virtplatformconfigs",
        namespaced: false,
    },
];
/// More rounds without anything that happens are a loop.
const MOST_ROUNDS: usize = 1_000;

/// What goes wrong with one write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does not arrive.
    Lost,
    /// It is made, but its answer is lost.
    Unanswered,
    /// The server refuses it.
    Refused,
    /// The server says that the object has changed.
    Stale,
    /// The process ends before it is sent.
    KilledBefore,
    /// The process ends after it was made.
    KilledAfter,
}

/// The test bed.
pub(crate) struct TestBed {
    pub(crate) core: Core,
    /// The profile that a story is about.
    pub(crate) profile: &'static str,
    pub(crate) release: u8,
    started: Timestamp,
    pub(crate) server: ApiServer,
    pub(crate) watches: BTreeMap<WatchTarget, OpenWatch>,
    pub(crate) requests: Vec<Command<Notice>>,
    pub(crate) answers: Vec<Event>,
    /// Faults of the next writes, in their order; `None` is none.
    pub(crate) faults: VecDeque<Option<Fault>>,
    /// Writes to these objects are refused, and so are their dry runs.
    pub(crate) refused: Vec<Key>,
    /// Writes to these objects are refused, and their dry runs are not.
    pub(crate) refused_writes: Vec<Key>,
    /// How many of the next reads fail.
    pub(crate) failing_reads: usize,
    /// Objects whose name begins so cannot be read, and queries for one of this name are not answered.
    pub(crate) unreadable: Option<&'static str>,
    /// Objects of this kind cannot be listed.
    pub(crate) unlistable: Option<&'static str>,
    /// How many writes were sent, of a status and of other objects.
    pub(crate) sent: (usize, usize),
    /// How many requests of any kind were sent.
    pub(crate) asked: usize,
    pub(crate) stand_in: Option<StandIn>,
    pub(crate) stand_in_started: Timestamp,
    pub(crate) promises: Promises,
    pub(crate) notices: Vec<Notice>,
    pub(crate) lines: Vec<String>,
}

impl TestBed {
    /// A cluster with a HyperConverged and two workers, and a core that has not run yet.
    pub(crate) fn new() -> TestBed {
        TestBed::with_workers(&["w0", "w1"])
    }

    /// The same for a story about another profile.
    pub(crate) fn of(profile: &'static str) -> TestBed {
        let mut bed = TestBed::new();
        bed.profile = profile;
        bed
    }

    pub(crate) fn with_workers(workers: &[&str]) -> TestBed {
        let started: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let mut server = ApiServer::new(started);
        server.serve("v1", "ConfigMap", "configmaps", true);
        server.serve("v1", "Node", "nodes", false);
        server.serve("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false);
        CRDS.iter().chain([&MACHINE_CONFIGS]).for_each(|crd| server.install_crd(crd));
        let mut bed = TestBed {
            core: core(pack::catalog(1), start_of(started)),
            profile: PROFILE,
            release: 1,
            started,
            server,
            watches: BTreeMap::new(),
            requests: Vec::new(),
            answers: Vec::new(),
            faults: VecDeque::new(),
            refused: Vec::new(),
            refused_writes: Vec::new(),
            failing_reads: 0,
            unreadable: None,
            unlistable: None,
            sent: (0, 0),
            asked: 0,
            stand_in: Some(StandIn::new(Timing::real(), started)),
            stand_in_started: started,
            promises: Promises::default(),
            notices: Vec::new(),
            lines: Vec::new(),
        };
        bed.create(&json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged",
            "metadata": {"name": api::hco::NAME, "namespace": NAMESPACE}, "spec": {}}));
        // All profiles were advertised before, so that nothing but stories creates objects.
        let advertised = format!("{PROFILE},{DENSITY}");
        bed.create(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "virt-advisor-state", "namespace": NAMESPACE}, "data": {"advertised": advertised}}));
        bed.create_pool("worker", workers);
        bed.create_pool("master", &["m0"]);
        bed.run_nodes();
        while let Some(at) = bed.nodes_wake_at() {
            bed.set_clock(at);
            bed.run_nodes();
        }
        bed
    }

    /// A new process; what was in flight is lost.
    pub(crate) fn restart(&mut self) {
        self.line("the process starts again");
        self.started = self.server.now;
        self.core = core(pack::catalog(self.release), start_of(self.started));
        self.watches.clear();
        self.requests.clear();
        self.answers.clear();
        self.promises.restart();
    }

    /// Somebody restores the server from a backup: every watch lists again, in versions that are lower than those that were known.
    pub(crate) fn restore(&mut self, backup: &ApiServer) {
        self.line("the server is restored");
        self.server.restore(backup);
        self.watches.values_mut().for_each(OpenWatch::go_back);
        self.promises.restored(self.server.objects().map(|(_, stored)| &**stored));
    }

    /// The server does not answer for a while, and every watch is lost.
    pub(crate) fn lose_watches(&mut self, time: Duration) {
        self.lose_watch("");
        self.run_for(time);
        self.list_again();
        self.run();
    }

    /// Watches of this kind are lost, until they list again; without a kind all of them.
    pub(crate) fn lose_watch(&mut self, kind: &str) {
        self.line(&format!("watches are lost: {kind}"));
        let lost = self.watches.iter_mut().filter(|(target, _)| kind.is_empty() || target.kind.kind == kind);
        lost.for_each(|(_, watch)| watch.lose());
    }

    /// All watches list again that were lost.
    pub(crate) fn list_again(&mut self) {
        self.line("what was lost is listed again");
        self.watches.values_mut().filter(|watch| watch.is_lost()).for_each(OpenWatch::list_again);
    }

    /// A new process of another release.
    pub(crate) fn upgrade(&mut self) {
        self.release += 1;
        self.restart();
    }

    /// Somebody creates an object.
    pub(crate) fn create(&mut self, object: &Value) {
        let key = Key::of(object).expect("it has a name");
        self.server.create("person", &key, object).expect("it can be created");
    }

    /// Somebody changes an object, or creates it; the change is a merge patch.
    pub(crate) fn edit(&mut self, key: &str, change: &Value) {
        let key = self.key(key);
        self.line(&format!("somebody changes {key}: {change}"));
        if self.server.get(&key).is_none() {
            let mut object =
                json!({"apiVersion": key.kind.api_version(), "kind": key.kind.kind, "metadata": {"name": key.name}});
            if !key.namespace.is_empty() {
                object["metadata"]["namespace"] = json!(key.namespace);
            }
            merge(&mut object, change);
            return self.create(&object);
        }
        self.server.update("person", &key, |object| merge(object, change)).expect("it can be changed");
    }

    /// The operator of an object writes its status.
    pub(crate) fn report(&mut self, key: &str, status: &Value) {
        let key = self.key(key);
        self.line(&format!("its operator reports of {key}: {status}"));
        let written = self.server.update_status("operator", &key, |object| object["status"] = status.clone());
        written.expect("it can be changed");
    }

    /// Somebody deletes an object.
    pub(crate) fn delete(&mut self, key: &str) {
        let key = self.key(key);
        self.line(&format!("somebody deletes {key}"));
        self.server.delete("person", &key, None).expect("it can be deleted");
    }

    /// Somebody changes the spec of the profile, as `kubectl patch` does.
    pub(crate) fn ask(&mut self, spec: Value) {
        self.ask_of(self.profile, spec);
    }

    pub(crate) fn ask_of(&mut self, profile: &str, mut spec: Value) {
        spec["profile"] = json!(profile);
        self.edit(&format!("VirtPlatformConfig {profile}"), &json!({"spec": spec}));
        let stored = self.stored(&format!("VirtPlatformConfig {profile}")).expect("it exists");
        self.promises.acted(profile, &stored.object);
    }

    /// Asks for a plan, approves it as it is shown and waits until all is done.
    pub(crate) fn complete(&mut self) {
        self.complete_with(json!({}));
    }

    /// The same with other settings of the spec.
    pub(crate) fn complete_with(&mut self, mut spec: Value) {
        spec["action"] = json!("DryRun");
        self.ask(spec);
        self.run();
        self.approve();
        self.run_for(Duration::from_secs(7_200));
        assert_eq!(self.phase(), "Completed", "{}", self.lines.concat());
    }

    /// Approves the plan that is shown.
    pub(crate) fn approve(&mut self) {
        let digest = self.status()["planDigest"].clone();
        self.ask(json!({"action": "Apply", "approvedPlan": digest}));
    }

    pub(crate) fn status(&self) -> Value {
        self.value(&format!("VirtPlatformConfig {}", self.profile), "/status")
    }

    pub(crate) fn phase(&self) -> String {
        self.status()["phase"].as_str().unwrap_or_default().to_owned()
    }

    /// One condition of the status.
    pub(crate) fn condition(&self, kind: &str) -> Value {
        let status = self.status();
        let mut all = status["conditions"].as_array().into_iter().flatten();
        all.find(|condition| condition["type"] == kind).cloned().unwrap_or_default()
    }

    /// One item of the status.
    pub(crate) fn item(&self, name: &str) -> Value {
        let status = self.status();
        let mut all = status["items"].as_array().into_iter().flatten();
        all.find(|item| item["name"] == name).cloned().unwrap_or_default()
    }

    pub(crate) fn stored(&self, key: &str) -> Option<Rc<Stored>> {
        self.server.get(&self.key(key)).cloned()
    }

    /// One field of an object, by JSON pointer; null if it does not exist.
    pub(crate) fn value(&self, key: &str, pointer: &str) -> Value {
        self.stored(key).and_then(|stored| stored.object.pointer(pointer).cloned()).unwrap_or_default()
    }

    /// The key of `ConfigMap virt/a`.
    pub(crate) fn key(&self, text: &str) -> Key {
        let (kind, name) = text.split_once(' ').unwrap_or_else(|| panic!("{text:?} is not `Kind namespace/name`"));
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let known = CRDS.iter().chain([&MACHINE_CONFIGS]).find(|crd| crd.kind == kind);
        let kind = known.map_or_else(|| self.server.kind_called(kind), |crd| Kind::new(crd.api_version, crd.kind));
        Key { kind, namespace: namespace.into(), name: name.into() }
    }

    pub(crate) fn now(&self) -> Now {
        self.now_of(self.server.now)
    }

    /// A moment as the core's clocks show it.
    pub(crate) fn now_of(&self, wall: Timestamp) -> Now {
        let passed = Duration::try_from(wall.duration_since(self.started));
        Now { wall, monotonic: Moment::since_start(passed.unwrap_or_default()) }
    }

    pub(crate) fn set_clock(&mut self, at: Moment) {
        self.server.now = self.server.now.max(change::now::later(self.started, at.elapsed()));
    }

    /// Runs until nothing is in flight and no timer has expired.
    pub(crate) fn run(&mut self) {
        for _ in 0..MOST_ROUNDS {
            for request in std::mem::take(&mut self.requests) {
                self.carry_out(request);
            }
            let has_written = self.run_nodes();
            let events = self.ready_events();
            let is_due = self.core.wake_at().is_some_and(|at| at <= self.now().monotonic);
            if events.is_empty() && !is_due && !has_written && self.requests.is_empty() {
                return;
            }
            self.handle(events);
        }
        panic!("it does not settle: {}", self.lines.concat());
    }

    /// Runs for so long, through every timer.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now().monotonic.after(time);
        self.run();
        let mut rounds = 0;
        while let Some(at) =
            [self.core.wake_at(), self.nodes_wake_at()].into_iter().flatten().min().filter(|at| *at <= end)
        {
            self.set_clock(at);
            self.run();
            rounds += 1;
            assert!(rounds < MOST_ROUNDS, "it never rests: {}", self.lines.concat());
        }
        // A new process counts from its own start.
        let end = end.min(self.now().monotonic.after(time));
        self.set_clock(end);
        self.run();
    }

    /// Runs until the core has sent a request like this, which is not carried out yet.
    pub(crate) fn run_until(&mut self, is_awaited: impl Fn(&Command<Notice>) -> bool) {
        for _ in 0..MOST_ROUNDS {
            if self.requests.iter().any(&is_awaited) {
                return;
            }
            for request in std::mem::take(&mut self.requests) {
                self.carry_out(request);
            }
            self.run_nodes();
            let events = self.ready_events();
            self.handle(events);
        }
        panic!("it never sends that: {}", self.lines.concat());
    }

    fn ready_events(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.answers);
        for (target, watch) in &mut self.watches {
            while let Some(event) = watch.next(target, &self.server) {
                events.push(Event::Watched(target.clone(), event));
            }
        }
        events
    }

    /// Calls the core once and takes its commands.
    pub(crate) fn handle(&mut self, events: Vec<Event>) {
        let now = self.now();
        self.promises.delivered(&events);
        for command in self.core.handle(events, now) {
            match command {
                Command::Watch { target, content, .. } => {
                    let mut watch = OpenWatch::new(content);
                    if self.unlistable == Some(target.kind.kind.as_str()) {
                        watch.lose();
                    }
                    self.watches.insert(target, watch);
                }
                Command::Unwatch(target) => {
                    self.watches.remove(&target);
                }
                Command::Notify(notice) => self.notices.push(notice),
                Command::Readiness(_) => {}
                request => {
                    if let Command::Write(write) = &request {
                        self.promises.sent(write);
                    }
                    self.asked += 1;
                    self.requests.push(request);
                }
            }
        }
    }

    /// Carries out a request; its answer waits to be delivered.
    pub(crate) fn carry_out(&mut self, request: Command<Notice>) {
        let fails = self.failing_reads > 0 && !matches!(request, Command::Write(_));
        self.failing_reads -= usize::from(fails);
        let why = || "connection reset".to_owned();
        let event = match request {
            Command::Discover { .. } if fails => Event::Discovered(Err(why())),
            Command::Discover { tag } => Event::Discovered(Ok(self.server.discover(tag.as_deref()))),
            Command::Query { query, .. }
                if fails || self.unreadable.is_some_and(|name| query.to_string().ends_with(name)) =>
            {
                Event::Answered(query, Answer::Unknown)
            }
            Command::Query { query, .. } => {
                let answer = self.server.answer(&query);
                Event::Answered(query, answer)
            }
            Command::Inspect { key, .. } if fails || self.unreadable.is_some_and(|name| key.name.starts_with(name)) => {
                Event::Inspected(key, Err(why()))
            }
            Command::Inspect { key, .. } => {
                let found = self.server.inspect(&key);
                Event::Inspected(key, Ok(found))
            }
            Command::Preview { key, .. } if fails => {
                Event::Previewed(key.clone(), Err(WriteError::Transient { key, message: why() }))
            }
            Command::Preview { key, effect, .. } => {
                let copy = self.server.copy();
                let server = std::mem::replace(&mut self.server, copy);
                let outcome = self.perform(&key, &effect);
                self.server = server;
                let whole = |stored: Option<Rc<Stored>>| stored.map(|stored| stored.whole(&key.kind.api_version()));
                Event::Previewed(
                    key.clone(),
                    outcome.map(|stored| whole(stored).unwrap_or_default()).map_err(|why| error(&key, why)),
                )
            }
            Command::Write(write) => match self.write(&write) {
                Some(result) => Event::Written(write.key.clone(), result),
                None => return,
            },
            other => panic!("the advisor does not {other:?}"),
        };
        self.answers.push(event);
    }

    /// Makes a write; no answer if the process has ended.
    fn write(&mut self, write: &Write) -> Option<Result<Written, WriteError>> {
        let key = &write.key;
        let is_status = matches!(write.effect, Effect::ReplaceStatus { .. });
        self.sent.0 += usize::from(is_status);
        self.sent.1 += usize::from(!is_status);
        let fault = self.faults.pop_front().flatten();
        let lost = |message: &str| WriteError::Transient { key: key.clone(), message: message.to_owned() };
        let what = match &write.effect {
            Effect::ReplaceStatus { object } => {
                let status = &object["status"];
                let items = status["items"].as_array().into_iter().flatten();
                let items: Vec<String> = items
                    .map(|item| format!("{} {} {}", item["operation"], item["state"], item["appliedTime"]))
                    .collect();
                let digest =
                    |value: &Value| value.as_str().unwrap_or("none").chars().skip(7).take(4).collect::<String>();
                let (plan, approved) = (digest(&status["planDigest"]), digest(&status["approved"]["digest"]));
                format!("{} plan {plan} approved {approved} {items:?}", status["phase"])
            }
            Effect::Apply { object, .. } => object.text().to_owned(),
            other => format!("{other:?}"),
        };
        self.line(&format!("write {key}: {what} {}", fault.map(|fault| format!("{fault:?}")).unwrap_or_default()));
        match fault {
            Some(Fault::Lost) => return Some(Err(lost("connection refused"))),
            Some(Fault::Stale) => return Some(Err(WriteError::Stale(key.clone()))),
            Some(Fault::Refused) => {
                return Some(Err(WriteError::Refused { key: key.clone(), code: 403, message: "forbidden".into() }));
            }
            Some(Fault::KilledBefore) => {
                self.restart();
                return None;
            }
            None | Some(Fault::Unanswered | Fault::KilledAfter) => {}
        }
        if self.refused_writes.contains(key) {
            return Some(Err(WriteError::Refused {
                key: key.clone(),
                code: 403,
                message: "denied by a policy".into(),
            }));
        }
        let before = self.server.get(key).cloned();
        let outcome = self.perform(key, &write.effect);
        let after = self.server.get(key).cloned();
        if let Err(why) = self.promises.made(write, before.as_deref(), after.as_deref()) {
            panic!("{why}\n{}", self.lines.concat());
        }
        match fault {
            Some(Fault::KilledAfter) => {
                self.restart();
                None
            }
            Some(Fault::Unanswered) => {
                self.promises.unanswered(write);
                Some(Err(lost("timeout")))
            }
            _ => Some(
                outcome
                    .map(|stored| Written { live: stored.map(|stored| stored.live()), before: None })
                    .map_err(|why| error(key, why)),
            ),
        }
    }

    fn perform(&mut self, key: &Key, effect: &Effect) -> Outcome {
        if self.refused.contains(key) {
            return Err(Failure::Refused(403, "denied by a policy".into()));
        }
        let (server, manager) = (&mut self.server, IDENTITY.field_manager);
        match effect {
            Effect::Apply { object, force, .. } => server.apply(manager, key, &object.value(), *force),
            Effect::Delete { uid, resource_version } => server.delete(manager, key, Some((uid, resource_version))),
            Effect::Create { object } => server.create(manager, key, object),
            Effect::ReplaceStatus { object } => {
                let uid = server.get(key).map(|stored| stored.uid().to_owned());
                if uid.as_deref() != object["metadata"]["uid"].as_str() {
                    return Err(Failure::Conflict("it is another object".into()));
                }
                server.update(manager, key, |stored| stored["status"] = object["status"].clone())
            }
            other => panic!("the advisor does not {other:?}"),
        }
    }

    pub(crate) fn line(&mut self, line: &str) {
        self.lines.push(format!("{line}\n"));
    }
}

fn error(key: &Key, why: Failure) -> WriteError {
    match why {
        Failure::Conflict(_) => WriteError::Stale(key.clone()),
        Failure::Refused(code, message) => WriteError::Refused { key: key.clone(), code, message },
    }
}

fn start_of(wall: Timestamp) -> Now {
    Now { wall, monotonic: Moment::default() }
}

fn core(catalog: Catalog, now: Now) -> Core {
    let config = Config {
        namespace: NAMESPACE.into(),
        version: "v1".into(),
        images: BTreeMap::new(),
        secure_metrics: false,
        patchable: PatchableKinds::none(),
    };
    Core::new(config, catalog, now)
}
