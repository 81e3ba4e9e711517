//! `nodes`, and status, time and network of one.

use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use crate::vm::Vm;
use serde_json::{Value, json};

/// How long the nodes were up before the start, in seconds.
const UPTIME: u64 = 2_000_000;
/// What a node needs for itself.
const OWN_MEMORY: u64 = 2 << 30;

fn used_memory(state: &StandIn, node: &str) -> u64 {
    let running = state.vms.values().filter(|vm| vm.node == node && vm.run.is_some());
    OWN_MEMORY + running.map(Vm::memory).sum::<u64>()
}

pub(crate) fn entries(state: &StandIn, call: &Call<'_>) -> Vec<Value> {
    let mut found = Vec::new();
    for (name, node) in &state.nodes {
        let mut entry = json!({"id": format!("node/{name}"), "type": "node", "node": name, "status": "offline"});
        // Numbers are for those who may see them.
        if node.is_online {
            entry["status"] = "online".into();
            entry["level"] = "".into();
        }
        if node.is_online && state.may(&call.caller, &format!("/nodes/{name}"), &["Sys.Audit"]) {
            entry["maxcpu"] = node.cpus.into();
            entry["cpu"] = json!(0.034_860_5);
            entry["maxmem"] = node.memory.into();
            entry["mem"] = used_memory(state, name).min(node.memory).into();
            entry["maxdisk"] = (100_u64 << 30).into();
            entry["disk"] = (4_u64 << 30).into();
            entry["uptime"] = (UPTIME + call.now.as_secs()).into();
        }
        found.push(entry);
    }
    found
}

pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    Ok(Value::Array(entries(state, call)).into())
}

pub(crate) fn status(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &format!("/nodes/{}", call.node()), &["Sys.Audit"])?;
    let used = used_memory(state, call.node());
    let Some(node) = state.nodes.get(call.node()) else { return Ok(Value::Null.into()) };
    let used = used.min(node.memory);
    Ok(json!({
        "uptime": UPTIME + call.now.as_secs(),
        "cpu": 0.034_860_5,
        "wait": 0,
        "idle": 0,
        // The load is a list of texts.
        "loadavg": ["0.31", "0.27", "0.22"],
        "cpuinfo": {"cpus": node.cpus, "cores": node.cpus / 2, "sockets": 1, "model": "Stand-in", "mhz": "3000.000", "hvm": "1", "user_hz": 100, "flags": ""},
        "memory": {"total": node.memory, "used": used, "free": node.memory - used, "available": node.memory - used},
        "swap": {"total": 0, "used": 0, "free": 0},
        "rootfs": {"total": 100_u64 << 30, "used": 4_u64 << 30, "free": 96_u64 << 30, "avail": 96_u64 << 30},
        "ksm": {"shared": 0},
        "kversion": "Linux 6.14.8-2-pve #1 SMP PREEMPT_DYNAMIC",
        "pveversion": "pve-manager/9.2.2/b6a6c3ec5b3cc5e1",
    })
    .into())
}

pub(crate) fn time(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &format!("/nodes/{}", call.node()), &["Sys.Audit"])?;
    let time = state.clock(call.now);
    Ok(json!({"time": time, "localtime": time, "timezone": "UTC"}).into())
}

pub(crate) fn network(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let wants_bridges = |wanted: &str| matches!(wanted, "bridge" | "any_bridge" | "any_local_bridge" | "include_sdn");
    let Some(node) = state.nodes.get(call.node()) else { return Ok(Value::Null.into()) };
    let mut found = Vec::new();
    if call.text("type").is_none_or(|wanted| matches!(wanted, "eth" | "include_sdn")) {
        found.push(json!({
            "iface": "eno1", "type": "eth", "active": 1, "exists": 1, "method": "manual", "method6": "manual", "families": ["inet"], "priority": 3,
        }));
    }
    for (number, bridge) in node.bridges.iter().enumerate() {
        let may_use = state.may(&call.caller, &format!("/sdn/zones/localnetwork/{bridge}"), &["SDN.Audit", "SDN.Use"]);
        let may_see = may_use || state.may(&call.caller, &format!("/nodes/{}", call.node()), &["Sys.Audit"]);
        if call.text("type").is_none_or(wants_bridges) && may_see {
            found.push(json!({
                "iface": bridge, "type": "bridge", "active": 1, "autostart": 1, "method": "static", "method6": "manual",
                "families": ["inet"], "address": node.address, "netmask": "24", "cidr": format!("{}/24", node.address),
                "bridge_ports": "eno1", "bridge_stp": "off", "bridge_fd": "0", "priority": 4 + number,
            }));
        }
    }
    Ok(Value::Array(found).into())
}
