//! All machines, nodes and storages by one request.

use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::trouble::Trouble;
use crate::proxmox::wire::{Resource, tags};
use fleet::hypervisor::{Failure, Listed, MachineId, NodeState, Power, Seen, StorageState};
use http::Method;

pub(crate) async fn list(client: &Client) -> Result<Listed, Failure> {
    let resources: Vec<Resource> = client
        .get("/cluster/resources", &[])
        .await
        .map_err(|trouble| trouble.failure("listing machines, nodes and storages"))?;
    Ok(listed(&resources))
}

/// What there is of these kinds (`vm`, `node`, `storage`): nodes and storages are few, machines may be thousands.
pub(crate) async fn of_kinds(client: &Client, kinds: &[&str]) -> Result<Vec<Resource>, Trouble> {
    let mut all = Vec::new();
    for kind in kinds {
        let content = Content::Parameters(vec![("type", (*kind).to_owned())]);
        let call = Call { method: Method::GET, path: "/cluster/resources", parts: &[], content };
        all.extend(client.send::<Vec<Resource>>(call).await?);
    }
    Ok(all)
}

fn listed(resources: &[Resource]) -> Listed {
    let mut listed = Listed::default();
    for resource in resources {
        match resource.kind.as_str() {
            // Containers take ids, too.
            "qemu" | "lxc" => {
                listed.machines.insert(MachineId(resource.vmid.clone()), seen(resource));
            }
            "node" => {
                let state = NodeState {
                    is_online: resource.status == "online",
                    cpus: u32::try_from(resource.maxcpu).unwrap_or(u32::MAX),
                    memory: resource.maxmem,
                    memory_used: resource.mem,
                };
                listed.nodes.insert(resource.node.clone(), state);
            }
            "storage" => {
                let state = StorageState { bytes: resource.maxdisk, used: resource.disk, is_shared: resource.shared };
                listed.storages.insert((resource.node.clone(), resource.storage.clone()), state);
            }
            _ => {}
        }
    }
    listed
}

/// A machine in a list.
pub(crate) fn seen(resource: &Resource) -> Seen {
    let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    Seen {
        name: resource.name.clone(),
        node: resource.node.clone(),
        power: power(&resource.status),
        is_template: resource.template,
        lock: given(&resource.lock),
        tags: tags(&resource.tags),
        pool: given(&resource.pool),
        cpus: u32::try_from(resource.maxcpu).unwrap_or(u32::MAX),
        memory: resource.maxmem,
    }
}

/// Whether a machine runs, by its status.
pub(crate) fn power(status: &str) -> Power {
    match status {
        "running" => Power::Running,
        "stopped" => Power::Stopped,
        _ => Power::Unknown,
    }
}
