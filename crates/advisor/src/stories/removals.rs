//! Switching an option off, and rolling back, where the profile did not create the objects: the Go operator, the autopilot or a person did.

use crate::Notice;
use crate::testing::bed::{Fault, HCO, TestBed};
use crate::testing::pack::{DENSITY, OBJECTS, OVERCOMMIT_ONLY, STORE};
use protocol::Command;
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);
const FORMER: &str = "MachineConfig 99-args";
const OWN: &str = OBJECTS[0];
const GO: &str = api::advisor::FIELD_MANAGER;

fn apply(bed: &mut TestBed, manager: &str, object: &str, arguments: &Value) {
    let key = bed.key(object);
    let content = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": key.name, "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": arguments}});
    bed.server.apply(manager, &key, &content, true).unwrap();
}

fn switch_off(bed: &mut TestBed) {
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run();
}

#[test]
fn an_option_that_is_switched_off_plans_the_removal() {
    let mut bed = TestBed::new();
    bed.complete();
    bed.ask(json!({"action": "DryRun", "options": {"advice": {"nodes": false}}}));
    bed.run();
    assert_eq!((bed.phase().as_str(), bed.item("args")["operation"].as_str()), ("ReviewRequired", Some("Delete")));
    assert_eq!(bed.item("args")["impactSeverity"], "High");
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!((bed.phase().as_str(), bed.stored(OBJECTS[0]).is_none(), bed.restarts_of("w0")), ("Completed", true, 2));
}

#[test]
fn a_deletion_is_reported_as_one_also_where_its_answer_is_lost() {
    for fault in [None, Some(Fault::Unanswered)] {
        let mut bed = TestBed::new();
        bed.complete();
        let is_deleted = |bed: &TestBed| {
            let last = bed.notices.iter().rev().find_map(|notice| match notice {
                Notice::Applied { is_deleted, key, .. } if key.name == "90-args" => Some(*is_deleted),
                _ => None,
            });
            last.expect("it is reported")
        };
        assert!(!is_deleted(&bed), "it was written");
        switch_off(&mut bed);
        bed.approve();
        bed.run_until(|request| matches!(request, Command::Write(write) if write.key.name == "90-args"));
        bed.faults = [fault].into();
        bed.run_for(HOUR);
        assert!(is_deleted(&bed), "{fault:?}: {}", bed.lines.concat());
    }
}

/// The object that is never deleted, because data would be lost with it.
const LOGS: &str = "ConfigMap virt/logs";

#[test]
fn what_is_never_deleted_stays_after_a_rollback_and_without_its_option_and_the_plan_says_how_it_goes() {
    for spec in [json!({"rollback": true}), json!({"options": {"store": {"logging": false}}})] {
        let mut bed = TestBed::of(STORE);
        bed.complete();
        bed.complete_with(spec.clone());
        let collector = bed.stored("ConfigMap virt/collector");
        assert_eq!((bed.stored(LOGS).is_some(), collector.is_some()), (true, false), "{spec}: {}", bed.lines.concat());
        let item = bed.item("logs");
        assert_eq!((&item["operation"], &item["state"]), (&json!("Keep"), &json!("Completed")), "{item:#}");
        let message = item["message"].as_str().unwrap_or_default();
        assert!(message.ends_with("delete it by hand: kubectl delete configmap logs --namespace virt"), "{message}");
        bed.delete(LOGS);
        bed.run_for(HOUR);
        assert_eq!((bed.phase().as_str(), &bed.item("logs")["message"]), ("Completed", &Value::Null));
    }
}

#[test]
fn what_the_go_operator_made_is_deleted_by_an_option_whether_we_changed_it_or_not() {
    for found in ["psi=1", "faulty=1"] {
        let mut bed = TestBed::new();
        apply(&mut bed, GO, FORMER, &json!([found]));
        bed.run_for(2 * HOUR);
        bed.complete();
        assert_eq!(bed.value(FORMER, "/spec/kernelArguments"), json!(["psi=1"]));
        switch_off(&mut bed);
        assert_eq!(bed.item("args")["operation"], "Delete", "{found}: {:#}", bed.item("args"));
        bed.approve();
        bed.run_for(2 * HOUR);
        assert_eq!((bed.phase().as_str(), bed.stored(FORMER).is_none()), ("Completed", true), "{found}");
        assert!(bed.stored(OWN).is_none());
    }
}

#[test]
fn what_a_person_made_under_the_name_of_the_go_operator_is_restored_and_never_deleted() {
    let mut bed = TestBed::new();
    apply(&mut bed, "person", FORMER, &json!(["theirs=1"]));
    bed.run_for(2 * HOUR);
    for _ in 0..2 {
        bed.complete_with(json!({"options": null}));
        assert_eq!(bed.value(FORMER, "/spec/kernelArguments"), json!(["psi=1"]));
        switch_off(&mut bed);
        assert_eq!(bed.item("args")["operation"], "Update");
        bed.approve();
        bed.run_for(2 * HOUR);
        assert_eq!(bed.value(FORMER, "/spec/kernelArguments"), json!(["theirs=1"]));
        assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    }
    // Nothing is remembered any more.
    bed.delete("VirtPlatformConfig advice");
    bed.run();
    switch_off(&mut bed);
    assert_eq!(bed.item("args")["operation"], "Keep");
}

#[test]
fn an_option_that_is_off_removes_the_objects_under_both_names() {
    let mut bed = TestBed::new();
    bed.complete();
    apply(&mut bed, GO, FORMER, &json!(["psi=1"]));
    bed.run_for(HOUR);
    switch_off(&mut bed);
    let planned = [&bed.item("args"), &bed.item("args-former")].map(|item| item["operation"].clone());
    assert_eq!(planned, ["Delete", "Delete"]);
    bed.approve();
    bed.run_for(3 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    assert!(bed.stored(OWN).is_none() && bed.stored(FORMER).is_none());
}

#[test]
fn what_was_handed_over_as_it_is_stays_and_the_plan_says_who_made_it() {
    let mut bed = TestBed::new();
    apply(&mut bed, "virt-platform-autopilot", OWN, &json!(["psi=1"]));
    bed.run_for(2 * HOUR);
    bed.complete();
    let sent = bed.sent.1;
    switch_off(&mut bed);
    let item = bed.item("args");
    assert_eq!(item["operation"], "Keep", "{item:#}");
    let message = "it stays: virt-platform-autopilot made it, and this profile has never written it; delete it by hand if nobody needs it";
    assert_eq!(item["message"], message);
    bed.ask(json!({"action": "Apply"}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("Completed", sent), "nothing is written");
    // Once somebody has deleted it, nothing is said of it any more.
    bed.delete(OWN);
    bed.run_for(2 * HOUR);
    assert_eq!(bed.phase(), "Completed", "{}", bed.lines.concat());
    assert_ne!(bed.item("args")["message"], message);
}

#[test]
fn a_deletion_names_those_who_apply_the_object_now() {
    let mut bed = TestBed::new();
    bed.complete();
    apply(&mut bed, "argocd", OWN, &json!(["psi=1"]));
    bed.run();
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    let item = bed.item("args");
    assert_eq!((&item["operation"], &item["takesFrom"]), (&json!("Delete"), &json!(["argocd"])), "{item:#}");
}

#[test]
fn what_is_restored_is_followed_until_nodes_run_it_and_is_never_called_untouched() {
    let mut bed = TestBed::new();
    apply(&mut bed, "person", OWN, &json!(["psi=0"]));
    bed.run_for(2 * HOUR);
    bed.complete();
    assert_eq!(bed.value(OWN, "/spec/kernelArguments"), json!(["psi=1"]));
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    bed.approve();
    // The approval is recorded, the object is restored, and that is recorded.
    for _ in 0..3 {
        bed.run_until(|request| matches!(request, Command::Write(_)));
        std::mem::take(&mut bed.requests).into_iter().for_each(|request| bed.carry_out(request));
        assert!(!bed.status().to_string().contains("it stays"), "{:#}", bed.item("args"));
    }
    bed.run_for(Duration::from_secs(30));
    let item = bed.item("args");
    assert_eq!((bed.phase().as_str(), &item["state"]), ("InProgress", &json!("InProgress")), "{item:#}");
    assert!(item["message"].as_str().unwrap().starts_with("pool worker"), "{item:#}");
    bed.run_for(2 * HOUR);
    assert_eq!((bed.phase().as_str(), &bed.item("args")["state"]), ("Completed", &json!("Completed")));
    assert_eq!(bed.value(OWN, "/spec/kernelArguments"), json!(["psi=0"]));
}

#[test]
fn a_deletion_names_the_objects_that_the_deleted_one_belongs_to() {
    let mut bed = TestBed::new();
    bed.complete();
    let owner =
        json!({"apiVersion": "example.com/v1", "kind": "Platform", "name": "mine", "uid": "u", "controller": true});
    bed.edit(OWN, &json!({"metadata": {"ownerReferences": [owner]}}));
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    let item = bed.item("args");
    let owners = item["takesFrom"].as_array().cloned().unwrap_or_default();
    assert!(owners.contains(&json!("Platform/mine")), "{item:#}");
    let message = item["message"].as_str().unwrap_or_default();
    assert!(message.contains("it belongs to Platform/mine, whose controller may create it again"), "{message}");
    // Another owner is another plan.
    let digest = bed.status()["planDigest"].clone();
    bed.edit(OWN, &json!({"metadata": {"ownerReferences": null}}));
    bed.run();
    assert_ne!(bed.status()["planDigest"], digest);
}

const OVERCOMMIT: &str = "/spec/overcommit";

/// Two profiles that want the same overcommit of the HyperConverged; the first one has written it.
fn shared() -> TestBed {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.complete();
    bed.profile = OVERCOMMIT_ONLY;
    bed.complete();
    bed.profile = DENSITY;
    assert_eq!(bed.value(HCO, OVERCOMMIT), json!(150));
    bed
}

#[test]
fn what_another_profile_wants_is_not_removed_and_the_plan_says_so() {
    let mut bed = shared();
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    let item = bed.item("overcommit");
    assert_eq!(item["operation"], "Keep", "{item:#}");
    assert_eq!(item["message"], format!("it stays: VirtPlatformConfig {OVERCOMMIT_ONLY} wants it, too"));
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!(bed.value(HCO, OVERCOMMIT), json!(150), "{}", bed.lines.concat());
    bed.profile = OVERCOMMIT_ONLY;
    assert_eq!(bed.phase(), "Completed");
}

#[test]
fn a_new_process_plans_no_removal_before_it_knows_what_other_profiles_want() {
    let mut bed = shared();
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    bed.restart();
    bed.notices.clear();
    bed.run_for(HOUR);
    assert_eq!(bed.item("overcommit")["operation"], "Keep");
}

#[test]
fn a_removal_that_waits_for_what_another_profile_wants_says_why() {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.complete();
    bed.unreadable = Some("flag");
    bed.ask_of(OVERCOMMIT_ONLY, json!({"action": "DryRun"}));
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run_for(Duration::from_secs(60));
    let condition = bed.condition("Failed");
    let message = condition["message"].as_str().unwrap_or_default();
    let why =
        format!("nobody knows whether VirtPlatformConfig {OVERCOMMIT_ONLY} wants what is to be removed (overcommit): ");
    assert!(message.contains(&why) && message.contains("virt/flag could not be read"), "{:#}", bed.status());
    bed.unreadable = None;
    bed.run_for(Duration::from_secs(60));
    assert_eq!((bed.phase().as_str(), &bed.item("overcommit")["operation"]), ("ReviewRequired", &json!("Keep")));
}

#[test]
fn an_approved_removal_stops_when_another_profile_wants_the_object() {
    let mut bed = TestBed::new();
    bed.profile = DENSITY;
    bed.complete();
    bed.ask(json!({"action": "DryRun", "rollback": true}));
    bed.run();
    assert_eq!(bed.item("overcommit")["operation"], "Update");
    let digest = bed.status()["planDigest"].clone();
    bed.ask_of(OVERCOMMIT_ONLY, json!({"action": "DryRun"}));
    bed.ask(json!({"action": "Apply", "approvedPlan": digest}));
    bed.run_for(HOUR);
    assert_eq!(bed.value(HCO, OVERCOMMIT), json!(150), "{}", bed.lines.concat());
    assert_eq!(bed.phase(), "ReviewRequired", "{:#}", bed.status());
}

/// The HyperConverged and the swap as the Go operator applied them: without a record of what was there before.
fn applied_by_go() -> TestBed {
    let mut bed = TestBed::of(DENSITY);
    let hco = bed.key(HCO);
    let content = json!({"apiVersion": hco.kind.api_version(), "kind": "HyperConverged",
        "metadata": {"name": hco.name, "namespace": hco.namespace}, "spec": {"overcommit": 150}});
    bed.server.apply(GO, &hco, &content, true).unwrap();
    bed.complete();
    bed
}

/// The swap that the overcommit needs.
const SWAP: &str = "ConfigMap virt/swap";

#[test]
fn what_the_overcommit_needs_stays_until_a_person_has_changed_an_overcommit_without_a_record() {
    let mut without_record = [applied_by_go(), TestBed::of(DENSITY)];
    let [_, stripped] = &mut without_record;
    stripped.complete();
    let marks = json!({"advisor.kubevirt.io/before": null, "advisor.kubevirt.io/profile": null});
    stripped.edit(HCO, &json!({"metadata": {"annotations": marks}}));
    for mut bed in without_record {
        bed.ask(json!({"action": "DryRun", "rollback": true}));
        bed.run();
        let [overcommit, swap] = [bed.item("overcommit"), bed.item("swap")];
        assert_eq!((&overcommit["operation"], &swap["operation"]), (&json!("Keep"), &json!("Delete")), "{swap:#}");
        let note = overcommit["message"].as_str().unwrap_or_default();
        assert!(note.contains("what was there before is not recorded; change its spec by hand"), "{note}");
        assert!(swap["message"].as_str().unwrap_or_default().contains("overcommit needs it"), "{swap:#}");
        bed.approve();
        bed.run_for(2 * HOUR);
        assert_eq!((bed.value(HCO, OVERCOMMIT), bed.stored(SWAP).is_some()), (json!(150), true), "{:#}", bed.status());
        bed.edit(HCO, &json!({"spec": {"overcommit": 100}}));
        bed.run_for(HOUR);
        if bed.phase() != "Completed" {
            bed.approve();
            bed.run_for(HOUR);
        }
        assert_eq!((bed.phase().as_str(), bed.stored(SWAP).is_some()), ("Completed", false), "{:#}", bed.status());
        assert_eq!(bed.value(HCO, OVERCOMMIT), json!(100), "what a person has set stays");
    }
}
