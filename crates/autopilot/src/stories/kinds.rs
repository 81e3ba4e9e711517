//! Kinds that are installed, removed and served in another version.

use super::{HOUR, MINUTE, PLAIN, SECOND, settled_with_kernel, started, unstarted};
use crate::testing::bed::{DESCHEDULERS, HCO, HCOS, MACHINE_CONFIGS, TestBed};
use crate::testing::serving::Crd;
use expect_test::expect;
use serde_json::{Value, json};
use std::time::Duration;
/// The CRD of HyperConverged in the older version.
const OLD_HCOS: Crd = Crd { api_version: "hco.kubevirt.io/v1beta1", ..HCOS };

/// The CRD of KubeDescheduler, without its kind being served.
fn descheduler_crd() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": DESCHEDULERS.name()}, "spec": {}})
}

#[test]
fn a_crd_that_is_installed_later_brings_its_asset() {
    let mut bed = started(&["descheduler"]);
    bed.annotate(HCO, "autopilot=descheduler");
    assert!(bed.settle().contains("notice Missing KubeDescheduler"));
    bed.install_crd(&DESCHEDULERS);
    expect![[r#"
        notice Served KubeDescheduler of operator.openshift.io/v1: descheduler
        create KubeDescheduler virt/cluster
        notice AssetApplied KubeDescheduler virt/cluster: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_crd_that_is_removed_takes_its_objects_with_it_and_nobody_deleted_them() {
    let mut bed = settled_with_kernel();
    bed.remove_crd(&MACHINE_CONFIGS);
    expect![[r#""#]].assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
    bed.install_crd(&MACHINE_CONFIGS);
    expect![[r#"
        notice ApprovalRequired MachineConfig kernel: approval required: creating it restarts one node of pool worker: w0; run "virtpilot approve sha256:*"
    "#]].assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_crd_that_is_removed_and_reinstalled_gets_its_object_without_a_budget() {
    let mut bed = started(&["descheduler"]);
    bed.install_crd(&DESCHEDULERS);
    bed.advance(SECOND);
    for _ in 0..12 {
        bed.remove_crd(&DESCHEDULERS);
        bed.advance(SECOND);
        bed.install_crd(&DESCHEDULERS);
        assert!(bed.advance(SECOND).contains("AssetApplied KubeDescheduler virt/cluster"));
    }
    bed.expect_silence();
}

#[test]
fn a_server_that_lags_behind_its_crds_is_asked_again_with_growing_pauses() {
    let mut bed = started(&["descheduler"]);
    bed.create("installer", &descheduler_crd());
    let asked = |lines: &str| lines.lines().filter(|line| line.starts_with("discover")).count();
    bed.settle_verbosely();
    let first = asked(&bed.advance_verbosely(SECOND));
    let second = asked(&bed.advance_verbosely(4 * SECOND));
    let last = asked(&bed.advance_verbosely(HOUR));
    assert_eq!((first, second, last), (5, 2, 10));
    bed.server.serve(DESCHEDULERS.api_version, DESCHEDULERS.kind, DESCHEDULERS.plural, true);
    expect![[r#""#]].assert_eq(&bed.advance(HOUR));
    bed.edit(
        "installer",
        "CustomResourceDefinition kubedeschedulers.operator.openshift.io",
        &json!({"spec": {"x": 1}}),
    );
    expect![[r#"
        create KubeDescheduler virt/cluster
        notice AssetApplied KubeDescheduler virt/cluster: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_crd_that_nothing_needs_makes_nobody_ask() {
    let mut bed = started(&["plain"]);
    bed.install_crd(&Crd { api_version: "example.com/v1", kind: "Other", plural: "others", namespaced: true });
    expect![[r#""#]].assert_eq(&bed.advance_verbosely(MINUTE));
}

#[test]
fn a_hyperconverged_that_is_served_in_another_version_is_followed() {
    let mut bed = unstarted(&["plain", "service"]);
    bed.remove_crd(&HCOS);
    bed.install_crd(&OLD_HCOS);
    let metadata = json!({"name": api::hco::NAME, "namespace": "virt", "annotations": {"platform.kubevirt.io/autopilot": "plain"}});
    bed.create(
        "person",
        &json!({"apiVersion": OLD_HCOS.api_version, "kind": "HyperConverged", "metadata": metadata, "spec": {}}),
    );
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.server.serve(HCOS.api_version, HCOS.kind, HCOS.plural, true);
    bed.edit("installer", "CustomResourceDefinition hyperconvergeds.hco.kubevirt.io", &json!({"spec": {"v": 1}}));
    expect![[r#"
        discover again
        unwatch hco.kubevirt.io/v1beta1 HyperConverged virt
        waiting for HyperConverged, which the API server does not serve
        notice Subject HyperConverged virt/kubevirt-hyperconverged u10
        watch hco.kubevirt.io/v1 HyperConverged virt (Whole)
        waiting for HyperConverged
        ready
    "#]]
    .assert_eq(&bed.advance_verbosely(SECOND));
    bed.annotate(HCO, "autopilot=plain, service");
    expect![[r#"
        create Service virt/service
        notice AssetApplied Service virt/service: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn without_the_crd_of_hyperconverged_it_waits_and_says_so() {
    let mut bed = unstarted(&["plain"]);
    bed.remove_crd(&HCOS);
    expect![[r#"
        discover
        watch apiextensions.k8s.io/v1 CustomResourceDefinition (Names)
        waiting for HyperConverged, which the API server does not serve, CustomResourceDefinition
        query v1 ConfigMap virt/virt-platform-autopilot-state
        notice NoHyperConverged
        watch v1 Node (Part)
        waiting for HyperConverged, which the API server does not serve, Node, CustomResourceDefinition
        watch machineconfiguration.openshift.io/v1 MachineConfigPool (Part)
        waiting for HyperConverged, which the API server does not serve, Node, CustomResourceDefinition, MachineConfigPool
        waiting for HyperConverged, which the API server does not serve, CustomResourceDefinition, MachineConfigPool
        waiting for HyperConverged, which the API server does not serve, MachineConfigPool
        waiting for HyperConverged, which the API server does not serve
        notice Rollout: all 1 machines of pool worker run its configuration
    "#]]
    .assert_eq(&bed.settle_verbosely());
    bed.expect_silence();
    bed.install_crd(&HCOS);
    bed.create_hco();
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_crd_of_hyperconverged_that_is_removed_changes_nothing() {
    let mut bed = started(&["plain"]);
    bed.remove_crd(&HCOS);
    expect![[r#"
        notice NoHyperConverged
    "#]]
    .assert_eq(&bed.advance(HOUR));
    assert!(bed.stored(PLAIN).is_some());
    bed.expect_silence();
}

#[test]
fn a_discovery_that_fails_at_the_start_is_repeated() {
    let mut bed = unstarted(&["plain"]);
    bed.fail_reads(3);
    expect![[r#"
        notice DiscoveryFailed: connection reset
        notice DiscoveryFailed: connection reset
        notice DiscoveryFailed: connection reset
    "#]]
    .assert_eq(&bed.advance(Duration::from_millis(699)));
    expect![[r#"
        create ConfigMap virt/plain
        notice AssetApplied ConfigMap virt/plain: applied
    "#]]
    .assert_eq(&bed.advance(Duration::from_millis(1)));
    bed.expect_silence();
}

#[test]
fn when_a_gate_crd_goes_the_object_stays_is_not_recreated_and_is_managed_again_when_it_comes_back() {
    const GATED: &str = "ConfigMap virt/gated";
    let keys = "install: always, gate_crd: kubedeschedulers.operator.openshift.io";
    let template = crate::testing::pack::config_map("gated", "data: {level: \"1\"}");
    let mut bed = TestBed::of(crate::testing::pack::Pack::default().asset("gated", keys, &template));
    bed.install_crd(&DESCHEDULERS);
    bed.advance(SECOND);
    assert!(bed.stored(GATED).is_some());
    bed.remove_crd(&DESCHEDULERS);
    expect![[r#"
        notice NotApplicable ConfigMap virt/gated: the cluster does not serve the CRD kubedeschedulers.operator.openshift.io, which the Kube Descheduler Operator provides
    "#]].assert_eq(&bed.advance(SECOND));
    assert!(bed.stored(GATED).is_some());
    bed.expect_silence();
    bed.delete(GATED);
    expect![[r#""#]].assert_eq(&bed.advance(HOUR));
    bed.install_crd(&DESCHEDULERS);
    expect![[r#"
        create ConfigMap virt/gated
        notice AssetApplied ConfigMap virt/gated: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}
