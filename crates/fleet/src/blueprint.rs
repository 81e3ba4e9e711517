//! What a claim's machine is to be, from its template and the hypervisor.

use crate::backoff::hash;
use crate::cloud_init;
use crate::hypervisor::{Blueprint, MachineId, Network, Owner, Template};
use crate::machine::{self, Claim};
use crate::placement::Need;
use crate::tags;
use api::fleet::{HypervisorClusterSpec, HypervisorMachineTemplateSpec};

/// No host name is longer.
const LONGEST_NAME: usize = 63;

/// The name of a claim's machine, which is also its host name.
pub fn host_name(claim: &str) -> String {
    let name: String = claim.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if name.len() <= LONGEST_NAME {
        return name;
    }
    let end = format!("-{:08x}", hash(claim, 0) & 0xffff_ffff);
    let start: String = name.chars().take(LONGEST_NAME - end.len()).collect();
    format!("{start}{end}")
}

/// What a machine of a template needs; the error says what is wrong in the template.
pub fn need(
    spec: &HypervisorMachineTemplateSpec,
    cluster: &HypervisorClusterSpec,
    template: &Template,
) -> Result<Need, String> {
    let memory = spec.resources.memory.bytes().ok_or("resources.memory cannot be read")?;
    let disk = match &spec.resources.disk {
        Some(disk) => disk.bytes().ok_or("resources.disk cannot be read")?,
        None => template.disk_bytes,
    };
    if disk < template.disk_bytes {
        let (wanted, there) = (crate::placement::shown(disk), crate::placement::shown(template.disk_bytes));
        return Err(format!("resources.disk is {wanted}, and the disk of the template has {there}: a disk only grows"));
    }
    let source = spec.template.proxmox.as_ref();
    let must_link = source.is_some_and(|source| source.linked_clone == Some(true));
    let is_linked = template.can_link && source.is_none_or(|source| source.linked_clone != Some(false));
    let named = source.and_then(|source| source.storage.clone()).or_else(|| cluster.default_storage.clone());
    let storage = (!is_linked).then(|| named.unwrap_or_else(|| template.storage.clone()));
    Ok(Need { cpus: spec.resources.cpu, memory, disk, storage, must_link })
}

/// The machine of a claim.
pub fn blueprint(
    claim: &Claim,
    operator: &str,
    spec: &HypervisorMachineTemplateSpec,
    cluster: &HypervisorClusterSpec,
    template: &Template,
) -> Result<Blueprint, String> {
    let vm_ref = claim.status.vm_ref.as_ref().ok_or("no id is recorded")?;
    let need = need(spec, cluster, template)?;
    let name = host_name(&claim.name.name);
    let bridge = spec.network.bridge.clone().or_else(|| cluster.default_network.clone());
    let owner: Owner = machine::owner(claim, operator);
    let seed = cloud_init::seed(spec.cloud_init.as_ref(), &spec.network, &name, &claim.uid)?;
    let pool = claim.spec.runner_pool_ref.as_ref().map(|pool| pool.name.as_str());
    Ok(Blueprint {
        id: MachineId(vm_ref.vm_id.clone()),
        owner,
        node: vm_ref.node.clone().unwrap_or_else(|| template.node.clone()),
        template: template.clone(),
        is_linked: need.storage.is_none(),
        storage: need.storage,
        pool: cluster.resource_pool.clone(),
        cpus: need.cpus,
        memory: need.memory,
        disk_bytes: spec.resources.disk.as_ref().map(|_| need.disk),
        network: bridge.map(|bridge| Network { bridge, vlan: spec.network.vlan }),
        tags: tags::all(operator, pool, &cluster.tags),
        seed,
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::host_name;

    #[test]
    fn a_host_name_is_short_and_valid_and_tells_claims_apart() {
        assert_eq!(host_name("linux-x1.y"), "linux-x1-y");
        let (one, two) = (host_name(&format!("{}1", "a".repeat(100))), host_name(&format!("{}2", "a".repeat(100))));
        assert!(one.len() == 63 && two.len() == 63 && one != two);
    }
}
