//! A start on a new cluster.

use super::{HOUR, PLAIN, SECOND, started, unstarted};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{ALWAYS, Pack, config_map};
use expect_test::expect;
use protocol::Command;
use serde_json::json;
use std::time::Duration;
#[test]
fn a_start_creates_what_applies_and_asks_for_an_approval_of_the_rest() {
    let mut bed = TestBed::new();
    expect![[r#"
        create ConfigMap virt/plain
        create Service virt/service
        notice AssetApplied ConfigMap virt/plain: applied
        notice AssetApplied Service virt/service: applied
        record ConfigMap virt/virt-platform-autopilot-state
        notice ApprovalRequired MachineConfig kernel: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
        create ConfigMap virt/asking
        notice AssetApplied ConfigMap virt/asking: applied
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    bed.approve("MachineConfig kernel");
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        create MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.restart();
    expect![[r#"
        apply ConfigMap virt/plain: no change
        apply Service virt/service: no change
        apply MachineConfig kernel: no change
        apply ConfigMap virt/asking: no change
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn every_command_of_a_start() {
    let pack = Pack::default().asset("a", ALWAYS, &config_map("a", "data: {x: \"1\"}"));
    let mut bed = TestBed::of(pack);
    expect![[r#"
        discover
        watch apiextensions.k8s.io/v1 CustomResourceDefinition (Names)
        waiting for HyperConverged, which the API server does not serve, CustomResourceDefinition
        query v1 ConfigMap virt/virt-platform-autopilot-state
        watch hco.kubevirt.io/v1 HyperConverged virt (Whole)
        waiting for CustomResourceDefinition, HyperConverged
        watch v1 Node (Part)
        waiting for Node, CustomResourceDefinition, HyperConverged
        watch machineconfiguration.openshift.io/v1 MachineConfigPool (Part)
        waiting for Node, CustomResourceDefinition, HyperConverged, MachineConfigPool
        waiting for CustomResourceDefinition, HyperConverged, MachineConfigPool
        waiting for HyperConverged, MachineConfigPool
        notice Subject HyperConverged virt/kubevirt-hyperconverged u4
        waiting for MachineConfigPool
        ready
        notice Rollout: all 1 machines of pool worker run its configuration
        watch v1 ConfigMap virt (Metadata)
        waiting for ConfigMap
        ready
        create ConfigMap virt/a
        notice Answered ConfigMap virt/a: false
        notice AssetApplied ConfigMap virt/a: applied
        notice State ConfigMap virt/a: InSync
    "#]]
    .assert_eq(&bed.settle_verbosely());
}

#[test]
fn a_kind_in_two_namespaces_is_waited_for_by_one_name() {
    let elsewhere = config_map("b", "").replace("namespace: virt", "namespace: elsewhere");
    let pack = Pack::default().asset("a", ALWAYS, &config_map("a", "")).asset("b", ALWAYS, &elsewhere);
    let commands = TestBed::of(pack).settle_verbosely();
    assert!(
        commands.contains("watch v1 ConfigMap elsewhere") && commands.contains("watch v1 ConfigMap virt"),
        "{commands}"
    );
    assert!(commands.contains("waiting for ConfigMap\n") && !commands.contains("ConfigMap, ConfigMap"), "{commands}");
}

#[test]
fn a_created_object_says_whose_it_is_and_where_it_comes_from() {
    let mut bed = started(&["plain"]);
    let metadata = bed.value(PLAIN, "/metadata");
    assert_eq!(metadata["labels"], json!({"platform.kubevirt.io/managed-by": "virt-platform-autopilot"}));
    let annotations = metadata["annotations"].as_object().unwrap();
    let keys: Vec<&str> = annotations.keys().filter_map(|key| key.strip_prefix("platform.kubevirt.io/")).collect();
    assert_eq!(
        (keys, &annotations["platform.kubevirt.io/origin"]),
        (vec!["applied", "budget", "origin", "source"], &json!("created"))
    );
    bed.expect_silence();
}

#[test]
fn writes_follow_the_order_of_the_catalogue() {
    let ordered = |order: usize| format!("install: always, reconcile_order: {order}");
    let pack = Pack::default()
        .asset("third", &ordered(3), &config_map("third", ""))
        .asset("first", &ordered(1), &config_map("first", ""))
        .asset("second", &ordered(2), "apiVersion: v1\nkind: Service\nmetadata: {name: second, namespace: virt}\n");
    let mut bed = TestBed::of(pack);
    expect![[r#"
        create ConfigMap virt/first
        create Service virt/second
        create ConfigMap virt/third
        notice AssetApplied ConfigMap virt/first: applied
        notice AssetApplied Service virt/second: applied
        notice AssetApplied ConfigMap virt/third: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn at_most_eight_writes_are_in_flight() {
    let names: Vec<String> = (0..10).map(|number| format!("c{number}")).collect();
    let pack = names.iter().fold(Pack::default(), |pack, name| pack.asset(name, ALWAYS, &config_map(name, "")));
    let mut bed = TestBed::of(pack);
    names.iter().for_each(|name| bed.hold_writes(&format!("ConfigMap virt/{name}")));
    bed.settle();
    assert_eq!(bed.requests.iter().filter(|request| matches!(request, Command::Write(_))).count(), 8);
    bed.release("ConfigMap virt/c3");
    bed.release("ConfigMap virt/c8");
    expect![[r#"
        create ConfigMap virt/c3
        notice AssetApplied ConfigMap virt/c3: applied
        create ConfigMap virt/c8
        notice AssetApplied ConfigMap virt/c8: applied
    "#]]
    .assert_eq(&bed.settle());
}

#[test]
fn the_first_writes_wait_for_the_lists_but_not_for_long() {
    let mut bed = unstarted(&["plain", "service"]);
    bed.silent.insert("Service".into());
    expect![[r#""#]].assert_eq(&bed.advance(Duration::from_millis(299)));
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(Duration::from_millis(1)));
    bed.silent.clear();
    expect![[r#"
        create Service virt/service
        notice AssetApplied Service virt/service: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn with_opt_in_nothing_is_created_before_somebody_asks() {
    let mut bed = unstarted(&["plain", "service"]);
    bed.restart_with(|config| config.opt_in = true);
    expect![[r#"
        notice SwitchedOff
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.annotate(HCO, "autopilot=plain");
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn without_a_hyperconverged_nothing_is_created() {
    let mut bed = unstarted(&["plain"]);
    bed.delete(HCO);
    expect![[r#"
        notice HyperConvergedAbsent HyperConverged virt/kubevirt-hyperconverged
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.create_hco();
    bed.annotate(HCO, "autopilot=plain");
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.delete(HCO);
    bed.delete(PLAIN);
    expect![[r#"
        notice HyperConvergedAbsent HyperConverged virt/kubevirt-hyperconverged: it was deleted
        notice DriftDetected ConfigMap virt/plain: somebody deleted it; it is not recreated now
        notice InvalidConfiguration ConfigMap virt/plain: the HyperConverged does not exist or is not read yet; nothing is created or removed until it is
    "#]].assert_eq(&bed.advance(HOUR));
}

#[test]
fn another_release_changes_what_its_assets_render() {
    let mut bed = started(&["plain", "service"]);
    bed.upgrade(|pack| pack.with_template("plain", &config_map("plain", "data: {level: \"2\"}")));
    expect![[r#"
        apply ConfigMap virt/plain
        apply Service virt/service: no change
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.settle());
    assert_eq!(bed.value(PLAIN, "/data"), json!({"level": "2"}));
    bed.expect_silence();
}

#[test]
fn another_release_that_wants_the_same_is_no_event() {
    let mut bed = started(&["plain"]);
    let same = crate::testing::pack::config_map("plain", "data: {mode: auto, level: \"1\"} # in other words");
    bed.upgrade(|pack| pack.with_template("plain", &same));
    expect![[r#"
        apply ConfigMap virt/plain
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}
