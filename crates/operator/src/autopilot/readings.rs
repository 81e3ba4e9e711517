//! Single objects that are read because their place is watched already and will not tell of them again.

use change::{Key, Live};
use cluster::Server;
use cluster::kinds::Served;
use cluster::request::Failure;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};

/// What was read of one.
type Read = (Key, Result<Option<Live>, Failure>);

/// Those that are being read.
#[derive(Default)]
pub(super) struct Readings(JoinSet<Read>);

impl Readings {
    /// Reads one after a while.
    pub(super) fn read(&mut self, server: &Server, served: Served, key: Key, wait: Duration) {
        let server = server.clone();
        self.0.spawn(async move {
            tokio::time::sleep(wait).await;
            let read = cluster::live::read(&server, &served, &key).await;
            (key, read)
        });
    }

    /// The next that was read; nothing while none is.
    pub(super) async fn next(&mut self) -> Option<Result<Read, JoinError>> {
        self.0.join_next().await
    }
}
