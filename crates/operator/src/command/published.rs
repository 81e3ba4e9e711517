//! Reads the report that the operator publishes.

use super::target::Target;
use anyhow::Context;
use autopilot::Report;
use change::{Key, Kind};
use cluster::lease::holder;
use cluster::{Server, live};
use jiff::Timestamp;
use protocol::Kinds;
use serde_json::Value;

/// What is known of the operator in the cluster.
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
    let leader = match holder(server, &target.namespace).await {
        Ok(Some(leader)) => leader.name,
        Ok(None) => return Ok(Published::Nothing(format!("none leads in namespace {}", target.namespace))),
        Err(failure) => return Ok(Published::Nothing(format!("the lease of its leader cannot be read: {failure}"))),
    };
    let found = match config_map(server, &reached.kinds, &target.namespace).await {
        Ok(Some(found)) => found,
        Ok(None) => return Ok(Published::Nothing(format!("{leader} leads and has not reported yet"))),
        Err(why) => return Ok(Published::Nothing(format!("the report of {leader} cannot be read: {why:#}"))),
    };
    let text = |key: &str| found["data"][key].as_str().unwrap_or_default();
    match (serde_json::from_str::<Report>(text("status.json")), text("reported").parse()) {
        (Ok(report), Ok(reported)) if report.operator.as_ref().is_some_and(|operator| operator.pod == leader) => {
            match report.settings == Some(autopilot::report::settings(&reached.hco)) {
                true => Ok(Published::Report(Box::new(report), reported)),
                false => Ok(Published::Nothing(format!(
                    "{leader} leads and has not reported yet about the annotations of the HyperConverged"
                ))),
            }
        }
        (Ok(_), _) => Ok(Published::Nothing(format!("{leader} leads and has not reported yet"))),
        (Err(error), _) => Ok(Published::Nothing(format!("the report of {leader} cannot be understood: {error}"))),
    }
}

async fn config_map(server: &Server, kinds: &Kinds, namespace: &str) -> anyhow::Result<Option<Value>> {
    let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: namespace.to_owned(), name: api::STATUS.into() };
    let served = kinds.find(&key.kind).context("the API server does not serve ConfigMaps")?;
    Ok(live::whole(server, &served, &key).await?)
}
