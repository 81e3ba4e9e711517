//! Destroys a machine and everything that belongs to it, and nothing else.

use crate::proxmox::class::Class;
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::machine::{Found, current_power, find, owned};
use crate::proxmox::power::{after, ensure_stopped};
use crate::proxmox::task::follow;
use crate::record::SeedVolume;
use crate::seed;
use fleet::hypervisor::{Failure, Owner, Power, Target};
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
    let content = Content::Parameters(vec![("purge", "1".into()), ("destroy-unreferenced-disks", "1".into())]);
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

fn is_gone(message: &str) -> bool {
    let lower = message.to_lowercase();
    lower.contains("no such file")
        || lower.contains("no such volume")
        || (lower.contains("volume ") && lower.contains("does not exist"))
}
