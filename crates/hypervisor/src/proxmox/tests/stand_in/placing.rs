//! Where machines are placed, and what is seen of those that run.

use super::{blueprint, fleet, owner, target};
use crate::provider::Provider;
use fleet::hypervisor::{Blueprint, Failure, MachineId, Power, Target};
use fleet::placement::{Need, Promised, choose, loads};

/// What is chosen for a full clone is what Proxmox VE accepts: the storage of the clone has to be on both nodes, and shared.
#[tokio::test]
async fn a_full_clone_is_placed_only_where_proxmox_ve_makes_it() {
    let (_server, _state, proxmox) = fleet().await;
    let blueprint = blueprint(&proxmox, 300).await;
    let listed = proxmox.list().await.unwrap();
    let (none, promised) = (Default::default(), Promised { nodes: loads(&listed), ..Promised::default() });
    let mut made = Vec::new();
    for (number, storage) in (300..).zip(["local-lvm", "shared"]) {
        for node in ["pve1", "pve2", "pve3"] {
            let need =
                Need { cpus: 1, memory: 1 << 30, disk: 8 << 30, storage: Some(storage.into()), must_link: false };
            let (templates, nodes) = ([blueprint.template.clone()], [node.to_owned()]);
            let chosen = choose(&need, &templates, &nodes, &none, &listed, &promised, Default::default());
            let id = MachineId((number * 10 + made.len()).to_string());
            let storage = Some(storage.to_owned());
            let clone = Blueprint { id, node: node.into(), is_linked: false, storage, ..blueprint.clone() };
            let cloned = proxmox.create(&clone).await;
            assert_eq!(chosen.is_ok(), cloned.is_ok(), "{node} {:?}: {chosen:?} {cloned:?}", clone.storage);
            made.push(cloned.is_ok());
        }
    }
    assert_eq!(made, [true, false, false, true, true, true]);
}

/// Its process runs, so that lists say that it runs.
#[tokio::test]
async fn a_machine_that_qemu_has_halted_is_seen_by_a_look_only() {
    let (_server, state, proxmox) = fleet().await;
    let blueprint = blueprint(&proxmox, 300).await;
    proxmox.create(&blueprint).await.unwrap();
    proxmox.start(&target(&blueprint)).await.unwrap();
    assert_eq!(proxmox.look(&target(&blueprint)).await, Ok(None));
    state.lock().unwrap().halt(300, Some("io-error"));
    assert_eq!(proxmox.look(&target(&blueprint)).await, Ok(Some("io-error".to_owned())));
    assert_eq!(proxmox.list().await.unwrap().machines[&blueprint.id].power, Power::Running);
    assert_eq!(proxmox.addresses(&target(&blueprint)).await, Ok(None), "its guest stands still");
    let other = Target { owner: owner("u-2"), ..target(&blueprint) };
    assert!(matches!(proxmox.look(&other).await, Err(Failure::NotOurs { .. })));
    state.lock().unwrap().halt(300, Some("paused"));
    assert_eq!(proxmox.look(&target(&blueprint)).await, Ok(None), "somebody has paused it");
}
