//! `features`: lists what the asset pack offers, or explains one feature.

use super::{Format, print, table};
use crate::pack::Pack;
use anyhow::bail;
use catalog::{Asset, Catalog, Condition, Feature, Install, Maturity, Notes, Summary, summaries, summary};
use serde_json::{Value, json};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Explain this feature; by default all are listed
    #[arg(add = super::completions::features())]
    feature: Option<String>,
    #[command(flatten)]
    pack: Pack,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let catalog = arguments.pack.load()?;
    let all = summaries(&catalog);
    let Some(name) = &arguments.feature else {
        return print(&match arguments.output {
            Format::Text => list(&all),
            Format::Json => format!("{:#}\n", document(&catalog)),
        });
    };
    let found = catalog.features.iter().find(|feature| feature.name == *name);
    let found = found.zip(all.iter().find(|summary| summary.name == name));
    let Some((feature, summary)) = found else {
        let names: Vec<&str> = all.iter().map(|summary| summary.name).collect();
        bail!("there is no feature {name:?}; name one of {}", names.join(", "));
    };
    print(&match arguments.output {
        Format::Text => explain(&catalog, feature, summary),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(summary)?),
    })
}

fn list(all: &[Summary<'_>]) -> String {
    let rows: Vec<[String; 4]> = all
        .iter()
        .map(|summary| {
            let switch = if summary.install == Install::Always { "on" } else { summary.opt_in.as_str() };
            [summary.name.into(), summary.maturity.short().into(), summary.description.into(), switch.to_owned()]
        })
        .collect();
    let table = table::table(["FEATURE", "MATURITY", "WHAT IT DOES", "SWITCH"], &rows);
    format!(
        "{table}\nA switch such as `enable-mtv: true` is the annotation {}enable-mtv of the HyperConverged.\n\
         `virtpilot features NAME` says why a feature exists, how to verify it and how to leave it out.\n",
        api::annotation::PREFIX
    )
}

/// The same as the predecessor's.
pub(crate) fn document(catalog: &Catalog) -> Value {
    let framework = json!({
        "maturity": catalog.framework.maturity.map_or("", Maturity::short),
        "opt_in": catalog.framework.opt_in.as_deref().unwrap_or_default(),
    });
    json!({"framework": framework, "features": summaries(catalog)})
}

fn explain(catalog: &Catalog, feature: &Feature, summary: &Summary<'_>) -> String {
    let mut text = format!("{}: {}\n\n", feature.name, feature.description);
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<10} {value}\n"));
        }
    };
    line("maturity", summary.maturity.long());
    line("install", if summary.install == Install::Always { "on by default" } else { "only when it is switched on" });
    line("switch", &summary.opt_in);
    line("requires", &feature.requires.join(", "));
    line("recommends", &feature.recommended.join(", "));
    about(&mut line, &feature.notes);
    for asset in summary::assets(catalog, feature) {
        text.push_str(&describe(asset));
    }
    text
}

fn about(line: &mut impl FnMut(&str, &str), notes: &Notes) {
    line("why", &notes.why);
    line("source", &notes.sources.join(" "));
    line("verify", &notes.verify);
    line("opt out", &notes.opt_out);
}

fn describe(asset: &Asset) -> String {
    let mut text = format!("\n{} ({})\n", asset.name, asset.component);
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("  {name:<8} {value}\n"));
        }
    };
    line("does", &asset.notes.docs);
    let conditions: Vec<String> = asset.conditions.iter().map(Condition::to_string).collect();
    line("if", &conditions.join(", and "));
    if asset.install == Install::OptIn && conditions.is_empty() {
        line("if", "never");
    }
    line("needs", asset.gate_crd.as_deref().unwrap_or_default());
    about(&mut line, &asset.notes);
    text
}
