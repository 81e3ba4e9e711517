//! The API server as we know it: a connection, and how patient we are with it.

use kube::Client;
use std::time::Duration;

/// The API server.
#[derive(Clone)]
pub struct Server {
    /// The connection.
    pub client: Client,
    /// How patient we are.
    pub patience: Patience,
}

/// How long we wait for what.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// A request that is not answered by then has failed; everything we send is safe to send again.
    pub request: Duration,
    /// The server sends a bookmark about once a minute; a watch without a byte for longer than this is dead.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { request: Duration::from_secs(10), silence: Duration::from_secs(75) }
    }
}
