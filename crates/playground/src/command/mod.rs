//! What can be typed.

pub(crate) mod crds;
pub(crate) mod prepare;
pub(crate) mod requests;
pub(crate) mod up;

use playground::Trouble;
use std::future::Future;
use tokio::signal::unix::{SignalKind, signal};

/// Why a command ended early.
pub(crate) enum Ended {
    /// Something could not be done.
    Trouble(Trouble),
    /// Somebody asked us to stop.
    Interrupted,
    /// Whoever read our output has had enough.
    PipeClosed,
}

impl From<Trouble> for Ended {
    fn from(trouble: Trouble) -> Self {
        Ended::Trouble(trouble)
    }
}

impl From<std::io::Error> for Ended {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Ended::PipeClosed,
            _ => Trouble::new("could not write the output", "check where it goes").from(error).into(),
        }
    }
}

/// Returns when somebody asks this process to end: Ctrl-C, `kill`, or a closed terminal.
pub(crate) async fn asked_to_end() {
    let signals = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut waiting = Vec::new();
    for kind in signals {
        match signal(kind) {
            Ok(mut signal) => waiting.push(Box::pin(async move { signal.recv().await })),
            Err(_) => return std::future::pending().await,
        }
    }
    futures::future::select_all(waiting).await;
}

/// Does something that takes time, unless somebody asks us to end; then it is dropped with all its processes.
pub(crate) async fn unless_interrupted<T>(work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Ended> {
    tokio::select! {
        done = work => done.map_err(Ended::Trouble),
        () = asked_to_end() => Err(Ended::Interrupted),
    }
}
