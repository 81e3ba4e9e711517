//! On which node a machine is created: where its template is, and where there is room with the stated overcommit.

use crate::hypervisor::{Listed, NodeState, Power, Seen, StorageState, Template};
use api::fleet::Overcommit;
use std::collections::{BTreeMap, BTreeSet};

/// A linked clone needs little space at first, but not none.
const ROOM_OF_LINKED_CLONE: u64 = 1 << 30;

/// What is promised to machines on one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Load {
    /// CPUs of machines that run or are about to.
    pub cpus: u32,
    /// Their memory in bytes.
    pub memory: u64,
    /// The part of it that those need that do not run yet, so that the node does not show it as used.
    pub coming: u64,
}

impl Load {
    /// With another machine.
    pub fn add(&mut self, cpus: u32, memory: u64) {
        (self.cpus, self.memory) = (self.cpus.saturating_add(cpus), self.memory.saturating_add(memory));
    }

    /// With another machine that does not run yet.
    pub fn promise(&mut self, cpus: u32, memory: u64) {
        self.add(cpus, memory);
        self.coming = self.coming.saturating_add(memory);
    }

    /// Without a machine that was promised.
    pub fn retract(&mut self, cpus: u32, memory: u64) {
        self.remove(cpus, memory);
        self.coming = self.coming.saturating_sub(memory);
    }

    /// Without a machine.
    pub fn remove(&mut self, cpus: u32, memory: u64) {
        (self.cpus, self.memory) = (self.cpus.saturating_sub(cpus), self.memory.saturating_sub(memory));
    }
}

/// What a machine needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// CPUs.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory: u64,
    /// The size of its disk in bytes.
    pub disk: u64,
    /// The storage of a full clone; nothing for a linked one.
    pub storage: Option<String>,
    /// Whether it has to be a linked clone.
    pub must_link: bool,
}

/// Whether a list shows that a machine takes something of its node: a stopped machine of somebody else may never run again; one that is being cloned will.
pub fn counts(seen: &Seen) -> bool {
    !seen.is_template && (seen.power != Power::Stopped || seen.lock.is_some())
}

/// What the machines of a list promise of every node.
pub fn loads(listed: &Listed) -> BTreeMap<String, Load> {
    let mut loads: BTreeMap<String, Load> = BTreeMap::new();
    for seen in listed.machines.values().filter(|seen| counts(seen)) {
        let load = loads.entry(seen.node.to_string()).or_default();
        match seen.power {
            Power::Stopped => load.promise(seen.cpus, seen.memory),
            _ => load.add(seen.cpus, seen.memory),
        }
    }
    loads
}

/// A storage: of one node, or without a node if nodes share it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct StorageId {
    /// The node; empty if nodes share the storage.
    pub node: String,
    /// Its name.
    pub name: String,
}

/// What a machine takes of a storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// The storage.
    pub of: StorageId,
    /// So many bytes.
    pub bytes: u64,
}

/// What is promised to machines, and what a list does not show as used yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Promised {
    /// CPUs and memory of every node.
    pub nodes: BTreeMap<String, Load>,
    /// Bytes of every storage that machines need whose disks are still to be written.
    pub storages: BTreeMap<StorageId, u64>,
}

impl Promised {
    /// Promises space.
    pub fn add_space(&mut self, space: &Space) {
        let bytes = self.storages.entry(space.of.clone()).or_default();
        *bytes = bytes.saturating_add(space.bytes);
    }

    /// Takes a promise of space back.
    pub fn remove_space(&mut self, space: &Space) {
        if let Some(bytes) = self.storages.get_mut(&space.of) {
            *bytes = bytes.saturating_sub(space.bytes);
            if *bytes == 0 {
                self.storages.remove(&space.of);
            }
        }
    }
}

impl StorageId {
    /// A storage as a node has it.
    pub fn on(node: &str, name: &str, is_shared: bool) -> StorageId {
        StorageId { node: if is_shared { String::new() } else { node.to_owned() }, name: name.to_owned() }
    }
}

const MORE_ROOM: &str = "end machines, or raise the overcommit of the HypervisorCluster";

/// What is missing on each node, and what to do, each once.
#[derive(Default)]
struct Missing {
    found: Vec<String>,
    remedies: Vec<String>,
}

impl Missing {
    fn add(&mut self, found: String, remedy: &str) {
        self.found.push(found);
        if !self.remedies.iter().any(|known| known == remedy) {
            self.remedies.push(remedy.to_owned());
        }
    }
}

/// The node with the most free memory on which the machine fits, and the template to clone there; or what is missing on each node. No node is
/// chosen that is avoided.
pub fn choose<'a>(
    need: &Need,
    templates: &'a [Template],
    nodes: &[String],
    avoided: &BTreeSet<String>,
    listed: &Listed,
    promised: &Promised,
    overcommit: Overcommit,
) -> Result<(String, &'a Template), String> {
    let mut best: Option<(u64, String, &Template)> = None;
    let mut missing = Missing::default();
    for (name, node) in &listed.nodes {
        if !nodes.is_empty() && !nodes.contains(name) {
            continue;
        }
        if !node.is_online {
            missing.add(format!("{name} is offline"), "bring the nodes back that are offline");
            continue;
        }
        if avoided.contains(name) {
            missing.add(
                format!("{name} has machines that could not be looked at, one of which may be this claim's"),
                "see why the node does not answer, or set nodes of the HypervisorCluster to the others",
            );
            continue;
        }
        let Some(template) = template_for(need, name, templates, listed) else {
            let (found, remedy) = no_template(need, name, templates, listed);
            missing.add(found, remedy);
            continue;
        };
        if need.must_link && !template.can_link {
            missing.add(
                format!("{name}: the storage {} of the template makes no linked clones", template.storage),
                "leave linkedClone out",
            );
            continue;
        }
        let load = promised.nodes.get(name).copied().unwrap_or_default();
        // Overcommit is for many machines; the hypervisor starts none with more CPUs than the node has.
        if need.cpus > node.cpus {
            let found = format!("{name} has {} CPUs, and the machine needs {}", node.cpus, need.cpus);
            missing.add(found, "lower resources.cpu of the template, or allow larger nodes");
            continue;
        }
        let cpus = u64::from(node.cpus) * u64::from(overcommit.cpu_percent) / 100;
        let free_cpus = cpus.saturating_sub(u64::from(load.cpus));
        if free_cpus < u64::from(need.cpus) {
            missing.add(format!("{name} has {free_cpus} of {} CPUs left", need.cpus), MORE_ROOM);
            continue;
        }
        let free = free_memory(node, load, overcommit);
        if free < need.memory {
            missing.add(format!("{name} has {} of {} memory left", shown(free), shown(need.memory)), MORE_ROOM);
            continue;
        }
        if let Some((found, remedy)) = lacks_space(need, name, template, listed, promised, overcommit) {
            missing.add(found, &remedy);
            continue;
        }
        if best.as_ref().is_none_or(|(most, _, _)| free > *most) {
            best = Some((free, name.clone(), template));
        }
    }
    match best {
        Some((_, node, template)) => Ok((node, template)),
        None if missing.found.is_empty() => Err("no node of the hypervisor may be used; check spec.nodes".to_owned()),
        None => Err(format!("{}: {}", missing.found.join("; "), missing.remedies.join("; "))),
    }
}

/// The template to clone on a node: the newest, which has the highest id, of those that can be cloned there.
pub fn template_for<'a>(need: &Need, node: &str, templates: &'a [Template], listed: &Listed) -> Option<&'a Template> {
    let can =
        |template: &&Template| reaches(node, template, listed) && unreached(need, node, template, listed).is_none();
    templates.iter().filter(can).max_by_key(|template| (template.id.number(), template.node == node))
}

/// Whether a template is on a node, or on storages that the node shares.
fn reaches(node: &str, template: &Template, listed: &Listed) -> bool {
    let is_there = |storage: &String| listed.storages.contains_key(&(node.to_owned(), storage.clone()));
    let is_all_there = || std::iter::once(&template.storage).chain(&template.others).all(is_there);
    template.node == node || (template.is_shared && is_all_there())
}

/// Why a template of another node cannot be cloned in full to the storage that is wanted: the node of the template writes the disk, so that both nodes
/// have to share the storage.
fn unreached(need: &Need, node: &str, template: &Template, listed: &Listed) -> Option<String> {
    let storage = need.storage.as_ref().filter(|storage| !storage.is_empty())?;
    if template.node == node {
        return None;
    }
    let of = &template.node;
    let on = |node: &str| listed.storages.get(&(node.to_owned(), storage.clone()));
    match (on(of), on(node)) {
        (None, _) => Some(format!("{node}: the template is on {of}, which has no storage {storage}")),
        (_, Some(state)) if !state.is_shared => {
            Some(format!("{node}: the template is on {of}, and the storage {storage} is not shared"))
        }
        (Some(_), _) => None,
    }
}

/// Why no template can be cloned to a node, and what to do.
fn no_template(need: &Need, node: &str, templates: &[Template], listed: &Listed) -> (String, &'static str) {
    let mut near = templates.iter().filter(|template| reaches(node, template, listed));
    match near.find_map(|template| unreached(need, node, template, listed)) {
        Some(found) => {
            (found, "name a shared storage that all these nodes have, or put a copy of the template on every node")
        }
        None => (
            format!("{node} has neither the template nor its storage"),
            "put the template on shared storage, or a copy of it on every node",
        ),
    }
}

/// How many more machines fit, all nodes together: as many as [`choose`] would find a place for, one after the other.
pub fn fits(
    need: &Need,
    templates: &[Template],
    nodes: &[String],
    listed: &Listed,
    promised: &Promised,
    overcommit: Overcommit,
) -> u32 {
    let mut fits = 0_u64;
    // What machines may still take of each storage.
    let mut left: BTreeMap<StorageId, u64> = BTreeMap::new();
    for (name, node) in &listed.nodes {
        if !node.is_online || (!nodes.is_empty() && !nodes.contains(name)) || need.cpus > node.cpus {
            continue;
        }
        let Some(template) =
            template_for(need, name, templates, listed).filter(|found| !need.must_link || found.can_link)
        else {
            continue;
        };
        let load = promised.nodes.get(name).copied().unwrap_or_default();
        let cpus = u64::from(node.cpus) * u64::from(overcommit.cpu_percent) / 100;
        let by_cpu = cpus.saturating_sub(u64::from(load.cpus)) / u64::from(need.cpus.max(1));
        let on_node = by_cpu.min(free_memory(node, load, overcommit) / need.memory.max(1));
        let storage = need.storage.as_ref().unwrap_or(&template.storage);
        if storage.is_empty() {
            fits = fits.saturating_add(on_node);
            continue;
        }
        let state = listed.storages.get(&(name.clone(), storage.clone()));
        let Some((state, space)) = state.zip(space(need, name, template, listed)) else { continue };
        let (free, _) = free_space((name, storage), state, promised, overcommit);
        let left = left.entry(space.of).or_insert(free);
        let bytes = space.bytes.max(1);
        let on_node = on_node.min(*left / bytes);
        *left = left.saturating_sub(on_node.saturating_mul(bytes));
        fits = fits.saturating_add(on_node);
    }
    u32::try_from(fits).unwrap_or(u32::MAX)
}

/// How much memory may still be promised on a node.
pub fn free_memory(node: &NodeState, load: Load, overcommit: Overcommit) -> u64 {
    // Without overcommit, what the node itself uses counts as well.
    let really = node.memory_used.saturating_add(load.coming);
    let used = if overcommit.memory_percent > 100 { load.memory } else { load.memory.max(really) };
    percent(node.memory, overcommit.memory_percent).saturating_sub(used)
}

/// The space that a machine takes on a node; nothing where the hypervisor finds the space itself, or has no such storage there.
pub fn space(need: &Need, node: &str, template: &Template, listed: &Listed) -> Option<Space> {
    let name = need.storage.as_ref().unwrap_or(&template.storage);
    let storage = listed.storages.get(&(node.to_owned(), name.clone()))?;
    let bytes = match &need.storage {
        Some(_) => need.disk,
        None => ROOM_OF_LINKED_CLONE.min(need.disk),
    };
    Some(Space { of: StorageId::on(node, name, storage.is_shared), bytes })
}

/// How much space may still be promised on a storage of a node, and how much of it is promised already.
pub fn free_space(
    (node, name): (&str, &str),
    state: &StorageState,
    promised: &Promised,
    overcommit: Overcommit,
) -> (u64, u64) {
    let coming = promised.storages.get(&StorageId::on(node, name, state.is_shared)).copied().unwrap_or_default();
    let used = state.used.saturating_add(coming);
    (percent(state.bytes, overcommit.storage_percent).saturating_sub(used), coming)
}

fn lacks_space(
    need: &Need,
    node: &str,
    template: &Template,
    listed: &Listed,
    promised: &Promised,
    overcommit: Overcommit,
) -> Option<(String, String)> {
    let storage = need.storage.as_ref().unwrap_or(&template.storage);
    if storage.is_empty() {
        // The hypervisor finds the space itself.
        return None;
    }
    let found = listed.storages.get(&(node.to_owned(), storage.clone())).zip(space(need, node, template, listed));
    let Some((state, wanted)) = found else {
        let remedy = "name a storage that these nodes have".to_owned();
        return Some((format!("{node} has no storage {storage}"), remedy));
    };
    let (free, coming) = free_space((node, storage), state, promised, overcommit);
    let mut found = format!("{storage} on {node} has {} of {} left", shown(free), shown(wanted.bytes));
    if coming > 0 {
        found = format!("{found}, because {} are for machines that are being created", shown(coming));
    }
    (free < wanted.bytes).then(|| (found, format!("free space on {storage}, name another storage, or end machines")))
}

pub(crate) fn percent(amount: u64, percent: u32) -> u64 {
    u64::try_from(u128::from(amount) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}

/// An amount of bytes for people.
pub fn shown(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 10 << 30 => format!("{} GiB", bytes >> 30),
        bytes => format!("{} MiB", bytes >> 20),
    }
}

#[cfg(test)]
mod tests;
