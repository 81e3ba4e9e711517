//! `features`: lists what the asset pack offers, or explains one feature.

use super::table::{self, terminal_width};
use super::{Format, print, wrap};
use crate::pack::Pack;
use anyhow::bail;
use autopilot::nearest::{nearest, question};
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
            Format::Text => list(&all, terminal_width()),
            Format::Json => format!("{:#}\n", document(&catalog)),
        });
    };
    let found = catalog.features.iter().find(|feature| feature.name == *name);
    let found = found.zip(all.iter().find(|summary| summary.name == name));
    let Some((feature, summary)) = found else {
        if let Some(asset) = catalog.asset(name) {
            let of: Vec<&str> = catalog.features_of(asset).map(|feature| feature.name.as_str()).collect();
            bail!(
                "{name} is an asset, not a feature: run \"virtpilot explain {name}\"{}",
                of.iter().map(|feature| format!(" or \"virtpilot features {feature}\"")).collect::<String>()
            );
        }
        let names: Vec<&str> = all.iter().map(|summary| summary.name).collect();
        let meant = question(&nearest(name, names.iter().copied()));
        bail!("there is no feature {name:?}{meant}; name one of {}", names.join(", "));
    };
    print(&match arguments.output {
        Format::Text => explain(&catalog, feature, summary, terminal_width()),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(summary)?),
    })
}

fn list(all: &[Summary<'_>], terminal: Option<usize>) -> String {
    let rows: Vec<[String; 4]> = all
        .iter()
        .map(|summary| {
            let switch = if summary.install == Install::Always { "on" } else { summary.opt_in.as_str() };
            [summary.name.into(), summary.maturity.short().into(), summary.description.into(), switch.to_owned()]
        })
        .collect();
    let table = table::wrapped(["FEATURE", "MATURITY", "WHAT IT DOES", "SWITCH"], &rows, &[2, 3], terminal);
    let switch = format!(
        "A switch such as `enable-mtv: true` is the annotation {}enable-mtv of the HyperConverged.",
        api::annotation::PREFIX
    );
    let more = "`virtpilot features NAME` says why a feature exists, how to verify it and how to leave it out.";
    format!("{table}\n{}{}", wrap::hanging("", &switch, terminal), wrap::hanging("", more, terminal))
}

/// The same as the predecessor's.
pub(crate) fn document(catalog: &Catalog) -> Value {
    let framework = json!({
        "maturity": catalog.framework.maturity.map_or("", Maturity::short),
        "opt_in": catalog.framework.opt_in.as_deref().unwrap_or_default(),
    });
    json!({"framework": framework, "features": summaries(catalog)})
}

fn explain(catalog: &Catalog, feature: &Feature, summary: &Summary<'_>, terminal: Option<usize>) -> String {
    let title = format!("{}: {}", feature.name, feature.description);
    let mut text = format!("{}\n", wrap::hanging("", &title, terminal));
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&wrap::hanging(&format!("{name:<10} "), value, terminal));
        }
    };
    line("maturity", summary.maturity.long());
    line("install", if summary.install == Install::Always { "on by default" } else { "only when it is switched on" });
    line("switch", &summary.opt_in);
    line("requires", &feature.requires.join(", "));
    line("recommends", &feature.recommended.join(", "));
    about(&mut line, &feature.notes);
    for asset in summary::assets(catalog, feature) {
        text.push_str(&describe(asset, terminal));
    }
    text
}

fn about(line: &mut impl FnMut(&str, &str), notes: &Notes) {
    line("why", &notes.why);
    line("source", &notes.sources.join(" "));
    line("verify", &notes.verify);
    line("opt out", &notes.opt_out);
}

fn describe(asset: &Asset, terminal: Option<usize>) -> String {
    let mut text = format!("\n{} ({})\n", asset.name, asset.component);
    let mut line = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&wrap::hanging(&format!("  {name:<8} "), value, terminal));
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
