//! What a claim's machine is to be, from its template and the hypervisor.

use crate::backoff::hash;
use crate::cloud_init;
use crate::hypervisor::{Blueprint, Delivery, MachineId, Network, Owner, Template};
use crate::machine::{self, Claim};
use crate::placement::Need;
use crate::tags;
use api::fleet::{HypervisorClusterSpec, HypervisorMachineTemplateSpec, SeedDelivery};

/// No host name is longer.
const LONGEST_NAME: usize = 63;

/// The name of a claim's machine, which is also its host name.
pub fn host_name(claim: &str) -> String {
    let name: String = claim.to_lowercase().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if name.len() <= LONGEST_NAME { name } else { cut(&name, claim, LONGEST_NAME) }
}

/// A name, or if it is longer than so many characters, its beginning with a number that tells it from others with the same beginning.
pub fn shortened(name: &str, longest: usize) -> String {
    if name.len() <= longest { name.to_owned() } else { cut(name, name, longest) }
}

fn cut(name: &str, whole: &str, longest: usize) -> String {
    let end = format!("-{:08x}", hash(whole, 0) & 0xffff_ffff);
    let start: String = name.chars().take(longest.saturating_sub(end.len())).collect();
    format!("{}{end}", start.trim_end_matches(|character: char| !character.is_ascii_alphanumeric()))
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
    if spec.network.vlan.is_some() && bridge(spec, cluster).is_none() {
        return Err("network.vlan has no effect without a bridge: set network.bridge, or defaultNetwork of the HypervisorCluster".into());
    }
    let source = spec.template.proxmox.as_ref();
    let must_link = source.is_some_and(|source| source.linked_clone == Some(true));
    let is_linked = template.can_link && source.is_none_or(|source| source.linked_clone != Some(false));
    let named = source.and_then(|source| source.storage.clone()).or_else(|| cluster.default_storage.clone());
    let storage = (!is_linked).then(|| named.unwrap_or_else(|| template.storage.clone()));
    Ok(Need { cpus: spec.resources.cpu, memory, disk, storage, must_link })
}

/// The bridge of the template, or else that of the hypervisor.
fn bridge(spec: &HypervisorMachineTemplateSpec, cluster: &HypervisorClusterSpec) -> Option<String> {
    spec.network.bridge.clone().or_else(|| cluster.default_network.clone())
}

/// The machine of a claim.
pub fn blueprint(
    claim: &Claim,
    operator: &str,
    spec: &HypervisorMachineTemplateSpec,
    cluster: &HypervisorClusterSpec,
    template: &Template,
    guest: Option<&bootstrap::Config>,
) -> Result<Blueprint, String> {
    let vm_ref = claim.status.vm_ref.as_ref().ok_or("no id is recorded")?;
    let need = need(spec, cluster, template)?;
    let name = host_name(&claim.name.name);
    let owner: Owner = machine::owner(claim, operator);
    let seed = match cloud_init::delivery(spec) {
        Some(SeedDelivery::GuestAgent) => None,
        Some(SeedDelivery::Iso) | None => {
            cloud_init::seed_for(spec.cloud_init.as_ref(), &spec.network, (&name, &claim.uid), guest)?
        }
    };
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
        network: bridge(spec, cluster).map(|bridge| Network { bridge, vlan: spec.network.vlan }),
        tags: tags::all(operator, pool, &cluster.tags),
        seed,
        name,
    })
}

/// What the guest agent of a claim's machine carries out; nothing if there is nothing.
pub fn delivery(
    claim: &Claim,
    operator: &str,
    spec: &HypervisorMachineTemplateSpec,
    guest: Option<&bootstrap::Config>,
) -> Option<Delivery> {
    let target = machine::target(claim, operator)?;
    let name = host_name(&claim.name.name);
    let names = (name.as_str(), claim.uid.as_str());
    let seed = cloud_init::seed_for(spec.cloud_init.as_ref(), &spec.network, names, guest).ok()??;
    Some(Delivery { target, files: seed.files })
}

#[cfg(test)]
mod tests {
    use super::{blueprint, host_name, shortened};
    use crate::hypervisor::{MachineId, Network, Template};
    use crate::machine::Claim;
    use crate::object::{Name, Object};
    use api::fleet::{MachineClaimStatus, VmRef};
    use serde_json::{Value, json};

    fn claim() -> Claim {
        let vm_ref = VmRef { hypervisor_cluster: "ci/pve".into(), vm_id: "200".into(), node: Some("b".into()) };
        Object {
            name: Name::new("ci", "one"),
            uid: "u-1".into(),
            version: "1".into(),
            generation: 1,
            created: jiff::Timestamp::UNIX_EPOCH,
            deleting: None,
            finalizers: Vec::new(),
            annotations: std::collections::BTreeMap::new(),
            spec: serde_json::from_value(json!({"templateRef": {"name": "small"}})).unwrap(),
            status: MachineClaimStatus { vm_ref: Some(vm_ref), ..MachineClaimStatus::default() },
        }
    }

    fn found(can_link: bool) -> Template {
        Template {
            id: MachineId("9000".into()),
            name: "base".into(),
            node: "a".into(),
            storage: "of-template".into(),
            others: Default::default(),
            is_shared: true,
            can_link,
            disk: "scsi0".into(),
            disk_bytes: 8 << 30,
            has_agent: true,
        }
    }

    /// P21: what the template names comes before what the hypervisor names, and that before what is there.
    #[test]
    fn storage_bridge_and_vlan_are_those_of_the_template_then_those_of_the_hypervisor() {
        let made = |source: Value, network: Value, cluster: Value, can_link: bool| {
            let mut proxmox = json!({"tag": "base"});
            proxmox.as_object_mut().unwrap().extend(source.as_object().unwrap().clone());
            let spec = json!({
                "hypervisorClusterRef": {"name": "pve"}, "template": {"proxmox": proxmox}, "network": network,
                "resources": {"cpu": 2, "memory": "4Gi"},
            });
            let mut hypervisor = json!({"provider": "proxmox", "endpoint": "https://pve:8006"});
            hypervisor.as_object_mut().unwrap().extend(cluster.as_object().unwrap().clone());
            let (spec, hypervisor) =
                (serde_json::from_value(spec).unwrap(), serde_json::from_value(hypervisor).unwrap());
            blueprint(&claim(), "o", &spec, &hypervisor, &found(can_link), None)
        };
        let none = || json!({});
        let default = || json!({"defaultStorage": "of-cluster"});
        for (source, cluster, can_link, storage) in [
            (none(), none(), true, None),
            (none(), default(), true, None),
            (json!({"linkedClone": true, "storage": "named"}), default(), true, None),
            (none(), none(), false, Some("of-template")),
            (none(), default(), false, Some("of-cluster")),
            (json!({"storage": "named"}), default(), false, Some("named")),
            (json!({"linkedClone": false}), none(), true, Some("of-template")),
            (json!({"linkedClone": false}), default(), true, Some("of-cluster")),
            (json!({"linkedClone": false, "storage": "named"}), default(), true, Some("named")),
        ] {
            let what = format!("{source} {cluster} {can_link}");
            let made = made(source, none(), cluster, can_link).unwrap();
            assert_eq!((made.storage.as_deref(), made.is_linked), (storage, storage.is_none()), "{what}");
        }
        let default = || json!({"defaultNetwork": "vmbr0"});
        let on = |bridge: &str, vlan| Some(Network { bridge: bridge.into(), vlan });
        for (network, cluster, expected) in [
            (none(), none(), None),
            (none(), default(), on("vmbr0", None)),
            (json!({"vlan": 12}), default(), on("vmbr0", Some(12))),
            (json!({"bridge": "vmbr7"}), none(), on("vmbr7", None)),
            (json!({"bridge": "vmbr7"}), default(), on("vmbr7", None)),
            (json!({"bridge": "vmbr7", "vlan": 12}), default(), on("vmbr7", Some(12))),
        ] {
            let what = format!("{network} {cluster}");
            assert_eq!(made(none(), network, cluster, true).unwrap().network, expected, "{what}");
        }
        let why = made(none(), json!({"vlan": 12}), none(), true).unwrap_err();
        assert!(why.contains("set network.bridge"), "a machine must not end up in another network: {why}");
        let made = made(none(), none(), json!({"resourcePool": "virtpilot"}), true).unwrap();
        assert_eq!((made.pool.as_deref(), made.node.as_str(), made.disk_bytes), (Some("virtpilot"), "b", None));
    }

    #[test]
    fn a_host_name_is_short_and_valid_and_tells_claims_apart() {
        assert_eq!(host_name("linux-x1.y"), "linux-x1-y");
        let (one, two) = (host_name(&format!("{}1", "a".repeat(100))), host_name(&format!("{}2", "a".repeat(100))));
        assert!(one.len() == 63 && two.len() == 63 && one != two);
        assert_eq!(shortened("linux.x", 7), "linux.x");
        let (one, two) = (shortened("linux.runners.a", 14), shortened("linux.runners.b", 14));
        assert!(one.len() <= 14 && one.starts_with("linux-") && one != two, "no part of a name ends with a dot: {one}");
    }
}
