//! Faults on demand.

use super::{Lab, request};
use crate::{Fault, FaultEffect, Method, Reply};
use std::time::Duration;

const CLONE: &str = "POST /nodes/pve1/qemu/9000/clone newid=101";

fn inject(lab: &mut Lab, effect: FaultEffect) {
    lab.state.inject(Fault::once(Method::Post, "/nodes/pve1/qemu", effect).containing("/clone"));
}

#[test]
fn every_fault_has_its_effect_once() {
    let later = Duration::from_secs(5);
    let table = [
        (FaultEffect::LoseReply, "lost", true),
        (FaultEffect::Drop, "lost", false),
        (FaultEffect::Delay(later), "200 OK", true),
        (FaultEffect::CarryOutLater(later), "lost", false),
        (FaultEffect::Repeat, "500 unable to create VM 101: config file already exists", true),
        (FaultEffect::Fail(503, "busy".to_owned()), "503 busy", false),
        (FaultEffect::TaskNeverEnds, "200 OK", true),
        (FaultEffect::TaskFails("x".to_owned()), "200 OK", true),
    ];
    for (effect, expected, is_done) in table {
        let mut lab = Lab::new();
        inject(&mut lab, effect.clone());
        assert_eq!(lab.refused("GET /version"), "200 OK", "others pass");
        assert_eq!(lab.refused(CLONE), expected, "{effect:?}");
        assert_eq!(lab.state.vm(101).is_some(), is_done, "{effect:?}");
        assert_eq!((lab.state.fired_faults(), lab.state.pending_faults().len()), (1, 0));
        assert_eq!(lab.refused(&CLONE.replace("101", "102")), "200 OK");
    }
}

#[test]
fn a_delayed_reply_says_how_late_it_is_and_a_delayed_request_is_carried_out_then() {
    let mut lab = Lab::new();
    let later = Duration::from_secs(5);
    inject(&mut lab, FaultEffect::Delay(later));
    let token = lab.token.clone();
    let reply = lab.state.handle(&request(CLONE).token(&token), lab.now);
    assert!(matches!(reply, Reply::Late(response, time) if response.status == 200 && time == later));
    inject(&mut lab, FaultEffect::CarryOutLater(later));
    assert_eq!(lab.refused(&CLONE.replace("101", "102")), "lost");
    lab.pass(4900);
    assert!(lab.state.vm(102).is_none());
    lab.pass(200);
    assert!(lab.state.vm(102).is_some());
}

#[test]
fn a_fault_can_wait_and_happen_several_times() {
    let mut lab = Lab::new();
    lab.state.inject(Fault::once(Method::Get, "/version", FaultEffect::Drop).after(1).times(2));
    let answers: Vec<String> = (0..4).map(|_| lab.refused("GET /version")).collect();
    assert_eq!(answers, ["200 OK", "lost", "lost", "200 OK"]);
}

#[test]
fn a_task_that_never_ends_keeps_its_lock_until_it_is_killed() {
    let mut lab = Lab::new();
    inject(&mut lab, FaultEffect::TaskNeverEnds);
    let upid = lab.ask(CLONE).as_str().unwrap().to_owned();
    lab.pass(3_600_000);
    assert_eq!(lab.ask(&format!("GET /nodes/pve1/tasks/{upid}/status"))["status"], "running");
    assert_eq!(lab.refused("DELETE /nodes/pve1/qemu/101"), "500 VM is locked (clone)");
    lab.ask(&format!("DELETE /nodes/pve1/tasks/{upid}"));
    assert_eq!(lab.ask(&format!("GET /nodes/pve1/tasks/{upid}/status"))["exitstatus"], "interrupted by signal");
    assert!(lab.state.vm(101).is_none());
}

#[test]
fn without_a_quorum_nothing_changes_and_everything_is_readable() {
    let mut lab = Lab::new();
    lab.machine(101);
    lab.state.set_quorate(false);
    assert_eq!(lab.ask("GET /cluster/status")[0]["quorate"], 0);
    for line in [
        "POST /nodes/pve1/qemu/9000/clone newid=102",
        "PUT /nodes/pve1/qemu/101/config cores=4",
        "POST /nodes/pve1/qemu/101/status/start",
        "DELETE /nodes/pve1/qemu/101",
        "POST /pools poolid=a",
    ] {
        assert_eq!(lab.refused(line), "500 cluster not ready - no quorum?", "{line}");
    }
    assert_eq!(lab.refused("GET /nodes/pve1/qemu/101/config"), "200 OK");
}

#[test]
fn a_node_that_is_down_is_a_595_and_its_vms_are_unknown() {
    let mut lab = Lab::new();
    lab.run("POST /nodes/pve1/qemu/9000/clone newid=101 target=pve2");
    lab.pass(10_000);
    lab.state.set_online("pve2", false);
    assert_eq!(lab.refused("GET /nodes/pve2/qemu/101/config"), "595 No route to host");
    let vms = lab.ask("GET /cluster/resources type=vm");
    assert_eq!((vms[0]["vmid"].as_u64(), vms[0]["status"].as_str()), (Some(101), Some("unknown")));
    assert_eq!(lab.ask("GET /nodes")[1]["status"], "offline");
    lab.state.set_online("pve1", false);
    assert_eq!(lab.refused("GET /version"), "lost");
}

#[test]
fn the_clock_of_the_server_can_be_wrong() {
    let mut lab = Lab::new();
    let time = |lab: &mut Lab| lab.ask("GET /nodes/pve1/time")["time"].as_i64().unwrap();
    let before = time(&mut lab);
    lab.state.set_clock_ahead(-90);
    assert_eq!(time(&mut lab), before - 90);
}

#[test]
fn the_same_seed_and_requests_give_the_same_answers() {
    let story = || {
        let mut lab = Lab::with(|setup| setup.max_clones = Some(1));
        let mut answers = Vec::new();
        for id in 101..110 {
            answers.push(format!("{:?}", lab.send(&format!("POST /nodes/pve1/qemu/9000/clone newid={id}"))));
            lab.pass(700);
        }
        lab.pass(60_000);
        answers.push(format!("{:?} {:?}", lab.state.vms(), lab.state.tasks()));
        answers
    };
    assert_eq!(story(), story());
}

#[test]
fn a_thousand_machines_come_and_go_without_a_trace() {
    let mut lab = Lab::with(|setup| {
        setup.timing = crate::Timing::short();
        setup.nodes[0].memory = 1 << 50;
    });
    for id in 100..1100 {
        lab.ask(&format!("POST /nodes/pve1/qemu/9000/clone newid={id} pool=virtpilot"));
    }
    lab.pass(1000);
    assert_eq!(lab.ask("GET /cluster/resources type=vm").as_array().unwrap().len(), 1001);
    for (action, milliseconds) in [("POST {}/status/start", 100), ("POST {}/status/stop", 100), ("DELETE {}", 100)] {
        for id in 100..1100 {
            lab.ask(&action.replace("{}", &format!("/nodes/pve1/qemu/{id}")));
        }
        lab.pass(milliseconds);
    }
    assert!(lab.state.tasks().values().all(|task| task.exit.as_deref() == Some("OK")));
    assert_eq!(lab.state.vms().len(), 1);
    assert!(lab.state.pool_members("virtpilot").is_empty());
    assert_eq!(lab.state.storages()["shared"].volumes.len(), 1);
}
