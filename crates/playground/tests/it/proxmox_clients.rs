//! Clients of the Proxmox VE API that others wrote accept the stand-in unchanged, and it has no call that the published API has not.

use playground::cache::Cache;
use playground::proxmox::{Fault, FaultEffect, Line, Method, Options, ProxmoxStandIn};
use playground::proxmox_clients::{self, Clients};
use playground::tools::Tools;
use playground::{Progress, UserError};
use pve_stand_in::{Kind, ROUTES};
use serde_json::{Value, json};
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

/// Runs a client on a new stand-in; returns what it printed and what it asked.
fn run(command: Command) -> (String, Vec<Line>) {
    let stand_in = start();
    stand_in.with(|state| state.add_vnet("blue", "lab"));
    let run = proxmox_clients::run(command, &stand_in).unwrap_or_else(|error| panic!("{error}"));
    let left = stand_in.with(|state| state.vms().keys().copied().collect::<Vec<_>>());
    assert_eq!(left, [9000], "{}", run.text);
    (run.text, run.requests)
}

/// What every client prints: all steps, and refusals in its own words.
fn expect(text: &str, name: &str, refusals: [(&str, &str); 5]) {
    for login in ["ticket", "token"] {
        for step in [
            "version 9.2, 3 nodes",
            "cluster demo, quorum 1, pools virtpilot",
            "may clone true",
            "is cloning true",
            "log TASK OK",
            &format!("cloned {name}, template true"),
            "running with 3 cores and tags a;b",
            "address 10.20.0.100",
            "1 VM left, done",
        ] {
            assert!(text.contains(&format!("{login}: {step}\n")), "{login}: {step}\n{text}");
        }
    }
    for seen in
        ["ticket: bridges vmbr0, VNets blue", "token: bridges vmbr0, VNets ", "ticket: guest says hello, exit code 0"]
    {
        assert!(text.contains(&format!("{seen}\n")), "{seen}\n{text}");
    }
    for (login, refusal) in refusals {
        assert!(text.contains(&format!("{login}: {refusal}\n")), "{login}: {refusal}\n{text}");
    }
}

const RUNNING: &str = "running: 500 VM 100 is running - destroy failed";
const NO_AGENT: &str =
    "guest 403 Permission check failed (/vms/100, VM.GuestAgent.FileRead|VM.GuestAgent.Unrestricted)";
const MISSING: &str = "missing: 500 Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist";

#[tokio::test]
async fn proxmoxer_accepts_the_stand_in_of_proxmox() {
    let (text, requests) = run(clients().await.python());
    let forbidden = "missing: 403 Permission check failed (/vms/100, VM.Audit)";
    let wrong = "wrong: 400 Parameter verification failed. {'newid': 'value must have a minimum value of 100'}";
    expect(
        &text,
        "from-python",
        [("ticket", RUNNING), ("ticket", MISSING), ("token", forbidden), ("ticket", wrong), ("token", NO_AGENT)],
    );
    println!("proxmoxer 2.3.0: {} requests", requests.len());
}

#[tokio::test]
async fn go_proxmox_accepts_the_stand_in_of_proxmox() {
    let (text, requests) = run(clients().await.go());
    let forbidden = "missing: not authorized to access endpoint";
    let no_agent = "guest not authorized to access endpoint";
    let refused =
        [("ticket", RUNNING), ("ticket", MISSING), ("token", forbidden), ("token", RUNNING), ("token", no_agent)];
    expect(&text, "from-go", refused);
    println!("go-proxmox 0.6.0: {} requests", requests.len());
}

#[tokio::test]
async fn proxmox_api_of_npm_accepts_the_stand_in_of_proxmox() {
    let Some(command) = clients().await.node() else {
        println!(
            "proxmox-api of npm: NOT RUN, because node or npm is not installed, and no package has them for this machine"
        );
        return;
    };
    let (text, requests) = run(command);
    let forbidden = "missing: 403 Permission check failed (/vms/100, VM.Audit)";
    let wrong = "wrong: 400 Parameter verification failed.";
    expect(
        &text,
        "from-node",
        [("ticket", RUNNING), ("ticket", MISSING), ("token", forbidden), ("ticket", wrong), ("token", NO_AGENT)],
    );
    println!("proxmox-api 1.1.1: {} requests", requests.len());
}

/// The type of a parameter, and its values or limits as far as there are some.
fn values(kind: Kind) -> (&'static str, Value) {
    match kind {
        Kind::Text | Kind::DnsName | Kind::Tags | Kind::Size => ("string", Value::Null),
        Kind::Short(longest) => ("string", longest.into()),
        Kind::OneOf(values) => ("string", values.into()),
        Kind::Number { min, max } => ("integer", json!([min, (max < u64::MAX >> 1).then_some(max)])),
        Kind::Flag => ("boolean", Value::Null),
        Kind::List => ("array", Value::Null),
    }
}

/// The same of the published schema, for a parameter that the stand-in takes for such a kind.
fn published_values(kind: Kind, published: &Value) -> (&str, Value) {
    let raw = &published["x-proxmox"]["raw"];
    // Some limits are texts.
    let limit = |name: &str| raw[name].as_u64().or_else(|| raw[name].as_str()?.parse().ok());
    let values = match kind {
        Kind::Short(_) => raw["maxLength"].clone(),
        Kind::OneOf(_) => raw["enum"].clone(),
        Kind::Number { .. } => json!([limit("minimum").unwrap_or(0), limit("maximum")]),
        _ => Value::Null,
    };
    match (kind, raw["type"].as_str().unwrap_or_default()) {
        // Of what may have a fraction, whole numbers are accepted only.
        (Kind::Number { .. }, "number") => ("integer", values),
        (_, other) => (other, values),
    }
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
            // The published one may also be `current=NUMBER`.
            if param.name != "memory" {
                assert_eq!(values(param.kind), published_values(param.kind, found), "{route:?} {}", param.name);
            }
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
