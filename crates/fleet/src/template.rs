//! The life of a `HypervisorMachineTemplate`: whether machines can be made from it, and whether its object may go.

use crate::blueprint;
use crate::cloud_init;
use crate::cluster::{Cluster, Keep, held_by, keep};
use crate::conditions::{merge, shown, wanted};
use crate::hypervisor::{Listed, MachineId, Template as Found, TemplateRef};
use crate::object::{Name, Object};
use crate::placement;
use api::fleet::{
    FailureClass, HypervisorMachineTemplateSpec, HypervisorMachineTemplateStatus, IN_USE_FINALIZER, Provider,
};
use change::Now;
use std::collections::BTreeSet;

/// A template.
pub type Template = Object<HypervisorMachineTemplateSpec, HypervisorMachineTemplateStatus>;

/// The answer to the last look-up; a failure that may pass does not replace one.
pub type LookedUp = Result<Vec<Found>, (FailureClass, String)>;

/// All that a decision about a template depends on.
#[derive(Debug)]
pub struct Observed<'a> {
    /// The object.
    pub template: &'a Template,
    /// Its hypervisor and whether that can be used; nothing if there is none.
    pub cluster: Option<(&'a Cluster, bool)>,
    /// What the hypervisor has.
    pub found: Option<&'a LookedUp>,
    /// The last list of the hypervisor.
    pub listed: Option<&'a Listed>,
    /// The claims that use it.
    pub users: &'a BTreeSet<Name>,
    /// The present moment.
    pub now: Now,
}

/// A decision about a template.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Whether machines can be made from it.
    pub is_valid: bool,
    /// Why, in one word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
    /// What is done to its finalizer.
    pub keep: Keep,
    /// The status.
    pub status: HypervisorMachineTemplateStatus,
}

/// How the template is named on the hypervisor.
pub fn reference(spec: &HypervisorMachineTemplateSpec) -> Option<TemplateRef> {
    if let Some(kubevirt) = &spec.template.kubevirt {
        return Some(TemplateRef::Name(kubevirt.name.clone()));
    }
    let proxmox = spec.template.proxmox.as_ref()?;
    let id = proxmox.template_id.map(|id| TemplateRef::Id(MachineId(id.to_string())));
    let name = proxmox.name.clone().map(TemplateRef::Name);
    id.or(name).or_else(|| proxmox.tag.clone().map(TemplateRef::Tag))
}

/// Decides about a template.
pub fn decide(observed: &Observed<'_>) -> Decision {
    let Observed { template, users, now, .. } = observed;
    let before = &template.status;
    let keep = keep(template.deleting.is_some(), template.has_finalizer(IN_USE_FINALIZER), users.is_empty());
    let (is_valid, reason, message) = validate(observed);
    let mut conditions = vec![wanted("TemplateValid", is_valid, reason, message.clone())];
    if template.deleting.is_some() {
        let word = if users.is_empty() { "Unused" } else { "InUse" };
        conditions.push(wanted("InUse", !users.is_empty(), word, held_by(users)));
    }
    let resolved = match observed.found {
        Some(Ok(found)) => found.first().map(|found| format!("{} ({})", found.name, found.id.0)),
        _ => before.resolved_template.clone(),
    };
    let mut status = HypervisorMachineTemplateStatus {
        observed_generation: Some(template.generation),
        template_available: Some(is_valid),
        resolved_template: resolved,
        validation_status: Some(message.clone()),
        conditions: merge(conditions, &before.conditions, template.generation, now.wall),
        ..before.clone()
    };
    if status != *before {
        status.last_validated = Some(shown(now.wall));
    }
    Decision { is_valid: is_valid && template.deleting.is_none(), reason, message, keep, status }
}

fn validate(observed: &Observed<'_>) -> (bool, &'static str, String) {
    let spec = &observed.template.spec;
    let Some((cluster, is_ready)) = observed.cluster else {
        let message = format!("there is no HypervisorCluster {}", spec.hypervisor_cluster_ref.name);
        return (false, "ClusterNotFound", message);
    };
    let failed = |message: String| (false, "ValidationFailed", message);
    if spec.template.kubevirt.is_some() != (cluster.spec.provider == Provider::Kubevirt) {
        return failed(format!("spec.template is not for the provider of {}", cluster.name.name));
    }
    if let Err(why) = cloud_init::seed(spec.cloud_init.as_ref(), &spec.network, "name", "uid") {
        return failed(why);
    }
    let found = match observed.found {
        Some(Ok(found)) => found,
        Some(Err((FailureClass::Configuration | FailureClass::Permanent, message))) => {
            return (false, "TemplateNotFound", message.clone());
        }
        Some(Err(_)) | None if is_ready => {
            return (false, "Validating", "the hypervisor is asked for the template".into());
        }
        Some(Err(_)) | None => {
            let message = format!("the HypervisorCluster {} is not ready", cluster.name.name);
            return (false, "ClusterNotReady", message);
        }
    };
    let Some(first) = found.first() else {
        return (false, "TemplateNotFound", "the hypervisor has no such template".into());
    };
    let need = match blueprint::need(spec, &cluster.spec, first) {
        Ok(need) => need,
        Err(why) => return failed(why),
    };
    if need.must_link && !first.can_link {
        let storage = &first.storage;
        return failed(format!(
            "the storage {storage} makes no linked clones; remove linkedClone, or move the template"
        ));
    }
    if let Some(listed) = observed.listed {
        let largest = listed.nodes.values().map(|node| node.memory).max().unwrap_or_default();
        let allowed = largest / 100 * u64::from(cluster.spec.overcommit.memory_percent);
        if need.memory > allowed && !listed.nodes.is_empty() {
            let (wanted, there) = (placement::shown(need.memory), placement::shown(allowed));
            return failed(format!("resources.memory is {wanted}, and the largest node gives {there}"));
        }
    }
    let nodes: Vec<&str> = found.iter().map(|found| found.node.as_str()).collect();
    (true, "ValidationSucceeded", format!("template {} on {}", first.name, nodes.join(", ")))
}
