//! Records each notice as a log line, a Kubernetes event and metrics.

use crate::metrics::Metrics;
use autopilot::Notice;
use change::Key;
use change::reason::Severity;
use cluster::event::Event;
use runtime::{Journal, Publication};
use std::sync::{Arc, Mutex, PoisonError};

/// Publishes events about the HyperConverged, which is the object that users watch.
pub(super) struct EventJournal {
    metrics: Arc<Metrics>,
    server: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The HyperConverged and its uid, once it is known.
    subject: Option<(Key, String)>,
    /// The last log line about discovery, so that the same one is logged once.
    discovery: String,
}

/// A log line and the event with the same text.
struct Entry {
    severity: Severity,
    name: &'static str,
    about: Option<Key>,
    note: String,
}

impl EventJournal {
    pub(super) fn new(metrics: Arc<Metrics>, server: &str) -> EventJournal {
        EventJournal { metrics, server: server.to_owned(), state: Mutex::default() }
    }

    fn entry(&self, notice: Notice) -> Option<Entry> {
        let normal = |name, note| Some(Entry { severity: Severity::Normal, name, about: None, note });
        let warning = |name, note| Some(Entry { severity: Severity::Warning, name, about: None, note });
        match notice {
            Notice::Object(key, what) => {
                let note = format!("{key}: {what}");
                Some(Entry { severity: what.severity(), name: what.name(), about: Some(key), note })
            }
            Notice::NotApplicable(key, why) => {
                let note = format!("{key} is not managed any more and stays as it is: {why}");
                Some(Entry { severity: Severity::Normal, name: "NotApplicable", about: Some(key), note })
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
                tracing::info!(object = %key, "{key}: taken over from the predecessor without a write");
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
            Notice::Subject(..) | Notice::State(..) | Notice::NotNeeded(_) | Notice::PoolGone(_) => None,
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
    fn record(&self, notice: Notice) -> Option<Publication> {
        self.metrics.record(&notice);
        if let Notice::Subject(key, uid) = notice {
            self.state.lock().unwrap_or_else(PoisonError::into_inner).subject = Some((key, uid));
            return None;
        }
        let Entry { severity, name, about, note } = self.entry(notice)?;
        let is_warning = severity == Severity::Warning;
        let object = about.as_ref().map(tracing::field::display);
        if is_warning {
            tracing::warn!(reason = name, object, "{note}");
        } else {
            tracing::info!(reason = name, object, "{note}");
        }
        let (regarding, uid) = self.state.lock().unwrap_or_else(PoisonError::into_inner).subject.clone()?;
        let event = Event { warning: is_warning, reason: name.to_owned(), about, note };
        Some(Publication { regarding, uid, event })
    }
}

#[cfg(test)]
mod tests {
    use super::EventJournal;
    use crate::metrics::Metrics;
    use autopilot::{Exclusion, Notice};
    use catalog::Need;
    use change::reason::Severity;
    use change::{Key, Kind};
    use std::sync::Arc;

    #[test]
    fn every_event_about_the_platform_is_in_the_reference() {
        let journal = EventJournal::new(Arc::new(Metrics::new()), "server");
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
