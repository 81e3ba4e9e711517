//! Reads the report that the operator publishes.

use super::leader::{self, Leader};
use super::target::Target;
use anyhow::Context;
use autopilot::Report;
use change::{Key, Kind};
use cluster::lease::Replica;
use cluster::{Server, live};
use jiff::Timestamp;
use protocol::Kinds;
use serde_json::Value;

/// What is known of the operator in the cluster.
#[derive(Debug, PartialEq)]
pub(crate) enum Published {
    /// It runs, and this is its report.
    Report(Box<Report>, Timestamp),
    /// Why there is no report that can be relied on.
    Nothing(String),
}

/// The report of the operator that leads now.
pub(crate) async fn read(target: &Target) -> anyhow::Result<Published> {
    let reached = match target.reach().await {
        Ok(reached) => reached,
        // The evaluation says what is wrong.
        Err(_) => return Ok(Published::Nothing("the HyperConverged cannot be read".to_owned())),
    };
    let server = &reached.server;
    let leader = match leader::find(server, &target.namespace).await {
        Ok(Leader::Renewing(leader)) => leader,
        Ok(other) => return Ok(Published::Nothing(other.to_string())),
        Err(failure) => return Ok(Published::Nothing(format!("the lease of its leader cannot be read: {failure}"))),
    };
    Ok(match config_map(server, &reached.kinds, &target.namespace).await {
        Ok(Some(found)) => current(&found, &leader, &reached.hco),
        Ok(None) => Published::Nothing(format!("{} leads, and there is no report of it", leader.name)),
        Err(why) => Published::Nothing(format!("the report of {} cannot be read: {why:#}", leader.name)),
    })
}

/// The report in a ConfigMap, if the process that leads made it with the annotations that the HyperConverged has.
fn current(config_map: &Value, leader: &Replica, hco: &Value) -> Published {
    let (pod, text) = (&leader.name, |key: &str| config_map["data"][key].as_str().unwrap_or_default());
    let report: Report = match serde_json::from_str(text("status.json")) {
        Ok(report) => report,
        Err(error) => return Published::Nothing(format!("the report of {pod} cannot be understood: {error}")),
    };
    let (Some(operator), Ok(reported)) = (&report.operator, text("reported").parse()) else {
        return Published::Nothing(format!("{pod} leads, and the report does not say who made it and when"));
    };
    if operator.pod != *pod {
        return Published::Nothing(format!("{pod} leads and has not reported yet"));
    }
    if leader::started(leader) != Some(operator.started) {
        return Published::Nothing(format!("{pod} leads, and the report was made by another process of that name"));
    }
    if report.settings != Some(autopilot::report::settings(hco)) {
        return Published::Nothing(format!(
            "{pod} leads and has not reported yet about the annotations of the HyperConverged"
        ));
    }
    Published::Report(Box::new(report), reported)
}

async fn config_map(server: &Server, kinds: &Kinds, namespace: &str) -> anyhow::Result<Option<Value>> {
    let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: namespace.to_owned(), name: api::STATUS.into() };
    let served = kinds.find(&key.kind).context("the API server does not serve ConfigMaps")?;
    Ok(live::whole(server, &served, &key).await?)
}

#[cfg(test)]
mod tests {
    use super::{Published, current};
    use autopilot::{Operator, Report};
    use cluster::lease::Replica;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    const STARTED: &str = "2026-01-01T10:00:00.5Z";

    fn hco() -> Value {
        json!({"metadata": {"annotations": {"platform.kubevirt.io/autopilot": "swap"}}})
    }

    fn report() -> Report {
        let started = STARTED.parse().unwrap();
        let operator =
            Operator { pod: "p".into(), version: "1".into(), catalogue: "c".into(), since: started, started };
        Report { operator: Some(operator), settings: Some(autopilot::report::settings(&hco())), ..Report::default() }
    }

    fn read(report: &Report, leader: &str, started: &str) -> Result<Report, String> {
        let annotations = BTreeMap::from([(api::annotation::LEADER_STARTED.to_owned(), started.to_owned())]);
        let json = serde_json::to_string(report).unwrap();
        let found = json!({"data": {"status.json": json, "reported": STARTED}});
        match current(&found, &Replica { name: leader.into(), annotations }, &hco()) {
            Published::Report(report, _) => Ok(*report),
            Published::Nothing(why) => Err(why),
        }
    }

    #[test]
    fn only_the_report_of_the_process_that_leads_about_the_present_annotations_is_current() {
        let leads = format!("p {STARTED}");
        assert_eq!(read(&report(), "p", &leads), Ok(report()));
        let refused = |report: &Report, leader: &str, started: &str| read(report, leader, started).unwrap_err();
        assert_eq!(refused(&report(), "q", &format!("q {STARTED}")), "q leads and has not reported yet");
        let another = "p leads, and the report was made by another process of that name";
        assert_eq!(refused(&report(), "p", "p 2026-01-01T10:00:01Z"), another, "its container was restarted");
        assert_eq!(refused(&report(), "p", ""), another, "a leader that does not say which process it is");
        let stale = Report { settings: None, ..report() };
        assert!(
            refused(&stale, "p", &leads).ends_with("has not reported yet about the annotations of the HyperConverged")
        );
        let anonymous = Report { operator: None, ..report() };
        assert!(refused(&anonymous, "p", &leads).ends_with("the report does not say who made it and when"));
    }

    #[test]
    fn a_text_that_is_no_report_is_not_shown() {
        let leader = Replica { name: "p".into(), annotations: BTreeMap::new() };
        let Published::Nothing(why) = current(&json!({"data": {"status.json": "[]x"}}), &leader, &hco()) else {
            panic!("it is shown");
        };
        assert!(why.starts_with("the report of p cannot be understood: "), "{why}");
    }
}
