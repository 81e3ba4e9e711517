//! Not more clones at once than a storage and a node can make.

use super::api_server::id;
use super::scripted::{Reply, Scripted};
use crate::hypervisor::{Failure, Operation, Owner};
use serde_json::json;
use std::collections::BTreeMap;

/// Clones take for ever.
fn hold_clones(operation: &Operation, _: u64) -> Reply {
    match operation {
        Operation::Create(_) => Reply::Later,
        _ => Reply::Usual,
    }
}

/// How many clones were begun on each node.
fn clones(world: &Scripted) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for (_, operation) in &world.asked {
        if let Operation::Create(blueprint) = operation {
            *counts.entry(blueprint.node.clone()).or_default() += 1;
        }
    }
    counts
}

/// Eight claims with these limits, until nothing happens any more.
fn start(per_storage: u32, per_node: u32) -> Scripted {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| {
        spec["limits"] = json!({"clonesPerStorage": per_storage, "clonesPerNode": per_node});
    });
    for number in 0..8 {
        world.claim(&format!("c-{number}"));
    }
    world.run_until(20, hold_clones);
    world
}

#[test]
fn a_storage_makes_no_more_clones_at_once_than_its_limit() {
    for limit in 1..=3 {
        let mut world = start(limit, 100);
        let at_once = usize::try_from(limit).unwrap();
        assert_eq!(clones(&world).values().sum::<usize>(), at_once, "limit {limit}");
        world.release(hold_clones);
        assert_eq!(clones(&world).values().sum::<usize>(), 2 * at_once, "others follow when they have ended");
    }
}

#[test]
fn a_node_makes_no_more_clones_at_once_than_its_limit() {
    for limit in 1..=3 {
        let world = start(100, limit);
        let counts = clones(&world);
        let at_once = usize::try_from(limit).unwrap();
        assert_eq!(counts, [("a".to_owned(), at_once), ("b".to_owned(), at_once)].into(), "limit {limit}");
    }
}

/// Orphans of an earlier time, all of which have been marked for longer than the grace period.
fn orphans(world: &mut Scripted, many: u32) {
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| spec["vmIds"] = json!({"from": 200, "to": 999}));
    for number in 0..many {
        let owner = Owner { operator: "o".into(), claim: format!("ci/lost-{number}"), uid: format!("lost-{number}") };
        world.hypervisor.foreigner_creates((200 + number).to_string(), Some(owner));
    }
    world.hypervisor.foreign.clear();
}

fn is_destroy(operation: &Operation) -> bool {
    matches!(operation, Operation::Destroy(_))
}

#[test]
fn orphans_are_destroyed_with_the_slots_of_everybody() {
    let mut world = Scripted::new();
    orphans(&mut world, 100);
    let hold = |operation: &Operation, _: u64| if is_destroy(operation) { Reply::Later } else { Reply::Usual };
    world.run_until(900, hold);
    assert_eq!(world.times(is_destroy).len(), 32, "on one node no more than half of the slots of all");
    world.release(hold);
    assert_eq!(world.times(is_destroy).len(), 64, "others follow when they are gone");
    world.release(|_, _| Reply::Usual);
    world.run_until(1_000, |_, _| Reply::Usual);
    assert_eq!((world.times(is_destroy).len(), world.hypervisor.vms.len()), (100, 0));
}

/// What cannot be destroyed is tried again after each list, and keeps no other orphan.
#[test]
fn orphans_that_cannot_be_destroyed_keep_no_others() {
    let mut world = Scripted::new();
    orphans(&mut world, 80);
    let refuse = |operation: &Operation, _: u64| match operation {
        Operation::Destroy(target) if target.id.0.as_str() < "260" => {
            Reply::Instead(Err(Failure::Transient("can't lock file".into())))
        }
        _ => Reply::Usual,
    };
    world.run_until(900, refuse);
    assert_eq!(world.hypervisor.vms.len(), 60);
    let tries = world.times(is_destroy).len();
    assert!(tries < 80 * 12, "{tries}");
}

/// Every task of node b hangs: machines on node a are started and destroyed all the same.
#[test]
fn tasks_that_hang_on_one_node_delay_nobody_on_another_one() {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| {
        spec["limits"] = json!({"clonesPerStorage": 500, "clonesPerNode": 500});
        spec["overcommit"] = json!({"cpuPercent": 1600});
    });
    world.api.edit(&id("HypervisorMachineTemplate", "small"), |spec| spec["resources"]["memory"] = json!("256Mi"));
    for number in 0..200 {
        world.claim(&format!("c-{number}"));
    }
    let hang = |operation: &Operation, _: u64| match operation {
        Operation::Configure(blueprint) if blueprint.node == "b" => Reply::Later,
        _ => Reply::Usual,
    };
    world.run_until(200, hang);
    let made = clones(&world);
    assert!(made["b"] > 64, "{made:?}");
    let started = world.times(|operation| matches!(operation, Operation::Start(_))).len();
    assert_eq!(started, made["a"], "all of node a");
}

/// Machines that somebody has made on node b, which does not answer: they can only be the machines of claims that have their names.
#[test]
fn machines_that_cannot_be_inspected_keep_no_claim_waiting_that_has_another_name() {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| spec["vmIds"] = json!({"from": 200, "to": 299}));
    for number in 0..20 {
        world.hypervisor.foreigner_creates((200 + number).to_string(), None);
    }
    for name in ["one", "database"] {
        world.claim(name);
    }
    let silent = |operation: &Operation, _: u64| match operation {
        Operation::Inspect(id) if id.0.as_str() < "220" => Reply::Later,
        _ => Reply::Usual,
    };
    world.run_until(20, silent);
    assert_eq!(
        world.times(|operation| matches!(operation, Operation::Inspect(_))).len(),
        4,
        "half of all, on one node"
    );
    assert!(clones(&world).values().sum::<usize>() == 1 && !world.said("one").unwrap().0.ends_with("Surveying"));
    assert_eq!(world.said("database").unwrap().0, "Pending Surveying");
    for _ in 0..6 {
        world.release(silent);
    }
    world.run_until(60, |_, _| Reply::Usual);
    assert_eq!(clones(&world).values().sum::<usize>(), 2);
}

/// Its object is deleted and created again while clones run: they still count, and their ends are not taken for those of later ones.
#[test]
fn clones_of_a_hypervisor_that_is_created_again_count_until_they_end() {
    let mut world = start(2, 100);
    assert_eq!(clones(&world).values().sum::<usize>(), 2);
    let cluster = id("HypervisorCluster", "pve");
    let spec = world.api.objects[&cluster]["spec"].clone();
    world.api.remove_finalizers(&cluster);
    world.delete("HypervisorCluster", "pve");
    world.run_until(30, hold_clones);
    assert_eq!(world.times(|operation| *operation == Operation::Disconnect).len(), 1, "credentials are forgotten");
    world.create("HypervisorCluster", "pve", &spec);
    world.run_until(100, hold_clones);
    assert_eq!(clones(&world).values().sum::<usize>(), 2, "two are running");
    world.release(hold_clones);
    world.run_until(130, hold_clones);
    assert_eq!(clones(&world).values().sum::<usize>(), 4, "two others follow");
}
