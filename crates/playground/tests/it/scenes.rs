//! Each scene creates the expected objects on the API server.

use crate::{start, start_scene};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DynamicObject, ListParams};
use playground::deployment::objects;
use playground::scene::Pool;
use playground::{Playground, Scene};
use serde_json::Value;

async fn get(playground: &Playground, group: &str, version: &str, kind: &str, name: &str) -> Value {
    let namespace = (kind == "HyperConverged").then_some("openshift-cnv");
    let api = objects(playground, &format!("{group}/{version}"), kind, namespace);
    serde_json::to_value(api.get(name).await.unwrap_or_else(|error| panic!("{kind} {name}: {error}"))).unwrap()
}

async fn pools(playground: &Playground) -> Vec<(String, i64)> {
    let api = objects(playground, "machineconfiguration.openshift.io/v1", "MachineConfigPool", None);
    let list = api.list(&ListParams::default()).await.unwrap();
    let line = |pool: &DynamicObject| {
        assert_eq!(pool.data["status"]["conditions"][0]["type"], "Updated");
        (pool.metadata.name.clone().unwrap(), pool.data["status"]["machineCount"].as_i64().unwrap())
    };
    list.items.iter().map(line).collect()
}

async fn nodes(playground: &Playground, selector: &str) -> usize {
    let api: Api<Node> = Api::all(playground.client());
    api.list(&ListParams::default().labels(selector)).await.unwrap().items.len()
}

async fn topology(playground: &Playground) -> Value {
    let infrastructure = get(playground, "config.openshift.io", "v1", "Infrastructure", "cluster").await;
    infrastructure["status"]["controlPlaneTopology"].clone()
}

fn named(counts: &[(&str, i64)]) -> Vec<(String, i64)> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

const MASTER: &str = "node-role.kubernetes.io/master";
const WORKER: &str = "node-role.kubernetes.io/worker";

#[tokio::test(flavor = "multi_thread")]
async fn small_has_masters_workers_and_the_cluster_wide_objects() {
    let playground = start("small").await;
    assert_eq!((nodes(&playground, MASTER).await, nodes(&playground, WORKER).await), (3, 3));
    assert_eq!(pools(&playground).await, named(&[("master", 3), ("worker", 3)]));
    assert_eq!(topology(&playground).await, "HighlyAvailable");
    let scheduler = get(&playground, "config.openshift.io", "v1", "Scheduler", "cluster").await;
    assert_eq!(scheduler["spec"]["mastersSchedulable"], false);
    let version = get(&playground, "config.openshift.io", "v1", "ClusterVersion", "version").await;
    assert_eq!(version["status"]["desired"]["version"], "4.20.3");
    let hco = get(&playground, "hco.kubevirt.io", "v1", "HyperConverged", "kubevirt-hyperconverged").await;
    assert_eq!(hco["status"]["conditions"][0]["type"], "Available");
    let group = "machineconfiguration.openshift.io";
    let pool = get(&playground, group, "v1", "MachineConfigPool", "worker").await;
    let configuration = &pool["spec"]["configuration"];
    let rendered = configuration["name"].as_str().unwrap();
    get(&playground, group, "v1", "MachineConfig", rendered).await;
    for source in configuration["source"].as_array().unwrap() {
        get(&playground, group, "v1", "MachineConfig", source["name"].as_str().unwrap()).await;
    }
    let worker = Api::<Node>::all(playground.client()).get("worker-0").await.unwrap();
    assert_eq!(worker.metadata.annotations.unwrap()["machineconfiguration.openshift.io/currentConfig"], rendered);
}

#[tokio::test(flavor = "multi_thread")]
async fn compact_has_schedulable_masters() {
    let playground = start("compact").await;
    assert_eq!(nodes(&playground, &format!("{MASTER},{WORKER}")).await, 3);
    assert_eq!(pools(&playground).await, named(&[("master", 3), ("worker", 0)]));
    let scheduler = get(&playground, "config.openshift.io", "v1", "Scheduler", "cluster").await;
    assert_eq!(scheduler["spec"]["mastersSchedulable"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn single_node_has_a_single_replica_topology() {
    let playground = start("single-node").await;
    assert_eq!(nodes(&playground, "").await, 1);
    assert_eq!(topology(&playground).await, "SingleReplica");
}

#[tokio::test(flavor = "multi_thread")]
async fn hosted_has_no_masters_and_no_pools() {
    let playground = start("hosted").await;
    assert_eq!((nodes(&playground, MASTER).await, nodes(&playground, WORKER).await), (0, 3));
    assert_eq!(pools(&playground).await, []);
    assert_eq!(topology(&playground).await, "External");
}

#[tokio::test(flavor = "multi_thread")]
async fn big_has_a_hundred_nodes() {
    let playground = start("big").await;
    assert_eq!(nodes(&playground, "").await, 100);
    assert_eq!(pools(&playground).await, named(&[("infra", 7), ("master", 3), ("worker", 90)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn gpu_nodes_report_their_devices() {
    let playground = start("gpu").await;
    assert_eq!(nodes(&playground, "feature.node.kubernetes.io/memory-numa=true").await, 2);
    let api: Api<Node> = Api::all(playground.client());
    let capacity = api.get("gpu-0").await.unwrap().status.unwrap().capacity.unwrap();
    assert_eq!(capacity["nvidia.com/gpu"].0, "2");
    assert_eq!(pools(&playground).await, named(&[("gpu", 2), ("master", 3), ("worker", 2)]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_custom_scene_serves_only_the_older_hyperconverged() {
    let scene = Scene {
        masters: 1,
        workers: 2,
        pools: vec![Pool { name: "infra".into(), nodes: 1, gpu: false }],
        hco: "v1beta1".into(),
        ..Scene::preset("small").unwrap()
    };
    let playground = start_scene(scene).await;
    assert_eq!(nodes(&playground, "").await, 4);
    assert_eq!(nodes(&playground, "node-role.kubernetes.io/infra").await, 1);
    get(&playground, "hco.kubevirt.io", "v1beta1", "HyperConverged", "kubevirt-hyperconverged").await;
    let groups = playground.client().list_api_groups().await.unwrap();
    let group = groups.groups.iter().find(|group| group.name == "hco.kubevirt.io").unwrap();
    let versions: Vec<&str> = group.versions.iter().map(|version| version.version.as_str()).collect();
    assert_eq!(versions, ["v1beta1"]);
}
