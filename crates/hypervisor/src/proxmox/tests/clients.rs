//! Clients that others wrote make every call that this one makes, so that the stand-in answers neither in a way that only suits us.

use super::stand_in::{blueprint, target};
use super::{Proxmox, owner};
use crate::provider::Provider;
use crate::settings::{Credentials, Limits, Scope, Settings, Tls};
use fleet::hypervisor::{Delivery, Failure, MachineId, Network, SeedSearch, TemplateRef};
use playground::cache::Cache;
use playground::proxmox::{Fault, FaultEffect, Line, Method, Options, ProxmoxStandIn};
use playground::proxmox_clients::{self, Clients};
use playground::tools::Tools;
use playground::{Progress, UserError};
use pve_stand_in::ROUTES;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// `METHOD PATH`, with placeholders in the path.
type Calls = BTreeSet<String>;

fn start() -> ProxmoxStandIn {
    let stand_in = ProxmoxStandIn::start(&Options::for_test()).unwrap_or_else(|error| panic!("{error}"));
    stand_in.with(|state| state.add_vnet("blue", "lab"));
    stand_in
}

/// The paths in the sources of this crate.
fn paths_in_sources() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/proxmox");
    let is_path = |text: &&str| {
        ["/access/", "/cluster/", "/nodes/{node}/", "/pools", "/version"].iter().any(|start| text.starts_with(start))
    };
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = entry.unwrap().path();
        if file.is_file() {
            let text = std::fs::read_to_string(&file).unwrap();
            found.extend(text.split('"').filter(is_path).map(str::to_owned));
        }
    }
    found
}

/// Lets this client do everything that it can, and returns what it asked.
async fn own_calls() -> Calls {
    let stand_in = start();
    let calls: Arc<Mutex<Calls>> = Arc::default();
    let connect = |credentials: Credentials| {
        let noted = calls.clone();
        let report = Arc::new(move |exchange: &crate::exchange::Exchange| {
            noted.lock().unwrap().insert(format!("{} {}", exchange.method, exchange.path));
        });
        let one = |name: &str| [name.to_owned()].into();
        let bridge = |name: &str| Network { bridge: name.into(), vlan: None };
        let settings = Settings {
            endpoint: stand_in.address.clone(),
            allows_http: false,
            credentials,
            tls: Tls::Authorities(stand_in.ca_pem.clone()),
            scope: Scope {
                storages: one("shared"),
                seed_storages: one("local"),
                networks: ["vmbr0", "blue"].map(bridge).into(),
                pools: one("virtpilot"),
                ..Scope::default()
            },
            limits: Limits { task: Duration::from_secs(20), ..Limits::default() },
        };
        Proxmox::new(&settings, Arc::new(crate::gate::Gate::new(8)), report).unwrap()
    };
    let given = &stand_in.credentials;
    let (id, secret) = given.fleet_token.split_once('=').unwrap();
    let fleet = connect(Credentials::Token { id: id.into(), secret: secret.into() });
    let password = given.password.as_str().into();
    let root = connect(Credentials::Password { username: given.user.clone(), password });

    root.check().await.unwrap();
    root.list().await.unwrap();
    root.find_template(&TemplateRef::Tag("runner".into())).await.unwrap();
    let blueprint = blueprint(&root, 300).await;
    let target = target(&blueprint);
    assert_eq!(root.inspect(&blueprint.id).await, Ok(None));
    stand_in.with(|state| state.add_foreign_vm(301, "pve2", "database"));
    assert!(matches!(fleet.inspect(&MachineId("301".into())).await, Err(Failure::Hidden(_))));
    root.create(&blueprint).await.unwrap();
    root.configure(&blueprint).await.unwrap();
    // The log of a task is read where its exit status says too little.
    stand_in.inject(Fault::once(Method::Post, "/nodes", FaultEffect::TaskFails("odd".into())).containing("/start"));
    root.start(&target).await.unwrap_err();
    root.start(&target).await.unwrap();
    while root.addresses(&target).await.unwrap().is_none() {}
    let delivery = Delivery { target: target.clone(), files: [("user-data".into(), "#cloud-config\n".into())].into() };
    while !root.deliver(&delivery).await.unwrap() {}
    let search = SeedSearch { operator: owner("").operator, storages: ["local".to_owned()].into() };
    root.list_seeds(&search).await.unwrap();
    root.remove_seed(&target).await.unwrap();
    root.stop(&target).await.unwrap();
    root.destroy(&target).await.unwrap();
    let calls = calls.lock().unwrap();
    calls.clone()
}

/// What a client asked and was given.
fn calls_of(command: Command) -> Calls {
    let stand_in = start();
    let run = proxmox_clients::run(command, &stand_in).unwrap_or_else(|error| panic!("{error}"));
    let succeeded = run.requests.iter().filter(|line| line.status == Some(200));
    succeeded.map(call).collect()
}

fn call(line: &Line) -> String {
    let route = ROUTES.iter().find(|route| route.serves(&line.method, &line.path));
    format!("{:?}", route.unwrap_or_else(|| panic!("{line:?} is no call")))
}

/// P19: what is asked of Proxmox VE is what others ask of it, too.
#[tokio::test]
async fn every_call_of_ours_is_made_by_each_of_the_clients_that_others_wrote() {
    let own = own_calls().await;
    let seen: BTreeSet<String> = own.iter().filter_map(|call| Some(call.split_once(' ')?.1.to_owned())).collect();
    assert_eq!(seen, paths_in_sources(), "the calls of this test are those of the sources");
    let clients: Result<Clients, UserError> =
        async { proxmox_clients::ensure(&Tools::load()?, &Cache::open()?, Progress::detect()).await }.await;
    let clients = clients.unwrap_or_else(|error| panic!("{error}"));
    let commands =
        [("proxmoxer", Some(clients.python())), ("go-proxmox", Some(clients.go())), ("proxmox-api", clients.node())];
    for (name, command) in commands {
        let Some(command) = command else {
            println!("{name}: NOT RUN, because node or npm is not installed, and no package has them for this machine");
            continue;
        };
        let made = calls_of(command);
        let missing: Vec<&String> = own.difference(&made).collect();
        assert!(missing.is_empty(), "{name} does not make {missing:?}: extend tools/proxmox-clients");
        println!("{name}: makes all {} calls of ours, and {} others", own.len(), made.difference(&own).count());
    }
}
