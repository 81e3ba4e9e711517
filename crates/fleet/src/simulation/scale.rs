//! Five thousand claims: a list without news leads to nothing.

use super::api_server::{kinds, live};
use crate::core::{Concurrency, Config, Core};
use crate::hypervisor::{Answer, Checked, Listed, MachineId, NodeState, Operation, Power, Seen};
use crate::notice::Notice;
use crate::outside::{self, Request};
use change::{Moment, Now};
use jiff::Timestamp;
use protocol::{Body, Command, Core as _, Discovered, Event, WatchEvent, WatchTarget};
use serde_json::{Value, json};
use std::time::Duration;

const CLAIMS: u32 = 5_000;

fn at(second: u64) -> Now {
    let wall = Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
}

fn present(object: Value) -> WatchEvent {
    WatchEvent::Present {
        namespace: "ci".into(),
        name: object["metadata"]["name"].as_str().unwrap().into(),
        live: live(&object),
        generation: 1,
        body: Body::Whole(object),
    }
}

fn claim(number: u32) -> Value {
    let created = at(0).wall.to_string();
    json!({
        "metadata": {
            "name": format!("c-{number}"), "namespace": "ci", "uid": format!("u-{number}"), "resourceVersion": "5",
            "creationTimestamp": created, "finalizers": ["hyperfleet.io/vm-cleanup"],
        },
        "spec": {"templateRef": {"name": "small"}},
        "status": {
            "phase": "Ready", "vmRef": {"hypervisorCluster": "ci/pve", "vmId": (200_000 + number).to_string(), "node": "a"},
            "createdTime": created, "startedTime": created, "readyTime": created,
        },
    })
}

fn listed() -> Listed {
    let mut listed = Listed::default();
    let node = NodeState { is_online: true, cpus: 1_000, memory: 1 << 50, memory_used: 0 };
    listed.nodes.insert("a".into(), node);
    for number in 0..CLAIMS {
        let seen = Seen {
            name: format!("c-{number}").into(),
            node: "a".into(),
            power: Power::Running,
            is_template: false,
            lock: None,
            is_tagged: false,
            pool: None,
            cpus: 1,
            memory: 1 << 30,
        };
        listed.machines.insert(MachineId((200_000 + number).to_string()), seen);
    }
    listed
}

/// Answers what is asked, with writes accepted, until nothing more is asked; how many requests and writes there were.
fn settle(core: &mut Core, mut commands: Vec<Command<Notice, Request>>, now: Now, version: &mut u64) -> (usize, usize) {
    let (mut requests, mut writes) = (0, 0);
    while !commands.is_empty() {
        let mut events = Vec::new();
        for command in std::mem::take(&mut commands) {
            match command {
                Command::Elsewhere(number, Request::Hypervisor(request)) => {
                    requests += 1;
                    let answer = match request.operation {
                        Operation::Check => {
                            Answer::Checked(Box::new(Checked { is_quorate: true, ..Checked::default() }))
                        }
                        Operation::List => Answer::Listed(Box::new(listed())),
                        Operation::FindTemplate(_) => Answer::Templates(Vec::new()),
                        Operation::Look(_) => Answer::Looked(None),
                        other => panic!("{other:?}"),
                    };
                    events.push(Event::Elsewhere(number, outside::Answer::Hypervisor(Ok(answer))));
                }
                Command::Write(write) => {
                    writes += 1;
                    *version += 1;
                    let uid = match write.key.name.strip_prefix("c-") {
                        Some(number) => format!("u-{number}"),
                        None => write.key.name.clone(),
                    };
                    let finalizers = vec!["hyperfleet.io/vm-cleanup".into(), "hyperfleet.io/in-use".into()];
                    let live = change::Live {
                        uid,
                        resource_version: version.to_string(),
                        finalizers,
                        ..change::Live::default()
                    };
                    events.push(Event::Written(write.key, Ok(protocol::Written { live: Some(live), before: None })));
                }
                Command::Discover { .. } => events.push(Event::Discovered(Ok(Discovered::All(kinds())))),
                Command::Watch { target, .. } => events.extend(list(&target)),
                _ => {}
            }
        }
        if !events.is_empty() {
            commands = core.handle(events, now);
        }
    }
    (requests, writes)
}

fn list(target: &WatchTarget) -> Vec<Event<crate::outside::Answer>> {
    let named = |name: &str, spec: Value| {
        let metadata = json!({"name": name, "namespace": "ci", "uid": name, "resourceVersion": "5"});
        json!({"metadata": metadata, "spec": spec})
    };
    let objects = match target.kind.kind.as_str() {
        "MachineClaim" => (0..CLAIMS).map(claim).collect(),
        "HypervisorCluster" => {
            let spec = json!({"provider": "proxmox", "endpoint": "https://pve:8006"});
            vec![named("pve", spec)]
        }
        "HypervisorMachineTemplate" => vec![named(
            "small",
            json!({
                "hypervisorClusterRef": {"name": "pve"}, "template": {"proxmox": {"tag": "base"}},
                "resources": {"cpu": 1, "memory": "1Gi"},
            }),
        )],
        _ => Vec::new(),
    };
    let name = |object: &Value| ("ci".to_owned(), object["metadata"]["name"].as_str().unwrap().to_owned());
    let all = objects.iter().map(name).collect();
    let mut events: Vec<WatchEvent> = objects.into_iter().map(present).collect();
    events.push(WatchEvent::Listed { all, version: "9".into(), verifies: false });
    events.into_iter().map(|event| Event::Watched(target.clone(), event)).collect()
}

#[test]
fn after_a_restart_one_list_tells_about_all_machines_and_the_next_leads_to_nothing() {
    let mut core = Core::new(Config { operator: "o".into(), concurrency: Concurrency::default() }, at(1_000));
    let mut version = 100;
    let commands = core.handle(vec![Event::Tick], at(1_000));
    let (requests, _) = settle(&mut core, commands, at(1_001), &mut version);
    assert!(requests <= 8, "few machines are asked for alone: {requests}");
    // How long this takes is measured outside; here it is repeated so that it can be.
    for pass in 1..=20 {
        let now = at(1_001 + pass * 31);
        let commands = core.handle(vec![Event::Tick], now);
        let (requests, writes) = settle(&mut core, commands, now, &mut version);
        assert!(requests <= 5 && writes <= 2, "pass {pass}: {requests} requests, {writes} writes");
    }
}
