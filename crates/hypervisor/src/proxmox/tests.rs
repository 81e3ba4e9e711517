//! Whole operations against servers that answer as Proxmox VE does.

mod bad_input;
mod clients;
mod fake;
mod login;
mod server;
mod stand_in;

use super::Proxmox;
use crate::gate::Gate;
use crate::provider::Provider;
use crate::settings::Settings;
use fake::{Shared, State};
use fleet::hypervisor::{
    Blueprint, Failure, GuestNetwork, MachineId, Network, Owner, Power, Seed, Target, Template, TemplateRef,
};
use fleet::record;
use serde_json::json;
use server::{Reply, Server, refused};
use std::sync::Arc;

fn connect(settings: &Settings) -> Proxmox {
    Proxmox::new(settings, Arc::new(Gate::new(8)), Arc::new(|_| {})).unwrap()
}

fn owner(uid: &str) -> Owner {
    Owner { operator: "op".into(), claim: "ci/a".into(), uid: uid.into() }
}

fn target(uid: &str) -> Target {
    Target { id: MachineId("105".into()), node: Some("pve1".into()), owner: owner(uid) }
}

fn template() -> Template {
    Template {
        id: MachineId("9000".into()),
        name: "debian".into(),
        node: "pve1".into(),
        storage: "thin".into(),
        others: Default::default(),
        is_shared: false,
        can_link: true,
        disk: "scsi0".into(),
        disk_bytes: 2 << 30,
        has_agent: true,
    }
}

fn blueprint() -> Blueprint {
    let files = [("user-data".to_owned(), "#cloud-config\n".to_owned()), ("meta-data".to_owned(), String::new())];
    Blueprint {
        id: MachineId("105".into()),
        name: "run-7".into(),
        owner: owner("u-1"),
        node: "pve1".into(),
        template: template(),
        is_linked: true,
        storage: Some("thin".into()),
        pool: Some("ci".into()),
        cpus: 4,
        memory: 2 << 30,
        disk_bytes: Some(8 << 30),
        network: Some(Network { bridge: "vmbr1".into(), vlan: Some(7) }),
        tags: ["ci".to_owned(), "linux".to_owned()].into(),
        seed: Some(Seed { storage: "local".into(), bus: "ide2".into(), files: files.into() }),
    }
}

async fn fake() -> (Server, Shared, Proxmox) {
    let (server, state) = fake::start().await;
    let proxmox = connect(&server.settings());
    (server, state, proxmox)
}

fn set(state: &Shared, change: impl FnOnce(&mut State)) {
    change(&mut state.lock().unwrap());
}

/// A fault at the first request with this beginning.
fn once(state: &Shared, line: &'static str, mut fault: impl FnMut(&mut State) -> Option<Reply> + Send + 'static) {
    let mut is_due = true;
    state.lock().unwrap().fault = Some(Box::new(move |asked, state| match is_due && asked.line().starts_with(line) {
        true => {
            is_due = false;
            fault(state)
        }
        false => None,
    }));
}

#[tokio::test]
async fn a_machine_is_created_configured_started_and_destroyed() {
    let (server, state, proxmox) = fake().await;
    proxmox.create(&blueprint()).await.unwrap();
    assert_eq!(
        server.lines(),
        ["POST /nodes/pve1/qemu/9000/clone"],
        "one request, so that its owner is there from the first moment"
    );
    let inspected = proxmox.inspect(&blueprint().id).await.unwrap().unwrap();
    assert_eq!(
        (inspected.owner, inspected.is_configured, inspected.seen.power),
        (Some(owner("u-1")), false, Power::Stopped)
    );

    proxmox.configure(&blueprint()).await.unwrap();
    let config = state.lock().unwrap().machines["105"].config.clone();
    assert_eq!(
        (&config["cores"], &config["memory"], &config["tags"]),
        (&json!("4"), &json!("2048"), &json!("ci;linux"))
    );
    assert_eq!(config["net0"], "virtio=BC:24:11:00:00:02,bridge=vmbr1,firewall=1,tag=7");
    assert_eq!(config["scsi0"], "thin:base-9000-disk-0,size=8192M");
    let volume = config["ide2"].as_str().unwrap().strip_suffix(",media=cdrom").unwrap().to_owned();
    assert!(state.lock().unwrap().volumes.contains(&format!("pve1 {volume}")), "{volume}");
    assert!(proxmox.inspect(&blueprint().id).await.unwrap().unwrap().is_configured);

    server.forget();
    proxmox.configure(&blueprint()).await.unwrap();
    assert_eq!(server.lines(), ["GET /nodes/pve1/qemu/105/config"], "nothing is left to do");

    assert_eq!(proxmox.addresses(&target("u-1")).await, Ok(None));
    proxmox.start(&target("u-1")).await.unwrap();
    let guest = GuestNetwork { addresses: vec!["10.0.0.7".to_owned()], mac: None };
    assert_eq!(proxmox.addresses(&target("u-1")).await, Ok(Some(guest)));
    let listed = proxmox.list().await.unwrap();
    assert_eq!(listed.machines[&MachineId("105".into())].power, Power::Running);
    assert_eq!((listed.nodes.len(), listed.storages[&("pve1".to_owned(), "thin".to_owned())].used), (2, 40));

    server.forget();
    proxmox.destroy(&target("u-1")).await.unwrap();
    let lines = server.lines();
    let position = |line: &str| {
        lines.iter().position(|other| other.starts_with(line)).unwrap_or_else(|| panic!("{line}: {lines:?}"))
    };
    assert!(position("POST /nodes/pve1/qemu/105/status/stop") < position("DELETE /nodes/pve1/storage/local"));
    assert_eq!(
        lines[position("DELETE /nodes/pve1/qemu/105") - 1],
        "GET /nodes/pve1/qemu/105/config",
        "the owner is read right before"
    );
    assert_eq!(lines[position("POST /nodes/pve1/qemu/105/status/stop") - 2], "GET /nodes/pve1/qemu/105/config");
    set(&state, |state| assert!(state.machines.len() == 1 && state.volumes.is_empty()));
    assert_eq!(proxmox.destroy(&target("u-1")).await, Err(Failure::Absent(blueprint().id)));
    assert_eq!(proxmox.inspect(&blueprint().id).await, Ok(None));
}

#[tokio::test]
async fn nothing_is_done_to_a_machine_of_somebody_else() {
    let (server, state, proxmox) = fake().await;
    proxmox.create(&blueprint()).await.unwrap();
    for description in [None, Some("a note"), Some("virtpilot-owner: {}")] {
        server.forget();
        let stranger = match description {
            None => "u-2",
            Some(text) => {
                state.lock().unwrap().machines.get_mut("105").unwrap().config.insert("description".into(), json!(text));
                "u-1"
            }
        };
        let found = description.is_none().then(|| owner("u-1"));
        let refused = Failure::NotOurs { id: blueprint().id, found };
        assert_eq!(proxmox.start(&target(stranger)).await, Err(refused.clone()));
        assert_eq!(proxmox.stop(&target(stranger)).await, Err(refused.clone()));
        assert_eq!(proxmox.destroy(&target(stranger)).await, Err(refused.clone()));
        assert_eq!(proxmox.addresses(&target(stranger)).await, Err(refused.clone()));
        let mut other = blueprint();
        other.owner = owner(stranger);
        assert_eq!(proxmox.configure(&other).await, Err(refused));
        assert!(server.lines().iter().all(|line| line == "GET /nodes/pve1/qemu/105/config"), "{:?}", server.lines());
    }
}

/// The id is given to another machine at some moment of the destruction: whenever that is, the other one stays.
#[tokio::test]
async fn an_id_that_is_used_again_never_costs_the_other_machine_its_life() {
    let moments = [
        "POST /nodes/pve1/qemu/105/status/stop",
        "GET /nodes/pve1/qemu/105/status/current",
        "DELETE /nodes/pve1/storage",
    ];
    let with_seed = moments.map(|moment| (moment, true));
    for (moment, has_seed) in with_seed.into_iter().chain(moments[..2].iter().map(|moment| (*moment, false))) {
        let (_server, state, proxmox) = fake().await;
        let mut blueprint = blueprint();
        blueprint.seed = blueprint.seed.filter(|_| has_seed);
        proxmox.create(&blueprint).await.unwrap();
        state.lock().unwrap().machines.get_mut("105").unwrap().is_running = true;
        once(&state, moment, |state| {
            let other = state.machines.get_mut("105").unwrap();
            other.config.insert("description".into(), json!("somebody else's"));
            None
        });
        let failure = proxmox.destroy(&target("u-1")).await.unwrap_err();
        assert_eq!(failure, Failure::NotOurs { id: blueprint.id, found: None }, "{moment} {has_seed}");
        assert!(state.lock().unwrap().machines.contains_key("105"), "{moment} {has_seed}");
    }
}

#[tokio::test]
async fn a_machine_that_moved_is_found_and_one_that_cannot_be_seen_is_not_absent() {
    let (server, state, proxmox) = fake().await;
    proxmox.create(&blueprint()).await.unwrap();
    state.lock().unwrap().machines.get_mut("105").unwrap().node = "pve2".into();
    proxmox.start(&target("u-1")).await.unwrap();
    assert!(server.lines().contains(&"POST /nodes/pve2/qemu/105/status/start".to_owned()));

    state.lock().unwrap().hidden.insert("105".into());
    state.lock().unwrap().is_cloning = true;
    assert!(matches!(proxmox.inspect(&blueprint().id).await, Err(Failure::Transient(_))), "it may be our own clone");
    state.lock().unwrap().is_cloning = false;
    assert_eq!(proxmox.inspect(&blueprint().id).await, Err(Failure::Hidden(blueprint().id)));
    state.lock().unwrap().may_see_nothing = true;
    match proxmox.inspect(&blueprint().id).await {
        Err(Failure::Configuration { remedy, .. }) => {
            assert!(remedy.starts_with("grant VM.Audit on the resource pool"), "{remedy}");
        }
        other => panic!("{other:?}"),
    }
    state.lock().unwrap().may_see_nothing = false;
    // The file is missing on the node that was asked, and the list fails: that is not known to be absent.
    once(&state, "GET /cluster/resources", |_| Some(refused(595, "No route to host")));
    assert!(matches!(proxmox.destroy(&target("u-1")).await, Err(Failure::Transient(_))));
    once(&state, "GET /cluster/nextid", |_| Some(refused(500, "no quorum")));
    assert!(matches!(proxmox.inspect(&MachineId("106".into())).await, Err(Failure::NoQuorum(_))));
}

#[tokio::test]
async fn a_clone_is_classed_by_the_end_of_its_task() {
    let (_server, state, proxmox) = fake().await;
    proxmox.create(&blueprint()).await.unwrap();
    assert_eq!(proxmox.create(&blueprint()).await, Err(Failure::Exists(blueprint().id)));
    let mut other = blueprint();
    other.id = MachineId("106".into());
    for (exit, is_expected) in [
        (
            "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout",
            (|f| matches!(f, Failure::Transient(_))) as fn(&Failure) -> bool,
        ),
        ("clone failed: No space left on device", |f| matches!(f, Failure::Resource { .. })),
        ("storage 'fast' does not exist", |f| matches!(f, Failure::Configuration { .. })),
        ("unable to create VM 106: config file already exists", |f| matches!(f, Failure::Exists(_))),
    ] {
        state.lock().unwrap().exit = Some(exit.to_owned());
        let failure = proxmox.create(&other).await.unwrap_err();
        assert!(is_expected(&failure), "{exit}: {failure:?}");
    }
}

/// A proxy answers with a page of its own.
#[tokio::test]
async fn a_clone_whose_answer_cannot_be_read_may_have_been_made() {
    let (_server, state, proxmox) = fake().await;
    once(&state, "POST /nodes/pve1/qemu/9000/clone", |_| Some(Reply::Whole(200, "OK".into(), "<html>".into())));
    let failure = proxmox.create(&blueprint()).await.unwrap_err();
    assert!(matches!(failure, Failure::Transient(_)), "{failure:?}");
}

#[tokio::test]
async fn a_template_that_moved_is_cloned_where_it_is_and_a_deleted_one_is_named() {
    let (server, state, proxmox) = fake().await;
    state.lock().unwrap().machines.get_mut("9000").unwrap().node = "pve2".into();
    proxmox.create(&blueprint()).await.unwrap();
    assert!(server.lines().contains(&"POST /nodes/pve2/qemu/9000/clone".to_owned()), "{:?}", server.lines());
    assert_eq!(state.lock().unwrap().machines["105"].node, "pve1", "the target stays");
    assert_eq!(proxmox.find_template(&TemplateRef::Name("debian".into())).await.unwrap()[0].node, "pve2");
    state.lock().unwrap().machines.remove("9000");
    match proxmox.create(&blueprint()).await {
        Err(Failure::Configuration { message, .. }) => assert_eq!(message, "template 9000 does not exist any more"),
        other => panic!("{other:?}"),
    }
}

/// Whatever request fails, the next attempt ends as if nothing had failed, and no image is left after the end.
#[tokio::test]
async fn a_configuration_that_broke_off_anywhere_is_completed_and_leaves_nothing() {
    for broken in
        ["PUT /nodes/pve1/qemu/105/resize", "POST /nodes/pve1/storage/local/upload", "PUT /nodes/pve1/qemu/105/config"]
    {
        for ends_there in [false, true] {
            let (_server, state, proxmox) = fake().await;
            proxmox.create(&blueprint()).await.unwrap();
            once(&state, broken, |_| Some(Reply::Lost));
            assert!(matches!(proxmox.configure(&blueprint()).await, Err(Failure::Transient(_))), "{broken}");
            assert!(!proxmox.inspect(&blueprint().id).await.unwrap().unwrap().is_configured, "{broken}");
            if !ends_there {
                proxmox.configure(&blueprint()).await.unwrap();
                assert!(proxmox.inspect(&blueprint().id).await.unwrap().unwrap().is_configured, "{broken}");
            }
            proxmox.destroy(&target("u-1")).await.unwrap();
            assert!(state.lock().unwrap().volumes.is_empty(), "{broken}");
        }
    }
}

#[tokio::test]
async fn another_seed_replaces_the_former_one() {
    let (_server, state, proxmox) = fake().await;
    proxmox.create(&blueprint()).await.unwrap();
    proxmox.configure(&blueprint()).await.unwrap();
    let first = state.lock().unwrap().volumes.clone();
    let mut other = blueprint();
    other.seed.as_mut().unwrap().files.insert("user-data".into(), "#cloud-config\n# other\n".into());
    proxmox.configure(&other).await.unwrap();
    let second = state.lock().unwrap().volumes.clone();
    assert!(second.len() == 1 && second != first);
    other.seed.as_mut().unwrap().bus = "floppy".into();
    assert!(matches!(proxmox.configure(&other).await, Err(Failure::Configuration { .. })));
}

#[tokio::test]
async fn a_change_by_somebody_else_is_not_overwritten() {
    let (_server, state, proxmox) = fake().await;
    proxmox.create(&blueprint()).await.unwrap();
    once(&state, "PUT /nodes/pve1/qemu/105/config", |state| {
        let machine = state.machines.get_mut("105").unwrap();
        machine.config.insert("digest".into(), json!("other"));
        machine.config.insert("description".into(), json!("somebody else's"));
        None
    });
    assert!(matches!(proxmox.configure(&blueprint()).await, Err(Failure::Transient(_))));
    let config = state.lock().unwrap().machines["105"].config.clone();
    assert_eq!(config["description"], "somebody else's");
    assert!(record::parse("somebody else's", "100").is_none());
}

#[tokio::test]
async fn a_linked_clone_has_no_storage_and_a_full_one_has() {
    let (server, _state, proxmox) = fake().await;
    let sent = |number: usize| {
        server
            .asked
            .lock()
            .unwrap()
            .iter()
            .filter(|asked| asked.path.ends_with("/clone"))
            .nth(number)
            .unwrap()
            .parameters
            .clone()
    };
    proxmox.create(&blueprint()).await.unwrap();
    let linked = sent(0);
    assert_eq!(
        (linked["full"].as_str(), linked.get("storage"), linked["pool"].as_str(), linked.get("target")),
        ("0", None, "ci", None)
    );
    assert_eq!(record::parse(&linked["description"], &linked["newid"]).unwrap().owner, owner("u-1"));
    let mut full = blueprint();
    (full.id, full.is_linked, full.node) = (MachineId("106".into()), false, "pve2".into());
    proxmox.create(&full).await.unwrap();
    assert_eq!(
        (sent(1)["full"].as_str(), sent(1)["storage"].as_str(), sent(1)["target"].as_str()),
        ("1", "thin", "pve2")
    );
    for wrong in ["", "99", "abc", "1/../2", "1000000000", "+105"] {
        full.id = MachineId(wrong.into());
        assert!(matches!(proxmox.create(&full).await, Err(Failure::Permanent(_))), "{wrong}");
    }
}
