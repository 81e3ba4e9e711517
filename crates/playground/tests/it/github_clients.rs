//! Clients of GitHub's API that others wrote accept the stand-in unchanged, and it has no call and no payload that GitHub has not.

use github_stand_in::ROUTES;
use playground::cache::Cache;
use playground::github::{
    Assignment, Conclusion, Fault, FaultEffect, GithubStandIn, JobSpec, Line, Method, Options, WebhookEffect,
    WebhookFault,
};
use playground::github_clients::{self, Clients};
use playground::tools::Tools;
use playground::{Progress, UserError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

async fn clients() -> Clients {
    let found: Result<Clients, UserError> =
        async { github_clients::ensure(&Tools::load()?, &Cache::open()?, Progress::detect()).await }.await;
    found.unwrap_or_else(|error| panic!("{error}"))
}

fn start(change: impl FnOnce(&mut Options)) -> GithubStandIn {
    let mut options = Options::for_test();
    change(&mut options);
    GithubStandIn::start(&options).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a client on a stand-in; returns what it printed.
fn run(stand_in: &GithubStandIn, mut command: Command) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (authority, key) = (folder.path().join("ca.pem"), folder.path().join("key.pem"));
    std::fs::write(&authority, &stand_in.ca_pem).unwrap();
    let credentials = &stand_in.credentials;
    std::fs::write(&key, &credentials.private_key).unwrap();
    command
        .env("GITHUB_ADDRESS", &stand_in.address)
        .env("GITHUB_APP", credentials.app_id.to_string())
        .env("GITHUB_CLIENT_ID", &credentials.client_id)
        .env("GITHUB_INSTALLATION", credentials.installation.to_string())
        .env("GITHUB_KEY", &key)
        .env("GITHUB_CA", &authority)
        .env("NODE_EXTRA_CA_CERTS", &authority)
        // Settings of the user for other servers must not count.
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .env_remove("NODE_TLS_REJECT_UNAUTHORIZED");
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "{text}\n{:#?}", stand_in.requests());
    text
}

fn expect(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
    }
}

/// A run that is over, so that a client can run it again.
fn finished_run(stand_in: &GithubStandIn) -> u64 {
    stand_in.with(|state, now| {
        let run = state.push_run(&[JobSpec::new("acme/shop", &["self-hosted", "pve"])], now);
        state.cancel(run, now);
        run
    })
}

#[tokio::test]
async fn octokit_accepts_the_stand_in_of_github() {
    let Some((node, script)) = clients().await.node else {
        println!("octokit: NOT RUN, because node or npm is not installed, and no package has them for this machine");
        return;
    };
    let stand_in = start(|_| {});
    let github_run = finished_run(&stand_in);
    // The clock of the server is ahead, which the client has to notice and to allow for.
    stand_in.with(|state, _| {
        state.skew = 900;
        state.inject_webhook(WebhookFault::once("completed", WebhookEffect::Lose).times(2));
    });
    stand_in.inject(Fault::once(Method::Get, "/runners/downloads", FaultEffect::SecondaryLimit(1)));
    let mut command = Command::new(node);
    command.arg(&script).env("GITHUB_RUN", github_run.to_string()).env("GITHUB_TOKEN", &stand_in.credentials.token);
    let text = run(&stand_in, command);
    expect(&text, &["app: stand-in-runners", "app: installed true", "limits: secondary 1 s, then 200"]);
    for login in ["app", "person"] {
        for step in [
            "5 runners, offline, labels self-hosted,pve".to_owned(),
            format!("exists: 409 Already exists - A runner with the name {login}-0 already exists."),
            "wrong: 422 Invalid request. Only 1 to 64 characters are allowed in \"name\".".to_owned(),
            "known: 304".to_owned(),
            "budget 5000".to_owned(),
            "registration token true".to_owned(),
            "1 run queued, job true, self-hosted,pve".to_owned(),
            "started on true".to_owned(),
            format!("busy: 422 Bad request - Runner \"{login}-0\" is still running a job"),
            "redelivered failure of attempt true".to_owned(),
            "gone: 404 Not Found".to_owned(),
            "0 bad signatures, done".to_owned(),
        ] {
            assert!(text.contains(&format!("{login}: {step}\n")), "{login}: {step}\n{text}");
        }
    }
    assert!(stand_in.with(|state, _| state.runners().is_empty()));
    println!("octokit: {} requests", stand_in.requests().len());
}

#[tokio::test]
async fn every_call_of_the_stand_in_is_known_to_octokit() {
    let Some((node, script)) = clients().await.node else {
        println!("octokit: NOT RUN, because node or npm is not installed, and no package has them for this machine");
        return;
    };
    let output = Command::new(node).arg(&script).arg("routes").output().unwrap();
    let known = String::from_utf8(output.stdout).unwrap();
    let known: BTreeSet<&str> = known.lines().collect();
    assert!(known.len() > 500);
    let mut checked = 0;
    for route in ROUTES.iter().filter(|route| route.is_rest()) {
        // These are documented, but octokit has no methods for most of them.
        if route.path.starts_with("/enterprises/") || route.path.contains("/runner-groups") {
            continue;
        }
        let line = format!("{} {}", route.method.as_str(), route.path);
        assert!(known.contains(line.as_str()), "{line}");
        checked += 1;
    }
    println!("{checked} of {} calls are known to octokit", ROUTES.len());
}

const STEPS: [&str; 10] = [
    "group Default, before false, created true with label from-go",
    "updated true",
    "second session: true",
    "busy: true",
    "job build of acme/shop, [from-go], on true",
    "started 5, completed 5, results succeeded, runners 5",
    "exists: true",
    "found: true",
    "gone: true",
    "done",
];

/// Lets GitHub's client run five jobs; returns what was asked.
fn listen(
    client: &std::path::Path,
    assignment: Assignment,
    change: impl FnOnce(&mut Command, &GithubStandIn),
) -> Vec<Line> {
    let stand_in = start(|options| {
        options.setup.assignment = assignment;
        options.setup.timing.queue_token = Duration::from_millis(100);
    });
    let job = JobSpec::new("acme/shop", &["from-go"]).lasting(Duration::from_millis(250));
    stand_in.with(|state, now| {
        for _ in 0..5 {
            state.push_job(&job, now);
        }
    });
    let mut command = Command::new(client);
    command.env("GITHUB_JOBS", "5");
    change(&mut command, &stand_in);
    let text = run(&stand_in, command);
    expect(&text, &STEPS);
    stand_in.with(|state, _| {
        assert_eq!(state.executions().len(), 5);
        assert!(state.jobs().values().all(|job| job.conclusion() == Some(Conclusion::Success)));
        assert!(state.scale_sets().is_empty());
    });
    assert!(stand_in.count(Method::Patch, "/sessions/") > 0, "the token of the queue was refreshed");
    stand_in.requests()
}

#[tokio::test]
async fn the_scale_set_client_of_github_accepts_the_stand_in() {
    let client = clients().await.go;
    let as_app = listen(&client, Assignment::Acquire, |command, stand_in| {
        command.env("GITHUB_OWNER", "acme").env_remove("GITHUB_TOKEN");
        stand_in.inject(Fault::once(
            Method::Post,
            "runner-registration",
            FaultEffect::Fail(502, "Server Error".to_owned()),
        ));
    });
    assert!(as_app.iter().any(|line| line.path.ends_with("/acquirejobs")));
    let as_person = listen(&client, Assignment::Automatic, |command, stand_in| {
        command.env("GITHUB_OWNER", "acme/shop").env("GITHUB_TOKEN", &stand_in.credentials.token);
    });
    assert!(!as_person.iter().any(|line| line.path.ends_with("/acquirejobs")));
    println!("scaleset v0.4.0: {} requests as an App, {} as a person", as_app.len(), as_person.len());
}

/// Every key of the example that is not in ours with the same type of value; a null may stand for anything.
fn differences(example: &Value, ours: &Value, path: &str, found: &mut Vec<String>) {
    match (example, ours) {
        (Value::Null, _) | (_, Value::Null) => {}
        (Value::Object(example), Value::Object(ours)) => {
            for (key, value) in example {
                match ours.get(key) {
                    Some(own) => differences(value, own, &format!("{path}.{key}"), found),
                    None => found.push(format!("{path}.{key} is missing")),
                }
            }
        }
        (Value::Array(example), Value::Array(ours)) => {
            for (value, own) in example.iter().zip(ours) {
                differences(value, own, &format!("{path}[]"), found);
            }
        }
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_)) => {}
        (example, ours) => found.push(format!("{path} is {ours}, not like {example}")),
    }
}

#[tokio::test]
async fn webhooks_have_every_key_of_the_published_examples() {
    let Some(examples) = clients().await.examples() else {
        println!(
            "examples of webhooks: NOT READ, because node or npm is not installed, and no package has them for this machine"
        );
        return;
    };
    let examples: Value = serde_json::from_slice(&std::fs::read(examples).unwrap()).unwrap();
    let is_about_jobs = |kind: &&Value| kind["name"] == "workflow_job";
    let examples = &examples.as_array().unwrap().iter().find(is_about_jobs).unwrap()["examples"];
    let stand_in = start(|_| {});
    let payloads: Vec<Value> = stand_in.with(|state, now| {
        state.add_hook(None, "http://127.0.0.1:9/hook", None);
        let spec = JobSpec::new("acme/shop", &["pve"]).lasting(Duration::from_secs(1));
        state.push_job(&spec, now);
        let labels = vec!["pve".to_owned()];
        let scope = playground::github::Scope::Organization("acme".to_owned());
        let runner = playground::github::RunnerSpec { scope, name: "vm".to_owned(), labels, is_ephemeral: true };
        state.register_runner(&runner, now);
        let deliveries = state.tick(now + Duration::from_secs(60));
        deliveries.iter().map(|delivery| serde_json::from_slice(&delivery.body).unwrap()).collect()
    });
    assert_eq!(payloads.len(), 3);
    let (mut compared, mut found) = (0, Vec::new());
    for example in examples.as_array().unwrap() {
        let Some(ours) = payloads.iter().find(|payload| payload["action"] == example["action"]) else { continue };
        let mut example = example.clone();
        // Only jobs of an environment have it.
        example.as_object_mut().unwrap().remove("deployment");
        differences(&example, ours, "", &mut found);
        compared += 1;
    }
    assert_eq!(found, [""; 0]);
    assert!(compared >= 6, "{compared}");
    println!("{compared} examples of workflow_job compared");
}

/// Sends a request with Python's own HTTP client; returns code and body, or the error.
fn raw(stand_in: &GithubStandIn, method: &str, path: &str, body: &str) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &stand_in.ca_pem).unwrap();
    let script = "import http.client, ssl, sys\n\
        address, authority, method, path, token, body = sys.argv[1:]\n\
        host, port = address.removeprefix('https://').split(':')\n\
        connection = http.client.HTTPSConnection(host, int(port), context=ssl.create_default_context(cafile=authority))\n\
        connection.request(method, '/api/v3' + path, body, headers={'Authorization': 'Bearer ' + token})\n\
        response = connection.getresponse()\n\
        print(response.status, response.read().decode())\n";
    let mut command = Command::new("python3");
    command.args(["-c", script, &stand_in.address]).arg(file.path());
    let output = command.args([method, path, &stand_in.credentials.token, body]).output().unwrap();
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned()),
    }
}

#[test]
fn faults_of_the_stand_in_of_github_reach_a_client() {
    let stand_in = start(|_| {});
    let line = "/orgs/acme/actions/runners/generate-jitconfig";
    let body = r#"{"name": "vm", "runner_group_id": 1, "labels": ["pve"]}"#;
    stand_in.inject(Fault::once(Method::Post, "generate-jitconfig", FaultEffect::LoseReply));
    assert!(raw(&stand_in, "POST", line, body).unwrap_err().contains("RemoteDisconnected"));
    let again = raw(&stand_in, "POST", line, body).unwrap();
    assert!(again.starts_with("409 ") && again.contains("already exists"), "it was carried out: {again}");
    stand_in.inject(Fault::once(Method::Get, "/meta", FaultEffect::Delay(Duration::from_millis(300))));
    let before = std::time::Instant::now();
    assert!(raw(&stand_in, "GET", "/meta", "").unwrap().starts_with("200 "));
    assert!(before.elapsed() >= Duration::from_millis(300));
    stand_in.inject(Fault::once(Method::Get, "/meta", FaultEffect::Fail(502, "Server Error".to_owned())));
    assert!(raw(&stand_in, "GET", "/meta", "").unwrap().contains("Server Error"));
    assert_eq!(stand_in.requests()[0].status, None);
    assert_eq!(stand_in.count(Method::Get, "/meta"), 2);
    assert!(raw(&stand_in, "POST", line, "{").unwrap().starts_with("400 "));
}

#[test]
fn webhooks_are_sent_over_https_to_receivers_whose_authority_is_trusted() {
    let receiver = start(|_| {});
    let outcome = |authorities: &str, url: &str| {
        let sender = start(|options| authorities.clone_into(&mut options.webhook_authorities));
        sender.with(|state, now| {
            state.add_hook(None, url, Some("secret"));
            state.push_job(&JobSpec::new("acme/shop", &["pve"]), now);
        });
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        loop {
            let found = sender.with(|state, _| state.deliveries().values().next().cloned()).unwrap();
            if found.is_done {
                return found.status;
            }
            assert!(std::time::Instant::now() < deadline, "{found:?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let url = format!("{}/hook", receiver.address);
    assert_eq!(outcome(&receiver.ca_pem, &url), Some(404), "it was received, by somebody who does not know the path");
    assert_eq!(receiver.count(Method::Post, "/hook"), 1);
    assert_eq!(outcome("", &url), None);
    assert_eq!(receiver.count(Method::Post, "/hook"), 1);
}
