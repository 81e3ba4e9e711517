//! Nodes that come and go.

use super::{HOUR, SECOND, started, unstarted};
use expect_test::expect;
const GPU: &str = "ConfigMap virt/gpu";

#[test]
fn a_node_with_a_gpu_brings_the_object_for_it() {
    let mut bed = started(&["gpu"]);
    bed.node_joins("w1", true);
    expect![[r#"
        create ConfigMap virt/gpu
        notice AssetApplied ConfigMap virt/gpu: applied
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn when_the_last_gpu_leaves_the_object_stays_and_that_is_reported_once() {
    let mut bed = started(&["gpu"]);
    bed.node_joins("w1", true);
    bed.settle();
    bed.node_leaves("w1");
    expect![[r#"
        notice NotApplicable ConfigMap virt/gpu: no node has a GPU
    "#]]
    .assert_eq(&bed.settle());
    assert!(bed.stored(GPU).is_some());
    bed.expect_silence();
    bed.delete(GPU);
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn when_a_gpu_comes_back_the_object_is_managed_again() {
    let mut bed = started(&["gpu"]);
    bed.node_joins("w1", true);
    bed.settle();
    bed.node_leaves("w1");
    bed.settle();
    bed.edit("kubectl-edit", GPU, &serde_json::json!({"data": {"driver": "closed"}}));
    bed.node_joins("w2", true);
    expect![[r#"
        apply ConfigMap virt/gpu
        notice DriftCorrected ConfigMap virt/gpu: kubectl-edit changed .data.driver; the drift was corrected: .data.driver is "open" again
    "#]]
    .assert_eq(&bed.settle());
    bed.expect_silence();
}

#[test]
fn a_burst_of_nodes_is_one_step_and_no_request() {
    let mut bed = started(&["gpu"]);
    let steps = bed.steps;
    for number in 0..100 {
        bed.node_joins(&format!("n{number}"), false);
    }
    expect![[r#""#]].assert_eq(&bed.settle_verbosely());
    assert_eq!(bed.steps - steps, 1);
    bed.expect_silence();
}

#[test]
fn nothing_is_rendered_before_the_nodes_are_listed() {
    let mut bed = unstarted(&["gpu"]);
    bed.node_joins("w1", true);
    bed.silent.insert("Node".into());
    expect![[r#""#]].assert_eq(&bed.advance(HOUR));
    assert!(!bed.core.has_evaluated());
    bed.silent.clear();
    expect![[r#"
        create ConfigMap virt/gpu
        notice AssetApplied ConfigMap virt/gpu: applied
    "#]]
    .assert_eq(&bed.advance(SECOND));
    bed.expect_silence();
}

#[test]
fn a_lost_watch_of_nodes_changes_nothing() {
    let mut bed = started(&["gpu"]);
    bed.node_joins("w1", true);
    bed.settle();
    bed.lose_watch("Node");
    expect![[r#"
        notice WatchLost Node: connection reset
    "#]]
    .assert_eq(&bed.advance(HOUR));
    bed.restore_watch("Node");
    expect![[r#""#]].assert_eq(&bed.settle());
    bed.expect_silence();
}
