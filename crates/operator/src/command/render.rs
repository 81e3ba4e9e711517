//! `render`: prints the objects that the catalogue renders; nothing is written.

use super::evaluation::Evaluation;
use super::input;
use super::print;
use super::table::table;
use anyhow::bail;
use autopilot::{AssetResult, Before, Outcome, evaluate};
use catalog::{Catalog, Facts};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    evaluation: Evaluation,
    /// Render from a HyperConverged in a file instead of a cluster
    #[arg(long, value_name = "FILE", conflicts_with = "facts")]
    hco_file: Option<PathBuf>,
    /// Render from facts in a file instead of a cluster
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// Render only this asset
    #[arg(long)]
    asset: Option<String>,
    /// Also show the assets that are not rendered, and why
    #[arg(long)]
    show_excluded: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// YAML documents that can be piped into `kubectl diff`
    #[default]
    Yaml,
    /// JSON
    Json,
    /// A table of the assets
    Status,
}

/// Exits with 3 when an asset is in error.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let catalog = arguments.evaluation.catalog()?;
    if let Some(name) = &arguments.asset {
        check_asset(&catalog, name)?;
    }
    let facts = offline(arguments.evaluation.namespace(), arguments.facts.as_deref(), arguments.hco_file.as_deref())?;
    let mut outcomes = match facts {
        Some(facts) => evaluate_offline(&catalog, &facts, arguments.evaluation.opt_in()),
        None => arguments.evaluation.evaluate(catalog)?.evaluation().outcomes,
    };
    outcomes.retain(|outcome| arguments.asset.as_ref().is_none_or(|name| *name == outcome.asset));
    let failed = outcomes.iter().any(|outcome| matches!(outcome.result, AssetResult::Error(_)));
    print(&match arguments.output {
        Format::Status => as_table(&outcomes),
        Format::Json => {
            format!("{:#}\n", Value::Array(shown(&outcomes, arguments.show_excluded).map(as_json).collect()))
        }
        Format::Yaml => shown(&outcomes, arguments.show_excluded).map(|outcome| as_yaml(&as_json(outcome))).collect(),
    })?;
    Ok(ExitCode::from(if failed { 3 } else { 0 }))
}

/// Checks that the pack has an asset of this name.
pub(super) fn check_asset(catalog: &Catalog, name: &str) -> anyhow::Result<()> {
    if catalog.asset(name).is_none() {
        let names: Vec<&str> = catalog.assets.iter().map(|asset| asset.name.as_str()).collect();
        bail!("the asset {name:?} does not exist; choose one of {}", names.join(", "));
    }
    Ok(())
}

/// Evaluates facts without a cluster; an asset that needs more is in error.
fn evaluate_offline(catalog: &Catalog, facts: &Facts, opt_in: bool) -> Vec<Outcome> {
    let mut outcomes = evaluate(catalog, facts, opt_in, Before::default()).outcomes;
    for outcome in &mut outcomes {
        if let AssetResult::Needs(queries) = &outcome.result {
            let queries: Vec<String> = queries.iter().map(ToString::to_string).collect();
            let why =
                format!("it needs {}; render it from a cluster (--kubeconfig) or with --facts", queries.join(", "));
            outcome.result = AssetResult::Error(why);
        }
    }
    outcomes
}

/// The facts of `--facts` or `--hco-file`, if one is given.
pub(super) fn offline(namespace: &str, facts: Option<&Path>, hco_file: Option<&Path>) -> anyhow::Result<Option<Facts>> {
    match (facts, hco_file) {
        (Some(path), _) => input::facts(path, namespace).map(Some),
        (None, Some(path)) => input::hyperconverged(path, namespace).map(Some),
        (None, None) => Ok(None),
    }
}

/// The outcomes to print: rendered assets, errors, and on request the rest.
pub(crate) fn shown(outcomes: &[Outcome], all: bool) -> impl Iterator<Item = &Outcome> {
    outcomes
        .iter()
        .filter(move |outcome| all || matches!(outcome.result, AssetResult::Included(_) | AssetResult::Error(_)))
}

/// The predecessor's names for the results.
fn status(outcome: &Outcome) -> (&'static str, String) {
    match &outcome.result {
        AssetResult::Included(_) => ("INCLUDED", String::new()),
        AssetResult::Filtered(_) => ("FILTERED", "excluded by disabled-resources".into()),
        AssetResult::Governed { by, .. } => ("EXCLUDED", format!("governed by VirtPlatformConfig {by}")),
        AssetResult::Excluded(why) | AssetResult::Unwanted { why, .. } => ("EXCLUDED", why.to_string()),
        AssetResult::Missing { need, .. } => ("EXCLUDED", need.why()),
        AssetResult::Needs(_) => ("ERROR", "the cluster has not answered its lookups".into()),
        AssetResult::Error(why) => ("ERROR", why.clone()),
    }
}

pub(crate) fn as_json(outcome: &Outcome) -> Value {
    let (status, reason) = status(outcome);
    let mut value =
        json!({"asset": outcome.asset, "path": outcome.path, "component": outcome.component, "status": status});
    if !reason.is_empty() {
        value["reason"] = json!(reason);
    }
    if let AssetResult::Included(object) = &outcome.result {
        value["object"] = object.desired.object();
    }
    value
}

/// An outcome that [`as_json`] made, as a YAML document below its comments.
pub(crate) fn as_yaml(outcome: &Value) -> String {
    let mut text = String::new();
    for (name, key) in
        [("Asset", "asset"), ("Path", "path"), ("Component", "component"), ("Status", "status"), ("Reason", "reason")]
    {
        for line in outcome[key].as_str().unwrap_or_default().lines() {
            text.push_str(&format!("# {name}: {line}\n"));
        }
    }
    if let Some(object) = outcome.get("object") {
        text.push_str(&catalog::yaml_text(object));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    text.push_str("---\n");
    text
}

fn as_table(outcomes: &[Outcome]) -> String {
    let row = |outcome: &Outcome| {
        let (status, reason) = status(outcome);
        [outcome.asset.clone(), status.to_owned(), outcome.component.clone(), reason.replace('\n', " ")]
    };
    table(["ASSET", "STATUS", "COMPONENT", "REASON"], &outcomes.iter().map(row).collect::<Vec<_>>())
}
