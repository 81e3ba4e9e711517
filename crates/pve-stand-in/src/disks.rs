//! The disks of a clone, and the drives that a change of a configuration creates.

use crate::effects::CloneWork;
use crate::property::{self, Properties};
use crate::stand_in::StandIn;
use crate::storage::Volume;
use crate::vm::{is_cdrom, is_drive, volume_of};
use std::time::Duration;

/// The size of the drive with the data for cloud-init.
const CLOUDINIT_BYTES: u64 = 4 << 20;

/// Gives a new VM its configuration and its disks.
pub(crate) fn copy(state: &mut StandIn, clone: &CloneWork, now: Duration) -> Result<(), String> {
    let source = state.vms.get(&clone.source).ok_or_else(|| format!("no such VM ('{}')", clone.source))?.clone();
    let mut config = source.config.clone();
    config.remove("name");
    config.retain(|key, _| !key.starts_with("unused"));
    for (key, value) in &mut config {
        if crate::config::is_key("net[n]", key) {
            let mut net = Properties::parse(value);
            let model = net.first().map(|(name, value)| if name.is_empty() { value } else { name });
            if let Some(model) = model.map(str::to_owned) {
                net.set_first(&model, &state.random.mac());
                *value = net.text();
            }
        } else if key == "smbios1" || key == "vmgenid" {
            let uuid = state.random.uuid();
            *value = if key == "smbios1" { format!("uuid={uuid}") } else { uuid };
        } else if is_drive(key) {
            *value = copy_drive(state, clone, value, now)?;
        }
    }
    let old_name = source.name().unwrap_or("VM").to_owned();
    config.insert("name".to_owned(), clone.name.clone().unwrap_or_else(|| format!("Copy-of-VM-{old_name}")));
    if let Some(description) = &clone.description {
        config.insert("description".to_owned(), description.trim_end().to_owned());
    }
    let new = state.vms.get_mut(&clone.new).ok_or_else(|| format!("no such VM ('{}')", clone.new))?;
    new.config = config;
    Ok(())
}

fn copy_drive(state: &mut StandIn, clone: &CloneWork, value: &str, now: Duration) -> Result<String, String> {
    let mut drive = Properties::parse(value);
    let Some(volume) = volume_of(&drive).map(str::to_owned) else { return Ok(value.to_owned()) };
    let old_storage = volume.split(':').next().unwrap_or_default().to_owned();
    if is_cdrom(&drive) && !volume.contains("-cloudinit") {
        return Ok(value.to_owned());
    }
    let created = state.clock(now);
    let bytes = drive.get("size").and_then(property::bytes).unwrap_or_default();
    let old = state.storages.get(&old_storage).and_then(|storage| storage.volume(&clone.node, &volume));
    let old = old.ok_or_else(|| format!("volume '{volume}' does not exist"))?.clone();
    let name = clone.storage.clone().filter(|_| clone.is_full).unwrap_or(old_storage);
    let storage = state.storages.get_mut(&name).ok_or_else(|| format!("storage '{name}' does not exist"))?;
    let base = (!clone.is_full).then_some(volume.as_str());
    let id = storage.new_disk(&name, &clone.node, clone.new, base);
    let allocated = if clone.is_full { old.bytes } else { 0 };
    storage.check_space(&clone.node, &id, allocated)?;
    let new = Volume {
        content: "images",
        format: storage.kind.format(),
        bytes: old.bytes.max(bytes),
        allocated,
        vmid: Some(clone.new),
        parent: base.map(str::to_owned),
        created,
        data: Vec::new(),
    };
    storage.volumes.insert((storage.place(&clone.node), id.clone()), new);
    drive.set_first("", &id);
    Ok(drive.text())
}

/// The value of a drive as it is stored: with its size, and with a new volume where one is asked for.
pub(crate) fn set(state: &mut StandIn, vmid: u32, node: &str, value: &str, created: i64) -> Result<String, String> {
    let mut drive = Properties::parse(value);
    let Some(volume) = volume_of(&drive).map(str::to_owned) else { return Ok(value.to_owned()) };
    let (name, wanted) = volume.split_once(':').unwrap_or_default();
    let storage = state.storages.get_mut(name).ok_or_else(|| format!("storage '{name}' does not exist"))?;
    let is_cloudinit = wanted == "cloudinit";
    let gib = wanted.parse::<u64>().ok();
    if is_cloudinit || gib.is_some() {
        let id = match is_cloudinit {
            true => match storage.kind.has_files() {
                true => format!("{name}:{vmid}/vm-{vmid}-cloudinit.qcow2"),
                false => format!("{name}:vm-{vmid}-cloudinit"),
            },
            false => storage.new_disk(name, node, vmid, None),
        };
        let bytes = gib.map_or(CLOUDINIT_BYTES, |gib| gib << 30);
        storage.check_space(node, &id, bytes)?;
        let new = Volume {
            content: "images",
            format: storage.kind.format(),
            bytes,
            allocated: bytes,
            vmid: Some(vmid),
            parent: None,
            created,
            data: Vec::new(),
        };
        storage.volumes.insert((storage.place(node), id.clone()), new);
        drive.set_first("", &id);
        if is_cloudinit {
            drive.set("media", "cdrom");
        }
        drive.set("size", &property::size(bytes));
    } else if let Some(found) = storage.volume(node, &volume) {
        drive.set("size", &property::size(found.bytes));
    }
    Ok(drive.text())
}
