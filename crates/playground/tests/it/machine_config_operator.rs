//! The stand-in of the machine-config operator on a real API server.

use crate::{eventually, start, start_scene};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use playground::audit::Kind;
use playground::deployment::objects;
use playground::machine_config_operator::{ACCOUNT, NAMESPACE};
use playground::{MachineConfigOperator, Playground, Scene, Timing};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};

const API: &str = "machineconfiguration.openshift.io/v1";
const ROLE: &str = "machineconfiguration.openshift.io/role";
const POOL_LABEL: &str = "pools.operator.machineconfiguration.openshift.io/worker";

/// The objects of a cluster with the stand-in.
struct Cluster {
    playground: Playground,
    operator: MachineConfigOperator,
}

fn api_version(kind: &str) -> &'static str {
    match kind {
        "Node" => "v1",
        "MachineConfiguration" => "operator.openshift.io/v1",
        _ => API,
    }
}

impl Cluster {
    async fn of(playground: Playground) -> Cluster {
        let operator = playground.start_machine_config_operator(Timing::short()).await.unwrap();
        Cluster { playground, operator }
    }

    fn api(&self, kind: &str) -> Api<DynamicObject> {
        objects(&self.playground, api_version(kind), kind, None)
    }

    async fn create(&self, kind: &str, name: &str, labels: Value, spec: Value) {
        let metadata = json!({"name": name, "labels": labels});
        let object = json!({"apiVersion": api_version(kind), "kind": kind, "metadata": metadata, "spec": spec});
        let object = serde_json::from_value(object).unwrap();
        self.api(kind).create(&PostParams::default(), &object).await.unwrap();
    }

    /// Creates a MachineConfig for workers.
    async fn create_file(&self, name: &str, path: &str) {
        let files = json!([{"path": path, "contents": {"source": "data:,x"}}]);
        let spec = json!({"config": {"ignition": {"version": "3.4.0"}, "storage": {"files": files}}});
        self.create("MachineConfig", name, json!({ROLE: "worker"}), spec).await;
    }

    async fn pool(&self) -> Value {
        self.api("MachineConfigPool").get("worker").await.unwrap().data
    }

    async fn holds(&self, condition: &str) -> bool {
        let pool = self.pool().await;
        let conditions = pool["status"]["conditions"].as_array().unwrap();
        conditions.iter().any(|one| one["type"] == condition && one["status"] == "True")
    }

    /// Whether all workers run a configuration that contains this MachineConfig.
    async fn runs(&self, machine_config: &str) -> bool {
        let configuration = self.pool().await["status"]["configuration"].clone();
        configuration["source"].as_array().unwrap().iter().any(|source| source["name"] == machine_config)
    }

    /// The nodes that cannot run workloads.
    async fn away(&self) -> usize {
        let nodes = self.api("Node").list(&ListParams::default()).await.unwrap();
        let is_away = |node: &&DynamicObject| {
            let conditions = node.data["status"]["conditions"].as_array().unwrap();
            node.data["spec"]["unschedulable"] == true
                || conditions.iter().any(|one| one["type"] == "Ready" && one["status"] != "True")
        };
        nodes.items.iter().filter(is_away).count()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_config_restarts_the_workers_one_at_a_time_and_nothing_else_restarts() {
    let playground = start("small").await;
    let before = playground.audit_log().mark().unwrap();
    let cluster = Cluster::of(playground).await;
    let most = AtomicUsize::new(0);
    cluster.create_file("90-example", "/etc/example").await;
    eventually("all workers run it", async || {
        most.fetch_max(cluster.away().await, Ordering::Relaxed);
        cluster.runs("90-example").await
    })
    .await;
    assert!(cluster.holds("Updated").await);
    assert_eq!(most.load(Ordering::Relaxed), 1, "one node at a time");
    let restarts = ["worker-0", "worker-1", "worker-2", "master-0"].map(|node| cluster.operator.restarts(node));
    assert_eq!(restarts, [1, 1, 1, 0]);
    let rendered = cluster.pool().await["spec"]["configuration"]["name"].clone();
    for node in ["worker-0", "worker-1", "worker-2"] {
        let annotations = cluster.api("Node").get(node).await.unwrap().metadata.annotations.unwrap();
        let of = |name: &str| annotations[&format!("machineconfiguration.openshift.io/{name}")].clone();
        assert_eq!(
            [of("currentConfig"), of("desiredConfig"), of("state")].map(|text| json!(text)),
            [rendered.clone(), rendered.clone(), json!("Done")]
        );
        assert_eq!(annotations["playground.virtpilot.io/restarts"], "1");
    }
    let writes = cluster.playground.audit_log().since(before).unwrap().by(&format!("{NAMESPACE}/{ACCOUNT}"));
    let of = |name: &str| writes.of(Kind::Write).filter(|request| request.name == name).count();
    assert_eq!((of("master"), of("master-0"), of("worker-0") > 0), (0, 0, true), "nothing is to do for masters");
    cluster.operator.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_accepts_kubelet_configs_policies_and_broken_machine_configs_and_the_stand_in_acts_on_them() {
    let scene = Scene { masters: 1, workers: 1, ..Scene::preset("small").unwrap() };
    let cluster = Cluster::of(start_scene(scene).await).await;
    let policy = json!({"files": [{"path": "/etc/mine", "actions": [{"type": "None"}]}]});
    let spec = json!({"managementState": "Managed", "nodeDisruptionPolicy": policy});
    cluster.create("MachineConfiguration", "cluster", json!({}), spec).await;
    cluster.create_file("90-mine", "/etc/mine").await;
    eventually("the worker runs the file", async || cluster.runs("90-mine").await).await;
    assert_eq!(cluster.operator.restarts("worker-0"), 0, "the policy says that nothing is to be done");

    let made = "99-worker-generated-kubelet";
    let selector = json!({"matchLabels": {POOL_LABEL: ""}});
    let spec = json!({"machineConfigPoolSelector": selector, "kubeletConfig": {"maxPods": 400}});
    cluster.create("KubeletConfig", "more-pods", json!({}), spec).await;
    eventually("the worker runs the KubeletConfig", async || cluster.runs(made).await).await;
    assert_eq!(cluster.operator.restarts("worker-0"), 1);
    let configs = cluster.api("KubeletConfig");
    assert_eq!(configs.get("more-pods").await.unwrap().data["status"]["conditions"][0]["type"], "Success");
    configs.delete("more-pods", &DeleteParams::default()).await.unwrap();
    eventually("the KubeletConfig is deleted", async || configs.get_opt("more-pods").await.unwrap().is_none()).await;
    assert!(cluster.api("MachineConfig").get_opt(made).await.unwrap().is_none());
    eventually("the worker runs the default again", async || !cluster.runs(made).await).await;
    assert_eq!(cluster.operator.restarts("worker-0"), 2);

    let broken = json!({"config": {"ignition": {"version": "9.9.9"}}});
    cluster.create("MachineConfig", "91-broken", json!({ROLE: "worker"}), broken).await;
    eventually("the pool is degraded", async || cluster.holds("RenderDegraded").await).await;
    assert!(cluster.holds("Degraded").await);
    let repaired = json!({"spec": {"config": {"ignition": {"version": "3.4.0"}}}});
    cluster.api("MachineConfig").patch("91-broken", &PatchParams::default(), &Patch::Merge(&repaired)).await.unwrap();
    eventually("the pool has recovered", async || cluster.runs("91-broken").await).await;
    assert!(!cluster.holds("Degraded").await);
    assert_eq!(cluster.operator.restarts("worker-0"), 2, "it changes no file");
}
