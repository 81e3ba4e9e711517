//! Operations against the stand-in of a Proxmox VE cluster, with a token that has rights in its pool only.

mod guest;
mod placing;
mod roster;
mod silent_node;

use super::server::{Asked, Reply, Server};
use super::{Proxmox, connect, owner};
use crate::provider::Provider;
use crate::proxmox::client::{Call, Content};
use crate::proxmox::privileges::tests::documented;
use crate::proxmox::task::follow;
use crate::settings::{Credentials, Limits, Settings};
use fleet::connection::Cloned;
use fleet::hypervisor::{
    Blueprint, Failure, MachineId, Network, Power, Seed, SeedImage, SeedSearch, Target, TemplateRef,
};
use futures::StreamExt;
use pve_stand_in::{Fault, FaultEffect, Method, Request, Setup, StandIn, Timing};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

type Shared = Arc<Mutex<StandIn>>;

async fn start() -> (Server, Shared) {
    start_with(Setup::cluster(Timing::short())).await
}

async fn start_with(mut setup: Setup) -> (Server, Shared) {
    setup.epoch = jiff::Timestamp::now().as_second();
    let state = Arc::new(Mutex::new(StandIn::new(&setup)));
    let (shared, started) = (state.clone(), Instant::now());
    let server = Server::start(move |asked| answer(&mut shared.lock().unwrap(), started.elapsed(), asked)).await;
    (server, state)
}

fn answer(state: &mut StandIn, now: Duration, asked: &Asked) -> Reply {
    let headers: Vec<_> = asked.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    let request = Request::from_http(&asked.method, &asked.target, &headers, &asked.body).unwrap();
    let whole = |answer: pve_stand_in::Response| {
        let body = answer.body.map(|body| body.to_string()).unwrap_or_default();
        Reply::Whole(answer.status, answer.reason, body)
    };
    match state.handle(&request, now) {
        pve_stand_in::Reply::Answer(answer) => whole(answer),
        pve_stand_in::Reply::Late(answer, time) => Reply::Late(time, Box::new(whole(answer))),
        pve_stand_in::Reply::Lost => Reply::Lost,
    }
}

fn with_token(server: &Server, token: &str) -> Settings {
    let (id, secret) = token.split_once('=').unwrap();
    let mut settings = server.settings();
    settings.credentials = Credentials::Token { id: id.into(), secret: secret.into() };
    settings.limits = Limits { task: Duration::from_secs(5), ..settings.limits };
    let one = |name: &str| [name.to_owned()].into();
    settings.scope.nodes = ["pve1", "pve2", "pve3"].map(str::to_owned).into();
    (settings.scope.storages, settings.scope.seed_storages) = (one("shared"), one("local"));
    settings.scope.networks = [Network { bridge: "vmbr0".into(), vlan: None }].into();
    settings.scope.pools = one(Setup::POOL);
    settings
}

async fn fleet() -> (Server, Shared, Proxmox) {
    let (server, state) = start().await;
    let proxmox = connect(&with_token(&server, Setup::FLEET_TOKEN));
    (server, state, proxmox)
}

pub(super) async fn blueprint(proxmox: &Proxmox, id: u32) -> Blueprint {
    let template = proxmox.find_template(&TemplateRef::Tag("runner".into())).await.unwrap().pop().unwrap();
    let files = [("user-data", "#cloud-config\n"), ("meta-data", "instance-id: a\n")];
    Blueprint {
        id: MachineId(id.to_string()),
        name: format!("run-{id}"),
        owner: owner("u-1"),
        node: "pve2".into(),
        is_linked: template.can_link && template.is_shared,
        template,
        storage: None,
        pool: Some(Setup::POOL.into()),
        cpus: 2,
        memory: 4 << 30,
        disk_bytes: Some(16 << 30),
        network: Some(Network { bridge: "vmbr0".into(), vlan: Some(12) }),
        tags: ["ci".to_owned()].into(),
        seed: Some(Seed {
            storage: "local".into(),
            bus: "ide2".into(),
            files: files.map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
        }),
    }
}

pub(super) fn target(blueprint: &Blueprint) -> Target {
    Target { id: blueprint.id.clone(), node: Some(blueprint.node.clone()), owner: blueprint.owner.clone() }
}

/// The ids of all machines but the template, and all images.
fn left(state: &Shared) -> (Vec<u32>, Vec<String>) {
    let state = state.lock().unwrap();
    let machines = state.vms().keys().copied().filter(|id| *id != Setup::TEMPLATE).collect();
    let volumes = state
        .storages()
        .values()
        .flat_map(|storage| format!("{:?}", storage.volumes.keys()).split('"').map(str::to_owned).collect::<Vec<_>>())
        .filter(|name| name.contains(".iso"))
        .collect();
    (machines, volumes)
}

/// P19, P21 and P24: every method, by the API alone, with a linked clone, its bridge, and a seed as its drive for cloud-init.
#[tokio::test]
async fn the_rights_of_the_fleet_are_enough_for_a_whole_life() {
    let (server, state, proxmox) = fleet().await;
    let checked = proxmox.check().await.unwrap();
    assert_eq!((checked.missing, checked.unknown), (Vec::new(), Vec::new()));
    assert!(
        checked.is_quorate && checked.clock_ahead.abs() < 3 && checked.version.starts_with('9'),
        "{}",
        checked.version
    );
    let blueprint = blueprint(&proxmox, 300).await;
    assert!(blueprint.is_linked && blueprint.template.has_agent && blueprint.template.disk_bytes == 8 << 30);
    assert_eq!(proxmox.inspect(&blueprint.id).await, Ok(None));
    proxmox.create(&blueprint).await.unwrap();
    proxmox.configure(&blueprint).await.unwrap();
    let config = state.lock().unwrap().vm(300).unwrap().config.clone();
    assert!(config["net0"].contains("bridge=vmbr0") && config["net0"].contains("tag=12"), "{config:?}");
    assert!(config["ide2"].starts_with("local:iso/virtpilot-") && config["scsi0"].starts_with("shared:"), "{config:?}");
    server.forget();
    proxmox.configure(&blueprint).await.unwrap();
    assert_eq!(server.lines(), ["GET /nodes/pve2/qemu/300/config"]);
    proxmox.start(&target(&blueprint)).await.unwrap();
    let inspected = proxmox.inspect(&blueprint.id).await.unwrap().unwrap();
    assert_eq!((inspected.owner, inspected.is_configured), (Some(owner("u-1")), true));
    assert_eq!((inspected.seen.power, &*inspected.seen.node), (Power::Running, "pve2"));
    let addresses = loop {
        if let Some(addresses) = proxmox.addresses(&target(&blueprint)).await.unwrap() {
            break addresses;
        }
    };
    assert!(!addresses.addresses.is_empty());
    let mac = addresses.mac.unwrap().to_uppercase();
    assert!(config["net0"].to_uppercase().contains(&mac), "{mac}");
    let listed = proxmox.list().await.unwrap();
    assert!(listed.machines.contains_key(&blueprint.id) && listed.nodes.len() == 3 && listed.storages.len() == 9);
    assert_eq!(left(&state).1.len(), 1);
    proxmox.remove_seed(&target(&blueprint)).await.unwrap();
    assert_eq!(left(&state), (vec![300], Vec::new()), "the image goes once it is used, and the machine runs on");
    let config = state.lock().unwrap().vm(300).unwrap().config.clone();
    assert_eq!(config["ide2"], "none,media=cdrom");
    assert!(proxmox.inspect(&blueprint.id).await.unwrap().unwrap().is_configured);
    server.forget();
    proxmox.remove_seed(&target(&blueprint)).await.unwrap();
    assert_eq!(server.lines(), ["GET /nodes/pve2/qemu/300/config"], "nothing is left to do");
    proxmox.destroy(&target(&blueprint)).await.unwrap();
    assert_eq!(left(&state), (Vec::new(), Vec::new()));
    assert_eq!(proxmox.destroy(&target(&blueprint)).await, Err(Failure::Absent(blueprint.id)));
}

/// The user has what the commands of `docs/fleet.md` grant, and nothing else.
#[tokio::test]
async fn the_documented_rights_are_enough_for_a_whole_life_and_show_that_the_quorum_is_lost() {
    let mut setup = Setup::cluster(Timing::short());
    let mut seeds = setup.storages[0].clone();
    (seeds.name, seeds.content) = ("fleet-seeds".into(), vec!["iso".into()]);
    setup.storages.push(seeds);
    setup.templates[0].storage = "local-lvm".into();
    let user = setup.users.iter_mut().find(|user| user.name == "fleet@pve").unwrap();
    user.privileges = documented().into_iter().map(|grant| (grant.path, grant.privileges)).collect();
    user.tokens[0].privileges = None;
    let (server, state) = start_with(setup).await;
    let mut settings = with_token(&server, Setup::FLEET_TOKEN);
    let one = |name: &str| [name.to_owned()].into();
    (settings.scope.storages, settings.scope.seed_storages) = (one("local-lvm"), one("fleet-seeds"));
    let proxmox = connect(&settings);
    let checked = proxmox.check().await.unwrap();
    assert_eq!((checked.missing, checked.unknown, checked.is_quorate), (Vec::new(), Vec::new(), true));
    let mut blueprint = blueprint(&proxmox, 300).await;
    (blueprint.node, blueprint.is_linked) = ("pve1".into(), true);
    blueprint.seed.as_mut().unwrap().storage = "fleet-seeds".into();
    live(&proxmox, &blueprint).await;
    assert_eq!(left(&state), (Vec::new(), Vec::new()));
    state.lock().unwrap().set_quorate(false);
    assert!(!proxmox.check().await.unwrap().is_quorate);
}

#[tokio::test]
async fn a_clone_that_is_not_finished_is_neither_absent_nor_foreign() {
    let (_server, state, fleet) = fleet().await;
    let blueprint = blueprint(&fleet, 300).await;
    let root = connect(&with_token(&_server, Setup::ROOT_TOKEN));
    let hanging = Fault::once(Method::Post, "/nodes", FaultEffect::TaskNeverEnds).containing("/clone");
    state.lock().unwrap().inject(hanging);
    let making = fleet.create(&blueprint);
    let looking = async {
        while state.lock().unwrap().vm(300).is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for proxmox in [&fleet, &root] {
            let inspected = proxmox.inspect(&blueprint.id).await;
            assert!(matches!(inspected, Err(Failure::Transient(_))), "{inspected:?}");
            let destroyed = proxmox.destroy(&target(&blueprint)).await;
            assert!(matches!(destroyed, Err(Failure::Transient(_))), "{destroyed:?}");
        }
    };
    tokio::select! {
        made = making => panic!("{made:?}"),
        () = looking => {}
    }
    let second = fleet.create(&blueprint).await;
    assert_eq!(second, Err(Failure::Exists(blueprint.id.clone())));
}

#[tokio::test]
async fn a_machine_of_others_is_never_touched_whether_or_not_it_can_be_seen() {
    let (server, state, fleet) = fleet().await;
    let blueprint = blueprint(&fleet, 300).await;
    state.lock().unwrap().add_foreign_vm(300, "pve2", "database");
    let root = connect(&with_token(&server, Setup::ROOT_TOKEN));
    let hidden = Failure::Hidden(blueprint.id.clone());
    assert_eq!(fleet.inspect(&blueprint.id).await, Err(hidden.clone()));
    assert_eq!(root.inspect(&blueprint.id).await.unwrap().unwrap().owner, None);
    for (proxmox, refused) in [(&fleet, hidden), (&root, Failure::NotOurs { id: blueprint.id.clone(), found: None })] {
        assert_eq!(proxmox.create(&blueprint).await, Err(Failure::Exists(blueprint.id.clone())));
        assert_eq!(proxmox.start(&target(&blueprint)).await, Err(refused.clone()));
        assert_eq!(proxmox.stop(&target(&blueprint)).await, Err(refused.clone()));
        assert_eq!(proxmox.destroy(&target(&blueprint)).await, Err(refused.clone()));
        assert_eq!(proxmox.configure(&blueprint).await, Err(refused));
    }
    assert_eq!(left(&state).0, [300]);
}

/// Proxmox VE copies everything of a machine, also its description and its tags.
#[tokio::test]
async fn a_copy_of_a_machine_is_nobodys() {
    let (server, state, proxmox) = fleet().await;
    let blueprint = blueprint(&proxmox, 300).await;
    proxmox.create(&blueprint).await.unwrap();
    proxmox.configure(&blueprint).await.unwrap();
    let root = connect(&with_token(&server, Setup::ROOT_TOKEN));
    let content = Content::Parameters(vec![("newid", "301".into()), ("full", "1".into())]);
    let (path, parts) = ("/nodes/{node}/qemu/{vmid}/clone", ["pve2", "300"]);
    let task = root.client.send::<Value>(Call { method: http::Method::POST, path, parts: &parts, content }).await;
    follow(&root.client, &task.unwrap()).await.unwrap();
    let copy = MachineId("301".into());
    let described = state.lock().unwrap().vm(301).unwrap().description().unwrap().to_owned();
    assert!(described.contains("virtpilot-owner:"), "{described}");
    assert_eq!(root.inspect(&copy).await.unwrap().unwrap().owner, None);
    let wrong = Target { id: copy.clone(), ..target(&blueprint) };
    assert_eq!(root.destroy(&wrong).await, Err(Failure::NotOurs { id: copy, found: None }));
    proxmox.destroy(&target(&blueprint)).await.unwrap();
    assert_eq!(left(&state).0, [301]);
}

#[tokio::test]
async fn machines_of_a_protected_template_are_not_protected_and_do_not_start_with_their_node() {
    for is_configured in [true, false] {
        let (_server, state, proxmox) = fleet().await;
        for name in ["protection", "onboot"] {
            let mut state = state.lock().unwrap();
            state.vm_mut(Setup::TEMPLATE).unwrap().config.insert(name.into(), "1".into());
        }
        let blueprint = blueprint(&proxmox, 300).await;
        proxmox.create(&blueprint).await.unwrap();
        if is_configured {
            proxmox.configure(&blueprint).await.unwrap();
            let config = state.lock().unwrap().vm(300).unwrap().config.clone();
            assert_eq!((config["protection"].as_str(), config["onboot"].as_str()), ("0", "0"));
        }
        if is_configured {
            let protect = |value: &str| {
                let mut state = state.lock().unwrap();
                state.vm_mut(300).unwrap().config.insert("protection".into(), value.into());
            };
            protect("1");
            let refused = proxmox.destroy(&target(&blueprint)).await;
            assert!(matches!(refused, Err(Failure::Configuration { .. })), "a person has protected it: {refused:?}");
            protect("0");
        }
        proxmox.destroy(&target(&blueprint)).await.unwrap();
        assert_eq!(left(&state), (Vec::new(), Vec::new()));
    }
}

/// Loses the answer to each request in turn, and the request itself: every step is repeated until it is done, and the end is the same.
#[tokio::test]
async fn whatever_request_is_lost_the_end_is_the_same() {
    for effect in [FaultEffect::LoseReply, FaultEffect::Drop] {
        let lives = (0..80).map(|skip| live_with_a_fault(skip, effect.clone()));
        // Eighty at once answer too late for the time that a request has, on a machine that does something else, too.
        let fired: Vec<bool> = futures::stream::iter(lives).buffer_unordered(8).collect().await;
        let count = fired.iter().filter(|fired| **fired).count();
        assert!((20..80).contains(&count), "a life has {count} requests, and each was lost once");
    }
}

/// Says whether the fault happened at all.
async fn live_with_a_fault(skip: u32, effect: FaultEffect) -> bool {
    let (_server, state, proxmox) = fleet().await;
    let blueprint = blueprint(&proxmox, 300).await;
    let what = format!("{effect:?} after {skip}");
    let fault = Fault { method: None, path: "/".into(), contains: String::new(), skip, times: 1, effect };
    state.lock().unwrap().inject(fault);
    live(&proxmox, &blueprint).await;
    assert_eq!(left(&state), (Vec::new(), Vec::new()), "{what}");
    state.lock().unwrap().fired_faults() > 0
}

/// A whole life, with the judgement of a patient person.
async fn live(proxmox: &Proxmox, blueprint: &Blueprint) {
    for attempt in 0.. {
        assert!(attempt < 20);
        match proxmox.create(blueprint).await {
            Ok(()) => break,
            Err(Failure::Transient(_) | Failure::Exists(_)) => {}
            Err(other) => panic!("{other:?}"),
        }
        match proxmox.inspect(&blueprint.id).await {
            Ok(Some(found)) if found.owner.as_ref() == Some(&blueprint.owner) => break,
            Ok(None) | Err(Failure::Transient(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    let target = target(blueprint);
    patiently(|| proxmox.configure(blueprint)).await;
    patiently(|| proxmox.start(&target)).await;
    patiently(|| proxmox.remove_seed(&target)).await;
    patiently(|| async {
        match proxmox.destroy(&target).await {
            Err(Failure::Absent(_)) => Ok(()),
            other => other,
        }
    })
    .await;
}

/// Tries again while a failure is transient.
async fn patiently<F: Future<Output = Result<(), Failure>>>(step: impl Fn() -> F) {
    let mut failures = Vec::new();
    while let Err(failure) = step().await {
        assert!(matches!(failure, Failure::Transient(_)) && failures.len() < 10, "{failure:?} after {failures:?}");
        failures.push(failure);
    }
}

#[tokio::test]
async fn what_is_broken_in_the_cluster_is_classed() {
    let (server, state, proxmox) = fleet().await;
    let blueprint = blueprint(&proxmox, 300).await;
    let set = |change: fn(&mut StandIn)| change(&mut state.lock().unwrap());
    set(|state| state.set_full("shared", true));
    match proxmox.create(&blueprint).await {
        Err(Failure::Resource { remedy, .. }) => {
            assert!(remedy.starts_with("free space on storage shared,"), "{remedy}");
        }
        other => panic!("{other:?}"),
    }
    set(|state| state.set_full("shared", false));
    set(|state| state.set_quorate(false));
    let failure = proxmox.create(&blueprint).await;
    assert!(matches!(failure, Err(Failure::NoQuorum(_))), "{failure:?}");
    assert!(!proxmox.check().await.unwrap().is_quorate);
    set(|state| state.set_quorate(true));
    set(|state| state.set_online("pve2", false));
    // The clone is made where the template is, and given to the other node.
    proxmox.create(&blueprint).await.unwrap();
    match proxmox.configure(&blueprint).await {
        Err(Failure::Transient(message)) => {
            assert!(message.contains("node pve2: ") && message.contains("bring the node back"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    set(|state| state.set_online("pve2", true));
    let mut wrong = blueprint.clone();
    wrong.network = Some(Network { bridge: "vmbr9".into(), vlan: None });
    let failure = match proxmox.configure(&wrong).await {
        Ok(()) => proxmox.start(&target(&wrong)).await,
        other => other,
    };
    assert!(matches!(failure, Err(Failure::Configuration { .. })), "{failure:?}");
    set(|state| state.revoke("fleet@pve!virtpilot", "VM.Config.CPU"));
    assert_eq!(proxmox.check().await.unwrap().missing, ["VM.Config.CPU on /pool/virtpilot or /vms"]);
    let mut settings = with_token(&server, Setup::FLEET_TOKEN);
    settings.credentials = Credentials::Token { id: "fleet@pve!virtpilot".into(), secret: "wrong".into() };
    assert!(matches!(connect(&settings).list().await, Err(Failure::Configuration { .. })));
}

/// The image of a machine that a person has deleted, beside images of people and of another installation.
#[tokio::test]
async fn images_without_a_machine_are_found_and_only_those_of_this_installation() {
    let (_server, state, proxmox) = fleet().await;
    let mine = blueprint(&proxmox, 300).await;
    let mut others = blueprint(&proxmox, 301).await;
    others.owner.operator = "another installation".into();
    for blueprint in [&mine, &others] {
        proxmox.create(blueprint).await.unwrap();
        proxmox.configure(blueprint).await.unwrap();
    }
    state.lock().unwrap().remove_vm(300);
    let search = SeedSearch { operator: mine.owner.operator.clone(), storages: ["local".to_owned()].into() };
    // A storage that cannot be listed hides no other one.
    let failing = Fault::once(Method::Get, "/nodes/pve1/storage/local", FaultEffect::Fail(500, "mount error".into()));
    state.lock().unwrap().inject(failing);
    let found = proxmox.list_seeds(&search).await.unwrap();
    assert!(found.unread.len() == 1 && found.unread[0].contains("storage local of node pve1"), "{:?}", found.unread);
    let [image] = found.images.as_slice() else { panic!("{found:?}") };
    assert_eq!((image.node.as_str(), image.uid.as_str()), ("pve2", "u-1"));
    let elsewhere = SeedSearch { storages: ["shared".to_owned()].into(), ..search.clone() };
    assert_eq!(proxmox.list_seeds(&elsewhere).await, Ok(Default::default()));
    let wrong = SeedImage { uid: "u-2".into(), ..image.clone() };
    assert!(matches!(proxmox.delete_seed(&wrong).await, Err(Failure::Permanent(_))));
    assert_eq!(left(&state).1.len(), 2);
    proxmox.delete_seed(image).await.unwrap();
    proxmox.delete_seed(image).await.unwrap();
    let (_, images) = left(&state);
    assert_eq!(images.len(), 1, "{images:?}");
    assert_eq!(proxmox.list_seeds(&search).await, Ok(Default::default()));
    assert!(
        state.lock().unwrap().vm(301).unwrap().config["ide2"].contains(&images[0]),
        "that of the other installation"
    );
}

/// A stand-in whose fleet has these rights and no others, and settings that name what the documentation names.
async fn documented_fleet(privileges: Vec<(String, Vec<String>)>) -> (Server, Shared, Proxmox) {
    let mut setup = Setup::cluster(Timing::short());
    let mut seeds = setup.storages[0].clone();
    (seeds.name, seeds.content) = ("fleet-seeds".into(), vec!["iso".into()]);
    setup.storages.push(seeds);
    setup.templates[0].storage = "local-lvm".into();
    let user = setup.users.iter_mut().find(|user| user.name == "fleet@pve").unwrap();
    user.privileges = privileges;
    user.tokens[0].privileges = None;
    let (server, state) = start_with(setup).await;
    state.lock().unwrap().add_vnet("build", "ci");
    let mut settings = with_token(&server, Setup::FLEET_TOKEN);
    let scope = &mut settings.scope;
    (scope.storages, scope.seed_storages) = (Default::default(), ["fleet-seeds".to_owned()].into());
    scope.networks = [Network { bridge: "vmbr0".into(), vlan: Some(12) }].into();
    let template = TemplateRef::Id(MachineId(Setup::TEMPLATE.to_string()));
    scope.templates = [Cloned { template, is_full: false, storage: None }].into();
    let proxmox = connect(&settings);
    (server, state, proxmox)
}

async fn documented_blueprint(proxmox: &Proxmox) -> Blueprint {
    let mut blueprint = blueprint(proxmox, 300).await;
    (blueprint.node, blueprint.is_linked) = ("pve1".into(), true);
    blueprint.seed.as_mut().unwrap().storage = "fleet-seeds".into();
    blueprint
}

/// Every privilege is taken away in turn: the check names it and no other one, or it is not needed for a whole life.
#[tokio::test]
async fn a_check_names_exactly_the_privilege_that_is_missing_and_what_it_accepts_is_enough() {
    let all: Vec<(String, Vec<String>)> =
        documented().into_iter().map(|grant| (grant.path, grant.privileges)).collect();
    let (_server, _, proxmox) = documented_fleet(all.clone()).await;
    let checked = proxmox.check().await.unwrap();
    assert_eq!((checked.missing, checked.unknown), (Vec::new(), Vec::new()));
    live(&proxmox, &documented_blueprint(&proxmox).await).await;
    let mut named = 0;
    for (number, (path, privileges)) in all.iter().enumerate() {
        for privilege in privileges {
            let mut fewer = all.clone();
            fewer[number].1.retain(|kept| kept != privilege);
            let (_server, _, proxmox) = documented_fleet(fewer).await;
            let missing = proxmox.check().await.unwrap().missing;
            if missing.is_empty() {
                live(&proxmox, &documented_blueprint(&proxmox).await).await;
                continue;
            }
            named += 1;
            let what = format!("{privilege} on {path}");
            assert!(missing.iter().all(|found| found.starts_with(&what)), "without {what}: {missing:?}");
        }
    }
    assert!(named > 20, "{named}");
}

/// Linked clones allocate space wherever the template has a volume, and full ones only where they go.
#[tokio::test]
async fn the_right_to_allocate_space_is_looked_for_where_clones_have_volumes() {
    let all: Vec<(String, Vec<String>)> =
        documented().into_iter().map(|grant| (grant.path, grant.privileges)).collect();
    for (is_full, storage, expected) in [
        (false, None, vec!["shared"]),
        (false, Some("other"), vec!["shared"]),
        (true, None, vec![]),
        (true, Some("other"), vec!["other"]),
    ] {
        let (server, state, _) = documented_fleet(all.clone()).await;
        for (name, value) in [("efidisk0", "shared:base-9000-disk-1,size=4M"), ("ide2", "shared:iso/a.iso,media=cdrom")]
        {
            let mut state = state.lock().unwrap();
            state.vm_mut(Setup::TEMPLATE).unwrap().config.insert(name.into(), value.into());
        }
        let mut settings = with_token(&server, Setup::FLEET_TOKEN);
        (settings.scope.storages, settings.scope.seed_storages) = Default::default();
        let template = TemplateRef::Id(MachineId(Setup::TEMPLATE.to_string()));
        settings.scope.templates = [Cloned { template, is_full, storage: storage.map(str::to_owned) }].into();
        let missing = connect(&settings).check().await.unwrap().missing;
        let expected: Vec<String> = expected
            .into_iter()
            .flat_map(|name| ["AllocateSpace", "Audit"].map(|what| format!("Datastore.{what} on /storage/{name}")))
            .collect();
        assert_eq!(missing, expected, "{is_full} {storage:?}");
    }
}

/// A clone has the interface of its template before it is configured, whatever its own network is to be.
#[tokio::test]
async fn the_right_to_use_the_network_of_a_template_is_looked_for_too() {
    let narrow = documented().into_iter().map(|grant| match grant.path.as_str() {
        "/sdn/zones/localnetwork" => ("/sdn/zones/localnetwork/vmbr0/12".to_owned(), grant.privileges),
        _ => (grant.path, grant.privileges),
    });
    let (_server, _, proxmox) = documented_fleet(narrow.collect()).await;
    assert_eq!(proxmox.check().await.unwrap().missing, ["SDN.Use on /sdn/zones/localnetwork/vmbr0"]);
    let refused = proxmox.create(&documented_blueprint(&proxmox).await).await;
    assert!(
        matches!(&refused, Err(Failure::Configuration { message, .. }) if message.contains("SDN.Use")),
        "{refused:?}"
    );
}

/// A VNet is in a zone of its own, and a bridge of all nodes.
#[tokio::test]
async fn the_right_to_use_a_vnet_is_looked_for_in_its_zone() {
    let mut all: Vec<(String, Vec<String>)> =
        documented().into_iter().map(|grant| (grant.path, grant.privileges)).collect();
    all.push(("/sdn/zones/ci/build".into(), vec!["SDN.Use".into()]));
    for vlan in [None, Some(7)] {
        let (server, state, _) = documented_fleet(all.clone()).await;
        let mut settings = with_token(&server, Setup::FLEET_TOKEN);
        settings.scope.networks = [Network { bridge: "build".into(), vlan }].into();
        (settings.scope.storages, settings.scope.seed_storages) = Default::default();
        let proxmox = connect(&settings);
        let checked = proxmox.check().await.unwrap();
        assert_eq!((checked.missing, checked.unknown), (Vec::new(), Vec::new()));
        let mut blueprint = documented_blueprint(&proxmox).await;
        blueprint.network = Some(Network { bridge: "build".into(), vlan });
        live(&proxmox, &blueprint).await;
        // Seen, and not to be used.
        state.lock().unwrap().revoke("fleet@pve", "SDN.Use");
        state.lock().unwrap().grant("fleet@pve", "/sdn/zones/ci/build", &["SDN.Audit"]);
        let vlan = vlan.map(|vlan| format!("/{vlan}")).unwrap_or_default();
        assert_eq!(proxmox.check().await.unwrap().missing, [format!("SDN.Use on /sdn/zones/ci/build{vlan}")]);
    }
}

/// Two hours pass before every step: the ticket is renewed, and no step fails for it.
#[tokio::test]
async fn a_ticket_that_expires_is_renewed_without_a_failure_and_writes_need_its_csrf_token() {
    let (server, state) = start().await;
    let mut settings = with_token(&server, Setup::FLEET_TOKEN);
    settings.credentials = Credentials::Password { username: "fleet@pve".into(), password: "battery staple".into() };
    let proxmox = connect(&settings);
    let blueprint = blueprint(&proxmox, 300).await;
    let expire = || state.lock().unwrap().expire_tickets();
    expire();
    proxmox.create(&blueprint).await.unwrap();
    expire();
    proxmox.configure(&blueprint).await.unwrap();
    expire();
    proxmox.start(&target(&blueprint)).await.unwrap();
    expire();
    assert_eq!(proxmox.inspect(&blueprint.id).await.unwrap().unwrap().owner, Some(owner("u-1")));
    expire();
    proxmox.destroy(&target(&blueprint)).await.unwrap();
    assert_eq!(left(&state), (Vec::new(), Vec::new()));
    let logins = server.lines().iter().filter(|line| *line == "POST /access/ticket").count();
    assert_eq!(logins, 6, "one login, and one for each ticket that has expired");
    let sent = |csrf: Option<&str>| {
        let ticket = state.lock().unwrap().ticket("fleet@pve", "battery staple").unwrap();
        let pve_stand_in::Credentials::Ticket { ticket, csrf: valid } = ticket else { panic!("no ticket") };
        let csrf = csrf.map_or(valid, |other| Some(other.to_owned()).filter(|other| !other.is_empty()));
        let mut request = Request::new(Method::Post, "/nodes/pve1/qemu/9000/clone");
        request.parameters.insert("newid".into(), "301".into());
        request.parameters.insert("pool".into(), Setup::POOL.into());
        request.credentials = pve_stand_in::Credentials::Ticket { ticket, csrf };
        let mut state = state.lock().unwrap();
        let answer = state.handle(&request, Duration::from_secs(60)).answer().unwrap();
        (answer.status, answer.reason)
    };
    assert_eq!(sent(Some("")), (401, "Permission denied - invalid csrf token".to_owned()));
    assert_eq!(sent(Some("00000000:abc")).0, 401);
    assert_eq!(sent(None).0, 200);
}
