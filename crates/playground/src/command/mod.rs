//! What can be typed.

pub(crate) mod crds;
pub(crate) mod prepare;
pub(crate) mod requests;
mod story;
pub(crate) mod up;

use playground::Trouble;
use std::future::Future;
use std::io::Write;
use std::sync::OnceLock;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

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

/// Set once, when somebody asks this process to end: a signal between two things we do is not lost.
static ENDED: OnceLock<watch::Receiver<bool>> = OnceLock::new();

/// Listens, from now on, for Ctrl-C, `kill` and a closed terminal.
pub(crate) fn listen() -> std::io::Result<()> {
    let (tell, told) = watch::channel(false);
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (mut signal, tell) = (signal(kind)?, tell.clone());
        tokio::spawn(async move {
            signal.recv().await;
            tell.send_replace(true);
        });
    }
    let _ = ENDED.set(told);
    Ok(())
}

/// Returns when somebody asks this process to end, or has asked before.
pub(crate) async fn asked_to_end() {
    match ENDED.get() {
        Some(told) => drop(told.clone().wait_for(|ended| *ended).await),
        None => std::future::pending().await,
    }
}

/// Prints, and minds no reader that has had enough.
fn say(text: &str) -> Result<(), Trouble> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Trouble::new("could not write the output", "check where it goes").from(error))
        }
        _ => Ok(()),
    }
}

/// Does something that takes time, unless somebody asks us to end; then it is dropped with all its processes.
pub(crate) async fn unless_interrupted<T>(work: impl Future<Output = Result<T, Trouble>>) -> Result<T, Ended> {
    tokio::select! {
        done = work => done.map_err(Ended::Trouble),
        () = asked_to_end() => Err(Ended::Interrupted),
    }
}
