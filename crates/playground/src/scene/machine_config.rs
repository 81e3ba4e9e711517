//! Machine config pools and their rendered MachineConfigs, as the machine config operator leaves them on a healthy cluster.

use super::{Scene, Topology};
use serde_json::{Value, json};

const API: &str = "machineconfiguration.openshift.io/v1";
const ROLE_LABEL: &str = "machineconfiguration.openshift.io/role";

/// The pools of a scene; with a hosted control plane there are none.
pub(super) fn pools(scene: &Scene) -> Vec<Value> {
    if scene.topology == Topology::External {
        return Vec::new();
    }
    // On a compact cluster the worker pool is empty: masters are only in their own pool.
    let plain = [("master", scene.masters), ("worker", scene.workers)]
        .into_iter()
        .map(|(name, nodes)| (name, nodes, vec![name]));
    let custom = scene.pools.iter().map(|pool| (pool.name.as_str(), pool.nodes, vec!["worker", pool.name.as_str()]));
    plain.chain(custom).flat_map(|(name, nodes, roles)| [rendered(name), pool(name, nodes, &roles)]).collect()
}

fn rendered_name(pool: &str) -> String {
    format!("rendered-{pool}-9f6bd1c2f0a14d5e8b7c3a2d1e0f9a8b")
}

fn rendered(pool: &str) -> Value {
    json!({
        "apiVersion": API,
        "kind": "MachineConfig",
        "metadata": {"name": rendered_name(pool), "labels": {ROLE_LABEL: pool}},
        "spec": {"config": {"ignition": {"version": "3.5.0"}}, "kernelArguments": [], "osImageURL": ""},
    })
}

fn pool(name: &str, nodes: usize, roles: &[&str]) -> Value {
    let moment = "2026-01-01T00:00:00Z";
    let condition = |kind: &str, status: &str| json!({"type": kind, "status": status, "reason": "", "message": "", "lastTransitionTime": moment});
    let configuration = json!({"name": rendered_name(name), "source": [{
        "apiVersion": API, "kind": "MachineConfig", "name": format!("00-{name}"),
    }]});
    json!({
        "apiVersion": API,
        "kind": "MachineConfigPool",
        "metadata": {"name": name, "labels": {format!("pools.operator.machineconfiguration.openshift.io/{name}"): ""}},
        "spec": {
            "paused": false,
            "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}},
            "machineConfigSelector": {"matchExpressions": [{"key": ROLE_LABEL, "operator": "In", "values": roles}]},
            "configuration": configuration,
        },
        "status": {
            "observedGeneration": 1,
            "configuration": configuration,
            "machineCount": nodes,
            "updatedMachineCount": nodes,
            "readyMachineCount": nodes,
            "unavailableMachineCount": 0,
            "degradedMachineCount": 0,
            "conditions": [condition("Updated", "True"), condition("Updating", "False"), condition("Degraded", "False")],
        },
    })
}
