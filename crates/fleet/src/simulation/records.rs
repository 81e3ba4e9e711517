//! Machines whose notes somebody has overwritten: they are named until a person has done something, and never touched.

use super::api_server::id;
use super::scripted::{Reply, Scripted};
use crate::hypervisor::{Operation, Power};
use crate::notice::{Notice, Weight};
use serde_json::json;

fn usual(_: &Operation, _: u64) -> Reply {
    Reply::Usual
}

fn is_destroy(operation: &Operation) -> bool {
    matches!(operation, Operation::Destroy(_))
}

/// A claim whose machine runs and has lost its record, with the id of the machine.
fn lost() -> (Scripted, String) {
    let mut world = Scripted::new();
    world.hypervisor.keeps_running = true;
    world.claim("one");
    world.run_until(120, usual);
    let machine = world.hypervisor.vms.keys().next().unwrap().clone();
    world.hypervisor.vms.get_mut(&machine).unwrap().has_record = false;
    (world, machine)
}

fn orphans(world: &Scripted) -> Vec<String> {
    let status = &world.api.objects[&id("HypervisorCluster", "pve")]["status"];
    serde_json::from_value(status["orphans"].clone()).unwrap_or_default()
}

#[test]
fn a_claim_is_kept_while_its_machine_has_no_record_and_says_what_to_do() {
    let (mut world, machine) = lost();
    world.delete("MachineClaim", "one");
    world.run_until(2_000, usual);
    let (state, message) = world.said("one").unwrap();
    assert_eq!(state, "Terminating OwnerRecordMissing");
    let claim = &world.api.objects[&id("MachineClaim", "one")];
    let uid = claim["metadata"]["uid"].as_str().unwrap();
    let line = message.split("The line: ").nth(1).unwrap();
    let record = crate::record::parse(line, &machine).unwrap();
    assert_eq!((record.owner.uid.as_str(), record.owner.operator.as_str(), record.is_configured), (uid, "o", true));
    assert!(message.contains(api::fleet::FORCE_DELETE), "{message}");
    assert_eq!(world.hypervisor.vms[&machine].power, Power::Running);
    let weights: Vec<Weight> = world
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::Claim { reason, .. } if reason == "OwnerRecordMissing" => Some(notice.weight()),
            _ => None,
        })
        .collect();
    assert_eq!(weights, [Weight::Warning], "it is reported once");
    let tried = world.times(is_destroy).len();
    world.run_until(3_000, usual);
    assert_eq!(world.times(is_destroy).len(), tried, "what is nobody's is not tried");
    world.hypervisor.vms.get_mut(&machine).unwrap().has_record = true;
    world.run_until(3_100, usual);
    assert_eq!((world.said("one"), world.hypervisor.vms.len()), (None, 0));
}

#[test]
fn a_claim_goes_when_its_machine_without_a_record_was_deleted_by_hand() {
    let (mut world, machine) = lost();
    world.delete("MachineClaim", "one");
    world.run_until(200, usual);
    assert!(world.said("one").is_some());
    world.hypervisor.vms.remove(&machine);
    world.run_until(300, usual);
    assert_eq!(world.said("one"), None);
}

#[test]
fn a_machine_that_stops_without_its_record_fails_its_claim_and_stays() {
    let (mut world, machine) = lost();
    world.hypervisor.vms.get_mut(&machine).unwrap().switch_off();
    world.run_until(300, usual);
    assert_eq!(world.said("one").unwrap().0, "Failed OwnerRecordMissing");
    assert!(world.hypervisor.vms.contains_key(&machine));
}

#[test]
fn a_machine_of_others_with_another_name_is_not_waited_for() {
    let (mut world, machine) = lost();
    world.hypervisor.vms.get_mut(&machine).unwrap().name = "database".into();
    world.delete("MachineClaim", "one");
    world.run_until(300, usual);
    assert_eq!(world.said("one"), None);
    assert!(world.hypervisor.vms.contains_key(&machine));
}

#[test]
fn a_machine_without_a_record_and_without_a_claim_is_named_and_not_destroyed_until_it_has_one() {
    let (mut world, machine) = lost();
    world.delete("MachineClaim", "one");
    world.run_until(200, usual);
    world.api.annotate(&id("MachineClaim", "one"), api::fleet::FORCE_DELETE, Some("true"));
    world.run_until(2_000, usual);
    assert_eq!(world.said("one"), None);
    assert_eq!(orphans(&world), [format!("{machine} (no owner record)")]);
    assert!(world.hypervisor.vms.contains_key(&machine));
    let named = |notice: &&Notice| matches!(notice, Notice::Unrecorded { .. }) && notice.weight() == Weight::Warning;
    assert_eq!(world.notices.iter().filter(named).count(), 1);
    world.hypervisor.vms.get_mut(&machine).unwrap().has_record = true;
    world.run_until(2_100, usual);
    assert_eq!(orphans(&world), [format!("{machine} (ci/one)")]);
    world.run_until(3_000, usual);
    assert_eq!((orphans(&world).len(), world.hypervisor.vms.len()), (0, 0));
}

#[test]
fn a_machine_without_a_record_keeps_no_hypervisor_from_being_deleted() {
    let (mut world, machine) = lost();
    world.delete("MachineClaim", "one");
    world.run_until(200, usual);
    world.api.annotate(&id("MachineClaim", "one"), api::fleet::FORCE_DELETE, Some("true"));
    world.run_until(400, usual);
    assert_eq!(orphans(&world).len(), 1);
    world.delete("HypervisorMachineTemplate", "small");
    world.delete("HypervisorCluster", "pve");
    world.run_until(500, usual);
    assert!(!world.api.objects.contains_key(&id("HypervisorCluster", "pve")));
    assert!(world.hypervisor.vms.contains_key(&machine));
}

/// P26: what has the tag of no fleet is not even named.
#[test]
fn machines_of_others_are_not_named() {
    let mut world = Scripted::new();
    world.create("MachineClaim", "one", &json!({"templateRef": {"name": "small"}}));
    world.hypervisor.foreigner_creates("200".into(), None);
    world.run_until(600, usual);
    assert_eq!(orphans(&world), Vec::<String>::new());
}
