//! The subcommands.

pub(crate) mod crds;
pub(crate) mod prepare;
pub(crate) mod requests;
mod rollout;
mod story;
mod story_of_advisor;
mod story_of_fleet;
mod story_of_jobs;
pub(crate) mod up;

use playground::UserError;
use std::future::Future;
use std::io::Write;
use std::sync::OnceLock;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// Why a command ended early.
pub(crate) enum EarlyExit {
    /// It failed.
    Failed(UserError),
    /// A signal requested shutdown.
    Interrupted,
    /// The reader of our output closed the pipe.
    PipeClosed,
}

impl From<UserError> for EarlyExit {
    fn from(error: UserError) -> Self {
        EarlyExit::Failed(error)
    }
}

impl From<std::io::Error> for EarlyExit {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => EarlyExit::PipeClosed,
            _ => output_failed(error).into(),
        }
    }
}

/// Becomes true with the first signal, so that a signal between two awaits is not lost.
static SHUTDOWN: OnceLock<watch::Receiver<bool>> = OnceLock::new();

/// Handles SIGINT, SIGTERM and SIGHUP from now on.
pub(crate) fn install_signal_handlers() -> std::io::Result<()> {
    let (sender, receiver) = watch::channel(false);
    for kind in [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()] {
        let (mut signal, sender) = (signal(kind)?, sender.clone());
        tokio::spawn(async move {
            signal.recv().await;
            sender.send_replace(true);
        });
    }
    let _ = SHUTDOWN.set(receiver);
    Ok(())
}

/// Returns once a signal has requested shutdown.
pub(crate) async fn shutdown_requested() {
    match SHUTDOWN.get() {
        Some(receiver) => drop(receiver.clone().wait_for(|requested| *requested).await),
        None => std::future::pending().await,
    }
}

/// Prints a text; a closed pipe is not an error.
fn print(text: &str) -> Result<(), UserError> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(output_failed(error)),
        _ => Ok(()),
    }
}

fn output_failed(error: std::io::Error) -> UserError {
    UserError::new("could not write the output", "check where standard output is redirected to").with_source(error)
}

/// Runs a future until it completes or shutdown is requested; then it is dropped together with its processes.
pub(crate) async fn unless_interrupted<T>(work: impl Future<Output = Result<T, UserError>>) -> Result<T, EarlyExit> {
    tokio::select! {
        done = work => done.map_err(EarlyExit::Failed),
        () = shutdown_requested() => Err(EarlyExit::Interrupted),
    }
}
