//! Pools of nodes on the model, and the stand-in of the machine-config operator that configures them.

use crate::testing::bed::TestBed;
use crate::testing::fields::merge;
use change::{Key, Moment};
use mco_stand_in::{Action, Kind, ROLE_LABEL, Rendered, Snapshot, StandIn, Timing, Write, control, render};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

const KINDS: [Kind; 4] = [Kind::MachineConfig, Kind::KubeletConfig, Kind::Pool, Kind::Node];
const OPERATOR: &str = "machine-config-operator";
/// More steps at once are a loop.
const MOST_STEPS: usize = 1_000;

const IMMEDIATE: Timing = Timing {
    render_delay: Duration::ZERO,
    status_lag: Duration::ZERO,
    drain: Duration::ZERO,
    apply: Duration::ZERO,
    restart: Duration::ZERO,
};

impl TestBed {
    /// A pool whose nodes have the role of its name, and which takes the MachineConfigs of these roles. Its nodes run them already.
    pub(crate) fn create_pool(&mut self, name: &str, roles: &[&str]) {
        let base = json!({"apiVersion": mco_stand_in::API_VERSION, "kind": "MachineConfig",
            "metadata": {"name": format!("00-{name}"), "labels": {ROLE_LABEL: name}},
            "spec": {"config": {"ignition": {"version": "3.2.0"}}}});
        self.create(OPERATOR, &base);
        let selector = json!({"matchExpressions": [{"key": ROLE_LABEL, "operator": "In", "values": roles}]});
        let nodes = json!({"matchLabels": {format!("node-role.kubernetes.io/{name}"): ""}});
        let labels = json!({format!("pools.operator.machineconfiguration.openshift.io/{name}"): ""});
        self.create(
            OPERATOR,
            &json!({"apiVersion": mco_stand_in::API_VERSION, "kind": "MachineConfigPool",
                "metadata": {"name": name, "labels": labels},
                "spec": {"machineConfigSelector": selector, "nodeSelector": nodes, "paused": false}}),
        );
        self.roll_out();
    }

    /// Every pool that is not paused rolls out what its MachineConfigs say now, in no time.
    pub(crate) fn roll_out(&mut self) {
        let mut stand_in = StandIn::new(IMMEDIATE, self.server.now);
        self.step_stand_in(&mut stand_in, Duration::ZERO);
        // The one that runs goes on from there.
        self.machine_config_operator = Some(StandIn::new(Timing::real(), self.server.now));
        self.operator_started = self.server.now;
    }

    /// When the stand-in has something to do.
    pub(crate) fn operator_wakes_at(&self) -> Option<Moment> {
        let at = self.machine_config_operator.as_ref()?.wake_at()?;
        Some(self.now_of(change::now::later(self.operator_started, at)).monotonic)
    }

    /// Lets the stand-in do what is due; whether it wrote anything.
    pub(crate) fn run_machine_config_operator(&mut self) -> bool {
        let is_due = self.operator_wakes_at().is_some_and(|at| at <= self.now().monotonic);
        let news = &self.server.log[self.operator_saw.min(self.server.log.len())..];
        let is_concerned = news.iter().any(|change| KINDS.iter().any(|kind| kind_name(*kind) == change.id.kind.kind));
        self.operator_saw = self.server.log.len();
        if !is_concerned && !is_due {
            return false;
        }
        let Some(mut stand_in) = self.machine_config_operator.take() else { return false };
        let passed = Duration::try_from(self.server.now.duration_since(self.operator_started)).unwrap_or_default();
        let has_written = self.step_stand_in(&mut stand_in, passed);
        self.machine_config_operator = Some(stand_in);
        self.operator_saw = self.server.log.len();
        has_written
    }

    /// How often a node has restarted.
    pub(crate) fn restarts_of(&self, node: &str) -> u64 {
        let annotations = self.value(&format!("Node {node}"), "/metadata/annotations");
        annotations[control::RESTARTS].as_str().map_or(0, |count| count.parse().expect("it is a number"))
    }

    /// The configuration that every pool would get from the MachineConfigs as they are now; nothing where that is an error.
    pub(crate) fn rendered_now(&self) -> BTreeMap<String, String> {
        let snapshot = self.snapshot();
        let name = |pool: &Value| {
            render(pool, snapshot.machine_configs.values()).ok().map(|one: Rendered| one.name().to_owned())
        };
        snapshot.pools.iter().filter_map(|(pool, object)| Some((pool.clone(), name(object)?))).collect()
    }

    fn step_stand_in(&mut self, stand_in: &mut StandIn, passed: Duration) -> bool {
        let mut has_written = false;
        for _ in 0..MOST_STEPS {
            let writes = stand_in.step(&self.snapshot(), passed);
            if writes.is_empty() {
                return has_written;
            }
            has_written = true;
            if !writes.iter().all(|write| self.write_of_stand_in(write)) {
                // Somebody has removed a CRD.
                return has_written;
            }
        }
        panic!("the stand-in does not settle");
    }

    /// Whether the server accepts it.
    fn write_of_stand_in(&mut self, write: &Write) -> bool {
        let key = self.key(&format!("{} {}", kind_name(write.kind), write.name));
        let outcome = match &write.action {
            Action::Create(object) => self.server.create(OPERATOR, &key, object).map(|_| ()),
            Action::Patch(patch) | Action::PatchStatus(patch) => {
                self.server.update(OPERATOR, &key, |object| merge(object, patch)).map(|_| ())
            }
            Action::Delete => self.server.delete(OPERATOR, &key, None).map(|_| ()),
        };
        if let Some(stored) = self.server.get(&key).filter(|_| write.kind == Kind::Pool) {
            self.promises.pool_changed(&write.name, &stored.object, self.server.now);
        }
        outcome.is_ok()
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
