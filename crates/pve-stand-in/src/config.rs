//! The keys of a VM's configuration: which there are, and which privilege each needs.

use crate::property::Properties;
use crate::route::{Kind, Param};
use crate::vm::{is_cdrom, is_drive};
use std::collections::BTreeSet;

const NAT: Kind = Kind::Number { min: 0, max: u64::MAX >> 1 };
const POSITIVE: Kind = Kind::Number { min: 1, max: u64::MAX >> 1 };

/// A key with the privilege to set it, and whether a change of a running VM waits for its next start.
struct Key {
    name: &'static str,
    kind: Kind,
    privilege: &'static str,
    waits: bool,
}

const fn key(name: &'static str, kind: Kind, privilege: &'static str, waits: bool) -> Key {
    Key { name, kind, privilege, waits }
}

const OPTIONS: &str = "VM.Config.Options";
const HARDWARE: &str = "VM.Config.HWType";
const CPU: &str = "VM.Config.CPU";
const MEMORY: &str = "VM.Config.Memory";
const CLOUDINIT: &str = "VM.Config.Cloudinit";
const DISK: &str = "VM.Config.Disk";
const NETWORK: &str = "VM.Config.Network";

const KEYS: [Key; 47] = [
    key("acpi", Kind::Flag, OPTIONS, true),
    key("agent", Kind::Text, OPTIONS, true),
    key("balloon", NAT, MEMORY, true),
    key("bios", Kind::OneOf(&["seabios", "ovmf"]), OPTIONS, true),
    key("boot", Kind::Text, OPTIONS, true),
    key("cicustom", Kind::Text, CLOUDINIT, false),
    key("cipassword", Kind::Text, CLOUDINIT, false),
    key("citype", Kind::OneOf(&["configdrive2", "nocloud", "opennebula"]), CLOUDINIT, false),
    key("ciupgrade", Kind::Flag, CLOUDINIT, false),
    key("ciuser", Kind::Text, CLOUDINIT, false),
    key("cores", POSITIVE, CPU, true),
    key("cpu", Kind::Text, CPU, true),
    key("cpulimit", Kind::Number { min: 0, max: 128 }, CPU, false),
    key("cpuunits", Kind::Number { min: 1, max: 262_144 }, CPU, false),
    key("description", Kind::Short(8192), OPTIONS, false),
    key("efidisk0", Kind::Text, DISK, true),
    key("hotplug", Kind::Text, OPTIONS, false),
    key("ide[n]", Kind::Text, DISK, false),
    key("ipconfig[n]", Kind::Text, NETWORK, false),
    key("kvm", Kind::Flag, OPTIONS, true),
    key("machine", Kind::Text, HARDWARE, true),
    key("memory", Kind::Number { min: 16, max: 1 << 40 }, MEMORY, true),
    key("name", Kind::DnsName, OPTIONS, false),
    key("nameserver", Kind::Text, NETWORK, false),
    key("net[n]", Kind::Text, NETWORK, false),
    key("numa", Kind::Flag, CPU, true),
    key("onboot", Kind::Flag, OPTIONS, false),
    key("ostype", Kind::Text, OPTIONS, true),
    key("protection", Kind::Flag, OPTIONS, false),
    key("rng0", Kind::Text, HARDWARE, true),
    key("sata[n]", Kind::Text, DISK, false),
    key("scsi[n]", Kind::Text, DISK, false),
    key("scsihw", Kind::Text, HARDWARE, true),
    key("searchdomain", Kind::Text, NETWORK, false),
    key("serial[n]", Kind::Text, HARDWARE, true),
    key("smbios1", Kind::Short(512), HARDWARE, true),
    key("sockets", POSITIVE, CPU, true),
    key("sshkeys", Kind::Text, CLOUDINIT, false),
    key("startup", Kind::Text, OPTIONS, false),
    key("tablet", Kind::Flag, OPTIONS, false),
    key("tags", Kind::Tags, OPTIONS, false),
    key("tpmstate0", Kind::Text, DISK, true),
    key("unused[n]", Kind::Text, DISK, false),
    key("vcpus", POSITIVE, CPU, true),
    key("vga", Kind::Text, HARDWARE, true),
    key("virtio[n]", Kind::Text, DISK, false),
    key("vmgenid", Kind::Text, OPTIONS, true),
];

/// Parameters of a change that are not keys.
const ABOUT_THE_CHANGE: [Param; 5] = [
    Param { name: "delete", is_required: false, kind: Kind::Text },
    Param { name: "digest", is_required: false, kind: Kind::Short(40) },
    Param { name: "force", is_required: false, kind: Kind::Flag },
    Param { name: "revert", is_required: false, kind: Kind::Text },
    Param { name: "skiplock", is_required: false, kind: Kind::Flag },
];

/// The parameters of a synchronous change.
pub(crate) const PARAMS: [Param; 52] = {
    let mut params = [ABOUT_THE_CHANGE[0]; 52];
    let mut at = 0;
    while at < KEYS.len() {
        params[at] = Param { name: KEYS[at].name, is_required: false, kind: KEYS[at].kind };
        at += 1;
    }
    let mut extra = 0;
    while extra < ABOUT_THE_CHANGE.len() {
        params[at + extra] = ABOUT_THE_CHANGE[extra];
        extra += 1;
    }
    params
};

/// Whether `net1` is `net[n]`, or both are the same.
pub(crate) fn is_key(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix("[n]") {
        Some(prefix) => name
            .strip_prefix(prefix)
            .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())),
        None => pattern == name,
    }
}

fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| is_key(key.name, name))
}

/// Whether a parameter is a key of a configuration.
pub(crate) fn is_config(name: &str) -> bool {
    find(name).is_some()
}

/// The privilege to set a key; a removable medium needs another one than a disk.
pub(crate) fn privilege(name: &str, value: &str) -> &'static str {
    let drive = Properties::parse(value);
    let is_cloudinit = drive.first().is_some_and(|(_, volume)| volume.ends_with(":cloudinit"));
    match find(name) {
        Some(_) if is_drive(name) && (is_cdrom(&drive) || is_cloudinit) => "VM.Config.CDROM",
        Some(key) => key.privilege,
        None => OPTIONS,
    }
}

/// Whether a change of a running VM waits for its next start.
pub(crate) fn waits_for_start(name: &str) -> bool {
    find(name).is_some_and(|key| key.waits)
}

/// Whether the API shows it as a number.
pub(crate) fn is_number(name: &str) -> bool {
    // The memory is a property string since version 8, and so a text.
    let is_numeric = |key: &Key| matches!(key.kind, Kind::Number { .. } | Kind::Flag);
    name != "memory" && find(name).is_some_and(is_numeric)
}

pub(crate) fn split_tags(text: &str) -> impl Iterator<Item = &str> {
    text.split([';', ',', ' ']).filter(|tag| !tag.is_empty())
}

pub(crate) fn is_tag(tag: &str) -> bool {
    let is_first = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_other = |byte: u8| is_first(byte) || matches!(byte, b'-' | b'+' | b'.');
    tag.bytes().next().is_some_and(is_first) && tag.bytes().all(is_other)
}

/// Tags as they are stored: lower case, sorted, each once.
pub(crate) fn normal_tags(text: &str) -> String {
    let tags: BTreeSet<String> = split_tags(text).map(str::to_lowercase).collect();
    tags.into_iter().collect::<Vec<_>>().join(";")
}
