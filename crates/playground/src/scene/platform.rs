//! The cluster-wide objects of OpenShift, and the HyperConverged.

use super::Scene;
use api::hco;
use serde_json::{Value, json};

const NAMESPACES: [&str; 9] = [
    hco::NAMESPACE,
    "openshift-config",
    "openshift-kube-descheduler-operator",
    "openshift-logging",
    "openshift-machine-config-operator",
    "openshift-monitoring",
    "openshift-mtv",
    "openshift-operators",
    "openshift-workload-availability",
];

/// The version the scene's ClusterVersion reports.
const OPENSHIFT: &str = "4.20.3";

pub(super) fn namespaces() -> Vec<Value> {
    NAMESPACES.iter().map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).collect()
}

pub(super) fn cluster_objects(scene: &Scene) -> Vec<Value> {
    vec![infrastructure(scene), scheduler(scene), cluster_version(), hyperconverged(scene)]
}

fn infrastructure(scene: &Scene) -> Value {
    let topology = scene.topology.as_str();
    let workers_topology = if scene.nodes() > 1 { "HighlyAvailable" } else { "SingleReplica" };
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Infrastructure",
        "metadata": {"name": "cluster"},
        "spec": {"cloudConfig": {"name": ""}, "platformSpec": {"type": scene.platform}},
        "status": {
            "apiServerInternalURI": "https://api-int.playground.test:6443",
            "apiServerURL": "https://api.playground.test:6443",
            "controlPlaneTopology": topology,
            "infrastructureTopology": workers_topology,
            "infrastructureName": "playground-x7k2p",
            "etcdDiscoveryDomain": "",
            "cpuPartitioning": "None",
            "platform": scene.platform,
            "platformStatus": {"type": scene.platform},
        },
    })
}

fn scheduler(scene: &Scene) -> Value {
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "Scheduler",
        "metadata": {"name": "cluster"},
        "spec": {"mastersSchedulable": scene.schedulable_masters, "policy": {"name": ""}},
    })
}

fn cluster_version() -> Value {
    let image = "registry.invalid/ocp/release@sha256:0000000000000000000000000000000000000000000000000000000000000000";
    let moment = "2026-01-01T00:00:00Z";
    json!({
        "apiVersion": "config.openshift.io/v1",
        "kind": "ClusterVersion",
        "metadata": {"name": "version"},
        "spec": {"channel": "stable-4.20", "clusterID": "5f8d1a52-3c0e-4a8b-9a53-0c6f7a1f2b11"},
        "status": {
            "availableUpdates": null,
            "desired": {"version": OPENSHIFT, "image": image},
            "history": [{
                "state": "Completed", "version": OPENSHIFT, "image": image, "verified": false,
                "startedTime": moment, "completionTime": moment,
            }],
            "observedGeneration": 1,
            "versionHash": "playground",
            "conditions": [{"type": "Available", "status": "True", "lastTransitionTime": moment}],
        },
    })
}

fn hyperconverged(scene: &Scene) -> Value {
    let moment = "2026-01-01T00:00:00Z";
    json!({
        "apiVersion": format!("{}/{}", hco::GROUP, scene.hco),
        "kind": hco::KIND,
        "metadata": {"name": hco::NAME, "namespace": hco::NAMESPACE},
        "spec": {},
        "status": {
            "conditions": [{
                "type": "Available", "status": "True", "reason": "ReconcileCompleted", "message": "",
                "lastTransitionTime": moment,
            }],
        },
    })
}
