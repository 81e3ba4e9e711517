//! Reads the queue that the fleet publishes.

use crate::command::leader::{self, Leader};
use anyhow::{Context, bail};
use change::{Key, Kind};
use cluster::{Failure, Server, live};
use fleet::jobs::published::{Report, VERSION};
use jiff::Timestamp;
use protocol::Served;
use serde_json::Value;

/// What the fleet has published.
#[derive(Debug, PartialEq)]
pub(super) struct Published {
    pub(super) report: Report,
    /// When it was written.
    pub(super) reported: Timestamp,
    /// Why it may be out of date.
    pub(super) doubt: Option<String>,
}

pub(super) async fn read(server: &Server, namespace: &str) -> anyhow::Result<Published> {
    let kind = Kind::new("v1", "ConfigMap");
    let served = Served::at(kind.clone(), "configmaps", true);
    let key = Key { kind, namespace: namespace.to_owned(), name: api::fleet::QUEUE.into() };
    let found = live::whole(server, &served, &key).await;
    let found = found.with_context(|| format!("could not read ConfigMap {namespace}/{}", api::fleet::QUEUE))?;
    let Some(found) = found else {
        bail!(
            "there is no queue in the namespace {namespace}: the fleet publishes one when a RunnerPool names its credentials for GitHub or GitLab; \
             if it is installed in another namespace, add --namespace, otherwise see virtpilot fleet list"
        );
    };
    understood(&found, &leader::find(server, namespace).await)
}

/// The queue in a ConfigMap.
fn understood(config_map: &Value, leader: &Result<Leader, Failure>) -> anyhow::Result<Published> {
    let text = |key: &str| config_map["data"][key].as_str().unwrap_or_default();
    let version = serde_json::from_str::<Value>(text("queue.json")).unwrap_or_default()["version"].as_u64();
    if version.is_some_and(|version| version > u64::from(VERSION)) {
        bail!("the queue has a format that this virtpilot does not know; use the virtpilot of the fleet's version");
    }
    let report: Report =
        serde_json::from_str(text("queue.json")).context("the published queue cannot be understood")?;
    let reported: Timestamp = text("reported").parse().context("the published queue does not say when it was made")?;
    let doubt = doubt(&report, leader).map(|why| format!("{why}; this is how it was at {reported}"));
    Ok(Published { report, reported, doubt })
}

/// Why what was published may be out of date: another process leads, or none.
fn doubt(report: &Report, leader: &Result<Leader, Failure>) -> Option<String> {
    let pod = &report.operator.pod;
    match leader {
        Ok(Leader::Renewing(replica)) if replica.name != *pod => {
            Some(format!("{} leads and has not published the queue yet; {pod} did", replica.name))
        }
        Ok(Leader::Renewing(replica)) => {
            let is_other = leader::started(replica).is_some_and(|started| started != report.operator.started);
            is_other.then(|| format!("{pod} was started again and has not published the queue yet"))
        }
        Ok(other) => Some(other.to_string()),
        Err(failure) => Some(format!("whether a fleet runs is not known, because its lease cannot be read: {failure}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Leader, understood};
    use cluster::Failure;
    use cluster::lease::Replica;
    use fleet::jobs::published::{Operator, Report, VERSION};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    const STARTED: &str = "2026-01-01T10:00:00.5Z";

    fn config_map(version: u32) -> Value {
        let operator = Operator { pod: "p".into(), version: "1".into(), started: STARTED.parse().unwrap() };
        let report = Report { version, operator, ..Report::default() };
        json!({"data": {"queue.json": serde_json::to_string(&report).unwrap(), "reported": STARTED}})
    }

    fn leads(name: &str, started: &str) -> Result<Leader, Failure> {
        let annotations = BTreeMap::from([(api::annotation::LEADER_STARTED.to_owned(), format!("{name} {started}"))]);
        Ok(Leader::Renewing(Replica { name: name.into(), annotations }))
    }

    #[test]
    fn a_queue_of_another_process_is_shown_with_a_doubt() {
        let doubt = |leader: Result<Leader, Failure>| understood(&config_map(VERSION), &leader).unwrap().doubt;
        assert_eq!(doubt(leads("p", STARTED)), None);
        let said = |leader| doubt(leader).unwrap();
        assert!(said(leads("q", STARTED)).starts_with("q leads and has not published the queue yet; p did"));
        assert!(said(leads("p", "2026-01-01T10:00:01Z")).starts_with("p was started again"));
        let none = said(Ok(Leader::None("virtpilot-fleet".into())));
        assert_eq!(none, format!("none leads in namespace virtpilot-fleet; this is how it was at {STARTED}"));
        assert!(said(Err(Failure::Unanswered("no".into()))).contains("its lease cannot be read"));
    }

    #[test]
    fn what_cannot_be_understood_is_refused() {
        let refused = |found: Value| format!("{:#}", understood(&found, &leads("p", STARTED)).unwrap_err());
        assert!(refused(config_map(VERSION + 1)).contains("use the virtpilot of the fleet's version"));
        assert!(refused(json!({"data": {"queue.json": "[]"}})).starts_with("the published queue cannot be understood"));
        assert!(refused(json!({})).starts_with("the published queue cannot be understood"));
    }
}
