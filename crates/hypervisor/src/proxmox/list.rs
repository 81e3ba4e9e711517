//! All machines, nodes and storages by one request.

use crate::proxmox::client::Client;
use crate::proxmox::resources::{Words, each};
use crate::proxmox::trouble::Trouble;
use crate::proxmox::wire::{Resource, has_tag};
use fleet::hypervisor::{Failure, Listed, MachineId, NodeState, Power, Seen, StorageState};

pub(crate) async fn list(client: &Client) -> Result<Listed, Failure> {
    client.roster.forget();
    let (mut listed, mut words) = (Listed::default(), Words::default());
    each(client, None, |resource| add(&mut listed, &resource, &mut words))
        .await
        .map_err(|trouble| trouble.failure("listing machines, nodes and storages"))?;
    Ok(listed)
}

/// What there is of these kinds (`vm`, `node`, `storage`): nodes and storages are few, machines may be thousands.
pub(crate) async fn of_kinds(client: &Client, kinds: &[&str]) -> Result<Vec<Resource>, Trouble> {
    let mut all = Vec::new();
    for kind in kinds {
        each(client, Some(kind), |resource| all.push(resource)).await?;
    }
    Ok(all)
}

fn add(listed: &mut Listed, resource: &Resource, words: &mut Words) {
    match resource.kind.as_str() {
        // Containers take ids, too.
        "qemu" | "lxc" => {
            listed.machines.insert(MachineId(resource.vmid.clone()), seen(resource, words));
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

/// A machine in a list.
pub(crate) fn seen(resource: &Resource, words: &mut Words) -> Seen {
    Seen {
        name: resource.name.as_str().into(),
        node: words.shared(&resource.node),
        power: power(&resource.status),
        is_template: resource.template,
        lock: Some(resource.lock.as_str()).filter(|lock| !lock.is_empty()).map(Into::into),
        is_tagged: has_tag(&resource.tags, fleet::tags::FLEET),
        pool: Some(resource.pool.as_str()).filter(|pool| !pool.is_empty()).map(|pool| words.shared(pool)),
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
