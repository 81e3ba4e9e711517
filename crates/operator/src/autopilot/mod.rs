//! Wires the autopilot: its core, the shared hands, and a journal.

mod journal;

use crate::metrics::Metrics;
use autopilot::{Config, Core, Operator};
use catalog::Catalog;
use cluster::{Permit, Server};
use journal::EventJournal;
use runtime::{Clock, Hands, Stop};
use std::sync::Arc;
use tokio::sync::watch;

/// Reconciles the platform until `stop` resolves; a write in flight is finished.
pub(crate) async fn run(
    config: Config,
    catalog: Catalog,
    server: Server,
    permit: Permit,
    (instance, metrics): (String, Arc<Metrics>),
    readiness: watch::Sender<Vec<String>>,
    stop: Stop,
) -> anyhow::Result<()> {
    let clock = Clock::start();
    let journal = EventJournal::new(metrics, &server.address);
    let operator = Operator {
        pod: instance.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        catalogue: catalog.digest(),
        since: clock.now().wall,
    };
    let core = Core::new(Config { operator: Some(operator), ..config }, catalog, clock.now());
    runtime::run(Hands { server, permit, clock, instance, readiness }, core, &journal, stop).await
}
