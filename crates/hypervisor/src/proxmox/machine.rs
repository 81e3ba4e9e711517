//! Finds a machine, wherever it is, and reads whose it is.

use crate::proxmox::class::Class;
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::list::power;
use crate::proxmox::roster;
use crate::proxmox::trouble::Trouble;
use crate::proxmox::unseen;
use crate::proxmox::wire::{Config, key};
use fleet::hypervisor::{Failure, Inspected, MachineId, Owner, Power, Target};
use fleet::record::{self, Record};
use http::Method;
use serde::Deserialize;
use serde_json::Value;

/// A machine as it was read.
pub(crate) struct Machine {
    pub(crate) id: MachineId,
    /// The node it is on.
    pub(crate) node: String,
    pub(crate) config: Config,
}

impl Machine {
    /// What we wrote down about it.
    pub(crate) fn record(&self) -> Option<Record> {
        record::parse(self.description(), &self.id.0)
    }

    pub(crate) fn description(&self) -> &str {
        key(&self.config, "description").unwrap_or_default()
    }

    /// Whether it is being created: its record is written at the end.
    pub(crate) fn is_being_made(&self) -> bool {
        matches!(key(&self.config, "lock"), Some("clone" | "create"))
    }

    /// The state of its configuration: a write that names it is refused if somebody else has written since.
    pub(crate) fn digest(&self) -> Option<String> {
        key(&self.config, "digest").map(str::to_owned)
    }
}

/// An id of a machine, as Proxmox VE takes it.
pub(crate) fn vmid(id: &MachineId) -> Result<&str, Failure> {
    let is_vmid =
        id.0.parse::<u32>().is_ok_and(|number| (100..1_000_000_000).contains(&number)) && !id.0.starts_with('+');
    match is_vmid {
        true => Ok(&id.0),
        false => Err(Failure::Permanent(format!("{:?} is no id of a machine of Proxmox VE", id.0))),
    }
}

/// The machine if it is of this owner. It is read anew each time, because an id is soon used again.
pub(crate) async fn owned(client: &Client, target: &Target) -> Result<(Machine, Record), Failure> {
    let machine = read(client, &target.id, target.node.as_deref()).await?;
    let record = proven(&machine, &target.id, &target.owner)?;
    Ok((machine, record))
}

fn unfinished(id: &MachineId) -> Failure {
    Failure::Transient(format!(
        "machine {0} is being cloned, so that it is not known yet whose it is; if no clone is running, unlock it (qm unlock {0})",
        id.0
    ))
}

fn proven(machine: &Machine, id: &MachineId, owner: &Owner) -> Result<Record, Failure> {
    match machine.record() {
        Some(record) if record.owner == *owner => Ok(record),
        None if machine.is_being_made() => Err(unfinished(id)),
        other => Err(Failure::NotOurs { id: id.clone(), found: other.map(|record| record.owner) }),
    }
}

/// Reads a machine on the node where it was last seen, or else where it is now.
pub(crate) async fn read(client: &Client, id: &MachineId, node: Option<&str>) -> Result<Machine, Failure> {
    let doing = format!("reading machine {}", id.0);
    if let Some(node) = node {
        match config(client, id, node).await {
            Ok(config) => return Ok(Machine { id: id.clone(), node: node.to_owned(), config }),
            // For somebody with rights on a pool, what is not in the pool is refused, whether or not it exists.
            Err(trouble) if trouble.class() == Class::Absent || trouble.is_of_node() || trouble.is_forbidden() => {}
            Err(trouble) => return Err(trouble.about(id, &doing)),
        }
    }
    let found = match find(client, id).await? {
        Found::Listed(found) if found.is_virtual => found.seen.node.to_string(),
        Found::Listed(_) => return Err(Failure::NotOurs { id: id.clone(), found: None }),
        Found::Unseen => return Err(Failure::Hidden(id.clone())),
        Found::Nothing => return Err(Failure::Absent(id.clone())),
    };
    match config(client, id, &found).await {
        Ok(config) => Ok(Machine { id: id.clone(), node: found, config }),
        Err(trouble) if trouble.class() == Class::Absent => {
            Err(Failure::Transient(format!("{doing}: it moved or was deleted while it was read")))
        }
        Err(trouble) => Err(trouble.about(id, &doing)),
    }
}

pub(crate) async fn config(client: &Client, id: &MachineId, node: &str) -> Result<Config, Trouble> {
    client.get("/nodes/{node}/qemu/{vmid}/config", &[node, &id.0]).await
}

/// What is known of an id.
pub(crate) enum Found {
    /// It is in the list of the cluster.
    Listed(Box<roster::Machine>),
    /// It is taken by a machine that cannot be seen: somebody else's, or one of ours that was taken out of the resource pool.
    Unseen,
    /// There is surely no such machine.
    Nothing,
}

/// Looks for a machine in the list of the cluster. The list shows only what may be seen, so that an id has to be free as well for a
/// machine to be absent.
pub(crate) async fn find(client: &Client, id: &MachineId) -> Result<Found, Failure> {
    let vmid = vmid(id)?;
    let doing = format!("finding machine {vmid}");
    if let Some(found) = client.roster.find(client, vmid).await.map_err(|trouble| trouble.failure(&doing))? {
        return Ok(Found::Listed(Box::new(found)));
    }
    let parameters = Content::Parameters(vec![("vmid", vmid.to_owned())]);
    let call = Call { method: Method::GET, path: "/cluster/nextid", parts: &[], content: parameters };
    match client.send::<Value>(call).await {
        Ok(_) => Ok(Found::Nothing),
        Err(trouble) if trouble.class() == Class::Exists => {
            unseen::prove_foreign(client, vmid).await?;
            // A clone may have ended since the first list.
            let found = client.roster.find(client, vmid).await.map_err(|trouble| trouble.failure(&doing))?;
            Ok(found.map_or(Found::Unseen, |found| Found::Listed(Box::new(found))))
        }
        Err(trouble) => Err(trouble.failure(&doing)),
    }
}

#[derive(Deserialize)]
struct Current {
    status: String,
    #[serde(default)]
    qmpstatus: String,
}

/// The states in which QEMU stands still by itself. One that somebody has paused, or that is backed up or moved, is in another one.
const HALTED: [&str; 4] = ["guest-panicked", "internal-error", "io-error", "watchdog"];

/// Whether it runs now: the list is up to ten seconds old.
pub(crate) async fn current_power(client: &Client, id: &MachineId, node: &str) -> Result<Power, Failure> {
    current(client, id, node).await.map(|current| power(&current.status))
}

/// In which state it is halted, if it is. Lists show it as running.
pub(crate) async fn look(client: &Client, target: &Target) -> Result<Option<String>, Failure> {
    let (machine, _) = owned(client, target).await?;
    let current = current(client, &machine.id, &machine.node).await?;
    Ok(Some(current.qmpstatus).filter(|state| HALTED.contains(&state.as_str())))
}

async fn current(client: &Client, id: &MachineId, node: &str) -> Result<Current, Failure> {
    let status = client.get::<Current>("/nodes/{node}/qemu/{vmid}/status/current", &[node, &id.0]).await;
    match status {
        Ok(current) => Ok(current),
        // It was just read: whether it is gone or has moved is not known.
        Err(trouble) if trouble.class() == Class::Absent || trouble.is_forbidden() => {
            Err(Failure::Transient(format!("reading the state of machine {}: {}", id.0, trouble.message())))
        }
        Err(trouble) => Err(trouble.about(id, &format!("reading the state of machine {}", id.0))),
    }
}

/// Reads one machine with its owner.
pub(crate) async fn inspect(client: &Client, id: &MachineId) -> Result<Option<Inspected>, Failure> {
    let found = match find(client, id).await? {
        Found::Listed(found) => found,
        Found::Unseen => return Err(Failure::Hidden(id.clone())),
        Found::Nothing => return Ok(None),
    };
    let roster::Machine { is_virtual, mut seen } = *found;
    if !is_virtual {
        return Ok(Some(Inspected { seen, owner: None, is_configured: false }));
    }
    let machine = match read(client, id, Some(&seen.node)).await {
        Err(Failure::Absent(_)) => return Ok(None),
        other => other?,
    };
    let record = machine.record();
    if record.is_none() && machine.is_being_made() {
        return Err(unfinished(id));
    }
    seen.power = current_power(client, id, &machine.node).await?;
    seen.lock = key(&machine.config, "lock").map(Into::into);
    seen.node = machine.node.as_str().into();
    let is_configured = record.as_ref().is_some_and(|record| record.is_configured);
    Ok(Some(Inspected { seen, owner: record.map(|record| record.owner), is_configured }))
}
