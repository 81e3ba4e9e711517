//! The update of nodes: annotations, cordon and drain, limits, pauses, failures, and restarts.

use super::{Run, annotation, file_spec, node, pool, seconds};
use crate::{control, nodes_of_pool};
use serde_json::{Value, json};

#[test]
fn nothing_restarts_on_a_cluster_that_is_as_it_should_be() {
    let mut run = Run::with_workers(3);
    let mut again = Run::of(run.snapshot.clone());
    again.finish();
    assert_eq!(again.writes, [], "another stand-in finds nothing to do");
    run.wait(seconds(3600));
    assert_eq!(run.writes, []);
}

#[test]
fn a_node_is_cordoned_drained_restarted_and_uncordoned_and_says_so() {
    let mut run = Run::with_workers(1);
    let before = run.target("worker");
    run.add_file("90-one", "1");
    let shown = |run: &Run| {
        let node = run.node("worker-0");
        let is_cordoned = node.0["spec"]["unschedulable"] == true;
        let applied = node.annotation(annotation::APPLIED_DRAIN).split('-').next().unwrap().to_owned();
        (node.state().to_owned(), is_cordoned, applied, node.is_up(), node.current() == before)
    };
    let expect = |run: &Run, state: &str, cordoned: bool, applied: &str, up: bool, old: bool| {
        assert_eq!(shown(run), (state.to_owned(), cordoned, applied.to_owned(), up, old), "after {:?}", run.now);
    };
    let start = run.now;
    expect(&run, "Done", false, "", true, true);
    run.wait(seconds(5));
    let target = run.target("worker");
    assert_eq!(run.node("worker-0").desired(), target, "the render is followed at once");
    expect(&run, "Working", true, "", true, true);
    run.wait(seconds(59));
    expect(&run, "Working", true, "", true, true);
    run.wait(seconds(1));
    expect(&run, "Working", true, "drain", false, true);
    assert_eq!(run.restarts(), [1]);
    let boot = |run: &Run| run.node("worker-0").0["status"]["nodeInfo"]["bootID"].clone();
    let old_boot = boot(&run);
    run.wait(seconds(299));
    expect(&run, "Working", true, "drain", false, true);
    run.wait(seconds(1));
    expect(&run, "Done", false, "uncordon", true, false);
    assert_ne!(boot(&run), old_boot);
    assert_eq!(run.node("worker-0").current(), target);
    assert_eq!(run.now - start, seconds(365));
    assert_eq!(run.node("worker-0").annotation(control::RESTARTS), "1");
    let conditions = run.node("worker-0").0["status"]["conditions"].as_array().unwrap();
    assert_eq!(conditions.len(), 2, "other conditions stay");
}

#[test]
fn restarts_are_counted_per_node() {
    let mut run = Run::with_workers(2);
    run.add_file("90-one", "1");
    run.finish();
    run.snapshot.nodes.insert("worker-2".into(), node("worker-2", &["worker"]));
    run.finish();
    assert_eq!(run.restarts(), [1, 1, 0], "a machine that joins is installed with the configuration");
    run.add_file("90-one", "2");
    run.finish();
    assert_eq!(run.restarts(), [2, 2, 1]);
    let shown: Vec<&str> = run.snapshot.nodes.keys().map(|name| run.node(name).annotation(control::RESTARTS)).collect();
    assert_eq!(shown, ["2", "2", "1"]);
}

#[test]
fn a_machine_that_joins_during_a_rollout_starts_with_the_old_configuration() {
    let mut run = Run::with_workers(2);
    let before = run.target("worker");
    run.add_file("90-one", "1");
    run.wait(seconds(30));
    run.snapshot.nodes.insert("worker-2".into(), node("worker-2", &["worker"]));
    run.settle();
    assert_eq!(run.node("worker-2").current(), before);
    run.finish();
    assert_eq!(run.node("worker-2").current(), run.target("worker"));
    assert_eq!(run.restarts(), [1, 1, 1]);
}

#[test]
fn at_most_max_unavailable_nodes_are_unavailable_at_a_time() {
    for (limit, nodes, expected) in [
        (Value::Null, 5, 1),
        (json!(0), 5, 1),
        (json!(2), 5, 2),
        (json!(9), 4, 4),
        (json!("20%"), 5, 1),
        (json!("50%"), 5, 2),
        (json!("34%"), 9, 3),
        (json!("1%"), 5, 1),
        (json!("100%"), 3, 3),
    ] {
        let mut run = Run::with_workers(nodes);
        run.edit_pool("worker", json!({"spec": {"maxUnavailable": limit}}));
        run.most_unavailable = 0;
        run.add_file("90-one", "1");
        run.finish();
        assert_eq!(run.most_unavailable, expected, "{limit} of {nodes}");
        assert_eq!(run.restarts(), vec![1; nodes], "{limit} of {nodes}");
    }
}

#[test]
fn a_limit_that_is_neither_a_number_nor_a_percentage_stops_the_rollout() {
    for limit in [json!("two"), json!("2"), json!(-1), json!("x%")] {
        let mut run = Run::with_workers(2);
        run.edit_pool("worker", json!({"spec": {"maxUnavailable": limit}}));
        run.add_file("90-one", "1");
        run.finish();
        assert_eq!(run.restarts(), [0, 0], "{limit}");
    }
}

#[test]
fn a_paused_pool_is_rendered_and_its_nodes_wait() {
    let mut run = Run::with_workers(2);
    let before = run.target("worker");
    run.edit_pool("worker", json!({"spec": {"paused": true}}));
    run.add_file("90-one", "1");
    run.finish();
    assert_ne!(run.target("worker"), before);
    assert_eq!(run.restarts(), [0, 0]);
    assert!(!run.holds("worker", "Updated") && !run.holds("worker", "Updating"));
    let message = run.condition("worker", "Updating")["message"].to_string();
    assert!(message.contains("Pool is paused; will not update to MachineConfig rendered-worker-"), "{message}");
    run.edit_pool("worker", json!({"spec": {"paused": false}}));
    run.finish();
    assert_eq!(run.restarts(), [1, 1]);
    assert!(run.holds("worker", "Updated"));
}

#[test]
fn a_pause_in_the_middle_lets_the_running_update_end_and_begins_no_other() {
    let mut run = Run::with_workers(3);
    run.add_file("90-one", "1");
    run.wait(seconds(30));
    assert_eq!(run.working(), ["worker-0"]);
    run.edit_pool("worker", json!({"spec": {"paused": true}}));
    run.finish();
    assert_eq!(run.restarts(), [1, 0, 0]);
    assert_eq!(run.working(), [""; 0]);
}

#[test]
fn a_change_during_an_update_is_applied_after_it() {
    let mut run = Run::with_workers(1);
    run.add_file("90-one", "1");
    run.wait(seconds(30));
    let first = run.target("worker");
    run.add_file("90-one", "2");
    run.wait(seconds(30));
    let second = run.target("worker");
    assert_ne!(first, second);
    assert_eq!(run.node("worker-0").desired(), first, "a node that is being updated is left alone");
    run.finish();
    assert_eq!(run.node("worker-0").current(), second);
    assert_eq!(run.restarts(), [2]);
}

#[test]
fn a_node_that_does_not_come_back_keeps_the_pool_updating_and_the_others_waiting() {
    let mut run = Run::with_workers(3);
    run.annotate("worker-0", control::DOES_NOT_COME_BACK, Some("true"));
    run.most_unavailable = 0;
    run.add_file("90-one", "1");
    run.finish();
    run.wait(seconds(24 * 3600));
    assert!(!run.node("worker-0").is_up());
    assert!(run.holds("worker", "Updating") && !run.holds("worker", "Updated"));
    assert_eq!(run.restarts(), [1, 0, 0]);
    assert_eq!(run.most_unavailable, 1);
    run.annotate("worker-0", control::DOES_NOT_COME_BACK, None);
    run.finish();
    assert!(run.holds("worker", "Updated"));
    assert_eq!(run.restarts(), [1, 1, 1]);
}

#[test]
fn a_node_that_is_not_ready_or_cordoned_by_somebody_counts_as_unavailable() {
    for patch in [
        json!({"spec": {"unschedulable": true}}),
        json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}),
    ] {
        let mut run = Run::with_workers(3);
        crate::patch::merge(run.snapshot.nodes.get_mut("worker-2").unwrap(), &patch);
        run.add_file("90-one", "1");
        run.finish();
        assert_eq!(run.restarts(), [0, 0, 0], "{patch}");
        run.edit_pool("worker", json!({"spec": {"maxUnavailable": 2}}));
        run.finish();
        assert_eq!(run.restarts(), [1, 1, 0], "{patch}");
    }
}

#[test]
fn a_node_whose_update_fails_is_degraded_with_its_reason_until_it_succeeds() {
    let mut run = Run::with_workers(2);
    run.annotate("worker-0", control::UPDATE_FAILS, Some("the disk is full"));
    run.add_file("90-one", "1");
    run.finish();
    let failed = run.node("worker-0");
    assert_eq!((failed.state(), failed.annotation(annotation::REASON)), ("Degraded", "the disk is full"));
    assert!(run.holds("worker", "NodeDegraded") && run.holds("worker", "Degraded") && run.holds("worker", "Updating"));
    let message = run.condition("worker", "NodeDegraded")["message"].as_str().unwrap().to_owned();
    assert_eq!(message, "Node worker-0 is reporting: \"the disk is full\"");
    assert_eq!(run.pool("worker")["status"]["degradedMachineCount"], 1);
    assert_eq!(run.restarts(), [0, 0], "a failure counts against maxUnavailable");
    run.annotate("worker-0", control::UPDATE_FAILS, None);
    run.finish();
    assert_eq!(run.node("worker-0").annotation(annotation::REASON), "");
    assert!(run.holds("worker", "Updated") && !run.holds("worker", "Degraded"));
    assert_eq!(run.restarts(), [1, 1]);
}

#[test]
fn a_failed_update_ends_when_its_change_is_taken_back() {
    let mut run = Run::with_workers(2);
    let before = run.target("worker");
    run.annotate("worker-0", control::UPDATE_FAILS, Some("no"));
    run.add_file("90-one", "1");
    run.finish();
    run.snapshot.machine_configs.remove("90-one");
    run.finish();
    assert_eq!(run.target("worker"), before);
    assert_eq!(run.node("worker-0").state(), "Done");
    assert!(run.holds("worker", "Updated") && !run.holds("worker", "Degraded"));
    assert_eq!(run.restarts(), [0, 0]);
}

#[test]
fn a_change_that_no_running_node_can_take_is_unreconcilable() {
    for (spec, reason) in [
        (json!({"fips": true}), "FIPS"),
        (
            json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"directories": [{"path": "/x"}]}}}),
            "directories",
        ),
        (json!({"config": {"ignition": {"version": "3.2.0"}, "passwd": {"users": [{"name": "eve"}]}}}), "user eve"),
    ] {
        let mut run = Run::with_workers(1);
        run.add("90-one", "worker", &spec);
        run.finish();
        let node = run.node("worker-0");
        assert_eq!(node.state(), "Unreconcilable", "{spec}");
        assert!(node.annotation(annotation::REASON).contains(reason), "{spec}");
        assert!(run.holds("worker", "Degraded"));
        assert_eq!(run.restarts(), [0]);
    }
}

#[test]
fn a_node_belongs_to_master_before_a_custom_pool_and_to_that_before_worker() {
    let mut run = Run::with_workers(1);
    for name in ["infra", "gpu"] {
        run.snapshot.pools.insert(name.into(), pool(name, &["worker", name]));
    }
    for (name, roles) in [
        ("both", &["worker", "infra"][..]),
        ("compact", &["master", "worker"]),
        ("special", &["master", "infra"]),
        ("torn", &["worker", "infra", "gpu"]),
        ("other", &["storage"]),
    ] {
        run.snapshot.nodes.insert(name.into(), node(name, roles));
    }
    assert_eq!(nodes_of_pool(&run.snapshot, "worker"), ["worker-0"]);
    assert_eq!(nodes_of_pool(&run.snapshot, "infra"), ["both"]);
    assert_eq!(nodes_of_pool(&run.snapshot, "gpu"), [""; 0]);
    assert_eq!(nodes_of_pool(&run.snapshot, "master"), ["compact", "special"]);
}

#[test]
fn a_node_that_moves_to_another_pool_gets_its_configuration() {
    let mut run = Run::with_workers(2);
    run.snapshot.pools.insert("infra".into(), pool("infra", &["worker", "infra"]));
    run.add("90-infra", "infra", &file_spec("/etc/infra", "1"));
    run.finish();
    run.snapshot.nodes.get_mut("worker-1").unwrap()["metadata"]["labels"]["node-role.kubernetes.io/infra"] = json!("");
    run.finish();
    assert_eq!(run.node("worker-1").current(), run.target("infra"));
    assert_eq!(run.restarts(), [0, 1]);
    assert_eq!(run.pool("worker")["status"]["machineCount"], 1);
}

#[test]
fn nodes_are_updated_zone_by_zone_and_the_oldest_first() {
    let mut run = Run::with_workers(0);
    for (name, zone, created) in
        [("a", "z2", "2026-01-01T00:00:00Z"), ("b", "z1", "2026-01-02T00:00:00Z"), ("c", "z1", "2026-01-01T00:00:00Z")]
    {
        let mut node = node(name, &["worker"]);
        node["metadata"]["labels"]["topology.kubernetes.io/zone"] = json!(zone);
        node["metadata"]["creationTimestamp"] = json!(created);
        run.snapshot.nodes.insert(name.into(), node);
    }
    run.finish();
    run.add_file("90-one", "1");
    let mut order = Vec::new();
    for _ in 0..2_000 {
        run.wait(seconds(1));
        for name in run.working() {
            if order.last().map(String::as_str) != Some(name) {
                order.push(name.to_owned());
            }
        }
    }
    assert_eq!(order, ["c", "b", "a"]);
}
