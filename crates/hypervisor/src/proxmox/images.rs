//! Images of seeds after their use: detached and deleted, and found again when their machine is gone.

use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::configure::write;
use crate::proxmox::destroy::remove_seed;
use crate::proxmox::list::of_kinds;
use crate::proxmox::machine::{Machine, owned};
use crate::proxmox::power::after;
use crate::proxmox::wire::{key, option};
use crate::seed;
use fleet::backoff;
use fleet::hypervisor::{Failure, SeedImage, SeedSearch, SeedsFound, Target};
use fleet::record::{self, Record, SeedVolume};
use http::Method;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Empties the drive first: the image of a drive cannot be deleted everywhere. The record goes last, so that whatever is interrupted
/// is found again.
pub(crate) async fn detach(client: &Client, target: &Target) -> Result<(), Failure> {
    let (mut machine, record) = owned(client, target).await?;
    let Some(volume) = &record.seed else { return Ok(()) };
    let id = &target.id;
    if let Some(drive) = drive(&machine, &volume.volume) {
        // A drive cannot be taken out of a machine that runs, but its medium can.
        let changes = vec![(drive, "none,media=cdrom".to_owned())];
        if let Err(trouble) = write(client, &machine, &id.0, changes).await {
            return Err(after(client, &trouble, id, &machine.node, "detaching the seed of").await);
        }
    }
    remove_seed(client, volume, &record.owner).await?;
    let here = Target { node: Some(machine.node.clone()), ..target.clone() };
    let record;
    (machine, record) = owned(client, &here).await?;
    let without = Record { seed: None, ..record };
    let changes = vec![("description", record::replace(machine.description(), &without))];
    match write(client, &machine, &id.0, changes).await {
        Err(trouble) => Err(after(client, &trouble, id, &machine.node, "recording the end of the seed of").await),
        Ok(()) => Ok(()),
    }
}

/// The drive with this image.
fn drive(machine: &Machine, volume: &str) -> Option<&'static str> {
    let has = |drive: &&'static str| {
        let value = key(&machine.config, drive).unwrap_or_default();
        option(value, "").or_else(|| option(value, "file")) == Some(volume)
    };
    crate::proxmox::configure::DRIVES.into_iter().find(has)
}

#[derive(Deserialize)]
struct Volume {
    volid: String,
}

/// The images of an installation on these storages.
pub(crate) async fn list(client: &Client, search: &SeedSearch) -> Result<SeedsFound, Failure> {
    let doing = "listing images of seeds";
    let storages = of_kinds(client, &["storage"]).await.map_err(|trouble| trouble.failure(doing))?;
    let (mut found, mut shared) = (SeedsFound::default(), BTreeSet::new());
    for storage in storages.iter().filter(|found| search.storages.contains(&found.storage)) {
        // A node that is down is asked the next time, and what nodes share needs one of them.
        let is_due = storage.status == "available" && (!storage.shared || shared.insert(&storage.storage));
        if !is_due {
            continue;
        }
        let (path, parts) = ("/nodes/{node}/storage/{storage}/content", [storage.node.as_str(), &storage.storage]);
        let content = Content::Parameters(vec![("content", "iso".to_owned())]);
        let call = Call { method: Method::GET, path, parts: &parts, content };
        let volumes = match client.send::<Vec<Volume>>(call).await {
            Ok(volumes) => volumes,
            // It is no reason to leave the images of other storages.
            Err(trouble) => {
                let doing = format!("{doing} on storage {} of node {}", storage.storage, storage.node);
                found.unread.push(backoff::message(&trouble.failure(&doing)));
                continue;
            }
        };
        for Volume { volid } in volumes {
            if let Some(uid) = seed::claim_of(&volid, &search.operator) {
                let (node, operator) = (storage.node.clone(), search.operator.clone());
                found.images.push(SeedImage { node, volume: volid, operator, uid });
            }
        }
    }
    Ok(found)
}

/// Deletes an image whose name says that it is of this installation and claim.
pub(crate) async fn delete(client: &Client, image: &SeedImage) -> Result<(), Failure> {
    match seed::claim_of(&image.volume, &image.operator) {
        Some(uid) if uid == image.uid => {
            let owner = fleet::hypervisor::Owner { operator: image.operator.clone(), claim: String::new(), uid };
            remove_seed(client, &SeedVolume { node: image.node.clone(), volume: image.volume.clone() }, &owner).await
        }
        _ => Err(Failure::Permanent(format!("{} is no seed of this installation", image.volume))),
    }
}
