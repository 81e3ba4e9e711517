//! The restarts that a plan announces are those that the stand-in of the machine-config operator then counts.

use crate::commands::virtpilot;
use crate::operator::{Running, SMALL_ROLE, SWAP, edit, eventually, with_pack};
use crate::plan::plan;
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use playground::deployment::objects;
use playground::{MachineConfigOperator, Scene, Timing, control};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const POOLS: &str = "MachineConfigPool";

/// A cluster with the operator of a pack and the stand-in.
struct Cluster {
    running: Running,
    stand_in: MachineConfigOperator,
}

/// The nodes that a plan announces to restart, by object; all of them together.
fn announced(running: &Running) -> (BTreeSet<String>, Vec<Value>) {
    let arguments = running.pack_arguments();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (plan, _) = plan(&running.playground.kubeconfig(), &arguments);
    let items = plan["items"].as_array().unwrap().clone();
    let nodes = items.iter().flat_map(|item| item["restarts"]["nodes"].as_array().cloned().unwrap_or_default());
    (nodes.map(|node| node.as_str().unwrap().to_owned()).collect(), items)
}

impl Cluster {
    async fn start(scene: Scene) -> Cluster {
        Cluster::with_pack(scene, SMALL_ROLE, &with_pack(&[])).await
    }

    async fn with_pack(scene: Scene, role: &str, arguments: &[&str]) -> Cluster {
        let running = Running::on(scene, role, arguments).await;
        let stand_in = running.playground.start_machine_config_operator(Timing::short()).await.unwrap();
        Cluster { running, stand_in }
    }

    fn objects(&self, kind: &str) -> Api<DynamicObject> {
        objects(&self.running.playground, "machineconfiguration.openshift.io/v1", kind, None)
    }

    fn nodes(&self) -> Api<DynamicObject> {
        objects(&self.running.playground, "v1", "Node", None)
    }

    /// A virtual machine runs on this node.
    async fn create_virtual_machine(&self, node: &str) {
        let kind = "VirtualMachineInstance";
        let api = objects(&self.running.playground, "kubevirt.io/v1", kind, Some(crate::operator::NAMESPACE));
        let name = format!("vm-on-{node}");
        let machine = json!({"apiVersion": "kubevirt.io/v1", "kind": kind, "metadata": {"name": name},
            "spec": {"domain": {"devices": {}}}});
        api.create(&PostParams::default(), &serde_json::from_value(machine).unwrap()).await.unwrap();
        let status = json!({"status": {"nodeName": node, "phase": "Running"}});
        api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }

    /// Approves everything that the plan shows, with the operator's own digests.
    async fn approve_all(&self) {
        let asked = |items: &[Value]| -> Vec<String> {
            items.iter().filter_map(|item| item["approval"].as_str()).map(str::to_owned).collect()
        };
        let waiting = |items: &[Value]| items.iter().filter(|item| item["needsApproval"] == true).count();
        let digests = eventually("the operator asks", async || {
            let (_, items) = announced(&self.running);
            let digests = asked(&items);
            (!digests.is_empty() && digests.len() == waiting(&items)).then_some(digests)
        })
        .await;
        self.running.annotate_hco("approved", Some(&digests.join(","))).await;
    }

    /// Waits until every pool runs what its MachineConfigs say, and these are among them.
    async fn rolled_out(&self, machine_configs: &[&str]) {
        eventually("all pools are updated", async || {
            let pools = self.objects(POOLS).list(&Default::default()).await.unwrap().items;
            let is_done = |pool: &DynamicObject| {
                let (spec, status) = (&pool.data["spec"]["configuration"], &pool.data["status"]);
                let sources = spec["source"].as_array().cloned().unwrap_or_default();
                let has = |name: &&str| sources.iter().any(|source| source["name"] == **name);
                let takes = pool.metadata.name.as_deref() != Some("master");
                status["configuration"]["name"] == spec["name"]
                    && status["updatedMachineCount"] == status["machineCount"]
                    && (!takes || machine_configs.iter().all(has))
            };
            pools.iter().all(is_done).then_some(())
        })
        .await;
    }

    /// The nodes that have restarted, each with how often.
    async fn restarted(&self) -> BTreeMap<String, u64> {
        let nodes = self.nodes().list(&Default::default()).await.unwrap().items;
        let names = nodes.into_iter().filter_map(|node| node.metadata.name);
        let counts = names.map(|name| (self.stand_in.restarts(&name), name));
        counts.filter(|(count, _)| *count > 0).map(|(count, name)| (name, count)).collect()
    }

    /// Expects that exactly these nodes have restarted, each once.
    async fn expect_restarts(&self, announced: &BTreeSet<String>) {
        let expected: BTreeMap<String, u64> = announced.iter().map(|node| (node.clone(), 1)).collect();
        assert_eq!(self.restarted().await, expected);
    }
}

fn scene(workers: usize) -> Scene {
    Scene { workers, ..Scene::preset("small").unwrap() }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_consent_nothing_restarts_and_with_it_what_was_announced() {
    let mut cluster = Cluster::start(scene(3)).await;
    for node in ["worker-0", "worker-2", "master-0"] {
        cluster.create_virtual_machine(node).await;
    }
    let (nodes, items) = announced(&cluster.running);
    let swap = items.iter().find(|item| item["object"]["name"] == SWAP).unwrap();
    assert_eq!((nodes.len(), &swap["restarts"]["atATime"]), (3, &json!(1)));
    assert_eq!(swap["restarts"]["virtualMachines"], 2, "those on workers");
    let disruption = swap["disruption"].as_str().unwrap();
    assert_eq!(disruption, "restarts 3 nodes of pool worker: worker-0, worker-1, worker-2, one at a time");
    cluster.running.restart();
    eventually("the approval is asked for", async || cluster.running.events("ApprovalRequired").await.pop()).await;
    cluster.expect_restarts(&BTreeSet::new()).await;
    cluster.approve_all().await;
    cluster.rolled_out(&[SWAP]).await;
    cluster.expect_restarts(&nodes).await;
    let finished = eventually("the end is reported", async || cluster.running.events("RolloutFinished").await.pop());
    assert_eq!(finished.await, "all 3 machines of pool worker run its configuration");
    let (after, _) = announced(&cluster.running);
    assert_eq!(after.len(), 0, "nothing is left to restart");
}

#[tokio::test(flavor = "multi_thread")]
async fn full_automation_restarts_what_was_announced_in_worker_and_custom_pools() {
    let custom = playground::scene::Pool { name: "infra".into(), nodes: 2, gpu: false };
    let mut cluster = Cluster::start(Scene { pools: vec![custom], ..scene(2) }).await;
    cluster.running.annotate_hco("approval", Some("none")).await;
    let (nodes, _) = announced(&cluster.running);
    assert_eq!(nodes.len(), 4);
    cluster.running.restart();
    cluster.rolled_out(&[SWAP]).await;
    cluster.expect_restarts(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_pool_restarts_what_was_announced_when_it_is_resumed() {
    let mut cluster = Cluster::start(scene(2)).await;
    edit(&cluster.objects(POOLS), "worker", json!({"spec": {"paused": true}})).await;
    let (nodes, items) = announced(&cluster.running);
    let swap = items.iter().find(|item| item["object"]["name"] == SWAP).unwrap();
    assert_eq!((nodes.len(), &swap["restarts"]["paused"]), (2, &json!(["worker"])));
    cluster.running.restart();
    cluster.approve_all().await;
    let machine_configs = cluster.running.machine_configs();
    eventually("it is written", async || machine_configs.get_opt(SWAP).await.unwrap()).await;
    let pools = cluster.objects(POOLS);
    eventually("it is rendered", async || {
        let pool = pools.get("worker").await.unwrap();
        (pool.data["spec"]["configuration"]["name"] != pool.data["status"]["configuration"]["name"]).then_some(())
    })
    .await;
    cluster.expect_restarts(&BTreeSet::new()).await;
    edit(&cluster.objects(POOLS), "worker", json!({"spec": {"paused": false}})).await;
    cluster.rolled_out(&[SWAP]).await;
    cluster.expect_restarts(&nodes).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_nodes_restart_at_a_time_as_was_announced() {
    for (most, workers, expected) in [(json!(3), 5, 3), (json!("20%"), 10, 2)] {
        let mut cluster = Cluster::start(scene(workers)).await;
        edit(&cluster.objects(POOLS), "worker", json!({"spec": {"maxUnavailable": most}})).await;
        let (nodes, items) = announced(&cluster.running);
        let swap = items.iter().find(|item| item["object"]["name"] == SWAP).unwrap();
        assert_eq!((nodes.len(), &swap["restarts"]["atATime"]), (workers, &json!(expected)));
        cluster.running.annotate_hco("approval", Some("none")).await;
        cluster.running.restart();
        cluster.rolled_out(&[SWAP]).await;
        cluster.expect_restarts(&nodes).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn masters_that_are_workers_too_do_not_restart_for_the_pool_worker() {
    for name in ["compact", "single-node"] {
        let mut cluster = Cluster::start(Scene::preset(name).unwrap()).await;
        let (nodes, _) = announced(&cluster.running);
        assert_eq!(nodes.len(), 0, "{name}");
        cluster.running.annotate_hco("approval", Some("none")).await;
        cluster.running.restart();
        cluster.rolled_out(&[SWAP]).await;
        cluster.expect_restarts(&nodes).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nodes_run_already_restarts_nothing() {
    let mut cluster = Cluster::start(scene(2)).await;
    // Somebody has the same files under another name, and all nodes run them.
    let (_, items) = announced(&cluster.running);
    assert_eq!(items.iter().filter(|item| item["restarts"].is_object()).count(), 1);
    let rendered = virtpilot(
        Some(&cluster.running.playground.kubeconfig()),
        &["render", "--asset", "swap-enable", "--output", "json"],
    );
    let rendered: Value = serde_json::from_str(&rendered.stdout).unwrap_or_else(|_| panic!("{}", rendered.stderr));
    let mut same = rendered[0]["object"].clone();
    same["metadata"]["name"] = json!("80-theirs");
    let theirs: DynamicObject = serde_json::from_value(same).unwrap();
    cluster.running.machine_configs().create(&PostParams::default(), &theirs).await.unwrap();
    cluster.rolled_out(&["80-theirs"]).await;
    let before = cluster.restarted().await;
    let (nodes, _) = announced(&cluster.running);
    assert_eq!(nodes.len(), 0);
    cluster.running.restart();
    cluster.rolled_out(&["80-theirs", SWAP]).await;
    assert_eq!(cluster.restarted().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_changes_that_are_approved_together_are_one_rollout() {
    let role = include_str!("../packs/machines.role.yaml");
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/machines");
    let mut cluster = Cluster::with_pack(scene(2), role, &["--assets-dir", folder]).await;
    let (nodes, items) = announced(&cluster.running);
    assert_eq!((nodes.len(), items.iter().filter(|item| item["restarts"].is_object()).count()), (2, 2));
    cluster.running.restart();
    let admin = cluster.running.playground.kubeconfig();
    let arguments = |command: &[&'static str]| [command, &["--assets-dir", folder]].concat();
    let next = "next: virtpilot approve --pool worker    (one rollout for 2 changes)\n";
    eventually("both wait", async || {
        virtpilot(Some(&admin), &arguments(&["status"])).stdout.ends_with(next).then_some(())
    })
    .await;
    let wrong = virtpilot(Some(&admin), &arguments(&["approve", "--pool", "master"]));
    assert!(
        wrong.stderr.contains("nothing waits for an approval to restart nodes of pool \"master\", but for worker"),
        "{}",
        wrong.stderr
    );
    let approved = virtpilot(Some(&admin), &arguments(&["approve", "--yes", "--pool", "worker"]));
    assert_eq!(approved.stdout.lines().filter(|line| line.starts_with("approved ")).count(), 2, "{}", approved.stderr);
    assert!(approved.stdout.contains("\nThe 2 changes of pool worker are one rollout.\n"), "{}", approved.stdout);
    cluster.rolled_out(&["98-worker-first", "99-worker-second"]).await;
    cluster.expect_restarts(&nodes).await;
    let all = cluster.objects("MachineConfig").list(&Default::default()).await.unwrap().items;
    let rendered = all.iter().filter(|one| one.metadata.name.as_deref().unwrap().starts_with("rendered-worker-"));
    assert_eq!(rendered.count(), 2, "the first one, and one for both");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stays_down_holds_the_rollout_and_every_further_change() {
    let mut cluster = Cluster::start(scene(2)).await;
    let (nodes, _) = announced(&cluster.running);
    let down = |value: Value| json!({"metadata": {"annotations": {control::DOES_NOT_COME_BACK: value}}});
    edit(&cluster.nodes(), "worker-0", down(json!("yes"))).await;
    cluster.running.restart();
    cluster.approve_all().await;
    eventually("the first node restarts", async || (cluster.stand_in.restarts("worker-0") == 1).then_some(())).await;
    // Taking the asset away is approved, too, and waits.
    cluster.running.annotate_hco("autopilot", Some("metrics-service")).await;
    cluster.approve_all().await;
    let held = eventually("the deletion waits", async || cluster.running.events("PoolNotReady").await.pop()).await;
    assert!(held.contains("pool worker is updating, so it waits until the pool is healthy"), "{held}");
    assert!(cluster.running.machine_configs().get_opt(SWAP).await.unwrap().is_some());
    assert_eq!(cluster.stand_in.restarts("worker-1"), 0);
    cluster.running.annotate_hco("autopilot", None).await;
    edit(&cluster.nodes(), "worker-0", down(Value::Null)).await;
    cluster.rolled_out(&[SWAP]).await;
    cluster.expect_restarts(&nodes).await;
}
