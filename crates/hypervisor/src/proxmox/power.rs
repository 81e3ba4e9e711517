//! Switches machines on and off.

use crate::proxmox::class::Class;
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::machine::{config, current_power, owned};
use crate::proxmox::task::follow;
use crate::proxmox::trouble::Trouble;
use fleet::hypervisor::{Failure, MachineId, Power, Target};
use http::Method;
use serde_json::Value;

pub(crate) async fn start(client: &Client, target: &Target) -> Result<(), Failure> {
    let (machine, _) = owned(client, target).await?;
    if current_power(client, &target.id, &machine.node).await? == Power::Running {
        return Ok(());
    }
    match switch(client, "/nodes/{node}/qemu/{vmid}/status/start", &target.id, &machine.node).await {
        Err(Trouble::Answered { message, .. }) if message.to_lowercase().contains("already running") => Ok(()),
        Err(trouble) => Err(after(client, &trouble, &target.id, &machine.node, "starting").await),
        Ok(()) => Ok(()),
    }
}

pub(crate) async fn stop(client: &Client, target: &Target) -> Result<(), Failure> {
    let (machine, _) = owned(client, target).await?;
    ensure_stopped(client, &target.id, &machine.node).await
}

/// Switches off a machine that was just seen to be ours.
pub(crate) async fn ensure_stopped(client: &Client, id: &MachineId, node: &str) -> Result<(), Failure> {
    // Asked although the machine may be off: the answer takes longer than the question.
    let stopped = switch(client, "/nodes/{node}/qemu/{vmid}/status/stop", id, node).await;
    match stopped {
        Err(Trouble::Answered { message, .. }) if message.to_lowercase().contains("not running") => {}
        Err(trouble) => return Err(after(client, &trouble, id, node, "stopping").await),
        Ok(()) => {}
    }
    // High availability only notes the wish, and its task ends before the machine has stopped.
    match current_power(client, id, node).await? {
        Power::Stopped => Ok(()),
        _ => Err(Failure::Transient(format!("stopping machine {}: the task has ended and it still runs", id.0))),
    }
}

async fn switch(client: &Client, path: &'static str, id: &MachineId, node: &str) -> Result<(), Trouble> {
    let content = Content::Parameters(Vec::new());
    let task: Value = client.send(Call { method: Method::POST, path, parts: &[node, &id.0], content }).await?;
    follow(client, &task).await
}

/// Why something failed with a machine that was read a moment ago. If it is absent now, it may have moved; if it is refused, it may be
/// gone, because with rights on a resource pool only, what does not exist is refused, too.
pub(crate) async fn after(client: &Client, trouble: &Trouble, id: &MachineId, node: &str, doing: &str) -> Failure {
    let doing = format!("{doing} machine {}", id.0);
    let is_gone = match trouble.class() {
        Class::Absent => true,
        _ if trouble.is_forbidden() => config(client, id, node).await.is_err(),
        _ => false,
    };
    if is_gone { Failure::Transient(format!("{doing}: {}", trouble.message())) } else { trouble.about(id, &doing) }
}
