//! `qemu/VMID/agent`: what the guest agent answers.

use crate::property::Properties;
use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
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
    match vm.agent_answers(call.now) {
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
    if let Some(vm) = state.vms.get_mut(&call.vmid()) {
        vm.guest.files.insert(file.to_owned(), content.to_owned());
    }
    Ok(Value::Null.into())
}
