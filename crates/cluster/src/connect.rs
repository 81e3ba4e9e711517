//! Connects to the API server.

use crate::kubeconfig::{self, KubeconfigContext};
use crate::proxy;
use crate::request::chain;
use crate::server::{Server, Timeouts, WATCH_CONNECTIONS};
use change::Identity;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{ClientBuilder, ConfigExt};
use kube::{Client, Config};
use std::time::Duration;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceExt};

/// A server that takes longer to accept a connection, or to answer a ping, is unreachable.
const CONNECT: Duration = Duration::from_secs(10);
/// How often an idle connection is pinged: it can die without notice.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no usable configuration.
    #[error(transparent)]
    Config(#[from] kubeconfig::Error),
    /// The client cannot be made.
    #[error("could not make a client for {server}: {why}")]
    Client {
        /// The API server.
        server: String,
        /// Why.
        why: String,
    },
}

/// The server named by a kubeconfig, or else by KUBECONFIG, `~/.kube/config` or the pod's service account.
///
/// The client never retries: a write that is retried for minutes could outlive the permit for it.
pub async fn connect(chosen: KubeconfigContext<'_>, timeouts: Timeouts, identity: Identity) -> Result<Server, Error> {
    let config = kubeconfig::config(chosen).await?;
    let address = config.cluster_url.to_string();
    let why = |error: kube::Error| Error::Client { server: address.clone(), why: chain(&error) };
    let make = || client(&config).map_err(why);
    // A connection is opened by its first request, so unused ones cost nothing.
    let watch_clients = (0..WATCH_CONNECTIONS).map(|_| make()).collect::<Result<_, _>>()?;
    Ok(Server { client: make()?, watch_clients, timeouts, identity, address })
}

pub(crate) fn client(config: &Config) -> kube::Result<Client> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    // Without it the end of the handshake and the first request wait 40 ms for each other.
    http.set_nodelay(true);
    http.set_connect_timeout(Some(CONNECT));
    let http = match proxy::of(config)? {
        Some(proxy) => BoxCloneSyncService::new(proxy::tunnel(&proxy, http).map_err(BoxError::from)),
        None => BoxCloneSyncService::new(http.map_err(BoxError::from)),
    };
    let mut settings = config.rustls_client_config()?;
    // There is one server; room for the sessions of 256 is the default.
    settings.resumption = rustls::client::Resumption::in_memory_sessions(2);
    let mut tls = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(settings).https_or_http();
    if let Some(name) = config.tls_server_name.clone() {
        let name = name.try_into().map_err(|error| kube::Error::Service(Box::new(error)))?;
        tls = tls.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(name));
    }
    // HTTP/2 where the server has it: requests share one connection.
    let connection = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(CONNECT)
        .http2_keep_alive_while_idle(true)
        .build::<_, kube::client::Body>(tls.enable_all_versions().wrap_connector(http));
    let service = connection.map_err(BoxError::from);
    Ok(ClientBuilder::new(service, config.default_namespace.clone())
        .with_layer(&config.extra_headers_layer()?)
        .with_layer(&tower::util::option_layer(config.auth_layer()?))
        .with_layer(&config.base_uri_layer())
        .build())
}
