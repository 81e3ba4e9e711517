//! Machines that no claim refers to: whose they are, which are adopted, and which are orphans.

use super::asking::What;
use super::clusters::Hypervisor;
use super::{Core, Due};
use crate::hypervisor::{Inspected, MachineId, Operation, Owner, Power, Target};
use crate::ids;
use crate::notice::Notice;
use crate::object::Name;
use crate::orphans::Claimed;
use api::fleet::OrphanPolicy;
use change::Moment;
use std::collections::BTreeSet;
use std::time::Duration;

/// So many machines are inspected at a time.
const AT_A_TIME: usize = 8;
/// So long all claims wait for machines that were not inspected yet. After that, they only keep off their nodes, which may not answer for hours.
const PATIENCE: Duration = Duration::from_secs(60);

impl Hypervisor {
    /// Whether machines that may be a claim's were not inspected yet.
    pub(super) fn is_surveying(&self) -> bool {
        self.listed.is_none() || !self.to_survey.is_empty() || !self.surveying.is_empty()
    }

    /// The nodes with machines that may be that of a claim and that cannot be inspected; nothing while they only were not inspected yet, or if one has
    /// the name of the claim. One that is still being made has none, and of others the list may not say it.
    pub(super) fn doubtful_nodes(&self, host_name: &str, now: Moment) -> Option<BTreeSet<String>> {
        let listed = self.listed.as_ref()?;
        let mut nodes = BTreeSet::new();
        for id in self.to_survey.iter().chain(&self.surveying) {
            let Some(seen) = listed.machines.get(id) else { continue };
            let is_nameless = seen.name.is_empty() || seen.lock.is_some() || seen.power == Power::Unknown;
            let since = self.unseen_since.get(id).copied().unwrap_or(now);
            match *seen.name == *host_name {
                true => return None,
                false if is_nameless && now < since.after(PATIENCE) => return None,
                false if is_nameless => drop(nodes.insert(seen.node.to_string())),
                false => {}
            }
        }
        Some(nodes)
    }

    /// The next machine to inspect: not more than half of those at a time are on one node, which may not answer.
    fn next_to_survey(&mut self) -> Option<MachineId> {
        let machines = self.listed.as_ref().map(|listed| &listed.machines)?;
        let node_of = |id: &MachineId| machines.get(id).map(|seen| &*seen.node);
        let on = |node: Option<&str>| self.surveying.iter().filter(|id| node_of(id) == node).count();
        let id = self.to_survey.iter().find(|id| on(node_of(id)) < AT_A_TIME / 2)?.clone();
        self.to_survey.take(&id)
    }

    /// The machine whose record names this claim, and its node.
    pub(super) fn machine_of(&self, uid: &str) -> Option<(MachineId, String)> {
        let is_of = |owner: &Option<Owner>| owner.as_ref().is_some_and(|owner| owner.uid == uid);
        let (id, _) = self.surveyed.iter().find(|(id, (_, owner))| is_of(owner) && !self.destroying.contains(id))?;
        let seen = self.listed.as_ref()?.machines.get(id)?;
        Some((id.clone(), seen.node.to_string()))
    }
}

impl Core {
    /// Looks for machines that no claim refers to in the last list.
    pub(super) fn survey(&mut self, name: &Name) {
        let Some(hypervisor) = self.clusters.get_mut(name).filter(|found| !found.is_moved()) else { return };
        let Some(listed) = &hypervisor.listed else { return };
        let range = hypervisor.entry.object.spec.vm_ids;
        let pool = &hypervisor.entry.object.spec.resource_pool;
        let machines = &listed.machines;
        hypervisor.surveyed.retain(|id, (known, _)| machines.get(id).is_some_and(|seen| seen.name == *known));
        hypervisor.marks.retain(|id| machines.contains_key(id));
        hypervisor.unrecorded.retain(|id| machines.contains_key(id));
        hypervisor.to_survey.retain(|id| machines.contains_key(id));
        for (id, seen) in machines.iter().filter(|(_, seen)| !seen.is_template) {
            let may_be_ours = ids::contains(range, id)
                || seen.is_tagged
                || (pool.is_some() && seen.pool.as_deref() == pool.as_deref());
            // A record that is missing may be restored.
            let is_known = hypervisor.reserved.contains_key(id)
                || (hypervisor.surveyed.contains_key(id) && !hypervisor.unrecorded.contains(id))
                || hypervisor.surveying.contains(id);
            if may_be_ours && !is_known {
                hypervisor.to_survey.insert(id.clone());
                hypervisor.unseen_since.entry(id.clone()).or_insert(self.now.monotonic);
            }
        }
        let Hypervisor { unseen_since, to_survey, surveying, .. } = hypervisor;
        unseen_since.retain(|id, _| to_survey.contains(id) || surveying.contains(id));
        hypervisor.undestroyed.clear();
        self.inspect_next(name);
        self.sweep(name);
    }

    fn inspect_next(&mut self, name: &Name) {
        while let Some(hypervisor) = self.clusters.get_mut(name) {
            if hypervisor.surveying.len() >= AT_A_TIME {
                return;
            }
            let Some(id) = hypervisor.next_to_survey() else { return };
            if hypervisor.reserved.contains_key(&id) {
                continue;
            }
            hypervisor.surveying.insert(id.clone());
            self.ask(name, Operation::Inspect(id.clone()), What::Survey(id));
        }
    }

    /// Takes whose a machine is.
    pub(super) fn surveyed(&mut self, name: &Name, id: &MachineId, found: Option<Option<Box<Inspected>>>) {
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        hypervisor.surveying.remove(id);
        match found {
            Some(Some(inspected)) if !hypervisor.reserved.contains_key(id) => {
                let operator = &self.config.operator;
                let Inspected { seen, owner, .. } = &*inspected;
                let pool = hypervisor.entry.object.spec.resource_pool.as_deref();
                let is_of_fleet = seen.is_tagged || (pool.is_some() && seen.pool.as_deref() == pool);
                let is_lost = owner.is_none() && is_of_fleet && !seen.is_template;
                let is_news = match is_lost {
                    true => hypervisor.unrecorded.insert(id.clone()),
                    false => hypervisor.unrecorded.remove(id),
                };
                let machine_name = seen.name.to_string();
                let owner = inspected.owner.filter(|owner| owner.operator == *operator);
                let uid = owner.as_ref().map(|owner| owner.uid.clone());
                hypervisor.surveyed.insert(id.clone(), (inspected.seen.name, owner));
                if let Some(claim) = uid.and_then(|uid| self.uids.get(&uid)) {
                    self.due.insert(Due::Claim(claim.clone()));
                }
                if is_news {
                    self.due.insert(Due::Cluster(name.clone()));
                }
                if is_news && is_lost {
                    let (cluster, machine) = (name.clone(), id.clone());
                    self.notify(Notice::Unrecorded { cluster, machine, name: machine_name });
                }
            }
            // It is gone, or a claim refers to it now.
            Some(_) => {}
            // Nobody knows: the next list brings it again.
            None => {}
        }
        self.inspect_next(name);
        let are_claims_known = self.watches.is_listed(&super::observing::target(super::claims::KIND));
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        if !hypervisor.is_surveying() {
            if are_claims_known && !std::mem::replace(&mut hypervisor.is_swept, true) {
                self.sweep(name);
                self.due.insert(Due::Cluster(name.clone()));
            }
            let Some(hypervisor) = self.clusters.get_mut(name) else { return };
            let waiting = std::mem::take(&mut hypervisor.waiting);
            self.due.extend(waiting.into_iter().map(Due::Claim));
        }
    }

    /// Marks orphans, and destroys those that were marked for longer than the grace period.
    fn sweep(&mut self, name: &Name) {
        let now = self.now.monotonic;
        let are_claims_known = self.watches.is_listed(&super::observing::target(super::claims::KIND));
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        hypervisor.is_swept |= are_claims_known && !hypervisor.is_surveying();
        let orphans = hypervisor.entry.object.spec.orphans.clone();
        let grace = orphans.grace_period.duration().unwrap_or(Duration::from_secs(600));
        let mut ended = Vec::new();
        for (id, (_, owner)) in &hypervisor.surveyed {
            let Some(owner) = owner else { continue };
            let claim = self.uids.get(&owner.uid).and_then(|claim| self.claims.get(claim));
            let claimed = match claim {
                _ if !are_claims_known || self.unreadable.values().any(|uid| *uid == owner.uid) => Claimed::Unknown,
                None => Claimed::No,
                Some(claim) => match &claim.enrolled {
                    Some((_, other)) if other != id => Claimed::No,
                    Some(_) => Claimed::Yes,
                    // It is about to be adopted, unless its claim ends without ever having recorded it.
                    None if claim.entry.object.deleting.is_none() => Claimed::Yes,
                    None => Claimed::No,
                },
            };
            let was_marked = hypervisor.marks.all().any(|(marked, _)| marked == id);
            let is_over = hypervisor.marks.see(id, owner, claimed, grace, now);
            let is_new = !was_marked && claimed == Claimed::No;
            let is_destroyed = is_over && orphans.policy == OrphanPolicy::Delete;
            let is_tried = hypervisor.destroying.contains(id) || hypervisor.undestroyed.contains(id);
            if is_new || (is_destroyed && !is_tried) {
                ended.push((id.clone(), owner.clone(), is_destroyed));
            }
        }
        for (id, owner, is_destroyed) in ended {
            if is_destroyed {
                let node = self.clusters.get(name).and_then(|found| found.listed.as_ref());
                let node = node.and_then(|listed| listed.machines.get(&id)).map(|seen| seen.node.to_string());
                let Some(hypervisor) = self.clusters.get_mut(name) else { return };
                // Claims go first. What finds no slot is looked at again when an orphan is gone, and after the next list.
                if !hypervisor.slots.is_spare_on(node.as_deref().unwrap_or_default()) {
                    continue;
                }
                hypervisor.destroying.insert(id.clone());
                let target = Target { id: id.clone(), node, owner: owner.clone() };
                self.ask(name, Operation::Destroy(target), What::Orphan(id.clone()));
            }
            self.notify(Notice::Orphan { cluster: name.clone(), machine: id, owner, is_destroyed });
        }
    }

    /// The end of an orphan was tried.
    pub(super) fn orphan_ended(&mut self, name: &Name, id: &MachineId, is_over: bool) {
        let Some(hypervisor) = self.clusters.get_mut(name) else { return };
        hypervisor.destroying.remove(id);
        match is_over {
            true => {
                hypervisor.surveyed.remove(id);
                hypervisor.marks.remove(id);
            }
            false => {
                hypervisor.undestroyed.insert(id.clone());
            }
        }
        self.sweep(name);
    }
}
