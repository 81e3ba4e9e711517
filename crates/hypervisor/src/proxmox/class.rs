//! What an error of Proxmox VE means: by its code, and by its text where the code says too little.

/// What kind of failure it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Class {
    /// Try again.
    Transient,
    /// Try again when the cluster has its quorum.
    NoQuorum,
    /// Never again like this.
    Permanent,
    /// A person has to change something: what.
    Configuration(String),
    /// There is not enough left: of what.
    Resource(Lack),
    /// The id is taken.
    Exists,
    /// The node says that there is no such machine; it may be on another one.
    Absent,
}

/// What there is not enough of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lack {
    Space,
    Memory,
    Ids,
}

impl Lack {
    /// What to do; the storage, if it is known.
    pub(crate) fn remedy(self, storage: Option<&str>) -> String {
        match (self, storage) {
            (Lack::Space, Some(storage)) => {
                format!("free space on storage {storage}, name another one, or end machines")
            }
            (Lack::Space, None) => "free space on the storage, name another one, or end machines".to_owned(),
            (Lack::Memory, _) => "end machines on the node, or lower overcommit.memoryPercent".to_owned(),
            (Lack::Ids, _) => "delete machines that nobody needs".to_owned(),
        }
    }
}

/// Texts in lower case, all parts of which have to occur, in the order in which they are looked for.
const TEXTS: &[(&[&str], Text)] = &[
    (&["can't lock file"], Text::Transient),
    (&["unable to acquire", "lock"], Text::Transient),
    (&["got timeout"], Text::Transient),
    (&["no quorum"], Text::NoQuorum),
    (&["is locked ("], Text::Transient),
    (&["detected modified configuration"], Text::Transient),
    (&["interrupted by signal"], Text::Transient),
    (&["vm ", "is running - destroy failed"], Text::Transient),
    (&["no space left on device"], Text::Resource(Lack::Space)),
    (&["not enough", "space"], Text::Resource(Lack::Space)),
    (&["insufficient", "space"], Text::Resource(Lack::Space)),
    (&["out of space"], Text::Resource(Lack::Space)),
    (&["out of data space"], Text::Resource(Lack::Space)),
    (&["quota exceeded"], Text::Resource(Lack::Space)),
    (&["cannot allocate memory"], Text::Resource(Lack::Memory)),
    (&["not enough", "memory"], Text::Resource(Lack::Memory)),
    (&["unable to get any free vmid"], Text::Resource(Lack::Ids)),
    (&["vm ", " already exists"], Text::Exists),
    (&["ct ", " already exists"], Text::Exists),
    (&["config file already exists"], Text::Exists),
    (&["configuration file 'nodes/", ".conf' does not exist"], Text::Absent),
    (&["unable to find configuration file for vm"], Text::Absent),
    (&["no such vm"], Text::Absent),
    // Before anything that a command of the guest agent may be called.
    (&["guest-", "has been disabled"], Text::Remedy(ALLOW_IN_GUEST)),
    (&["guest-", "not allowed"], Text::Remedy(ALLOW_IN_GUEST)),
    (&["guest-", "has not been found"], Text::Remedy("install a newer qemu-guest-agent in the template")),
    (
        &["no qemu guest agent configured"],
        Text::Remedy(
            "switch the guest agent on in the template (qm set ID --agent enabled=1), or use readiness.signal Running",
        ),
    ),
    (&["storage ", "does not exist"], Text::Remedy("create the storage, or name one that exists")),
    (&["no such storage"], Text::Remedy("create the storage, or name one that exists")),
    (
        &["storage ", "is not available on node"],
        Text::Remedy("make the storage available on that node, or name another one"),
    ),
    (&["storage ", "is disabled"], Text::Remedy("enable the storage in Proxmox VE, or name another one")),
    (&["storage ", "does not support"], Text::Remedy("allow this kind of content on the storage, or name another one")),
    (&["bridge ", "does not exist"], Text::Remedy("create the bridge on every node, or name one that exists")),
    (&["no such bridge"], Text::Remedy("create the bridge on every node, or name one that exists")),
    (&["pool ", "does not exist"], Text::Remedy("create the resource pool, or name one that exists")),
    (&["no such pool"], Text::Remedy("create the resource pool, or name one that exists")),
    (&["no such cluster node"], Text::Remedy("name only nodes of this Proxmox VE cluster")),
    (&["no such node"], Text::Remedy("name only nodes of this Proxmox VE cluster")),
    (&["hostname lookup ", "failed"], Text::Remedy("name only nodes of this Proxmox VE cluster")),
    (&["linked clone feature", "not"], Text::Remedy("use full clones, or a template on storage with linked clones")),
    (
        &["clone to non-shared storage"],
        Text::Remedy("put the template on shared storage, or a copy of it on every node"),
    ),
    (
        &["can't clone vm to node", "local storage"],
        Text::Remedy("put the template on shared storage, or a copy of it on every node"),
    ),
    (
        &["vcpus allowed per vm on this node"],
        Text::Remedy("lower resources.cpu of the template to the CPUs of the node, or allow larger nodes"),
    ),
    (&["full clone feature is not supported"], Text::Remedy("put the template on another storage")),
];

const ALLOW_IN_GUEST: &str = "allow the command in the guest of the template: take it out of block-rpcs (blacklist) in /etc/qemu/qemu-ga.conf or of the options \
     of the agent in /etc/sysconfig/qemu-ga, or use cloudInit.delivery Iso";

#[derive(Clone, Copy)]
enum Text {
    Transient,
    NoQuorum,
    Resource(Lack),
    Exists,
    Absent,
    Remedy(&'static str),
}

/// Whether a text says what is wrong.
pub(crate) fn is_known(text: &str) -> bool {
    let lower = text.to_lowercase();
    TEXTS.iter().any(|(parts, _)| parts.iter().all(|part| lower.contains(part)))
}

/// What an answer with this code and this text means. The exit status of a task counts as an error of the server.
pub(crate) fn classify(code: u16, text: &str) -> Class {
    match code {
        401 => return Class::Configuration(login_remedy(text)),
        403 => return Class::Configuration(privilege_remedy(text)),
        300..=399 => {
            return Class::Configuration(
                "use the address of the API itself, such as https://pve.example.com:8006".into(),
            );
        }
        // Errors between nodes: the answer of the node is missing.
        595 | 596 | 599 => return Class::Transient,
        _ => {}
    }
    let lower = text.to_lowercase();
    let found = TEXTS.iter().find(|(parts, _)| parts.iter().all(|part| lower.contains(part)));
    match (found, code) {
        (Some((_, Text::Transient)), _) => Class::Transient,
        (Some((_, Text::NoQuorum)), _) => Class::NoQuorum,
        (Some((_, Text::Resource(lack))), _) => Class::Resource(*lack),
        (Some((_, Text::Exists)), _) => Class::Exists,
        (Some((_, Text::Absent)), _) => Class::Absent,
        (Some((_, Text::Remedy(remedy))), _) => Class::Configuration((*remedy).to_owned()),
        (None, 404) => Class::Absent,
        (None, 408 | 425 | 429) => Class::Transient,
        (None, 501) => Class::Configuration("use Proxmox VE 8 or newer, at the address of its API".into()),
        (None, 500..) => Class::Transient,
        (None, _) => Class::Permanent,
    }
}

fn login_remedy(text: &str) -> String {
    match text.to_lowercase().contains("ticket") {
        true => "check the user and the password, and that the clocks agree: a ticket is valid for two hours".into(),
        false => "check the id and the secret of the API token (USER@REALM!NAME), and that neither token nor user has expired or is disabled"
            .into(),
    }
}

/// `Permission check failed (/vms/100, VM.Clone)` names what is missing.
fn privilege_remedy(text: &str) -> String {
    let inside = text.split_once('(').and_then(|(_, rest)| rest.rsplit_once(')')).map(|(inside, _)| inside);
    match inside.and_then(|inside| inside.split_once(", ")) {
        Some((path, privileges)) => {
            format!("grant {privileges} on {path}, to the user and to its token if the token has separate privileges")
        }
        None => "grant the privileges of the documented role to the user, and to its token if the token has separate privileges"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Lack, classify};

    #[test]
    fn errors_are_classed_by_code_and_text() {
        let cases = [
            (500, "can't lock file '/var/lock/qemu-server/lock-9000.conf' - got timeout", Class::Transient),
            (500, "unable to acquire pmxcfs lock 'cfs-domain'", Class::Transient),
            (500, "cluster not ready - no quorum?", Class::NoQuorum),
            (500, "VM is locked (backup)", Class::Transient),
            (500, "VM 105 is running - destroy failed", Class::Transient),
            (500, "something new", Class::Transient),
            (502, "Bad Gateway", Class::Transient),
            (595, "No route to host", Class::Transient),
            (596, "Connection timed out", Class::Transient),
            (429, "Too Many Requests", Class::Transient),
            (400, "Parameter verification failed. newid: type check ('integer') failed - got 'a'", Class::Permanent),
            (413, "Request Entity Too Large", Class::Permanent),
            (500, "zfs error: cannot create 'tank/vm-105-disk-0': out of space", Class::Resource(Lack::Space)),
            (500, "clone failed: write: No space left on device", Class::Resource(Lack::Space)),
            (
                500,
                "start failed: cannot set up guest memory 'pc.ram': Cannot allocate memory",
                Class::Resource(Lack::Memory),
            ),
            (500, "unable to create VM 105: config file already exists", Class::Exists),
            (500, "unable to create VM 105 - VM 105 already exists on node 'pve1'", Class::Exists),
            (400, "Parameter verification failed. vmid: VM 105 already exists", Class::Exists),
            (500, "CT 105 already exists on node 'pve1'", Class::Exists),
            (500, "Configuration file 'nodes/pve1/qemu-server/105.conf' does not exist", Class::Absent),
            (500, "unable to find configuration file for VM 105 - no such machine", Class::Absent),
            (500, "no such VM ('105')", Class::Absent),
            (404, "Not Found", Class::Absent),
        ];
        for (code, text, expected) in cases {
            assert_eq!(classify(code, text), expected, "{code} {text}");
        }
    }

    #[test]
    fn what_a_person_has_to_change_is_said() {
        let cases = [
            (401, "invalid token value!", "check the id and the secret of the API token"),
            (401, "no such token 'ci' for user 'fleet@pve'", "check the id and the secret of the API token"),
            (
                401,
                "permission denied - invalid PVE ticket",
                "check the user and the password, and that the clocks agree",
            ),
            (403, "Permission check failed (/vms/9000, VM.Clone)", "grant VM.Clone on /vms/9000,"),
            (
                403,
                "Permission check failed (/storage/local, Datastore.AllocateSpace|Datastore.Audit)",
                "grant Datastore.",
            ),
            (403, "Forbidden", "grant the privileges of the documented role"),
            (500, "storage 'fast' does not exist", "create the storage"),
            (400, "Parameter verification failed. storage: storage 'fast' does not exist", "create the storage"),
            (500, "start failed: bridge 'vmbr9' does not exist", "create the bridge"),
            (500, "hostname lookup 'pve9' failed - failed to get address info for: pve9", "name only nodes"),
            (500, "pool 'ci' does not exist", "create the resource pool"),
            (500, "Linked clone feature for drive 'scsi0' is not available", "use full clones"),
            (500, "can't clone VM to node 'pve2' (VM uses local storage)", "put the template on shared storage"),
            (500, "can't clone to non-shared storage 'local-lvm'", "put the template on shared storage"),
            (
                500,
                "Agent error: The command guest-exec has been disabled for this instance",
                "allow the command in the guest",
            ),
            (500, "Agent error: Command guest-exec has been disabled: the command is not allowed", "allow the command"),
            (500, "Agent error: The command guest-exec is not allowed", "allow the command"),
            (500, "Agent error: The command guest-network-get-interfaces has not been found", "install a newer"),
            (500, "No QEMU guest agent configured", "switch the guest agent on"),
            (301, "Moved Permanently", "use the address of the API itself"),
            (501, "Method 'GET /x' not implemented", "use Proxmox VE 8"),
        ];
        for (code, text, expected) in cases {
            match classify(code, text) {
                Class::Configuration(remedy) => assert!(remedy.starts_with(expected), "{code} {text}: {remedy}"),
                other => panic!("{code} {text}: {other:?}"),
            }
        }
    }

    #[test]
    fn a_leftover_disk_is_no_machine() {
        let text =
            "clone failed: lvcreate error: Logical Volume \"vm-105-disk-0\" already exists in volume group \"pve\"";
        assert_eq!(classify(500, text), Class::Transient);
    }
}
