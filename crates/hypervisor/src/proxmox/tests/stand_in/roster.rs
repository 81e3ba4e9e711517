//! Many who look for a machine at the same time are answered by few lists, each of which is newer than their question.

use super::{connect, start, with_token};
use crate::provider::Provider;
use fleet::hypervisor::MachineId;
use futures::future::join_all;
use pve_stand_in::{Fault, FaultEffect, Method, Setup};
use std::time::Duration;

#[tokio::test]
async fn one_list_answers_all_who_look_for_a_machine_at_the_same_time() {
    let (server, state) = start().await;
    let proxmox = connect(&with_token(&server, Setup::ROOT_TOKEN));
    state.lock().unwrap().add_foreign_vm(207, "pve3", "theirs");
    server.forget();
    let ids: Vec<MachineId> = (200..230).map(|id: u32| MachineId(id.to_string())).collect();
    let found = join_all(ids.iter().map(|id| proxmox.inspect(id))).await;
    let there: Vec<usize> = (0..30).filter(|at| found[*at].as_ref().unwrap().is_some()).collect();
    assert_eq!(there, [7]);
    let lists = server.lines().iter().filter(|line| *line == "GET /cluster/resources").count();
    assert_eq!(lists, 2, "one for the first, and one for all who asked while that was fetched");
}

#[tokio::test]
async fn a_list_that_was_begun_before_the_question_does_not_answer_it() {
    let (server, state) = start().await;
    let proxmox = connect(&with_token(&server, Setup::ROOT_TOKEN));
    let late = FaultEffect::Delay(Duration::from_millis(400));
    state.lock().unwrap().inject(Fault::once(Method::Get, "/cluster/resources", late));
    let (id, other) = (MachineId("300".into()), MachineId("301".into()));
    let early = proxmox.inspect(&other);
    let question = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        state.lock().unwrap().add_foreign_vm(300, "pve3", "theirs");
        proxmox.inspect(&id).await
    };
    let (early, found) = futures::join!(early, question);
    assert!(early.unwrap().is_none() && found.unwrap().is_some());
    assert_eq!(state.lock().unwrap().fired_faults(), 1);
}
