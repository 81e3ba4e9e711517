//! Machine config pools, their MachineConfigs and what nodes say of them, as the machine-config operator leaves them on a healthy cluster.

use super::{Scene, Topology};
use mco_stand_in::{API_VERSION, ROLE_LABEL, annotation, render, templates};
use serde_json::{Value, json};

/// The pools of a scene with their MachineConfigs.
pub(super) struct Pools {
    machine_configs: Vec<Value>,
    pools: Vec<Value>,
}

impl Pools {
    /// The pools of a scene; with a hosted control plane there are none.
    pub(super) fn of(scene: &Scene) -> Pools {
        if scene.topology == Topology::External {
            return Pools { machine_configs: Vec::new(), pools: Vec::new() };
        }
        let mut machine_configs: Vec<Value> = ["master", "worker"].into_iter().flat_map(templates).collect();
        // On a compact cluster the worker pool is empty: masters are only in their own pool.
        let plain = [("master", scene.masters), ("worker", scene.workers)]
            .into_iter()
            .map(|(name, nodes)| (name, nodes, vec![name]));
        let custom =
            scene.pools.iter().map(|pool| (pool.name.as_str(), pool.nodes, vec!["worker", pool.name.as_str()]));
        let mut pools = Vec::new();
        for (name, nodes, roles) in plain.chain(custom) {
            let mut pool = pool(name, &roles);
            // The templates are valid and always selected.
            if let Ok(rendered) = render(&pool, &machine_configs) {
                set_configuration(&mut pool, rendered.name(), &json!(rendered.source), nodes);
                machine_configs.push(rendered.machine_config);
            }
            pools.push(pool);
        }
        Pools { machine_configs, pools }
    }

    /// All objects.
    pub(super) fn objects(self) -> Vec<Value> {
        [self.machine_configs, self.pools].concat()
    }

    /// The annotations of a node that runs the configuration of a pool.
    pub(super) fn node_annotations(&self, pool: &str) -> Value {
        let pool = self.pools.iter().find(|one| one["metadata"]["name"] == pool);
        let Some(name) = pool.map(|pool| &pool["spec"]["configuration"]["name"]) else { return json!({}) };
        json!({annotation::CURRENT: name, annotation::DESIRED: name, annotation::STATE: "Done"})
    }
}

fn pool(name: &str, roles: &[&str]) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "MachineConfigPool",
        "metadata": {"name": name, "labels": {format!("pools.operator.machineconfiguration.openshift.io/{name}"): ""}},
        "spec": {
            "paused": false,
            "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}},
            "machineConfigSelector": {"matchExpressions": [{"key": ROLE_LABEL, "operator": "In", "values": roles}]},
        },
    })
}

/// Sets what all nodes of the pool run.
fn set_configuration(pool: &mut Value, name: &str, source: &Value, nodes: usize) {
    let condition = |kind: &str, status: &str, message: &str| {
        let moment = "2026-01-01T00:00:00Z";
        json!({"type": kind, "status": status, "reason": "", "message": message, "lastTransitionTime": moment})
    };
    let configuration = json!({"name": name, "source": source});
    pool["spec"]["configuration"] = configuration.clone();
    pool["status"] = json!({
        "observedGeneration": 1,
        "configuration": configuration,
        "machineCount": nodes,
        "updatedMachineCount": nodes,
        "readyMachineCount": nodes,
        "unavailableMachineCount": 0,
        "degradedMachineCount": 0,
        "conditions": [
            condition("Updated", "True", &format!("All nodes are updated with MachineConfig {name}")),
            condition("Updating", "False", ""),
            condition("NodeDegraded", "False", ""),
            condition("RenderDegraded", "False", ""),
            condition("Degraded", "False", ""),
        ],
    });
}

#[cfg(test)]
mod tests {
    use crate::scene::{PRESETS, Scene};
    use mco_stand_in::{Snapshot, StandIn, Timing, nodes_of_pool};
    use serde_json::json;
    use std::time::Duration;

    /// What the stand-in sees of a new cluster.
    fn snapshot(scene: &Scene) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for mut object in scene.objects() {
            object["metadata"]["generation"] = json!(1);
            let name = object["metadata"]["name"].as_str().unwrap().to_owned();
            match object["kind"].as_str() {
                Some("MachineConfig") => drop(snapshot.machine_configs.insert(name, object)),
                Some("MachineConfigPool") => drop(snapshot.pools.insert(name, object)),
                Some("Node") => drop(snapshot.nodes.insert(name, object)),
                _ => {}
            }
        }
        snapshot
    }

    #[test]
    fn the_operator_finds_nothing_to_do_on_a_new_cluster() {
        for preset in PRESETS {
            let snapshot = snapshot(&Scene::preset(preset).unwrap());
            let timing = Timing::real();
            let mut stand_in = StandIn::new(timing, "2026-01-01T00:00:00Z".parse().unwrap());
            for now in [Duration::ZERO, timing.render_delay, timing.render_delay + timing.status_lag] {
                assert_eq!(stand_in.step(&snapshot, now), [], "{preset} after {now:?}");
            }
            assert_eq!(stand_in.wake_at(), None, "{preset}");
        }
    }

    #[test]
    fn every_pool_counts_the_nodes_that_it_configures() {
        for preset in PRESETS {
            let snapshot = snapshot(&Scene::preset(preset).unwrap());
            for (name, pool) in &snapshot.pools {
                assert_eq!(pool["status"]["machineCount"], nodes_of_pool(&snapshot, name).len(), "{preset} {name}");
            }
        }
    }
}
