//! What tasks do when their time has come.

use crate::calls::config::Change;
use crate::control::Deed;
use crate::disks;
use crate::property::{self, Properties};
use crate::stand_in::{Happening, StandIn};
use crate::storage::Volume;
use crate::vm::{Vm, is_cdrom, volume_of};
use std::collections::BTreeMap;
use std::time::Duration;

/// The work of a task.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Work {
    Clone(Box<CloneWork>),
    Start(u32),
    Stop(u32),
    /// A shutdown that succeeds, is forced, or runs into its time limit.
    Shutdown {
        vmid: u32,
        succeeds: bool,
    },
    Destroy {
        vmid: u32,
        unreferenced: bool,
    },
    Configure(u32, Box<Change>),
    Resize {
        vmid: u32,
        disk: String,
        bytes: u64,
    },
    Upload {
        storage: String,
        node: String,
        volume: String,
        data: Vec<u8>,
    },
    DeleteVolume {
        storage: String,
        node: String,
        volume: String,
    },
}

impl Work {
    /// The VM whose lock it holds.
    pub(crate) fn locks(&self) -> Option<u32> {
        match self {
            Work::Start(vmid) | Work::Stop(vmid) | Work::Shutdown { vmid, .. } | Work::Destroy { vmid, .. } => {
                Some(*vmid)
            }
            Work::Configure(vmid, _) | Work::Resize { vmid, .. } => Some(*vmid),
            Work::Clone(_) | Work::Upload { .. } | Work::DeleteVolume { .. } => None,
        }
    }
}

/// A clone.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CloneWork {
    pub(crate) source: u32,
    pub(crate) node: String,
    pub(crate) new: u32,
    pub(crate) target: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) pool: Option<String>,
    pub(crate) is_full: bool,
    pub(crate) storage: Option<String>,
    /// The storage of the source, of which only some clones run at a time.
    pub(crate) source_storage: String,
    pub(crate) takes: Duration,
    pub(crate) stage: Stage,
}

/// How far a clone is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It waits for a lock; nothing of the new VM exists.
    Waiting,
    /// The new configuration is only `lock: clone`.
    Temporary,
    /// The new configuration is complete, and locked.
    Named,
}

impl StandIn {
    /// Does the work, or fails as planned; returns the exit status, or nothing if the task goes on.
    pub(crate) fn perform(&mut self, upid: &str, work: Work, planned: Option<String>, now: Duration) -> Option<String> {
        if let Work::Clone(clone) = work {
            return self.perform_clone(upid, clone, planned, now);
        }
        let outcome = match planned {
            Some(text) => Err(text),
            None => self.perform_plain(upid, work, now),
        };
        Some(outcome.err().unwrap_or_else(|| "OK".to_owned()))
    }

    fn perform_plain(&mut self, upid: &str, work: Work, now: Duration) -> Result<(), String> {
        match work {
            Work::Clone(_) => Ok(()),
            Work::Start(vmid) => self.start(upid, vmid, now),
            Work::Stop(vmid) | Work::Shutdown { vmid, succeeds: true } => {
                let vm = self.vms.get_mut(&vmid).ok_or_else(|| format!("no such VM ('{vmid}')"))?;
                if vm.run.take().is_some() {
                    self.record(vmid, Deed::Stopped);
                }
                Ok(())
            }
            Work::Shutdown { .. } => Err("VM quit/powerdown failed - got timeout".to_owned()),
            Work::Destroy { vmid, unreferenced } => self.destroy(vmid, unreferenced),
            Work::Configure(vmid, change) => self.apply(vmid, &change),
            Work::Resize { vmid, disk, bytes } => self.resize(vmid, &disk, bytes),
            Work::Upload { storage, node, volume, data } => {
                let created = self.clock(now);
                let found =
                    self.storages.get_mut(&storage).ok_or_else(|| format!("storage '{storage}' does not exist"))?;
                let bytes = data.len() as u64;
                found.check_space(&node, &volume, bytes).map_err(|_| "No space left on device".to_owned())?;
                let (content, format) = ("iso", "iso");
                let new = Volume { content, format, bytes, allocated: bytes, vmid: None, parent: None, created, data };
                found.volumes.insert((found.place(&node), volume), new);
                Ok(())
            }
            Work::DeleteVolume { storage, node, volume } => {
                let found =
                    self.storages.get_mut(&storage).ok_or_else(|| format!("storage '{storage}' does not exist"))?;
                let place = found.place(&node);
                let removed = found.volumes.remove(&(place, volume.clone()));
                removed.map(|_| ()).ok_or_else(|| format!("volume '{volume}' does not exist"))
            }
        }
    }

    fn start(&mut self, upid: &str, vmid: u32, now: Duration) -> Result<(), String> {
        if !self.is_quorate {
            return Err("cluster not ready - no quorum?".to_owned());
        }
        let vm = self.vms.get(&vmid).ok_or_else(|| format!("no such VM ('{vmid}')"))?;
        if let Some(lock) = &vm.lock {
            return Err(format!("VM is locked ({lock})"));
        }
        if vm.run.is_some() {
            return Err(format!("VM {vmid} already running"));
        }
        for (_, drive) in vm.drives() {
            if let Some(volume) = volume_of(&drive)
                && !self.has_volume(&vm.node, volume)
            {
                return Err(format!("volume '{volume}' does not exist"));
            }
        }
        if let Some(node) = self.nodes.get(&vm.node).filter(|node| vm.cpus() > u64::from(node.cpus)) {
            return Err(format!("MAX {} vcpus allowed per VM on this node", node.cpus));
        }
        if let Some(cause) = self.cause_of_failed_start(vm) {
            if let Some(task) = self.tasks.get_mut(upid) {
                task.log.extend(cause);
            }
            return Err("start failed: QEMU exited with code 1".to_owned());
        }
        self.switch_on(vmid, now);
        Ok(())
    }

    /// What a start that fails prints.
    fn cause_of_failed_start(&self, vm: &Vm) -> Option<Vec<String>> {
        let node = self.nodes.get(&vm.node)?;
        for (key, value) in vm.config.iter().filter(|(key, _)| crate::config::is_key("net[n]", key)) {
            let net = Properties::parse(value);
            if let Some(bridge) =
                net.get("bridge").filter(|bridge| !node.bridges.contains(*bridge) && !self.vnets.contains_key(*bridge))
            {
                return Some(vec![
                    format!("bridge '{bridge}' does not exist"),
                    format!(
                        "kvm: -netdev type=tap,id={key},script=/usr/libexec/qemu-server/pve-bridge: network script /usr/libexec/qemu-server/pve-bridge failed with status 512"
                    ),
                ]);
            }
        }
        let in_use: u64 =
            self.vms.values().filter(|other| other.node == vm.node && other.run.is_some()).map(Vm::memory).sum();
        (in_use + vm.memory() > node.memory)
            .then(|| vec!["kvm: cannot set up guest memory 'pc.ram': Cannot allocate memory".to_owned()])
    }

    pub(crate) fn destroy(&mut self, vmid: u32, unreferenced: bool) -> Result<(), String> {
        let vm = self.vms.get(&vmid).ok_or_else(|| format!("no such VM ('{vmid}')"))?;
        if vm.run.is_some() {
            return Err(format!("VM {vmid} is running - destroy failed"));
        }
        // Only templates have base volumes.
        for (_, drive) in vm.drives().filter(|_| vm.is_template) {
            let Some(volume) = volume_of(&drive) else { continue };
            let is_base = |other: &Volume| other.parent.as_deref() == Some(volume);
            if self.storages.values().any(|storage| storage.volumes.values().any(is_base)) {
                return Err(format!("base volume '{volume}' is still in use by linked cloned"));
            }
        }
        self.discard(vmid, unreferenced);
        Ok(())
    }

    /// Removes a VM with its disks, permissions and membership.
    pub(crate) fn discard(&mut self, vmid: u32, unreferenced: bool) {
        self.record(vmid, Deed::Destroyed);
        let Some(vm) = self.vms.remove(&vmid) else { return };
        let mut referenced: Vec<String> =
            vm.drives().filter_map(|(_, drive)| Some(volume_of(&drive)?.to_owned())).collect();
        referenced
            .extend(vm.config.iter().filter(|(key, _)| key.starts_with("unused")).map(|(_, value)| value.clone()));
        for storage in self.storages.values_mut() {
            storage.volumes.retain(|(_, id), volume| {
                let is_its = volume.vmid == Some(vmid);
                !(is_its && (unreferenced || referenced.contains(id)))
            });
        }
        for pool in self.pools.values_mut() {
            pool.vms.remove(&vmid);
        }
        self.acl.forget(&format!("/vms/{vmid}"));
    }

    fn resize(&mut self, vmid: u32, disk: &str, bytes: u64) -> Result<(), String> {
        let vm = self.vms.get_mut(&vmid).ok_or_else(|| format!("no such VM ('{vmid}')"))?;
        let value = vm.config.get(disk).ok_or_else(|| format!("disk '{disk}' does not exist"))?;
        let mut drive = Properties::parse(value);
        let volume = volume_of(&drive).unwrap_or_default().to_owned();
        let storage = volume.split(':').next().unwrap_or_default();
        if let Some(storage) = self.storages.get_mut(storage) {
            let key = (storage.place(&vm.node), volume.clone());
            let old = storage.volumes.get(&key).map_or(0, |volume| volume.bytes);
            storage.check_space(&vm.node, &volume, bytes.saturating_sub(old))?;
            if let Some(volume) = storage.volumes.get_mut(&key) {
                volume.bytes = bytes;
            }
        }
        drive.set("size", &property::size(bytes));
        vm.config.insert(disk.to_owned(), drive.text());
        self.record(vmid, Deed::Configured);
        Ok(())
    }

    /// Whether a clone from this storage may begin.
    pub(crate) fn has_free_clone(&self, storage: &str) -> bool {
        let Some(most) = self.max_clones else { return true };
        let is_active = |clone: &CloneWork| clone.source_storage == storage && clone.stage != Stage::Waiting;
        let active = self.running_tasks().filter(|task| match &task.work {
            Some(Work::Clone(clone)) => is_active(clone),
            _ => false,
        });
        active.count() < most
    }

    /// Creates the temporary configuration of a clone.
    pub(crate) fn begin_clone(&mut self, clone: &mut CloneWork) -> Result<(), String> {
        if let Some(found) = self.vms.get(&clone.new) {
            return Err(match found.node == clone.node {
                true => format!("unable to create VM {}: config file already exists", clone.new),
                false => format!("VM {} already exists on node '{}'", clone.new, found.node),
            });
        }
        let guest = self.vms.get(&clone.source).map_or_else(|| self.default_guest(), |vm| vm.guest.clone());
        let vm = Vm {
            birth: self.new_birth(),
            node: clone.node.clone(),
            config: BTreeMap::new(),
            pending: BTreeMap::new(),
            is_template: false,
            lock: Some("clone".to_owned()),
            run: None,
            guest,
        };
        self.vms.insert(clone.new, vm);
        self.record(clone.new, Deed::Cloned { from: clone.source });
        clone.stage = Stage::Temporary;
        Ok(())
    }

    fn perform_clone(
        &mut self,
        upid: &str,
        mut clone: Box<CloneWork>,
        planned: Option<String>,
        now: Duration,
    ) -> Option<String> {
        let outcome = match clone.stage {
            Stage::Waiting => {
                return Some(format!(
                    "can't lock file '/var/lock/qemu-server/lock-{}.conf' - got timeout",
                    clone.source
                ));
            }
            Stage::Temporary => match disks::copy(self, &clone, now) {
                Ok(()) => {
                    clone.stage = Stage::Named;
                    let due = now + clone.takes / 2;
                    self.go_on(upid, Work::Clone(clone), planned, due);
                    return None;
                }
                Err(text) => Err(text),
            },
            Stage::Named => planned.map_or(Ok(()), Err),
        };
        let exit = match outcome {
            Ok(()) => {
                self.complete_clone(&clone);
                "OK".to_owned()
            }
            Err(text) => {
                self.undo(&Work::Clone(clone.clone()));
                format!("clone failed: {text}")
            }
        };
        self.begin_waiting_clone(&clone.source_storage, now);
        Some(exit)
    }

    fn complete_clone(&mut self, clone: &CloneWork) {
        if let Some(vm) = self.vms.get_mut(&clone.new) {
            vm.lock = None;
            if let Some(target) = &clone.target {
                vm.node.clone_from(target);
            }
        }
        if let Some(pool) = clone.pool.as_ref().and_then(|pool| self.pools.get_mut(pool)) {
            pool.vms.insert(clone.new);
        }
    }

    /// The lock is free: the clone that waits longest begins.
    fn begin_waiting_clone(&mut self, storage: &str, now: Duration) {
        let waits = |task: &crate::Task| match &task.work {
            Some(Work::Clone(clone)) => clone.stage == Stage::Waiting && clone.source_storage == storage,
            _ => false,
        };
        let next = self.running_tasks().filter(|task| waits(task)).min_by_key(|task| (task.started, task.pid));
        let Some(upid) = next.map(|task| task.upid.clone()) else { return };
        let Some(task) = self.tasks.get_mut(&upid) else { return };
        let (Some(Work::Clone(mut clone)), planned) = (task.work.take(), task.planned_failure.take()) else { return };
        match self.begin_clone(&mut clone) {
            Ok(()) => {
                let due = now + clone.takes / 2;
                self.go_on(&upid, Work::Clone(clone), planned, due);
            }
            Err(text) => {
                // It fails at once, and the next one begins.
                clone.stage = Stage::Named;
                clone.new = 0;
                self.go_on(&upid, Work::Clone(clone), Some(text), now);
            }
        }
    }

    fn go_on(&mut self, upid: &str, work: Work, planned: Option<String>, due: Duration) {
        if let Some(task) = self.tasks.get_mut(upid) {
            task.work = Some(work);
            task.planned_failure = planned;
            task.due = Some(due);
            self.schedule(due, Happening::TaskDue(upid.to_owned()));
        }
    }

    /// Removes what an unfinished clone left.
    pub(crate) fn undo(&mut self, work: &Work) {
        if let Work::Clone(clone) = work
            && clone.stage != Stage::Waiting
            && self.vms.get(&clone.new).is_some_and(|vm| vm.lock.as_deref() == Some("clone"))
        {
            self.discard(clone.new, true);
        }
    }

    pub(crate) fn has_volume(&self, node: &str, volume: &str) -> bool {
        let storage = volume.split(':').next().and_then(|name| self.storages.get(name));
        storage.is_some_and(|storage| storage.volume(node, volume).is_some())
    }

    /// The storages of the disks of a VM.
    pub(crate) fn storages_of(vm: &Vm) -> Vec<String> {
        let disks = vm.drives().filter(|(_, drive)| !is_cdrom(drive));
        let name = |drive: &Properties| Some(volume_of(drive)?.split(':').next()?.to_owned());
        disks.filter_map(|(_, drive)| name(&drive)).collect()
    }
}
