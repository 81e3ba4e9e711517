//! What claims hold that an earlier process has placed: it is promised to nobody else while nobody knows yet whether their machines exist.

use super::Core;
use crate::blueprint;
use crate::hypervisor::Power;
use crate::machine::Sight;
use crate::object::Name;
use crate::placement::{self, Space};
use api::fleet::ClaimPhase;

impl Core {
    /// Promises the places of all claims of a hypervisor that have recorded one and hold nothing yet.
    pub(super) fn hold_recorded(&mut self, cluster: &Name) {
        let unheld = self.clusters.get_mut(cluster).map(|found| std::mem::take(&mut found.unheld)).unwrap_or_default();
        for claim in unheld {
            if !self.hold(cluster, &claim)
                && let Some(hypervisor) = self.clusters.get_mut(cluster)
            {
                hypervisor.unheld.insert(claim);
            }
        }
    }

    /// Promises a claim the place that it has recorded; false if that is to be tried again, because it is not known yet what it needs.
    fn hold(&mut self, cluster: &Name, name: &Name) -> bool {
        let Some(managed) = self.claims.get(name) else { return true };
        let status = &managed.entry.object.status;
        let is_over = status.created_time.is_some() || status.phase == Some(ClaimPhase::Failed);
        let node = status.vm_ref.as_ref().and_then(|vm_ref| vm_ref.node.as_deref());
        // What was looked at is held by whoever decides about it.
        let (Some(node), false, Sight::Unknown) = (node, is_over, &managed.sight) else { return true };
        let template = self.templates.get(&name.beside(None, &managed.entry.object.spec.template_ref.name));
        let Some(spec) = template.map(|template| &template.entry.object.spec) else { return false };
        let Some(hypervisor) = self.clusters.get_mut(cluster) else { return true };
        let Some(listed) = &hypervisor.listed else { return false };
        let found = crate::template::reference(spec).and_then(|reference| hypervisor.found.get(&reference));
        let templates = found.and_then(|found| found.as_ref().ok());
        let first = templates.and_then(|found| found.first());
        let space = || -> Option<Space> {
            let need = blueprint::need(spec, &hypervisor.entry.object.spec, first?).ok()?;
            let template = placement::template_for(&need, node, templates?, listed).or(first)?;
            placement::space(&need, node, template, listed)
        };
        let (is_known, space) = (found.is_some(), space());
        let runs = managed
            .machine_id()
            .and_then(|id| listed.machines.get(&id))
            .is_some_and(|seen| seen.power != Power::Stopped);
        match (hypervisor.loads.has(name), spec.resources.memory.bytes()) {
            (true, _) if runs => {}
            (true, _) => hypervisor.loads.promise_space(name, space),
            (false, Some(memory)) => hypervisor.loads.promise(name, node, (spec.resources.cpu, memory), space),
            (false, None) => {}
        }
        is_known
    }
}
