//! `facts`: prints the facts about a cluster in the format of `render --facts`.

use super::evaluation::Policy;
use super::print;
use super::target::Target;
use crate::pack::Pack;
use anyhow::Context;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    pack: Pack,
    #[command(flatten)]
    policy: Policy,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// YAML
    #[default]
    Yaml,
    /// JSON
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let core = arguments.policy.evaluate(&arguments.target, arguments.pack.load()?)?;
    let facts = serde_json::to_value(core.facts())?;
    print(&match arguments.output {
        Format::Json => format!("{facts:#}\n"),
        Format::Yaml => serde_saphyr::to_string(&facts).context("could not write YAML")?,
    })
}
