//! Pools of nodes on the model, and the stand-in of the machine-config operator that configures them.

use super::bed::TestBed;
use change::{Key, Moment};
use mco_stand_in::{API_VERSION, Action, Kind, ROLE_LABEL, Snapshot, StandIn, Write};
use serde_json::json;
use server_model::fields::merge;
use std::time::Duration;

const KINDS: [Kind; 4] = [Kind::MachineConfig, Kind::KubeletConfig, Kind::Pool, Kind::Node];
const OPERATOR: &str = "machine-config-operator";
/// More steps at once are a loop.
const MOST_STEPS: usize = 1_000;

impl TestBed {
    /// A pool whose nodes have the role of its name; they run its MachineConfigs already.
    pub(crate) fn create_pool(&mut self, name: &str, nodes: &[&str]) {
        for node in nodes {
            let labels = json!({format!("node-role.kubernetes.io/{name}"): ""});
            self.create(
                &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": labels}, "status": {"capacity": {"cpu": "8"}}}),
            );
        }
        self.create(&json!({"apiVersion": API_VERSION, "kind": "MachineConfig",
            "metadata": {"name": format!("00-{name}"), "labels": {ROLE_LABEL: name}},
            "spec": {"config": {"ignition": {"version": "3.2.0"}}}}));
        self.create(&json!({"apiVersion": API_VERSION, "kind": "MachineConfigPool", "metadata": {"name": name},
            "spec": {"machineConfigSelector": {"matchLabels": {ROLE_LABEL: name}},
                "nodeSelector": {"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}}, "paused": false}}));
    }

    /// When the stand-in has something to do.
    pub(crate) fn nodes_wake_at(&self) -> Option<Moment> {
        let at = self.stand_in.as_ref()?.wake_at()?;
        Some(self.now_of(change::now::later(self.stand_in_started, at)).monotonic)
    }

    /// Lets the stand-in do what is due; whether it wrote anything.
    pub(crate) fn run_nodes(&mut self) -> bool {
        let Some(mut stand_in) = self.stand_in.take() else { return false };
        let passed = Duration::try_from(self.server.now.duration_since(self.stand_in_started)).unwrap_or_default();
        let has_written = self.step_stand_in(&mut stand_in, passed);
        self.stand_in = Some(stand_in);
        has_written
    }

    /// How often a node has restarted.
    pub(crate) fn restarts_of(&self, node: &str) -> u64 {
        self.stand_in.as_ref().map_or(0, |stand_in| stand_in.restarts(node))
    }

    fn step_stand_in(&mut self, stand_in: &mut StandIn, passed: Duration) -> bool {
        for step in 0..MOST_STEPS {
            let writes = stand_in.step(&self.snapshot(), passed);
            if writes.is_empty() {
                return step > 0;
            }
            for write in &writes {
                self.write_of_stand_in(write);
            }
        }
        panic!("the stand-in does not settle");
    }

    fn write_of_stand_in(&mut self, write: &Write) {
        let key = self.key(&format!("{} {}", kind_name(write.kind), write.name));
        let outcome = match &write.action {
            Action::Create(object) => self.server.create(OPERATOR, &key, object),
            Action::Patch(patch) | Action::PatchStatus(patch) => {
                self.server.update(OPERATOR, &key, |object| merge(object, patch))
            }
            Action::Delete => self.server.delete(OPERATOR, &key, None),
        };
        outcome.unwrap_or_else(|why| panic!("{key}: {why:?}"));
    }

    fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        for kind in KINDS {
            let objects = self.server.objects().filter(|(key, _)| key.kind.kind == kind_name(kind));
            let named = objects.map(|(key, stored): (&Key, _)| (key.name.clone(), stored.object.clone()));
            *snapshot.objects(kind) = named.collect();
        }
        snapshot
    }
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::MachineConfig => "MachineConfig",
        Kind::KubeletConfig => "KubeletConfig",
        Kind::Pool => "MachineConfigPool",
        Kind::Node => "Node",
    }
}
