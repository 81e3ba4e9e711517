//! What the guest agent is asked for: cloud-init data, and how far their process is.

use super::{Setup, Shared, blueprint, connect, fleet, left, owner, target, with_token};
use crate::provider::Provider;
use crate::proxmox::Proxmox;
use fleet::hypervisor::{Delivery, Failure, Target};
use pve_stand_in::{Fault, FaultEffect, Method, Outcome};
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
    let fails = Outcome { contains: "modules --mode final".into(), exit_code: 1, ..Outcome::default() };
    state.lock().unwrap().vm_mut(300).unwrap().guest.outcomes.push(fails);
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

/// The answer that tells how cloud-init has ended is lost, or the agent was restarted: the guest knows, and nothing runs again.
#[tokio::test]
async fn a_lost_answer_does_not_run_cloud_init_again() {
    for (exit_code, is_lost) in [(0, true), (0, false), (1, true)] {
        let (server, state, fleet) = fleet().await;
        let mut blueprint = blueprint(&fleet, 300).await;
        let files = blueprint.seed.take().unwrap().files;
        fleet.create(&blueprint).await.unwrap();
        fleet.configure(&blueprint).await.unwrap();
        fleet.start(&target(&blueprint)).await.unwrap();
        let left = [("/var/lib/hyperfleet/seed-exit".to_owned(), format!("u-1 {exit_code}\n"))].into();
        let outcome = Outcome { contains: "modules --mode final".into(), exit_code, files: left };
        state.lock().unwrap().vm_mut(300).unwrap().guest.outcomes.push(outcome);
        let root = connect(&with_token(&server, Setup::ROOT_TOKEN));
        let delivery = Delivery { target: target(&blueprint), files };
        while runs(&state) == 0 {
            assert_eq!(root.deliver(&delivery).await, Ok(false));
        }
        tokio::time::sleep(pve_stand_in::Timing::short().change).await;
        if is_lost {
            let lost = Fault::once(Method::Get, "/nodes", FaultEffect::LoseReply).containing("/agent/exec-status");
            state.lock().unwrap().inject(lost);
            assert!(matches!(root.deliver(&delivery).await, Err(Failure::Transient(_))));
        } else {
            // Nobody has asked yet how it has ended, and the agent does not know it any more.
            state.lock().unwrap().vm_mut(300).unwrap().guest.processes.remove(&802);
            let exit = ("/var/lib/hyperfleet/seed-exit".to_owned(), "u-1 0\n".to_owned());
            state.lock().unwrap().vm_mut(300).unwrap().guest.files.extend([exit]);
        }
        match root.deliver(&delivery).await {
            Ok(true) if exit_code == 0 => {}
            Err(Failure::Permanent(message)) if exit_code == 1 => assert!(message.contains("exit code 1"), "{message}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(runs(&state), 1);
    }
}
