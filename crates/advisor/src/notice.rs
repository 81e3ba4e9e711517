//! What the advisor reports: a journal makes log lines, events and metrics of it.

use api::advisor::Phase;
use change::{Digest, Key};
use jiff::Timestamp;

/// One report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A profile is in another phase, or for another reason.
    Judged {
        /// Its name.
        name: String,
        /// The uid of its `VirtPlatformConfig`.
        uid: String,
        /// The phase.
        phase: Phase,
        /// Why, in one word.
        reason: &'static str,
        /// Why, in a sentence.
        message: String,
        /// The digest of the plan, if there is one.
        digest: Option<Digest>,
        /// How many objects differ from what was approved and applied because somebody changed them.
        drifted: usize,
        /// Since when.
        since: Timestamp,
        /// Whether it was not so before; after a start everything is reported once.
        is_news: bool,
    },
    /// An item was written, or its object deleted.
    Applied {
        /// The profile.
        name: String,
        /// The uid of its `VirtPlatformConfig`.
        uid: String,
        /// The item.
        item: String,
        /// The object.
        key: Key,
        /// Whether it was deleted.
        is_deleted: bool,
    },
    /// An item could not be written.
    ApplyFailed {
        /// The profile.
        name: String,
        /// The uid of its `VirtPlatformConfig`.
        uid: String,
        /// The item.
        item: String,
        /// Why.
        why: String,
    },
    /// A `VirtPlatformConfig` was deleted.
    Withdrawn {
        /// Its name.
        name: String,
        /// Its uid.
        uid: String,
    },
    /// A `VirtPlatformConfig` cannot be read.
    Unreadable {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// A status, or an object that tells of a profile, could not be written.
    PublishFailed {
        /// The object.
        key: Key,
        /// Why.
        why: String,
    },
    /// It could not be found out what the server serves.
    DiscoveryFailed(String),
    /// A kind cannot be watched now.
    WatchLost {
        /// The kind.
        kind: String,
        /// Why.
        why: String,
    },
}

#[cfg(test)]
mod tests {
    use api::reference::ADVISOR_EVENTS;

    /// In the source of the judgement every quoted word in CamelCase is a reason.
    #[test]
    fn every_reason_is_in_the_reference_of_events_and_no_other() {
        let quoted = include_str!("judge/mod.rs").split('"').skip(1).step_by(2);
        let is_reason = |word: &&str| {
            word.starts_with(|first: char| first.is_ascii_uppercase()) && word.chars().all(|c| c.is_ascii_alphabetic())
        };
        let reasons: Vec<&str> = quoted.filter(is_reason).collect();
        assert!(reasons.len() > 15, "{reasons:?}");
        for reason in &reasons {
            assert!(ADVISOR_EVENTS.iter().any(|row| row.name == *reason), "{reason} is not in ADVISOR_EVENTS");
        }
        for row in ADVISOR_EVENTS.iter().filter(|row| row.name != "ItemApplied") {
            assert!(reasons.contains(&row.name), "nothing has the reason {}", row.name);
        }
    }
}
