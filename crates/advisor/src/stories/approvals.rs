//! What approves a plan, and what does not.

use crate::testing::bed::{Fault, HCO, MACHINE_CONFIGS, TestBed};
use crate::testing::pack::{DENSITY, OBJECTS, OVERCOMMIT_ONLY, PROFILE};
use protocol::Command;
use serde_json::json;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// How many writes were made that are not of a status.
fn written(bed: &TestBed) -> usize {
    bed.sent.1
}

#[test]
fn a_profile_that_the_predecessor_applied_is_reviewed_before_anything_is_written() {
    let mut bed = TestBed::new();
    let object = json!({"spec": {"profile": PROFILE, "action": "Apply"}, "status": {"phase": "Completed", "operatorVersion": "v0.1.31"}});
    bed.edit(&format!("VirtPlatformConfig {PROFILE}"), &object);
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
    bed.restart();
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed");
}

#[test]
fn an_edit_of_the_spec_that_is_no_approval_approves_nothing() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed");
    bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
    bed.run_for(HOUR);
    let before = written(&bed);
    for edit in [json!({"waitTimeout": "10m"}), json!({"failurePolicy": "Continue"}), json!({"remediation": "Manual"})]
    {
        bed.ask(edit);
        bed.run_for(HOUR);
        assert_eq!(bed.value(OBJECTS[2], "/data/size"), "mine", "{}", bed.lines.concat());
    }
    assert_eq!(written(&bed), before);
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    assert_ne!(bed.value(OBJECTS[2], "/data/size"), "mine");
}

#[test]
fn options_that_were_swapped_after_the_plan_was_shown_are_not_applied() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.ask(json!({"options": {"advice": {"size": 70}}}));
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
}

#[test]
fn drift_of_a_profile_that_was_approved_by_its_digest_is_corrected_if_asked_for() {
    let mut bed = TestBed::new();
    bed.complete_with(json!({"remediation": "Automatic"}));
    let wanted = bed.value(OBJECTS[2], "/data/size");
    for _ in 0..2 {
        bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
        bed.run_for(2 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Completed", wanted.clone()));
    }
    // Nodes still run what was approved, so that bringing it back restarts none.
    bed.edit(OBJECTS[0], &json!({"spec": {"kernelArguments": ["mine=1"]}}));
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Completed", 1));
}

#[test]
fn a_plan_that_restarts_nodes_is_not_applied_before_somebody_could_read_it() {
    for reads_first in [false, true] {
        let mut bed = TestBed::new();
        bed.ask(json!({"action": "Apply"}));
        bed.run_for(3 * HOUR);
        bed.restart();
        bed.run_for(3 * HOUR);
        assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
        assert_eq!(bed.condition("ReviewRequired")["reason"], "PlanUnseen");
        match reads_first {
            true => {
                bed.ask(json!({"action": "DryRun"}));
                bed.run();
                bed.ask(json!({"action": "Apply"}));
            }
            false => bed.approve(),
        }
        bed.run_for(3 * HOUR);
        assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    }
}

#[test]
fn a_plan_that_restarts_nothing_and_takes_nothing_away_is_applied_as_soon_as_it_is_made() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "Apply", "options": {"advice": {"nodes": false}}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("Completed", 2), "{}", bed.lines.concat());
}

#[test]
fn what_would_restart_nodes_or_take_fields_that_somebody_else_applies_is_not_corrected_without_a_review() {
    let completed = || {
        let mut bed = TestBed::new();
        bed.complete_with(json!({"remediation": "Automatic"}));
        bed
    };
    let mut bed = completed();
    let sizes = bed.key(OBJECTS[2]);
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "sizes", "namespace": "virt"}, "data": {"size": "theirs"}});
    bed.server.apply("argocd", &sizes, &theirs, true).unwrap();
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Drifted", json!("theirs")));
    assert_eq!(bed.item("sizes")["takesFrom"], json!(["argocd"]));
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Completed", json!("7")));

    let mut bed = completed();
    bed.edit(OBJECTS[0], &json!({"spec": {"kernelArguments": ["mine=1"]}}));
    // Nodes follow the edit while the operator is down.
    bed.run_nodes();
    while let Some(at) = bed.nodes_wake_at() {
        bed.set_clock(at);
        bed.run_nodes();
    }
    bed.restart();
    let restarts = bed.restarts_of("w0");
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Drifted", restarts), "{}", bed.lines.concat());
    assert_eq!(bed.value(OBJECTS[0], "/spec/kernelArguments"), json!(["mine=1"]));
}

#[test]
fn drift_that_nodes_have_followed_meanwhile_is_not_shown_as_harmless_any_more() {
    let mut bed = TestBed::new();
    bed.complete();
    bed.edit(OBJECTS[0], &json!({"spec": {"kernelArguments": ["mine=1"]}}));
    bed.run();
    let first = bed.status()["planDigest"].clone();
    assert_eq!(bed.item("args")["impactSeverity"], "Low", "nodes still run what the profile wants");
    bed.run_for(3 * HOUR);
    assert_eq!(bed.item("args")["impactSeverity"], "High", "{}", bed.lines.concat());
    assert_ne!(bed.status()["planDigest"], first);
}

#[test]
fn a_spec_that_names_no_plan_any_more_approves_nothing_by_that() {
    let mut bed = TestBed::new();
    bed.complete();
    bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Drifted");
    bed.ask(json!({"approvedPlan": null}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Drifted", json!("mine")));
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Completed", json!("7")));
}

#[test]
fn bypassing_the_lock_applies_no_plan_that_restarts_nodes_and_was_never_shown() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "Apply", "bypassOptimisticLock": true}));
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
}

#[test]
fn an_object_that_a_finalizer_keeps_is_waited_for_and_is_no_drift() {
    let mut bed = TestBed::new();
    bed.complete();
    bed.edit(OBJECTS[0], &json!({"metadata": {"finalizers": ["example.com/slow"]}}));
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "InProgress", "{}", bed.lines.concat());
    assert_eq!(bed.item("args")["message"], "it is being deleted");
    bed.edit(OBJECTS[0], &json!({"metadata": {"finalizers": null}}));
    bed.run();
    assert_eq!(bed.phase(), "InProgress", "nodes follow");
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.restarts_of("w0")), ("Completed", 2), "{}", bed.lines.concat());
}

#[test]
fn writes_that_never_arrive_are_tried_again_with_growing_pauses() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    let before = bed.sent;
    bed.faults = std::iter::repeat_n(Some(Fault::Lost), 60).collect();
    bed.run_for(Duration::from_secs(60));
    let sent = bed.sent.0 + bed.sent.1 - before.0 - before.1;
    assert!((3..=12).contains(&sent), "{sent} requests in a minute");
    bed.run_for(6 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

#[test]
fn writes_of_an_object_that_the_server_cannot_take_are_tried_again_with_growing_pauses() {
    let mut bed = TestBed::new();
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    // The status arrives, the object does not.
    bed.faults = std::iter::once(None).chain(std::iter::repeat_n(Some(Fault::Lost), 3)).collect();
    let before = written(&bed);
    bed.run_for(Duration::from_secs(3));
    assert!((1..=3).contains(&(written(&bed) - before)), "{}", bed.lines.concat());
    bed.run_for(6 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
}

/// A plan for a swap file, the HyperConverged and a descheduler, which is approved and about to write the first.
fn writing_swap() -> TestBed {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.ask(json!({"action": "DryRun"}));
    bed.run();
    bed.approve();
    bed.run_until(|request| matches!(request, Command::Write(write) if write.key.name == "swap"));
    bed
}

#[test]
fn an_approved_item_that_a_later_plan_leaves_out_ends_the_approval_of_the_others() {
    let mut bed = writing_swap();
    let approved = bed.status()["planDigest"].clone();
    // Without a HyperConverged there is nothing to change: the plan has two items now.
    bed.delete(HCO);
    bed.run_for(3 * HOUR);
    let descheduler = "ConfigMap virt/descheduler";
    assert!(
        bed.stored(descheduler).is_none(),
        "it was approved together with the item that is gone: {}",
        bed.lines.concat()
    );
    assert_eq!(written(&bed), 1);
    assert_ne!(bed.status()["planDigest"], approved);
    assert!(bed.item("overcommit").is_null(), "{}", bed.status());
    assert_eq!(
        (bed.item("swap")["state"].as_str(), bed.item("descheduler")["state"].as_str()),
        (Some("Completed"), Some("Pending"))
    );
    // Nobody has changed what was applied, and what is different is named.
    assert_eq!(
        (bed.phase().as_str(), bed.condition("Ready")["reason"].as_str()),
        ("ReviewRequired", Some("PlanChanged"))
    );
    let gone = "overcommit is not planned any more: HyperConverged virt/kubevirt-hyperconverged";
    assert_eq!(bed.status()["replacedPlan"], json!({"digest": approved, "changes": [gone]}));
    let shown = bed.status();
    bed.restart();
    bed.run_for(HOUR);
    assert_eq!(bed.status(), shown, "also after a restart");
    // The new plan is approved as any other.
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!(
        (bed.phase().as_str(), bed.stored(descheduler).is_some(), bed.stored(HCO).is_none()),
        ("Completed", true, true)
    );
}

#[test]
fn an_approved_item_that_is_left_out_before_anything_is_written_is_named_and_nothing_is_written() {
    let mut bed = writing_swap();
    let approved = bed.status()["planDigest"].clone();
    // The first write does not arrive.
    bed.faults = [Some(Fault::Lost)].into();
    let hco = bed.stored(HCO).unwrap().object["metadata"].clone();
    bed.delete(HCO);
    bed.run_for(HOUR);
    assert_eq!(
        (bed.phase().as_str(), bed.condition("ReviewRequired")["reason"].as_str()),
        ("ReviewRequired", Some("PlanChanged"))
    );
    let changes = bed.status()["replacedPlan"]["changes"].clone();
    assert_eq!(changes, json!(["overcommit is not planned any more: HyperConverged virt/kubevirt-hyperconverged"]));
    assert_eq!(bed.stored("ConfigMap virt/swap"), None, "{}", bed.lines.concat());
    // Everything is again as it was when the plan was approved, by its digest.
    bed.create(&json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged",
        "metadata": {"name": hco["name"], "namespace": hco["namespace"]}, "spec": {}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(HCO, "/spec/overcommit")), ("Completed", json!(150)), "{approved}");
}

#[test]
fn what_was_written_under_an_approval_and_changed_by_somebody_is_named_as_drift_also_after_a_restart() {
    let mut bed = writing_swap();
    bed.run_until(|request| matches!(request, Command::Write(write) if write.key.name == api::hco::NAME));
    bed.edit("ConfigMap virt/swap", &json!({"data": {"swap": "mine"}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.condition("Ready")["reason"].as_str()), ("Drifted", Some("Drifted")));
    let message = bed.condition("Drifted")["message"].clone();
    assert!(message.as_str().unwrap().starts_with("somebody changed what was already applied, swap, so"), "{message}");
    let shown = bed.status();
    bed.restart();
    bed.run_for(HOUR);
    assert_eq!(bed.status(), shown, "{}", bed.lines.concat());
    assert_eq!(bed.value("ConfigMap virt/swap", "/data/swap"), "mine");
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value("ConfigMap virt/swap", "/data/swap")), ("Completed", json!("on")));
}

#[test]
fn what_an_option_switches_off_goes_after_what_relies_on_it_has_changed() {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.complete();
    let items = |bed: &TestBed| {
        let status = bed.status();
        let items = status["items"].as_array().cloned().unwrap_or_default();
        items.iter().map(|item| item["name"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(items(&bed), ["swap", "overcommit", "descheduler"]);
    bed.ask(json!({"action": "DryRun", "options": {"density": {"enableSwap": false}}}));
    bed.run();
    assert_eq!(items(&bed), ["overcommit", "descheduler", "swap"], "{}", bed.status());
    bed.approve();
    bed.run_until(|request| matches!(request, Command::Write(write) if write.key.name == "swap"));
    assert_eq!(bed.value(HCO, "/spec/overcommit"), 120, "{}", bed.lines.concat());
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.stored("ConfigMap virt/swap")), ("Completed", None));
    // All of it is removed in the opposite order.
    bed.ask(json!({"action": "DryRun", "rollback": true, "options": {"density": {"enableSwap": true}}}));
    bed.run();
    assert_eq!(items(&bed), ["descheduler", "overcommit", "swap"], "{}", bed.status());
}

/// A cluster without MachineConfigs, on which the profile is planned without items for nodes.
fn without_machine_configs() -> TestBed {
    let mut bed = TestBed::new();
    bed.server.remove_crd(&MACHINE_CONFIGS);
    bed.stand_in = None;
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "ReviewRequired");
    bed
}

#[test]
fn a_plan_for_other_options_is_shown_no_more_and_apply_alone_does_not_approve_the_next_one() {
    let mut bed = without_machine_configs();
    bed.ask(json!({"options": {"advice": {"nodes": true}}}));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "PrerequisiteFailed");
    let status = bed.status();
    assert_eq!((&status["planDigest"], &status["items"]), (&json!(null), &json!(null)), "{status}");
    // The next plan was never shown, and another one was.
    bed.restart();
    bed.ask(json!({"action": "Apply", "options": {"advice": {"nodes": false, "size": 3}}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", 0), "{}", bed.lines.concat());
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("Completed", 2), "{}", bed.lines.concat());
}

#[test]
fn how_far_items_are_is_remembered_while_no_plan_can_be_made_for_other_options() {
    let mut bed = without_machine_configs();
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), written(&bed)), ("Completed", 2));
    let items = bed.status()["items"].clone();
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": true}}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.status()["planDigest"].as_str()), ("PrerequisiteFailed", None));
    assert_eq!((&bed.item("sizes")["state"], bed.item("sizes").get("desiredState")), (&json!("Completed"), None));
    bed.restart();
    bed.ask(json!({"options": {"advice": {"nodes": false}}}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), &bed.status()["items"], written(&bed)), ("Completed", &items, 2));
    // A rollback still finds what was applied.
    bed.ask(json!({"rollback": true}));
    bed.run_for(HOUR);
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.stored(OBJECTS[2])), ("Completed", None), "{}", bed.lines.concat());
}

/// Another tool applies the object of the last item, so that to apply that item takes a field from it.
fn claim_sizes(bed: &mut TestBed) {
    let sizes = bed.key(OBJECTS[2]);
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "sizes", "namespace": "virt"}, "data": {"size": "theirs"}});
    bed.server.apply("argocd", &sizes, &theirs, true).unwrap();
}

#[test]
fn bypassing_the_lock_applies_no_plan_that_needs_a_review_for_a_reason_that_was_not_shown() {
    let spec = json!({"action": "DryRun", "bypassOptimisticLock": true});
    for is_named in [false, true] {
        // Before Apply is written, and while the first item is being applied.
        for is_applying in [false, true] {
            let mut bed = TestBed::new();
            bed.ask(spec.clone());
            bed.run();
            if !is_applying {
                claim_sizes(&mut bed);
            }
            match is_named {
                true => bed.approve(),
                false => bed.ask(json!({"action": "Apply"})),
            }
            if is_applying {
                bed.run_for(Duration::from_secs(60));
                assert_eq!(bed.phase(), "InProgress");
                claim_sizes(&mut bed);
            }
            bed.run_for(3 * HOUR);
            assert_eq!(bed.value(OBJECTS[2], "/data/size"), "theirs", "{}", bed.lines.concat());
            assert_eq!((bed.phase().as_str(), written(&bed)), ("ReviewRequired", usize::from(is_applying)));
            bed.restart();
            bed.run_for(3 * HOUR);
            assert_eq!(bed.value(OBJECTS[2], "/data/size"), "theirs", "also after a restart");
            bed.approve();
            bed.run_for(3 * HOUR);
            assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Completed", json!("7")));
        }
        // What somebody writes by hand is overwritten: that is what the setting is for.
        let mut bed = TestBed::new();
        bed.ask(spec.clone());
        bed.run();
        bed.edit(OBJECTS[2], &json!({"data": {"size": "mine"}}));
        match is_named {
            true => bed.approve(),
            false => bed.ask(json!({"action": "Apply"})),
        }
        bed.run_for(3 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[2], "/data/size")), ("Completed", json!("7")));
    }
}

#[test]
fn what_needs_an_item_that_has_failed_waits_and_the_rest_goes_on_if_asked_for() {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.refused_writes = vec![bed.key("ConfigMap virt/swap")];
    bed.ask(json!({"action": "DryRun", "failurePolicy": "Continue"}));
    bed.run();
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(HCO, "/spec/overcommit")), ("CompletedWithErrors", json!(null)));
    assert_eq!(bed.item("overcommit")["message"], "it needs swap, which has failed");
    assert_eq!(
        (bed.item("overcommit")["state"].as_str(), bed.item("descheduler")["state"].as_str()),
        (Some("Pending"), Some("Completed"))
    );
    let message = bed.condition("CompletedWithErrors")["message"].clone();
    assert!(message.as_str().unwrap().ends_with("overcommit: it needs swap, which has failed"), "{message}");
    // Once it succeeds, the rest follows.
    bed.refused_writes.clear();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(HCO, "/spec/overcommit")), ("Completed", json!(150)));
    // The other way round: swap stays while overcommit could not go down.
    bed.refused_writes = vec![bed.key(HCO)];
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "CompletedWithErrors", "{}", bed.status());
    assert_eq!(bed.item("swap")["message"], "overcommit needs it until it has changed, which has failed");
    assert!(bed.stored("ConfigMap virt/swap").is_some() && bed.stored("ConfigMap virt/descheduler").is_none());
    bed.refused_writes.clear();
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.stored("ConfigMap virt/swap")), ("Completed", None));
}

#[test]
fn a_profile_of_which_nothing_applies_says_why() {
    let mut bed = TestBed::new();
    bed.profile = OVERCOMMIT_ONLY;
    let hco = bed.stored(HCO).unwrap().object["metadata"].clone();
    bed.delete(HCO);
    bed.ask(json!({"action": "DryRun"}));
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed");
    let ready = bed.condition("Ready");
    let message = "nothing of the profile applies to this cluster: overcommit: there is no HyperConverged";
    assert_eq!((ready["reason"].as_str(), ready["message"].as_str()), (Some("NotApplicable"), Some(message)));
    bed.create(&json!({"apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged",
        "metadata": {"name": hco["name"], "namespace": hco["namespace"]}, "spec": {}}));
    bed.run_for(HOUR);
    bed.approve();
    bed.run_for(HOUR);
    let ready = bed.condition("Ready");
    assert_eq!((ready["reason"].as_str(), bed.value(HCO, "/spec/overcommit")), (Some("Applied"), json!(150)));
}

#[test]
fn an_edit_of_something_else_by_one_of_those_who_lose_fields_voids_no_approval() {
    let mut bed = TestBed::new();
    let key = bed.key(OBJECTS[1]);
    bed.edit(OBJECTS[1], &json!({"data": {"limit": "1"}}));
    bed.run_for(HOUR);
    bed.server.update("another", &key, |object| object["data"]["release"] = json!("0")).unwrap();
    bed.ask(json!({"action": "DryRun"}));
    bed.run_for(HOUR);
    let digest = bed.status()["planDigest"].clone();
    assert_eq!(bed.item("limits")["takesFrom"].as_array().map(Vec::len), Some(2), "{}", bed.item("limits"));
    bed.edit(OBJECTS[1], &json!({"metadata": {"labels": {"team": "a"}}}));
    bed.run_for(HOUR);
    assert_eq!(bed.status()["planDigest"], digest, "the plan is the same");
    bed.ask(json!({"action": "Apply", "approvedPlan": digest}));
    bed.run_for(2 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.value(OBJECTS[1], "/data/release")), ("Completed", json!("1")));
}
