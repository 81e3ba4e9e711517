//! What users of the Go advisor saw of its profiles, with ours, on a real API server. The others of its faults are stories of the crate `advisor`.

use crate::advisor::{Advised, DENSITY, item};
use crate::crds;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use playground::deployment::objects;
use serde_json::{Value, json};

const LOAD_AWARE: &str = "load-aware-rebalancing";
const HCO: &str = "kubevirt-hyperconverged";

async fn create(objects: &Api<DynamicObject>, object: Value) {
    objects.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

// B9: who asked for Predictive, which simulates, was shown and given Automatic, which evicts.
#[tokio::test(flavor = "multi_thread")]
async fn who_asks_for_predictive_is_shown_and_given_a_descheduler_that_does_not_evict() {
    let advised = Advised::start(3).await;
    let _statuses = advised.playground.start_status_writer();
    let options = json!({"loadAware": {"mode": "Predictive", "enablePSIMetrics": false}});
    advised.ask(LOAD_AWARE, json!({"action": "DryRun", "options": options})).await;
    let status = advised.phase(LOAD_AWARE, "ReviewRequired").await;
    let planned = item(&status, "enable-load-aware-descheduling");
    assert_eq!(planned["desiredState"]["spec"]["mode"], "Predictive", "{planned:#}");
    assert!(planned["diff"].as_str().unwrap().contains("Predictive"), "{planned:#}");
    advised.review_and_apply(LOAD_AWARE, json!({"options": options})).await;
    advised.phase(LOAD_AWARE, "Completed").await;
    let namespace = planned["targetRef"]["namespace"].as_str();
    let deschedulers = objects(&advised.playground, "operator.openshift.io/v1", "KubeDescheduler", namespace);
    assert_eq!(deschedulers.get("cluster").await.unwrap().data["spec"]["mode"], "Predictive");
}

// On a new cluster the rules of measured load come with the descheduler, which the plan creates: one plan is enough, and load awareness is on.
#[tokio::test(flavor = "multi_thread")]
async fn one_plan_turns_load_awareness_on_although_the_descheduler_brings_its_rules_later() {
    let advised = Advised::start(3).await;
    let _statuses = advised.playground.start_status_writer();
    let options = json!({"loadAware": {"enablePSIMetrics": false}});
    advised.review_and_apply(LOAD_AWARE, json!({"options": options})).await;
    let status = advised.phase(LOAD_AWARE, "Completed").await;
    let planned = item(&status, "enable-load-aware-descheduling");
    let namespace = planned["targetRef"]["namespace"].as_str().unwrap().to_owned();
    let deschedulers = objects(&advised.playground, "operator.openshift.io/v1", "KubeDescheduler", Some(&namespace));
    let live = deschedulers.get("cluster").await.unwrap();
    let customizations = &live.data["spec"]["profileCustomizations"];
    assert_eq!(customizations["devActualUtilizationProfile"], "PrometheusCPUCombined", "{customizations:#}");
    // The operator of the descheduler writes them, those for memory included.
    let rules = objects(&advised.playground, "monitoring.coreos.com/v1", "PrometheusRule", Some(&namespace));
    let record = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m";
    create(
        &rules,
        json!({"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": {"name": "descheduler-rules"},
            "spec": {"groups": [{"name": "recording", "rules": [{"record": record, "expr": "vector(1)"}]}]}}),
    )
    .await;
    // A change that is planned after they were seen: its plan says nothing of them.
    let options = json!({"loadAware": {"enablePSIMetrics": false, "deschedulingIntervalSeconds": 120}});
    advised.ask(LOAD_AWARE, json!({"action": "DryRun", "options": options})).await;
    let status = advised.phase(LOAD_AWARE, "ReviewRequired").await;
    let diff = item(&status, "enable-load-aware-descheduling")["diff"].as_str().unwrap().to_owned();
    assert!(diff.contains("120") && !diff.contains("devActualUtilizationProfile"), "{diff}");
}

// The template looks at its own object to keep what was there before; an edit after the apply is drift, and no other wish.
#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_what_the_descheduler_was_given_is_drift_and_is_corrected() {
    let advised = Advised::start(3).await;
    let _statuses = advised.playground.start_status_writer();
    let options = json!({"loadAware": {"enablePSIMetrics": false}});
    advised.review_and_apply(LOAD_AWARE, json!({"options": options})).await;
    let status = advised.phase(LOAD_AWARE, "Completed").await;
    let namespace =
        item(&status, "enable-load-aware-descheduling")["targetRef"]["namespace"].as_str().map(str::to_owned);
    let deschedulers =
        objects(&advised.playground, "operator.openshift.io/v1", "KubeDescheduler", namespace.as_deref());
    let applied = deschedulers.get("cluster").await.unwrap().data["spec"].clone();
    let spec = |remediation: &str| json!({"action": "Apply", "options": options, "remediation": remediation});
    for edit in [
        json!({"profiles": ["AffinityAndTaints"]}),
        json!({"profileCustomizations": {"devActualUtilizationProfile": "PrometheusCPUMemoryCombinedProfile"}}),
        json!({"profileCustomizations": {"devActualUtilizationProfile": null}}),
    ] {
        advised.ask(LOAD_AWARE, spec("Manual")).await;
        advised.phase(LOAD_AWARE, "Completed").await;
        let patch = Patch::Merge(json!({"spec": edit}));
        deschedulers.patch("cluster", &PatchParams::default(), &patch).await.unwrap();
        advised.phase(LOAD_AWARE, "Drifted").await;
        advised.ask(LOAD_AWARE, spec("Automatic")).await;
        advised.phase(LOAD_AWARE, "Completed").await;
        assert_eq!(deschedulers.get("cluster").await.unwrap().data["spec"], applied, "after {edit}");
    }
}

// N5: without a HyperConverged one was created, and the profile was Completed.
#[tokio::test(flavor = "multi_thread")]
async fn higher_density_creates_no_hyperconverged_and_plans_its_change_once_there_is_one() {
    let advised = Advised::start(3).await;
    let before = advised.hco().get(HCO).await.unwrap();
    advised.hco().delete(HCO, &DeleteParams::default()).await.unwrap();
    let options = json!({"virtHigherDensity": {"enableSwap": false}});
    advised.ask(DENSITY, json!({"action": "Apply", "options": options})).await;
    let status = advised.phase(DENSITY, "Completed").await;
    assert!(advised.hco().get_opt(HCO).await.unwrap().is_none(), "none is created");
    assert!(item(&status, "configure-higher-density").is_null(), "{status:#}");
    let types = before.types.unwrap();
    let metadata = json!({"name": HCO, "namespace": before.metadata.namespace});
    create(
        &advised.hco(),
        json!({"apiVersion": types.api_version, "kind": types.kind, "metadata": metadata, "spec": {}}),
    )
    .await;
    let is_planned = |status: &Value| item(status, "configure-higher-density")["operation"] == "Update";
    let status = advised.status(DENSITY, "a plan for the HyperConverged", is_planned).await;
    assert_ne!(status["phase"], "Completed");
    let live = advised.hco().get(HCO).await.unwrap();
    let percentage = live.data.pointer("/spec/virtualization/higherWorkloadDensity/memoryOvercommitPercentage");
    assert_ne!(percentage, Some(&json!(120)), "it waits for an approval");
}

/// Asks for a plan with this ratio, which is made after all that was written before is reported; the memory of the advisor then, in MB.
async fn memory_with_plan(advised: &Advised, ratio: u8) -> f64 {
    let options = json!({"virtHigherDensity": {"enableSwap": false, "memoryToRequestRatio": ratio}});
    advised.ask(DENSITY, json!({"action": "DryRun", "options": options})).await;
    advised.phase(DENSITY, "ReviewRequired").await;
    advised.memory()
}

// N8: memory grew with every CRD and every MachineConfig of the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn memory_does_not_grow_with_large_objects_that_no_plan_is_about() {
    const KIB: usize = 1024;
    let mut advised = Advised::start(3).await;
    let mut before = memory_with_plan(&advised, 110).await;
    before = before.max(memory_with_plan(&advised, 111).await);
    let (configs, kinds) = (advised.machine_configs(), crds::crds(&advised.playground));
    let source = format!("data:,{}", "x".repeat(150 * KIB));
    for number in 0..60 {
        let file = json!({"path": "/etc/large", "mode": 420, "contents": {"source": source}});
        let config = json!({"ignition": {"version": "3.2.0"}, "storage": {"files": [file]}});
        let labels = json!({"machineconfiguration.openshift.io/role": "none"});
        let object = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": format!("50-large-{number}"), "labels": labels}, "spec": {"config": config}});
        create(&configs, object).await;
        let schema = json!({"type": "object", "description": "x".repeat(119 * KIB)});
        let version = json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let names = json!({"plural": format!("larges{number}"), "kind": format!("Large{number}")});
        let object = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("larges{number}.example.com")},
            "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]}});
        create(&kinds, object).await;
    }
    let running = memory_with_plan(&advised, 112).await;
    advised.restart();
    let restarted = memory_with_plan(&advised, 113).await;
    println!("memory {before:.1} MB; with 16 MB of other objects {running:.1} MB, after a restart {restarted:.1} MB");
    assert!(running - before <= 4.0, "it grew from {before:.1} to {running:.1} MB");
    assert!(restarted - before <= 4.0, "after a restart it is {restarted:.1} MB instead of {before:.1} MB");
}
