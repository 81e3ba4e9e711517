//! `qemu/VMID/agent`: what the guest agent answers.

use crate::body;
use crate::property::Properties;
use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

/// The agent has to be switched on in the configuration and to run.
fn check(state: &StandIn, call: &Call<'_>, privilege: &str) -> Result<(), Refusal> {
    state.require(&call.caller, &call.vm_path(), &[privilege, "VM.GuestAgent.Unrestricted"])?;
    let vm = state.vm_on(call.vmid(), call.node())?;
    if !vm.has_agent_enabled() {
        return Err(Refusal::failed("No QEMU guest agent configured"));
    }
    if vm.run.is_none() {
        return Err(Refusal::failed(format!("VM {} is not running", call.vmid())));
    }
    match vm.agent_answers(call.now) && vm.run.is_some_and(|run| run.halted.is_none()) {
        true => Ok(()),
        false => Err(Refusal::failed("QEMU guest agent is not running")),
    }
}

pub(crate) fn ping(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    check(state, call, "VM.GuestAgent.Audit")?;
    Ok(json!({"result": {}}).into())
}

pub(crate) fn interfaces(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    check(state, call, "VM.GuestAgent.Audit")?;
    let vm = state.vm_on(call.vmid(), call.node())?;
    let mut found = vec![json!({
        "name": "lo",
        "hardware-address": "00:00:00:00:00:00",
        "ip-addresses": [
            {"ip-address": "127.0.0.1", "ip-address-type": "ipv4", "prefix": 8},
            {"ip-address": "::1", "ip-address-type": "ipv6", "prefix": 128},
        ],
    })];
    let vmid = call.vmid();
    let nets = vm.config.iter().filter(|(key, _)| crate::config::is_key("net[n]", key));
    for (number, (_, value)) in nets.enumerate() {
        let net = Properties::parse(value);
        let mac = net.first().map(|(_, mac)| mac.to_lowercase()).unwrap_or_default();
        found.push(json!({
            "name": format!("eth{number}"),
            "hardware-address": mac,
            "ip-addresses": [
                {"ip-address": format!("10.{}.{}.{}", 20 + number, (vmid >> 8) & 0xFF, vmid & 0xFF), "ip-address-type": "ipv4", "prefix": 16},
                {"ip-address": format!("fe80::be24:11ff:fe{:02x}:{:x}", number, vmid & 0xFFFF), "ip-address-type": "ipv6", "prefix": 64},
            ],
            "statistics": {"rx-bytes": 4096, "tx-bytes": 2048, "rx-packets": 32, "tx-packets": 16, "rx-errs": 0, "tx-errs": 0, "rx-dropped": 0, "tx-dropped": 0},
        }));
    }
    Ok(json!({"result": found}).into())
}

pub(crate) fn file_write(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    check(state, call, "VM.GuestAgent.FileWrite")?;
    let (file, content) = (call.text("file").unwrap_or_default(), call.text("content").unwrap_or_default());
    // The server encodes the content for the agent, unless the sender says that it has done so.
    let content = match call.text("encode").is_none() || call.flag("encode") {
        true => content.to_owned(),
        false => match BASE64_STANDARD.decode(content) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(_) => return Err(Refusal::failed("Agent error: Invalid base64 data")),
        },
    };
    if let Some(vm) = state.vms.get_mut(&call.vmid()) {
        vm.guest.files.insert(file.to_owned(), content);
    }
    Ok(Value::Null.into())
}

pub(crate) fn file_read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    check(state, call, "VM.GuestAgent.FileRead")?;
    let file = call.text("file").unwrap_or_default();
    if let Some(vm) = state.vms.get_mut(&call.vmid()) {
        let ended: Vec<u32> =
            vm.guest.processes.iter().filter(|(_, ends)| **ends <= call.now).map(|(pid, _)| *pid).collect();
        for pid in ended {
            let files = vm.guest.outcome(pid).files;
            vm.guest.files.extend(files);
        }
    }
    match state.vm_on(call.vmid(), call.node())?.guest.files.get(file) {
        Some(content) => Ok(json!({"content": content}).into()),
        None => {
            let text = format!("Agent error: Failed to open file '{file}': No such file or directory");
            Err(Refusal::failed(text))
        }
    }
}

/// A process of the guest takes as long as a small change, and ends as the guest says.
pub(crate) fn execute(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    check(state, call, "VM.GuestAgent.Unrestricted")?;
    let ends = call.now + state.timing.change;
    let command = call.text("command").unwrap_or_default().replace(body::SEPARATOR, " ");
    let command = format!("{command}\n{}", call.text("input-data").unwrap_or_default());
    let Some(vm) = state.vms.get_mut(&call.vmid()) else { return Ok(Value::Null.into()) };
    vm.guest.commands.push(command);
    let pid = 800 + u32::try_from(vm.guest.commands.len()).unwrap_or_default();
    vm.guest.processes.insert(pid, ends);
    Ok(json!({"pid": pid}).into())
}

/// The agent tells once how a process has ended.
pub(crate) fn execution(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    check(state, call, "VM.GuestAgent.Unrestricted")?;
    let pid = call.number::<u32>("pid").unwrap_or_default();
    let Some(vm) = state.vms.get_mut(&call.vmid()) else { return Ok(Value::Null.into()) };
    match vm.guest.processes.get(&pid) {
        None if vm.guest.is_agent_old => Err(Refusal::failed("Agent error: Invalid parameter 'pid'")),
        None => Err(Refusal::failed(format!("Agent error: PID {pid} does not exist"))),
        Some(ends) if *ends > call.now => Ok(json!({"exited": 0}).into()),
        Some(_) => {
            vm.guest.processes.remove(&pid);
            let outcome = vm.guest.outcome(pid);
            vm.guest.files.extend(outcome.files);
            Ok(json!({"exited": 1, "exitcode": outcome.exit_code}).into())
        }
    }
}
