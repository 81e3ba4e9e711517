//! Clients of the Proxmox VE API that others wrote accept the stand-in unchanged, and it has no call that the published API has not.

use playground::cache::Cache;
use playground::proxmox::{Fault, FaultEffect, Line, Method, Options, ProxmoxStandIn};
use playground::proxmox_clients::{self, Clients};
use playground::tools::Tools;
use playground::{Progress, UserError};
use pve_stand_in::ROUTES;
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

async fn clients() -> Clients {
    let found: Result<Clients, UserError> =
        async { proxmox_clients::ensure(&Tools::load()?, &Cache::open()?, Progress::detect()).await }.await;
    found.unwrap_or_else(|error| panic!("{error}"))
}

fn start() -> ProxmoxStandIn {
    ProxmoxStandIn::start(&Options::for_test()).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a client on a new stand-in, with the token that has the least privileges; returns what it printed and what it asked.
fn run(mut command: Command) -> (String, Vec<Line>) {
    let stand_in = start();
    let folder = tempfile::tempdir().unwrap();
    let (authority, iso) = (folder.path().join("ca.pem"), folder.path().join("seed.iso"));
    std::fs::write(&authority, &stand_in.ca_pem).unwrap();
    std::fs::write(&iso, [0, 13, 10, 45, 45, 255].repeat(10_000)).unwrap();
    let credentials = &stand_in.credentials;
    command
        .env("PVE_ADDRESS", &stand_in.address)
        .env("PVE_USER", &credentials.user)
        .env("PVE_PASSWORD", &credentials.password)
        .env("PVE_TOKEN", &credentials.fleet_token)
        .env("PVE_CA", &authority)
        .env("PVE_ISO", &iso)
        // Settings of the user for other servers must not count.
        .env("NODE_EXTRA_CA_CERTS", &authority)
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .env_remove("REQUESTS_CA_BUNDLE")
        .env_remove("NODE_TLS_REJECT_UNAUTHORIZED");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}");
    assert_eq!(stand_in.with(|state| state.vms().keys().copied().collect::<Vec<_>>()), [9000], "{text}");
    (text, stand_in.requests())
}

/// What every client prints: all steps, and refusals in its own words.
fn expect(text: &str, name: &str, refusals: [(&str, &str); 4]) {
    for login in ["ticket", "token"] {
        for step in [
            "version 9.2, 3 nodes",
            &format!("cloned {name}, template true"),
            "running with 3 cores and tags a;b",
            "address 10.20.0.100",
            "1 VM left, done",
        ] {
            assert!(text.contains(&format!("{login}: {step}\n")), "{login}: {step}\n{text}");
        }
    }
    for (login, refusal) in refusals {
        assert!(text.contains(&format!("{login}: {refusal}\n")), "{login}: {refusal}\n{text}");
    }
}

const RUNNING: &str = "running: 500 VM 100 is running - destroy failed";
const MISSING: &str = "missing: 500 Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist";

#[tokio::test]
async fn proxmoxer_accepts_the_stand_in_of_proxmox() {
    let script = clients().await.python;
    let mut command = Command::new("python3");
    command.env("PYTHONPATH", script.parent().unwrap()).arg(&script);
    let (text, requests) = run(command);
    let forbidden = "missing: 403 Permission check failed (/vms/100, VM.Audit)";
    let wrong = "wrong: 400 Parameter verification failed. {'newid': 'value must have a minimum value of 100'}";
    expect(&text, "from-python", [("ticket", RUNNING), ("ticket", MISSING), ("token", forbidden), ("ticket", wrong)]);
    println!("proxmoxer 2.3.0: {} requests", requests.len());
}

#[tokio::test]
async fn go_proxmox_accepts_the_stand_in_of_proxmox() {
    let (text, requests) = run(Command::new(clients().await.go));
    let forbidden = "missing: not authorized to access endpoint";
    expect(&text, "from-go", [("ticket", RUNNING), ("ticket", MISSING), ("token", forbidden), ("token", RUNNING)]);
    println!("go-proxmox 0.6.0: {} requests", requests.len());
}

#[tokio::test]
async fn proxmox_api_of_npm_accepts_the_stand_in_of_proxmox() {
    let Some((node, script)) = clients().await.node else {
        println!(
            "proxmox-api of npm: NOT RUN, because node or npm is not installed, and no package has them for this machine"
        );
        return;
    };
    let mut command = Command::new(node);
    command.arg(&script);
    let (text, requests) = run(command);
    let forbidden = "missing: 403 Permission check failed (/vms/100, VM.Audit)";
    let wrong = "wrong: 400 Parameter verification failed.";
    expect(&text, "from-node", [("ticket", RUNNING), ("ticket", MISSING), ("token", forbidden), ("ticket", wrong)]);
    println!("proxmox-api 1.1.1: {} requests", requests.len());
}

#[tokio::test]
async fn every_call_of_the_stand_in_is_in_the_published_schema() {
    let schema: Result<_, UserError> =
        async { proxmox_clients::ensure_schema(&Tools::load()?, &Cache::open()?, Progress::detect()).await }.await;
    let text = std::fs::read(schema.unwrap_or_else(|error| panic!("{error}"))).unwrap();
    let schema: Value = serde_json::from_slice(&text).unwrap();
    let mut parameters = 0;
    for route in ROUTES {
        let call = &schema["paths"][route.path][route.method.as_str().to_lowercase()];
        assert!(call.is_object(), "{route:?} is not in the schema");
        let published: Vec<&Value> = call["parameters"].as_array().into_iter().flatten().collect();
        let find = |name: &str| published.iter().find(|parameter| parameter["name"] == name);
        for param in route.params {
            let found = find(param.name).unwrap_or_else(|| panic!("{route:?} has no parameter {}", param.name));
            assert_eq!(found["required"].as_bool().unwrap_or(false), param.is_required, "{route:?} {}", param.name);
            parameters += 1;
        }
        for required in published.iter().filter(|parameter| parameter["required"] == true && parameter["in"] != "path")
        {
            let name = required["name"].as_str().unwrap();
            assert!(route.params.iter().any(|param| param.name == name), "{route:?} does not require {name}");
        }
    }
    println!("{} calls with {parameters} parameters are in the schema", ROUTES.len());
}

/// Sends a request with Python's own HTTP client, which trusts this authority; returns code and reason, or the error.
fn raw(stand_in: &ProxmoxStandIn, authority: &str, method: &str, path: &str) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), authority).unwrap();
    let script = "import http.client, ssl, sys\n\
        address, authority, method, path, token = sys.argv[1:]\n\
        host, port = address.removeprefix('https://').split(':')\n\
        connection = http.client.HTTPSConnection(host, int(port), context=ssl.create_default_context(cafile=authority))\n\
        connection.request(method, '/api2/json' + path, headers={'Authorization': 'PVEAPIToken=' + token})\n\
        response = connection.getresponse()\n\
        print(response.status, response.reason)\n";
    let mut command = Command::new("python3");
    command.args(["-c", script, &stand_in.address]).arg(file.path());
    let output = command.args([method, path, &stand_in.credentials.full_token]).output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned()),
    }
}

#[test]
fn faults_of_the_stand_in_reach_a_client() {
    let stand_in = start();
    let send = |method: &str, path: &str| raw(&stand_in, &stand_in.ca_pem, method, path);
    stand_in.inject(Fault::once(Method::Post, "/pools", FaultEffect::LoseReply));
    assert!(send("POST", "/pools?poolid=a").unwrap_err().contains("RemoteDisconnected"));
    let exists = "500 create pool failed: pool 'a' already exists";
    assert_eq!(send("POST", "/pools?poolid=a").as_deref(), Ok(exists), "it was carried out");
    stand_in.with(|state| state.set_online("pve2", false));
    assert_eq!(send("GET", "/nodes/pve2/qemu").as_deref(), Ok("595 No route to host"));
    stand_in.inject(Fault::once(Method::Get, "/version", FaultEffect::Delay(Duration::from_millis(300))));
    let before = std::time::Instant::now();
    assert_eq!(send("GET", "/version").as_deref(), Ok("200 OK"));
    assert!(before.elapsed() >= Duration::from_millis(300));
    stand_in.inject(Fault::once(Method::Get, "/version", FaultEffect::Fail(503, "busy".to_owned())));
    assert_eq!(send("GET", "/version").as_deref(), Ok("503 busy"));
    assert_eq!(stand_in.count(Method::Get, "/version"), 2);
    assert_eq!(stand_in.requests()[0].status, None);
    let other = start();
    assert_ne!(other.fingerprint, stand_in.fingerprint);
    let refused = raw(&stand_in, &other.ca_pem, "GET", "/version").unwrap_err();
    assert!(refused.contains("CERTIFICATE_VERIFY_FAILED"), "{refused}");
    stand_in.with(|state| state.set_online("pve1", false));
    assert!(send("GET", "/version").unwrap_err().contains("RemoteDisconnected"));
}
