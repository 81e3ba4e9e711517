//! Plans of which an item cannot be planned: the others are shown, and nothing is approved.

use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::OBJECTS;
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// A cluster on which a policy denies one of the objects, and a plan is asked for.
fn with_denied(object: &str) -> TestBed {
    let mut bed = TestBed::new();
    bed.refused = vec![bed.key(object)];
    bed.ask(json!({"action": "DryRun"}));
    bed.run_for(HOUR);
    bed
}

#[test]
fn one_failing_dry_run_hides_no_other_item_and_says_what_helps() {
    let mut bed = with_denied(OBJECTS[1]);
    assert_eq!(bed.phase(), "Failed");
    let status = bed.status();
    let names: Vec<&Value> = status["items"].as_array().unwrap().iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["args", "limits", "sizes"], "in their order");
    assert_eq!(bed.item("args")["restarts"], json!(["w0", "w1"]));
    assert!(bed.item("sizes")["diff"].as_str().unwrap().contains("+.data"), "{status:#}");
    let message = bed.item("limits")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("denied by a policy") && message.contains("change the policy"), "{message}");
    assert_eq!(bed.item("limits")["targetRef"]["name"], "limits");
    assert_eq!(status["planDigest"], Value::Null, "nothing can be approved");
    // An Apply meanwhile approves nothing.
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(HOUR);
    assert!(OBJECTS.iter().all(|object| bed.stored(object).is_none()));
    bed.refused.clear();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("ReviewRequired", 0), "it restarts nodes: {}", bed.lines.concat());
    assert_eq!(bed.item("limits")["operation"], "Create");
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed");
}

#[test]
fn a_plan_that_was_shown_cannot_be_approved_while_a_part_of_it_is_not_known() {
    let mut bed = TestBed::new();
    let options = json!({"advice": {"nodes": false}});
    bed.ask(json!({"action": "DryRun", "options": options}));
    bed.run();
    assert_eq!((bed.phase().as_str(), bed.status()["planDigest"].is_string()), ("ReviewRequired", true));
    bed.refused = vec![bed.key(OBJECTS[1])];
    bed.edit(OBJECTS[1], &json!({"data": {"limit": "9"}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), &bed.status()["planDigest"]), ("Failed", &Value::Null));
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(HOUR);
    bed.refused.clear();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("ReviewRequired", 0), "nobody saw this plan");
}

#[test]
fn a_dry_run_that_fails_while_a_plan_is_applied_loses_neither_the_approval_nor_what_was_written() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    bed.run_for(Duration::from_secs(30));
    assert_eq!(bed.item("args")["state"], "InProgress", "nodes restart");
    let (digest, applied) = (bed.status()["planDigest"].clone(), bed.item("args")["appliedTime"].clone());
    bed.refused = vec![bed.key(OBJECTS[1])];
    // It is compared again because an input has changed, and then as it was.
    bed.edit(HCO, &json!({"spec": {"limit": 6}}));
    bed.run_for(Duration::from_secs(30));
    assert_eq!((bed.phase().as_str(), &bed.status()["planDigest"]), ("Failed", &digest));
    assert_eq!((&bed.item("args")["appliedTime"], &bed.item("args")["state"]), (&applied, &json!("InProgress")));
    bed.edit(HCO, &json!({"spec": {"limit": null}}));
    bed.refused.clear();
    bed.run_for(2 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("Completed", 3), "{}", bed.lines.concat());
}

#[test]
fn an_apply_after_a_part_of_the_first_plan_was_shown_approves_nothing() {
    let mut bed = TestBed::new();
    bed.refused = vec![bed.key(OBJECTS[1])];
    // Nothing here restarts nodes, or needs a review for another reason.
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run_for(HOUR);
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(HOUR);
    bed.refused.clear();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("ReviewRequired", 0), "nobody saw what is planned for limits");
    assert_eq!(bed.condition("ReviewRequired")["reason"], "PlanChanged");
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed");
}

#[test]
fn a_profile_that_is_created_with_apply_is_applied_once_its_first_plan_is_complete() {
    let mut bed = TestBed::new();
    bed.refused = vec![bed.key(OBJECTS[1])];
    bed.ask(json!({"action": "Apply", "options": {"advice": {"nodes": false}}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("Failed", 0));
    bed.refused.clear();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed");
}

/// A plan that is being applied with `bypassOptimisticLock`: nodes restart for its first item.
fn bypassing() -> TestBed {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun", "bypassOptimisticLock": true}));
    bed.run();
    bed
}

#[test]
fn what_only_a_part_of_another_plan_has_shown_is_not_approved_by_that() {
    let mut bed = bypassing();
    bed.approve();
    bed.run_for(Duration::from_secs(30));
    assert_eq!(bed.item("args")["state"], "InProgress", "nodes restart");
    // Somebody applies a field of `sizes`, which is not written yet, while `limits` cannot be planned.
    bed.refused = vec![bed.key(OBJECTS[1])];
    bed.edit(HCO, &json!({"spec": {"limit": 6}}));
    let sizes = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sizes", "namespace": "virt"}, "data": {"size": "2"}});
    let key = bed.key(OBJECTS[2]);
    bed.server.apply("gitops", &key, &sizes, true).unwrap();
    bed.run_for(Duration::from_secs(30));
    assert_eq!(bed.phase(), "Failed");
    bed.edit(HCO, &json!({"spec": {"limit": null}}));
    bed.refused.clear();
    bed.run_for(2 * HOUR);
    assert_eq!(bed.item("sizes")["takesFrom"], json!(["gitops"]));
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("ReviewRequired", json!("2")));
}

#[test]
fn what_was_shown_to_restart_nodes_and_cannot_be_planned_for_a_while_needs_no_second_review() {
    let mut bed = bypassing();
    bed.refused = vec![bed.key(OBJECTS[0])];
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), &bed.item("args")["impactSeverity"]), ("Failed", &json!("High")));
    bed.refused.clear();
    let labels = json!({"machineconfiguration.openshift.io/role": "worker"});
    bed.edit(OBJECTS[0], &json!({"metadata": {"labels": labels}, "spec": {"kernelArguments": ["psi=2"]}}));
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[0], "/spec/kernelArguments")), ("Completed", json!(["psi=1"])));
}

#[test]
fn why_a_plan_waits_for_a_review_survives_a_draft_that_is_not_complete() {
    let phases =
        [("ReviewRequired", "InputsChanged"), ("CompletedWithUpgrade", "LogicChanged"), ("Drifted", "Drifted")];
    for (case, (phase, reason)) in phases.into_iter().enumerate() {
        let mut bed = TestBed::new();
        bed.complete();
        match case {
            0 => bed.edit(HCO, &json!({"spec": {"limit": 6}})),
            1 => bed.upgrade(),
            _ => bed.edit(OBJECTS[1], &json!({"data": {"limit": "9"}})),
        }
        bed.run_for(HOUR);
        assert_eq!((bed.phase().as_str(), &bed.condition(phase)["reason"]), (phase, &json!(reason)));
        let waits = |bed: &TestBed| ["InputDependencyDrift", "UpgradeAvailable"].map(|kind| bed.condition(kind));
        let (before, writes) = (waits(&bed), bed.sent.1);
        bed.refused = vec![bed.key(OBJECTS[2])];
        bed.edit(OBJECTS[2], &json!({"data": {"another": "x"}}));
        bed.run_for(HOUR);
        assert_eq!((bed.phase().as_str(), waits(&bed)), ("Failed", before.clone()), "{reason}");
        bed.refused.clear();
        bed.run_for(HOUR);
        assert_eq!((bed.phase().as_str(), &bed.condition(phase)["reason"]), (phase, &json!(reason)));
        assert_eq!((waits(&bed), bed.sent.1), (before, writes), "{reason}");
    }
}

#[test]
fn a_slow_webhook_that_denies_is_asked_less_and_less_and_nothing_is_published_meanwhile() {
    use crate::Notice;
    use protocol::{Command, Core as _};
    let is_try = |request: &Command<Notice>| matches!(request, Command::Preview { key, .. } if key.name == "limits");
    let mut bed = TestBed::new();
    bed.refused = vec![bed.key(OBJECTS[1])];
    bed.ask(json!({"action": "DryRun"}));
    bed.run_until(is_try);
    let (mut pauses, mut published) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        // Its answer takes so long that a plan that is made for the first time would be announced.
        let (tries, others) = std::mem::take(&mut bed.requests).into_iter().partition(is_try);
        (bed.requests, published) = (others, [published, vec![bed.sent.0]].concat());
        bed.run_for(Duration::from_secs(5));
        Vec::into_iter(tries).for_each(|request| bed.carry_out(request));
        bed.run();
        assert_eq!(bed.phase(), "Failed");
        let answered = bed.now().monotonic;
        while !bed.requests.iter().any(is_try) {
            bed.run();
            let next = bed.core.wake_at().expect("it is tried again");
            bed.set_clock(next);
            bed.handle(Vec::new());
        }
        pauses.push(bed.now().monotonic.elapsed() - answered.elapsed());
    }
    assert!(pauses.is_sorted() && pauses[9] >= Duration::from_secs(60), "{pauses:?}");
    assert_eq!(published[1], bed.sent.0, "the status says already that it is tried again: {published:?}");
    bed.refused.clear();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "ReviewRequired");
}
