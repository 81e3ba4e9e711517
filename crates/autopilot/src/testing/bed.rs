//! Runs the core against the model: carries out its commands, delivers answers and watch events, and moves the clock.

use crate::core::explain::Explanation;
use crate::core::{Config, Core, Previews};
use crate::notice::Notice;
use crate::plan::Plan;
use crate::status::StatusLine;
use crate::testing::pack::{NAMESPACE, Pack};
use crate::testing::print;
use crate::testing::promises::Promises;
use crate::testing::requests::{Fault, Made};
use crate::testing::server::ApiServer;
use crate::testing::serving::Crd;
use crate::testing::stored::Stored;
use catalog::Catalog;
use change::{Key, Moment, Now, PatchableKinds};
use jiff::Timestamp;
use mco_stand_in::{StandIn, Timing};
use protocol::{Command, Core as _, Event, WatchTarget};
use serde_json::json;
use server_model::watching::OpenWatch;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;
use std::sync::LazyLock;
use std::time::Duration;

/// The HyperConverged.
pub(crate) const HCO: &str = "HyperConverged virt/kubevirt-hyperconverged";
/// The CRD of HyperConverged.
pub(crate) const HCOS: Crd =
    Crd { api_version: "hco.kubevirt.io/v1", kind: "HyperConverged", plural: "hyperconvergeds", namespaced: true };
/// The CRD of MachineConfig.
pub(crate) const MACHINE_CONFIGS: Crd = Crd {
    api_version: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfig",
    plural: "machineconfigs",
    namespaced: false,
};
/// The CRD of MachineConfigPool.
pub(crate) const POOLS: Crd = Crd {
    api_version: "machineconfiguration.openshift.io/v1",
    kind: "MachineConfigPool",
    plural: "machineconfigpools",
    namespaced: false,
};
/// The CRD of KubeDescheduler.
pub(crate) const DESCHEDULERS: Crd = Crd {
    api_version: "operator.openshift.io/v1",
    kind: "KubeDescheduler",
    plural: "kubedeschedulers",
    namespaced: true,
};

/// The CRD of VirtPlatformConfig.
pub(crate) const CONFIGS: Crd = Crd {
    api_version: "advisor.kubevirt.io/v1alpha1",
    kind: "VirtPlatformConfig",
    plural: "virtplatformconfigs",
    namespaced: false,
};

/// More rounds without a pause are a hot loop.
const MOST_ROUNDS: usize = 1_000;

/// A cluster and the core that runs on it.
#[derive(Debug)]
pub(crate) struct TestBed {
    pub(crate) server: ApiServer,
    pub(crate) core: Core,
    pack: Pack,
    catalog: Catalog,
    pub(crate) config: Config,
    started: Timestamp,
    pub(crate) watches: BTreeMap<WatchTarget, OpenWatch>,
    /// Commands that were not carried out yet.
    pub(crate) requests: Vec<Command<Notice>>,
    /// Answers that were not delivered yet.
    pub(crate) answers: Vec<Event>,
    pub(crate) held_writes: BTreeSet<Key>,
    pub(crate) held_answers: BTreeSet<Key>,
    pub(crate) faults: BTreeMap<Key, VecDeque<Fault>>,
    pub(crate) refusals: BTreeMap<Key, Fault>,
    pub(crate) failing_reads: usize,
    /// The kind whose objects cannot be read one by one.
    pub(crate) unreadable: Option<String>,
    /// Kinds whose watches report nothing, not even that they are lost.
    pub(crate) silent: BTreeSet<String>,
    /// The writes of the core that were carried out.
    pub(crate) made: Vec<Made>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) promises: Promises,
    pub(crate) lines: Vec<String>,
    pub(crate) is_verbose: bool,
    /// How often the core was called.
    pub(crate) steps: usize,
    /// The stand-in of the machine-config operator, unless it was stopped, and since when it runs.
    pub(crate) machine_config_operator: Option<StandIn>,
    pub(crate) operator_started: Timestamp,
    /// How much of the log of the server it has seen.
    pub(crate) operator_saw: usize,
}

impl TestBed {
    /// A cluster with a HyperConverged, one worker without a GPU and MachineConfigs, and a core of the standard pack that has not run yet.
    pub(crate) fn new() -> TestBed {
        static STANDARD: LazyLock<(Pack, Catalog)> = LazyLock::new(|| {
            let pack = Pack::standard();
            let catalog = pack.catalog();
            (pack, catalog)
        });
        TestBed::on(STANDARD.0.clone(), STANDARD.1.clone())
    }

    /// The same with another pack.
    pub(crate) fn of(pack: Pack) -> TestBed {
        let catalog = pack.catalog();
        TestBed::on(pack, catalog)
    }

    fn on(pack: Pack, catalog: Catalog) -> TestBed {
        let started: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        let mut server = ApiServer::new(started);
        server.serve("v1", "ConfigMap", "configmaps", true);
        server.serve("v1", "Secret", "secrets", true);
        server.serve("v1", "Service", "services", true);
        server.serve("v1", "Node", "nodes", false);
        server.serve("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false);
        server.install_crd(&HCOS);
        server.install_crd(&MACHINE_CONFIGS);
        server.install_crd(&POOLS);
        let config = Config {
            namespace: NAMESPACE.into(),
            opt_in: false,
            patchable: PatchableKinds::none(),
            prune: true,
            images: BTreeMap::new(),
            secure_metrics: false,
            writes: true,
            previews: Previews::Off,
            operator: None,
            approved: None,
            last_rules: None,
        };
        let core = Core::new(config.clone(), catalog.clone(), start_of(started));
        let mut bed = TestBed::assemble(server, core, pack, catalog, config);
        bed.create_hco();
        bed.node_joins("w0", false);
        bed.create_pool("worker", &["worker"]);
        bed
    }

    fn assemble(server: ApiServer, core: Core, pack: Pack, catalog: Catalog, config: Config) -> TestBed {
        let started = server.now;
        TestBed {
            core,
            pack,
            catalog,
            config,
            started,
            server,
            watches: BTreeMap::new(),
            requests: Vec::new(),
            answers: Vec::new(),
            held_writes: BTreeSet::new(),
            held_answers: BTreeSet::new(),
            faults: BTreeMap::new(),
            refusals: BTreeMap::new(),
            failing_reads: 0,
            unreadable: None,
            silent: BTreeSet::new(),
            made: Vec::new(),
            notices: Vec::new(),
            promises: Promises::default(),
            lines: Vec::new(),
            is_verbose: false,
            steps: 0,
            machine_config_operator: Some(StandIn::new(Timing::real(), started)),
            operator_started: started,
            operator_saw: 0,
        }
    }

    /// The same after the core has run for a second; what it did is not shown.
    pub(crate) fn settled() -> TestBed {
        let mut bed = TestBed::new();
        bed.advance(Duration::from_secs(1));
        bed
    }

    /// Runs until nothing is in flight and no timer has expired; the writes and notices since the last call, one per line.
    pub(crate) fn settle(&mut self) -> String {
        self.run();
        self.take_lines()
    }

    /// The same with every command.
    pub(crate) fn settle_verbosely(&mut self) -> String {
        self.is_verbose = true;
        let lines = self.settle();
        self.is_verbose = false;
        lines
    }

    /// Runs for so long, through every timer; the writes and notices since the last call, one per line.
    pub(crate) fn advance(&mut self, time: Duration) -> String {
        self.run_for(time);
        self.take_lines()
    }

    /// Runs for so long, through every timer.
    pub(crate) fn run_for(&mut self, time: Duration) {
        let end = self.now().monotonic.after(time);
        self.run();
        while let Some(at) = self.wakes_at().filter(|at| *at <= end) {
            self.set_clock(at);
            self.run();
        }
        self.set_clock(end);
        self.run();
    }

    /// When something happens although nobody acts.
    fn wakes_at(&self) -> Option<Moment> {
        [self.core.wake_at(), self.operator_wakes_at()].into_iter().flatten().min()
    }

    /// The same with every command.
    pub(crate) fn advance_verbosely(&mut self, time: Duration) -> String {
        self.is_verbose = true;
        let lines = self.advance(time);
        self.is_verbose = false;
        lines
    }

    /// Expects that a day passes without a write that changes anything and without a notice.
    pub(crate) fn expect_silence(&mut self) {
        let made = self.made.len();
        let lines = self.advance(Duration::from_secs(24 * 3_600));
        let moved = self.made[made..].iter().filter(|made| made.has_moved()).count();
        let notices = lines.lines().filter(|line| line.starts_with("notice"));
        assert_eq!((moved, notices.collect::<Vec<_>>()), (0, Vec::<&str>::new()), "{lines}");
    }

    /// Starts another release, whose pack differs.
    pub(crate) fn upgrade(&mut self, change: impl FnOnce(Pack) -> Pack) {
        self.pack = change(self.pack.clone());
        self.catalog = self.pack.catalog();
        self.restart();
    }

    /// Replaces the core with a new one, which knows nothing. What was in flight is lost.
    pub(crate) fn restart(&mut self) {
        self.restart_with(|_| {});
    }

    /// The same with another configuration.
    pub(crate) fn restart_with(&mut self, change: impl FnOnce(&mut Config)) {
        change(&mut self.config);
        self.started = self.server.now;
        self.core = Core::new(self.config.clone(), self.catalog.clone(), start_of(self.started));
        self.watches.clear();
        self.requests.clear();
        self.answers.clear();
        self.promises.restart();
    }

    /// The status of a new core that writes nothing and sees this cluster once.
    pub(crate) fn observe(&self) -> Vec<StatusLine> {
        let config = Config { writes: false, previews: Previews::Check, ..self.config.clone() };
        let mut observer = self.fork(config);
        observer.refusals = self.refusals.clone();
        observer.run();
        observer.core.status()
    }

    /// The explanations of a new core that writes nothing and sees this cluster once.
    pub(crate) fn explain(&self) -> Vec<Explanation> {
        let mut observer = self.fork(Config { writes: false, previews: Previews::Check, ..self.config.clone() });
        observer.refusals = self.refusals.clone();
        observer.run();
        observer.core.explain(|_| true)
    }

    /// The plan of a new core that writes nothing and sees this cluster once.
    pub(crate) fn plan(&self) -> Plan {
        let mut observer = self.planner();
        observer.run();
        assert_eq!(observer.made.len(), 0, "a plan writes nothing");
        observer.core.plan()
    }

    /// A new core that plans on a copy of this cluster and has not run yet.
    pub(crate) fn planner(&self) -> TestBed {
        let mut observer = self.fork(Config { writes: false, previews: Previews::Diff, ..self.config.clone() });
        (observer.refusals, observer.unreadable) = (self.refusals.clone(), self.unreadable.clone());
        observer
    }

    /// A new core with this configuration on a copy of the cluster.
    pub(crate) fn fork(&self, config: Config) -> TestBed {
        let started = self.server.now;
        let core = Core::new(config.clone(), self.catalog.clone(), start_of(started));
        let (server, pack, catalog) = (self.server.clone(), self.pack.clone(), self.catalog.clone());
        let mut bed = TestBed::assemble(server, core, pack, catalog, config);
        bed.promises = self.promises.clone();
        bed.promises.restart();
        bed
    }

    /// Whether an object exists, and how it is stored.
    pub(crate) fn stored(&self, key: &str) -> Option<Rc<Stored>> {
        self.server.get(&self.key(key)).cloned()
    }

    /// The key of `ConfigMap virt/a`.
    pub(crate) fn key(&self, text: &str) -> Key {
        let (kind, name) = text.split_once(' ').unwrap_or_else(|| panic!("{text:?} is not `Kind namespace/name`"));
        let (namespace, name) = name.split_once('/').unwrap_or(("", name));
        let known = [HCOS, MACHINE_CONFIGS, POOLS, DESCHEDULERS, CONFIGS];
        let kind = match known.iter().find(|crd| crd.kind == kind) {
            // Also where it is not served now.
            Some(crd) => change::Kind::new(crd.api_version, crd.kind),
            None => self.server.kind_called(kind),
        };
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
        let at = change::now::later(self.started, at.elapsed());
        self.server.now = self.server.now.max(at);
    }

    /// Runs until nothing is in flight and no timer has expired.
    pub(crate) fn run(&mut self) {
        for _ in 0..MOST_ROUNDS {
            self.carry_out_all();
            let has_written = self.run_machine_config_operator();
            let events = self.ready_events();
            let is_due = self.core.wake_at().is_some_and(|at| at <= self.now().monotonic);
            if events.is_empty() && !is_due && !has_written {
                return;
            }
            self.handle(events);
        }
        panic!("it does not settle: {:#?}", self.lines);
    }

    /// Runs until the core has sent a request like this, which is not carried out yet.
    pub(crate) fn run_until(&mut self, is_awaited: impl Fn(&Command<Notice>) -> bool) {
        for _ in 0..MOST_ROUNDS {
            if self.requests.iter().any(&is_awaited) {
                return;
            }
            self.carry_out_all();
            let events = self.ready_events();
            self.handle(events);
        }
        panic!("it never sends that: {:#?}", self.lines);
    }

    fn carry_out_all(&mut self) {
        for request in std::mem::take(&mut self.requests) {
            match &request {
                Command::Write(write) if self.held_writes.contains(&write.key) => self.requests.push(request),
                _ => self.carry_out(request),
            }
        }
    }

    fn ready_events(&mut self) -> Vec<Event> {
        let held = &self.held_answers;
        let is_held = |event: &Event| matches!(event, Event::Written(key, _) if held.contains(key));
        let (waiting, mut events): (Vec<Event>, Vec<Event>) =
            std::mem::take(&mut self.answers).into_iter().partition(is_held);
        self.answers = waiting;
        let silent = &self.silent;
        for (target, watch) in self.watches.iter_mut().filter(|(target, _)| !silent.contains(&target.kind.kind)) {
            while let Some(event) = watch.next(target, &self.server) {
                events.push(Event::Watched(target.clone(), event));
            }
        }
        events
    }

    /// Calls the core once and takes its commands.
    pub(crate) fn handle(&mut self, events: Vec<Event>) {
        self.steps += 1;
        let now = self.now();
        self.promises.observe(&events);
        for command in self.core.handle(events, now) {
            if print::is_shown(&command) || (self.is_verbose && !matches!(command, Command::Write(_))) {
                self.line(&print::command(&command));
            }
            match command {
                Command::Watch { target, content, .. } => {
                    self.watches.insert(target, OpenWatch::new(content));
                }
                Command::Unwatch(target) => {
                    self.watches.remove(&target);
                }
                Command::Notify(notice) => {
                    self.promises.noticed(&notice);
                    self.notices.push(notice);
                }
                Command::Readiness(_) => {}
                request => {
                    if let Command::Write(write) = &request {
                        self.promises.sent(write, now.wall);
                        self.expect_ungoverned(&write.key);
                    }
                    self.requests.push(request);
                }
            }
        }
    }

    /// What the advisor governs is not written.
    fn expect_ungoverned(&self, key: &Key) {
        for (asset, by) in catalog::governed(&self.catalog, self.core.facts()) {
            let governed = self.catalog.asset(asset).and_then(|asset| self.catalog.plain_key(asset));
            assert!(governed.as_ref() != Some(key), "{key} is written, which {by} governs");
        }
    }

    /// Adds a line to what [`TestBed::settle`] returns.
    pub(crate) fn line(&mut self, line: &str) {
        self.lines.push(format!("{line}\n"));
    }

    fn take_lines(&mut self) -> String {
        std::mem::take(&mut self.lines).concat()
    }

    /// Creates the HyperConverged.
    pub(crate) fn create_hco(&mut self) {
        let metadata = json!({"name": api::hco::NAME, "namespace": NAMESPACE});
        self.create(
            "person",
            &json!({"apiVersion": "hco.kubevirt.io/v1", "kind": api::hco::KIND, "metadata": metadata, "spec": {}}),
        );
    }
}

fn start_of(wall: Timestamp) -> Now {
    Now { wall, monotonic: Moment::default() }
}
