//! A small hypervisor that several operators and people share: ids are used again, clones take time and run into locks, nodes go offline.

use super::random::Random;
use crate::hypervisor::{
    Answer, Checked, Failure, GuestNetwork, Inspected, Listed, MachineId, NodeState, Operation, Owner, Power,
    SeedsFound, Seen, StorageState, Template,
};
use std::collections::{BTreeMap, BTreeSet};

/// A machine.
#[derive(Debug, Clone)]
pub(super) struct Vm {
    pub(super) name: String,
    pub(super) node: String,
    /// Whose it really is.
    pub(super) owner: Option<Owner>,
    /// Whether its notes say so; somebody may have overwritten them.
    pub(super) has_record: bool,
    /// Whether the token may not see it.
    pub(super) is_hidden: bool,
    pub(super) power: Power,
    pub(super) is_configured: bool,
    /// Whether it has run and was switched off at some time; a late request may have started it again.
    pub(super) has_stopped: bool,
    /// It was created by a request that had arrived before, which only the sweep can repair.
    pub(super) is_repeated: bool,
    /// When it was started first, when its guest answers, and when it switches itself off.
    pub(super) started_at: u64,
    pub(super) boots_at: u64,
    pub(super) ends_at: u64,
    /// What a list shows until this moment: the state of before.
    stale: (u64, Power),
    /// In which state the hypervisor has halted it.
    pub(super) halted: Option<String>,
    /// Tells it from another machine with the same id.
    pub(super) serial: u64,
    memory: u64,
    /// What its disk takes of the storage.
    disk: u64,
}

impl Vm {
    /// Whose it is, as its notes say.
    pub(super) fn record(&self) -> Option<&Owner> {
        self.owner.as_ref().filter(|_| self.has_record)
    }

    pub(super) fn switch_off(&mut self) {
        self.has_stopped |= self.power == Power::Running;
        self.power = Power::Stopped;
    }
}

fn no_template() -> Failure {
    Failure::Configuration { message: "there is no such template".into(), remedy: "name one that exists".into() }
}

#[derive(Default)]
pub(super) struct FakeHypervisor {
    pub(super) vms: BTreeMap<String, Vm>,
    pub(super) offline: BTreeSet<String>,
    pub(super) is_down: bool,
    /// Whether the next operation arrives once more.
    pub(super) is_repeated: bool,
    /// Somebody has deleted the template.
    pub(super) has_no_template: bool,
    /// Lists have neither names nor states of the machines of others.
    pub(super) is_nameless: bool,
    /// No machine switches itself off.
    pub(super) keeps_running: bool,
    serial: u64,
    /// Foreign machines that are to be there, by id, with their serials.
    pub(super) foreign: BTreeMap<String, u64>,
    /// Every promise that was broken.
    pub(super) broken: Vec<String>,
    pub(super) clones: u64,
}

const GIB: u64 = 1 << 30;
/// A list is made of statistics that are so old, in milliseconds.
const STATISTICS: u64 = 10_000;

impl FakeHypervisor {
    /// Somebody else creates a machine.
    pub(super) fn foreigner_creates(&mut self, id: String, owner: Option<Owner>) {
        if !self.vms.contains_key(&id) {
            self.serial += 1;
            self.foreign.insert(id.clone(), self.serial);
            let vm = Vm { is_repeated: false, ..self.vm("database", "b", owner) };
            self.vms.insert(id, vm);
        }
    }

    fn vm(&self, name: &str, node: &str, owner: Option<Owner>) -> Vm {
        Vm {
            name: name.into(),
            node: node.into(),
            owner,
            has_record: true,
            is_hidden: false,
            power: Power::Stopped,
            is_configured: false,
            has_stopped: false,
            is_repeated: self.is_repeated,
            started_at: 0,
            boots_at: 0,
            ends_at: u64::MAX,
            stale: (0, Power::Stopped),
            halted: None,
            serial: self.serial,
            memory: GIB,
            disk: 0,
        }
    }

    fn seen(vm: &Vm) -> Seen {
        Seen {
            name: vm.name.as_str().into(),
            node: vm.node.as_str().into(),
            power: vm.power,
            is_template: false,
            lock: None,
            is_tagged: vm.is_configured,
            pool: None,
            cpus: 1,
            memory: vm.memory,
        }
    }

    /// Guests switch themselves off.
    pub(super) fn pass_time(&mut self, now: u64) {
        for vm in self.vms.values_mut().filter(|vm| vm.ends_at <= now && vm.power == Power::Running) {
            vm.stale = (now + STATISTICS, vm.power);
            vm.switch_off();
        }
    }

    /// Carries out an operation at this moment.
    pub(super) fn carry_out(
        &mut self,
        operation: &Operation,
        now: u64,
        random: &mut Random,
    ) -> Result<Answer, Failure> {
        self.pass_time(now);
        let transient = |why: &str| Err(Failure::Transient(why.into()));
        if self.is_down {
            return transient("connection refused");
        }
        match operation {
            Operation::Check => Ok(Answer::Checked(Box::new(Checked { is_quorate: true, ..Checked::default() }))),
            Operation::List => Ok(Answer::Listed(Box::new(self.list(now, random)))),
            Operation::FindTemplate(_) if self.has_no_template => Err(no_template()),
            Operation::FindTemplate(_) => Ok(Answer::Templates(vec![Template {
                id: MachineId("100".into()),
                name: "base".into(),
                node: "a".into(),
                storage: "ceph".into(),
                others: BTreeSet::new(),
                is_shared: true,
                can_link: true,
                disk: "scsi0".into(),
                disk_bytes: GIB,
                has_agent: true,
            }])),
            Operation::Inspect(id) => match self.vms.get(&id.0) {
                Some(vm) if self.offline.contains(&vm.node) => transient("no route to node"),
                Some(vm) if vm.is_hidden => Err(Failure::Hidden(id.clone())),
                Some(vm) => Ok(Answer::Inspected(Some(Box::new(Inspected {
                    seen: FakeHypervisor::seen(vm),
                    owner: vm.record().cloned(),
                    is_configured: vm.is_configured,
                })))),
                None => Ok(Answer::Inspected(None)),
            },
            Operation::Create(blueprint) => {
                let id = blueprint.id.0.clone();
                if self.vms.contains_key(&id) {
                    return Err(Failure::Exists(blueprint.id.clone()));
                }
                if self.offline.contains(&blueprint.node) {
                    return transient("no route to node");
                }
                if self.has_no_template {
                    return Err(no_template());
                }
                let is_same = |vm: &&Vm| vm.owner.as_ref() == Some(&blueprint.owner) && !vm.is_repeated;
                let same = self.vms.values().filter(is_same).count();
                if same > 0 && !self.is_repeated {
                    self.broken.push(format!("a second machine {id} was created for {:?}", blueprint.owner));
                }
                self.serial += 1;
                self.clones += 1;
                let vm = self.vm(&blueprint.name, &blueprint.node, Some(blueprint.owner.clone()));
                let disk = if blueprint.is_linked { 0 } else { blueprint.disk_bytes.unwrap_or(GIB) };
                self.vms.insert(id, Vm { memory: blueprint.memory, disk, ..vm });
                Ok(Answer::Done)
            }
            Operation::Configure(blueprint) => self.owned(&blueprint.id, &blueprint.owner).map(|vm| {
                vm.is_configured = true;
                Answer::Done
            }),
            Operation::Start(target) => {
                let (boot, mut work) = (random.between(2_000, 60_000), random.between(20_000, 400_000));
                // Some guests hang.
                if self.keeps_running || random.chance(20) {
                    work = u64::MAX / 2;
                }
                self.owned(&target.id, &target.owner).map(|vm| {
                    if vm.power == Power::Stopped {
                        vm.stale = (now + STATISTICS, Power::Stopped);
                    }
                    vm.power = Power::Running;
                    vm.started_at = if vm.started_at == 0 { now } else { vm.started_at };
                    (vm.boots_at, vm.ends_at) = (now + boot, now + boot + work);
                    Answer::Done
                })
            }
            Operation::Stop(target) => self.owned(&target.id, &target.owner).map(|vm| {
                vm.switch_off();
                Answer::Done
            }),
            Operation::RemoveSeed(target) => self.owned(&target.id, &target.owner).map(|_| Answer::Done),
            Operation::Deliver(delivery) => {
                self.owned(&delivery.target.id, &delivery.target.owner).map(|_| Answer::Delivered(true))
            }
            Operation::ListSeeds(_) => Ok(Answer::Seeds(SeedsFound::default())),
            Operation::DeleteSeed(_) | Operation::Disconnect => Ok(Answer::Done),
            Operation::Destroy(target) => {
                self.owned(&target.id, &target.owner)?;
                self.vms.remove(&target.id.0);
                Ok(Answer::Done)
            }
            Operation::Look(target) => {
                self.owned(&target.id, &target.owner).map(|vm| Answer::Looked(vm.halted.clone()))
            }
            Operation::Addresses(target) => self.owned(&target.id, &target.owner).map(|vm| {
                let is_up = vm.power == Power::Running && vm.boots_at <= now;
                let addresses = vec!["192.0.2.7".to_owned()];
                Answer::Addresses(is_up.then_some(GuestNetwork { addresses, mac: None }))
            }),
        }
    }

    /// A machine, if it belongs to whom it is said to.
    fn owned(&mut self, id: &MachineId, owner: &Owner) -> Result<&mut Vm, Failure> {
        let offline = &self.offline;
        match self.vms.get_mut(&id.0) {
            None => Err(Failure::Absent(id.clone())),
            Some(vm) if offline.contains(&vm.node) => Err(Failure::Transient("no route to node".into())),
            Some(vm) if vm.is_hidden => Err(Failure::Hidden(id.clone())),
            Some(vm) if vm.record() != Some(owner) => {
                Err(Failure::NotOurs { id: id.clone(), found: vm.record().cloned() })
            }
            Some(vm) => Ok(vm),
        }
    }

    fn list(&self, now: u64, random: &mut Random) -> Listed {
        let mut listed = Listed::default();
        for node in ["a", "b"] {
            let is_online = !self.offline.contains(node);
            let state = NodeState { is_online, cpus: 16, memory: 64 * GIB, memory_used: GIB };
            listed.nodes.insert(node.into(), state);
            let disks: u64 = self.vms.values().map(|vm| vm.disk).sum();
            let storage = StorageState { bytes: 1_000 * GIB, used: GIB + disks, is_shared: true };
            listed.storages.insert((node.into(), "ceph".into()), storage);
        }
        let hides = random.chance(50);
        for (id, vm) in self.vms.iter().filter(|(_, vm)| !vm.is_hidden) {
            let mut seen = FakeHypervisor::seen(vm);
            if now < vm.stale.0 {
                seen.power = vm.stale.1;
            }
            if self.is_nameless && self.foreign.contains_key(id) {
                (seen.name, seen.power) = ("".into(), Power::Unknown);
            }
            if self.offline.contains(&vm.node) {
                if hides {
                    continue;
                }
                seen.power = Power::Unknown;
            }
            listed.machines.insert(MachineId(id.clone()), seen);
        }
        listed
    }
}
