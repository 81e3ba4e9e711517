//! `version`: prints the version, commit and target of this build.

use super::{Format, print};
use anyhow::Context;
use serde::Serialize;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Serialize)]
struct Version {
    version: &'static str,
    commit: &'static str,
    target: &'static str,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let version = Version {
        version: env!("CARGO_PKG_VERSION"),
        commit: env!("VIRTPILOT_COMMIT"),
        target: env!("VIRTPILOT_TARGET"),
    };
    let text = match arguments.output {
        Format::Text => format!("virtpilot {} ({}, {})", version.version, version.commit, version.target),
        Format::Json => serde_json::to_string_pretty(&version).context("could not write the version")?,
    };
    print(&format!("{text}\n"))
}
