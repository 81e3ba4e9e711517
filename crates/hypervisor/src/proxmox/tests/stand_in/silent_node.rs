//! A node that takes requests and never answers: machines of others come and go as if nothing had happened.

use super::{Shared, blueprint, start_with, with_token};
use crate::provider::Provider;
use crate::proxmox::tests::server::Server;
use crate::proxmox::tests::{Proxmox, connect, owner};
use crate::settings::Limits;
use fleet::hypervisor::{Failure, MachineId, Target, TemplateRef};
use futures::future::join_all;
use pve_stand_in::{Fault, FaultEffect, Setup, StandIn, TemplateSetup, Timing};
use std::time::{Duration, Instant};

/// So long a request waits for its answer here.
const PATIENCE: Duration = Duration::from_secs(2);

/// The node answers no request any more.
fn fall_silent(state: &mut StandIn, node: &str) {
    let (path, effect) = (format!("/nodes/{node}/"), FaultEffect::Delay(Duration::from_secs(3_600)));
    state.inject(Fault { method: None, path, contains: String::new(), skip: 0, times: u32::MAX, effect });
}

/// With a second copy of the template, on `pve3`.
async fn impatient() -> (Server, Shared, Proxmox) {
    let mut setup = Setup::cluster(Timing::short());
    let copy =
        TemplateSetup { vmid: 9001, node: "pve3".into(), storage: "local-lvm".into(), ..setup.templates[0].clone() };
    setup.templates.push(copy);
    let (server, state) = start_with(setup).await;
    for subject in ["fleet@pve", "fleet@pve!virtpilot"] {
        state.lock().unwrap().grant(subject, "/vms/9001", &["VM.Audit", "VM.Clone"]);
    }
    let mut settings = with_token(&server, Setup::FLEET_TOKEN);
    settings.limits = Limits { request: PATIENCE, ..settings.limits };
    let proxmox = connect(&settings);
    (server, state, proxmox)
}

/// P2 within one hypervisor.
#[tokio::test]
async fn requests_about_a_node_that_does_not_answer_leave_room_for_those_about_others() {
    let (_server, state, proxmox) = impatient().await;
    let on_silent = blueprint(&proxmox, 200).await;
    proxmox.create(&on_silent).await.unwrap();
    let mut other = blueprint(&proxmox, 300).await;
    other.node = "pve1".into();
    fall_silent(&mut state.lock().unwrap(), "pve2");
    let target = Target { id: MachineId("200".into()), node: Some("pve2".into()), owner: owner("u-1") };
    let waiting = join_all((0..12).map(|_| proxmox.start(&target)));
    let working = async {
        // All that are let through wait for the node by now.
        tokio::time::sleep(Duration::from_millis(100)).await;
        let began = Instant::now();
        for round in 0..4 {
            proxmox.list().await.unwrap();
            proxmox.create(&other).await.unwrap();
            let target = Target { id: other.id.clone(), node: Some("pve1".into()), owner: owner("u-1") };
            proxmox.start(&target).await.unwrap();
            proxmox.destroy(&target).await.unwrap();
            assert!(began.elapsed() < PATIENCE * (round + 1), "round {round} took {:?}", began.elapsed());
        }
    };
    let (answers, ()) = futures::join!(waiting, working);
    for answer in answers {
        assert!(matches!(answer, Err(Failure::Transient(_))), "{answer:?}");
    }
}

/// What a check and a look-up have to know of a silent node keeps no others from being used.
#[tokio::test]
async fn a_node_that_does_not_answer_fails_neither_a_check_nor_a_look_up_of_a_template() {
    let (_server, state, proxmox) = impatient().await;
    let runner = TemplateRef::Tag("runner".into());
    assert_eq!(proxmox.find_template(&runner).await.unwrap().len(), 2);
    fall_silent(&mut state.lock().unwrap(), "pve3");
    let checked = proxmox.check().await.unwrap();
    assert_eq!((checked.unknown, checked.missing), (Vec::new(), Vec::new()));
    let found = proxmox.find_template(&runner).await.unwrap();
    assert_eq!(found.iter().map(|found| found.node.as_str()).collect::<Vec<_>>(), ["pve1"]);
    fall_silent(&mut state.lock().unwrap(), "pve1");
    let failure = proxmox.find_template(&runner).await.unwrap_err();
    assert!(matches!(&failure, Failure::Transient(message) if message.contains("no answer within 2 s")), "{failure:?}");
}
