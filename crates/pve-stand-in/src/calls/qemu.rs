//! `qemu`: the VMs of a node, and the end of one.

use super::config::check_lock;
use crate::effects::Work;
use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use crate::vm::Vm;
use serde_json::{Value, json};
use std::time::Duration;

/// A VM as lists have it.
pub(crate) fn summary(vmid: u32, vm: &Vm, now: Duration) -> Value {
    let mut found = json!({
        "vmid": vmid,
        "name": vm.name().map_or_else(|| format!("VM {vmid}"), str::to_owned),
        "status": if vm.run.is_some() { "running" } else { "stopped" },
        "cpus": vm.cpus(),
        "maxmem": vm.memory(),
        "maxdisk": vm.disk_bytes(),
        "cpu": 0,
        "mem": 0,
        "disk": 0,
        "netin": 0,
        "netout": 0,
        "diskread": 0,
        "diskwrite": 0,
        "uptime": 0,
    });
    if let Some(run) = vm.run {
        found["pid"] = run.pid.into();
        found["uptime"] = now.saturating_sub(run.since).as_secs().into();
        found["mem"] = (vm.memory() / 3).into();
    }
    if vm.is_template {
        found["template"] = 1.into();
    }
    if let Some(tags) = vm.tags() {
        found["tags"] = tags.into();
    }
    if let Some(lock) = &vm.lock {
        found["lock"] = lock.as_str().into();
    }
    found
}

pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut found = Vec::new();
    for (vmid, vm) in state.vms.iter().filter(|(_, vm)| vm.node == call.node()) {
        if state.may(&call.caller, &format!("/vms/{vmid}"), &["VM.Audit"]) {
            found.push(summary(*vmid, vm, call.now));
        }
    }
    Ok(Value::Array(found).into())
}

pub(crate) fn destroy(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &call.vm_path(), &["VM.Allocate"])?;
    if call.flag("skiplock") && call.caller.user != "root@pam" {
        return Err(Refusal::parameter("skiplock", "Only root may use this option."));
    }
    state.need_quorum()?;
    let vmid = call.vmid();
    let vm = state.vm_on(vmid, call.node())?;
    check_lock(call, vm)?;
    if vm.config.get("protection").is_some_and(|value| value == "1") {
        return Err(Refusal::failed(format!("can't remove VM {vmid} - protection mode enabled")));
    }
    if vm.run.is_some() {
        return Err(Refusal::failed(format!("VM {vmid} is running - destroy failed")));
    }
    let work = Work::Destroy { vmid, unreferenced: call.flag("destroy-unreferenced-disks") };
    let takes = state.timing.destroy;
    Ok(state.start_task(call, "qmdestroy", call.path("vmid"), work, takes).into())
}
