//! `render`: what the catalogue wants, without writing anything.

use super::print;
use super::target::Target;
use crate::autopilot::platform::{self, Outcome, Result as Came};
use crate::pack::Pack;
use anyhow::{Context, bail};
use catalog::Facts;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// A HyperConverged in a file, instead of a cluster
    #[arg(long, value_name = "FILE", conflicts_with = "facts")]
    hco_file: Option<PathBuf>,
    /// All facts about a cluster in a file, instead of a cluster
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    #[command(flatten)]
    pack: Pack,
    /// Only this asset
    #[arg(long)]
    asset: Option<String>,
    /// Also what is not wanted, and why
    #[arg(long)]
    show_excluded: bool,
    /// How to print it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// Documents that can be piped into `kubectl diff`
    #[default]
    Yaml,
    /// For a program
    Json,
    /// A table
    Status,
}

/// Exits with 3 when an asset is in error.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let catalog = arguments.pack.load()?;
    if let Some(name) = &arguments.asset
        && catalog.asset(name).is_none()
    {
        let names: Vec<&str> = catalog.assets.iter().map(|asset| asset.name.as_str()).collect();
        bail!("there is no asset {name:?}\n  fix: choose one of {}", names.join(", "));
    }
    let mut outcomes = match offline(arguments)? {
        Some(facts) => {
            let words = "give --kubeconfig or --facts: it needs to know";
            platform::want_offline(&catalog, &facts, false, words).outcomes
        }
        None => arguments.target.with(async |reached| {
            let (mut facts, _) = reached.facts(&catalog).await?;
            Ok(platform::want_asking(&reached.server, &reached.kinds, &catalog, &mut facts, false).await.outcomes)
        })?,
    };
    outcomes.retain(|outcome| arguments.asset.as_ref().is_none_or(|name| *name == outcome.asset));
    let failed = outcomes.iter().any(|outcome| matches!(outcome.result, Came::Error(_)));
    print(&match arguments.output {
        Format::Status => table(&outcomes),
        Format::Json => {
            format!("{:#}\n", Value::Array(shown(&outcomes, arguments.show_excluded).map(as_json).collect()))
        }
        Format::Yaml => shown(&outcomes, arguments.show_excluded).map(as_yaml).collect::<anyhow::Result<String>>()?,
    })?;
    Ok(ExitCode::from(if failed { 3 } else { 0 }))
}

/// The facts a file gives, if one is named.
fn offline(arguments: &Arguments) -> anyhow::Result<Option<Facts>> {
    let read =
        |path: &PathBuf| std::fs::read_to_string(path).with_context(|| format!("could not read {}", path.display()));
    if let Some(path) = &arguments.facts {
        let facts =
            serde_saphyr::from_str(&read(path)?).with_context(|| format!("{} does not hold facts", path.display()))?;
        return Ok(Some(facts));
    }
    let Some(path) = &arguments.hco_file else { return Ok(None) };
    let hco: Value = serde_saphyr::from_str(&read(path)?).with_context(|| format!("{} is not YAML", path.display()))?;
    if hco["kind"] != api::hco::KIND {
        bail!("{} holds {}, not a {}\n  fix: name a file with a {0}", path.display(), hco["kind"], api::hco::KIND);
    }
    Ok(Some(Facts { hco, ..Facts::default() }))
}

/// Those that are printed: what is wanted, what failed, and on request the rest.
fn shown(outcomes: &[Outcome], all: bool) -> impl Iterator<Item = &Outcome> {
    outcomes.iter().filter(move |outcome| all || matches!(outcome.result, Came::Included(_) | Came::Error(_)))
}

/// The predecessor's words.
fn status(outcome: &Outcome) -> (&'static str, Cow<'_, str>) {
    match &outcome.result {
        Came::Included(_) => ("INCLUDED", "".into()),
        Came::Filtered(_) => ("FILTERED", "excluded by disabled-resources".into()),
        Came::Excluded(why) | Came::Unwanted { why, .. } => ("EXCLUDED", why.into()),
        Came::Missing { need, .. } => ("EXCLUDED", need.why().into()),
        // Whoever prints has asked, or has made an error of it.
        Came::Needs(_) => ("ERROR", "it needs to know more".into()),
        Came::Error(why) => ("ERROR", why.into()),
    }
}

fn as_json(outcome: &Outcome) -> Value {
    let (status, reason) = status(outcome);
    let mut value =
        json!({"asset": outcome.asset, "path": outcome.path, "component": outcome.component, "status": status});
    if !reason.is_empty() {
        value["reason"] = json!(reason);
    }
    if let Came::Included(object) = &outcome.result {
        value["object"] = object.wanted.object();
    }
    value
}

fn as_yaml(outcome: &Outcome) -> anyhow::Result<String> {
    let (status, reason) = status(outcome);
    let mut text = format!(
        "# Asset: {}\n# Path: {}\n# Component: {}\n# Status: {status}\n",
        outcome.asset, outcome.path, outcome.component
    );
    for line in reason.lines() {
        text.push_str(&format!("# Reason: {line}\n"));
    }
    if let Came::Included(object) = &outcome.result {
        text.push_str(&serde_saphyr::to_string(&object.wanted.object()).context("could not write YAML")?);
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text.push_str("---\n");
    Ok(text)
}

fn table(outcomes: &[Outcome]) -> String {
    let width = outcomes.iter().map(|outcome| outcome.asset.len()).max().unwrap_or(0).max(5);
    let mut text = format!("{:<width$}  {:<8}  {:<16}  REASON\n", "ASSET", "STATUS", "COMPONENT");
    for outcome in outcomes {
        let (status, reason) = status(outcome);
        let row =
            format!("{:<width$}  {status:<8}  {:<16}  {}", outcome.asset, outcome.component, reason.replace('\n', " "));
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}
