//! What people, guests and the world do to the hypervisor and its claims, once a second.

use super::super::api_server::{Id, id};
use super::super::hypervisor::Vm;
use super::{Action, IDS, Site, World};
use crate::hypervisor::Owner;
use serde_json::json;

impl World {
    /// What people, guests and the world do, once a second.
    pub(super) fn people(&mut self) {
        let now = self.wall();
        self.hypervisor.pass_time(self.now);
        self.after(1_000, 1_000, Action::People);
        self.check_ends();
        if self.is_calm {
            return;
        }
        for site in 0..self.sites.len() {
            let name = format!("c-{}", self.claims);
            if self.random.chance(2) && self.claims < 16 {
                self.claims += 1;
                let claim = json!({
                    "apiVersion": "hyperfleet.io/v1alpha1", "kind": "MachineClaim", "metadata": {"name": name},
                    "spec": {"templateRef": {"name": "small"}},
                });
                self.sites[site].api.create(claim, &format!("s{site}"), now);
            }
            let claims: Vec<_> = self.sites[site].api.all("MachineClaim").into_iter().collect();
            if claims.is_empty() {
                continue;
            }
            let (_, name) = &claims[usize::try_from(self.random.below(claims.len() as u64)).unwrap()];
            let claim = id("MachineClaim", name);
            if self.fails(2) {
                self.sites[site].api.touch(&claim);
            }
            if self.random.chance(1) && self.faults.is_on {
                self.sites[site].api.delete(&claim, now);
            }
            if self.fails(5) {
                self.give_up(site, &claim);
            }
            if self.fails(1) && self.random.chance(60) {
                self.crash(site);
            }
        }
        self.trouble();
        self.machines_change();
        self.check_now();
    }

    /// A person deletes a claim without its machine, which they delete by hand unless the sweep does it.
    pub(super) fn give_up(&mut self, site: usize, claim: &Id) {
        let now = self.now;
        let Site { api, operator, .. } = &self.sites[site];
        let Some(object) = api.objects.get(claim).filter(|object| object["metadata"]["deletionTimestamp"].is_string())
        else {
            return;
        };
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let is_of = |vm: &Vm| vm.owner.as_ref().is_some_and(|owner| owner.uid == uid && owner.operator == *operator);
        let found = self.hypervisor.vms.iter().find(|(_, vm)| is_of(vm)).map(|(id, vm)| (id.clone(), vm.started_at));
        // A request to create it is not on its way any more.
        let Some((id, _)) = found.filter(|(_, started)| *started > 0 && started + 60_000 < now) else { return };
        if !self.faults.sweeps {
            self.hypervisor.vms.remove(&id);
        }
        self.note(format!("{now} machine {id} of {uid} is given up"));
        self.forced.insert(uid);
        self.sites[site].api.annotate(claim, api::fleet::FORCE_DELETE, Some("true"));
    }

    /// Somebody overwrites the notes of a machine, or takes the right to see it, and mends that later.
    pub(super) fn machines_change(&mut self) {
        let now = self.now;
        let foreign = &self.hypervisor.foreign;
        let ours = self.hypervisor.vms.iter().filter(|(id, vm)| vm.is_configured && !foreign.contains_key(*id));
        let ours: Vec<String> = ours.map(|(id, _)| id.clone()).collect();
        for (percent, hides) in [(1, false), (1, true)] {
            if !self.fails(percent) || ours.is_empty() {
                continue;
            }
            let id = ours[usize::try_from(self.random.below(ours.len() as u64)).unwrap()].clone();
            let Some(vm) = self.hypervisor.vms.get_mut(&id) else { continue };
            match hides {
                // One that was only just made may not be recorded yet.
                true => vm.is_hidden |= vm.started_at > 0 && vm.started_at + 60_000 < now,
                false => vm.has_record = false,
            }
            self.note(format!("{now} machine {id}: hidden or without its record ({hides})"));
        }
        for id in ours {
            let (seen, restored) = (self.random.chance(10), self.random.chance(2));
            let Some(vm) = self.hypervisor.vms.get_mut(&id) else { continue };
            vm.is_hidden &= !seen;
            vm.has_record |= restored;
        }
    }

    pub(super) fn trouble(&mut self) {
        if self.fails(3) {
            let id = self.random.between(IDS.0, IDS.1).to_string();
            let other = Owner { operator: "somebody".into(), claim: "x/y".into(), uid: "s0-4".into() };
            let owner = self.random.chance(40).then_some(other);
            self.hypervisor.foreigner_creates(id, owner);
        }
        if self.fails(3)
            && let Some(id) = self.hypervisor.foreign.keys().next().cloned()
        {
            self.hypervisor.foreign.remove(&id);
            self.hypervisor.vms.remove(&id);
        }
        if self.fails(1) && self.random.chance(20) {
            // Somebody deletes a machine of ours by hand.
            let ours = self.hypervisor.vms.iter().find(|(id, _)| !self.hypervisor.foreign.contains_key(*id));
            if let Some(id) = ours.map(|(id, _)| id.clone()) {
                self.hypervisor.vms.remove(&id);
            }
        }
        if self.fails(1) {
            let vm = self.hypervisor.vms.iter_mut().find(|(id, _)| !self.hypervisor.foreign.contains_key(*id));
            if let Some((_, vm)) = vm {
                vm.switch_off();
            }
        }
        if self.fails(1) {
            self.hypervisor.has_no_template = true;
        } else if self.random.chance(5) {
            self.hypervisor.has_no_template = false;
        }
        if self.fails(1) {
            self.hypervisor.is_down = !self.hypervisor.is_down;
        } else if self.hypervisor.is_down && self.random.chance(10) {
            self.hypervisor.is_down = false;
        }
        if self.fails(1) && self.random.chance(40) {
            let by = i64::try_from(self.random.between(60_000, 100_000_000)).unwrap();
            self.ahead += if self.random.chance(50) { by } else { -by };
            self.note(format!("{} the clock is set to {}", self.now, self.wall()));
        }
        if self.fails(1) {
            self.hypervisor.offline.insert("b".into());
        } else if self.random.chance(5) {
            self.hypervisor.offline.clear();
        }
    }
}
