//! Wires the fleet: its core, the shared hands, those for hypervisors and CI platforms, and a journal.

#[allow(dead_code)]
pub(crate) mod border;
mod connections;
mod forges;
mod journal;
mod observed;
mod outside;
mod secrets;
pub(crate) mod servers;
#[cfg(test)]
mod tests;

use crate::metrics::Metrics;
use border::Border;
use cluster::{Permit, Server};
use connections::Connections;
use fleet::jobs::published::Operator;
use fleet::{Config, Core};
use forges::Forges;
use jiff::Timestamp;
use journal::FleetJournal;
use observed::Observed;
use outside::Outside;
use runtime::{Clock, Hands, Stop};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

pub(crate) use connections::connect_once;

/// Creates, keeps and ends machines until `stop` resolves; a write in flight is finished. A request to a hypervisor is not: the next
/// process finds out how it ended. `home` is the namespace of the fleet itself.
pub(crate) async fn run(
    config: Config,
    (server, home): (Server, String),
    (permit, border): (Permit, Arc<Border>),
    (instance, started, metrics): (String, Timestamp, Arc<Metrics>),
    readiness: watch::Sender<Vec<String>>,
    stop: Stop,
) -> anyhow::Result<()> {
    let clock = Clock::start();
    let elsewhere = Outside {
        connections: Arc::new(Connections::new(server.clone(), home.clone(), permit.clone(), metrics.clone())),
        forges: Arc::new(Forges::new(server.clone(), home.clone(), permit.clone(), border.clone())),
        border,
    };
    metrics.fleet_leads();
    let journal = FleetJournal::new(metrics.clone());
    let publisher = Operator { pod: instance.clone(), version: env!("CARGO_PKG_VERSION").to_owned(), started };
    let core = Observed { core: Core::new(config, clock.now()).publishing(home, publisher), metrics };
    let questions = mpsc::channel(1).1;
    let hands = Hands { server, permit, clock, instance, readiness };
    let ran = runtime::run_with(hands, core, &journal, &elsewhere, questions, stop).await;
    elsewhere.forges.close().await;
    ran
}
