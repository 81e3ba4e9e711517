//! KubeletConfigs become MachineConfigs.

use super::{Run, pool};
use crate::{Action, Kind, Write};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

const FIRST: &str = "99-worker-generated-kubelet";
const SECOND: &str = "99-worker-generated-kubelet-1";

fn create(run: &mut Run, name: &str, created: &str, spec: Value) {
    let label = "pools.operator.machineconfiguration.openshift.io/worker";
    let mut spec = spec;
    if spec["machineConfigPoolSelector"].is_null() {
        spec["machineConfigPoolSelector"] = json!({"matchLabels": {label: ""}});
    }
    let metadata = json!({"name": name, "uid": name, "generation": 1, "creationTimestamp": created});
    run.snapshot.kubelet_configs.insert(name.into(), json!({"metadata": metadata, "spec": spec}));
}

/// The content of a file of a MachineConfig.
fn content(run: &Run, machine_config: &str, path: &str) -> Option<String> {
    let files = run.snapshot.machine_configs[machine_config]["spec"]["config"]["storage"]["files"].as_array()?;
    let file = files.iter().find(|file| file["path"] == path)?;
    let (_, encoded) = file["contents"]["source"].as_str()?.split_once("base64,")?;
    Some(String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap())
}

/// The kubelet's configuration that the workers run.
fn running(run: &Run) -> Value {
    assert!(run.holds("worker", "Updated"));
    let name = run.node("worker-0").current();
    serde_json::from_str(&content(run, name, "/etc/kubernetes/kubelet.conf").unwrap()).unwrap()
}

#[test]
fn a_kubelet_config_is_rendered_into_a_machine_config_with_the_defaults_and_restarts_the_pool() {
    let mut run = Run::with_workers(2);
    let kubelet = json!({"maxPods": 500, "evictionHard": {"memory.available": "1Gi"}});
    create(&mut run, "pods", "2026-01-01T00:00:00Z", json!({"kubeletConfig": kubelet, "logLevel": 5}));
    run.finish();
    let made = &run.snapshot.machine_configs[FIRST];
    assert_eq!(made["metadata"]["labels"][crate::ROLE_LABEL], "worker");
    assert_eq!(made["metadata"]["ownerReferences"][0]["name"], "pods");
    let conf = running(&run);
    assert_eq!((&conf["maxPods"], &conf["evictionHard"]["memory.available"]), (&json!(500), &json!("1Gi")));
    assert_eq!((&conf["kind"], &conf["cgroupDriver"]), (&json!("KubeletConfiguration"), &json!("systemd")));
    let logging = "/etc/systemd/system/kubelet.service.d/20-logging.conf";
    assert!(content(&run, FIRST, logging).unwrap().contains("KUBELET_LOG_LEVEL=5"));
    assert_eq!(content(&run, FIRST, "/etc/node-sizing-enabled.env"), None);
    assert_eq!(run.restarts(), [1, 1]);
    let config = &run.snapshot.kubelet_configs["pods"];
    assert_eq!(config["status"]["conditions"][0]["type"], "Success");
    assert_eq!(config["status"]["observedGeneration"], 1);
    assert_eq!(config["metadata"]["finalizers"], json!([FIRST]));
}

#[test]
fn reserved_resources_reach_the_kubelet_through_its_environment() {
    for (spec, expected) in [
        (json!({"autoSizingReserved": true}), "NODE_SIZING_ENABLED=true\nSYSTEM_RESERVED_MEMORY=1Gi\n"),
        (json!({"autoSizingReserved": false}), "NODE_SIZING_ENABLED=false\nSYSTEM_RESERVED_MEMORY=1Gi\n"),
        (
            json!({"kubeletConfig": {"systemReserved": {"memory": "3Gi"}}}),
            "NODE_SIZING_ENABLED=false\nSYSTEM_RESERVED_MEMORY=3Gi\nSYSTEM_RESERVED_CPU=500m\n",
        ),
    ] {
        let mut run = Run::with_workers(1);
        create(&mut run, "sizing", "", spec.clone());
        run.finish();
        let found = content(&run, FIRST, "/etc/node-sizing-enabled.env").unwrap();
        assert!(found.starts_with(expected), "{spec}: {found}");
        assert!(running(&run)["systemReserved"]["memory"].is_null());
    }
}

#[test]
fn of_two_for_one_pool_the_newest_wins_as_a_whole() {
    let mut run = Run::with_workers(1);
    // The newer one comes first by name.
    create(&mut run, "b-older", "2026-01-01T00:00:00Z", json!({"kubeletConfig": {"maxPods": 400, "podPidsLimit": 7}}));
    create(&mut run, "a-newer", "2026-01-02T00:00:00Z", json!({"kubeletConfig": {"maxPods": 500}}));
    run.finish();
    assert_eq!(run.snapshot.machine_configs[FIRST]["metadata"]["ownerReferences"][0]["name"], "b-older");
    assert_eq!(run.snapshot.machine_configs[SECOND]["metadata"]["ownerReferences"][0]["name"], "a-newer");
    let conf = running(&run);
    assert_eq!(conf["maxPods"], 500);
    assert_eq!(conf["podPidsLimit"], 4096, "the older file is replaced, not merged");
    assert_eq!(run.restarts(), [1]);
}

#[test]
fn a_deleted_kubelet_config_takes_its_machine_config_along_and_the_older_one_counts_again() {
    let mut run = Run::with_workers(1);
    create(&mut run, "older", "2026-01-01T00:00:00Z", json!({"kubeletConfig": {"maxPods": 400}}));
    create(&mut run, "newer", "2026-01-02T00:00:00Z", json!({"kubeletConfig": {"maxPods": 500}}));
    run.finish();
    run.snapshot.apply(&Write::new(Kind::KubeletConfig, "newer", Action::Delete));
    assert!(run.snapshot.kubelet_configs.contains_key("newer"), "its finalizer holds it");
    run.finish();
    assert!(!run.snapshot.kubelet_configs.contains_key("newer"));
    assert!(!run.snapshot.machine_configs.contains_key(SECOND));
    assert_eq!(running(&run)["maxPods"], 400);
    // One that disappears without its finalizer.
    run.snapshot.kubelet_configs.remove("older");
    run.finish();
    assert!(!run.snapshot.machine_configs.contains_key(FIRST));
    assert_eq!(running(&run)["maxPods"], 250);
}

#[test]
fn an_edit_is_rendered_again() {
    let mut run = Run::with_workers(1);
    create(&mut run, "pods", "", json!({"kubeletConfig": {"maxPods": 400}}));
    run.finish();
    let patch = json!({"spec": {"kubeletConfig": {"maxPods": 450}}});
    run.snapshot.apply(&Write::new(Kind::KubeletConfig, "pods", Action::Patch(patch)));
    run.finish();
    assert_eq!(running(&run)["maxPods"], 450);
    assert_eq!(run.snapshot.kubelet_configs["pods"]["status"]["observedGeneration"], 2);
    assert_eq!(run.restarts(), [2]);
}

#[test]
fn a_kubelet_config_that_becomes_invalid_keeps_what_it_made() {
    let mut run = Run::with_workers(1);
    create(&mut run, "pods", "", json!({"kubeletConfig": {"maxPods": 400}}));
    run.finish();
    let patch = json!({"spec": {"kubeletConfig": {"clusterDomain": "mine"}}});
    run.snapshot.apply(&Write::new(Kind::KubeletConfig, "pods", Action::Patch(patch)));
    run.finish();
    assert_eq!(run.snapshot.kubelet_configs["pods"]["status"]["conditions"][0]["type"], "Failure");
    assert_eq!(running(&run)["maxPods"], 400);
    assert_eq!(run.restarts(), [1]);
}

#[test]
fn a_kubelet_config_that_cannot_be_used_says_why_and_changes_nothing() {
    let none = json!({"matchLabels": {"no": "pool"}});
    for (spec, expected) in [
        (json!({"kubeletConfig": {"cgroupDriver": "cgroupfs"}}), "cgroupDriver is not allowed to be set"),
        (json!({"kubeletConfig": {"failSwapOn": false}}), "failSwapOn is not allowed to be set"),
        (json!({"kubeletConfig": {"memorySwap": {"swapBehavior": "LimitedSwap"}}}), "swapBehavior is not allowed"),
        (json!({"logLevel": 11}), "LogLevel is not valid"),
        (
            json!({"autoSizingReserved": true, "kubeletConfig": {"systemReserved": {"cpu": "1"}}}),
            "cannot be set together",
        ),
        (json!({"machineConfigPoolSelector": none}), "could not find any MachineConfigPool"),
        (json!({"machineConfigPoolSelector": {}}), "could not find any MachineConfigPool"),
    ] {
        let mut run = Run::with_workers(1);
        create(&mut run, "bad", "", spec.clone());
        run.finish();
        let condition = &run.snapshot.kubelet_configs["bad"]["status"]["conditions"][0];
        assert_eq!(condition["type"], "Failure");
        assert!(condition["message"].to_string().contains(expected), "{spec}: {condition}");
        assert!(!run.snapshot.machine_configs.contains_key(FIRST));
        assert_eq!(run.restarts(), [0]);
    }
}

#[test]
fn a_selector_of_several_pools_makes_one_machine_config_for_each() {
    let mut run = Run::with_workers(1);
    run.snapshot.pools.insert("infra".into(), pool("infra", &["worker", "infra"]));
    for name in ["worker", "infra"] {
        run.edit_pool(name, json!({"metadata": {"labels": {"tuned": "yes"}}}));
    }
    create(&mut run, "both", "", json!({"machineConfigPoolSelector": {"matchLabels": {"tuned": "yes"}}}));
    run.finish();
    assert!(run.snapshot.machine_configs.contains_key(FIRST));
    assert!(run.snapshot.machine_configs.contains_key("99-infra-generated-kubelet"));
}
