//! Who may do what.

use super::{Lab, request};
use crate::{Credentials, Method, Request, Setup};
use std::time::Duration;

#[test]
fn wrong_credentials_are_refused_with_their_own_text() {
    let mut lab = Lab::new();
    for (token, expected) in [
        ("nonsense", "401 unable to parse token"),
        ("nobody@pam!x=1", "401 no such user ('nobody@pam')"),
        ("root@pam!other=1", "401 no such token 'other' for user 'root@pam'"),
        ("root@pam!full=1", "401 invalid token value!"),
    ] {
        token.clone_into(&mut lab.token);
        assert_eq!(lab.refused("GET /version"), expected);
    }
    let nobody = lab.state.handle(&Request::new(Method::Get, "/version"), lab.now).answer().unwrap();
    assert_eq!((nobody.status, nobody.reason.as_str(), nobody.body), (401, "No ticket", None));
    assert_eq!(lab.refused("POST /access/ticket username=root@pam password=wrong"), "401 authentication failure");
}

#[test]
fn a_ticket_is_valid_for_two_hours_and_needs_the_csrf_token_for_writes() {
    let mut lab = Lab::new();
    let login = lab.ask("POST /access/ticket username=root realm=pam password=correct__horse");
    assert_eq!(login["username"], "root@pam");
    assert_eq!(login["cap"]["vms"]["VM.Clone"], 1);
    let ticket = login["ticket"].as_str().unwrap().to_owned();
    let csrf = login["CSRFPreventionToken"].as_str().unwrap().to_owned();
    let mut send = |line: &str, csrf: Option<&str>, seconds: u64| {
        let mut request = request(line);
        request.credentials = Credentials::Ticket { ticket: ticket.clone(), csrf: csrf.map(str::to_owned) };
        let response = lab.state.handle(&request, Duration::from_secs(seconds)).answer().unwrap();
        format!("{} {}", response.status, response.reason)
    };
    let invalid = "401 Permission denied - invalid csrf token";
    assert_eq!(send("GET /version", None, 1), "200 OK");
    assert_eq!(send("POST /pools poolid=a", None, 1), invalid);
    assert_eq!(send("POST /pools poolid=a", Some("65000000:00"), 1), invalid);
    assert_eq!(send("POST /pools poolid=a", Some(&csrf), 1), "200 OK");
    assert_eq!(send("GET /version", None, 7199), "200 OK");
    assert_eq!(send("GET /version", None, 7200), "401 permission denied - invalid PVE ticket");
}

#[test]
fn a_valid_ticket_is_renewed_and_a_clock_that_jumps_makes_it_invalid() {
    let mut lab = Lab::new();
    let Some(Credentials::Ticket { ticket, .. }) = lab.state.ticket(Setup::ROOT, Setup::ROOT_PASSWORD) else {
        panic!()
    };
    let line = format!("POST /access/ticket username=root@pam password={ticket}");
    lab.pass(3_600_000);
    assert_eq!(lab.refused(&line), "200 OK");
    lab.state.set_clock_ahead(7200);
    assert_eq!(lab.refused(&line), "401 authentication failure");
}

#[test]
fn a_missing_privilege_is_named_with_its_path() {
    let mut lab = Lab::fleet();
    lab.machine(101);
    lab.state.add_foreign_vm(500, "pve1", "database");
    let table = [
        ("GET /nodes/pve1/qemu/500/config", "(/vms/500, VM.Audit)"),
        ("GET /nodes/pve1/qemu/999/config", "(/vms/999, VM.Audit)"),
        ("DELETE /nodes/pve1/qemu/500", "(/vms/500, VM.Allocate)"),
        ("POST /nodes/pve1/qemu/500/status/stop", "(/vms/500, VM.PowerMgmt)"),
        ("POST /nodes/pve1/qemu/500/clone newid=102 pool=virtpilot", "(/vms/500, VM.Clone)"),
        ("PUT /nodes/pve1/qemu/9000/config cores=1", "(/vms/9000, VM.Config.CPU)"),
        ("PUT /nodes/pve1/qemu/101/config scsihw=lsi", "(/vms/101, VM.Config.HWType)"),
        ("POST /pools poolid=other", "(/pool/other, Pool.Allocate)"),
        ("DELETE /nodes/pve1/storage/local-lvm/content/local-lvm:x", "(/storage/local-lvm, Datastore.Allocate)"),
    ];
    for (line, missing) in table {
        assert_eq!(lab.refused(line), format!("403 Permission check failed {missing}"), "{line}");
    }
    let without_pool = "POST /nodes/pve1/qemu/9000/clone newid=102";
    assert_eq!(lab.refused(without_pool), "403 Permission check failed");
    assert_eq!(lab.refused("PUT /nodes/pve1/qemu/101/config cores=4 tags=a description=b"), "200 OK");
    let vms = lab.ask("GET /cluster/resources type=vm");
    let ids: Vec<u64> = vms.as_array().unwrap().iter().map(|vm| vm["vmid"].as_u64().unwrap()).collect();
    assert_eq!(ids, [101, 9000]);
}

#[test]
fn a_separated_token_has_what_both_it_and_its_user_have() {
    let mut lab = Lab::fleet();
    let may = |lab: &mut Lab| lab.ask("GET /access/permissions")["/pool/virtpilot"]["VM.Allocate"].clone();
    assert_eq!(may(&mut lab), 1);
    lab.state.revoke("fleet@pve", "VM.Allocate");
    assert!(may(&mut lab).is_null());
    lab.state.grant("fleet@pve", "/pool/virtpilot", &["VM.Allocate"]);
    assert_eq!(may(&mut lab), 1);
    lab.state.revoke("fleet@pve!virtpilot", "VM.Allocate");
    assert!(may(&mut lab).is_null());
}

#[test]
fn the_token_with_the_least_privileges_can_do_everything_that_a_fleet_does() {
    let mut lab = Lab::fleet();
    lab.machine(101);
    for line in [
        "PUT /nodes/pve1/qemu/101/resize disk=scsi0 size=+2G",
        "POST /nodes/pve1/qemu/101/config cores=4 memory=4096 net0=virtio,bridge=vmbr0,tag=5 tags=fleet",
        "POST /nodes/pve1/qemu/101/status/start",
    ] {
        assert_eq!(lab.run(line), "OK", "{line}");
    }
    lab.pass(60_000);
    assert_eq!(lab.refused("GET /nodes/pve1/qemu/101/agent/network-get-interfaces"), "200 OK");
    assert_eq!(lab.refused("POST /nodes/pve1/qemu/101/agent/file-write file=/run/x content=y"), "200 OK");
    assert_eq!(lab.state.vm(101).unwrap().guest.files["/run/x"], "y");
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/stop"), "OK");
    assert_eq!(lab.run("DELETE /nodes/pve1/qemu/101 purge=1 destroy-unreferenced-disks=1"), "OK");
    assert!(lab.state.vm(101).is_none());
    for line in [
        "GET /cluster/status",
        "GET /nodes/pve1/status",
        "GET /nodes/pve1/storage",
        "GET /nodes/pve1/network",
        "GET /pools",
    ] {
        assert_eq!(lab.refused(line), "200 OK", "{line}");
    }
}

#[test]
fn privileges_on_a_vm_end_with_it() {
    let mut lab = Lab::new();
    lab.machine(101);
    for subject in ["fleet@pve", "fleet@pve!virtpilot"] {
        lab.state.grant(subject, "/vms/101", &["VM.Console"]);
    }
    assert_eq!(lab.run("DELETE /nodes/pve1/qemu/101"), "OK");
    lab.machine(101);
    lab.token = Setup::FLEET_TOKEN.to_owned();
    assert!(lab.ask("GET /access/permissions path=/vms/101")["/vms/101"]["VM.Console"].is_null());
    assert_eq!(lab.ask("GET /access/permissions path=/vms/101")["/vms/101"]["VM.Audit"], 1, "from the pool");
}
