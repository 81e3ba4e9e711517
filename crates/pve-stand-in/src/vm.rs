//! A VM: its configuration, whether it runs, and how its guest behaves.

use crate::property::{self, Properties};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::time::Duration;

/// A VM or a template.
#[derive(Debug, Clone, PartialEq)]
pub struct Vm {
    /// Distinguishes it from all other VMs that had or will have the same id.
    pub birth: u64,
    /// The node that has its configuration.
    pub node: String,
    /// The configuration without `lock`, `template` and `digest`.
    pub config: BTreeMap<String, String>,
    /// Changes that wait for the next start.
    pub pending: BTreeMap<String, Option<String>>,
    /// Whether it is a template.
    pub is_template: bool,
    /// What is being done to it: `clone`, `backup` ...
    pub lock: Option<String>,
    /// Its run, while it is switched on.
    pub run: Option<Run>,
    /// How its guest behaves.
    pub guest: Guest,
}

/// A VM that is switched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Since when.
    pub since: Duration,
    /// The process.
    pub pid: u32,
    /// In which state QEMU has halted it, such as `io-error`.
    pub halted: Option<&'static str>,
}

/// How a guest behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// Whether the guest agent is installed.
    pub has_agent: bool,
    /// Whether the agent is older than QEMU 9.1, which has other words for a process that it does not know.
    pub is_agent_old: bool,
    /// From the start until the agent answers.
    pub boot: Duration,
    /// Powers itself off this long after a start.
    pub powers_off_after: Option<Duration>,
    /// Does not react to a shutdown.
    pub ignores_shutdown: bool,
    /// Files that were written by the agent.
    pub files: BTreeMap<String, String>,
    /// Commands that the agent has started, each with its input.
    pub commands: Vec<String>,
    /// How they end: the first that fits; others end with 0.
    pub outcomes: Vec<Outcome>,
    /// The processes that the agent knows, and when they end.
    pub processes: BTreeMap<u32, Duration>,
}

/// How a command in a guest ends.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// A part of the command or of its input.
    pub contains: String,
    /// With which code it ends.
    pub exit_code: i64,
    /// Files that are there then.
    pub files: BTreeMap<String, String>,
}

impl Guest {
    /// How the command of a process ends.
    pub(crate) fn outcome(&self, pid: u32) -> Outcome {
        let command = pid.checked_sub(801).and_then(|number| self.commands.get(usize::try_from(number).ok()?));
        let fits = |outcome: &&Outcome| command.is_some_and(|command| command.contains(&outcome.contains));
        self.outcomes.iter().find(fits).cloned().unwrap_or_default()
    }
}

impl Vm {
    /// The name of a host.
    pub fn name(&self) -> Option<&str> {
        self.config.get("name").map(String::as_str)
    }

    /// Its description.
    pub fn description(&self) -> Option<&str> {
        self.config.get("description").map(String::as_str)
    }

    /// Its tags, separated by `;`.
    pub fn tags(&self) -> Option<&str> {
        self.config.get("tags").map(String::as_str)
    }

    pub(crate) fn number(&self, key: &str, default: u64) -> u64 {
        self.config.get(key).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    pub(crate) fn cpus(&self) -> u64 {
        self.number("cores", 1) * self.number("sockets", 1)
    }

    /// Its memory in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.number("memory", 512) << 20
    }

    /// Its drives: key and value.
    pub(crate) fn drives(&self) -> impl Iterator<Item = (&str, Properties)> {
        self.config.iter().filter(|(key, _)| is_drive(key)).map(|(key, value)| (key.as_str(), Properties::parse(value)))
    }

    /// The size of its first disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        let disks = self.drives().filter(|(_, drive)| !is_cdrom(drive));
        disks.into_iter().find_map(|(_, drive)| drive.get("size").and_then(property::bytes)).unwrap_or_default()
    }

    /// Whether its configuration switches the agent on.
    pub(crate) fn has_agent_enabled(&self) -> bool {
        let Some(agent) = self.config.get("agent") else { return false };
        let agent = Properties::parse(agent);
        matches!(agent.get("enabled").or(agent.get("")), Some("1"))
    }

    /// Whether the guest agent answers.
    pub(crate) fn agent_answers(&self, now: Duration) -> bool {
        self.guest.has_agent && self.run.is_some_and(|run| now >= run.since + self.guest.boot)
    }

    /// What changes whenever the configuration does.
    pub(crate) fn digest(&self) -> String {
        let mut hash = Sha256::new();
        for (key, value) in &self.config {
            hash.update(format!("{key}: {value}\n"));
        }
        for (key, value) in &self.pending {
            hash.update(format!("[PENDING] {key}: {value:?}\n"));
        }
        hash.update(format!("{:?} {}", self.lock, self.is_template));
        hash.finalize()[..20].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether a key of a configuration is a drive.
pub(crate) fn is_drive(key: &str) -> bool {
    let numbered = |prefix: &str| {
        key.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    ["ide", "sata", "scsi", "virtio"].into_iter().any(numbered) || key == "efidisk0" || key == "tpmstate0"
}

/// Whether a drive has a removable medium.
pub(crate) fn is_cdrom(drive: &Properties) -> bool {
    drive.get("media") == Some("cdrom")
}

/// The volume of a drive, if it has one.
pub(crate) fn volume_of(drive: &Properties) -> Option<&str> {
    let volume = drive.get("file").or_else(|| drive.get(""))?;
    volume.contains(':').then_some(volume)
}
