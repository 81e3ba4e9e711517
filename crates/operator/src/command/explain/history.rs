//! Who did what to an object: the operator's events about it, and the last write of every field manager.

use crate::command::target::Target;
use autopilot::{Explanation, Owner};
use change::{Key, Kind};
use cluster::{event, list};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// More than these help nobody.
const SHOWN: usize = 10;

/// What happened to an object, the oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) entries: Vec<Entry>,
    /// Why the events could not be read.
    pub(super) problem: Option<String>,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Entry {
    pub(super) time: String,
    pub(super) who: String,
    pub(super) what: String,
}

/// The events that may be about what is explained.
pub(super) struct Events {
    events: Vec<Value>,
    problem: Option<String>,
}

impl Events {
    /// Reads those of every namespace that is needed, once.
    pub(super) fn read(target: &Target, explanations: &[Explanation]) -> Events {
        let keys: Vec<&Key> = explanations.iter().filter_map(|explanation| explanation.line.key.as_ref()).collect();
        if keys.is_empty() {
            return Events { events: Vec::new(), problem: None };
        }
        let events = target.with(async |reached| {
            let kind = Kind::new("events.k8s.io/v1", "Event");
            let Some(served) = reached.kinds.find(&kind) else { return Ok(Vec::new()) };
            // Those about an object that does not exist regard the HyperConverged.
            let namespaces: BTreeSet<&str> =
                keys.iter().copied().chain([&reached.key]).map(event::namespace_of).collect();
            let mut events = Vec::new();
            for namespace in namespaces {
                events.extend(list::whole(&reached.server, &served, namespace).await?);
            }
            Ok(events)
        });
        match events {
            Ok(events) => Events { events, problem: None },
            Err(error) => {
                Events { events: Vec::new(), problem: Some(format!("the events could not be read: {error:#}")) }
            }
        }
    }

    /// The history of what is explained.
    pub(super) fn history(&self, explanation: &Explanation) -> History {
        let Some(key) = &explanation.line.key else { return History::default() };
        let mut entries: Vec<Entry> = self.events.iter().filter_map(|event| of_event(event, key)).collect();
        entries.extend(explanation.owners.iter().map(of_owner));
        entries.sort();
        // A warning regards the object and the HyperConverged.
        entries.dedup();
        entries.drain(..entries.len().saturating_sub(SHOWN));
        History { entries, problem: self.problem.clone() }
    }
}

/// An event of ours, which begins with the object, whatever it regards.
fn of_event(event: &Value, key: &Key) -> Option<Entry> {
    let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
    if event["reportingController"] != api::FIELD_MANAGER {
        return None;
    }
    let note = text("note");
    let what = note.strip_prefix(&format!("{key}: ")).or_else(|| note.strip_prefix(&format!("{key} ")))?;
    let time = event["series"]["lastObservedTime"].as_str().map_or_else(|| text("eventTime"), str::to_owned);
    Some(Entry { time: seconds(&time), who: text("reportingController"), what: format!("{}: {what}", text("reason")) })
}

/// Times of managedFields have no fractions.
fn seconds(time: &str) -> String {
    time.split_once('.').map_or_else(|| time.to_owned(), |(whole, _)| format!("{whole}Z"))
}

fn of_owner(owner: &Owner) -> Entry {
    let verb = if owner.applies { "applied" } else { "updated" };
    let more = owner.count.saturating_sub(owner.fields.len());
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let what = format!("last {verb} {}{more}", owner.fields.join(", "));
    Entry { time: owner.time.clone(), who: owner.manager.clone(), what }
}

#[cfg(test)]
mod tests {
    use super::{of_event, of_owner};
    use autopilot::Owner;
    use change::{Key, Kind};
    use serde_json::json;

    #[test]
    fn only_our_events_about_the_object_are_its_history() {
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: "n".into(), name: "x".into() };
        let event = |who: &str, note: &str| json!({"reportingController": who, "reason": "DriftCorrected", "note": note, "eventTime": "2027-01-01T00:00:00.123456Z"});
        let found = of_event(&event(api::FIELD_MANAGER, "ConfigMap n/x: rogue changed .data"), &key).unwrap();
        assert_eq!(
            (found.time.as_str(), found.what.as_str()),
            ("2027-01-01T00:00:00Z", "DriftCorrected: rogue changed .data")
        );
        assert_eq!(of_event(&event(api::FIELD_MANAGER, "ConfigMap n/xy: changed"), &key), None);
        assert_eq!(of_event(&event("kubelet", "ConfigMap n/x: changed"), &key), None);
    }

    #[test]
    fn a_manager_is_shown_with_some_of_its_fields() {
        let owner = Owner {
            manager: "kubectl".into(),
            applies: false,
            time: "t".into(),
            fields: vec![".data".into()],
            count: 3,
        };
        assert_eq!(of_owner(&owner).what, "last updated .data and 2 more");
    }
}
