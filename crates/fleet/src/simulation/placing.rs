//! Where a claim is placed again after a storage was full.

use super::api_server::id;
use super::scripted::{Reply, Scripted};
use crate::hypervisor::{Answer, Failure, Inspected, Operation, Power, Seen};
use serde_json::json;

#[test]
fn a_claim_whose_storage_was_full_takes_its_own_room_once_and_is_created_when_there_is_space() {
    let mut world = Scripted::new();
    for name in ["one", "two", "three"] {
        world.claim(name);
    }
    let full = |operation: &Operation, second: u64| match operation {
        Operation::Create(_) if second < 60 => Reply::Instead(Err(Failure::Resource {
            message: "no space left on device".into(),
            remedy: "free space".into(),
        })),
        _ => Reply::Usual,
    };
    world.run_until(58, full);
    for name in ["one", "two", "three"] {
        let (state, message) = world.said(name).unwrap();
        assert!(state.ends_with("InsufficientResources") && message.contains("no space left"), "{state}: {message}");
    }
    assert!(world.claim_writes < 60, "{} writes", world.claim_writes);
    world.run_until(140, full);
    let creations = world.times(|operation| matches!(operation, Operation::Create(_)));
    assert_eq!(creations.iter().filter(|second| **second >= 60).count(), 3, "{creations:?}");
}

fn is_create(operation: &Operation) -> bool {
    matches!(operation, Operation::Create(_))
}

/// Full clones that take long: what is promised to those that are being made is not promised to others, also by a process that has just begun.
#[test]
fn full_clones_at_the_same_time_take_no_more_space_than_there_is() {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| spec["limits"] = json!({"clonesPerStorage": 100}));
    world.api.edit(&id("HypervisorMachineTemplate", "small"), |spec| {
        spec["template"]["proxmox"]["linkedClone"] = json!(false);
        spec["resources"]["disk"] = json!("300Gi");
    });
    let hold = |operation: &Operation, _: u64| if is_create(operation) { Reply::Later } else { Reply::Usual };
    world.run_until(40, hold);
    for number in 0..5 {
        world.claim(&format!("c-{number}"));
    }
    world.run_until(45, hold);
    let waiting = |world: &Scripted| {
        let said = (0..5).filter_map(|number| world.said(&format!("c-{number}")));
        said.filter(|(state, _)| state.ends_with("InsufficientResources")).map(|(_, why)| why).collect::<Vec<_>>()
    };
    assert_eq!((world.times(is_create).len(), waiting(&world).len()), (3, 2));
    let why = "has 99 GiB of 300 GiB left, because 900 GiB are for machines that are being created: free space on ceph";
    assert!(waiting(&world)[0].contains(why), "{}", waiting(&world)[0]);
    // Lists that do not show them yet change nothing, nor does a restart.
    world.run_until(140, hold);
    assert_eq!(world.times(is_create).len(), 3);
    // What needs less goes on meanwhile.
    world.create(
        "HypervisorMachineTemplate",
        "tiny",
        &json!({
            "hypervisorClusterRef": {"name": "pve"}, "template": {"proxmox": {"tag": "base"}},
            "resources": {"cpu": 1, "memory": "1Gi"},
        }),
    );
    world.create("MachineClaim", "tiny", &json!({"templateRef": {"name": "tiny"}}));
    world.run_until(150, hold);
    assert_eq!(world.times(is_create).len(), 4);
    world.hypervisor.keeps_running = true;
    world.release(hold);
    world.run_until(400, hold);
    assert_eq!((world.times(is_create).len(), waiting(&world).len()), (4, 2), "their disks are on the storage now");
    world.delete("MachineClaim", "c-0");
    world.run_until(460, |_, _| Reply::Usual);
    assert_eq!((world.times(is_create).len(), waiting(&world).len()), (5, 1), "one more has room");
}

/// A failed claim that never had a machine takes nothing of others while it is kept for inspection.
#[test]
fn a_claim_that_fails_without_a_machine_gives_its_room_back() {
    let mut world = Scripted::new();
    world.claim("one");
    world.run_until(40, |operation, _| match operation {
        Operation::Create(_) => Reply::Instead(Err(Failure::Permanent("no".into()))),
        _ => Reply::Usual,
    });
    assert!(world.said("one").unwrap().0.starts_with("Failed"));
    assert_eq!(world.cpus_taken(), 0);
}

/// Somebody else has taken the id: another one is recorded, and the place is promised once.
#[test]
fn a_claim_that_gets_another_id_keeps_its_room_and_takes_none_of_others() {
    let mut world = Scripted::new();
    world.run_until(40, |_, _| Reply::Usual);
    assert_eq!(world.cpus_taken(), 0);
    world.claim("one");
    let (mut created, mut inspected) = (0, 0);
    let is_first = |count: &mut u32| std::mem::replace(count, 1) == 0;
    let mut taken = |operation: &Operation, _: u64| match operation {
        Operation::Create(blueprint) if is_first(&mut created) => {
            Reply::Instead(Err(Failure::Exists(blueprint.id.clone())))
        }
        Operation::Inspect(_) if is_first(&mut inspected) => {
            Reply::Instead(Ok(Answer::Inspected(Some(Box::new(Inspected {
                seen: Seen {
                    name: "database".into(),
                    node: "b".into(),
                    power: Power::Running,
                    is_template: false,
                    lock: None,
                    is_tagged: false,
                    pool: None,
                    cpus: 1,
                    memory: 1 << 30,
                },
                owner: None,
                is_configured: false,
            })))))
        }
        // Nothing is made before the next lists.
        Operation::Create(_) => Reply::Later,
        _ => Reply::Usual,
    };
    world.run_until(43, &mut taken);
    assert_eq!(world.times(is_create).len(), 2);
    assert_eq!(world.cpus_taken(), 1, "one machine with one CPU is promised");
    world.run_until(140, &mut taken);
    assert_eq!(world.cpus_taken(), 1, "also in later lists");
    world.release(|_, _| Reply::Usual);
    world.run_until(200, |_, _| Reply::Usual);
    assert_eq!(world.cpus_taken(), 1, "also when it runs");
    world.delete("MachineClaim", "one");
    world.run_until(240, |_, _| Reply::Usual);
    assert_eq!((world.cpus_taken(), world.said("one")), (0, None));
}

/// No id is free for a claim that has to move: what it holds is neither lost nor taken from others.
#[test]
fn a_claim_that_finds_no_free_id_keeps_its_room() {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorCluster", "pve"), |spec| spec["vmIds"] = json!({"from": 200, "to": 201}));
    for name in ["one", "two"] {
        world.claim(name);
    }
    let hold = |operation: &Operation, _: u64| if is_create(operation) { Reply::Later } else { Reply::Usual };
    world.run_until(40, hold);
    assert_eq!(world.cpus_taken(), 2);
    world.claim("three");
    world.run_until(140, hold);
    assert!(world.said("three").unwrap().0.ends_with("NoFreeId"));
    assert_eq!(world.cpus_taken(), 2);
}
