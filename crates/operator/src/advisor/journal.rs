//! Records what the advisor reports as log lines and as Kubernetes events about the `VirtPlatformConfig`.

use crate::metrics::Metrics;
use advisor::Notice;
use advisor::judge::{HELD_FOR_LONG, UNHEALTHY};
use api::advisor::Phase;
use change::Key;
use cluster::event::{Event, Reference};
use runtime::Journal;
use std::sync::{Arc, Mutex, PoisonError};

/// Publishes events about each `VirtPlatformConfig`.
pub(super) struct ProfileJournal {
    metrics: Arc<Metrics>,
    /// The last log line about discovery, so that the same one is logged once.
    discovery: Mutex<String>,
}

impl ProfileJournal {
    pub(super) fn new(metrics: Arc<Metrics>) -> ProfileJournal {
        ProfileJournal { metrics, discovery: Mutex::default() }
    }
}

impl Journal<Notice> for ProfileJournal {
    fn record(&self, notice: Notice) -> Vec<Event> {
        self.metrics.record_profile(&notice);
        match notice {
            Notice::Judged { is_news: false, .. } => Vec::new(),
            Notice::Judged { name, uid, phase, reason, message, digest, .. } => {
                let digest = digest.map(|digest| format!(" (plan {digest})")).unwrap_or_default();
                let warning = is_warning(phase) || [HELD_FOR_LONG, UNHEALTHY].contains(&reason);
                let note = format!("{}: {message}{digest}", advisor::conditions::name(phase));
                vec![event(&name, uid, warning, reason, note, None)]
            }
            Notice::Applied { name, uid, item, key, is_deleted } => {
                let done = if is_deleted { "deleted" } else { "wrote" };
                vec![event(&name, uid, false, "ItemApplied", format!("{item}: {done} {key}"), Some(key))]
            }
            Notice::ApplyFailed { name, uid, item, why } => {
                vec![event(&name, uid, true, "ItemFailed", format!("{item}: {why}"), None)]
            }
            Notice::Withdrawn { name, .. } => {
                tracing::info!("VirtPlatformConfig {name} was deleted; what it applied stays as it is");
                Vec::new()
            }
            Notice::Unreadable { name, why } => {
                tracing::warn!("VirtPlatformConfig {name} cannot be read: {why}");
                Vec::new()
            }
            Notice::PublishFailed { key, why } => {
                tracing::warn!("could not write {key}: {why}; trying again");
                Vec::new()
            }
            Notice::DiscoveryFailed(why) => {
                let mut last = self.discovery.lock().unwrap_or_else(PoisonError::into_inner);
                if *last != why {
                    tracing::warn!("the advisor could not ask the API server what it serves: {why}; trying again");
                    *last = why;
                }
                Vec::new()
            }
            Notice::WatchLost { kind, why } => {
                tracing::warn!("the advisor cannot watch {kind} now: {why}");
                Vec::new()
            }
        }
    }
}

fn is_warning(phase: Phase) -> bool {
    matches!(phase, Phase::Failed | Phase::CompletedWithErrors | Phase::Drifted | Phase::PrerequisiteFailed)
}

fn event(name: &str, uid: String, warning: bool, reason: &str, note: String, about: Option<Key>) -> Event {
    let key = Key { kind: advisor::core::kind(), namespace: String::new(), name: name.to_owned() };
    match warning {
        true => tracing::warn!(reason, object = %key, "{key}: {note}"),
        false => tracing::info!(reason, object = %key, "{key}: {note}"),
    }
    let (regarding, reason) = (Reference { key, uid }, reason.to_owned());
    Event { regarding, related: None, warning, reason, about, note }
}

#[cfg(test)]
mod tests {
    use super::ProfileJournal;
    use crate::metrics::Metrics;
    use advisor::Notice;
    use advisor::judge::{HELD_FOR_LONG, UNHEALTHY};
    use api::advisor::Phase;
    use api::reference::ADVISOR_EVENTS;
    use change::{Key, Kind};
    use cluster::event::Event;
    use jiff::Timestamp;
    use runtime::Journal;
    use std::sync::Arc;

    #[test]
    fn every_event_is_in_the_reference_with_its_type() {
        let journal = ProfileJournal::new(Arc::new(Metrics::new("test")));
        let (name, uid) = ("load".to_owned(), "u".to_owned());
        let judged = |(phase, reason): (Phase, &'static str)| Notice::Judged {
            name: name.clone(),
            uid: uid.clone(),
            phase,
            reason,
            message: "m".into(),
            digest: None,
            drifted: 0,
            since: Timestamp::UNIX_EPOCH,
            is_news: true,
        };
        let mut notices: Vec<Notice> = [
            (Phase::ReviewRequired, "PlanReady"),
            (Phase::ReviewRequired, "PlanChanged"),
            (Phase::ReviewRequired, "PlanUnseen"),
            (Phase::ReviewRequired, "AnotherPlanApproved"),
            (Phase::ReviewRequired, "InputsChanged"),
            (Phase::Drifted, "Drifted"),
            (Phase::Drifted, "CorrectionsStopped"),
            (Phase::Failed, "PlanFailed"),
            (Phase::Failed, "ItemFailed"),
            (Phase::CompletedWithErrors, "ItemsFailed"),
            (Phase::CompletedWithUpgrade, "LogicChanged"),
            (Phase::PrerequisiteFailed, "PrerequisiteMissing"),
            (Phase::InProgress, "Applying"),
            (Phase::InProgress, "ApplyingAfterFailure"),
            (Phase::InProgress, "Waiting"),
            (Phase::InProgress, HELD_FOR_LONG),
            (Phase::InProgress, "WaitingForWindow"),
            (Phase::Completed, "Applied"),
            (Phase::Completed, "NotApplicable"),
            (Phase::Completed, UNHEALTHY),
            (Phase::Pending, "Unknown"),
            (Phase::Drafting, "Drafting"),
            (Phase::Ignored, "Ignored"),
        ]
        .into_iter()
        .map(judged)
        .collect();
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
        let (item, why) = ("i".to_owned(), "w".to_owned());
        notices.push(applied(key, false));
        notices.push(Notice::ApplyFailed { name: name.clone(), uid: uid.clone(), item, why });
        let events: Vec<Event> = notices.into_iter().flat_map(|notice| journal.record(notice)).collect();
        for event in &events {
            let row = ADVISOR_EVENTS.iter().find(|row| row.name == event.reason);
            assert_eq!(row.map(|row| row.warning), Some(event.warning), "{}", event.reason);
        }
        for row in ADVISOR_EVENTS {
            assert!(events.iter().any(|event| event.reason == row.name), "{} is not tried", row.name);
        }
    }

    fn applied(key: Key, is_deleted: bool) -> Notice {
        Notice::Applied { name: "load".into(), uid: "u".into(), item: "i".into(), key, is_deleted }
    }

    #[test]
    fn an_event_tells_a_deletion_from_a_write() {
        let journal = ProfileJournal::new(Arc::new(Metrics::new("test")));
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
        let note = |is_deleted: bool| journal.record(applied(key.clone(), is_deleted))[0].note.clone();
        assert_eq!([note(false), note(true)], ["i: wrote ConfigMap n/x", "i: deleted ConfigMap n/x"]);
    }
}
