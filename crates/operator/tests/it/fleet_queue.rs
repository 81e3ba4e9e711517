//! The queue of jobs on a real API server: the fleet may write it, viewers may read it, and others may not.

use crate::operator::playground;
use crate::packages::{succeed, virtpilot};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use playground::Playground;
use playground::service_account::Account;
use serde_json::{Value, json};
use std::process::Command;

const HOME: &str = install::FLEET_NAMESPACE;

fn config_maps(account: &Account) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    Api::namespaced_with(account.client.clone(), HOME, &resource)
}

/// Writes a ConfigMap as the fleet does.
async fn write(account: &Account, name: &str, report: &Value) -> Result<(), String> {
    let data = json!({"reported": "2026-11-18T12:00:05Z", "queue.json": report.to_string()});
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    let written = config_maps(account).patch(name, &PatchParams::apply(HOME).force(), &Patch::Apply(&object)).await;
    written.map(|_| ()).map_err(|error| error.to_string())
}

fn report() -> Value {
    let wait = json!({"reason": "PoolFull", "pool": "ci/linux", "max": 1});
    let at = "2026-11-18T12:00:00Z";
    let line = |id: u64, state: &str, more: Value| {
        let mut line = json!({
            "key": {"job": {"id": id, "attempt": 1}}, "repository": "acme/web", "run": 5, "name": "test",
            "labels": ["linux"], "state": state, "since": at, "seen": at, "source": "Webhook", "pool": "ci/linux", "story": [
                {"at": at, "what": {"Became": {"state": "Queued", "source": "Webhook"}}},
            ],
        });
        line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        line
    };
    json!({
        "version": 1, "operator": {"pod": "virtpilot-fleet-0", "version": "0.2.0", "started": at},
        "total": {"waiting": 1, "running": 1, "ended": 0}, "pools": [],
        "jobs": [line(812, "Queued", json!({"wait": wait})), line(811, "InProgress", json!({"claim": "ci/linux-a"}))],
    })
}

/// The output, the errors and the exit code of a command.
fn run(account: &Account, arguments: &[&str]) -> (String, String, i32) {
    let output = virtpilot(arguments).env("KUBECONFIG", &account.kubeconfig).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

async fn installed() -> Playground {
    let playground = playground().await;
    let kubectl = playground.folder().join("kubectl");
    let file = playground.folder().join("fleet.yaml");
    let manifests = succeed(&mut virtpilot(&["manifests", "--products=fleet", "--create-namespace"])).0;
    std::fs::write(&file, manifests).unwrap();
    succeed(Command::new(&kubectl).args(["apply", "--server-side", "--filename"]).arg(&file));
    playground
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_writes_the_queue_viewers_read_it_and_nobody_else() {
    let playground = installed().await;
    let fleet = playground.account(HOME, HOME).await.unwrap();
    let viewer = playground.account(HOME, "viewer").await.unwrap();
    let stranger = playground.account(HOME, "stranger").await.unwrap();
    let subject = format!("--serviceaccount={HOME}:viewer");
    let role = "--clusterrole=virtpilot-fleet-viewer";
    let binding = ["create", "clusterrolebinding", "sees-the-fleet", role, subject.as_str()];
    succeed(Command::new(playground.folder().join("kubectl")).args(binding));

    let (_, error, code) = run(&viewer, &["queue"]);
    assert!(code == 1 && error.contains("there is no queue in the namespace virtpilot-fleet"), "{error}");
    write(&fleet, api::fleet::QUEUE, &report()).await.unwrap();
    write(&fleet, api::fleet::QUEUE, &report()).await.unwrap();
    assert!(write(&fleet, "another", &report()).await.unwrap_err().contains("forbidden"));

    let (text, warning, code) = run(&viewer, &["queue"]);
    assert_eq!(code, 0, "{warning}");
    assert!(text.starts_with("JOB") && text.contains("acme/web #812 test") && !text.contains("#811"), "{text}");
    assert!(text.contains("pool linux is full: all 1 machines are in use"), "{text}");
    assert!(warning.contains("none leads in namespace virtpilot-fleet; this is how it was at 2026-11-18T12:00:05Z"));
    assert!(run(&viewer, &["queue", "--all"]).0.contains("runs on machine linux-a"));
    assert_eq!(run(&viewer, &["queue", "--pool=gpu"]).0, "no job waits; 1 run: --all shows them\n");
    assert_eq!(
        (run(&viewer, &["queue", "--exit-code"]).2, run(&viewer, &["queue", "--exit-code", "--pool=gpu"]).2),
        (2, 0)
    );
    let document: Value = serde_json::from_str(&run(&viewer, &["queue", "-o", "json"]).0).unwrap();
    assert_eq!((&document["jobs"][0]["reason"], &document["total"]["running"]), (&json!("PoolFull"), &json!(1)));
    assert!(run(&viewer, &["queue", "-o", "yaml"]).0.contains("reason: PoolFull"));

    let (story, _, code) = run(&viewer, &["explain", "job", "https://github.com/acme/web/actions/runs/5/job/812"]);
    assert!(code == 0 && story.contains("Next: wait until a job ends"), "{story}");
    let (story, _, _) = run(&viewer, &["explain", "job", "https://github.com/acme/web/actions/runs/5"]);
    assert!(story.contains("#812") && story.contains("#811"), "all jobs of the run: {story}");
    let (_, error, code) = run(&viewer, &["explain", "job", "9"]);
    assert!(code == 1 && error.contains("the fleet knows no job 9"), "{error}");

    let (_, error, code) = run(&stranger, &["queue"]);
    assert!(code == 1 && error.contains("virtpilot-fleet-queue") && error.contains("forbidden"), "{error}");
}
