//! The signal to stop.

use anyhow::Context;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::signal::unix::{SignalKind, signal};

/// A future that resolves when the process is to stop.
pub type Stop = BoxFuture<'static, ()>;

/// Resolves on SIGTERM or Ctrl-C. Signals are taken from this call on.
pub fn on_signal() -> anyhow::Result<Stop> {
    let listen = |kind| signal(kind).context("could not listen for signals");
    let (mut terminate, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    };
    Ok(stop.boxed())
}
