//! `facts`: what is known of a cluster, in the form in which `render --facts` takes it.

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
    /// How to print it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// For a person
    #[default]
    Yaml,
    /// For a program
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
