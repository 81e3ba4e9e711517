//! Wires the fleet: its core, the shared hands, those for hypervisors, and a journal.

mod connections;
mod journal;
mod observed;

use crate::metrics::Metrics;
use cluster::{Permit, Server};
use connections::Connections;
use fleet::hypervisor::{Answer, Failure, Request};
use fleet::{Config, Core};
use journal::FleetJournal;
use observed::Observed;
use runtime::{Clock, Elsewhere, Hands, Stop};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

pub(crate) use connections::connect_once;

/// Creates, keeps and ends machines until `stop` resolves; a write in flight is finished. A request to a hypervisor is not: the next
/// process finds out how it ended. `home` is the namespace of the fleet itself.
pub(crate) async fn run(
    config: Config,
    (server, home): (Server, String),
    permit: Permit,
    (instance, metrics): (String, Arc<Metrics>),
    readiness: watch::Sender<Vec<String>>,
    stop: Stop,
) -> anyhow::Result<()> {
    let clock = Clock::start();
    let elsewhere = Hypervisors(Arc::new(Connections::new(server.clone(), home, permit.clone(), metrics.clone())));
    metrics.fleet_leads();
    let journal = FleetJournal::new(metrics.clone());
    let core = Observed { core: Core::new(config, clock.now()), metrics };
    let questions = mpsc::channel(1).1;
    let hands = Hands { server, permit, clock, instance, readiness };
    runtime::run_with(hands, core, &journal, &elsewhere, questions, stop).await
}

/// The hands for hypervisors.
struct Hypervisors(Arc<Connections>);

impl Elsewhere<Request, Result<Answer, Failure>> for Hypervisors {
    fn carry_out(&self, request: Request) -> impl Future<Output = Result<Answer, Failure>> + Send + 'static {
        let connections = self.0.clone();
        async move { connections.carry_out(&request).await }
    }
}
