//! The nodes of a scene, with the labels and status of kubelet and node feature discovery.

use super::Scene;
use super::machine_config::Pools;
use serde_json::{Map, Value, json};

const ROLE: &str = "node-role.kubernetes.io/";
const FEATURE: &str = "feature.node.kubernetes.io/";

pub(super) fn nodes(scene: &Scene, pools: &Pools) -> Vec<Value> {
    let master_roles: &[&str] =
        if scene.schedulable_masters { &["control-plane", "master", "worker"] } else { &["control-plane", "master"] };
    let node = |pool: &str, index: usize, roles: &[&str], gpu: bool| {
        node(&format!("{pool}-{index}"), roles, &pools.node_annotations(pool), gpu)
    };
    let masters = (0..scene.masters).map(|index| node("master", index, master_roles, false));
    let workers = (0..scene.workers).map(|index| node("worker", index, &["worker"], false));
    let custom = scene
        .pools
        .iter()
        .flat_map(|pool| (0..pool.nodes).map(|index| node(&pool.name, index, &["worker", &pool.name], pool.gpu)));
    masters.chain(workers).chain(custom).collect()
}

fn node(name: &str, roles: &[&str], annotations: &Value, gpu: bool) -> Value {
    let mut labels = Map::new();
    labels.insert("kubernetes.io/hostname".into(), json!(name));
    labels.insert("kubernetes.io/os".into(), json!("linux"));
    labels.insert("kubernetes.io/arch".into(), json!("amd64"));
    for role in roles {
        labels.insert(format!("{ROLE}{role}"), json!(""));
    }
    let mut resources = json!({
        "cpu": "32", "memory": "131072Mi", "pods": "250", "ephemeral-storage": "400Gi",
        "hugepages-1Gi": "0", "hugepages-2Mi": "0",
    });
    if gpu {
        for (feature, value) in [
            ("pci-0302_10de.present", "true"),
            ("usb-ff_1050_0407.present", "true"),
            ("memory-numa", "true"),
            ("cpu-hardware_multithreading", "true"),
        ] {
            labels.insert(format!("{FEATURE}{feature}"), json!(value));
        }
        resources["nvidia.com/gpu"] = json!("2");
    }
    let taints = if roles.contains(&"master") && !roles.contains(&"worker") {
        json!([{"key": format!("{ROLE}master"), "effect": "NoSchedule"}])
    } else {
        json!([])
    };
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": annotations},
        "spec": {"taints": taints},
        "status": {
            "capacity": resources,
            "allocatable": resources,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}],
            "nodeInfo": {
                "architecture": "amd64", "operatingSystem": "linux", "kubeletVersion": "v1.33.5",
                "osImage": "Red Hat Enterprise Linux CoreOS 9.6", "kernelVersion": "5.14.0-570.el9.x86_64",
                "containerRuntimeVersion": "cri-o://1.33.4", "bootID": format!("first-boot-of-{name}"), "machineID": "", "systemUUID": "",
                "kubeProxyVersion": "",
            },
        },
    })
}
