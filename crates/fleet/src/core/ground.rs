//! Where the machine of a claim is created: an id and a node, or what it waits for.

use super::Core;
use super::claims::Managed;
use super::templates::ManagedTemplate;
use crate::blueprint;
use crate::hypervisor::MachineId;
use crate::ids;
use crate::machine::{Ground, Sight};
use crate::object::Name;
use crate::placement;
use api::fleet::{FailureClass, VmRef};

fn waiting(reason: &'static str, message: impl Into<String>) -> Ground {
    Ground::Waiting { reason, message: message.into() }
}

impl Core {
    /// The hypervisor that a claim has recorded, or that its template names.
    fn ground_of(&self, managed: &Managed) -> Option<Name> {
        let claim = &managed.entry.object;
        let template = || self.templates.get(&claim.name.beside(None, &claim.spec.template_ref.name));
        managed.cluster().or_else(|| template().map(ManagedTemplate::cluster))
    }

    /// The ground of a claim; a new id is reserved for it.
    pub(super) fn ground(&mut self, name: &Name) -> Ground {
        let Some(managed) = self.claims.get(name) else { return Core::no_ground() };
        if !Core::needs_ground(managed) {
            return Core::no_ground();
        }
        if let Some(cluster) = self.ground_of(managed) {
            self.hold_recorded(&cluster);
        }
        let Some(managed) = self.claims.get(name) else { return Core::no_ground() };
        let claim = &managed.entry.object;
        let template_name = name.beside(None, &claim.spec.template_ref.name);
        let Some(template) = self.templates.get(&template_name) else {
            let message = format!("there is no HypervisorMachineTemplate {}", template_name.name);
            return waiting("TemplateNotFound", message);
        };
        let is_new = claim.status.vm_ref.is_none();
        if template.entry.object.deleting.is_some() && is_new {
            let message = format!("the HypervisorMachineTemplate {} is being deleted", template_name.name);
            return waiting("TemplateDeleting", message);
        }
        let cluster_name = managed.cluster().unwrap_or_else(|| template.cluster());
        let Some(hypervisor) = self.clusters.get_mut(&cluster_name) else {
            return waiting("ClusterNotFound", format!("there is no HypervisorCluster {cluster_name}"));
        };
        if !hypervisor.is_ready {
            hypervisor.waiting.insert(name.clone());
            return waiting("ClusterNotReady", format!("the HypervisorCluster {cluster_name} is not ready"));
        }
        if !template.is_valid {
            let message =
                format!("the HypervisorMachineTemplate {} is not valid: {}", template_name.name, template.why);
            return waiting("TemplateInvalid", message);
        }
        let spec = &template.entry.object.spec;
        let found = crate::template::reference(spec).and_then(|reference| hypervisor.found.get(&reference));
        let (Some(Ok(found)), Some(listed)) = (found, &hypervisor.listed) else {
            hypervisor.waiting.insert(name.clone());
            return waiting("TemplateUnchecked", "the hypervisor was not asked for the template yet");
        };
        if let Some(intended) = &managed.intended {
            return Ground::At(intended.clone());
        }
        let need = match found.first().map(|first| blueprint::need(spec, &hypervisor.entry.object.spec, first)) {
            Some(Ok(need)) => need,
            Some(Err(why)) => return waiting("TemplateInvalid", why),
            None => return waiting("TemplateNotFound", "the hypervisor has no such template"),
        };
        let is_taken = matches!(managed.sight, Sight::Foreign(_));
        if let Some(vm_ref) = claim.status.vm_ref.as_ref().filter(|_| !is_taken) {
            let is_full = managed.failed.as_ref().is_some_and(|failed| failed.class == FailureClass::Resource);
            let is_offline =
                vm_ref.node.as_ref().is_some_and(|node| listed.nodes.get(node).is_some_and(|node| !node.is_online));
            let template = |node: &String| placement::template_for(&need, node, found, listed);
            let is_unreached = vm_ref.node.as_ref().is_some_and(|node| template(node).is_none());
            if !matches!(managed.sight, Sight::Absent(_)) || !(is_full || is_offline || is_unreached) {
                // After a restart nobody has counted it yet.
                if let Some(node) = &vm_ref.node {
                    let template = template(node).or(found.first());
                    let space = template.and_then(|template| placement::space(&need, node, template, listed));
                    match hypervisor.loads.has(name) {
                        true => hypervisor.loads.promise_space(name, space),
                        false => hypervisor.loads.promise(name, node, (need.cpus, need.memory), space),
                    }
                }
                return Ground::At(vm_ref.clone());
            }
        }
        let Some(avoided) = hypervisor.doubtful_nodes(&managed.host_name, self.now.monotonic) else {
            hypervisor.waiting.insert(name.clone());
            return waiting("Surveying", "machines that may be this claim's are looked at first");
        };
        let adopted = hypervisor.machine_of(&claim.uid).filter(|_| is_new);
        let spec = &hypervisor.entry.object.spec;
        let most = spec.limits.machines.map_or(usize::MAX, |most| usize::try_from(most).unwrap_or(usize::MAX));
        if is_new && adopted.is_none() && hypervisor.members.len() >= most {
            hypervisor.waiting.insert(name.clone());
            return waiting("LimitReached", format!("there are {most} machines, which is the limit of {cluster_name}"));
        }
        // The room that it has where it was placed before is not taken from it.
        let held = hypervisor.loads.withdraw(name);
        let promised = hypervisor.loads.promised();
        let placed = placement::choose(&need, found, &spec.nodes, &avoided, listed, promised, spec.overcommit);
        hypervisor.loads.restore(name, held);
        let (node, space) = match (&adopted, placed) {
            (Some((_, node)), _) => (node.clone(), None),
            (None, Ok((node, template))) => {
                let space = placement::space(&need, &node, template, listed);
                (node, space)
            }
            (None, Err(missing)) => {
                hypervisor.waiting.insert(name.clone());
                return waiting("InsufficientResources", missing);
            }
        };
        let same_id = claim.status.vm_ref.as_ref().filter(|_| !is_taken).map(|vm_ref| vm_ref.vm_id.clone());
        let id = match (&adopted, same_id) {
            (Some((id, _)), _) => id.0.clone(),
            (None, Some(id)) => id,
            (None, None) => {
                let range = spec.vm_ids;
                let start = hypervisor
                    .next_id
                    .unwrap_or_else(|| ids::start(range, &self.config.operator, &hypervisor.entry.object.uid));
                let is_used = |id: &MachineId| {
                    listed.machines.contains_key(id)
                        || hypervisor.reserved.contains_key(id)
                        || hypervisor.surveyed.contains_key(id)
                };
                let Some(id) = ids::choose(range, start, is_used) else {
                    hypervisor.waiting.insert(name.clone());
                    return waiting("NoFreeId", format!("no id from {} to {} is free", range.from, range.to));
                };
                hypervisor.next_id = Some(ids::next(range, id));
                id.to_string()
            }
        };
        let vm_ref = VmRef { hypervisor_cluster: cluster_name.to_string(), vm_id: id, node: Some(node.clone()) };
        let (now, is_adopted) = (self.now.monotonic, adopted.is_some());
        if let Some(managed) = self.claims.get_mut(name) {
            managed.intended = Some(vm_ref.clone());
            managed.sight = if is_adopted { Sight::Unknown } else { Sight::Absent(now) };
        }
        self.enroll(name);
        // After that: what it had under another id is withdrawn with that id.
        if let Some(hypervisor) = self.clusters.get_mut(&cluster_name) {
            let seen = adopted.and_then(|(id, _)| hypervisor.listed.as_ref()?.machines.get(&id));
            match seen {
                Some(seen) => hypervisor.loads.adopt(name, seen),
                None => hypervisor.loads.promise(name, &node, (need.cpus, need.memory), space),
            }
        }
        Ground::At(vm_ref)
    }
}
