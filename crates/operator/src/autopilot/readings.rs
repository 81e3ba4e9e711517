//! Single objects that are read because their place is watched already and will not tell of them again.

use change::{Key, Live};
use cluster::Server;
use cluster::kinds::Served;
use cluster::request::Failure;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};

/// What was read of one, and the version that was known before.
pub(super) struct Read {
    pub(super) key: Key,
    pub(super) known: Option<u128>,
    pub(super) found: Result<Option<Live>, Failure>,
}

/// Those that are being read.
#[derive(Default)]
pub(super) struct Readings {
    under_way: BTreeSet<Key>,
    tasks: JoinSet<Read>,
}

impl Readings {
    /// Reads one after a while, unless it is being read.
    pub(super) fn read(&mut self, server: &Server, served: Served, key: Key, known: Option<u128>, wait: Duration) {
        if !self.under_way.insert(key.clone()) {
            return;
        }
        let server = server.clone();
        self.tasks.spawn(async move {
            tokio::time::sleep(wait).await;
            let found = cluster::live::read(&server, &served, &key).await;
            Read { key, known, found }
        });
    }

    /// The next that was read; nothing while none is.
    pub(super) async fn next(&mut self) -> Option<Result<Read, JoinError>> {
        self.tasks.join_next().await
    }

    /// One was read.
    pub(super) fn end(&mut self, key: &Key) {
        self.under_way.remove(key);
    }
}
