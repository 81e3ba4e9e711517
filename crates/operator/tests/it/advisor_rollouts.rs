//! The advisor and nodes, on a real API server with the stand-in of the machine-config operator: everything through the object of the profile,
//! as with kubectl.

use crate::advisor::{Advised, DENSITY, SWAP, item};
use crate::operator::{edit, eventually};
use crate::packages::succeed;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use playground::deployment::objects;
use playground::{Scene, control};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::process::Command;
use std::time::Duration;

const WORKERS: [&str; 5] = ["worker-0", "worker-1", "worker-2", "worker-3", "worker-4"];

fn nodes(advised: &Advised) -> Api<DynamicObject> {
    objects(&advised.playground, "v1", "Node", None)
}

async fn all_nodes(advised: &Advised) -> Vec<String> {
    nodes(advised).list(&Default::default()).await.unwrap().into_iter().filter_map(|node| node.metadata.name).collect()
}

/// Waits as people do: until the condition of a profile is true.
fn kubectl_wait(advised: &Advised, name: &str, condition: &str) {
    let mut kubectl = Command::new(advised.playground.folder().join("kubectl"));
    kubectl.arg("--kubeconfig").arg(advised.playground.kubeconfig());
    let (object, condition) = (format!("virtplatformconfig/{name}"), format!("--for=condition={condition}"));
    succeed(kubectl.args(["wait", &object, &condition, "--timeout=60s"]));
}

/// The reasons of the events about a profile that the server has.
async fn reasons(advised: &Advised, name: &str) -> BTreeSet<String> {
    let events = objects(&advised.playground, "events.k8s.io/v1", "Event", None);
    let about = format!("regarding.kind=VirtPlatformConfig,regarding.name={name}");
    let found = events.list(&ListParams::default().fields(&about)).await.unwrap();
    found.iter().filter_map(|event| event.data["reason"].as_str().map(str::to_owned)).collect()
}

fn state<'a>(status: &'a Value, item: &str) -> &'a Value {
    let mut items = status["items"].as_array().unwrap().iter();
    items.find(|found| found["name"] == item).map_or(&Value::Null, |found| &found["state"])
}

async fn percentage(advised: &Advised) -> Option<Value> {
    let hco = advised.hco().get("kubevirt-hyperconverged").await.unwrap();
    hco.data.pointer("/spec/virtualization/higherWorkloadDensity/memoryOvercommitPercentage").cloned()
}

#[tokio::test(flavor = "multi_thread")]
async fn five_workers_are_rolled_out_one_after_the_other_and_rolled_back() {
    let advised = Advised::start(5).await;
    let stand_in = advised.machine_config_operator().await;
    advised.review_and_apply(DENSITY, json!({})).await;
    // Never are two nodes away at a time, and each message of the item says how far it is.
    let (api, mut messages) = (nodes(&advised), BTreeSet::new());
    loop {
        let all = api.list(&Default::default()).await.unwrap();
        let away = all.iter().filter(|node| node.data["spec"]["unschedulable"] == true).count();
        assert!(away <= 1, "{away} nodes are away at a time");
        let status = advised.profiles().get(DENSITY).await.unwrap().data["status"].clone();
        if let Some(message) = status["items"][0]["message"].as_str() {
            messages.insert(message.to_owned());
        }
        match status["phase"].as_str() {
            Some("Completed") => break,
            Some("InProgress" | "ReviewRequired") => {}
            other => panic!("{other:?}: {status:#}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(messages.iter().any(|message| message.contains("of 5 nodes are updated")), "{messages:?}");
    assert_eq!(WORKERS.map(|node| stand_in.restarts(node)), [1; 5]);
    assert_eq!(stand_in.restarts("master-0"), 0);
    assert_eq!(percentage(&advised).await, Some(json!(150)));
    advised.review_and_apply(DENSITY, json!({"rollback": true})).await;
    kubectl_wait(&advised, DENSITY, "Ready");
    advised.phase(DENSITY, "Completed").await;
    assert!(advised.machine_configs().get_opt(SWAP).await.unwrap().is_none());
    assert_eq!(WORKERS.map(|node| stand_in.restarts(node)), [2; 5]);
    assert_ne!(percentage(&advised).await, Some(json!(150)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_degrades_stops_the_rest_or_not_as_the_failure_policy_says() {
    let advised = Advised::start(5).await;
    let stand_in = advised.machine_config_operator().await;
    let fails = |value: Value| json!({"metadata": {"annotations": {control::UPDATE_FAILS: value}}});
    edit(&nodes(&advised), "worker-2", fails(json!("true"))).await;
    advised.review_and_apply(DENSITY, json!({"failurePolicy": "Abort"})).await;
    kubectl_wait(&advised, DENSITY, "Degraded");
    let status = advised.phase(DENSITY, "Failed").await;
    assert_eq!(state(&status, "enable-kubelet-swap"), "Failed", "{status:#}");
    assert_eq!(state(&status, "configure-higher-density"), "Pending", "{status:#}");
    assert!(status["items"][0]["message"].as_str().unwrap().contains("degraded"), "{status:#}");
    assert_ne!(percentage(&advised).await, Some(json!(150)), "Abort leaves the rest");
    // The digest covers the policy, but the approval that names it was used already and goes on, item by item, under the edited spec.
    let digest = advised.profiles().get(DENSITY).await.unwrap().data["spec"]["approvedPlan"].clone();
    advised.ask(DENSITY, json!({"action": "Apply", "approvedPlan": digest, "failurePolicy": "Continue"})).await;
    let status = advised.phase(DENSITY, "CompletedWithErrors").await;
    assert_eq!(state(&status, "configure-higher-density"), "Pending", "{status:#}");
    let needs = "it needs enable-kubelet-swap, which has failed";
    assert_eq!(status["items"][1]["message"], needs, "{status:#}");
    assert_ne!(percentage(&advised).await, Some(json!(150)), "Continue applies only what does not need the rest");
    // Somebody repairs the node, and that is all it takes.
    edit(&nodes(&advised), "worker-2", fails(Value::Null)).await;
    kubectl_wait(&advised, DENSITY, "Ready");
    advised.phase(DENSITY, "Completed").await;
    assert_eq!(percentage(&advised).await, Some(json!(150)));
    eventually("all nodes have followed", async || (stand_in.restarts("worker-2") == 1).then_some(())).await;
    assert_eq!(WORKERS.map(|node| stand_in.restarts(node)), [1; 5]);
    // All of it is in the events that `kubectl describe` shows.
    let expected = ["PlanReady", "ItemFailed", "ItemsFailed", "ItemApplied", "Applied"].map(str::to_owned);
    eventually("every event", async || {
        let found = reasons(&advised, DENSITY).await;
        expected.iter().all(|reason| found.contains(reason)).then_some(())
    })
    .await;
}

/// What an operator reports of the plugin that shows dashboards.
async fn report(advised: &Advised, kind: &str, reason: &str) {
    let condition = json!({"type": kind, "status": "True", "reason": reason, "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let (patch, params) = (json!({"status": {"conditions": [condition]}}), PatchParams::default());
    plugins(advised).patch_status("monitoring", &params, &Patch::Merge(patch)).await.unwrap();
}

fn plugins(advised: &Advised) -> Api<DynamicObject> {
    objects(&advised.playground, "observability.openshift.io/v1alpha1", "UIPlugin", None)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_that_nothing_needs_and_whose_operator_reports_a_fault_stops_the_next_one_or_not_as_the_failure_policy_says()
 {
    let (profile, first, second) = ("observability", "show-dashboards", "show-troubleshooting-panel");
    for (policy, phase, is_applied) in [("Abort", "Failed", false), ("Continue", "CompletedWithErrors", true)] {
        let advised = Advised::start(1).await;
        advised.review_and_apply(profile, json!({"failurePolicy": policy})).await;
        let unseen = |status: &Value| item(status, first)["message"] == "its operator has not looked at it yet";
        let status = advised.status(profile, "an item that waits for its operator", unseen).await;
        assert_eq!((&status["phase"], state(&status, second)), (&json!("InProgress"), &json!("Pending")), "{status:#}");
        report(&advised, "Degraded", "NoBackend").await;
        let failed = |status: &Value| state(status, first) == "Failed" && state(status, second) != "Pending";
        if is_applied {
            advised.status(profile, "the next item", failed).await;
        }
        // The operators of all other objects find no fault.
        let _statuses = advised.playground.start_status_writer();
        let status = advised.phase(profile, phase).await;
        assert_eq!(item(&status, first)["message"], "Degraded is True: NoBackend", "{policy}: {status:#}");
        assert_eq!(plugins(&advised).get_opt("troubleshooting-panel").await.unwrap().is_some(), is_applied, "{policy}");
        report(&advised, "Available", "Repaired").await;
        advised.phase(profile, "Completed").await;
        // What it reports later is shown, and the phase stays.
        let told = |truth: &'static str| {
            move |status: &Value| {
                let conditions = status["conditions"].as_array().unwrap();
                conditions.iter().any(|condition| condition["type"] == "Degraded" && condition["status"] == truth)
            }
        };
        report(&advised, "Degraded", "BackendGone").await;
        let status = advised.status(profile, "a fault", told("True")).await;
        assert_eq!((&status["phase"], state(&status, first)), (&json!("Completed"), &json!("Completed")), "{status:#}");
        assert_eq!(item(&status, first)["message"], "Degraded is True: BackendGone", "{status:#}");
        report(&advised, "Available", "Repaired").await;
        advised.status(profile, "no fault", told("False")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compact_and_single_node_clusters_finish() {
    for preset in ["compact", "single-node"] {
        let advised = Advised::on(Scene::preset(preset).unwrap()).await;
        let stand_in = advised.machine_config_operator().await;
        advised.review_and_apply(DENSITY, json!({"waitTimeout": "1m"})).await;
        let status = advised.phase(DENSITY, "Completed").await;
        assert!(state(&status, "enable-kubelet-swap").is_null(), "control plane nodes get no swap: {status:#}");
        assert_eq!(percentage(&advised).await, Some(json!(120)), "{preset}: no swap, so less overcommit");
        if preset == "compact" {
            // Pressure stall information is for control plane nodes that run virtual machines, too.
            advised.review_and_apply("load-aware-rebalancing", json!({"waitTimeout": "1m"})).await;
            advised.phase("load-aware-rebalancing", "Completed").await;
        } else {
            // The only node restarts, and the advisor, which ran on it, finds out what became of its write.
            advised.review_and_apply("host-performance", json!({"waitTimeout": "1m"})).await;
            let status = advised.phase("host-performance", "Completed").await;
            let restarts: Vec<u64> = all_nodes(&advised).await.iter().map(|node| stand_in.restarts(node)).collect();
            println!("{preset}: {restarts:?} restarts of nodes");
            assert!(restarts.len() == 1 && restarts[0] >= 1, "{restarts:?}: {status:#}");
            let is_restarting = |item: &Value| item["restarts"].as_array().is_some_and(|nodes| !nodes.is_empty());
            let applied = status["items"].as_array().unwrap().iter().filter(|item| item["appliedTime"].is_string());
            assert!(applied.clone().count() >= 2 && !applied.clone().any(is_restarting), "{status:#}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_the_go_advisor_become_plan_items_and_are_never_doubled() {
    let advised = Advised::start(2).await;
    let old = "90-worker-kubelet-swap";
    let object = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": old, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"config": {"ignition": {"version": "3.2.0"}, "systemd": {"units": [{"name": "swap-provision.service", "enabled": true, "contents": "[Unit]\n"}]}}}});
    let params = PatchParams::apply(api::advisor::FIELD_MANAGER).force();
    advised.machine_configs().patch(old, &params, &Patch::Apply(&object)).await.unwrap();
    let _stand_in = advised.machine_config_operator().await;
    advised.ask(DENSITY, json!({"action": "DryRun"})).await;
    let status = advised.phase(DENSITY, "ReviewRequired").await;
    assert_eq!(status["items"][0]["targetRef"]["name"], old, "{status:#}");
    assert_eq!(status["items"][0]["operation"], "Update");
    assert!(
        status["items"][0]["diff"].as_str().unwrap().contains("swap-provision.service"),
        "what goes is shown: {status:#}"
    );
    advised.review_and_apply(DENSITY, json!({})).await;
    advised.phase(DENSITY, "Completed").await;
    assert!(advised.machine_configs().get_opt(SWAP).await.unwrap().is_none(), "there is no second one");
}
