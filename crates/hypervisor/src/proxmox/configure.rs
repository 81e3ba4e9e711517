//! Brings a machine to its blueprint: hardware, network, disk, seed and tags. What is so already is not written.

use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::destroy::remove_seed;
use crate::proxmox::machine::{Machine, owned};
use crate::proxmox::power::after;
use crate::proxmox::task::follow;
use crate::proxmox::trouble::Trouble;
use crate::proxmox::wire::{Config, as_text, bytes, key, key_number, option, options, tags};
use crate::seed::{self, Image};
use fleet::hypervisor::{Blueprint, Failure, MachineId, Network, Seed, Target};
use fleet::record::{self, Record, SeedVolume};
use http::Method;
use serde_json::Value;

const MIB: u64 = 1 << 20;
/// Where a seed can be attached.
pub(crate) const DRIVES: [&str; 15] = [
    "ide0", "ide1", "ide2", "ide3", "sata0", "sata1", "sata2", "sata3", "sata4", "sata5", "scsi1", "scsi2", "scsi3",
    "scsi4", "scsi5",
];

pub(crate) async fn configure(client: &Client, blueprint: &Blueprint) -> Result<(), Failure> {
    let id = &blueprint.id;
    let target = Target { id: id.clone(), node: Some(blueprint.node.clone()), owner: blueprint.owner.clone() };
    let (machine, found) = owned(client, &target).await?;
    let target = Target { node: Some(machine.node.clone()), ..target };
    let image = match &blueprint.seed {
        Some(wanted) if bus(&wanted.bus).is_none() => {
            return Err(Failure::Configuration {
                message: format!("a seed cannot be attached as {:?}", wanted.bus),
                remedy: "attach it as ide2, or on arm64 as scsi2".into(),
            });
        }
        Some(wanted) => Some((wanted, seed::image(wanted, &blueprint.owner).map_err(Failure::Permanent)?)),
        None => None,
    };
    let volume = image.as_ref().map(|(wanted, image)| SeedVolume {
        node: machine.node.clone(),
        volume: format!("{}:iso/{}", wanted.storage, image.file),
    });
    let wanted = Record { id: found.id.clone(), owner: found.owner.clone(), seed: volume, is_configured: true };
    if found == wanted
        && changes(&machine, blueprint, &wanted).is_empty()
        && growth(&machine.config, blueprint).is_none()
    {
        return Ok(());
    }
    if found.seed != wanted.seed {
        if let Some(old) = &found.seed {
            remove_seed(client, old, &found.owner).await?;
        }
        let planned = Record { is_configured: false, ..wanted.clone() };
        let description = vec![("description", record::replace(machine.description(), &planned))];
        step(client, id, &machine.node, write(client, &machine, &id.0, description)).await?;
    }
    if let Some((disk, size)) = growth(&machine.config, blueprint) {
        step(client, id, &machine.node, resize(client, &machine.node, &id.0, disk, size)).await?;
    }
    if let Some((seed, image)) = &image
        && !(found.is_configured && attached(&machine.config, seed, image))
    {
        step(client, id, &machine.node, upload(client, &machine.node, seed, image)).await?;
    }
    // Read again, because what was written has changed its digest, and because its owner may have changed.
    let (machine, _) = owned(client, &target).await?;
    let changes = changes(&machine, blueprint, &wanted);
    match changes.is_empty() {
        true => Ok(()),
        false => step(client, id, &machine.node, write(client, &machine, &id.0, changes)).await,
    }
}

async fn step(
    client: &Client,
    id: &MachineId,
    node: &str,
    request: impl Future<Output = Result<(), Trouble>>,
) -> Result<(), Failure> {
    match request.await {
        Err(trouble) => Err(after(client, &trouble, id, node, "configuring").await),
        Ok(()) => Ok(()),
    }
}

/// Writes keys of the configuration, unless somebody else has written since it was read.
pub(crate) async fn write(
    client: &Client,
    machine: &Machine,
    id: &str,
    mut changes: Vec<(&'static str, String)>,
) -> Result<(), Trouble> {
    changes.extend(machine.digest().map(|digest| ("digest", digest)));
    let (path, parts) = ("/nodes/{node}/qemu/{vmid}/config", [machine.node.as_str(), id]);
    let content = Content::Parameters(changes);
    client.send::<Value>(Call { method: Method::PUT, path, parts: &parts, content }).await.map(|_| ())
}

async fn resize(client: &Client, node: &str, id: &str, disk: &str, size: u64) -> Result<(), Trouble> {
    let size = match size % MIB {
        0 => format!("{}M", size / MIB),
        _ => size.to_string(),
    };
    let content = Content::Parameters(vec![("disk", disk.to_owned()), ("size", size)]);
    let (path, parts) = ("/nodes/{node}/qemu/{vmid}/resize", [node, id]);
    let task: Value = client.send(Call { method: Method::PUT, path, parts: &parts, content }).await?;
    follow(client, &task).await
}

async fn upload(client: &Client, node: &str, seed: &Seed, image: &Image) -> Result<(), Trouble> {
    let (path, parts) = ("/nodes/{node}/storage/{storage}/upload", [node, seed.storage.as_str()]);
    let content = Content::Upload { file: image.file.clone(), bytes: image.bytes.clone() };
    let task: Value = client.send(Call { method: Method::POST, path, parts: &parts, content }).await?;
    follow(client, &task).await
}

fn attached(config: &Config, seed: &Seed, image: &Image) -> bool {
    let drive = key(config, &seed.bus).unwrap_or_default();
    let volume = option(drive, "").or_else(|| option(drive, "file"));
    volume.is_some_and(|volume| volume == format!("{}:iso/{}", seed.storage, image.file))
}

/// The disk and its size, if it has to grow. A disk never shrinks.
fn growth<'a>(config: &Config, blueprint: &'a Blueprint) -> Option<(&'a str, u64)> {
    let disk = &blueprint.template.disk;
    let now = key(config, disk).and_then(|value| option(value, "size")).and_then(bytes)?;
    blueprint.disk_bytes.filter(|wanted| *wanted > now).map(|wanted| (disk.as_str(), wanted))
}

/// The keys that have to change.
fn changes(machine: &Machine, blueprint: &Blueprint, wanted: &Record) -> Vec<(&'static str, String)> {
    let config = &machine.config;
    let mut changes = Vec::new();
    let mut set = |name: &'static str, now: Option<String>, value: String| {
        if now.as_ref() != Some(&value) {
            changes.push((name, value));
        }
    };
    let number = |name: &str| key_number(config, name).map(|number| number.to_string());
    set("cores", number("cores"), blueprint.cpus.to_string());
    // Cores are counted per socket.
    set("sockets", number("sockets").or(Some("1".into())), "1".into());
    let memory = config.get("memory").map(as_text);
    // Since version 9: `current=2048`.
    let memory = memory.map(|memory| option(&memory, "current").unwrap_or(&memory).to_owned());
    let mebibytes = blueprint.memory / MIB;
    set("memory", memory, mebibytes.to_string());
    if let Some(balloon) = key_number(config, "balloon").filter(|balloon| *balloon > mebibytes) {
        set("balloon", Some(balloon.to_string()), mebibytes.to_string());
    }
    if let Some(network) = &blueprint.network {
        let now = key(config, "net0");
        set("net0", now.map(str::to_owned), interface(now, network));
    }
    // A clone inherits both. A machine that is protected cannot be destroyed, and one that starts with its node runs without its claim.
    for name in ["protection", "onboot"] {
        set(name, Some(number(name).unwrap_or_else(|| "0".into())), "0".into());
    }
    let now = tags(key(config, "tags").unwrap_or_default());
    if now != blueprint.tags {
        set("tags", None, blueprint.tags.iter().cloned().collect::<Vec<_>>().join(";"));
    }
    if let (Some(seed), Some(volume)) = (&blueprint.seed, &wanted.seed) {
        let drive = key(config, &seed.bus).unwrap_or_default();
        if option(drive, "").or_else(|| option(drive, "file")) != Some(&volume.volume) {
            set(bus(&seed.bus).unwrap_or_default(), None, format!("{},media=cdrom", volume.volume));
        }
    }
    if machine.record().as_ref() != Some(wanted) {
        set("description", None, record::replace(machine.description(), wanted));
    }
    changes
}

/// The interface with another bridge and VLAN: its model, its address (which the clone got for itself) and everything else stay.
fn interface(now: Option<&str>, network: &Network) -> String {
    let Some(now) = now.filter(|now| !now.is_empty()) else {
        let vlan = network.vlan.map(|vlan| format!(",tag={vlan}")).unwrap_or_default();
        return format!("virtio,bridge={}{vlan}", network.bridge);
    };
    let mut parts = Vec::new();
    for (name, value) in options(now) {
        match name {
            "bridge" | "tag" => {}
            "" => parts.push(value.to_owned()),
            _ => parts.push(format!("{name}={value}")),
        }
    }
    let position = parts.len().min(1);
    parts.insert(position, format!("bridge={}", network.bridge));
    parts.extend(network.vlan.map(|vlan| format!("tag={vlan}")));
    // The same options in another order are no change.
    let mut sorted: (Vec<&str>, Vec<&str>) = (now.split(',').collect(), parts.iter().map(String::as_str).collect());
    sorted.0.sort_unstable();
    sorted.1.sort_unstable();
    if sorted.0 == sorted.1 { now.to_owned() } else { parts.join(",") }
}

/// The drive of this name, if a seed can be attached to it.
fn bus(name: &str) -> Option<&'static str> {
    DRIVES.into_iter().find(|drive| *drive == name)
}
