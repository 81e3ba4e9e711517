//! What users of the predecessor saw, one test for each of its faults: B1 to B16 were found by reading it, N1 to N5 and N8 by running it. N6 and N7 are about
//! roles and options: `crates/operator/tests/it/advisor_deployed.rs` and `virt_platform_config.rs`. Those that depend on the profiles that are shipped are also
//! tested with these: `crates/operator/tests/it/go_advisor_faults.rs`.

use crate::testing::bed::{HCO, MACHINE_CONFIGS, TestBed};
use crate::testing::pack::{self, DENSITY, OBJECTS, PROFILE};
use mco_stand_in::control;
use protocol::Command;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const POOL: &str = "MachineConfigPool worker";
/// Where the profile DENSITY has its mode.
const MODE: &str = "ConfigMap virt/descheduler";

/// All phases, each of which has its condition.
const PHASES: [&str; 11] = [
    "Pending",
    "Drafting",
    "ReviewRequired",
    "InProgress",
    "Completed",
    "CompletedWithErrors",
    "CompletedWithUpgrade",
    "Drifted",
    "Failed",
    "PrerequisiteFailed",
    "Ignored",
];

/// How many writes of objects were made.
fn written(bed: &TestBed) -> usize {
    bed.promises.checked
}

/// A plan that is approved, whose first item waits for nodes that do not come back.
fn hanging(failure_policy: &str, wait: &str) -> TestBed {
    let mut bed = TestBed::new();
    bed.edit("Node w0", &json!({"metadata": {"annotations": {control::DOES_NOT_COME_BACK: "true"}}}));
    bed.ask(json!({"action": "DryRun", "failurePolicy": failure_policy, "waitTimeout": wait}));
    bed.run();
    bed.approve();
    bed
}

// B1: an item that did not become healthy in time was Failed, and the profile nevertheless Completed.
#[test]
fn a_pool_that_hangs_makes_the_profile_failed_and_not_completed() {
    let mut bed = hanging("Abort", "30m");
    bed.run_for(2 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.item("args")["state"].as_str()), ("Failed", Some("Failed")));
    assert_eq!(bed.item("limits")["state"], "Pending", "the rest is not applied");
    assert_eq!(
        (bed.condition("Ready")["status"].as_str(), bed.condition("Degraded")["status"].as_str()),
        (Some("False"), Some("True"))
    );
    let mut bed = hanging("Continue", "30m");
    bed.run_for(2 * HOUR);
    assert_eq!(bed.phase(), "CompletedWithErrors");
    assert_eq!(bed.item("limits")["state"], "Completed", "the rest is applied");
}

// B2: with the action DryRun objects were written when a pool rolled for another reason, and an edit of a person was reverted.
#[test]
fn nothing_is_written_in_dry_run_while_a_pool_rolls_for_another_reason() {
    let mut bed = TestBed::new();
    bed.complete();
    let before = written(&bed);
    bed.ask(json!({"action": "DryRun", "approvedPlan": null}));
    bed.edit(
        "MachineConfig 50-foreign",
        &json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": ["quiet"]}}),
    );
    bed.run_for(MINUTE);
    bed.edit(OBJECTS[0], &json!({"spec": {"kernelArguments": ["psi=0"]}}));
    bed.run_for(3 * HOUR);
    assert_eq!((written(&bed), bed.value(OBJECTS[0], "/spec/kernelArguments/0")), (before, json!("psi=0")));
}

// B3: an edit of the options under review, after completion or in progress was lost, and an old plan was applied.
#[test]
fn edited_options_are_planned_in_every_phase() {
    let size = |bed: &TestBed| bed.item("sizes")["desiredState"]["data"]["size"].clone();
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    let old = bed.status()["planDigest"].clone();
    bed.ask(json!({"options": {"advice": {"size": 50}}}));
    bed.run();
    assert_eq!((bed.phase().as_str(), size(&bed)), ("ReviewRequired", json!("50")));
    bed.ask(json!({"action": "Apply", "approvedPlan": old}));
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "the plan before the edit is not applied");
    assert_eq!(bed.condition("Ready")["reason"], "AnotherPlanApproved");
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Completed", json!("50")));
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"size": 60}}}));
    bed.run();
    assert_eq!((bed.phase().as_str(), size(&bed)), ("ReviewRequired", json!("60")));
    bed.ask(json!({"action": "Apply", "approvedPlan": null}));
    bed.run_until(|request| matches!(request, Command::Write(write) if write.key.name == "sizes"));
    bed.ask(json!({"options": {"advice": {"size": 70}}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), size(&bed)), ("ReviewRequired", json!("70")), "nobody has seen that plan");
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!(
        (bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")),
        ("Completed", json!("70")),
        "{}",
        bed.lines.concat()
    );
}

// B4: where a derived value has no field in the installed version, the profile was planned again and again, as fast as the server answered.
#[test]
fn an_input_that_nothing_stores_does_not_make_a_loop() {
    let mut bed = TestBed::new();
    bed.edit(HCO, &json!({"spec": {"other": 3}}));
    bed.complete();
    let asked = bed.asked;
    bed.run_for(24 * HOUR);
    assert_eq!(bed.asked - asked, 0, "no request in a day");
}

// B5: the profile was Completed before the machine-config operator had begun.
#[test]
fn a_profile_is_not_completed_before_the_nodes_have_followed() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    bed.run();
    let updated = bed.value(POOL, "/status/conditions/3");
    assert_eq!((updated["type"].as_str(), updated["status"].as_str()), (Some("Updated"), Some("True")), "as before");
    assert_eq!(bed.phase(), "InProgress");
    for _ in 0..200 {
        if bed.phase() == "Completed" {
            break;
        }
        assert!(bed.stored(OBJECTS[1]).is_none() || bed.restarts_of("w1") == 1, "the next item waits for all nodes");
        bed.run_for(Duration::from_secs(10));
    }
    assert_eq!((bed.phase().as_str(), bed.restarts_of("w0"), bed.restarts_of("w1")), ("Completed", 1, 1));
}

// B6: a timeout was noticed only when something else happened, was counted from an earlier completion, or never.
#[test]
fn a_timeout_has_its_own_timer_and_counts_from_the_write() {
    let mut bed = hanging("Abort", "10m");
    // The stand-in is stopped, so that nothing else happens.
    bed.run_until(|request| matches!(request, Command::Write(write) if write.key.name == "90-args"));
    bed.stand_in = None;
    bed.run_for(9 * MINUTE);
    assert_eq!(bed.phase(), "InProgress");
    bed.run_for(2 * MINUTE);
    assert_eq!(bed.phase(), "Failed");
    assert!(
        bed.item("args")["message"].as_str().unwrap().starts_with("not healthy after 10 min"),
        "{}",
        bed.item("args")
    );
}

// B6: weeks later, an update of the platform made a completed item fail at once.
#[test]
fn a_rollout_of_somebody_else_does_not_fail_what_was_completed() {
    let mut bed = TestBed::new();
    bed.ask(json!({"waitTimeout": "10m"}));
    bed.complete();
    bed.run_for(400 * HOUR);
    bed.edit(
        "MachineConfig 50-foreign",
        &json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": ["quiet"]}}),
    );
    bed.run_for(2 * MINUTE);
    assert_eq!(bed.phase(), "Completed");
}

// B7: another version of the operator was reported as a changed plan although nothing had changed, and real drift was not reported then.
#[test]
fn a_new_version_is_a_new_plan_only_if_it_wants_something_else() {
    let mut bed = TestBed::new();
    bed.complete();
    let sent = bed.sent.0;
    bed.restart();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.0), ("Completed", sent), "the same plan is no news");
    bed.upgrade();
    bed.run_for(HOUR);
    assert_eq!(
        (bed.phase().as_str(), bed.condition("UpgradeAvailable")["status"].as_str()),
        ("CompletedWithUpgrade", Some("True"))
    );
    assert_eq!(bed.value(OBJECTS[1], "/data/release"), "1", "nothing is applied without a review");
    // Somebody aligns the cluster by hand.
    bed.edit(OBJECTS[1], &json!({"data": {"release": "2"}}));
    bed.run_for(HOUR);
    assert_eq!(
        (bed.phase().as_str(), bed.condition("UpgradeAvailable")["status"].as_str()),
        ("Completed", Some("False"))
    );
    bed.edit(OBJECTS[2], &json!({"data": {"size": "9"}}));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Drifted");
}

// B7, with bypassOptimisticLock: what a new version wants is reviewed in any case.
#[test]
fn bypassing_the_lock_applies_neither_an_upgrade_nor_a_changed_input_without_a_review() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun", "bypassOptimisticLock": true}));
    bed.run();
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed");
    bed.edit(HCO, &json!({"spec": {"limit": 50}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[1], "/data/limit")), ("ReviewRequired", json!("5")));
    bed.edit(HCO, &json!({"spec": {"limit": null}}));
    bed.run_for(HOUR);
    bed.upgrade();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[1], "/data/release")), ("CompletedWithUpgrade", json!("1")));
}

// B8: a changed input was reported as drift, without the condition that names it; each input counts by itself.
#[test]
fn a_changed_input_is_named_and_asks_for_a_review_and_one_that_goes_back_asks_no_more() {
    let mut bed = TestBed::new();
    bed.complete();
    bed.edit(HCO, &json!({"spec": {"limit": 50}}));
    bed.run_for(MINUTE);
    assert_eq!(
        (bed.phase().as_str(), bed.condition("InputDependencyDrift")["status"].as_str()),
        ("ReviewRequired", Some("True"))
    );
    let message = bed.condition("InputDependencyDrift")["message"].clone();
    assert!(
        message.as_str().unwrap().contains("limit (not set -> 50)") && !message.as_str().unwrap().contains("other"),
        "{message}"
    );
    assert_eq!(bed.value(OBJECTS[1], "/data/limit"), "5");
    bed.edit(HCO, &json!({"spec": {"limit": null}}));
    bed.run_for(MINUTE);
    assert_eq!(
        (bed.phase().as_str(), bed.condition("InputDependencyDrift")["status"].as_str()),
        ("Completed", Some("False"))
    );
}

// B9: an option was dropped on its way: who asked for Predictive, which simulates, was shown and given Automatic, which evicts.
#[test]
fn who_asks_for_a_simulation_is_neither_shown_nor_given_the_mode_that_evicts() {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    let shown = |bed: &TestBed| bed.item("descheduler")["desiredState"]["data"]["mode"].clone();
    bed.ask(json!({"action": "DryRun", "options": {"density": {"mode": "Predictive"}}}));
    bed.run();
    assert_eq!(shown(&bed), "Predictive");
    assert!(bed.item("descheduler")["diff"].as_str().unwrap().contains("Predictive"), "{}", bed.item("descheduler"));
    bed.approve();
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.value(MODE, "/data/mode")), ("Completed", json!("Predictive")));
    bed.ask(json!({"action": "DryRun", "options": null}));
    bed.run();
    assert_eq!((bed.phase().as_str(), shown(&bed)), ("ReviewRequired", json!("Automatic")), "the default");
    assert_eq!(bed.value(MODE, "/data/mode"), "Predictive", "until it is approved");
}

// B9, for every option there is: each alone changes the plan.
#[test]
fn no_option_is_dropped_on_its_way_into_the_plan() {
    let plan = |profile: &'static str, spec: serde_json::Value| {
        let mut bed = TestBed::new();
        bed.profile = profile;
        bed.ask(spec);
        bed.run();
        assert_eq!(bed.phase(), "ReviewRequired", "{}", bed.lines.concat());
        let items = bed.status()["items"].clone();
        items.as_array().unwrap().iter().map(|item| item["desiredState"].clone()).collect::<Vec<_>>()
    };
    let mut tried = Vec::new();
    for name in [PROFILE, DENSITY] {
        let catalog = pack::catalog(1);
        let profile = catalog.profiles.iter().find(|profile| profile.name == name).unwrap();
        let options = profile.options.as_ref().unwrap();
        let default = plan(name, json!({"action": "DryRun"}));
        for (option, schema) in &options.properties {
            let value = match schema["type"].as_str() {
                Some("boolean") => json!(schema["default"] != true),
                Some("integer") => json!(3),
                _ => schema["enum"].as_array().unwrap().last().unwrap().clone(),
            };
            let spec = json!({"action": "DryRun", "options": {options.key.as_str(): {option.as_str(): value}}});
            assert_ne!(plan(name, spec), default, "{option} of {name} changes nothing");
            tried.push(option.clone());
        }
    }
    assert_eq!(tried, ["nodes", "size", "enableSwap", "mode"]);
}

// B10: once reported, drift was reported for ever, although the value was put back by hand.
#[test]
fn drift_that_is_put_back_by_hand_is_no_drift() {
    let mut bed = TestBed::new();
    bed.complete();
    bed.edit(OBJECTS[2], &json!({"data": {"size": "9"}}));
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "Drifted");
    assert!(bed.item("sizes")["diff"].as_str().unwrap().contains("-.data.size: \"9\""), "{}", bed.item("sizes"));
    bed.edit(OBJECTS[2], &json!({"data": {"size": "7"}}));
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.item("sizes")["diff"].as_str()), ("Completed", None));
}

// B11: options that cannot be used made a loop of status updates.
#[test]
fn a_spec_that_cannot_be_used_is_said_once_and_waits_for_an_edit() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun", "options": {}, "waitTimeout": "soon"}));
    bed.run();
    let (asked, sent) = (bed.asked, bed.sent.0);
    bed.run_for(24 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.asked, bed.sent.0), ("PrerequisiteFailed", asked, sent));
    bed.ask(json!({"waitTimeout": "10m"}));
    bed.run();
    assert_eq!(bed.phase(), "ReviewRequired");
}

// B12: CompletedWithErrors had the condition Completed, and a failed item was never tried again.
#[test]
fn an_item_that_was_refused_is_tried_again_and_until_then_nothing_is_completed() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun", "failurePolicy": "Continue", "options": {"advice": {"nodes": false}}}));
    bed.run();
    bed.approve();
    bed.run_until(|request| matches!(request, Command::Write(write) if write.key.name == "limits"));
    let limits = bed.key(OBJECTS[1]);
    bed.refused_writes.push(limits);
    bed.run_for(MINUTE);
    assert_eq!((bed.phase().as_str(), bed.item("limits")["state"].as_str()), ("CompletedWithErrors", Some("Failed")));
    assert_eq!(bed.item("sizes")["state"], "Completed");
    assert_ne!(bed.condition("Completed")["status"], "True");
    assert_eq!(bed.condition("Ready")["status"], "False");
    bed.refused_writes.clear();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.item("limits")["state"].as_str()), ("Completed", Some("Completed")));
}

// B13: several phases were true at a time, times moved without a change, and a condition that was false said that all was applied.
#[test]
fn one_phase_is_true_at_a_time_and_its_time_moves_only_when_it_changes() {
    let mut bed = TestBed::new();
    let mut visited = BTreeSet::new();
    let mut expect_one = |bed: &TestBed| {
        visited.insert(bed.phase());
        let is_true = |phase: &&str| bed.condition(phase)["status"] == "True";
        assert_eq!(PHASES.iter().filter(|phase| is_true(phase)).collect::<Vec<_>>(), [&bed.phase()]);
        // Those that are over say so.
        for phase in visited.iter().filter(|phase| **phase != bed.phase()) {
            assert_eq!(bed.condition(phase)["status"], "False", "{phase} in {}", bed.phase());
        }
    };
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    expect_one(&bed);
    let since = bed.condition("ReviewRequired")["lastTransitionTime"].clone();
    bed.run_for(MINUTE);
    bed.edit(OBJECTS[2], &json!({"data": {"size": "9"}}));
    bed.run_for(MINUTE);
    assert_eq!(bed.condition("ReviewRequired")["lastTransitionTime"], since, "only the plan is another one");
    bed.approve();
    bed.run_for(3 * HOUR);
    expect_one(&bed);
    assert_ne!(bed.condition("ReviewRequired")["message"], bed.condition("Completed")["message"]);
    assert_eq!(bed.condition("Ready")["status"], "True");
    // Each of the phases after completion is left again.
    bed.upgrade();
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "CompletedWithUpgrade");
    expect_one(&bed);
    bed.ask(json!({"action": "DryRun", "failurePolicy": "Continue"}));
    bed.run();
    let limits = bed.key(OBJECTS[1]);
    bed.refused_writes.push(limits);
    bed.approve();
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "CompletedWithErrors");
    expect_one(&bed);
    bed.refused_writes.clear();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed");
    expect_one(&bed);
    bed.edit(OBJECTS[2], &json!({"data": {"size": "9"}}));
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "Drifted");
    expect_one(&bed);
}

// B14: on compact and single-node clusters, whose worker pool has no machine, a profile never completed.
#[test]
fn a_pool_without_machines_is_not_waited_for() {
    let mut bed = TestBed::with_workers(&[]);
    bed.complete();
}

// B15: keys of others below ours were reported as drift without a difference.
#[test]
fn a_key_of_somebody_else_is_no_drift() {
    let mut bed = TestBed::new();
    bed.complete();
    bed.edit(OBJECTS[2], &json!({"data": {"theirs": "1"}, "metadata": {"labels": {"theirs": "1"}}}));
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "Completed");
    bed.edit(OBJECTS[0], &json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "master"}}}));
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "Drifted", "a label that we want is ours");
}

// B16: one failed request while a plan was made was final.
#[test]
fn a_plan_that_cannot_be_made_is_tried_again() {
    let mut bed = TestBed::new();
    let limits = bed.key(OBJECTS[1]);
    bed.refused.push(limits);
    bed.ask(json!({"action": "DryRun"}));
    bed.run_for(Duration::from_secs(10));
    assert_eq!((bed.phase().as_str(), bed.condition("Failed")["reason"].as_str()), ("Failed", Some("PlanFailed")));
    assert!(bed.condition("Failed")["message"].as_str().unwrap().contains("denied by a policy"));
    bed.refused.clear();
    bed.run_for(5 * MINUTE);
    assert_eq!(bed.phase(), "ReviewRequired");
}

// N1: results were written into a copy that was thrown away: items said InProgress for ever, and every object was written twice.
#[test]
fn every_item_says_what_became_of_it_and_every_object_is_written_once() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    let limits = bed.key(OBJECTS[1]);
    bed.refused_writes.push(limits);
    bed.run_for(3 * HOUR);
    let states = ["args", "limits", "sizes"].map(|item| bed.item(item)["state"].as_str().unwrap().to_owned());
    assert_eq!((bed.phase().as_str(), states), ("Failed", ["Completed", "Failed", "Pending"].map(str::to_owned)));
    assert!(bed.sent.1 < 150, "{} writes in three hours: what is refused is tried less and less often", bed.sent.1);
    bed.refused_writes.clear();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("Completed", 3));
}

// N2: where a kind was not served in the version it insisted on, the process was ready, did nothing and ended after two minutes.
#[test]
fn a_kind_that_is_not_served_is_named_and_planned_when_it_is_installed() {
    let mut bed = TestBed::new();
    bed.server.remove_crd(&MACHINE_CONFIGS);
    bed.stand_in = None;
    bed.ask(json!({"action": "DryRun"}));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "PrerequisiteFailed");
    assert!(
        bed.condition("PrerequisiteFailed")["message"].as_str().unwrap().contains("machineconfigs"),
        "{}",
        bed.status()
    );
    bed.server.install_crd(&MACHINE_CONFIGS);
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "ReviewRequired", "without a restart");
}

// N3: after a few rounds with another controller its value was taken for ours, and the profile was Completed.
#[test]
fn a_fight_over_a_value_ends_as_drift_and_not_as_success() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "Apply", "bypassOptimisticLock": true, "options": {"advice": {"nodes": false}}}));
    bed.run_for(MINUTE);
    assert_eq!(bed.phase(), "Completed");
    let mut rounds = 0;
    while bed.phase() != "Drifted" {
        bed.edit(OBJECTS[2], &json!({"data": {"size": "999"}}));
        bed.run_for(Duration::from_secs(5));
        rounds += 1;
        assert!(rounds < 20, "it fights for ever");
    }
    assert_eq!(
        (bed.value(OBJECTS[2], "/data/size"), bed.condition("Drifted")["reason"].as_str()),
        (json!("999"), Some("CorrectionsStopped"))
    );
    assert!(rounds > 1, "drift is corrected at first");
}

// N4: a paused pool looked as if it made progress.
#[test]
fn a_paused_pool_is_said_to_be_paused() {
    let mut bed = TestBed::new();
    bed.edit(POOL, &json!({"spec": {"paused": true}}));
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    bed.run_for(HOUR);
    let message = bed.item("args")["message"].as_str().unwrap_or_default().to_owned();
    assert!(bed.phase() == "InProgress" && message.contains("paused") && message.contains("resume"), "{message}");
    bed.edit(POOL, &json!({"spec": {"paused": false}}));
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed");
}

// N5: without a HyperConverged one was created, and the profile was Completed.
#[test]
fn a_profile_that_changes_the_hyperconverged_never_creates_one() {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    let hco = bed.stored(HCO).unwrap().object.clone();
    bed.delete(HCO);
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    assert!(bed.item("overcommit").is_null() && bed.item("swap").is_object(), "{}", bed.status());
    bed.approve();
    bed.run_for(HOUR);
    assert!(bed.stored(HCO).is_none(), "{}", bed.lines.concat());
    // Once there is one, it is changed after another approval, and not before.
    bed.create(&json!({"apiVersion": hco["apiVersion"], "kind": hco["kind"],
        "metadata": {"name": hco["metadata"]["name"], "namespace": hco["metadata"]["namespace"]}, "spec": {}}));
    bed.run_for(HOUR);
    assert_eq!(
        (bed.item("overcommit")["operation"].as_str(), bed.value(HCO, "/spec/overcommit")),
        (Some("Update"), json!(null))
    );
    assert_ne!(bed.phase(), "Completed");
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(HCO, "/spec/overcommit")), ("Completed", json!(150)));
}

// N5, between the plan and the write: the approved change of an object that is gone is not its creation.
#[test]
fn a_hyperconverged_that_is_deleted_just_before_it_is_changed_stays_deleted() {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    bed.run_until(|request| matches!(request, Command::Write(write) if write.key.name == api::hco::NAME));
    bed.delete(HCO);
    bed.run_for(HOUR);
    assert!(bed.stored(HCO).is_none(), "{}", bed.lines.concat());
    assert_ne!(bed.phase(), "Completed");
}

// N8: memory grew with every CRD and every MachineConfig of the cluster, because all of them were kept whole.
#[test]
fn memory_does_not_grow_with_the_content_of_objects_that_no_plan_is_about() {
    const LARGE: usize = 100 * 1024;
    // What the core holds, printed, is a measure of what it keeps in memory.
    let kept = |bed: &TestBed| format!("{:?}", bed.core).len();
    let mut bed = TestBed::new();
    bed.complete();
    // It would look at all objects again and again.
    bed.stand_in = None;
    let (before, asked) = (kept(&bed), bed.asked);
    let content = "x".repeat(LARGE);
    for number in 0..20 {
        let name = format!("50-other-{number}");
        bed.create(&json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
            "metadata": {"name": name, "labels": {"machineconfiguration.openshift.io/role": "other"}},
            "spec": {"config": content}}));
        bed.create(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("others{number}.example.com")}, "spec": {"schema": content}}));
        bed.create(&json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "virt"}, "data": {"large": content}}));
    }
    bed.run_for(HOUR);
    let grown = kept(&bed) - before;
    assert!(grown < 60 * 1024, "{grown} bytes more for 60 objects of {LARGE} bytes that no plan is about");
    // Nor are they read one by one.
    let read = bed.asked - asked;
    assert!(read < 10, "{read} requests");
    // A new process lists them all at its start.
    bed.restart();
    bed.run_for(HOUR);
    let grown = kept(&bed).saturating_sub(before);
    assert!(grown < 60 * 1024, "{grown} bytes more after a restart");
}
