//! What tests and demos do to the cluster behind its API, and what they may look at.

use crate::access::{Token, User};
use crate::fault::Fault;
use crate::node::Node;
use crate::request::Credentials;
use crate::stand_in::{Happening, StandIn};
use crate::storage::Storage;
use crate::task::Task;
use crate::vm::{Guest, Vm, is_cdrom, volume_of};
use std::collections::BTreeMap;
use std::time::Duration;

/// Something that happened to a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// A clone was made from this VM.
    Cloned {
        /// The source.
        from: u32,
    },
    /// It was switched on.
    Started,
    /// It was switched off by a request.
    Stopped,
    /// It switched itself off.
    PoweredOff,
    /// Its configuration was changed.
    Configured,
    /// It was destroyed.
    Destroyed,
}

/// Everything that happened to VMs, in its order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// When, the id, the birth (see [`Vm::birth`]) and what.
    pub deeds: Vec<(Duration, u32, u64, Deed)>,
}

impl StandIn {
    /// The VMs and templates.
    pub fn vms(&self) -> &BTreeMap<u32, Vm> {
        &self.vms
    }

    /// One VM.
    pub fn vm(&self, vmid: u32) -> Option<&Vm> {
        self.vms.get(&vmid)
    }

    /// One VM, to change it behind the API.
    pub fn vm_mut(&mut self, vmid: u32) -> Option<&mut Vm> {
        self.vms.get_mut(&vmid)
    }

    /// What is in the drive of a VM: the content of an image that was uploaded.
    pub fn medium(&self, vmid: u32) -> Option<&[u8]> {
        let vm = self.vms.get(&vmid)?;
        vm.drives().filter(|(_, drive)| is_cdrom(drive)).find_map(|(_, drive)| {
            let id = volume_of(&drive)?;
            let storage = self.storages.get(id.split_once(':')?.0)?;
            storage.volume(&vm.node, id).map(|volume| volume.data.as_slice())
        })
    }

    /// How the guest of a VM behaves; that of a template is inherited by its clones.
    pub fn guest_mut(&mut self, vmid: u32) -> Option<&mut Guest> {
        self.vms.get_mut(&vmid).map(|vm| &mut vm.guest)
    }

    /// The storages.
    pub fn storages(&self) -> &BTreeMap<String, Storage> {
        &self.storages
    }

    /// The nodes.
    pub fn nodes(&self) -> &BTreeMap<String, Node> {
        &self.nodes
    }

    /// All tasks by their id, also those that ended.
    pub fn tasks(&self) -> &BTreeMap<String, Task> {
        &self.tasks
    }

    /// Everything that happened to VMs.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// The members of a pool.
    pub fn pool_members(&self, pool: &str) -> Vec<u32> {
        self.pools.get(pool).map(|pool| pool.vms.iter().copied().collect()).unwrap_or_default()
    }

    /// A VM that somebody else made, stopped and without disks.
    pub fn add_foreign_vm(&mut self, vmid: u32, node: &str, name: &str) {
        let mut config =
            BTreeMap::from([("name".to_owned(), name.to_owned()), ("memory".to_owned(), "1024".to_owned())]);
        config.insert("cores".to_owned(), "1".to_owned());
        let vm = Vm {
            birth: self.new_birth(),
            node: node.to_owned(),
            config,
            pending: BTreeMap::new(),
            is_template: false,
            lock: None,
            run: None,
            guest: self.default_guest(),
        };
        self.vms.insert(vmid, vm);
    }

    /// Removes a VM or template behind the API, as an administrator does.
    pub fn remove_vm(&mut self, vmid: u32) {
        self.discard(vmid, true);
    }

    /// Switches a VM off from the inside.
    pub fn power_off(&mut self, vmid: u32) {
        if let Some(run) = self.vms.get(&vmid).and_then(|vm| vm.run) {
            self.guest_powers_off(vmid, run.since);
        }
    }

    /// QEMU halts a VM that runs, or goes on with it: its process stays, and its guest stands still.
    pub fn halt(&mut self, vmid: u32, state: Option<&'static str>) {
        if let Some(run) = self.vms.get_mut(&vmid).and_then(|vm| vm.run.as_mut()) {
            run.halted = state;
        }
    }

    /// Switches a VM on behind the API.
    pub fn power_on(&mut self, vmid: u32) {
        self.switch_on(vmid, self.now());
    }

    pub(crate) fn guest_powers_off(&mut self, vmid: u32, since: Duration) {
        let vm = self.vms.get_mut(&vmid);
        if let Some(vm) = vm.filter(|vm| vm.run.is_some_and(|run| run.since == since)) {
            vm.run = None;
            self.record(vmid, Deed::PoweredOff);
        }
    }

    pub(crate) fn switch_on(&mut self, vmid: u32, now: Duration) {
        self.next_pid += 3;
        let pid = self.next_pid;
        let Some(vm) = self.vms.get_mut(&vmid) else { return };
        for (key, value) in std::mem::take(&mut vm.pending) {
            match value {
                Some(value) => vm.config.insert(key, value),
                None => vm.config.remove(&key),
            };
        }
        vm.run = Some(crate::Run { since: now, pid, halted: None });
        if let Some(time) = vm.guest.powers_off_after {
            self.schedule(now + time, Happening::PowerOff { vmid, since: now });
        }
        self.record(vmid, Deed::Started);
    }

    pub(crate) fn record(&mut self, vmid: u32, deed: Deed) {
        let birth = self.vms.get(&vmid).map_or(0, |vm| vm.birth);
        self.history.deeds.push((self.now(), vmid, birth, deed));
    }

    pub(crate) fn new_birth(&mut self) -> u64 {
        self.next_birth += 1;
        self.next_birth
    }

    pub(crate) fn default_guest(&self) -> Guest {
        Guest {
            has_agent: true,
            is_agent_old: false,
            boot: self.timing.boot,
            powers_off_after: None,
            ignores_shutdown: false,
            files: BTreeMap::new(),
            commands: Vec::new(),
            outcomes: Vec::new(),
            processes: BTreeMap::new(),
        }
    }

    /// Adds a fault.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.add(fault);
    }

    /// Forgets all faults that did not happen yet.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// The faults that did not happen yet.
    pub fn pending_faults(&self) -> &[Fault] {
        self.faults.pending()
    }

    /// How many faults happened.
    pub fn fired_faults(&self) -> u64 {
        self.faults.fired
    }

    /// Whether a node answers; its VMs go on. Requests for a node that does not are answered with 595, and if it is the first node,
    /// whose API this is, not at all.
    pub fn set_online(&mut self, node: &str, is_online: bool) {
        if let Some(node) = self.nodes.get_mut(node) {
            node.is_online = is_online;
        }
    }

    /// Whether the cluster has a quorum; without one nothing can be changed.
    pub fn set_quorate(&mut self, is_quorate: bool) {
        self.is_quorate = is_quorate;
    }

    /// Whether a storage is full.
    pub fn set_full(&mut self, storage: &str, is_full: bool) {
        if let Some(storage) = self.storages.get_mut(storage) {
            storage.is_full = is_full;
        }
    }

    /// How far the clock of the server is ahead, in seconds.
    pub fn set_clock_ahead(&mut self, seconds: i64) {
        self.skew = seconds;
    }

    /// Ends a task that never ends, as somebody who kills its process.
    pub fn kill_task(&mut self, upid: &str) {
        self.interrupt(upid, self.now());
    }

    /// Gives privileges to a user, or to a token as `user@realm!id`. A token with separated privileges needs them twice.
    pub fn grant(&mut self, subject: &str, path: &str, privileges: &[&str]) {
        self.acl.grant(subject, path, privileges);
    }

    /// Takes a privilege away from a user or a token, on all paths.
    pub fn revoke(&mut self, subject: &str, privilege: &str) {
        self.acl.revoke(subject, privilege);
    }

    /// Adds a user, or changes the password of one.
    pub fn set_password(&mut self, user: &str, password: &str) {
        let known = self.users.entry(user.to_owned());
        known.or_insert_with(|| User { password: String::new(), tokens: BTreeMap::new() }).password =
            password.to_owned();
    }

    /// Adds a token of a user, or changes the secret of one.
    pub fn set_token(&mut self, user: &str, id: &str, secret: &str, is_separated: bool) {
        let known = self.users.entry(user.to_owned());
        let known = known.or_insert_with(|| User { password: String::new(), tokens: BTreeMap::new() });
        known.tokens.insert(id.to_owned(), Token { secret: secret.to_owned(), is_separated });
    }

    /// Removes a token.
    pub fn remove_token(&mut self, user: &str, id: &str) {
        if let Some(user) = self.users.get_mut(user) {
            user.tokens.remove(id);
        }
    }

    /// Adds a pool.
    pub fn add_pool(&mut self, pool: &str) {
        self.pools.entry(pool.to_owned()).or_default();
    }

    /// Adds a VNet, which is a bridge of all nodes.
    pub fn add_vnet(&mut self, vnet: &str, zone: &str) {
        self.vnets.insert(vnet.to_owned(), zone.to_owned());
    }

    /// Every ticket of before has expired; passwords and tokens stay.
    pub fn expire_tickets(&mut self) {
        self.secret.push('.');
    }

    /// Logs in: the credentials of a ticket.
    pub fn ticket(&self, user: &str, password: &str) -> Option<Credentials> {
        let ticket = self.log_in(user, password, self.now())?;
        Some(Credentials::Ticket { ticket, csrf: Some(self.csrf(user, self.now())) })
    }
}
