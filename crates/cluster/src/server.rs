//! The API server as we know it: a connection, and how patient we are with it.

use kube::Client;
use std::time::Duration;

/// The API server.
#[derive(Clone)]
pub struct Server {
    /// Where it is.
    pub address: String,
    /// The connection for everything that is answered at once.
    pub client: Client,
    /// Connections for watches: a server lets only so many requests share one, and no write may wait for a watch to end.
    pub(crate) watching: Vec<Client>,
    /// How patient we are.
    pub patience: Patience,
}

/// A server takes 100 requests over one connection at a time, kube-apiserver unless it is told otherwise.
const WATCHES_A_CONNECTION: usize = 80;
/// More kinds than four connections can carry are watched by nobody; the last one takes the rest.
pub(crate) const CONNECTIONS: usize = 4;

impl Server {
    /// The connection for a watch, by its number.
    pub(crate) fn watching(&self, number: usize) -> &Client {
        self.watching.get(number / WATCHES_A_CONNECTION).or(self.watching.last()).unwrap_or(&self.client)
    }
}

/// How long we wait for what.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A request that is not answered by then has failed; everything we send is safe to send again.
    pub request: Duration,
    /// The server sends a bookmark about once a minute; a watch without a byte for longer than this is dead.
    pub silence: Duration,
    /// How often everything is listed again, in case a watch has kept something to itself.
    pub verify: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience {
            request: Duration::from_secs(10),
            silence: Duration::from_secs(75),
            verify: Duration::from_secs(24 * 3600),
        }
    }
}
