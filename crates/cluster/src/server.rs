//! The API server: its connections, its timeouts, and the identity under which it is used.

use change::Identity;
use kube::Client;
use std::time::Duration;

/// The API server.
#[derive(Clone)]
pub struct Server {
    /// Its URL.
    pub address: String,
    /// The connection for everything but watches.
    pub client: Client,
    /// Connections for watches: a server limits the requests of one connection, and no write may wait for a watch to end.
    pub(crate) watch_clients: Vec<Client>,
    /// How long to wait for what.
    pub timeouts: Timeouts,
    /// The names of the product that uses it.
    pub identity: Identity,
}

/// kube-apiserver serves 100 requests on one connection at a time, by default.
const WATCHES_PER_CONNECTION: usize = 80;
/// No product watches more kinds than four connections can carry; the last one takes the rest.
pub(crate) const WATCH_CONNECTIONS: usize = 4;

impl Server {
    /// A server behind this client, which also carries the watches.
    pub fn new(address: String, client: Client, timeouts: Timeouts, identity: Identity) -> Server {
        Server { address, client, watch_clients: Vec::new(), timeouts, identity }
    }

    /// The same server and connections, under the names of another product.
    #[must_use]
    pub fn under(self, identity: Identity) -> Server {
        Server { identity, ..self }
    }

    /// The connection for a watch, by its number.
    pub(crate) fn watch_client(&self, number: usize) -> &Client {
        self.watch_clients.get(number / WATCHES_PER_CONNECTION).or(self.watch_clients.last()).unwrap_or(&self.client)
    }
}

/// How long to wait for what.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// A request that is not answered by then has failed; every request is safe to send again.
    pub request: Duration,
    /// The server sends a bookmark about once a minute; a watch without a byte for longer than this is dead.
    pub silence: Duration,
    /// How often everything is listed again, in case a watch has missed something.
    pub verify: Duration,
}

impl Default for Timeouts {
    fn default() -> Timeouts {
        Timeouts {
            request: Duration::from_secs(10),
            silence: Duration::from_secs(75),
            verify: Duration::from_secs(24 * 3600),
        }
    }
}
