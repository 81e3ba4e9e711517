//! Destroys a machine and everything that belongs to it, and nothing else.

use crate::proxmox::class::Class;
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::machine::{Found, Machine, current_power, find, owned};
use crate::proxmox::power::{after, ensure_stopped};
use crate::proxmox::task::follow;
use crate::proxmox::wire::key_number;
use crate::seed;
use fleet::hypervisor::{Failure, MachineId, Owner, Power, Target};
use fleet::record::{Record, SeedVolume};
use http::Method;
use serde_json::Value;

/// The owner is read before the machine is stopped and again before it is deleted. The seed goes first: its name is only known from the
/// record on the machine.
pub(crate) async fn destroy(client: &Client, target: &Target) -> Result<(), Failure> {
    let (machine, _) = owned(client, target).await?;
    if current_power(client, &target.id, &machine.node).await? != Power::Stopped {
        ensure_stopped(client, &target.id, &machine.node).await?;
    }
    let here = Target { node: Some(machine.node.clone()), ..target.clone() };
    let (mut machine, record) = owned(client, &here).await?;
    if let Some(seed) = &record.seed {
        remove_seed(client, seed, &record.owner).await?;
        machine = owned(client, &here).await?.0;
    }
    if unprotect(client, &machine, &record, &target.id).await? {
        machine = owned(client, &here).await?.0;
    }
    // All disks of a clone are in its configuration. Disks that merely have its number may be of another hypervisor with the same storage.
    let content = Content::Parameters(vec![("purge", "1".into())]);
    let parts: [&str; 2] = [&machine.node, &target.id.0];
    let call = Call { method: Method::DELETE, path: "/nodes/{node}/qemu/{vmid}", parts: &parts, content };
    let deleted = match client.send::<Value>(call).await {
        Ok(task) => follow(client, &task).await,
        Err(trouble) => Err(trouble),
    };
    if let Err(trouble) = deleted {
        return Err(after(client, &trouble, &target.id, &machine.node, "deleting").await);
    }
    match find(client, &target.id).await? {
        Found::Nothing | Found::Unseen => Ok(()),
        // The id may be another machine's already.
        Found::Listed(_) => match owned(client, target).await {
            Err(Failure::NotOurs { .. } | Failure::Absent(_)) => Ok(()),
            Err(failure) => Err(failure),
            Ok(_) => Err(Failure::Transient(format!("deleting machine {}: it is still there", target.id.0))),
        },
    }
}

/// Takes away the protection that a clone has inherited, if it was not configured yet; whether it had one.
async fn unprotect(client: &Client, machine: &Machine, record: &Record, id: &MachineId) -> Result<bool, Failure> {
    if key_number(&machine.config, "protection") != Some(1) {
        return Ok(false);
    }
    if record.is_configured {
        return Err(Failure::Configuration {
            message: format!("somebody has protected machine {}", id.0),
            remedy: format!("take the protection away: qm set {} --protection 0", id.0),
        });
    }
    let mut parameters = vec![("protection", "0".to_owned())];
    parameters.extend(machine.digest().map(|digest| ("digest", digest)));
    let (path, parts) = ("/nodes/{node}/qemu/{vmid}/config", [machine.node.as_str(), id.0.as_str()]);
    let call = Call { method: Method::PUT, path, parts: &parts, content: Content::Parameters(parameters) };
    let written = client.send::<Value>(call).await;
    written.map(|_| true).map_err(|trouble| trouble.failure(&format!("taking away the protection of machine {}", id.0)))
}

/// Deletes the image of a seed, if it is one of this owner. One that is gone already is fine.
pub(crate) async fn remove_seed(client: &Client, seed: &SeedVolume, owner: &Owner) -> Result<(), Failure> {
    let Some((storage, _)) = seed.volume.split_once(':').filter(|_| seed::is_of(&seed.volume, owner)) else {
        return Ok(());
    };
    let parts: [&str; 3] = [&seed.node, storage, &seed.volume];
    let path = "/nodes/{node}/storage/{storage}/content/{volume}";
    let content = Content::Parameters(Vec::new());
    let deleted = match client.send::<Value>(Call { method: Method::DELETE, path, parts: &parts, content }).await {
        Ok(task) => follow(client, &task).await,
        Err(trouble) => Err(trouble),
    };
    match deleted {
        Err(trouble) if trouble.class() == Class::Absent || is_gone(&trouble.message()) => Ok(()),
        other => other.map_err(|trouble| trouble.failure(&format!("deleting the seed {}", seed.volume))),
    }
}

/// Whether an image is not there any more, or its storage or its node is not.
fn is_gone(message: &str) -> bool {
    let lower = message.to_lowercase();
    lower.contains("no such file")
        || lower.contains("no such node")
        || lower.contains("no such cluster node")
        || lower.contains("hostname lookup")
        || (lower.contains("storage ") && lower.contains("does not exist"))
        || lower.contains("no such volume")
        || (lower.contains("volume ") && lower.contains("does not exist"))
}
