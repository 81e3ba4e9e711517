//! A storage and the volumes on it.

use std::collections::{BTreeMap, BTreeSet};

/// The kind of a storage, which decides what is possible on it and what its errors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageKind {
    /// A directory of a node.
    Dir,
    /// A network file system, shared.
    Nfs,
    /// Logical volumes in a thin pool.
    LvmThin,
    /// Plain logical volumes: no linked clones.
    Lvm,
    /// Ceph, shared.
    Rbd,
}

impl StorageKind {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            StorageKind::Dir => "dir",
            StorageKind::Nfs => "nfs",
            StorageKind::LvmThin => "lvmthin",
            StorageKind::Lvm => "lvm",
            StorageKind::Rbd => "rbd",
        }
    }

    /// Whether its volumes are files.
    pub(crate) fn has_files(self) -> bool {
        matches!(self, StorageKind::Dir | StorageKind::Nfs)
    }

    pub(crate) fn can_link(self) -> bool {
        !matches!(self, StorageKind::Lvm)
    }

    pub(crate) fn format(self) -> &'static str {
        if self.has_files() { "qcow2" } else { "raw" }
    }

    /// The error when a volume does not fit.
    pub(crate) fn no_space(self, volume: &str, needed: u64, free: u64) -> String {
        let name = volume.split_once(':').map_or(volume, |(_, name)| name);
        match self {
            StorageKind::Dir | StorageKind::Nfs => {
                format!("unable to create image: qemu-img: {name}: No space left on device")
            }
            StorageKind::LvmThin => format!(
                "lvcreate 'pve/{name}' error:   Cannot create new thin volume, free space in thin pool pve/data reached threshold."
            ),
            StorageKind::Lvm => format!("not enough free space ({} < {})", free >> 10, needed >> 10),
            StorageKind::Rbd => format!("rbd create '{name}' error: rbd: create error: (28) No space left on device"),
        }
    }
}

/// A storage.
#[derive(Debug, Clone, PartialEq)]
pub struct Storage {
    /// Its kind.
    pub kind: StorageKind,
    /// Whether all nodes see the same volumes.
    pub is_shared: bool,
    /// What it may have: `images`, `iso`, `snippets` ...
    pub content: BTreeSet<String>,
    /// The nodes that have it; all if it is empty.
    pub nodes: BTreeSet<String>,
    /// Its size in bytes, on each node if it is not shared.
    pub bytes: u64,
    /// Whether it is reported and treated as full, whatever is on it.
    pub is_full: bool,
    /// The volumes by node (empty if it is shared) and id.
    pub volumes: BTreeMap<(String, String), Volume>,
}

/// A volume.
#[derive(Debug, Clone, PartialEq)]
pub struct Volume {
    /// What it is: `images` or `iso`.
    pub content: &'static str,
    /// Its format.
    pub format: &'static str,
    /// Its size in bytes.
    pub bytes: u64,
    /// How much of the storage it takes; a linked clone takes nothing at first.
    pub allocated: u64,
    /// The VM that it belongs to.
    pub vmid: Option<u32>,
    /// The base volume of a linked clone.
    pub parent: Option<String>,
    /// When it was created, in seconds since 1970.
    pub created: i64,
    /// The content of an upload.
    pub data: Vec<u8>,
}

impl Storage {
    pub(crate) fn is_on(&self, node: &str) -> bool {
        self.nodes.is_empty() || self.nodes.contains(node)
    }

    /// Where the volumes are that a node sees.
    pub(crate) fn place(&self, node: &str) -> String {
        if self.is_shared { String::new() } else { node.to_owned() }
    }

    pub(crate) fn volume(&self, node: &str, id: &str) -> Option<&Volume> {
        self.volumes.get(&(self.place(node), id.to_owned()))
    }

    pub(crate) fn volumes_on(&self, node: &str) -> impl Iterator<Item = (&str, &Volume)> {
        let place = self.place(node);
        self.volumes
            .iter()
            .filter(move |((found, _), _)| *found == place)
            .map(|((_, id), volume)| (id.as_str(), volume))
    }

    pub(crate) fn used(&self, node: &str) -> u64 {
        match self.is_full {
            true => self.bytes,
            false => self.volumes_on(node).map(|(_, volume)| volume.allocated).sum::<u64>().min(self.bytes),
        }
    }

    pub(crate) fn free(&self, node: &str) -> u64 {
        self.bytes - self.used(node)
    }

    /// The error if a volume does not fit.
    pub(crate) fn check_space(&self, node: &str, id: &str, needed: u64) -> Result<(), String> {
        let free = self.free(node);
        match self.is_full || free < needed {
            true => Err(self.kind.no_space(id, needed, free)),
            false => Ok(()),
        }
    }

    /// A name for a disk of a VM that is not in use, neither with a base nor without one.
    pub(crate) fn new_disk(&self, storage: &str, node: &str, vmid: u32, base: Option<&str>) -> String {
        let base = base.and_then(|base| base.split_once(':')).map(|(_, base)| base);
        let is_taken = |number: u32| {
            let ids = [None, base].map(|base| self.disk_id(storage, vmid, number, base));
            ids.into_iter().any(|id| self.volume(node, &id).is_some())
        };
        let number = (0..).find(|number| !is_taken(*number)).unwrap_or(0_u32);
        self.disk_id(storage, vmid, number, base)
    }

    fn disk_id(&self, storage: &str, vmid: u32, number: u32, base: Option<&str>) -> String {
        let name = self.disk_name(vmid, number);
        match (base, self.kind) {
            (Some(base), StorageKind::Dir | StorageKind::Nfs) => format!("{storage}:{base}/{vmid}/{name}"),
            (Some(base), StorageKind::Rbd) => format!("{storage}:{base}/{name}"),
            (None, StorageKind::Dir | StorageKind::Nfs) => format!("{storage}:{vmid}/{name}"),
            _ => format!("{storage}:{name}"),
        }
    }

    fn disk_name(&self, vmid: u32, number: u32) -> String {
        let suffix = if self.kind.has_files() { ".qcow2" } else { "" };
        format!("vm-{vmid}-disk-{number}{suffix}")
    }
}
