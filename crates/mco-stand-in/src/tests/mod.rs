//! A claim for each point of the operator's documentation, on a clock of their own.

mod kubelet_configs;
mod node_disruption;
mod pool_status;
mod rendering;
mod robustness;
mod rollout;

use crate::node::{Node, annotation};
use crate::{Action, ROLE_LABEL, Snapshot, StandIn, Timing, Write, nodes_of_pool, templates};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// A cluster with its stand-in and a clock.
struct Run {
    stand_in: StandIn,
    snapshot: Snapshot,
    now: Duration,
    /// Every write, with its time.
    writes: Vec<(Duration, Write)>,
    /// The highest number of unavailable nodes of the pool `worker` at any time.
    most_unavailable: usize,
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn pool(name: &str, roles: &[&str]) -> Value {
    json!({
        "metadata": {
            "name": name, "uid": format!("uid-of-{name}"), "generation": 1,
            "labels": {format!("pools.operator.machineconfiguration.openshift.io/{name}"): ""},
        },
        "spec": {
            "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}},
            "machineConfigSelector": {"matchExpressions": [{"key": ROLE_LABEL, "operator": "In", "values": roles}]},
        },
    })
}

fn node(name: &str, roles: &[&str]) -> Value {
    let labels: serde_json::Map<String, Value> =
        roles.iter().map(|role| (format!("node-role.kubernetes.io/{role}"), json!(""))).collect();
    json!({
        "metadata": {"name": name, "labels": labels},
        "spec": {},
        "status": {"conditions": [
            {"type": "MemoryPressure", "status": "False"},
            {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""},
        ]},
    })
}

fn machine_config(name: &str, role: &str, spec: &Value) -> Value {
    json!({"metadata": {"name": name, "labels": {ROLE_LABEL: role}}, "spec": spec})
}

fn file_spec(path: &str, content: &str) -> Value {
    let files = json!([{"path": path, "contents": {"source": format!("data:,{content}")}}]);
    json!({"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}})
}

impl Run {
    /// A cluster with this many workers and a pool for masters and for workers, settled.
    fn with_workers(workers: usize) -> Run {
        let mut snapshot = Snapshot::default();
        for role in ["master", "worker"] {
            snapshot.pools.insert(role.into(), pool(role, &[role]));
            for config in templates(role) {
                let name = config["metadata"]["name"].as_str().unwrap().to_owned();
                snapshot.machine_configs.insert(name, config);
            }
        }
        for index in 0..workers {
            let name = format!("worker-{index}");
            snapshot.nodes.insert(name.clone(), node(&name, &["worker"]));
        }
        let mut run = Run::of(snapshot);
        run.finish();
        run.writes.clear();
        run
    }

    fn of(snapshot: Snapshot) -> Run {
        let epoch: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let stand_in = StandIn::new(Timing::real(), epoch);
        Run { stand_in, snapshot, now: Duration::ZERO, writes: Vec::new(), most_unavailable: 0 }
    }

    /// Makes all writes that are due now.
    fn settle(&mut self) {
        for _ in 0..100 {
            let writes = self.stand_in.step(&self.snapshot, self.now);
            if writes.is_empty() {
                return;
            }
            for write in writes {
                self.snapshot.apply(&write);
                self.writes.push((self.now, write));
                self.most_unavailable = self.most_unavailable.max(self.unavailable("worker"));
            }
        }
        panic!("it never stops to write: {:?}", self.writes.last());
    }

    /// Lets time pass.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        self.settle();
        while let Some(due) = self.stand_in.wake_at().filter(|due| *due <= end) {
            self.now = due;
            self.settle();
        }
        self.now = end;
        self.settle();
    }

    /// Lets time pass until nothing is left to do.
    fn finish(&mut self) {
        self.settle();
        for _ in 0..10_000 {
            let Some(due) = self.stand_in.wake_at() else { return };
            self.now = due;
            self.settle();
        }
        panic!("it never ends");
    }

    fn add(&mut self, name: &str, role: &str, spec: &Value) {
        self.snapshot.machine_configs.insert(name.into(), machine_config(name, role, spec));
    }

    /// Creates a MachineConfig that restarts the workers.
    fn add_file(&mut self, name: &str, content: &str) {
        self.add(name, "worker", &file_spec("/etc/example.conf", content));
    }

    fn edit_pool(&mut self, name: &str, patch: Value) {
        self.snapshot.apply(&Write::new(crate::Kind::Pool, name, Action::Patch(patch)));
    }

    fn annotate(&mut self, node: &str, key: &str, value: Option<&str>) {
        let patch = json!({"metadata": {"annotations": {key: value}}});
        self.snapshot.apply(&Write::new(crate::Kind::Node, node, Action::Patch(patch)));
    }

    fn pool(&self, name: &str) -> &Value {
        &self.snapshot.pools[name]
    }

    fn node(&self, name: &str) -> Node<'_> {
        Node(&self.snapshot.nodes[name])
    }

    /// The name of the configuration that a pool is to run.
    fn target(&self, pool: &str) -> String {
        self.pool(pool)["spec"]["configuration"]["name"].as_str().unwrap_or_default().to_owned()
    }

    fn condition(&self, pool: &str, kind: &str) -> Value {
        let conditions = self.pool(pool)["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.into_iter().find(|condition| condition["type"] == kind).unwrap_or_default()
    }

    fn holds(&self, pool: &str, kind: &str) -> bool {
        self.condition(pool, kind)["status"] == "True"
    }

    fn restarts(&self) -> Vec<u64> {
        self.snapshot.nodes.keys().map(|name| self.stand_in.restarts(name)).collect()
    }

    fn unavailable(&self, pool: &str) -> usize {
        let nodes = nodes_of_pool(&self.snapshot, pool);
        nodes.into_iter().filter(|name| self.node(name).is_unavailable()).count()
    }

    /// The nodes that are being updated.
    fn working(&self) -> Vec<&str> {
        self.snapshot.nodes.keys().map(String::as_str).filter(|name| self.node(name).state() == "Working").collect()
    }
}
