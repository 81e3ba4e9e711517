//! What `plan` shows: every object that would be written, the difference that the write makes, and what it waits for.

mod moved;
mod offline;

use crate::core::Core;
use crate::status::{LineState, ObjectState, StatusLine};
use change::{Difference, Digest, Impact, Key, Reason, Restarts};
use serde::{Deserialize, Serialize};
use std::fmt;

pub use moved::{Moved, moved};
pub use offline::offline;

/// Everything that would be done, in the order in which it would be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Plan {
    /// The objects that would be written, wait or are held.
    pub items: Vec<Item>,
    /// How many objects are as they should be.
    pub in_sync: usize,
}

/// One object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its asset, or the file of its tombstone.
    pub asset: String,
    /// The object; nothing if its asset cannot be rendered.
    pub object: Option<Key>,
    /// What would be done; nothing if that is not known.
    pub operation: Option<Operation>,
    /// Whether that is done now.
    pub state: ItemState,
    /// Why not; empty if it is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Whether it waits for a person's approval.
    pub needs_approval: bool,
    /// The digest to approve, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<Digest>,
    /// How disruptive it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact: Option<Impact>,
    /// The nodes that restart.
    #[serde(default, skip_deserializing, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<Restarts>,
    /// The same in words.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub disruption: String,
    /// How long that takes and how many virtual machines move, as far as it can be estimated.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub cost: String,
    /// Stands for what is wanted, what it replaces and the difference: if any of that changes, so does this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The fields that would change.
    pub diff: Vec<Difference>,
    /// Where the difference is from.
    pub source: Source,
}

/// What would be done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// It is created.
    Create,
    /// It is changed.
    Change,
    /// An object of somebody else is managed from then on, after a backup.
    Adopt,
    /// An object of the predecessor or of the advisor is managed from then on.
    TakeOver,
    /// It is deleted.
    Delete,
    /// It is managed no longer, and its values stay.
    HandBack,
    /// It is paused, because another writer keeps changing it.
    Pause,
    /// Only our own label, annotations and field ownership change.
    Record,
}

/// Whether it is done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ItemState {
    /// It is.
    Ready,
    /// It waits for an approval, a healthy pool or a maintenance window.
    Waiting,
    /// It is not, until a person changes something.
    Held,
    /// It cannot be done, or it is not known what to do.
    Failed,
}

/// Where a difference is from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum Source {
    /// The API server, by a dry run.
    Server,
    /// A comparison here, which does not know what the server fills in.
    Local {
        /// Why there was no dry run.
        why: String,
    },
    /// There is none.
    None {
        /// Why, unless there is nothing to show.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        why: Option<String>,
    },
}

impl Core {
    /// Everything that would be done. The core must be configured for [`Previews::Diff`](crate::Previews::Diff).
    pub fn plan(&self) -> Plan {
        let mut plan = Plan::default();
        let mut lines: Vec<StatusLine> = self.status();
        lines.sort_by_key(|line| line.key.as_ref().map_or((false, i64::MAX), |key| self.order_of(key)));
        for line in lines {
            match self.item(&line) {
                Some(item) => plan.items.push(item),
                None if line.state == LineState::Object(ObjectState::InSync) => plan.in_sync += 1,
                None => {}
            }
        }
        plan
    }
}

impl Item {
    /// What it does to nodes, in words; nothing if it does nothing to them.
    pub fn disruption_with_cost(&self) -> Option<String> {
        match (self.disruption.as_str(), self.cost.as_str()) {
            ("", _) => None,
            (disruption, "") => Some(disruption.to_owned()),
            (disruption, cost) => Some(format!("{disruption}; {cost}")),
        }
    }

    /// An item of which nothing but its state is known.
    pub(crate) fn bare(asset: &str, object: Option<Key>, state: ItemState, why: String) -> Item {
        Item {
            asset: asset.to_owned(),
            object,
            operation: None,
            state,
            why,
            needs_approval: false,
            approval: None,
            impact: None,
            restarts: None,
            disruption: String::new(),
            cost: String::new(),
            digest: None,
            diff: Vec::new(),
            source: Source::None { why: None },
        }
    }

    /// Whether it is going to happen: now, or when it need not wait any more.
    pub fn is_pending(&self) -> bool {
        matches!(self.state, ItemState::Ready | ItemState::Waiting) && self.operation != Some(Operation::Record)
    }

    /// The object, or the asset where there is none.
    pub fn name(&self) -> String {
        self.object.as_ref().map_or_else(|| format!("asset {}", self.asset), ToString::to_string)
    }
}

/// What a reason to hold an object means for a plan.
pub(crate) fn state_of(reason: &Reason) -> ItemState {
    match reason {
        Reason::NeedsApproval { .. }
        | Reason::ManyDeletions { .. }
        | Reason::DeletionsUnknown { .. }
        | Reason::PoolNotReady { .. }
        | Reason::WindowClosed { .. } => ItemState::Waiting,
        Reason::RefusedByServer { .. } | Reason::ReadFailed { .. } => ItemState::Failed,
        _ => ItemState::Held,
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Create => "create",
            Operation::Change => "change",
            Operation::Adopt => "adopt",
            Operation::TakeOver => "take over",
            Operation::Delete => "delete",
            Operation::HandBack => "hand back",
            Operation::Pause => "pause",
            Operation::Record => "record",
        })
    }
}

/// How much would be done, in one line.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pending = || self.items.iter().filter(|item| item.is_pending());
        let mut parts = Vec::new();
        for operation in [
            Operation::Create,
            Operation::Change,
            Operation::Adopt,
            Operation::TakeOver,
            Operation::Delete,
            Operation::HandBack,
            Operation::Pause,
        ] {
            let count = pending().filter(|item| item.operation == Some(operation)).count();
            if count > 0 {
                parts.push(format!("{count} to {operation}"));
            }
        }
        let mut text = match (parts.is_empty(), self.in_sync) {
            (true, 0) => "nothing to do".to_owned(),
            (true, 1) => "nothing to do; 1 object is in sync".to_owned(),
            (true, count) => format!("nothing to do; {count} objects are in sync"),
            (false, _) => parts.join(", "),
        };
        let approvals: Vec<&Item> = pending().filter(|item| item.needs_approval).collect();
        if !approvals.is_empty() {
            let mut digests: Vec<String> =
                approvals.iter().filter_map(|item| item.approval.as_ref()).map(Digest::short).collect();
            digests.dedup();
            let digests = match digests.len() {
                0 => String::new(),
                1..=3 => format!(" ({})", digests.join(", ")),
                _ => format!(" ({}, ...)", digests[..3].join(", ")),
            };
            let verb = if approvals.len() == 1 { "needs" } else { "need" };
            text = format!("{text}; {} {verb} approval{digests}", approvals.len());
        }
        let of = |state: ItemState| self.items.iter().filter(|item| item.state == state).count();
        let waiting = of(ItemState::Waiting) - approvals.len().min(of(ItemState::Waiting));
        for (count, word) in [(waiting, "waiting"), (of(ItemState::Held), "held"), (of(ItemState::Failed), "failed")] {
            if count > 0 {
                text = format!("{text}; {count} {word}");
            }
        }
        write!(f, "Plan: {text}.")
    }
}

#[cfg(test)]
mod tests;
