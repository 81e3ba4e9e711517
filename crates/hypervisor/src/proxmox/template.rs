//! Finds templates, and what their storage allows.

use crate::proxmox::client::Client;
use crate::proxmox::resources::each;
use crate::proxmox::trouble::Trouble;
use crate::proxmox::wire::{Config, Resource, bytes, has_tag, key, option};
use fleet::hypervisor::{Failure, MachineId, Template, TemplateRef};
use futures::future::join_all;
use std::collections::{BTreeMap, BTreeSet};

/// Storages on which a clone can share the disk of its template, whatever the format of the disk.
const LINKING: [&str; 10] = ["btrfs", "cephfs", "cifs", "dir", "glusterfs", "lvmthin", "nfs", "rbd", "zfs", "zfspool"];
/// Where the first disk is looked for if nothing says what the machine boots from.
const BUSES: [&str; 4] = ["scsi", "virtio", "sata", "ide"];

pub(crate) async fn find(client: &Client, wanted: &TemplateRef) -> Result<Vec<Template>, Failure> {
    let mut resources = Vec::new();
    let keep = |resource: Resource| {
        let is_machine = ["qemu", "lxc"].contains(&resource.kind.as_str());
        if !is_machine || is_meant(&resource, wanted) {
            resources.push(resource);
        }
    };
    each(client, None, keep).await.map_err(|trouble| trouble.failure("listing templates"))?;
    let chosen = choose(&resources, wanted)?;
    let offline: BTreeSet<&str> = resources
        .iter()
        .filter(|resource| resource.kind == "node" && resource.status != "online")
        .map(|node| node.node.as_str())
        .collect();
    let online = chosen.into_iter().filter(|found| !offline.contains(found.node.as_str()));
    let readings = online.map(|found| async move {
        let parts: [&str; 2] = [&found.node, &found.vmid];
        (found, client.get::<Config>("/nodes/{node}/qemu/{vmid}/config", &parts).await)
    });
    let (mut templates, mut silent) = (Vec::new(), None);
    for (found, config) in join_all(readings).await {
        let failure = |trouble: Trouble| {
            trouble.about(&MachineId(found.vmid.clone()), &format!("reading template {}", found.vmid))
        };
        match config {
            Ok(config) => templates.push(template(found, &config, &resources)?),
            // The copies on other nodes can be used.
            Err(trouble) if trouble.may_be_of_node() => silent = Some(failure(trouble)),
            Err(trouble) => return Err(failure(trouble)),
        }
    }
    match templates.is_empty() {
        true => Err(silent.unwrap_or_else(|| {
            Failure::Transient(format!("every node with the template {} is offline", spelled(wanted)))
        })),
        false => Ok(templates),
    }
}

pub(crate) fn spelled(wanted: &TemplateRef) -> String {
    match wanted {
        TemplateRef::Id(id) => format!("with the id {}", id.0),
        TemplateRef::Name(name) => format!("with the name {name}"),
        TemplateRef::Tag(tag) => format!("with the tag {tag}"),
    }
}

/// Whether a template may be meant by its id, name or tag.
fn is_meant(resource: &Resource, wanted: &TemplateRef) -> bool {
    match wanted {
        TemplateRef::Id(id) => resource.vmid == id.0,
        TemplateRef::Name(name) => resource.name == *name,
        TemplateRef::Tag(tag) => has_tag(&resource.tags, tag),
    }
}

/// The templates that are meant: one for each node, the newest first.
pub(crate) fn choose<'a>(resources: &'a [Resource], wanted: &TemplateRef) -> Result<Vec<&'a Resource>, Failure> {
    let machines = resources.iter().filter(|resource| resource.kind == "qemu" && is_meant(resource, wanted));
    let (templates, others): (Vec<_>, Vec<_>) = machines.partition(|found| found.template);
    let number = |resource: &Resource| resource.vmid.parse::<u64>().unwrap_or_default();
    let mut by_node: BTreeMap<&str, &Resource> = BTreeMap::new();
    for found in templates {
        match by_node.get(found.node.as_str()) {
            Some(other) if matches!(wanted, TemplateRef::Name(_)) => {
                return Err(Failure::Configuration {
                    message: format!(
                        "templates {} and {} on node {} have the name {}",
                        other.vmid, found.vmid, found.node, found.name
                    ),
                    remedy: "name the template by its id or by a tag, or rename one of them".into(),
                });
            }
            Some(other) if number(other) > number(found) => {}
            _ => {
                by_node.insert(&found.node, found);
            }
        }
    }
    if !by_node.is_empty() {
        let mut found: Vec<&Resource> = by_node.into_values().collect();
        found.sort_by_key(|found| std::cmp::Reverse(number(found)));
        return Ok(found);
    }
    let what = spelled(wanted);
    Err(match others.first() {
        Some(other) => Failure::Configuration {
            message: format!("machine {} {what} is no template", other.vmid),
            remedy: format!("convert it (qm template {}), or name another one", other.vmid),
        },
        None => Failure::Configuration {
            message: format!("there is no template {what}, or it cannot be seen"),
            remedy: "name a template that exists, and grant VM.Audit and VM.Clone on it".into(),
        },
    })
}

pub(crate) fn template(found: &Resource, config: &Config, resources: &[Resource]) -> Result<Template, Failure> {
    let broken = |message: String| Failure::Configuration {
        message: format!("template {}: {message}", found.vmid),
        remedy: "give the template a disk and make it the first boot device".into(),
    };
    let (disk, value) = first_disk(config).ok_or_else(|| broken("it has no disk".into()))?;
    let volume = option(value, "").or_else(|| option(value, "file")).unwrap_or_default();
    let storage = volume.split_once(':').map(|(storage, _)| storage.to_owned());
    let storage = storage.ok_or_else(|| broken(format!("its disk {disk} is on no storage")))?;
    // A clone copies or links every disk, so that one that is local or cannot be linked decides about all.
    let others: BTreeSet<String> = storages(config).into_iter().filter(|other| *other != storage).collect();
    let facts = |name: &str| {
        resources
            .iter()
            .find(|resource| resource.kind == "storage" && resource.storage == name && resource.node == found.node)
    };
    let links = |facts: &Resource| LINKING.contains(&facts.plugintype.as_str());
    let is_shared = std::iter::once(&storage).chain(&others).all(|name| facts(name).is_some_and(|facts| facts.shared));
    // The check of privileges names a storage that cannot be seen.
    let can_link = facts(&storage).is_some_and(links) && others.iter().all(|name| facts(name).is_none_or(links));
    Ok(Template {
        id: MachineId(found.vmid.clone()),
        name: found.name.clone(),
        node: found.node.clone(),
        storage,
        others,
        is_shared,
        can_link,
        disk: disk.to_owned(),
        disk_bytes: option(value, "size").and_then(bytes).unwrap_or_default(),
        has_agent: has_agent(config),
    })
}

/// The storages of all volumes that a clone copies or links: also those of EFI variables and a TPM, and no images in drives.
pub(crate) fn storages(config: &Config) -> BTreeSet<String> {
    let is_volume = |name: &str| {
        let bus = name.trim_end_matches(|character: char| character.is_ascii_digit());
        bus != name && (BUSES.contains(&bus) || ["efidisk", "tpmstate"].contains(&bus))
    };
    let values = config.iter().filter(|(name, _)| is_volume(name)).filter_map(|(_, value)| value.as_str());
    let volumes = values.filter(|value| option(value, "media") != Some("cdrom"));
    let volumes = volumes.filter_map(|value| option(value, "").or_else(|| option(value, "file")));
    volumes.filter_map(|volume| volume.split_once(':')).map(|(storage, _)| storage.to_owned()).collect()
}

/// The disk that it boots from, or else the first one.
pub(crate) fn first_disk(config: &Config) -> Option<(&str, &str)> {
    let is_disk = |name: &str| {
        let bus = name.trim_end_matches(|character: char| character.is_ascii_digit());
        let value = config.get(name).and_then(|value| value.as_str()).unwrap_or_default();
        bus != name && BUSES.contains(&bus) && !value.is_empty() && option(value, "media") != Some("cdrom")
    };
    let order = key(config, "boot").and_then(|boot| option(boot, "order")).unwrap_or_default();
    let booted = order.split(';').find(|name| is_disk(name)).map(str::to_owned);
    let any =
        || BUSES.iter().flat_map(|bus| (0..31).map(move |number| format!("{bus}{number}"))).find(|name| is_disk(name));
    let name = booted.or_else(any)?;
    let (name, value) = config.get_key_value(&name)?;
    Some((name.as_str(), value.as_str()?))
}

/// `agent: 1`, `agent: enabled=1,fstrim_cloned_disks=1`.
fn has_agent(config: &Config) -> bool {
    let agent = config.get("agent").map(crate::proxmox::wire::as_text).unwrap_or_default();
    option(&agent, "").or_else(|| option(&agent, "enabled")) == Some("1")
}

#[cfg(test)]
mod tests {
    use super::{choose, first_disk, template};
    use crate::proxmox::wire::{Config, Resource};
    use fleet::hypervisor::{Failure, MachineId, TemplateRef};
    use serde_json::json;

    fn resources() -> Vec<Resource> {
        let machine = |id: u32, name: &str, node: &str, tags: &str, template: u8| json!({"type": "qemu", "vmid": id, "name": name, "node": node, "tags": tags, "template": template});
        let storage = |node: &str, name: &str, kind: &str, shared: u8| json!({"type": "storage", "node": node, "storage": name, "plugintype": kind, "shared": shared});
        let list = json!([
            machine(9000, "debian", "pve1", "ci;debian", 1),
            machine(9001, "debian", "pve2", "ci", 1),
            machine(9002, "debian-new", "pve1", "ci", 1),
            machine(9003, "twice", "pve1", "", 1),
            machine(9004, "twice", "pve1", "", 1),
            machine(100, "plain", "pve1", "web", 0),
            storage("pve1", "thin", "lvmthin", 0),
            storage("pve1", "block", "lvm", 1),
            storage("pve1", "ceph", "rbd", 1),
        ]);
        serde_json::from_value(list).unwrap()
    }

    #[test]
    fn a_template_is_found_by_id_name_and_tag_on_every_node() {
        let resources = resources();
        let ids = |wanted: TemplateRef| {
            let chosen = choose(&resources, &wanted).unwrap();
            chosen.into_iter().map(|found| found.vmid.clone()).collect::<Vec<_>>()
        };
        assert_eq!(ids(TemplateRef::Id(MachineId("9000".into()))), ["9000"]);
        assert_eq!(ids(TemplateRef::Name("debian".into())), ["9001", "9000"], "the newest first");
        assert_eq!(ids(TemplateRef::Tag("ci".into())), ["9002", "9001"], "the newest on each node");
        let refused = |wanted: TemplateRef| match choose(&resources, &wanted).unwrap_err() {
            Failure::Configuration { message, remedy } => format!("{message} | {remedy}"),
            other => panic!("{other:?}"),
        };
        assert!(
            refused(TemplateRef::Name("twice".into()))
                .starts_with("templates 9003 and 9004 on node pve1 have the name twice")
        );
        assert!(refused(TemplateRef::Id(MachineId("100".into()))).contains("qm template 100"));
        assert!(refused(TemplateRef::Id(MachineId("7".into()))).starts_with("there is no template with the id 7"));
        assert!(refused(TemplateRef::Tag("x".into())).starts_with("there is no template with the tag x"));
    }

    #[test]
    fn the_storages_of_all_disks_decide_about_linked_clones_and_other_nodes() {
        let resources = resources();
        let read = |volume: &str| {
            let config = json!({"boot": "order=scsi0;net0", "agent": "enabled=1", "scsi0": format!("{volume},size=8G"), "ide2": "none,media=cdrom"});
            template(&resources[0], &serde_json::from_value(config).unwrap(), &resources)
        };
        let thin = read("thin:base-9000-disk-0").unwrap();
        assert_eq!((thin.storage.as_str(), thin.disk.as_str(), thin.disk_bytes), ("thin", "scsi0", 8 << 30));
        assert!(thin.can_link && !thin.is_shared && thin.has_agent);
        let block = read("block:base-9000-disk-0").unwrap();
        assert!(!block.can_link && block.is_shared);
        let ceph = read("ceph:base-9000-disk-0").unwrap();
        assert!(ceph.can_link && ceph.is_shared);
        let with = |key: &str, volume: &str| {
            let config =
                json!({"scsi0": "ceph:base-9000-disk-0,size=8G", key: volume, "ide2": "thin:iso/x.iso,media=cdrom"});
            let found = template(&resources[0], &serde_json::from_value(config).unwrap(), &resources).unwrap();
            (found.can_link, found.is_shared, found.others.into_iter().collect::<Vec<_>>().join(" "))
        };
        assert_eq!(with("efidisk0", "thin:base-9000-disk-1,size=4M"), (true, false, "thin".to_owned()));
        assert_eq!(with("tpmstate0", "block:base-9000-disk-1,size=4M"), (false, true, "block".to_owned()));
        assert_eq!(with("scsi1", "ceph:base-9000-disk-1,size=4M"), (true, true, String::new()));
        assert!(read("/dev/sda").is_err() && !read("other:x").unwrap().can_link);
    }

    #[test]
    fn the_first_disk_is_the_one_that_is_booted() {
        let first = |config: serde_json::Value| {
            let config: Config = serde_json::from_value(config).unwrap();
            first_disk(&config).map(|(name, _)| name.to_owned())
        };
        assert_eq!(
            first(
                json!({"boot": "order=ide2;virtio1;scsi0", "scsi0": "a:b", "virtio1": "a:c", "ide2": "a:d,media=cdrom"})
            ),
            Some("virtio1".into())
        );
        assert_eq!(
            first(json!({"virtio0": "a:b", "scsihw": "virtio-scsi-pci", "net0": "virtio=A"})),
            Some("virtio0".into())
        );
        assert_eq!(first(json!({"ide2": "a:b,media=cdrom"})), None);
    }
}
