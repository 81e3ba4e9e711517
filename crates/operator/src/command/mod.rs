//! What can be typed.

pub(crate) mod approve;
pub(crate) mod completions;
mod evaluation;
pub(crate) mod explain;
pub(crate) mod facts;
pub(crate) mod handback;
pub(crate) mod render;
pub(crate) mod rollback;
pub(crate) mod run;
pub(crate) mod status;
mod table;
mod target;
pub(crate) mod up;
pub(crate) mod version;

use anyhow::Context;
use std::io::Write;

/// How a command prints.
#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// For a person
    #[default]
    Text,
    /// For a program
    Json,
}

/// Prints; a reader that has had enough (`| head`) is not a failure.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("could not write the output")
        }
        _ => Ok(()),
    }
}
