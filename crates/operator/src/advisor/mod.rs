//! Wires the advisor: its core, the shared hands, and a journal.

mod journal;

use crate::metrics::Metrics;
use advisor::{Config, Core};
use catalog::Catalog;
use cluster::{Permit, Server};
use journal::ProfileJournal;
use runtime::{Clock, Hands, Stop};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Plans and applies profiles until `stop` resolves; a write in flight is finished.
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
    let journal = ProfileJournal::new(metrics);
    let core = Core::new(config, catalog, clock.now());
    let questions = mpsc::channel(1).1;
    runtime::run(Hands { server, permit, clock, instance, readiness }, core, &journal, questions, stop).await
}
