//! `facts`: prints the facts about a cluster in the format of `render --facts`.

use super::evaluation::Evaluation;
use super::print;
use anyhow::Context;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    evaluation: Evaluation,
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
    let core = arguments.evaluation.evaluate(arguments.evaluation.catalog()?)?;
    let facts = serde_json::to_value(core.facts())?;
    print(&match arguments.output {
        Format::Json => format!("{facts:#}\n"),
        Format::Yaml => serde_saphyr::to_string(&facts).context("could not write YAML")?,
    })
}
