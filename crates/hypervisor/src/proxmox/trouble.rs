//! Why a request to Proxmox VE failed, and what that means for an operation.

use crate::proxmox::class::{Class, classify};
use fleet::hypervisor::{Failure, MachineId};

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// There was no answer: it may have been carried out.
    Unanswered(String),
    /// The server refused it, or failed; also a task that failed.
    Answered {
        /// The HTTP status; 500 for a task.
        code: u16,
        /// Reason phrase and details.
        message: String,
    },
    /// The server answered something else than Proxmox VE does.
    Misread {
        /// The path with placeholders.
        path: &'static str,
        /// Why it cannot be read.
        why: String,
    },
    /// The connection cannot be made with these settings.
    Settings {
        /// What is wrong.
        message: String,
        /// What to do.
        remedy: String,
    },
}

impl Trouble {
    /// What it means.
    pub(crate) fn class(&self) -> Class {
        match self {
            Trouble::Unanswered(_) => Class::Transient,
            Trouble::Answered { code, message } => classify(*code, message),
            Trouble::Misread { .. } => Class::Configuration(
                "use the address of Proxmox VE 8 or newer, without anything that changes answers".into(),
            ),
            Trouble::Settings { remedy, .. } => Class::Configuration(remedy.clone()),
        }
    }

    /// What went wrong.
    pub(crate) fn message(&self) -> String {
        match self {
            Trouble::Unanswered(message) => message.clone(),
            Trouble::Answered { code: code @ (595 | 596), message } => {
                format!("{message} ({code}); bring the node back, or check the network between the nodes")
            }
            Trouble::Answered { code, message } => format!("{message} ({code})"),
            Trouble::Misread { path, why } => format!("the answer to {path} is not that of Proxmox VE: {why}"),
            Trouble::Settings { message, .. } => message.clone(),
        }
    }

    /// Whether the node did not answer the one that was asked, or does not exist: the machine may be on another one by now.
    pub(crate) fn is_of_node(&self) -> bool {
        match self {
            Trouble::Answered { code: 595 | 596, .. } => true,
            Trouble::Answered { message, .. } => {
                let lower = message.to_lowercase();
                ["hostname lookup", "no such cluster node", "no such node"].iter().any(|text| lower.contains(text))
            }
            _ => false,
        }
    }

    /// Whether it may be the node alone that does not answer.
    pub(crate) fn may_be_of_node(&self) -> bool {
        self.is_of_node() || matches!(self, Trouble::Unanswered(_))
    }

    /// Whether a privilege is missing.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Trouble::Answered { code: 403, .. })
    }

    /// The failure of an operation on a machine, which was doing this.
    pub(crate) fn about(&self, id: &MachineId, doing: &str) -> Failure {
        match self.class() {
            Class::Exists => Failure::Exists(id.clone()),
            Class::Absent => Failure::Absent(id.clone()),
            _ => self.failure(doing),
        }
    }

    /// The failure of an operation that is about no machine. Something that is absent or exists is then refused for good.
    pub(crate) fn failure(&self, doing: &str) -> Failure {
        let message = format!("{doing}: {}", self.message());
        match self.class() {
            Class::Transient => Failure::Transient(message),
            Class::NoQuorum => Failure::NoQuorum(message),
            Class::Permanent | Class::Exists | Class::Absent => Failure::Permanent(message),
            Class::Configuration(remedy) => Failure::Configuration { message, remedy },
            Class::Resource(lack) => Failure::Resource { message, remedy: lack.remedy(None) },
        }
    }
}
