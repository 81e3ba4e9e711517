//! The subcommands.

pub(crate) mod approve;
pub(crate) mod check;
mod colour;
pub(crate) mod completions;
mod evaluation;
pub(crate) mod explain;
pub(crate) mod facts;
pub(crate) mod features;
pub(crate) mod fleet;
pub(crate) mod handback;
mod input;
mod leader;
pub(crate) mod lint;
mod logging;
pub(crate) mod man;
pub(crate) mod manifests;
mod object_name;
pub(crate) mod plan;
mod profile;
mod published;
pub(crate) mod queue;
pub(crate) mod rbac;
pub(crate) mod render;
pub(crate) mod rollback;
pub(crate) mod run;
mod skew;
pub(crate) mod status;
mod table;
mod target;
pub(crate) mod up;
mod value;
pub(crate) mod version;
mod watch;
mod wrap;

use anyhow::Context;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;

/// The file name by which this program was called, from its words: `kubectl-virtpilot` as a plugin of kubectl.
pub(crate) fn invoked_as(words: &[OsString]) -> Option<String> {
    Some(Path::new(words.first()?).file_name()?.to_string_lossy().into_owned())
}

/// The output format of a command.
#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
}

/// Prints to standard output; a closed pipe (`| head`) is not an error.
fn print(text: &str) -> anyhow::Result<()> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(error).context("could not write the output")
        }
        _ => Ok(()),
    }
}
