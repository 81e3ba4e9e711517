//! Uploads, content and full storages.

use super::{Lab, request};
use crate::File;

fn upload(lab: &mut Lab, line: &str, bytes: usize) -> String {
    let mut request = request(line).token(&lab.token);
    request.file = Some(File { name: "seed.iso".to_owned(), content: vec![7; bytes] });
    let response = lab.state.handle(&request, lab.now).answer().unwrap();
    match response.data().and_then(|upid| upid.as_str()) {
        Some(upid) => lab.exit(upid),
        None => format!("{} {}", response.status, response.reason),
    }
}

#[test]
fn an_iso_is_uploaded_listed_attached_and_deleted() {
    let mut lab = Lab::fleet();
    lab.machine(101);
    assert_eq!(upload(&mut lab, "POST /nodes/pve1/storage/local/upload content=iso filename=seed.iso", 2048), "OK");
    let found = lab.ask("GET /nodes/pve1/storage/local/content content=iso");
    assert_eq!((found[0]["volid"].as_str(), found[0]["size"].as_u64()), (Some("local:iso/seed.iso"), Some(2048)));
    assert_eq!(lab.ask("GET /nodes/pve1/storage/local/content/local:iso/seed.iso")["size"], 2048);
    let missing = "500 volume_size_info on 'local:iso/none.iso' failed";
    assert_eq!(lab.refused("GET /nodes/pve1/storage/local/content/iso/none.iso"), missing);
    assert_eq!(lab.ask("GET /nodes/pve2/storage/local/content").as_array().unwrap().len(), 0, "it is local");
    lab.ask("PUT /nodes/pve1/qemu/101/config ide2=local:iso/seed.iso,media=cdrom");
    assert_eq!(lab.ask("GET /nodes/pve1/qemu/101/config")["ide2"], "local:iso/seed.iso,media=cdrom,size=2K");
    assert_eq!(lab.run("POST /nodes/pve1/qemu/101/status/start"), "OK");
    assert_eq!(lab.run("DELETE /nodes/pve1/storage/local/content/local:iso/seed.iso"), "OK");
    assert_eq!(
        lab.run("DELETE /nodes/pve1/storage/local/content/iso/seed.iso"),
        "volume 'local:iso/seed.iso' does not exist"
    );
}

#[test]
fn wrong_uploads_are_refused() {
    let mut lab = Lab::new();
    let table = [
        ("local/upload content=snippets filename=a.iso", "400 Parameter verification failed."),
        ("local/upload content=iso filename=a.txt", "400 Parameter verification failed."),
        ("local-lvm/upload content=iso filename=a.iso", "500 storage 'local-lvm' does not support 'iso' content"),
        ("none/upload content=iso filename=a.iso", "500 storage 'none' does not exist"),
    ];
    for (line, expected) in table {
        assert_eq!(upload(&mut lab, &format!("POST /nodes/pve1/storage/{line}"), 10), expected, "{line}");
    }
}

#[test]
fn a_full_storage_fails_with_the_text_of_its_kind() {
    let mut lab = Lab::new();
    lab.state.set_full("shared", true);
    let exit = lab.run("POST /nodes/pve1/qemu/9000/clone newid=101");
    assert_eq!(
        exit,
        "clone failed: unable to create image: qemu-img: 9000/base-9000-disk-0.qcow2/101/vm-101-disk-0.qcow2: No space left on device"
    );
    let exit = lab.run("POST /nodes/pve1/qemu/9000/clone newid=101 full=1 storage=local-lvm");
    assert_eq!(exit, "OK");
    lab.state.set_full("local-lvm", true);
    let exit = lab.run("POST /nodes/pve1/qemu/9000/clone newid=102 full=1 storage=local-lvm");
    assert!(exit.contains("free space in thin pool pve/data reached threshold"), "{exit}");
    assert_eq!(lab.ask("GET /nodes/pve1/storage/local-lvm/status")["avail"], 0);
    lab.state.set_full("local", true);
    assert_eq!(
        upload(&mut lab, "POST /nodes/pve1/storage/local/upload content=iso filename=a.iso", 10),
        "No space left on device"
    );
}

#[test]
fn storages_are_listed_by_content() {
    let mut lab = Lab::new();
    let names = |lab: &mut Lab, line: &str| -> Vec<String> {
        lab.ask(line).as_array().unwrap().iter().map(|entry| entry["storage"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&mut lab, "GET /nodes/pve1/storage"), ["local", "local-lvm", "shared"]);
    assert_eq!(names(&mut lab, "GET /nodes/pve1/storage content=images"), ["local-lvm", "shared"]);
    assert_eq!(lab.ask("GET /cluster/resources type=storage").as_array().unwrap().len(), 9);
}

#[test]
fn a_full_clone_takes_space_and_a_linked_one_does_not() {
    let mut lab = Lab::with(|setup| setup.storages[1].bytes = 12 << 30);
    let used =
        |lab: &mut Lab, storage: &str| lab.ask(&format!("GET /nodes/pve1/storage/{storage}/status"))["used"].as_u64();
    lab.run("POST /nodes/pve1/qemu/9000/clone newid=101");
    assert_eq!(used(&mut lab, "shared"), Some(8 << 30));
    assert_eq!(lab.run("POST /nodes/pve1/qemu/9000/clone newid=102 full=1 storage=local-lvm"), "OK");
    assert_eq!(used(&mut lab, "local-lvm"), Some(8 << 30));
    let exit = lab.run("POST /nodes/pve1/qemu/9000/clone newid=103 full=1 storage=local-lvm");
    assert!(exit.starts_with("clone failed: lvcreate 'pve/vm-103-disk-0' error:"), "{exit}");
    assert_eq!(lab.run("DELETE /nodes/pve1/qemu/102"), "OK");
    assert_eq!(used(&mut lab, "local-lvm"), Some(0));
}
