//! The status of a pool: counts, conditions and their times, and its lag.

use super::{Run, seconds};
use serde_json::{Value, json};

fn counts(run: &Run) -> [i64; 5] {
    let status = &run.pool("worker")["status"];
    ["machineCount", "updatedMachineCount", "readyMachineCount", "unavailableMachineCount", "degradedMachineCount"]
        .map(|count| status[count].as_i64().unwrap_or(-1))
}

#[test]
fn the_counts_follow_the_rollout() {
    let mut run = Run::with_workers(3);
    assert_eq!(counts(&run), [3, 3, 3, 0, 0]);
    run.add_file("90-one", "1");
    run.wait(seconds(5 + 5));
    assert_eq!(counts(&run), [3, 0, 0, 1, 0], "one is being updated, none has the new configuration");
    run.wait(seconds(360));
    assert_eq!(counts(&run), [3, 1, 1, 1, 0]);
    run.wait(seconds(360));
    assert_eq!(counts(&run), [3, 2, 2, 1, 0]);
    run.wait(seconds(360));
    assert_eq!(counts(&run), [3, 3, 3, 0, 0]);
}

#[test]
fn the_status_lags_behind_the_spec_and_the_nodes() {
    let mut run = Run::with_workers(2);
    let observed = |run: &Run| {
        let pool = run.pool("worker");
        (pool["metadata"]["generation"] == pool["status"]["observedGeneration"], run.holds("worker", "Updating"))
    };
    assert_eq!(observed(&run), (true, false));
    run.add_file("90-one", "1");
    run.wait(seconds(4));
    assert_eq!(observed(&run), (true, false), "nobody knows of the change before it is rendered");
    run.wait(seconds(1));
    assert_eq!(run.working(), ["worker-0"]);
    assert_eq!(observed(&run), (false, false), "a node is already being updated");
    run.wait(seconds(4));
    assert_eq!(observed(&run), (false, false));
    run.wait(seconds(1));
    assert_eq!(observed(&run), (true, true));
    assert_eq!(counts(&run), [2, 0, 0, 1, 0]);
}

#[test]
fn the_configuration_in_the_status_changes_when_all_machines_run_it() {
    let mut run = Run::with_workers(2);
    let running = |run: &Run| run.pool("worker")["status"]["configuration"].clone();
    let before = running(&run);
    assert_eq!(before["name"], run.target("worker"));
    assert_eq!(before["source"].as_array().map(Vec::len), Some(2));
    run.add_file("90-one", "1");
    run.wait(seconds(5 + 360 + 100));
    assert_eq!(running(&run), before, "one of two is updated");
    run.finish();
    assert_eq!(running(&run), run.pool("worker")["spec"]["configuration"]);
    assert_ne!(running(&run), before);
}

#[test]
fn a_condition_has_the_time_of_its_last_change() {
    let mut run = Run::with_workers(1);
    let times =
        |run: &Run| ["Updated", "Degraded"].map(|kind| run.condition("worker", kind)["lastTransitionTime"].clone());
    let before = times(&run);
    let started = run.now;
    run.wait(seconds(1000));
    run.add_file("90-one", "1");
    run.finish();
    let after = times(&run);
    assert_ne!(before[0], after[0]);
    assert_eq!(before[1], after[1], "it never changed");
    let seconds_of = |time: &Value| time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_second();
    let epoch = seconds_of(&json!("2026-01-01T00:00:00Z"));
    let expected = i64::try_from((started + seconds(1000 + 5 + 360 + 5)).as_secs()).unwrap();
    assert_eq!(seconds_of(&after[0]) - epoch, expected);
}

#[test]
fn an_empty_pool_is_updated_at_once() {
    let mut run = Run::with_workers(0);
    run.add_file("90-one", "1");
    run.finish();
    assert_eq!(counts(&run), [0, 0, 0, 0, 0]);
    assert!(run.holds("worker", "Updated"));
    assert_eq!(run.pool("worker")["status"]["configuration"]["name"], run.target("worker"));
}
