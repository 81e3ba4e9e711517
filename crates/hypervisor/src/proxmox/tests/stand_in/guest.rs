//! What the guest agent is asked for: cloud-init data, and how far their process is.

use super::{Setup, Shared, blueprint, connect, fleet, left, owner, target, with_token};
use crate::provider::Provider;
use crate::proxmox::Proxmox;
use fleet::hypervisor::{Delivery, Failure, Target};
use std::time::Duration;

fn guest(state: &Shared) -> pve_stand_in::Guest {
    state.lock().unwrap().vm(300).unwrap().guest.clone()
}

/// How often cloud-init was run.
fn runs(state: &Shared) -> usize {
    guest(state).commands.iter().filter(|command| command.contains("modules --mode final")).count()
}

/// Asks until something else is answered than that it has not ended.
async fn ended(proxmox: &Proxmox, delivery: &Delivery) -> Result<bool, Failure> {
    for _ in 0..500 {
        match proxmox.deliver(delivery).await {
            Ok(false) => tokio::time::sleep(Duration::from_millis(1)).await,
            other => return other,
        }
    }
    panic!("it never ends")
}

/// The fleet's token of the stand-in may not run commands in guests.
#[tokio::test]
async fn the_guest_agent_writes_a_seed_and_runs_cloud_init_once() {
    let (server, state, fleet) = fleet().await;
    let mut blueprint = blueprint(&fleet, 300).await;
    let files = blueprint.seed.take().unwrap().files;
    fleet.create(&blueprint).await.unwrap();
    fleet.configure(&blueprint).await.unwrap();
    let delivery = Delivery { target: target(&blueprint), files };
    let root = connect(&with_token(&server, Setup::ROOT_TOKEN));
    assert_eq!(root.deliver(&delivery).await, Ok(false), "it does not run yet");
    fleet.start(&target(&blueprint)).await.unwrap();
    while fleet.addresses(&target(&blueprint)).await.unwrap().is_none() {}
    let refused = fleet.deliver(&delivery).await;
    assert!(matches!(refused, Err(Failure::Configuration { .. })), "{refused:?}");
    assert_eq!(root.deliver(&delivery).await, Ok(false), "it has begun");
    assert_eq!(guest(&state).files["/var/lib/cloud/seed/nocloud/user-data"], "#cloud-config\n");
    assert_eq!(ended(&root, &delivery).await, Ok(true));
    assert_eq!(runs(&state), 1);
    assert_eq!(left(&state).1, Vec::<String>::new(), "without an image");
    state.lock().unwrap().vm_mut(300).unwrap().guest.exit_code = 1;
    let failed = ended(&root, &delivery).await;
    assert!(matches!(&failed, Err(Failure::Permanent(message)) if message.contains("exit code 1")), "{failed:?}");
    let foreign = Delivery { target: Target { owner: owner("u-2"), ..delivery.target.clone() }, ..delivery };
    assert!(matches!(root.deliver(&foreign).await, Err(Failure::NotOurs { .. })));
}

/// The agent was restarted, or has told before how the process ended: whatever its words are, it is no failure.
#[tokio::test]
async fn a_process_that_the_agent_does_not_know_is_begun_again_with_old_and_new_agents() {
    for is_agent_old in [false, true] {
        let (server, state, fleet) = fleet().await;
        let mut blueprint = blueprint(&fleet, 300).await;
        let files = blueprint.seed.take().unwrap().files;
        fleet.create(&blueprint).await.unwrap();
        fleet.configure(&blueprint).await.unwrap();
        fleet.start(&target(&blueprint)).await.unwrap();
        state.lock().unwrap().vm_mut(300).unwrap().guest.is_agent_old = is_agent_old;
        let root = connect(&with_token(&server, Setup::ROOT_TOKEN));
        let delivery = Delivery { target: target(&blueprint), files };
        while runs(&state) == 0 {
            assert_eq!(root.deliver(&delivery).await, Ok(false));
        }
        state.lock().unwrap().vm_mut(300).unwrap().guest.processes.clear();
        assert_eq!(ended(&root, &delivery).await, Ok(true), "old agent: {is_agent_old}");
    }
}
