//! `cluster/resources`, `cluster/status` and `cluster/nextid`.

use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use serde_json::{Value, json};

/// The ids that are given when nobody chooses.
const IDS: std::ops::Range<u32> = 100..1_000_000;

pub(crate) fn resources(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let wants = |kind: &str| call.text("type").is_none_or(|wanted| wanted == kind);
    let mut found = Vec::new();
    if wants("vm") {
        found.extend(vms(state, call));
    }
    if wants("node") {
        found.extend(super::node::entries(state, call));
    }
    if wants("storage") {
        found.extend(storages(state, call));
    }
    Ok(Value::Array(found).into())
}

fn vms(state: &mut StandIn, call: &Call<'_>) -> Vec<Value> {
    let ids: Vec<u32> = state.vms.keys().copied().collect();
    let mut found = Vec::new();
    for vmid in ids {
        if !state.may(&call.caller, &format!("/vms/{vmid}"), &["VM.Audit"]) {
            continue;
        }
        let seen = state.seen(vmid);
        let Some(vm) = state.vms.get(&vmid) else { continue };
        let mut entry =
            json!({"id": format!("qemu/{vmid}"), "type": "qemu", "vmid": vmid, "node": vm.node, "status": "unknown"});
        if let Some(seen) = seen {
            let uptime = seen.started.map_or(0, |since| call.now.saturating_sub(since).as_secs().max(1));
            entry["status"] = if seen.started.is_some() { "running" } else { "stopped" }.into();
            entry["name"] = seen.name.into();
            entry["template"] = u8::from(seen.is_template).into();
            entry["maxcpu"] = seen.cpus.into();
            entry["maxmem"] = seen.memory.into();
            entry["maxdisk"] = seen.disk.into();
            entry["uptime"] = uptime.into();
            entry["cpu"] = if seen.started.is_some() { json!(0.0123) } else { json!(0) };
            entry["mem"] = if seen.started.is_some() { seen.memory / 3 } else { 0 }.into();
            for counter in ["disk", "netin", "netout", "diskread", "diskwrite"] {
                entry[counter] = 0.into();
            }
        }
        if let Some(pool) = state.pool_of(vmid) {
            entry["pool"] = pool.into();
        }
        if let Some(tags) = vm.tags() {
            entry["tags"] = tags.into();
        }
        if let Some(lock) = &vm.lock {
            entry["lock"] = lock.as_str().into();
        }
        found.push(entry);
    }
    found
}

fn storages(state: &StandIn, call: &Call<'_>) -> Vec<Value> {
    let mut found = Vec::new();
    for (node_name, node) in &state.nodes {
        for (name, storage) in state.storages.iter().filter(|(_, storage)| storage.is_on(node_name)) {
            if !state.may(&call.caller, &format!("/storage/{name}"), &["Datastore.Audit", "Datastore.AllocateSpace"]) {
                continue;
            }
            let content = storage.content.iter().cloned().collect::<Vec<_>>().join(",");
            let mut entry = json!({
                "id": format!("storage/{node_name}/{name}"), "type": "storage", "node": node_name, "storage": name,
                "plugintype": storage.kind.as_str(), "shared": u8::from(storage.is_shared), "content": content, "status": "unknown",
            });
            if node.is_online {
                entry["status"] = "available".into();
                entry["maxdisk"] = storage.bytes.into();
                entry["disk"] = storage.used(node_name).into();
            }
            found.push(entry);
        }
    }
    found
}

pub(crate) fn status(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, "/", &["Sys.Audit"])?;
    let mut found = vec![json!({
        "type": "cluster", "id": "cluster", "name": state.name, "version": 3, "nodes": state.nodes.len(),
        "quorate": u8::from(state.is_quorate),
    })];
    for (number, (name, node)) in state.nodes.iter().enumerate() {
        found.push(json!({
            "type": "node", "id": format!("node/{name}"), "name": name, "nodeid": number + 1, "ip": node.address, "level": "",
            "online": u8::from(node.is_online), "local": u8::from(*name == state.local),
        }));
    }
    Ok(Value::Array(found).into())
}

pub(crate) fn nextid(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    if let Some(wanted) = call.number::<u32>("vmid") {
        return match state.vms.contains_key(&wanted) {
            true => Err(Refusal::parameter("vmid", format!("VM {wanted} already exists"))),
            false => Ok(json!(wanted.to_string()).into()),
        };
    }
    // Nothing is reserved: two who ask get the same id.
    let free = IDS.into_iter().find(|id| !state.vms.contains_key(id));
    free.map(|id| json!(id.to_string()).into())
        .ok_or_else(|| Refusal::failed(format!("unable to get any free VMID in range [{}, {}]", IDS.start, IDS.end)))
}

/// Those that the caller may use or see.
pub(crate) fn vnets(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let privileges = ["SDN.Audit", "SDN.Allocate", "SDN.Use"];
    let may_see =
        |(vnet, zone): &(&String, &String)| state.may(&call.caller, &format!("/sdn/zones/{zone}/{vnet}"), &privileges);
    let found =
        state.vnets.iter().filter(may_see).map(|(vnet, zone)| json!({"vnet": vnet, "zone": zone, "type": "vnet"}));
    Ok(Value::Array(found.collect()).into())
}
