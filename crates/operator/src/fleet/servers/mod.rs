//! The fleet's two servers: the receiver of webhooks, and the bootstrap endpoint for the guests of its machines.
//!
//! Both listen in every replica. A replica that does not lead passes connections on to the one that does; while nobody leads it refuses what
//! arrives, so that the sender tries again.

mod address;
mod authority;
mod bootstrap;
mod leader;
mod reply;
mod webhooks;

use crate::fleet::border::Border;
pub(crate) use address::PublicAddress;
use anyhow::Context;
use cluster::{Permit, Server};
use fleet::forge::{GITLAB_WEBHOOK_PATH, WEBHOOK_PATH};
pub(crate) use leader::{Leader, publish};
use runtime::bounded::{self, Limits, Tls};
use runtime::{Clock, health, tls};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Where the servers listen.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The receiver of webhooks; nothing means that it is off.
    pub(crate) webhooks: Option<health::BindAddress>,
    /// The folder with its certificate, `tls.crt` and `tls.key`; without one it does not encrypt.
    pub(crate) webhook_certificate: Option<PathBuf>,
    /// The bootstrap endpoint.
    pub(crate) bootstrap: Option<health::BindAddress>,
    /// The same as machines reach it; nothing means that it is off.
    pub(crate) bootstrap_address: Option<PublicAddress>,
}

/// Counts a request by the server and by what became of it: `webhook` and the result, or the request of a guest and the result.
pub(crate) type Count = Arc<dyn Fn(&'static str, &'static str) + Send + Sync>;
/// What webhooks are counted as.
pub(crate) const WEBHOOK: &str = "webhook";

/// GitHub makes a connection for each delivery, and a proxy keeps some open.
const OF_WEBHOOKS: Limits = Limits { connections: 512, head: Duration::from_secs(5), life: Duration::from_secs(300) };
/// A guest makes a connection for each request, and at most a few thousand start at a time.
const OF_BOOTSTRAP: Limits = Limits { connections: 512, head: Duration::from_secs(10), life: Duration::from_secs(60) };

/// The servers, which run until the process ends.
pub(crate) struct Servers {
    /// Permission to make an authority, once this replica leads.
    permit: watch::Sender<Option<Permit>>,
}

impl Servers {
    /// Listens. A port that is taken is an error at once. `home` is the namespace of the fleet.
    pub(crate) async fn start(
        settings: &Settings,
        border: &Arc<Border>,
        (server, home): (&Server, &str),
        leader: Option<Arc<Leader>>,
        count: Count,
    ) -> anyhow::Result<Servers> {
        let permit = watch::channel(None).0;
        receive_webhooks(settings, border, home, leader.clone(), count.clone()).await?;
        if let (Some(listens), Some(address)) = (&settings.bootstrap, &settings.bootstrap_address) {
            let listener =
                health::listen(listens, "the bootstrap endpoint").await.context("guests would get no credentials")?;
            let acceptor = authority::Acceptor::default();
            let keeper = authority::Keeper::new((server.clone(), home.to_owned()), address.clone(), border.clone());
            tokio::spawn(keeper.keep(permit.subscribe(), acceptor.clone()));
            let service = Arc::new(bootstrap::Endpoint::new(border.clone(), leader, Clock::start(), count));
            tokio::spawn(bounded::serve(listener, move || acceptor.current(), OF_BOOTSTRAP, service));
            tracing::info!("guests get their credentials on {listens}, which they reach as {address}");
        }
        Ok(Servers { permit })
    }

    /// This replica leads: from now on it may make an authority.
    pub(crate) fn lead(&self, permit: Permit) {
        self.permit.send_replace(Some(permit));
    }
}

/// Receives webhooks, if the settings say where.
pub(crate) async fn receive_webhooks(
    settings: &Settings,
    border: &Arc<Border>,
    home: &str,
    leader: Option<Arc<Leader>>,
    count: Count,
) -> anyhow::Result<()> {
    let Some(address) = &settings.webhooks else { return Ok(()) };
    let listener = health::listen(address, "webhooks").await?;
    let source = settings.webhook_certificate.as_ref().map(|folder| tls::Source {
        of: "the receiver of webhooks",
        files: Some(tls::Files { certificate: folder.join("tls.crt"), key: folder.join("tls.key") }),
        names: vec![format!("{}.{home}.svc", api::fleet::FIELD_MANAGER)],
    });
    let mut certificate = source.map(tls::Certificate::load).transpose()?;
    let tls = move || certificate.as_mut().map_or(Tls::Off, |known| Tls::With(known.acceptor()));
    let service = Arc::new(webhooks::Webhooks::new(border.clone(), leader, count));
    tokio::spawn(bounded::serve(listener, tls, OF_WEBHOOKS, service));
    tracing::info!("webhooks are received on {address}, at {WEBHOOK_PATH} and {GITLAB_WEBHOOK_PATH}");
    Ok(())
}

#[cfg(test)]
mod tests;
