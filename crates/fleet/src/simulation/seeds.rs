//! Images of cloud-init data: removed once they were used, delivered by the guest agent instead, and swept when their machine is gone.

use super::api_server::id;
use super::scripted::{Reply, Scripted, configuration};
use crate::hypervisor::{Answer, Failure, Operation, SeedImage, SeedsFound};
use crate::notice::Notice;
use serde_json::json;

fn world(cloud_init: serde_json::Value) -> Scripted {
    let mut world = Scripted::new();
    world.api.edit(&id("HypervisorMachineTemplate", "small"), |spec| spec["cloudInit"] = cloud_init);
    world.claim("one");
    world
}

fn image(operator: &str, uid: &str) -> SeedImage {
    let volume = format!("local:iso/{operator}-{uid}");
    SeedImage { node: "a".into(), volume, operator: operator.into(), uid: uid.into() }
}

#[test]
fn an_image_is_removed_once_and_a_machine_stays_ready_while_that_fails() {
    let mut world = world(json!({"userData": "#cloud-config\n"}));
    let refuse = |operation: &Operation, second: u64| match operation {
        Operation::RemoveSeed(_) if second < 100 => configuration("VM.Config.CDROM is missing"),
        _ => Reply::Usual,
    };
    world.run_until(90, refuse);
    let (state, message) = world.said("one").unwrap();
    assert_eq!(state, "Ready Ready");
    assert!(message.contains("still there: VM.Config.CDROM is missing"), "{message}");
    // Its work goes on.
    world.hypervisor.vms.values_mut().for_each(|vm| vm.ends_at = u64::MAX);
    world.run_until(1_000, refuse);
    let times = world.times(|operation| matches!(operation, Operation::RemoveSeed(_)));
    assert!(times.len() >= 2 && times.iter().filter(|second| **second >= 100).count() == 1, "{times:?}");
    let status = &world.api.objects[&id("MachineClaim", "one")]["status"];
    assert!(status["seededTime"].is_string() && status["attempts"].is_null(), "{status}");
}

/// P27: an image that cannot be removed has pauses of minutes, and the end of its machine is noticed all the same.
#[test]
fn an_image_that_cannot_be_removed_does_not_delay_the_end_of_a_machine_that_has_stopped() {
    for end in (600..1_800).step_by(97) {
        let mut world = world(json!({"userData": "#cloud-config\n"}));
        let refuse = |operation: &Operation, _: u64| match operation {
            Operation::RemoveSeed(_) => configuration("VM.Config.CDROM is missing"),
            _ => Reply::Usual,
        };
        world.run_until(20, refuse);
        world.hypervisor.vms.values_mut().for_each(|vm| vm.ends_at = u64::MAX);
        world.run_until(end, refuse);
        assert_eq!(world.said("one").unwrap().0, "Ready Ready");
        world.hypervisor.vms.values_mut().for_each(|vm| vm.ends_at = end * 1_000);
        world.run_until(end + 60, refuse);
        assert_eq!((world.said("one"), world.hypervisor.vms.len()), (None, 0), "it has stopped at {end}");
    }
}

#[test]
fn a_guest_agent_that_takes_its_time_is_asked_until_cloud_init_has_ended() {
    let mut world = world(json!({"userData": "#cloud-config\n", "delivery": "GuestAgent"}));
    let slow = |operation: &Operation, second: u64| match operation {
        Operation::Deliver(_) if second < 150 => Reply::Instead(Ok(Answer::Delivered(false))),
        Operation::Configure(blueprint) => {
            assert_eq!(blueprint.seed, None, "there is no image");
            Reply::Usual
        }
        _ => Reply::Usual,
    };
    world.run_until(140, slow);
    assert_eq!(world.said("one").unwrap().0, "Bootstrapping WaitingForCloudInit");
    world.run_until(160, slow);
    assert_eq!(world.said("one").unwrap().0, "Ready Ready");
    let deliveries = world.times(|operation| matches!(operation, Operation::Deliver(_)));
    assert!(deliveries.len() > 10, "{deliveries:?}");
    world.run_until(300, slow);
    assert_eq!(world.times(|operation| matches!(operation, Operation::Deliver(_))), deliveries, "and not again");
}

#[test]
fn cloud_init_that_fails_is_the_end_of_a_claim() {
    let mut world = world(json!({"userData": "#cloud-config\n", "delivery": "GuestAgent"}));
    world.run_until(200, |operation, _| match operation {
        Operation::Deliver(_) => {
            Reply::Instead(Err(crate::hypervisor::Failure::Permanent("cloud-init has failed".into())))
        }
        _ => Reply::Usual,
    });
    assert_eq!(world.said("one").unwrap(), ("Failed ProvisioningFailed".into(), "cloud-init has failed".into()));
}

/// What passes is tried again, and if it does not pass, it is named in the end.
#[test]
fn the_last_trouble_of_a_delivery_is_named_when_its_time_is_over() {
    let mut world = world(json!({"userData": "#cloud-config\n", "delivery": "GuestAgent"}));
    let refuse = |operation: &Operation, _: u64| match operation {
        Operation::Deliver(_) => {
            Reply::Instead(Err(crate::hypervisor::Failure::Transient("the disk is read-only".into())))
        }
        _ => Reply::Usual,
    };
    world.run_until(60, refuse);
    world.hypervisor.vms.values_mut().for_each(|vm| vm.ends_at = u64::MAX);
    world.run_until(800, refuse);
    let (state, message) = world.said("one").unwrap();
    assert_eq!(state, "Failed BootTimeout");
    assert_eq!(message, "cloud-init has not ended within 600 s: the disk is read-only");
}

/// Whatever the hypervisor says about an image, it is no end of the machine that runs without it.
#[test]
fn an_image_that_is_refused_for_good_does_not_end_its_claim() {
    let mut world = world(json!({"userData": "#cloud-config\n"}));
    world.run_until(90, |operation, _| match operation {
        Operation::RemoveSeed(_) => {
            Reply::Instead(Err(crate::hypervisor::Failure::Permanent("the storage is read-only".into())))
        }
        _ => Reply::Usual,
    });
    let (state, message) = world.said("one").unwrap();
    assert_eq!(state, "Ready Ready");
    assert!(message.contains("the storage is read-only"), "{message}");
}

/// A sweep lists the storages that templates name, and deletes what was of nobody in two lists.
#[test]
fn images_of_machines_that_were_deleted_by_hand_are_swept_and_no_others() {
    for (policy, is_deleted) in [("Delete", true), ("Report", false)] {
        let mut world = world(json!({"userData": "#cloud-config\n", "storage": "seeds"}));
        world.api.edit(&id("HypervisorCluster", "pve"), |spec| spec["orphans"] = json!({"policy": policy}));
        let uid = world.api.objects[&id("MachineClaim", "one")]["metadata"]["uid"].as_str().unwrap().to_owned();
        let found = vec![image("o", "lost"), image("o", &uid)];
        let list = |operation: &Operation, _: u64| match operation {
            Operation::ListSeeds(search) => {
                assert_eq!((search.operator.as_str(), &search.storages), ("o", &["seeds".to_owned()].into()));
                Reply::Instead(Ok(Answer::Seeds(SeedsFound {
                    images: found.clone(),
                    unread: vec!["storage nfs is down".into()],
                })))
            }
            Operation::DeleteSeed(_) => Reply::Instead(Err(Failure::Permanent("the storage is read-only".into()))),
            _ => Reply::Usual,
        };
        let troubles = |world: &Scripted| -> Vec<String> {
            let message = |notice: &Notice| match notice {
                Notice::SeedTrouble { message, .. } => Some(message.clone()),
                _ => None,
            };
            world.notices.iter().filter_map(message).collect()
        };
        world.run_until(1_500, list);
        assert_eq!(troubles(&world), ["storage nfs is down"]);
        let deleted = |world: &Scripted| -> Vec<SeedImage> {
            let image = |(_, operation): &(u64, Operation)| match operation {
                Operation::DeleteSeed(image) => Some(image.clone()),
                _ => None,
            };
            world.asked.iter().filter_map(image).collect()
        };
        assert_eq!(world.times(|operation| matches!(operation, Operation::ListSeeds(_))).len(), 1);
        assert_eq!(deleted(&world), [], "it was seen once");
        world.run_until(2_500, list);
        let expected = if is_deleted { vec![image("o", "lost")] } else { Vec::new() };
        assert_eq!(deleted(&world), expected, "{policy}");
        let is_said = troubles(&world).contains(&"the storage is read-only".to_owned());
        assert_eq!(is_said, is_deleted, "what could not be deleted is reported: {policy}");
    }
}
