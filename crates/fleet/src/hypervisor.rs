//! What the fleet asks of a hypervisor, and what it answers. A provider carries requests out, one at a time for each machine; nothing here
//! touches the world.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A hypervisor: namespace and name of its `HypervisorCluster`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// What a hypervisor calls a machine: the VMID of Proxmox VE, the name of a `VirtualMachine` of KubeVirt. It may be used again for
/// another machine, so that it never proves whose a machine is: an [`Owner`] does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MachineId(pub String);

impl MachineId {
    /// The id as a number; 0 where ids are names.
    pub fn number(&self) -> u64 {
        self.0.parse().unwrap_or_default()
    }
}

/// Whose a machine is. It is written in the same request that creates the machine, and read again right before it is stopped or
/// destroyed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// Which installation of the fleet made it; several may share a hypervisor.
    pub operator: String,
    /// `NAMESPACE/NAME` of its `MachineClaim`.
    pub claim: String,
    /// The uid of that claim.
    pub uid: String,
}

/// One request to one hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The hypervisor.
    pub cluster: ClusterKey,
    /// The address that was decided for: at another one there may be another hypervisor.
    pub endpoint: String,
    /// What to do.
    pub operation: Operation,
}

/// What a hypervisor is asked to do. Every operation that starts a task is answered when the task has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Log in, and find out what is there and what is allowed.
    Check,
    /// List all machines, whosever they are, and what nodes and storages have left. One pair of requests, however many there are.
    List,
    /// Find a template.
    FindTemplate(TemplateRef),
    /// Read one machine with its owner.
    Inspect(MachineId),
    /// Clone a template into a new machine that has its owner from the first moment.
    Create(Box<Blueprint>),
    /// Bring hardware, network, disks, seed and tags of a machine to what the blueprint says; what is so already stays.
    Configure(Box<Blueprint>),
    /// Switch it on.
    Start(Target),
    /// Switch it off without asking the guest.
    Stop(Target),
    /// Switch it off, delete it with its disks and its seed, and see that it is gone.
    Destroy(Target),
    /// Find out whether the hypervisor has halted a machine that a list shows as running.
    Look(Target),
    /// Ask the guest for its addresses.
    Addresses(Target),
    /// Detach the image of its seed, which the guest has read, and delete it.
    RemoveSeed(Target),
    /// Let the guest agent write the files of a seed and run cloud-init; what is done already is not done again. It does not wait for
    /// the end of cloud-init.
    Deliver(Box<Delivery>),
    /// List the images of seeds of this installation.
    ListSeeds(SeedSearch),
    /// Delete an image that no machine needs any more.
    DeleteSeed(SeedImage),
    /// Forget the connection and the credentials: the `HypervisorCluster` is gone.
    Disconnect,
}

impl Operation {
    /// The machine that it is about.
    pub fn machine(&self) -> Option<&MachineId> {
        match self {
            Operation::Check
            | Operation::List
            | Operation::FindTemplate(_)
            | Operation::ListSeeds(_)
            | Operation::DeleteSeed(_)
            | Operation::Disconnect => None,
            Operation::Inspect(id) => Some(id),
            Operation::Create(blueprint) | Operation::Configure(blueprint) => Some(&blueprint.id),
            Operation::Start(target)
            | Operation::Stop(target)
            | Operation::Destroy(target)
            | Operation::Look(target)
            | Operation::Addresses(target)
            | Operation::RemoveSeed(target) => Some(&target.id),
            Operation::Deliver(delivery) => Some(&delivery.target.id),
        }
    }
}

impl Operation {
    /// The node on which it changes something, as far as that is known.
    pub fn node(&self) -> Option<&str> {
        match self {
            Operation::Create(blueprint) | Operation::Configure(blueprint) => Some(&blueprint.node),
            Operation::Start(target)
            | Operation::Stop(target)
            | Operation::Destroy(target)
            | Operation::Look(target)
            | Operation::Addresses(target)
            | Operation::RemoveSeed(target) => target.node.as_deref(),
            Operation::Deliver(delivery) => delivery.target.node.as_deref(),
            Operation::DeleteSeed(image) => Some(&image.node),
            Operation::Check
            | Operation::List
            | Operation::FindTemplate(_)
            | Operation::Inspect(_)
            | Operation::ListSeeds(_)
            | Operation::Disconnect => None,
        }
    }
}

/// A machine, and whose it must be: otherwise the operation fails with [`Failure::NotOurs`] and nothing is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The machine.
    pub id: MachineId,
    /// The node it was last seen on; it may have moved.
    pub node: Option<String>,
    /// Whose it must be.
    pub owner: Owner,
}

/// How a template is named.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TemplateRef {
    /// By its id.
    Id(MachineId),
    /// By its name, which has to be unique among templates of its node.
    Name(String),
    /// By a tag: of several, the newest (the highest id) on each node.
    Tag(String),
}

/// A template that exists; one for each node that has it. A template on shared storage can be cloned to any node that has the storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    /// Its id.
    pub id: MachineId,
    /// Its name.
    pub name: String,
    /// The node it is on.
    pub node: String,
    /// The storage of its first disk; empty if the hypervisor chooses storages itself.
    pub storage: String,
    /// The storages of its other disks, such as those of EFI variables and a TPM.
    pub others: BTreeSet<String>,
    /// Whether all these storages are shared by nodes.
    pub is_shared: bool,
    /// Whether linked clones are possible on all these storages.
    pub can_link: bool,
    /// The name of its first disk, such as `scsi0`.
    pub disk: String,
    /// The size of that disk in bytes.
    pub disk_bytes: u64,
    /// Whether its configuration switches the guest agent on.
    pub has_agent: bool,
}

/// A machine as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blueprint {
    /// Its id.
    pub id: MachineId,
    /// Its name, which is also its host name.
    pub name: String,
    /// Whose it is.
    pub owner: Owner,
    /// The node it is created on.
    pub node: String,
    /// What it is cloned from.
    pub template: Template,
    /// Whether it shares the template's disk.
    pub is_linked: bool,
    /// The storage of its disk, if it is a full clone.
    pub storage: Option<String>,
    /// The resource pool of the hypervisor that it is put into.
    pub pool: Option<String>,
    /// CPUs.
    pub cpus: u32,
    /// Memory in bytes.
    pub memory: u64,
    /// The size of its disk in bytes; a disk only grows.
    pub disk_bytes: Option<u64>,
    /// Its network; nothing to leave the template's as it is.
    pub network: Option<Network>,
    /// Tags that people see; they prove nothing.
    pub tags: BTreeSet<String>,
    /// Its first configuration.
    pub seed: Option<Seed>,
}

/// The first network interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    /// The bridge.
    pub bridge: String,
    /// The VLAN.
    pub vlan: Option<u16>,
}

/// The files of a NoCloud seed. They contain no secret but the token of a guest, which works once and not for long; they are never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Seed {
    /// Where the image is uploaded to.
    pub storage: String,
    /// Where it is attached, such as `ide2` or, on arm64, `scsi2`.
    pub bus: String,
    /// The files by name: `user-data`, `meta-data`, `network-config`.
    pub files: BTreeMap<String, String>,
}

impl std::fmt::Debug for Seed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.files.keys().collect();
        f.debug_struct("Seed").field("storage", &self.storage).field("bus", &self.bus).field("files", &names).finish()
    }
}

/// A seed that the guest agent carries out.
#[derive(Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The machine.
    pub target: Target,
    /// The files by name, as in a [`Seed`].
    pub files: BTreeMap<String, String>,
}

impl std::fmt::Debug for Delivery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&String> = self.files.keys().collect();
        f.debug_struct("Delivery").field("target", &self.target).field("files", &names).finish()
    }
}

/// Which images of seeds are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeedSearch {
    /// The installation that made them.
    pub operator: String,
    /// The storages where they may be.
    pub storages: BTreeSet<String>,
}

/// The image of a seed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SeedImage {
    /// A node that has it.
    pub node: String,
    /// What the hypervisor calls it.
    pub volume: String,
    /// The installation that made it.
    pub operator: String,
    /// The uid of the claim that it was made for.
    pub uid: String,
}

/// The images of seeds on all storages that could be listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeedsFound {
    /// The images.
    pub images: Vec<SeedImage>,
    /// Why other storages could not be listed.
    pub unread: Vec<String>,
}

/// A successful answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Operation::Check`].
    Checked(Box<Checked>),
    /// To [`Operation::List`].
    Listed(Box<Listed>),
    /// To [`Operation::FindTemplate`]: one for each node that has it; none is a failure of class Configuration.
    Templates(Vec<Template>),
    /// To [`Operation::Inspect`]: nothing if there is surely no such machine.
    Inspected(Option<Box<Inspected>>),
    /// To [`Operation::Addresses`]; nothing while the guest does not answer.
    Addresses(Option<GuestNetwork>),
    /// To [`Operation::Look`]: in which state it is halted; nothing if it is not.
    Looked(Option<String>),
    /// To [`Operation::Deliver`]: whether cloud-init has ended well; while it runs, or the guest does not answer, it has not.
    Delivered(bool),
    /// To [`Operation::ListSeeds`].
    Seeds(SeedsFound),
    /// To every other operation: it is done, and was seen to be done.
    Done,
}

/// What a guest reports of its network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuestNetwork {
    /// The addresses that others can reach, each once.
    pub addresses: Vec<String>,
    /// The hardware address of the interface with the first of them.
    pub mac: Option<String>,
}

impl GuestNetwork {
    /// Takes an address of an interface with this hardware address.
    pub fn add(&mut self, address: &str, mac: Option<&str>) {
        if self.addresses.iter().any(|known| known == address) {
            return;
        }
        if self.addresses.is_empty() {
            self.mac = mac.map(str::to_owned);
        }
        self.addresses.push(address.to_owned());
    }
}

/// What a hypervisor is, and what the credentials allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Its version.
    pub version: String,
    /// Privileges that are missing, each with the path where it is needed, such as `VM.Clone on /vms`.
    pub missing: Vec<String>,
    /// Things that the `HypervisorCluster` names and that are not there: nodes, storages, bridges, pools.
    pub unknown: Vec<String>,
    /// Whether the cluster has a quorum.
    pub is_quorate: bool,
    /// How far the clock of the hypervisor is ahead of ours, in seconds.
    pub clock_ahead: i64,
}

/// All machines, and what is left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listed {
    /// The machines, whosever they are; a machine that is not here does not exist, unless its node is offline.
    pub machines: BTreeMap<MachineId, Seen>,
    /// The nodes by name.
    pub nodes: BTreeMap<String, NodeState>,
    /// The storages by node and name.
    pub storages: BTreeMap<(String, String), StorageState>,
}

/// A machine in a list. There may be thousands, so that what many have in common is there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub name: Box<str>,
    /// The node it is on.
    pub node: Arc<str>,
    /// Whether it runs.
    pub power: Power,
    /// Whether it is a template.
    pub is_template: bool,
    /// What the hypervisor is doing with it: `clone`, `migrate`, `backup`.
    pub lock: Option<Box<str>>,
    /// Whether it has the tag of the machines of all fleets, which proves nothing.
    pub is_tagged: bool,
    /// Its resource pool.
    pub pool: Option<Arc<str>>,
    /// Its CPUs.
    pub cpus: u32,
    /// Its memory in bytes.
    pub memory: u64,
}

/// Whether a machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    /// It runs.
    Running,
    /// It does not run.
    Stopped,
    /// The hypervisor does not say, for example because its node does not answer.
    Unknown,
}

/// One machine in full.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspected {
    /// As in a list.
    pub seen: Seen,
    /// Whose it is; nothing if it has no record of ours, or one that cannot be read.
    pub owner: Option<Owner>,
    /// Whether everything that [`Operation::Configure`] does was done to it.
    pub is_configured: bool,
}

/// A node of a hypervisor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Whether it answers.
    pub is_online: bool,
    /// Its CPUs.
    pub cpus: u32,
    /// Its memory in bytes.
    pub memory: u64,
    /// How much of it is in use, in bytes.
    pub memory_used: u64,
}

/// A storage on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageState {
    /// Its size in bytes.
    pub bytes: u64,
    /// How much is in use, in bytes.
    pub used: u64,
    /// Whether it is shared by nodes.
    pub is_shared: bool,
}

/// Why an operation was not done, or may not have been done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// There may be an answer next time; the operation may have been carried out all the same. No answer, an error of the server, a lock,
    /// a task whose end is not known.
    Transient(String),
    /// The cluster of the hypervisor has no quorum: it refuses every change until it has one.
    NoQuorum(String),
    /// It was refused and will be refused again, whatever is waited for: only another request helps.
    Permanent(String),
    /// A person has to change something: credentials, a privilege, a name, a certificate. With the remedy.
    Configuration {
        /// What is wrong.
        message: String,
        /// What to do.
        remedy: String,
    },
    /// There is not enough left: memory, space, ids. With the remedy.
    Resource {
        /// Of what.
        message: String,
        /// What to do, if nobody wants to wait.
        remedy: String,
    },
    /// The id is taken by a machine that exists.
    Exists(MachineId),
    /// The machine is surely not there.
    Absent(MachineId),
    /// There is a machine with this id, and these credentials may not see it.
    Hidden(MachineId),
    /// The machine has another owner, or none: nothing was done to it.
    NotOurs {
        /// The machine.
        id: MachineId,
        /// What it has instead.
        found: Option<Owner>,
    },
}
