//! Nodes and the topology of the cluster change while the operator runs.

use crate::operator::{ACCOUNT, Process, Running, edit, eventually, quiet};
use futures::{StreamExt, stream};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use playground::audit::Kind;
use playground::fault::{Fault, Match, Plan, Rule, Verb};
use playground::{Scene, deployment};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Instant;

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/facts");
const ROLE: &str = include_str!("../packs/facts.role.yaml");

async fn running() -> Running {
    let running = Running::with_pack(ROLE, &["--assets-dir", PACK]).await;
    exists(&running, "facts-shape").await;
    running
}

async fn exists(running: &Running, name: &str) -> DynamicObject {
    eventually(&format!("{name} exists"), async || running.config_maps().get_opt(name).await.unwrap()).await
}

/// Adds a worker with this many GPUs.
async fn join(running: &Running, name: &str, gpus: &str) {
    let api: Api<Node> = Api::all(running.playground.client());
    let node = json!({"metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}}});
    api.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    capacity(running, name, gpus).await;
}

async fn capacity(running: &Running, name: &str, gpus: &str) {
    let api: Api<Node> = Api::all(running.playground.client());
    let status = json!({"status": {"capacity": {"cpu": "8", "nvidia.com/gpu": gpus}}});
    api.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn hardware_that_joins_creates_its_objects_and_hardware_that_leaves_deletes_none() {
    let running = running().await;
    let nodes: Api<Node> = Api::all(running.playground.client());
    join(&running, "gpu-0", "0").await;
    quiet(&running).await;
    assert!(running.config_maps().get_opt("facts-gpu").await.unwrap().is_none(), "a capacity of zero is not a device");
    capacity(&running, "gpu-0", "2").await;
    exists(&running, "facts-gpu").await;
    nodes.delete("gpu-0", &DeleteParams::default()).await.unwrap();
    quiet(&running).await;
    exists(&running, "facts-gpu").await;
    running.config_maps().delete("facts-gpu", &DeleteParams::default()).await.unwrap();
    quiet(&running).await;
    assert!(
        running.config_maps().get_opt("facts-gpu").await.unwrap().is_none(),
        "it is not recreated without the hardware"
    );
    join(&running, "gpu-1", "1").await;
    exists(&running, "facts-gpu").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_nodes_cost_no_request() {
    let running = running().await;
    eventually("an approval is required", async || running.events("ApprovalRequired").await.pop()).await;
    quiet(&running).await;
    let (mark, begun) = (running.audit().mark().unwrap(), Instant::now());
    let names: Vec<String> = (0..100).map(|number| format!("many-{number}")).collect();
    stream::iter(&names).for_each_concurrent(8, async |name| join(&running, name, "0").await).await;
    quiet(&running).await;
    let own = running.own(&running.audit().since(mark).unwrap());
    assert_eq!(own.count() - own.of(Kind::Watch).count(), 0, "{:?}", own.table());
    // The report names the nodes that would restart: once in five seconds, after the one about the start.
    let reports = running.audit().since(mark).unwrap().by(ACCOUNT).of(Kind::Report).count() as u64;
    assert!(reports <= 2 + begun.elapsed().as_secs() / 5, "{reports}");
    // The nodes were noticed.
    let worker = json!({"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}}});
    let masters: Api<DynamicObject> = deployment::objects(&running.playground, "v1", "Node", None);
    for number in 0..3 {
        edit(&masters, &format!("master-{number}"), worker.clone()).await;
    }
    for name in names.iter().map(String::as_str).chain(["worker-0", "worker-1", "worker-2"]) {
        masters.delete(name, &DeleteParams::default()).await.unwrap();
    }
    eventually("the cluster is compact", async || {
        (exists(&running, "facts-shape").await.data["data"]["compact"] == "true").then_some(())
    })
    .await;
    assert_eq!(running.events("ApprovalRequired").await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_whose_nodes_cannot_be_listed_is_not_treated_as_empty() {
    let scene = Scene::preset("compact").unwrap();
    let running = Running::on(scene, ROLE, &[]).await;
    let proxy = running.proxy();
    let refuse = Fault::Status { code: 503, retry_after: None };
    let matching = Match { verb: Some(Verb::List), path: Some("/api/v1/nodes".into()), nth: None };
    proxy.set(Plan::from(Rule { matching, fault: refuse }));
    let _operator = Process::start(proxy.kubeconfig(), &["--assets-dir", PACK]);
    eventually("listing the nodes was retried", async || (proxy.fired().len() >= 3).then_some(())).await;
    assert!(
        running.config_maps().get_opt("facts-shape").await.unwrap().is_none(),
        "nothing is applied before the nodes are known"
    );
    proxy.clear();
    assert_eq!(exists(&running, "facts-shape").await.data["data"]["compact"], "true");
    // Nothing was written for a cluster without nodes.
    let own = running.own(&running.audit().since(playground::audit::Mark::BEGINNING).unwrap());
    assert_eq!(own.filter(|request| request.name == "facts-shape" && request.verb == "patch").count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn topology_changes_are_followed() {
    let running = running().await;
    let shape_is = async |key: &str, value: &str| {
        eventually(&format!("{key} is {value}"), async || {
            (exists(&running, "facts-shape").await.data["data"][key] == value).then_some(())
        })
        .await;
    };
    shape_is("topology", "HighlyAvailable").await;
    shape_is("schedulable", "false").await;
    let schedulers = deployment::objects(&running.playground, "config.openshift.io/v1", "Scheduler", None);
    edit(&schedulers, "cluster", json!({"spec": {"mastersSchedulable": true}})).await;
    shape_is("schedulable", "true").await;
    let infrastructures = deployment::objects(&running.playground, "config.openshift.io/v1", "Infrastructure", None);
    let hosted = json!({"status": {"controlPlaneTopology": "External"}});
    infrastructures.patch_status("cluster", &PatchParams::default(), &Patch::Merge(&hosted)).await.unwrap();
    shape_is("topology", "External").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn printed_facts_render_the_same_objects_as_the_cluster() {
    let running = running().await;
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        let output =
            command.args(arguments).args(["--assets-dir", PACK]).env("RELATED_IMAGE_SOME_TOOL", "tool:1").output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let kubeconfig = running.playground.kubeconfig();
    let kubeconfig = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let online = run(&[&["render", "-o", "json", "--show-excluded"][..], &kubeconfig].concat());
    assert!(online.contains("tool:1"), "{online}");
    for format in ["yaml", "json"] {
        let facts = run(&[&["facts", "-o", format][..], &kubeconfig].concat());
        let path = folder.path().join(format);
        std::fs::write(&path, &facts).unwrap();
        assert_eq!(run(&["render", "-o", "json", "--show-excluded", "--facts", path.to_str().unwrap()]), online);
    }
    let facts: Value = serde_json::from_str(&run(&[&["facts", "-o", "json"][..], &kubeconfig].concat())).unwrap();
    assert_eq!(facts["pools"][0]["name"], "master", "{facts:#}");
    assert_eq!(facts["topology"]["totalNodeCount"], 6);
}
