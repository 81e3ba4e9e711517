//! Wires the autopilot: its core, the shared hands, and a journal.

mod journal;

use crate::debug::Questions;
use crate::metrics::Metrics;
use autopilot::{Config, Core, Operator};
use catalog::Catalog;
use cluster::{Permit, Server};
use jiff::Timestamp;
use journal::EventJournal;
use runtime::{Clock, Hands, Stop};
use std::sync::Arc;
use tokio::sync::watch;

/// Who watches the operator.
pub(crate) struct Observers {
    /// The pod's name.
    pub(crate) instance: String,
    /// When the process started.
    pub(crate) started: Timestamp,
    /// The metrics.
    pub(crate) metrics: Arc<Metrics>,
    /// Who waits until somebody can ask the advisor for something.
    pub(crate) advisor: watch::Sender<bool>,
    /// The questions of the debug server.
    pub(crate) questions: Questions,
}

/// Reconciles the platform until `stop` resolves; a write in flight is finished.
pub(crate) async fn run(
    config: Config,
    catalog: Catalog,
    server: Server,
    permit: Permit,
    observers: Observers,
    readiness: watch::Sender<Vec<String>>,
    stop: Stop,
) -> anyhow::Result<()> {
    let (clock, Observers { instance, started, metrics, advisor, questions }) = (Clock::start(), observers);
    metrics.leads();
    let journal = EventJournal::new(metrics, advisor, &server.address);
    let operator = Operator {
        pod: instance.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        catalogue: catalog.digest(),
        since: clock.now().wall,
        started,
    };
    let core = Core::new(Config { operator: Some(operator), ..config }, catalog, clock.now());
    runtime::run(Hands { server, permit, clock, instance, readiness }, core, &journal, questions, stop).await
}
