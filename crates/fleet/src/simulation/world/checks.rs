//! What must hold at every moment of the simulation, and at its end.

use super::super::api_server::id;
use super::super::wording::shown;
use super::{LIFETIME, World};
use crate::hypervisor::{Answer, Failure, Operation, Owner, Power};
use serde_json::json;
use std::collections::BTreeMap;

/// A machine that has stopped is gone so soon, and one that is too old is ended, in milliseconds.
const GONE_WITHIN: u64 = 300_000;
const ENDED_WITHIN: u64 = 120_000;

impl World {
    /// Remembers which operator learns that a machine is not its.
    pub(super) fn tell(&mut self, site: usize, epoch: u64, operation: &Operation, answer: &Result<Answer, Failure>) {
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
    pub(super) fn check_request(&mut self, site: usize, epoch: u64, operation: &Operation) {
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
    pub(super) fn check_ends(&mut self) {
        let now = self.now;
        for (id, vm) in &self.hypervisor.vms {
            if vm.is_hidden || !vm.has_record || self.hypervisor.offline.contains(&vm.node) {
                let until = self.troubles.entry(id.clone()).or_default();
                *until = now.max(*until);
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

    /// A claim that is gone has no machine any more.
    pub(super) fn check_gone(&mut self, site: usize, before: usize) {
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

    pub(super) fn check_now(&mut self) {
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

    pub(super) fn check_foreign(&mut self) {
        for (id, serial) in &self.hypervisor.foreign {
            if self.hypervisor.vms.get(id).is_none_or(|vm| vm.serial != *serial || vm.power != Power::Stopped) {
                self.broken.push(format!("the foreign machine {id} was touched"));
            }
        }
    }

    /// Every promise that was broken.
    pub(in crate::simulation) fn broken(&mut self) -> Vec<String> {
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
