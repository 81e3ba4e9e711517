//! Records each notice as a log line, a Kubernetes event and metrics.

use crate::metrics::Metrics;
use autopilot::Notice;
use change::Key;
use change::reason::Severity;
use cluster::event::{Event, Reference};
use runtime::Journal;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// Publishes events about each object that exists, and warnings also about the HyperConverged, which is the object that users watch.
pub(super) struct EventJournal {
    metrics: Arc<Metrics>,
    /// Whether somebody can ask the advisor for something.
    advisor: watch::Sender<bool>,
    server: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The HyperConverged, once it is known.
    subject: Option<Reference>,
    /// The last log line about discovery, so that the same one is logged once.
    discovery: String,
}

/// A log line and the event with the same text.
struct Entry {
    severity: Severity,
    name: &'static str,
    /// The object, and its uid if it exists.
    about: Option<(Key, Option<String>)>,
    note: String,
}

impl Entry {
    /// The events: about the object, if there is one to show it, and about the HyperConverged what a person has to act on, and what no
    /// other object shows.
    fn events(self, hyperconverged: Reference) -> Vec<Event> {
        let Entry { severity, name, about, note } = self;
        let (warning, reason) = (severity == Severity::Warning, name.to_owned());
        let event = |regarding: Reference, related: Option<Reference>, about: Option<Key>| Event {
            regarding,
            related,
            warning,
            reason: reason.clone(),
            about,
            note: note.clone(),
        };
        match about {
            None => vec![event(hyperconverged, None, None)],
            Some((key, _)) if key == hyperconverged.key => vec![event(hyperconverged, None, None)],
            Some((key, None)) => {
                let related = Reference { key: key.clone(), uid: String::new() };
                vec![event(hyperconverged, Some(related), Some(key))]
            }
            Some((key, Some(uid))) => {
                let object = Reference { key: key.clone(), uid };
                let mut events = vec![event(object.clone(), Some(hyperconverged.clone()), None)];
                if warning {
                    events.push(event(hyperconverged, Some(object), Some(key)));
                }
                events
            }
        }
    }
}

impl EventJournal {
    pub(super) fn new(metrics: Arc<Metrics>, advisor: watch::Sender<bool>, server: &str) -> EventJournal {
        EventJournal { metrics, advisor, server: server.to_owned(), state: Mutex::default() }
    }

    fn entry(&self, notice: Notice) -> Option<Entry> {
        let normal = |name, note| Some(Entry { severity: Severity::Normal, name, about: None, note });
        let warning = |name, note| Some(Entry { severity: Severity::Warning, name, about: None, note });
        match notice {
            Notice::Object(key, what, uid) => {
                let note = format!("{key}: {what}");
                Some(Entry { severity: what.severity(), name: what.name(), about: Some((key, uid)), note })
            }
            Notice::NotApplicable(key, why) => {
                let note = format!("{key} is not managed any more and stays as it is: {why}");
                Some(Entry { severity: Severity::Normal, name: "NotApplicable", about: Some((key, None)), note })
            }
            Notice::SwitchedOff => normal(
                "Disabled",
                "the autopilot is off: objects that it managed stay as they are; run \"virtpilot handback\" before an uninstall"
                    .to_owned(),
            ),
            Notice::Invalid(why) => warning("InvalidConfiguration", why),
            Notice::Missing(need, assets) => {
                warning("CRDMissing", format!("{} cannot be applied: {}", assets.join(", "), need.why()))
            }
            Notice::Served(need, assets) => {
                normal("CRDDiscovered", format!("the cluster serves {need} now, which {} needs", assets.join(", ")))
            }
            Notice::TakenOverAsIs(key) => {
                tracing::info!(object = %key, "{key}: taken over without a write, because it is as it should be");
                None
            }
            Notice::NoHyperConverged => {
                tracing::warn!("the API server does not serve HyperConverged; waiting until its operator is installed");
                None
            }
            Notice::HyperConvergedAbsent { key, existed } => {
                let what = if existed { "was deleted" } else { "does not exist" };
                tracing::warn!("{key} {what}: managed objects stay as they are, and nothing is written until it exists");
                None
            }
            Notice::DiscoveryFailed(why) => {
                self.log_discovery(&why);
                None
            }
            Notice::WatchLost { kind, why } => {
                tracing::warn!("cannot watch {kind} now: {why}");
                None
            }
            Notice::SearchFailed { kind, why } => {
                tracing::warn!("cannot search {kind} for objects to remove: {why}; trying again");
                None
            }
            Notice::RecordFailed { why } => {
                tracing::warn!("could not write ConfigMap {}: {why}; trying again", api::STATE);
                None
            }
            Notice::PublishFailed { why } => {
                tracing::warn!("could not write ConfigMap {}: {why}; virtpilot status shows no report of this operator until it is written; trying again", api::STATUS);
                None
            }
            Notice::Rollout { rollout, before } => match rollout.event(before) {
                Some((severity, name)) => Some(Entry { severity, name, about: None, note: rollout.to_string() }),
                None => {
                    tracing::debug!("{rollout}");
                    None
                }
            },
            Notice::NodeRestarted { node, pool } => {
                tracing::info!("node {node} of pool {pool} has restarted");
                None
            }
            Notice::Retry { why, wait } => {
                tracing::debug!("{why}; next attempt in {wait} ms");
                None
            }
            Notice::AdvisorServed => {
                self.advisor.send_replace(true);
                None
            }
            Notice::Subject(..)
            | Notice::State(..)
            | Notice::Overridden(..)
            | Notice::Answered { .. }
            | Notice::NotNeeded(_)
            | Notice::PoolGone(_) => None,
        }
    }

    fn log_discovery(&self, why: &str) {
        let line = format!("could not ask the API server at {} what it serves: {why}; trying again", self.server);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.discovery != line {
            tracing::warn!("{line}");
            state.discovery = line;
        }
    }
}

impl Journal<Notice> for EventJournal {
    fn record(&self, notice: Notice) -> Vec<Event> {
        self.metrics.record(&notice);
        if let Notice::Subject(key, uid) = notice {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).subject = Some(Reference { key, uid });
            return Vec::new();
        }
        let Some(entry) = self.entry(notice) else { return Vec::new() };
        let Entry { severity, name, about, note } = &entry;
        let object = about.as_ref().map(|(key, _)| tracing::field::display(key));
        if *severity == Severity::Warning {
            tracing::warn!(reason = name, object, "{note}");
        } else {
            tracing::info!(reason = name, object, "{note}");
        }
        let subject = self.state.lock().unwrap_or_else(PoisonError::into_inner).subject.clone();
        subject.map(|subject| entry.events(subject)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{EventJournal, Metrics};
    use autopilot::{Exclusion, Notice, ObjectNotice};
    use catalog::Need;
    use change::reason::Severity;
    use change::{Key, Kind, Reason};
    use cluster::event::Event;
    use runtime::Journal;
    use std::sync::Arc;
    use tokio::sync::watch;

    fn named(kind: &str, name: &str) -> Key {
        Key { kind: Kind::new("v1", kind), namespace: "n".into(), name: name.into() }
    }

    /// Whom the events of a notice regard, and to whom they are related.
    fn published(what: ObjectNotice, key: Key, uid: Option<&str>) -> Vec<String> {
        let journal = EventJournal::new(Arc::new(Metrics::new("")), watch::channel(false).0, "server");
        assert!(journal.record(Notice::Subject(named("HyperConverged", "hco"), "h".into())).is_empty());
        let shown = |event: &Event| {
            let related = event.related.as_ref().map(|related| format!(" + {} {}", related.key.name, related.uid));
            format!("{} {}{}", event.regarding.key.name, event.regarding.uid, related.unwrap_or_default())
        };
        journal.record(Notice::Object(key, what, uid.map(str::to_owned))).iter().map(shown).collect()
    }

    #[test]
    fn an_event_is_about_the_object_and_a_warning_also_about_the_hyperconverged() {
        let object = || named("Service", "s");
        assert_eq!(published(ObjectNotice::Applied, object(), Some("u")), ["s u + hco h"]);
        let warning = || ObjectNotice::Held(Reason::WriteFailed { message: "x".into() });
        assert_eq!(published(warning(), object(), Some("u")), ["s u + hco h", "hco h + s u"]);
        assert_eq!(
            published(warning(), object(), None),
            ["hco h + s "],
            "nobody can look at an object that is not there"
        );
        assert_eq!(published(warning(), named("HyperConverged", "hco"), Some("h")), ["hco h"]);
    }

    #[test]
    fn every_event_about_the_platform_is_in_the_reference() {
        let journal = EventJournal::new(Arc::new(Metrics::new("")), watch::channel(false).0, "server");
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: String::new(), name: "x".into() };
        let need = || Need::Crd { name: "things.example.io".into() };
        let notices = [
            Notice::NotApplicable(key, Exclusion::RendersNothing),
            Notice::SwitchedOff,
            Notice::Invalid(String::new()),
            Notice::Missing(need(), Vec::new()),
            Notice::Served(need(), Vec::new()),
        ];
        for entry in notices.map(|notice| journal.entry(notice).unwrap()) {
            let row = api::reference::EVENTS.iter().find(|row| row.name == entry.name);
            assert_eq!(row.map(|row| row.warning), Some(entry.severity == Severity::Warning), "{}", entry.name);
        }
    }
}
