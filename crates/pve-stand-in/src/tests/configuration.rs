//! Changes of configurations.

use super::Lab;

#[test]
fn changes_are_stored_as_the_server_stores_them() {
    let table = [
        ("tags=b;A,c", "tags", "a;b;c"),
        ("cores=4", "cores", "4"),
        ("memory=4096", "memory", "\"4096\""),
        ("description=owner__record", "description", "owner record"),
        ("ide2=none,media=cdrom", "ide2", "none,media=cdrom"),
        ("ide2=local-lvm:cloudinit", "ide2", "local-lvm:vm-101-cloudinit,media=cdrom,size=4M"),
        ("scsi1=local-lvm:10", "scsi1", "local-lvm:vm-101-disk-0,size=10G"),
        ("delete=agent", "agent", "null"),
    ];
    for (change, key, expected) in table {
        let mut lab = Lab::new();
        lab.machine(101);
        lab.ask(&format!("PUT /nodes/pve1/qemu/101/config {change}"));
        let found = lab.ask("GET /nodes/pve1/qemu/101/config")[key].to_string();
        assert!(found == expected || found == format!("\"{expected}\""), "{change}: {found}");
    }
}

#[test]
fn a_network_interface_keeps_its_address_unless_its_model_changes() {
    let mut lab = Lab::new();
    lab.machine(101);
    let net = |lab: &mut Lab| lab.ask("GET /nodes/pve1/qemu/101/config")["net0"].as_str().unwrap().to_owned();
    let before = net(&mut lab);
    lab.ask("PUT /nodes/pve1/qemu/101/config net0=virtio,bridge=vmbr0,tag=7");
    assert_eq!(net(&mut lab), format!("{before},tag=7"));
    lab.ask("PUT /nodes/pve1/qemu/101/config net0=e1000,bridge=vmbr0");
    assert_ne!(net(&mut lab)[6..], before[7..]);
}

#[test]
fn wrong_values_are_refused_all_at_once() {
    let mut lab = Lab::new();
    lab.machine(101);
    let table = [
        (
            "cores=0 memory=1",
            r#"{"cores":"value must have a minimum value of 1","memory":"value must have a minimum value of 16"}"#,
        ),
        ("tags=hyperfleet.io/claim", r#"{"tags":"invalid format - invalid characters in tag\n"}"#),
        ("onboot=maybe", r#"{"onboot":"type check ('boolean') failed - got 'maybe'"}"#),
        ("cores=two", r#"{"cores":"type check ('integer') failed - got 'two'"}"#),
        ("scsi1=shared:101/none.qcow2", r#"{"scsi1":"volume 'shared:101/none.qcow2' does not exist"}"#),
    ];
    for (change, errors) in table {
        let line = format!("PUT /nodes/pve1/qemu/101/config {change}");
        assert_eq!(lab.refused(&line), format!("400 Parameter verification failed. {errors}"), "{change}");
    }
    assert_eq!(lab.refused("PUT /nodes/pve1/qemu/101/config"), "500 no options specified");
}

#[test]
fn a_digest_protects_against_changes_by_others() {
    let mut lab = Lab::new();
    lab.machine(101);
    let config = lab.ask("GET /nodes/pve1/qemu/101/config");
    let line = format!("PUT /nodes/pve1/qemu/101/config cores=8 digest={}", config["digest"].as_str().unwrap());
    lab.ask("PUT /nodes/pve1/qemu/101/config tags=other");
    assert_eq!(lab.refused(&line), "500 detected modified configuration - file changed by other user? Try again.");
}

#[test]
fn hardware_of_a_running_vm_changes_with_its_next_start() {
    let mut lab = Lab::new();
    lab.machine(101);
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/config cores=8 tags=x"), "OK");
    assert_eq!(lab.ask("GET /nodes/pve1/qemu/101/config")["cores"], 8);
    assert_eq!(lab.ask("GET /nodes/pve1/qemu/101/config current=1")["cores"], 2);
    assert_eq!(lab.ask("GET /nodes/pve1/qemu/101/config current=1")["tags"], "x");
    lab.run("POST /nodes/pve1/qemu/101/status/stop");
    lab.run("POST /nodes/pve1/qemu/101/status/start");
    assert_eq!(lab.ask("GET /nodes/pve1/qemu/101/config current=1")["cores"], 8);
}

#[test]
fn disks_only_grow() {
    let mut lab = Lab::new();
    lab.machine(101);
    let size = |lab: &mut Lab| {
        lab.ask("GET /nodes/pve1/qemu/101/config")["scsi0"].as_str().unwrap().rsplit('=').next().unwrap().to_owned()
    };
    assert_eq!(lab.run("PUT /nodes/pve1/qemu/101/resize disk=scsi0 size=+2G"), "OK");
    assert_eq!(size(&mut lab), "10G");
    assert_eq!(lab.run("PUT /nodes/pve1/qemu/101/resize disk=scsi0 size=20G"), "OK");
    assert_eq!(size(&mut lab), "20G");
    assert_eq!(
        lab.refused("PUT /nodes/pve1/qemu/101/resize disk=scsi0 size=5G"),
        "500 shrinking disks is not supported"
    );
    assert_eq!(lab.refused("PUT /nodes/pve1/qemu/101/resize disk=scsi5 size=5G"), "500 disk 'scsi5' does not exist");
}

#[test]
fn only_unreferenced_disks_that_are_asked_for_are_removed() {
    for (asked, left) in [(0, 1), (1, 0)] {
        let mut lab = Lab::new();
        lab.machine(101);
        lab.ask("PUT /nodes/pve1/qemu/101/config scsi1=local-lvm:10");
        lab.state.vm_mut(101).unwrap().config.remove("scsi1");
        assert_eq!(lab.run(&format!("DELETE /nodes/pve1/qemu/101 destroy-unreferenced-disks={asked}")), "OK");
        let volumes = lab.state.storages().values().flat_map(|storage| storage.volumes.values());
        assert_eq!(volumes.filter(|volume| volume.vmid == Some(101)).count(), left, "{asked}");
    }
}

#[test]
fn a_template_with_linked_clones_and_a_protected_vm_are_not_destroyed() {
    let mut lab = Lab::new();
    lab.machine(101);
    assert_eq!(
        lab.run("DELETE /nodes/pve1/qemu/9000"),
        "base volume 'shared:9000/base-9000-disk-0.qcow2' is still in use by linked cloned"
    );
    lab.ask("PUT /nodes/pve1/qemu/101/config protection=1");
    assert_eq!(lab.refused("DELETE /nodes/pve1/qemu/101"), "500 can't remove VM 101 - protection mode enabled");
}
