//! What restarts nodes goes to healthy pools only, together, and is judged by what the pools run.

use super::{HOUR, KERNEL, MINUTE, SECOND, kernel, kernel_template, settled, settled_with_kernel, started, unstarted};
use crate::testing::bed::{HCO, POOLS, TestBed};
use crate::testing::pack::{ALWAYS, Pack};
use expect_test::expect;
use mco_stand_in::control;
use protocol::Command;
use serde_json::{Value, json};

const WORKER: &str = "MachineConfigPool worker";
const OTHER: &str = "MachineConfig other";

/// Two MachineConfigs of the pool worker.
fn two() -> Pack {
    let other = kernel("loud").to_string().replace("\"kernel\"", "\"other\"");
    Pack::default().asset("kernel", ALWAYS, &kernel_template("quiet")).asset("other", ALWAYS, &other)
}

/// Somebody approves both.
fn approve_both(bed: &mut TestBed) {
    let digests = [KERNEL, OTHER].map(|key| bed.asked_digest(key).unwrap());
    bed.annotate(HCO, &format!("approved={}", digests.join(",")));
}

/// How many configurations were rendered for a pool, the first one included.
fn rendered(bed: &TestBed, pool: &str) -> usize {
    let prefix = format!("rendered-{pool}-");
    bed.server.objects().filter(|(key, _)| key.name.starts_with(&prefix)).count()
}

#[test]
fn two_changes_that_are_approved_together_are_one_rollout() {
    let mut bed = settled(two());
    approve_both(&mut bed);
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_some() && bed.stored(OTHER).is_some());
    assert_eq!((rendered(&bed, "worker"), bed.restarts_of("w0")), (2, 1));
    bed.expect_silence();
}

#[test]
fn two_changes_that_wait_for_a_window_are_one_rollout() {
    let mut bed = settled(two());
    bed.annotate(HCO, "maintenance-window=Mon 02:00-03:00 UTC");
    approve_both(&mut bed);
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_none() && bed.stored(OTHER).is_none());
    bed.advance(HOUR * 48);
    assert_eq!((rendered(&bed, "worker"), bed.restarts_of("w0")), (2, 1));
}

#[test]
fn a_change_waits_for_the_rollout_of_another_one() {
    let mut bed = settled(two());
    bed.approve(KERNEL);
    bed.advance(MINUTE);
    bed.approve(OTHER);
    expect![[r#"
        notice PoolNotReady MachineConfig other: it restarts one node of pool worker: w0; pool worker is updating, so it waits until the pool is healthy
    "#]].assert_eq(&bed.settle());
    bed.advance(MINUTE);
    assert!(bed.stored(OTHER).is_none(), "the first one is not done");
    bed.advance(HOUR);
    assert!(bed.stored(OTHER).is_some());
    assert_eq!(bed.restarts_of("w0"), 2);
    bed.expect_silence();
}

#[test]
fn a_degraded_pool_gets_no_change_until_it_is_repaired() {
    let mut bed = started(&["plain", "kernel"]);
    let failing = json!({"metadata": {"annotations": {control::UPDATE_FAILS: "disk full"}}});
    bed.edit("person", "Node w0", &failing);
    bed.create(
        "person",
        &json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "theirs", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": ["theirs"]}}),
    );
    bed.advance(HOUR);
    bed.approve(KERNEL);
    expect![[r#"
        notice PoolNotReady MachineConfig kernel: it restarts one node of pool worker: w0; pool worker is degraded (Node w0 is reporting: "disk full"), so it waits until the pool is healthy
    "#]].assert_eq(&bed.settle());
    bed.expect_silence();
    let repaired = json!({"metadata": {"annotations": {control::UPDATE_FAILS: null}}});
    bed.edit("person", "Node w0", &repaired);
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        create MachineConfig kernel
        notice AssetApplied MachineConfig kernel: applied
    "#]]
    .assert_eq(&bed.advance(HOUR));
}

#[test]
fn a_paused_pool_gets_an_approved_change_and_restarts_when_it_is_resumed() {
    let mut bed = unstarted(&["kernel"]);
    bed.edit("person", WORKER, &json!({"spec": {"paused": true}}));
    expect![[r#"
        record ConfigMap virt/virt-platform-autopilot-state
        notice ApprovalRequired MachineConfig kernel: approval required: creating it restarts one node of pool worker: w0 (pool worker is paused: not before it is resumed); run "virtpilot approve sha256:*"
    "#]].assert_eq(&bed.advance(SECOND));
    bed.approve(KERNEL);
    bed.advance(HOUR);
    assert!(bed.stored(KERNEL).is_some());
    assert_eq!(bed.restarts_of("w0"), 0);
    bed.edit("person", WORKER, &json!({"spec": {"paused": false}}));
    bed.advance(HOUR);
    assert_eq!(bed.restarts_of("w0"), 1);
    bed.expect_silence();
}

#[test]
fn an_object_restarts_the_nodes_of_every_pool_that_takes_it() {
    let mut bed = unstarted(&["kernel"]);
    bed.node_joins("i0", false);
    bed.edit("person", "Node i0", &json!({"metadata": {"labels": {"node-role.kubernetes.io/infra": ""}}}));
    bed.create_pool("infra", &["worker", "infra"]);
    let lines = bed.advance(SECOND);
    assert!(lines.contains("restarts 2 nodes of the pools infra, worker: i0, w0, all at once; run"), "{lines}");
    bed.approve(KERNEL);
    bed.advance(HOUR);
    assert_eq!((bed.restarts_of("w0"), bed.restarts_of("i0")), (1, 1));
}

#[test]
fn where_no_pool_takes_it_no_node_restarts() {
    let mut bed = unstarted(&["kernel"]);
    bed.remove_crd(&POOLS);
    let lines = bed.advance(SECOND);
    assert!(lines.contains("creating it restarts no node: no pool takes it; run"), "{lines}");
}

#[test]
fn what_another_machine_config_brings_in_already_restarts_nothing_and_needs_no_approval() {
    let file = json!([{"path": "/etc/a", "mode": 420, "contents": {"source": "data:,a"}}]);
    let config = json!({"ignition": {"version": "3.2.0"}, "storage": {"files": file}});
    let object = |name: &str| -> Value {
        json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
            "spec": {"config": config}})
    };
    let mut bed = TestBed::of(Pack::default().asset("a", ALWAYS, &object("ours").to_string()));
    bed.create("person", &object("theirs"));
    bed.roll_out();
    let restarts = bed.restarts_of("w0");
    expect![[r#"
        create MachineConfig ours
        notice AssetApplied MachineConfig ours: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
    assert_eq!(bed.restarts_of("w0"), restarts);
}

#[test]
fn a_change_that_nodes_take_without_a_restart_says_so() {
    let crd = crate::testing::serving::Crd {
        api_version: "operator.openshift.io/v1",
        kind: "MachineConfiguration",
        plural: "machineconfigurations",
        namespaced: false,
    };
    let file = json!([{"path": "/etc/a", "contents": {"source": "data:,a"}}]);
    let object = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "ours", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": file}}}});
    let mut bed = TestBed::of(Pack::default().asset("a", ALWAYS, &object.to_string()));
    bed.install_crd(&crd);
    let policies = json!({"files": [{"path": "/etc/a", "actions": [{"type": "None"}]}]});
    bed.create(
        "person",
        &json!({"apiVersion": crd.api_version, "kind": crd.kind, "metadata": {"name": "cluster"},
        "status": {"nodeDisruptionPolicyStatus": {"clusterPolicies": policies}}}),
    );
    let lines = bed.advance(SECOND);
    assert!(lines.contains("creating it reloads, without a restart, one node of pool worker: w0; run"), "{lines}");
}

#[test]
fn pools_that_cannot_be_read_are_reported_and_nothing_restarts() {
    let mut bed = settled_with_kernel();
    bed.fail_reads(6);
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["loud"]}}));
    let lines = bed.advance(MINUTE);
    assert!(lines.contains("could not be read; it is tried again"), "{lines}");
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["loud"]), "{lines}");
    let lines = bed.advance(HOUR);
    assert!(lines.contains("ApprovalRequired"), "nodes run it by then: {lines}");
}

#[test]
fn pools_that_cannot_be_listed_are_reported_and_nothing_restarts() {
    let mut bed = settled_with_kernel();
    bed.lose_watch("MachineConfigPool");
    bed.settle();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["loud"]}}));
    let lines = bed.advance(HOUR);
    assert!(lines.contains("MachineConfigPools cannot be listed"), "{lines}");
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["loud"]), "{lines}");
    bed.restore_watch("MachineConfigPool");
    let lines = bed.advance(HOUR);
    assert!(lines.contains("ApprovalRequired"), "nodes run it by then: {lines}");
}

#[test]
fn an_edit_of_what_was_approved_and_is_not_rendered_yet_is_undone_at_once() {
    let mut bed = started(&["kernel"]);
    bed.approve(KERNEL);
    bed.settle();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelType": "realtime"}}));
    bed.settle();
    assert_eq!(bed.value(KERNEL, "/spec/kernelType"), json!("default"));
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["loud"]}}));
    let lines = bed.advance(HOUR);
    assert!(lines.contains("ApprovalRequired"), "the pool does not run what this brings back: {lines}");
}

#[test]
fn a_rollout_costs_no_request() {
    let mut bed = settled(two());
    for number in 1..100 {
        bed.node_joins(&format!("w{number}"), false);
    }
    bed.approve(KERNEL);
    bed.advance(SECOND);
    // The other one asks for its approval meanwhile.
    bed.is_verbose = true;
    let lines = bed.advance(HOUR * 24);
    let rolled = (0..100).filter(|number| bed.restarts_of(&format!("w{number}")) == 1).count();
    assert_eq!(rolled, 100);
    let asks = lines.lines().filter(|line| line.starts_with("inspect")).count();
    // Once when the pool begins, and once when it is done.
    assert!(asks <= 4, "{asks} reads");
    bed.expect_silence();
}

#[test]
fn a_rollout_is_followed_and_its_restarts_are_counted() {
    let mut bed = started(&["kernel"]);
    bed.edit("kubelet", "Node w0", &json!({"status": {"nodeInfo": {"bootID": "one"}}}));
    bed.advance(SECOND);
    bed.approve(KERNEL);
    bed.advance(HOUR);
    let restarts = bed.notices.iter().filter(|notice| matches!(notice, crate::Notice::NodeRestarted { .. }));
    assert_eq!(restarts.count(), 1);
    let states = bed.notices.iter().filter_map(|notice| match notice {
        crate::Notice::Rollout { rollout, before } => Some((rollout.event(*before)?.1, rollout.to_string())),
        _ => None,
    });
    let states: Vec<String> = states.map(|(name, text)| format!("{name}: {text}")).collect();
    expect![[r#"
        RolloutStarted: pool worker is updating
        RolloutFinished: all 1 machines of pool worker run its configuration"#]]
    .assert_eq(&states.join("\n"));
}

#[test]
fn no_write_that_restarts_nodes_is_made_on_an_estimate_that_is_old() {
    let mut bed = settled_with_kernel();
    bed.hold_writes(KERNEL);
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["loud"]}}));
    bed.fail_next(KERNEL, crate::testing::requests::Fault::Transient);
    bed.run_until(|command| matches!(command, Command::Write(_)));
    bed.release(KERNEL);
    // The first attempt fails; by the second one, the pool runs the edit.
    bed.roll_out();
    let lines = bed.advance(HOUR);
    assert!(lines.contains("ApprovalRequired"), "{lines}");
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), json!(["loud"]), "{lines}");
}

#[test]
fn rollouts_that_are_not_done_are_shown_until_they_are() {
    let mut bed = started(&["kernel"]);
    bed.node_joins("w1", false);
    bed.advance(HOUR);
    let unfinished = |bed: &TestBed| {
        let all = bed.core.unfinished_rollouts().map(|rollout| rollout.to_string());
        all.collect::<Vec<_>>().join("; ")
    };
    assert_eq!(unfinished(&bed), "");
    bed.approve(KERNEL);
    bed.advance(MINUTE * 5);
    expect!["pool worker is updating: 0 of 2 machines are done"].assert_eq(&unfinished(&bed));
    bed.edit("person", WORKER, &json!({"spec": {"paused": true}}));
    bed.advance(MINUTE);
    expect!["pool worker is paused: 0 of 2 machines run its configuration; resume it to go on"]
        .assert_eq(&unfinished(&bed));
    bed.edit("person", WORKER, &json!({"spec": {"paused": false}}));
    bed.advance(HOUR);
    assert_eq!(unfinished(&bed), "");
}

#[test]
fn what_waits_for_an_approval_is_listed_by_pool() {
    let bed = settled(two());
    let waiting = crate::status::waiting_by_pool(&bed.observe());
    let named: Vec<(&str, Vec<&str>)> = waiting
        .iter()
        .map(|waiting| (waiting.pool.as_str(), waiting.changes.iter().map(|(_, object)| object.as_str()).collect()))
        .collect();
    assert_eq!(named, [("worker", vec![KERNEL, OTHER])]);
    let digests: Vec<String> = waiting[0].changes.iter().map(|(digest, _)| digest.to_string()).collect();
    assert_eq!(digests, [KERNEL, OTHER].map(|key| bed.asked_digest(key).unwrap()));
}

#[test]
fn what_no_pool_takes_is_listed_for_none() {
    let object = kernel_template("quiet").replace("\"worker\"", "\"gpu\"");
    let bed = settled(Pack::default().asset("kernel", ALWAYS, &object));
    assert!(bed.asked_digest(KERNEL).is_some());
    assert_eq!(crate::status::waiting_by_pool(&bed.observe()), []);
}
