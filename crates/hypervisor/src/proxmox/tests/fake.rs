//! A Proxmox VE with two nodes in a few lines, for tests of whole operations.

use super::server::{Asked, Reply, Server, refused};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

/// What a request is answered instead, if anything.
type Fault = Box<dyn FnMut(&Asked, &mut State) -> Option<Reply> + Send>;

#[derive(Default)]
pub(crate) struct State {
    pub(crate) machines: BTreeMap<String, Machine>,
    /// `NODE STORAGE:iso/FILE`.
    pub(crate) volumes: BTreeSet<String>,
    /// The exit status of every task from now on.
    pub(crate) exit: Option<String>,
    /// Machines that are there and not shown.
    pub(crate) hidden: BTreeSet<String>,
    /// Whether a clone of ours is running.
    pub(crate) is_cloning: bool,
    /// Whether there is no privilege on machines.
    pub(crate) may_see_nothing: bool,
    pub(crate) fault: Option<Fault>,
    tasks: BTreeMap<String, String>,
    digest: u64,
}

#[derive(Clone, Default)]
pub(crate) struct Machine {
    pub(crate) node: String,
    pub(crate) config: Map<String, Value>,
    pub(crate) is_running: bool,
}

pub(crate) type Shared = Arc<Mutex<State>>;

/// A server with template 9000 on node pve1.
pub(crate) async fn start() -> (Server, Shared) {
    let state = Shared::default();
    let config = json!({"name": "debian", "template": 1, "cores": 1, "memory": "512", "agent": "1", "digest": "0",
        "scsi0": "thin:base-9000-disk-0,size=2G", "boot": "order=scsi0", "net0": "virtio=BC:24:11:00:00:01,bridge=vmbr0,firewall=1"});
    let template = Machine { node: "pve1".into(), config: config.as_object().unwrap().clone(), is_running: false };
    state.lock().unwrap().machines.insert("9000".into(), template);
    let answering = state.clone();
    (Server::start(move |asked| answer(&mut answering.lock().unwrap(), asked)).await, state)
}

fn answer(state: &mut State, asked: &Asked) -> Reply {
    if let Some(mut fault) = state.fault.take() {
        let answered = fault(asked, state);
        state.fault.get_or_insert(fault);
        if let Some(reply) = answered {
            return reply;
        }
    }
    let parts: Vec<&str> = asked.path.trim_start_matches('/').splitn(6, '/').collect();
    match (asked.method.as_str(), parts.as_slice()) {
        ("GET", ["cluster", "resources"]) => resources(state, asked.parameters.get("type").map(String::as_str)),
        ("GET", ["access", "permissions"]) if state.may_see_nothing => Reply::Data(json!({"/": {}})),
        ("GET", ["access", "permissions"]) => Reply::Data(json!({"/vms": {"VM.Audit": 1}})),
        ("GET", ["nodes", _, "tasks"]) => {
            let running = json!({"type": "qmclone", "user": "fleet@pve!ci"});
            Reply::Data(if state.is_cloning { json!([running]) } else { json!([]) })
        }
        ("GET", ["cluster", "nextid"]) => match state.machines.contains_key(&asked.parameters["vmid"]) {
            true => refused(
                400,
                &format!("Parameter verification failed. vmid: VM {} already exists", asked.parameters["vmid"]),
            ),
            false => Reply::Data(json!(asked.parameters["vmid"])),
        },
        ("GET", ["nodes", _, "tasks", rest @ ..]) => {
            let upid = rest.join("/").trim_end_matches("/status").to_owned();
            Reply::Data(json!({"status": "stopped", "exitstatus": state.tasks[&upid]}))
        }
        ("POST", ["nodes", node, "storage", storage, "upload"]) => {
            let body = String::from_utf8_lossy(&asked.body).into_owned();
            let file = body.split("filename=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
            state.volumes.insert(format!("{node} {storage}:iso/{file}"));
            task(state, node, "imgcopy")
        }
        ("DELETE", ["nodes", node, "storage", _, "content", volume]) => {
            state.volumes.remove(&format!("{node} {volume}"));
            task(state, node, "imgdel")
        }
        (_, ["nodes", node, "qemu", id, rest @ ..]) => match state.machines.get(*id) {
            Some(machine) if machine.node == *node => on_machine(state, asked, node, id, rest),
            _ => refused(500, &format!("Configuration file 'nodes/{node}/qemu-server/{id}.conf' does not exist")),
        },
        _ => refused(501, "not implemented"),
    }
}

fn on_machine(state: &mut State, asked: &Asked, node: &str, id: &str, rest: &[&str]) -> Reply {
    state.digest += 1;
    let digest = state.digest.to_string();
    let Some(machine) = state.machines.get_mut(id) else { return refused(500, "gone") };
    match (asked.method.as_str(), rest) {
        ("GET", ["config"]) => Reply::Data(Value::Object(machine.config.clone())),
        ("GET", ["status", "current"]) => {
            Reply::Data(json!({"status": if machine.is_running { "running" } else { "stopped" }}))
        }
        ("PUT", ["config"]) => {
            if asked.parameters.get("digest").is_some_and(|digest| machine.config["digest"] != digest.as_str()) {
                return refused(500, "detected modified configuration - file changed by other user? Try again.");
            }
            for (name, value) in asked.parameters.iter().filter(|(name, _)| *name != "digest") {
                machine.config.insert(name.clone(), json!(value));
            }
            machine.config.insert("digest".into(), json!(digest));
            Reply::Data(Value::Null)
        }
        ("PUT", ["resize"]) => {
            let disk = machine.config["scsi0"].as_str().unwrap().split(',').next().unwrap().to_owned();
            machine.config.insert("scsi0".into(), json!(format!("{disk},size={}", asked.parameters["size"])));
            machine.config.insert("digest".into(), json!(digest));
            task(state, node, "resize")
        }
        ("POST", ["status", "start"]) => {
            machine.is_running = true;
            task(state, node, "qmstart")
        }
        ("POST", ["status", "stop"]) => {
            machine.is_running = false;
            task(state, node, "qmstop")
        }
        ("POST", ["clone"]) => {
            let new = asked.parameters["newid"].clone();
            let node = asked.parameters.get("target").map_or(node, String::as_str).to_owned();
            let mut config = machine.config.clone();
            config.remove("template");
            for name in ["name", "description"] {
                config.insert(name.into(), json!(asked.parameters[name]));
            }
            config.insert("net0".into(), json!("virtio=BC:24:11:00:00:02,bridge=vmbr0,firewall=1"));
            if state.machines.contains_key(&new) {
                return refused(500, &format!("unable to create VM {new}: config file already exists"));
            }
            if state.exit.is_none() {
                state.machines.insert(new, Machine { node: node.clone(), config, is_running: false });
            }
            task(state, &node, "qmclone")
        }
        ("DELETE", []) if machine.is_running => refused(500, &format!("VM {id} is running - destroy failed")),
        ("DELETE", []) => {
            state.machines.remove(id);
            task(state, node, "qmdestroy")
        }
        ("GET", ["agent", "network-get-interfaces"]) if !machine.is_running => {
            refused(500, &format!("VM {id} is not running"))
        }
        ("GET", ["agent", "network-get-interfaces"]) => {
            Reply::Data(json!({"result": [{"name": "eth0", "ip-addresses": [{"ip-address": "10.0.0.7"}]}]}))
        }
        _ => refused(501, "not implemented"),
    }
}

fn task(state: &mut State, node: &str, kind: &str) -> Reply {
    let upid = format!("UPID:{node}:{:08X}:00000000:00000000:{kind}::fleet@pve!ci:", state.tasks.len());
    let exit = state.exit.clone().unwrap_or_else(|| "OK".into());
    state.tasks.insert(upid.clone(), exit);
    Reply::Data(json!(upid))
}

fn resources(state: &State, wanted: Option<&str>) -> Reply {
    let wants = |kind: &str| wanted.is_none_or(|wanted| wanted == kind);
    let mut list = Vec::new();
    for (id, machine) in state.machines.iter().filter(|(id, _)| wants("vm") && !state.hidden.contains(*id)) {
        let status = if machine.is_running { "running" } else { "stopped" };
        list.push(json!({"type": "qemu", "vmid": id.parse::<u32>().unwrap(), "node": machine.node, "status": status,
            "name": machine.config["name"], "tags": machine.config.get("tags"), "template": machine.config.get("template"),
            "maxcpu": 1, "maxmem": 536_870_912}));
    }
    for node in ["pve1", "pve2"].iter().filter(|_| wants("node")) {
        list.push(json!({"type": "node", "node": node, "status": "online", "maxcpu": 8, "maxmem": 1_u64 << 34, "mem": 1 << 30}));
    }
    for node in ["pve1", "pve2"].iter().filter(|_| wants("storage")) {
        list.push(json!({"type": "storage", "node": node, "storage": "thin", "plugintype": "lvmthin", "shared": 0, "maxdisk": 100, "disk": 40}));
    }
    Reply::Data(json!(list))
}
