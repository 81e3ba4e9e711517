//! Runs the fleet: under its own lease, and with the uid of its namespace in the record of every machine.

use super::lead_or_run;
use crate::fleet as product;
use crate::fleet::border::Border;
use crate::fleet::servers::{Leader, Servers, Settings, publish};
use crate::metrics::Metrics;
use anyhow::bail;
use change::{Backoff, Key, Kind};
use cluster::lease::Replica;
use cluster::{Attempts, Permit, Server, live};
use futures::FutureExt;
use jiff::Timestamp;
use protocol::Served;
use runtime::{Probes, Stop};
use std::sync::Arc;
use std::time::Duration;

/// While the API server does not answer.
const AGAIN: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };

/// Runs the fleet until `stop` resolves.
pub(super) async fn run(
    settings: Settings,
    (server, namespace): (Server, String),
    replica: Option<Replica>,
    probes: Probes,
    observers: (String, Timestamp, Arc<Metrics>),
    stop: futures::future::Shared<Stop>,
) -> anyhow::Result<()> {
    let operator = tokio::select! {
        uid = uid(&server, &namespace) => uid?,
        () = stop.clone() => return Ok(()),
    };
    let border = Border::new();
    let counted = observers.2.clone();
    let count = Arc::new(move |server, result| counted.fleet_request(server, result));
    let mut replica = replica;
    let leader = replica.as_mut().map(|replica| {
        publish(replica, std::env::var("POD_IP").ok().as_deref(), &settings);
        Arc::new(Leader::new(&server, &namespace, &replica.name))
    });
    let servers = Servers::start(&settings, &border, (&server, &namespace), leader, count).await?;
    let config = fleet::Config { operator, concurrency: fleet::Concurrency::default() };
    let (leading, readiness, home) = (server.clone(), probes.missing.clone(), namespace.clone());
    let work = |permit: Permit, stop| {
        servers.lead(permit.clone());
        product::run(config, (server, home), (permit, border), observers, readiness, stop)
    };
    lead_or_run(leading, namespace, replica, probes, stop.boxed(), work).await
}

/// The uid of the namespace, which tells installations of the fleet apart. It is waited for while the API server does not answer.
async fn uid(server: &Server, namespace: &str) -> anyhow::Result<String> {
    let kind = Kind::new("v1", "Namespace");
    let served = Served::at(kind.clone(), "namespaces", false);
    let key = Key { kind, namespace: String::new(), name: namespace.to_owned() };
    let fix = "start the fleet with the --namespace that it is installed in; `virtpilot manifests --products fleet` grants the right";
    let mut attempts = Attempts::with(AGAIN);
    let mut last = String::new();
    loop {
        match live::read(server, &served, &key).await {
            Ok(Some(live)) => return Ok(live.uid),
            Ok(None) => {
                bail!("there is no namespace {namespace}, whose uid marks the machines of this fleet; {fix}");
            }
            Err(failure) if failure.is_refusal() => {
                bail!(
                    "the namespace {namespace}, whose uid marks the machines of this fleet, cannot be read: {failure}; {fix}"
                );
            }
            Err(failure) => {
                let why = failure.to_string();
                if why != last {
                    tracing::warn!("the fleet could not read its namespace {namespace}: {why}; trying again");
                    last = why;
                }
                attempts.wait().await;
            }
        }
    }
}
