//! Start, stop, shutdown, destruction, guests, lists.

use super::Lab;
use std::time::Duration;

#[test]
fn a_vm_lives_through_all_its_states() {
    let mut lab = Lab::new();
    lab.machine(101);
    let agent = "GET /nodes/pve1/qemu/101/agent/network-get-interfaces";
    assert_eq!(lab.refused(agent), "500 VM 101 is not running");
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/start"), "OK");
    assert_eq!(lab.refused(agent), "500 QEMU guest agent is not running");
    assert_eq!(lab.refused("POST /nodes/pve1/qemu/101/agent/ping"), "500 QEMU guest agent is not running");
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/start"), "VM 101 already running");
    let status = lab.ask("GET /nodes/pve1/qemu/101/status/current");
    assert_eq!((status["status"].as_str(), status["qmpstatus"].as_str()), (Some("running"), Some("running")));
    assert_eq!(lab.refused("DELETE /nodes/pve1/qemu/101"), "500 VM 101 is running - destroy failed");
    lab.pass(30_000);
    let found = lab.ask(agent);
    assert_eq!(found["result"][1]["ip-addresses"][0]["ip-address"], "10.20.0.101");
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/shutdown"), "OK");
    assert_eq!(lab.ask("GET /nodes/pve1/qemu/101/status/current")["status"], "stopped");
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/stop"), "OK");
    assert_eq!(lab.run("DELETE /nodes/pve1/qemu/101 purge=1"), "OK");
    assert_eq!(
        lab.refused("GET /nodes/pve1/qemu/101/status/current"),
        "500 Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist"
    );
    assert!(lab.state.pool_members("virtpilot").is_empty());
}

#[test]
fn a_destruction_right_after_the_stop_request_is_refused() {
    let mut lab = Lab::new();
    lab.machine(101);
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    let stop = lab.ask("POST /nodes/pve1/qemu/101/status/stop");
    assert_eq!(lab.refused("DELETE /nodes/pve1/qemu/101"), "500 VM 101 is running - destroy failed");
    assert_eq!(lab.exit(stop.as_str().unwrap()), "OK");
    assert_eq!(lab.run("DELETE /nodes/pve1/qemu/101"), "OK");
}

#[test]
fn a_vm_that_is_started_while_it_is_destroyed_is_not_lost() {
    let mut lab = Lab::new();
    lab.machine(101);
    let start = lab.ask("POST /nodes/pve1/qemu/101/status/start");
    let destroy = lab.ask("DELETE /nodes/pve1/qemu/101");
    assert_eq!(lab.exit(start.as_str().unwrap()), "OK");
    assert_eq!(lab.exit(destroy.as_str().unwrap()), "VM 101 is running - destroy failed");
}

#[test]
fn a_guest_that_does_not_react_is_only_stopped_by_force() {
    let mut lab = Lab::new();
    lab.machine(101);
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    lab.pass(30_000);
    lab.state.guest_mut(101).unwrap().ignores_shutdown = true;
    let line = "POST /nodes/pve1/qemu/101/status/shutdown timeout=5";
    assert_eq!(lab.run(line), "VM quit/powerdown failed - got timeout");
    lab.ask("POST /nodes/pve1/qemu/101/status/shutdown timeout=100");
    assert_eq!(
        lab.run("POST /nodes/pve1/qemu/101/status/stop"),
        "can't lock file '/var/lock/qemu-server/lock-101.conf' - got timeout"
    );
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/stop overrule-shutdown=1"), "OK");
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    lab.pass(30_000);
    assert_eq!(lab.run(&format!("{line} forceStop=1")), "OK");
}

#[test]
fn guests_power_themselves_off_and_a_reused_id_is_another_vm() {
    let mut lab = Lab::new();
    lab.state.guest_mut(9000).unwrap().powers_off_after = Some(Duration::from_secs(60));
    lab.machine(101);
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    lab.pass(30_000);
    lab.run("POST /nodes/pve1/qemu/101/status/stop");
    lab.run("DELETE /nodes/pve1/qemu/101");
    let first = lab.state.history().deeds.last().unwrap().2;
    lab.machine(101);
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    assert_ne!(lab.state.vm(101).unwrap().birth, first);
    lab.pass(40_000);
    assert!(lab.state.vm(101).unwrap().run.is_some(), "the end of the first run is not one of the second");
    lab.pass(30_000);
    assert!(lab.state.vm(101).unwrap().run.is_none());
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    lab.state.power_off(101);
    assert!(lab.state.vm(101).unwrap().run.is_none());
}

#[test]
fn a_start_that_fails_says_why_in_its_log() {
    let table = [
        ("net0=virtio,bridge=vmbr9", "start failed: QEMU exited with code 1", "bridge 'vmbr9' does not exist"),
        (
            "memory=99999999",
            "start failed: QEMU exited with code 1",
            "kvm: cannot set up guest memory 'pc.ram': Cannot allocate memory",
        ),
        (
            "ide2=local:iso/none.iso,media=cdrom",
            "volume 'local:iso/none.iso' does not exist",
            "TASK ERROR: volume 'local:iso/none.iso' does not exist",
        ),
    ];
    for (change, exit, log) in table {
        let mut lab = Lab::new();
        lab.machine(101);
        lab.ask(&format!("PUT /nodes/pve1/qemu/101/config {change}"));
        let upid = lab.ask("POST /nodes/pve1/qemu/101/status/start");
        let upid = upid.as_str().unwrap();
        assert_eq!(lab.exit(upid), exit);
        let lines = lab.ask(&format!("GET /nodes/pve1/tasks/{upid}/log"));
        assert_eq!(lines[0]["t"], log);
    }
}

#[test]
fn the_list_of_the_cluster_is_as_old_as_the_last_round() {
    let mut lab = Lab::new();
    lab.machine(101);
    let of = |lab: &mut Lab| lab.ask("GET /cluster/resources type=vm")[0].clone();
    let entry = of(&mut lab);
    assert_eq!((entry["status"].as_str(), entry["name"].as_str()), (Some("unknown"), None));
    assert_eq!((entry["pool"].as_str(), entry["id"].as_str()), (Some("virtpilot"), Some("qemu/101")));
    lab.pass(10_000);
    assert_eq!((of(&mut lab)["status"].as_str(), of(&mut lab)["name"].as_str()), (Some("stopped"), Some("m101")));
    assert_eq!(of(&mut lab)["template"], 0);
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    assert_eq!(of(&mut lab)["status"], "stopped");
    lab.pass(10_000);
    assert_eq!(of(&mut lab)["status"], "running");
    lab.state.set_online("pve1", true);
    lab.state.timing.statistics = Duration::ZERO;
    lab.state.power_off(101);
    assert_eq!(of(&mut lab)["status"], "stopped");
}

#[test]
fn tasks_show_their_state_and_foreign_ones_are_hidden() {
    let mut lab = Lab::new();
    let upid = lab.ask("POST /nodes/pve1/qemu/9000/clone newid=101");
    let upid = upid.as_str().unwrap().to_owned();
    let fields: Vec<&str> = upid.split(':').collect();
    assert_eq!(
        (fields.len(), fields[0], fields[1], fields[5], fields[6], fields[7]),
        (9, "UPID", "pve1", "qmclone", "9000", "root@pam!full")
    );
    assert!(fields[2..5].iter().all(|field| field.len() == 8 && u64::from_str_radix(field, 16).is_ok()), "{upid}");
    let path = format!("GET /nodes/pve1/tasks/{upid}/status");
    let status = lab.ask(&path);
    assert_eq!((status["status"].as_str(), status["exitstatus"].as_str()), (Some("running"), None));
    lab.pass(5000);
    let status = lab.ask(&path);
    assert_eq!((status["status"].as_str(), status["exitstatus"].as_str()), (Some("stopped"), Some("OK")));
    assert_eq!(lab.ask("GET /nodes/pve1/tasks limit=5")[0]["status"], "OK");
    assert_eq!(
        lab.refused("GET /nodes/pve1/tasks/x/status"),
        r#"400 Parameter verification failed. {"upid":"unable to parse worker upid"}"#
    );
    let gone = "UPID:pve1:00000001:00000001:00000001:qmclone:1:root@pam!full:";
    assert_eq!(
        lab.refused(&format!("GET /nodes/pve1/tasks/{gone}/status")),
        r#"400 Parameter verification failed. {"upid":"no such task"}"#
    );
    lab.state.revoke("fleet@pve!virtpilot", "Sys.Audit");
    lab.token = crate::Setup::FLEET_TOKEN.to_owned();
    assert_eq!(lab.refused(&path), "403 Permission check failed (/nodes/pve1, Sys.Audit)");
}

#[test]
fn tasks_of_one_vm_run_one_after_the_other() {
    let mut lab = Lab::new();
    lab.machine(101);
    let before = lab.now;
    lab.ask("POST /nodes/pve1/qemu/101/config cores=4");
    let start = lab.ask("POST /nodes/pve1/qemu/101/status/start");
    assert_eq!(lab.exit(start.as_str().unwrap()), "OK");
    assert_eq!(lab.state.vm(101).unwrap().run.unwrap().since - before, Duration::from_millis(2300));
    assert_eq!(lab.ask("GET /nodes/pve1/qemu/101/config current=1")["cores"], 4);
}

#[test]
fn a_guest_that_boots_or_is_slow_does_not_shut_down_in_time() {
    let mut lab = Lab::new();
    lab.machine(101);
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    let failed = "VM quit/powerdown failed - got timeout";
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/shutdown timeout=8"), failed, "it boots");
    lab.pass(30_000);
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/shutdown timeout=1"), failed, "it needs six seconds");
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/shutdown timeout=8"), "OK");
}

#[test]
fn a_round_shows_what_was_true_then_however_late_it_is_asked_for() {
    let mut lab = Lab::new();
    lab.machine(101);
    lab.pass(9000 - u64::try_from(lab.now.as_millis()).unwrap());
    lab.ask("POST /nodes/pve1/qemu/101/status/start");
    lab.now = Duration::from_secs(19);
    assert_eq!(
        lab.ask("GET /cluster/resources type=vm")[0]["status"],
        "stopped",
        "it was up at 11 s, after the round at 10 s"
    );
    assert_eq!(lab.ask("GET /nodes/pve1/qemu/101/status/current")["status"], "running");
}

#[test]
fn a_vm_that_is_started_again_is_not_ended_by_its_first_run() {
    let mut lab = Lab::new();
    lab.machine(101);
    lab.state.guest_mut(101).unwrap().powers_off_after = Some(Duration::from_secs(60));
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    lab.pass(50_000);
    lab.run("POST /nodes/pve1/qemu/101/status/stop");
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    lab.pass(30_000);
    assert!(lab.state.vm(101).unwrap().run.is_some());
}

#[test]
fn an_id_that_cannot_be_one_is_a_wrong_parameter() {
    let expected = r#"400 Parameter verification failed. {"vmid":"value must have a minimum value of 100"}"#;
    assert_eq!(Lab::new().refused("GET /nodes/pve1/qemu/5/config"), expected);
}
