//! `plan`: prints every object that would be written, what that changes, and what it waits for; nothing is written.

mod document;
mod markdown;
mod offline;
#[cfg(test)]
mod samples;
mod text;

use super::evaluation::Evaluation;
use super::print;
use anyhow::Context;
use autopilot::Plan;
use autopilot::Previews;
use autopilot::plan::ItemState;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) use document::{Document, cluster_of};

/// Exit codes: 0 nothing to do, 2 changes are pending, 1 an error: no plan, or one that is incomplete because an object is refused by the
/// API server, could not be read, or its asset cannot be rendered.
#[derive(clap::Args)]
#[command(
    after_help = "Exit codes:\n  0  nothing to do\n  2  changes are pending\n  1  an error: there is no plan, or it has objects that failed (refused by the API server, not rendered, not read)"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    evaluation: Evaluation,
    /// Plan for a HyperConverged in a file instead of a cluster: every object counts as absent
    #[arg(long, value_name = "FILE", conflicts_with = "facts")]
    hco_file: Option<PathBuf>,
    /// Plan for facts in a file instead of a cluster: every object counts as absent
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Show only this asset
    #[arg(long)]
    asset: Option<String>,
    /// Show every field of every object, however long the plan is
    #[arg(long)]
    full: bool,
    /// Also write the plan to a file, for `virtpilot approve --plan FILE`
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// Text for a person, in colour on a terminal
    #[default]
    Text,
    /// JSON, the same as in the file of --out
    Json,
    /// Markdown for a pull request
    Markdown,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let catalog = arguments.evaluation.catalog()?;
    if let Some(name) = &arguments.asset {
        super::render::check_asset(&catalog, name)?;
    }
    let digest = catalog.digest();
    let facts = super::render::offline(
        arguments.evaluation.namespace(),
        arguments.facts.as_deref(),
        arguments.hco_file.as_deref(),
    )?;
    let is_offline = facts.is_some();
    let (plan, cluster) = match facts {
        Some(facts) => (offline::plan(&catalog, &facts, arguments.evaluation.opt_in()), None),
        None => {
            let core = arguments.evaluation.evaluate_with(catalog, Previews::Diff)?;
            (core.plan(), document::cluster_of(&core))
        }
    };
    let document = Document::new(plan, digest, cluster, arguments.asset.clone());
    if let Some(path) = &arguments.out {
        std::fs::write(path, document.json()?).with_context(|| {
            format!("could not write the plan to {}; choose a folder that can be written", path.display())
        })?;
    }
    print(&match arguments.output {
        Format::Json => document.json()?,
        Format::Markdown => markdown::print(&document.plan, is_offline, arguments.full),
        Format::Text => {
            let colour =
                std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            text::print(&document.plan, is_offline, arguments.full, colour)
        }
    })?;
    Ok(ExitCode::from(exit_code(&document.plan)))
}

/// 0 nothing to do, 2 changes pending, 1 incomplete.
fn exit_code(plan: &Plan) -> u8 {
    if plan.items.iter().any(|item| item.state == ItemState::Failed) {
        1
    } else if plan.items.iter().any(|item| item.is_pending()) {
        2
    } else {
        0
    }
}

/// What a plan says about where its differences are from; nothing if all are from the server.
fn remarks(plan: &Plan, is_offline: bool) -> Vec<String> {
    use autopilot::plan::Source;
    let mut remarks = Vec::new();
    if is_offline {
        remarks
            .push("Offline: every object counts as absent, and what the API server fills in is not shown.".to_owned());
        return remarks;
    }
    let mut reasons: Vec<&str> = Vec::new();
    for item in &plan.items {
        if let Source::Local { why } = &item.source
            && !reasons.contains(&why.as_str())
        {
            reasons.push(why);
        }
    }
    if !reasons.is_empty() {
        remarks.push(format!(
            "Local diff instead of the API server's: {}. Values that the server fills in are not shown.",
            reasons.join("; ")
        ));
    }
    remarks
}
