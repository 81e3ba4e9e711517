//! Clones: what is refused, what exists when, and locks.

use super::Lab;
use crate::{Deed, Fault, FaultEffect, Method, StorageKind, StorageSetup, TemplateSetup};

fn local_template(lab: &mut Lab, vmid: u32, storage: &str) {
    lab.state.add_template(&TemplateSetup {
        vmid,
        name: "local".to_owned(),
        node: "pve1".to_owned(),
        storage: storage.to_owned(),
        disk: 8 << 30,
        tags: String::new(),
        has_agent: false,
    });
}

#[test]
fn a_clone_that_cannot_be_is_refused_with_the_text_of_the_server() {
    let mut lab = Lab::with(|setup| {
        setup.storages.push(StorageSetup {
            name: "san".to_owned(),
            kind: StorageKind::Lvm,
            is_shared: true,
            content: vec!["images".to_owned()],
            bytes: 1 << 40,
        });
    });
    local_template(&mut lab, 9001, "local-lvm");
    local_template(&mut lab, 9002, "san");
    lab.state.add_foreign_vm(500, "pve1", "a");
    lab.state.add_foreign_vm(501, "pve2", "b");
    let table = [
        ("9000/clone newid=102 storage=shared", "500 parameter 'storage' not allowed for linked clones"),
        ("9000/clone newid=102 format=qcow2", "500 parameter 'format' not allowed for linked clones"),
        ("9000/clone newid=102 full=1 storage=none", "500 storage 'none' does not exist"),
        (
            "9000/clone newid=102 full=1 storage=local-lvm target=pve2",
            "500 can't clone to non-shared storage 'local-lvm'",
        ),
        ("9001/clone newid=102 target=pve2", "500 can't clone VM to node 'pve2' (VM uses local storage)"),
        ("9002/clone newid=102", "500 Linked clone feature is not supported for drive 'scsi0'"),
        ("9000/clone newid=102 target=pve9", "500 no such cluster node 'pve9'"),
        ("9000/clone newid=102 pool=none", "500 pool 'none' does not exist"),
        ("9000/clone newid=500", "500 unable to create VM 500: config file already exists"),
        ("9000/clone newid=501", "500 VM 501 already exists on node 'pve2'"),
        ("999/clone newid=102", "500 Configuration file 'nodes/pve1/qemu-server/999.conf' does not exist"),
        (
            "9000/clone newid=50",
            r#"400 Parameter verification failed. {"newid":"value must have a minimum value of 100"}"#,
        ),
        ("9000/clone", r#"400 Parameter verification failed. {"newid":"property is missing and it is not optional"}"#),
        (
            "9000/clone newid=102 tags=a",
            r#"400 Parameter verification failed. {"tags":"property is not defined in schema and the schema does not allow additional properties"}"#,
        ),
        (
            "9000/clone newid=102 name=a_b",
            r#"400 Parameter verification failed. {"name":"invalid format - value does not look like a valid DNS name\n"}"#,
        ),
    ];
    for (line, expected) in table {
        assert_eq!(lab.refused(&format!("POST /nodes/pve1/qemu/{line}")), expected, "{line}");
    }
    assert!(lab.state.tasks().is_empty());
    assert_eq!(
        lab.refused("POST /nodes/pve9/qemu/9000/clone newid=102"),
        "500 hostname lookup 'pve9' failed - failed to get address info for: pve9: Name or service not known"
    );
}

#[test]
fn a_clone_gets_its_name_late_and_its_pool_and_node_last() {
    let mut lab = Lab::new();
    lab.ask("POST /nodes/pve1/qemu/9000/clone newid=101 name=m pool=virtpilot description=owner target=pve2");
    let config = lab.ask("GET /nodes/pve1/qemu/101/config");
    assert_eq!((config["lock"].as_str(), config["name"].as_str()), (Some("clone"), None));
    assert_eq!(lab.refused("DELETE /nodes/pve1/qemu/101"), "500 VM is locked (clone)");
    assert_eq!(lab.refused("POST /nodes/pve1/qemu/101/status/start"), "500 VM is locked (clone)");
    lab.pass(1600);
    let config = lab.ask("GET /nodes/pve1/qemu/101/config");
    assert_eq!((config["lock"].as_str(), config["name"].as_str()), (Some("clone"), Some("m")));
    assert_eq!(config["description"], "owner");
    assert!(lab.state.pool_members("virtpilot").is_empty());
    lab.pass(1500);
    assert_eq!(
        lab.refused("GET /nodes/pve1/qemu/101/config"),
        "500 Configuration file 'nodes/pve1/qemu-server/101.conf' does not exist"
    );
    let config = lab.ask("GET /nodes/pve2/qemu/101/config");
    assert_eq!(config["lock"].as_str(), None);
    assert_eq!(config["cores"], 2);
    assert_eq!(config["memory"], "2048");
    assert_eq!(config["scsi0"], "shared:9000/base-9000-disk-0.qcow2/101/vm-101-disk-0.qcow2,size=8G");
    assert_ne!(config["net0"], lab.ask("GET /nodes/pve1/qemu/9000/config")["net0"]);
    assert_eq!(lab.state.pool_members("virtpilot"), [101]);
}

#[test]
fn a_token_with_rights_from_a_pool_does_not_see_the_clone_before_its_end() {
    let mut lab = Lab::fleet();
    let upid = lab.ask("POST /nodes/pve1/qemu/9000/clone newid=101 pool=virtpilot");
    assert_eq!(lab.refused("GET /nodes/pve1/qemu/101/config"), "403 Permission check failed (/vms/101, VM.Audit)");
    assert_eq!(lab.exit(upid.as_str().unwrap()), "OK");
    assert_eq!(lab.refused("GET /nodes/pve1/qemu/101/config"), "200 OK");
    let status = lab.ask(&format!("GET /nodes/pve1/tasks/{}/status", upid.as_str().unwrap()));
    assert_eq!((status["user"].as_str(), status["tokenid"].as_str()), (Some("fleet@pve"), Some("virtpilot")));
}

#[test]
fn more_clones_of_a_storage_than_it_has_locks_fail_after_a_while_and_leave_nothing() {
    let mut lab = Lab::with(|setup| setup.max_clones = Some(2));
    let upids: Vec<String> = (101..106)
        .map(|id| lab.ask(&format!("POST /nodes/pve1/qemu/9000/clone newid={id}")).as_str().unwrap().to_owned())
        .collect();
    let exits: Vec<String> = upids.iter().map(|upid| lab.exit(upid)).collect();
    let lock = "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout";
    assert_eq!(exits, ["OK", "OK", lock, lock, lock]);
    assert_eq!(lab.state.vms().keys().copied().collect::<Vec<_>>(), [101, 102, 9000]);
}

#[test]
fn a_clone_that_gets_its_lock_in_time_goes_on() {
    let mut lab = Lab::with(|setup| setup.max_clones = Some(1));
    let first = lab.ask("POST /nodes/pve1/qemu/9000/clone newid=101");
    lab.pass(2500);
    let second = lab.ask("POST /nodes/pve1/qemu/9000/clone newid=102");
    assert!(lab.state.vm(102).is_none(), "nothing exists while it waits");
    assert_eq!(lab.exit(first.as_str().unwrap()), "OK");
    assert!(lab.state.vm(102).is_some());
    assert_eq!(lab.exit(second.as_str().unwrap()), "OK");
}

#[test]
fn an_id_that_is_taken_while_a_clone_waits_fails_the_clone_and_stays() {
    let mut lab = Lab::with(|setup| setup.max_clones = Some(1));
    lab.ask("POST /nodes/pve1/qemu/9000/clone newid=101");
    lab.pass(2500);
    let second = lab.ask("POST /nodes/pve1/qemu/9000/clone newid=102");
    lab.state.add_foreign_vm(102, "pve1", "other");
    assert_eq!(lab.exit(second.as_str().unwrap()), "clone failed: unable to create VM 102: config file already exists");
    assert_eq!(lab.state.vm(102).unwrap().name(), Some("other"));
}

#[test]
fn nextid_reserves_nothing_and_of_two_clones_one_gets_the_id() {
    let mut lab = Lab::new();
    assert_eq!(lab.ask("GET /cluster/nextid"), "100");
    assert_eq!(lab.ask("GET /cluster/nextid"), "100");
    let line = "POST /nodes/pve1/qemu/9000/clone newid=100";
    lab.ask(line);
    assert_eq!(lab.refused(line), "500 unable to create VM 100: config file already exists");
    assert_eq!(lab.ask("GET /cluster/nextid"), "101");
    assert_eq!(lab.ask("GET /cluster/nextid vmid=101"), "101");
    assert_eq!(
        lab.refused("GET /cluster/nextid vmid=100"),
        r#"400 Parameter verification failed. {"vmid":"VM 100 already exists"}"#
    );
}

#[test]
fn a_clone_that_fails_leaves_nothing_and_its_id_is_free() {
    let mut lab = Lab::new();
    let line = "POST /nodes/pve1/qemu/9000/clone newid=101 full=1 storage=shared pool=virtpilot";
    lab.state.inject(Fault::once(
        Method::Post,
        "/nodes/pve1/qemu/9000/clone",
        FaultEffect::TaskFails("disk broke".to_owned()),
    ));
    assert_eq!(lab.run(line), "clone failed: disk broke");
    assert!(lab.state.vm(101).is_none() && lab.state.pool_members("virtpilot").is_empty());
    let of_clone = lab.state.storages()["shared"].volumes.values().filter(|volume| volume.vmid == Some(101));
    assert_eq!(of_clone.count(), 0);
    assert_eq!(lab.run(line), "OK");
    let births: Vec<u64> = lab
        .state
        .history()
        .deeds
        .iter()
        .filter(|deed| deed.3 == Deed::Cloned { from: 9000 })
        .map(|deed| deed.2)
        .collect();
    assert_eq!(births.len(), 2);
    assert_ne!(births[0], births[1]);
}
