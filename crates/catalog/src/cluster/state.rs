//! The state of a cluster, collected from lists and watches, and the facts derived from it.

use crate::cluster::facts::Facts;
use crate::cluster::hardware::Hardware;
use crate::cluster::node::{Node, NodeDescription};
use crate::cluster::pool::Pool;
use crate::cluster::selector::{Labels, Selector};
use crate::cluster::topology::{Infrastructure, Topology};
use crate::rollout::DisruptionPolicy;
use api::advisor::Authorship;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// A kind that facts are derived from.
#[derive(Debug, Clone, Copy)]
pub struct FactSource {
    /// Group and version.
    pub api_version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Whether it must be listed before anything is rendered, if the cluster serves it.
    pub first: bool,
    /// Whether only a plan needs it: nobody follows every virtual machine.
    pub only_for_plans: bool,
}

const fn first(api_version: &'static str, kind: &'static str) -> FactSource {
    FactSource { api_version, kind, first: true, only_for_plans: false }
}

const fn later(api_version: &'static str, kind: &'static str) -> FactSource {
    FactSource { api_version, kind, first: false, only_for_plans: false }
}

/// All kinds that facts are derived from.
pub const FACT_SOURCES: [FactSource; 7] = [
    first("v1", "Node"),
    first("config.openshift.io/v1", "Infrastructure"),
    first("config.openshift.io/v1", "Scheduler"),
    later("config.openshift.io/v1", "ClusterVersion"),
    later("machineconfiguration.openshift.io/v1", "MachineConfigPool"),
    later("operator.openshift.io/v1", "MachineConfiguration"),
    FactSource { only_for_plans: true, ..later("kubevirt.io/v1", "VirtualMachineInstance") },
];

/// What says which objects are the advisor's. Only the autopilot reads it: the advisor knows its own objects as a whole.
pub const GOVERNING: FactSource = first("advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig");

/// The relevant part of one object of a [`FactSource`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A node.
    Node(Node),
    /// A pool.
    Pool(Box<Pool>),
    /// The `Infrastructure` named `cluster`.
    Infrastructure(Infrastructure),
    /// The `Scheduler` named `cluster`: whether masters run ordinary workloads.
    Scheduler(bool),
    /// The `ClusterVersion` named `version`.
    ClusterVersion(String),
    /// The `MachineConfiguration` named `cluster`: after which changes nodes need no restart.
    DisruptionPolicy(DisruptionPolicy),
    /// A virtual machine that runs: its namespace, name and node.
    VirtualMachine {
        /// Namespace and name.
        id: (String, String),
        /// The node.
        node: String,
    },
    /// A `VirtPlatformConfig`.
    PlatformConfig {
        /// Its name.
        name: String,
        /// Its profile.
        profile: String,
        /// Whether the autopilot leaves the objects of the profile alone.
        governs: bool,
    },
    /// An object that no fact depends on.
    Other,
}

impl Part {
    /// Parses an object of one of [`FACT_SOURCES`], or of [`GOVERNING`], from JSON; irrelevant fields are skipped without being stored.
    pub fn read(kind: &str, text: &str) -> serde_json::Result<Part> {
        let RawObject { metadata, spec, status } = serde_json::from_str(text)?;
        let name = metadata.name;
        let is_true = |condition: &str| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.any(|found| found.kind == condition && found.status == "True")
        };
        Ok(match (kind, name.as_str()) {
            ("Node", _) => {
                let labels = metadata.labels.unwrap_or_default();
                let annotations = metadata.annotations.unwrap_or_default();
                let capacity = status.capacity.unwrap_or_default();
                let boot_id = status.node_info.and_then(|info| info.boot_id).unwrap_or_default();
                let created = metadata.creation_timestamp.unwrap_or_default();
                Part::Node(Node::of(&name, &NodeDescription { labels, annotations, boot_id, created, capacity }))
            }
            ("MachineConfigPool", _) => Part::Pool(Box::new(Pool {
                paused: spec.paused.unwrap_or_default(),
                updating: is_true("Updating"),
                degraded: DEGRADED.iter().any(|condition| is_true(condition)),
                degraded_because: degraded_because(&status),
                machine_count: status.machine_count.unwrap_or_default(),
                updated_machine_count: status.updated_machine_count.unwrap_or_default(),
                max_unavailable: spec.max_unavailable.map(|most| match most {
                    Value::String(text) => text,
                    number => number.to_string(),
                }),
                machine_config_selector: spec.machine_config_selector.unwrap_or_default(),
                updated_at: status.conditions.iter().flatten().find_map(|found| {
                    let is_updated = found.kind == "Updated" && found.status == "True";
                    found.last_transition_time.as_deref().filter(|_| is_updated)?.parse().ok()
                }),
                sources: spec.configuration.iter().flat_map(RenderedConfiguration::sources).collect(),
                wanted_configuration: spec.configuration.and_then(|rendered| rendered.name).unwrap_or_default(),
                running_configuration: status.configuration.and_then(|rendered| rendered.name).unwrap_or_default(),
                is_observed: status.observed_generation.unwrap_or_default() >= metadata.generation.unwrap_or_default(),
                labels: metadata.labels.unwrap_or_default(),
                name,
            })),
            ("Infrastructure", "cluster") => Part::Infrastructure(Infrastructure {
                control_plane_topology: status.control_plane_topology.unwrap_or_default(),
                platform: status.platform_status.and_then(|platform| platform.kind).unwrap_or_default(),
            }),
            ("Scheduler", "cluster") => Part::Scheduler(spec.masters_schedulable.unwrap_or_default()),
            ("ClusterVersion", "version") => {
                Part::ClusterVersion(status.desired.and_then(|desired| desired.version).unwrap_or_default())
            }
            ("MachineConfiguration", "cluster") => Part::DisruptionPolicy(
                status.node_disruption_policy_status.and_then(|status| status.cluster_policies).unwrap_or_default(),
            ),
            ("VirtPlatformConfig", _) => {
                let OfConfig { metadata } = serde_json::from_str(text)?;
                // One without an action is reviewed, as by default.
                let is_ignored = spec.action.as_deref() == Some("Ignore");
                Part::PlatformConfig {
                    name,
                    profile: spec.profile.unwrap_or_default(),
                    governs: api::advisor::governs(is_ignored, spec.hand_over, metadata.only_tells()),
                }
            }
            ("VirtualMachineInstance", _) if let Some(node) = status.node_name.filter(|node| !node.is_empty()) => {
                Part::VirtualMachine { id: (metadata.namespace.unwrap_or_default(), name), node }
            }
            _ => Part::Other,
        })
    }
}

/// The current parts of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterState {
    /// Sorted by name.
    nodes: Vec<Node>,
    pools: BTreeMap<String, Pool>,
    infrastructure: Infrastructure,
    schedulable_masters: bool,
    cluster_version: String,
    disruption_policy: DisruptionPolicy,
    /// The node of each virtual machine.
    virtual_machines: BTreeMap<(String, String), String>,
    /// The profile of each `VirtPlatformConfig`, and whether the autopilot leaves its objects alone.
    platform_configs: BTreeMap<String, (String, bool)>,
}

impl ClusterState {
    /// The nodes, sorted by name.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The pools, by name.
    pub fn pools(&self) -> &BTreeMap<String, Pool> {
        &self.pools
    }

    /// After which changes nodes need no restart.
    pub fn disruption_policy(&self) -> &DisruptionPolicy {
        &self.disruption_policy
    }

    /// How many virtual machines run on these nodes.
    pub fn virtual_machines_on(&self, nodes: &[String]) -> usize {
        self.virtual_machines.values().filter(|node| nodes.contains(node)).count()
    }

    /// Adds or replaces a part.
    pub fn put(&mut self, part: Part) {
        match part {
            Part::Node(node) => match self.nodes.binary_search_by(|known| known.name.cmp(&node.name)) {
                Ok(index) => self.nodes[index] = node,
                Err(index) => self.nodes.insert(index, node),
            },
            Part::Pool(pool) => {
                self.pools.insert(pool.name.clone(), *pool);
            }
            Part::Infrastructure(infrastructure) => self.infrastructure = infrastructure,
            Part::Scheduler(schedulable) => self.schedulable_masters = schedulable,
            Part::ClusterVersion(version) => self.cluster_version = version,
            Part::DisruptionPolicy(policy) => self.disruption_policy = policy,
            Part::VirtualMachine { id, node } => {
                self.virtual_machines.insert(id, node);
            }
            Part::PlatformConfig { name, profile, governs } => {
                self.platform_configs.insert(name, (profile, governs));
            }
            Part::Other => {}
        }
    }

    /// Removes the parts of a kind whose names do not match.
    pub fn retain(&mut self, kind: &str, is_present: impl Fn(&str) -> bool) {
        match kind {
            "Node" => self.nodes.retain(|node| is_present(&node.name)),
            "MachineConfigPool" => self.pools.retain(|name, _| is_present(name)),
            "VirtPlatformConfig" => self.platform_configs.retain(|name, _| is_present(name)),
            "Infrastructure" if !is_present("cluster") => self.infrastructure = Infrastructure::default(),
            "Scheduler" if !is_present("cluster") => self.schedulable_masters = false,
            "ClusterVersion" if !is_present("version") => self.cluster_version.clear(),
            "MachineConfiguration" if !is_present("cluster") => self.disruption_policy = DisruptionPolicy::default(),
            _ => {}
        }
    }

    /// Updates the facts; returns whether a fact changed that an asset can depend on.
    pub fn update(&self, facts: &mut Facts) -> bool {
        fn known(pool: &Pool) -> (&String, &Labels, Option<&[String]>) {
            (&pool.name, &pool.labels, pool.running())
        }
        let are_pools_changed = facts.pools.iter().map(known).ne(self.pools.values().map(known));
        let is_version_changed = facts.cluster_version != self.cluster_version;
        facts.pools = self.pools.values().cloned().collect();
        facts.cluster_version.clone_from(&self.cluster_version);
        let hardware = Hardware::of_any(self.nodes.iter().map(|node| &node.hardware));
        let topology = Topology::of(&self.nodes, &self.infrastructure, self.schedulable_masters);
        let is_changed = (&facts.hardware, &facts.topology) != (&hardware, &topology);
        (facts.hardware, facts.topology) = (hardware, topology);
        let governing = self.governing();
        let is_governing_changed = facts.governing != governing;
        facts.governing = governing;
        is_changed || are_pools_changed || is_version_changed || is_governing_changed
    }

    /// The profiles that a `VirtPlatformConfig` governs by, each with its name.
    fn governing(&self) -> BTreeMap<String, String> {
        let active = self.platform_configs.iter().filter(|(_, (_, governs))| *governs);
        active.map(|(name, (profile, _))| (profile.clone(), name.clone())).collect()
    }
}

/// What of a `VirtPlatformConfig` says who wrote its spec.
#[derive(Deserialize)]
struct OfConfig {
    metadata: Authorship,
}

#[derive(Deserialize)]
struct RawObject {
    metadata: RawMetadata,
    #[serde(default)]
    spec: RawSpec,
    #[serde(default)]
    status: RawStatus,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMetadata {
    name: String,
    namespace: Option<String>,
    creation_timestamp: Option<String>,
    generation: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct RawSpec {
    paused: Option<bool>,
    masters_schedulable: Option<bool>,
    max_unavailable: Option<Value>,
    machine_config_selector: Option<Selector>,
    configuration: Option<RenderedConfiguration>,
    profile: Option<String>,
    action: Option<String>,
    hand_over: Option<bool>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct RawStatus {
    capacity: Option<BTreeMap<String, String>>,
    node_info: Option<NodeInfo>,
    conditions: Option<Vec<StatusCondition>>,
    machine_count: Option<i64>,
    updated_machine_count: Option<i64>,
    observed_generation: Option<i64>,
    configuration: Option<RenderedConfiguration>,
    control_plane_topology: Option<String>,
    platform_status: Option<PlatformStatus>,
    desired: Option<DesiredUpdate>,
    node_disruption_policy_status: Option<PolicyStatus>,
    node_name: Option<String>,
}

#[derive(Deserialize)]
struct NodeInfo {
    #[serde(rename = "bootID")]
    boot_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PolicyStatus {
    cluster_policies: Option<DisruptionPolicy>,
}

#[derive(Deserialize)]
struct RenderedConfiguration {
    name: Option<String>,
    source: Option<Vec<RenderedSource>>,
}

#[derive(Deserialize)]
struct RenderedSource {
    name: Option<String>,
}

impl RenderedConfiguration {
    fn sources(&self) -> impl Iterator<Item = String> {
        self.source.iter().flatten().filter_map(|source| source.name.clone())
    }
}

/// The conditions of a pool that is degraded; the last one sums up the others.
const DEGRADED: [&str; 3] = ["NodeDegraded", "RenderDegraded", "Degraded"];
/// A longer message is cut.
const LONGEST_MESSAGE: usize = 200;

fn degraded_because(status: &RawStatus) -> String {
    let message = |name: &&str| {
        let mut conditions = status.conditions.iter().flatten();
        let found = conditions.find(|found| found.kind == **name && found.status == "True")?;
        found.message.as_ref().map(|message| message.trim()).filter(|message| !message.is_empty())
    };
    let message = DEGRADED.iter().find_map(message).unwrap_or_default();
    message.chars().take(LONGEST_MESSAGE).collect()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatusCondition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    last_transition_time: Option<String>,
    message: Option<String>,
}

#[derive(Deserialize)]
struct PlatformStatus {
    #[serde(rename = "type")]
    kind: Option<String>,
}

#[derive(Deserialize)]
struct DesiredUpdate {
    version: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::{ClusterState, FACT_SOURCES, Part};
    use crate::cluster::facts::Facts;
    use crate::cluster::pool::Pool;
    use crate::cluster::selector::Selector;
    use crate::rollout::DisruptionPolicy;
    use serde_json::{Value, json};

    fn put(state: &mut ClusterState, kind: &str, object: &Value) {
        state.put(Part::read(kind, &object.to_string()).unwrap());
    }

    fn node(name: &str, gpus: &str) -> Value {
        json!({"metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": "", "other": "x"}},
               "status": {"capacity": {"cpu": "8", "nvidia.com/gpu": gpus}, "images": [{"names": ["large"]}]}})
    }

    #[test]
    fn an_update_reports_only_changed_facts() {
        let (mut state, mut facts) = (ClusterState::default(), Facts::default());
        put(&mut state, "Node", &node("b", "0"));
        assert!(state.update(&mut facts) && !state.update(&mut facts));
        assert!(!facts.hardware.gpu_present && facts.topology.worker_count == 1);
        put(&mut state, "Node", &node("a", "2"));
        assert!(state.update(&mut facts) && facts.hardware.gpu_present);
        assert_eq!(state.nodes().iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        put(&mut state, "Node", &node("a", "4"));
        assert!(!state.update(&mut facts), "no fact depends on the number of GPUs");
        state.retain("Node", |name| name == "b");
        assert!(state.update(&mut facts) && !facts.hardware.gpu_present);
    }

    #[test]
    fn a_profile_is_governing_unless_it_is_handed_over_or_only_told_of() {
        let (mut state, mut facts) = (ClusterState::default(), Facts::default());
        let config = |name: &str, action: Option<&str>, hand_over: Option<bool>, told_of: Option<i64>| {
            let spec = json!({"profile": name, "action": action, "handOver": hand_over, "options": {"loadAware": {}}});
            let annotations = json!({"advisor.kubevirt.io/auto-created": told_of.map(|_| "true")});
            let annotations = told_of.map(|_| annotations);
            let owners = json!([{"manager": "virt-advisor-operator", "fieldsV1": {"f:spec": {}}}]);
            json!({"metadata": {"name": name, "generation": told_of.unwrap_or(1), "annotations": annotations,
                "managedFields": owners},
                "spec": spec, "status": {"phase": "Drafting"}})
        };
        for (action, hand_over, told_of, is_governing) in [
            (None, None, None, true),
            (Some("Ignore"), Some(true), None, false),
            (Some("Ignore"), None, None, true),
            (Some("Ignore"), None, Some(1), false),
            (Some("Ignore"), None, Some(2), true),
            (Some("Apply"), Some(true), None, true),
            (Some("Ignore"), Some(true), Some(3), false),
            (Some("DryRun"), None, Some(1), true),
        ] {
            put(&mut state, "VirtPlatformConfig", &config("a", action, hand_over, told_of));
            let before = facts.governing.len();
            let what = format!("{action:?} {hand_over:?} {told_of:?}");
            assert_eq!(state.update(&mut facts), before != usize::from(is_governing), "{what}");
            assert_eq!(facts.governing.get("a").map(String::as_str), is_governing.then_some("a"), "{what}");
        }
        put(&mut state, "VirtPlatformConfig", &config("b", Some("Apply"), None, None));
        state.retain("VirtPlatformConfig", |name| name == "b");
        assert!(state.update(&mut facts) && facts.governing.keys().eq(["b"]));
    }

    #[test]
    fn assets_depend_on_versions_and_on_what_pools_run_but_not_on_the_rest_of_their_status() {
        let (mut state, mut facts) = (ClusterState::default(), Facts::default());
        let conditions = json!([{"type": "Updating", "status": "True"}, {"type": "Degraded", "status": "False"},
            {"type": "Updated", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
        let selector = json!({"matchLabels": {"role": "worker"}});
        let pool = json!({"metadata": {"name": "worker", "generation": 4, "labels": {"a": "b"}},
            "spec": {"paused": true, "maxUnavailable": "20%", "machineConfigSelector": selector, "configuration": {"name": "rendered-2", "source": [{"name": "00-worker"}, {"name": "ours"}]}},
            "status": {"machineCount": 3, "updatedMachineCount": 1, "observedGeneration": 4, "configuration": {"name": "rendered-1"},
                       "conditions": conditions}});
        put(&mut state, "MachineConfigPool", &pool);
        assert!(state.update(&mut facts) && !state.update(&mut facts));
        put(
            &mut state,
            "ClusterVersion",
            &json!({"metadata": {"name": "version"}, "status": {"desired": {"version": "4.20.1"}}}),
        );
        assert!(state.update(&mut facts) && !state.update(&mut facts));
        let mut later = pool.clone();
        later["status"]["updatedMachineCount"] = json!(2);
        put(&mut state, "MachineConfigPool", &later);
        assert!(!state.update(&mut facts));
        later["status"]["configuration"]["name"] = json!("rendered-2");
        put(&mut state, "MachineConfigPool", &later);
        assert!(state.update(&mut facts), "all machines run other MachineConfigs");
        put(&mut state, "MachineConfigPool", &pool);
        assert!(state.update(&mut facts) && !state.update(&mut facts));
        let expected = Pool {
            degraded_because: String::new(),
            sources: vec!["00-worker".into(), "ours".into()],
            updated_at: Some("2026-01-01T00:00:00Z".parse().unwrap()),
            name: "worker".into(),
            labels: [("a".into(), "b".into())].into(),
            paused: true,
            updating: true,
            degraded: false,
            machine_count: 3,
            updated_machine_count: 1,
            max_unavailable: Some("20%".into()),
            machine_config_selector: Selector::of("role", "worker"),
            wanted_configuration: "rendered-2".into(),
            running_configuration: "rendered-1".into(),
            is_observed: true,
        };
        assert_eq!(facts.pools, [expected]);
        assert_eq!(facts.cluster_version, "4.20.1");
        state.retain("MachineConfigPool", |name| name == "worker");
        state.retain("ClusterVersion", |name| name == "version");
        state.update(&mut facts);
        assert_eq!((facts.pools.len(), facts.cluster_version.as_str()), (1, "4.20.1"), "both are still there");
        state.retain("MachineConfigPool", |_| false);
        state.retain("ClusterVersion", |_| false);
        state.update(&mut facts);
        assert_eq!((facts.pools.len(), facts.cluster_version.as_str()), (0, ""));
    }

    #[test]
    fn a_degraded_pool_says_why() {
        let condition =
            |kind: &str, status: &str, message: &str| json!({"type": kind, "status": status, "message": message});
        let pool = |conditions: Value| {
            let object = json!({"metadata": {"name": "worker"}, "status": {"conditions": conditions}});
            match Part::read("MachineConfigPool", &object.to_string()).unwrap() {
                Part::Pool(pool) => (pool.degraded, pool.degraded_because),
                other => panic!("{other:?}"),
            }
        };
        let degraded = condition("Degraded", "True", "sum");
        assert_eq!(
            pool(json!([degraded, condition("NodeDegraded", "True", " disk full ")])),
            (true, "disk full".into())
        );
        assert_eq!(pool(json!([degraded, condition("NodeDegraded", "False", "was full")])), (true, "sum".into()));
        assert_eq!(pool(json!([degraded, condition("RenderDegraded", "True", " ")])), (true, "sum".into()));
        assert_eq!(pool(json!([condition("NodeDegraded", "False", "was full")])), (false, String::new()));
        let long = condition("NodeDegraded", "True", &"x".repeat(300));
        assert_eq!(pool(json!([long])), (true, "x".repeat(200)));
    }

    #[test]
    fn a_disruption_policy_holds_until_its_object_is_gone() {
        let mut state = ClusterState::default();
        let policies = json!({"files": [{"path": "/etc/a", "actions": [{"type": "None"}]}]});
        let object = |name: &str| json!({"metadata": {"name": name}, "status": {"nodeDisruptionPolicyStatus": {"clusterPolicies": policies}}});
        put(&mut state, "MachineConfiguration", &object("other"));
        assert_eq!(*state.disruption_policy(), DisruptionPolicy::default());
        put(&mut state, "MachineConfiguration", &object("cluster"));
        let policy: DisruptionPolicy = serde_json::from_value(policies).unwrap();
        assert_eq!(*state.disruption_policy(), policy);
        state.retain("MachineConfiguration", |name| name == "cluster");
        assert_eq!(*state.disruption_policy(), policy);
        state.retain("MachineConfiguration", |_| false);
        assert_eq!(*state.disruption_policy(), DisruptionPolicy::default());
    }

    #[test]
    fn virtual_machines_are_counted_by_node() {
        let mut state = ClusterState::default();
        let machine = |namespace: &str, name: &str, node: &str| json!({"metadata": {"name": name, "namespace": namespace}, "status": {"nodeName": node}});
        for (namespace, name, node) in
            [("a", "x", "n1"), ("b", "x", "n1"), ("a", "y", "n2"), ("a", "z", ""), ("a", "y", "n3")]
        {
            put(&mut state, "VirtualMachineInstance", &machine(namespace, name, node));
        }
        put(&mut state, "VirtualMachineInstance", &json!({"metadata": {"name": "scheduling"}}));
        let on = |nodes: &[&str]| {
            state.virtual_machines_on(&nodes.iter().map(|node| (*node).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!((on(&["n1"]), on(&["n2"]), on(&["n1", "n3"]), on(&[""])), (2, 0, 3, 0));
        let only: Vec<&str> =
            FACT_SOURCES.iter().filter(|source| source.only_for_plans).map(|source| source.kind).collect();
        assert_eq!(only, ["VirtualMachineInstance"]);
        put(&mut state, "MachineConfigPool", &json!({"metadata": {"name": "worker"}}));
        assert_eq!(state.pools().keys().collect::<Vec<_>>(), ["worker"]);
    }

    #[test]
    fn only_objects_named_cluster_describe_the_cluster() {
        let (mut state, mut facts) = (ClusterState::default(), Facts::default());
        let infrastructure = |name: &str, topology: &str| json!({"metadata": {"name": name}, "status": {"controlPlaneTopology": topology, "platformStatus": {"type": "AWS"}}});
        put(&mut state, "Infrastructure", &infrastructure("cluster", "External"));
        put(&mut state, "Infrastructure", &infrastructure("other", "SingleReplica"));
        put(&mut state, "Scheduler", &json!({"metadata": {"name": "cluster"}, "spec": {"mastersSchedulable": true}}));
        assert!(state.update(&mut facts));
        let topology = &facts.topology;
        assert!(topology.is_hcp && topology.is_aws && topology.has_schedulable_masters);
        state.retain("Infrastructure", |name| name == "cluster");
        state.retain("Scheduler", |name| name == "cluster");
        assert!(!state.update(&mut facts), "both are still there");
        state.retain("Infrastructure", |_| false);
        state.retain("Scheduler", |_| false);
        assert!(state.update(&mut facts) && facts == Facts::default());
    }
}
