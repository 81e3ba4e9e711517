//! Switches machines on and off.

use crate::proxmox::class::Class;
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::machine::{current_power, owned};
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
        other => other.map_err(|trouble| after(&trouble, &target.id, "starting")),
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
        other => other.map_err(|trouble| after(&trouble, id, "stopping"))?,
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

/// The machine was read a moment ago: if it is absent now, it may have moved.
pub(crate) fn after(trouble: &Trouble, id: &MachineId, doing: &str) -> Failure {
    let doing = format!("{doing} machine {}", id.0);
    match trouble.class() {
        Class::Absent => Failure::Transient(format!("{doing}: {}", trouble.message())),
        _ => trouble.about(id, &doing),
    }
}
