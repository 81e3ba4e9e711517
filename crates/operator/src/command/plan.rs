//! `plan`: prints every object that would be written, what that changes, and what it waits for; nothing is written. `plan show` and
//! `plan list` print the plans of the advisor.

mod document;
mod markdown;
#[cfg(test)]
mod samples;
mod text;

use super::colour::Palette;
use super::evaluation::Evaluation;
use super::{print, profile, render};
use anyhow::Context;
use autopilot::plan::{Item, ItemState, Operation, Plan, Source, offline};
use autopilot::{Core, Previews};
use std::path::PathBuf;
use std::process::ExitCode;

pub(super) use document::Document;
pub(super) use text::{change, wrapped};

#[derive(clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Exit codes:\n  0  nothing to do\n  2  changes are pending\n  1  an error: there is no plan, or objects in it failed (not rendered, not read, refused by the API server)"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    of_advisor: Option<OfAdvisor>,
    #[command(flatten)]
    of_autopilot: OfAutopilot,
}

#[derive(clap::Subcommand)]
enum OfAdvisor {
    /// Show the plan of a profile, as its VirtPlatformConfig has it
    Show(profile::plan::Show),
    /// List the profiles: their actions, phases and plans
    List(profile::plan::List),
}

#[derive(clap::Args)]
struct OfAutopilot {
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
    /// Text for a person, in colour on a terminal unless NO_COLOR is set
    #[default]
    Text,
    /// JSON, the same as in the file of --out
    Json,
    /// Markdown for a pull request
    Markdown,
}

/// How a plan is printed.
#[derive(Clone, Copy, Default)]
pub(super) struct Style {
    /// It was made without a cluster.
    is_offline: bool,
    /// Everything is shown.
    full: bool,
    palette: Palette,
}

impl Style {
    /// For a plan of a cluster, in colour on a terminal.
    pub(super) fn new(full: bool) -> Style {
        Style { is_offline: false, full, palette: Palette::of_output() }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.of_advisor {
        Some(OfAdvisor::Show(arguments)) => profile::plan::show(arguments),
        Some(OfAdvisor::List(arguments)) => profile::plan::list(arguments),
        None => of_autopilot(&arguments.of_autopilot),
    }
}

fn of_autopilot(arguments: &OfAutopilot) -> anyhow::Result<ExitCode> {
    let OfAutopilot { evaluation, hco_file, facts, asset, full, out, output } = arguments;
    let catalog = evaluation.catalog()?;
    if let Some(name) = asset {
        render::check_asset(&catalog, name)?;
    }
    let catalogue = catalog.digest();
    let facts = render::offline(evaluation.namespace(), facts.as_deref(), hco_file.as_deref())?;
    let is_offline = facts.is_some();
    let (plan, cluster) = match facts {
        Some(facts) => {
            let items = offline(&catalog, &facts, evaluation.opt_in());
            (Plan { items, in_sync: 0 }, None)
        }
        None => {
            let core = evaluation.evaluate_with(catalog, Previews::Diff, None)?;
            (core.plan(), cluster_of(&core))
        }
    };
    let document = Document::new(plan, catalogue, cluster, asset.clone());
    if let Some(path) = out {
        std::fs::write(path, document.json()?).with_context(|| {
            format!("could not write the plan to {}; name a file in a folder that can be written", path.display())
        })?;
    }
    let style = Style { is_offline, ..Style::new(*full) };
    print(&match output {
        Format::Json => document.json()?,
        Format::Markdown => markdown::print(&document.plan, style),
        Format::Text => text::print(&document.plan, style),
    })?;
    Ok(ExitCode::from(exit_code(&document.plan)))
}

/// What identifies a cluster: the uid of its HyperConverged.
pub(super) fn cluster_of(core: &Core) -> Option<String> {
    core.facts().hco["metadata"]["uid"].as_str().map(str::to_owned)
}

/// 0 nothing to do, 2 changes are pending, 1 the plan is incomplete.
fn exit_code(plan: &Plan) -> u8 {
    if plan.items.iter().any(|item| item.state == ItemState::Failed) {
        1
    } else if plan.items.iter().any(Item::is_pending) {
        2
    } else {
        0
    }
}

/// Whether only our own label and annotations change.
fn is_record(item: &Item) -> bool {
    item.operation == Some(Operation::Record) && item.state == ItemState::Ready
}

/// What is to be said about the whole plan: where its differences are from, and what is not shown.
pub(super) fn remarks(plan: &Plan, style: Style) -> Vec<String> {
    let mut remarks = Vec::new();
    match plan.items.iter().filter(|item| is_record(item)).count() {
        0 => {}
        _ if style.full => {}
        1 => remarks.push("1 object gets only our label and annotations; --full lists it.".to_owned()),
        count => remarks.push(format!("{count} objects get only our label and annotations; --full lists them.")),
    }
    let mut reasons: Vec<&str> = Vec::new();
    for item in &plan.items {
        if let Source::Local { why } = &item.source
            && !reasons.contains(&why.as_str())
        {
            reasons.push(why);
        }
    }
    if style.is_offline {
        remarks.push(
            "Offline: every object counts as absent. Values that the API server fills in are not shown.".to_owned(),
        );
    } else if !reasons.is_empty() {
        remarks.push(format!(
            "Local diff instead of the API server's: {}. Values that the server fills in are not shown.",
            reasons.join("; ")
        ));
    }
    remarks
}

#[cfg(test)]
mod tests {
    use super::samples::{item, sample};
    use super::{Plan, exit_code};
    use autopilot::plan::{ItemState, Operation};

    #[test]
    fn the_exit_code_says_whether_anything_is_pending_or_wrong() {
        let code = |state: ItemState, operation: Operation| {
            let mut item = item("a", "ConfigMap", "n", "x", operation);
            item.state = state;
            exit_code(&Plan { items: vec![item], in_sync: 0 })
        };
        assert_eq!(exit_code(&Plan::default()), 0);
        assert_eq!(code(ItemState::Ready, Operation::Create), 2);
        assert_eq!(code(ItemState::Waiting, Operation::Delete), 2);
        assert_eq!(code(ItemState::Ready, Operation::Record), 0);
        assert_eq!(code(ItemState::Held, Operation::Change), 0);
        assert_eq!(code(ItemState::Failed, Operation::Create), 1);
        assert_eq!(exit_code(&sample()), 1, "an error is more than a pending change");
    }
}
