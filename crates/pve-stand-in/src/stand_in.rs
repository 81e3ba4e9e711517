//! The state of the cluster, and how requests and time change it.

use crate::access::{Caller, User};
use crate::acl::Acl;
use crate::control::History;
use crate::fault::{FaultEffect, Faults, Reply};
use crate::node::Node;
use crate::random::Random;
use crate::request::{Method, Request};
use crate::response::{Refusal, Response};
use crate::route::Call;
use crate::setup::Setup;
use crate::statistics::Statistics;
use crate::storage::Storage;
use crate::table::ROUTES;
use crate::task::Task;
use crate::timing::Timing;
use crate::vm::Vm;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A Proxmox VE cluster, as its API shows it.
#[derive(Debug, Clone)]
pub struct StandIn {
    /// How long everything takes.
    pub timing: Timing,
    /// How many clones of templates on one storage may run at a time; others wait for a lock and fail.
    pub max_clones: Option<usize>,
    pub(crate) epoch: i64,
    pub(crate) skew: i64,
    pub(crate) random: Random,
    pub(crate) secret: String,
    pub(crate) name: String,
    pub(crate) local: String,
    pub(crate) nodes: BTreeMap<String, Node>,
    pub(crate) is_quorate: bool,
    pub(crate) storages: BTreeMap<String, Storage>,
    pub(crate) vms: BTreeMap<u32, Vm>,
    pub(crate) pools: BTreeMap<String, Pool>,
    /// VNets and their zones.
    pub(crate) vnets: BTreeMap<String, String>,
    pub(crate) users: BTreeMap<String, User>,
    pub(crate) acl: Acl,
    pub(crate) tasks: BTreeMap<String, Task>,
    /// Those of them that run.
    pub(crate) running: BTreeSet<String>,
    pub(crate) next_pid: u32,
    pub(crate) next_birth: u64,
    pub(crate) faults: Faults,
    pub(crate) statistics: Statistics,
    pub(crate) history: History,
    now: Duration,
    queue: BTreeMap<(Duration, u64), Happening>,
    next_happening: u64,
}

/// A pool of VMs and storages.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pool {
    pub(crate) comment: String,
    pub(crate) vms: BTreeSet<u32>,
    pub(crate) storages: BTreeSet<String>,
}

/// Something that happens at a time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Happening {
    /// A task has done its work, or a part of it.
    TaskDue(String),
    /// A guest switches its VM off, unless this is another run by then, of this VM or of another one with its id.
    PowerOff { vmid: u32, since: Duration },
    /// A request that was delayed on its way.
    Late(Box<Request>),
}

impl StandIn {
    /// A cluster.
    pub fn new(setup: &Setup) -> StandIn {
        let mut random = Random::new(setup.seed);
        let secret = random.uuid();
        let mut stand_in = StandIn {
            timing: setup.timing,
            max_clones: setup.max_clones,
            epoch: setup.epoch,
            skew: 0,
            random,
            secret,
            name: setup.name.clone(),
            local: setup.nodes.first().map(|node| node.name.clone()).unwrap_or_default(),
            nodes: BTreeMap::new(),
            is_quorate: true,
            storages: BTreeMap::new(),
            vms: BTreeMap::new(),
            pools: BTreeMap::new(),
            vnets: BTreeMap::new(),
            users: BTreeMap::new(),
            acl: Acl::default(),
            tasks: BTreeMap::new(),
            running: BTreeSet::new(),
            next_pid: 1200,
            next_birth: 1,
            faults: Faults::default(),
            statistics: Statistics::default(),
            history: History::default(),
            now: Duration::ZERO,
            queue: BTreeMap::new(),
            next_happening: 0,
        };
        stand_in.populate(setup);
        stand_in.take_statistics(Duration::ZERO);
        stand_in
    }

    /// Carries out a request at a moment, which is a time since the start and never goes back.
    pub fn handle(&mut self, request: &Request, now: Duration) -> Reply {
        self.advance(now);
        if !self.nodes.get(&self.local).is_some_and(|node| node.is_online) {
            return Reply::Lost;
        }
        match self.faults.take(request) {
            None => Reply::Answer(self.carry_out(request)),
            Some(FaultEffect::LoseReply) => {
                self.carry_out(request);
                Reply::Lost
            }
            Some(FaultEffect::Drop) => Reply::Lost,
            Some(FaultEffect::Delay(time)) => Reply::Late(self.carry_out(request), time),
            Some(FaultEffect::CarryOutLater(time)) => {
                self.schedule(self.now + time, Happening::Late(Box::new(request.clone())));
                Reply::Lost
            }
            Some(FaultEffect::Repeat) => {
                self.carry_out(request);
                Reply::Answer(self.carry_out(request))
            }
            Some(FaultEffect::Fail(status, text)) => Reply::Answer(Refusal::with_status(status, text).response()),
            // Those are taken by the task.
            Some(FaultEffect::TaskFails(_) | FaultEffect::TaskNeverEnds) => Reply::Answer(self.carry_out(request)),
        }
    }

    /// Lets everything happen that is due at this moment or before.
    pub fn advance(&mut self, now: Duration) {
        while let Some((&(at, number), _)) = self.queue.first_key_value() {
            if at > now {
                break;
            }
            self.observe_until(at);
            self.now = self.now.max(at);
            match self.queue.remove(&(at, number)) {
                Some(Happening::TaskDue(upid)) => self.finish_task(&upid, at),
                Some(Happening::PowerOff { vmid, since }) => self.guest_powers_off(vmid, since),
                Some(Happening::Late(request)) => {
                    self.carry_out(&request);
                }
                None => {}
            }
        }
        self.observe_until(now);
        self.now = self.now.max(now);
    }

    /// When something happens next, if nothing is asked until then.
    pub fn next_change(&self) -> Option<Duration> {
        self.queue.first_key_value().map(|((at, _), _)| *at)
    }

    /// The time that was given last.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// What the clock of the server shows, in seconds since 1970.
    pub fn clock(&self, now: Duration) -> i64 {
        self.epoch + i64::try_from(now.as_secs()).unwrap_or(i64::MAX >> 1) + self.skew
    }

    pub(crate) fn schedule(&mut self, at: Duration, happening: Happening) {
        self.next_happening += 1;
        self.queue.insert((at, self.next_happening), happening);
    }

    fn carry_out(&mut self, request: &Request) -> Response {
        match self.dispatch(request) {
            Ok(answer) => answer.response(),
            Err(refusal) => refusal.response(),
        }
    }

    fn dispatch(&mut self, request: &Request) -> Result<crate::response::Answer, Refusal> {
        let now = self.now;
        let is_login = request.method == Method::Post && request.path == "/access/ticket";
        let caller = match is_login {
            true => Caller { user: String::new(), token: None },
            false => self.authenticate(request, now)?,
        };
        let found = ROUTES.iter().find_map(|route| Some((route, route.matches(request.method, &request.path)?)));
        let Some((route, in_path)) = found else {
            let text = format!("Method '{} {}' not implemented", request.method.as_str(), request.path);
            return Err(Refusal::with_status(501, text));
        };
        let call = Call { request, in_path, caller, now };
        if let Some(node) = call.in_path.get("node") {
            self.reach(node)?;
        }
        route.verify(&call)?;
        (route.run)(self, &call)
    }

    /// The node that a request is for has to exist and to answer.
    fn reach(&self, node: &str) -> Result<(), Refusal> {
        match self.nodes.get(node) {
            Some(found) if found.is_online => Ok(()),
            Some(_) => Err(Refusal::with_status(595, "No route to host")),
            None => Err(Refusal::failed(format!(
                "hostname lookup '{node}' failed - failed to get address info for: {node}: Name or service not known"
            ))),
        }
    }

    pub(crate) fn need_quorum(&self) -> Result<(), Refusal> {
        match self.is_quorate {
            true => Ok(()),
            false => Err(Refusal::failed("cluster not ready - no quorum?")),
        }
    }

    /// The VM of a call, on the node of the call.
    pub(crate) fn vm_on(&self, vmid: u32, node: &str) -> Result<&Vm, Refusal> {
        self.vms.get(&vmid).filter(|vm| vm.node == node).ok_or_else(|| {
            Refusal::failed(format!("Configuration file 'nodes/{node}/qemu-server/{vmid}.conf' does not exist"))
        })
    }

    /// The pool of a VM.
    pub(crate) fn pool_of(&self, vmid: u32) -> Option<&str> {
        self.pools.iter().find(|(_, pool)| pool.vms.contains(&vmid)).map(|(name, _)| name.as_str())
    }
}
