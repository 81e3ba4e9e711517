//! `status`: what the autopilot would do about every object now, and why.

use super::print;
use super::target::Target;
use crate::autopilot::platform::{self, Result as Came};
use crate::pack;
use anyhow::Context;
use autopilot::{Consent, Observed, Verdict};
use change::{Live, Openings};
use jiff::Timestamp;
use serde::Serialize;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    /// A folder with an asset pack, instead of the one inside this binary
    #[arg(long, value_name = "FOLDER")]
    assets_dir: Option<PathBuf>,
    /// Sensitive kinds that users may patch after all, as the operator was told
    #[arg(long, default_value = "", value_name = "KINDS", value_parser = Openings::parse, hide_default_value = true)]
    patchable_kinds: Openings,
    /// How to print it
    #[arg(long, short, value_enum, default_value_t)]
    output: super::Format,
}

/// One line.
#[derive(Serialize)]
struct Line {
    asset: String,
    object: String,
    state: &'static str,
    why: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let catalog = pack::load(arguments.assets_dir.as_deref())?;
    let lines = arguments.target.with(async |reached| {
        let (mut facts, nodes) = reached.facts(&catalog).await?;
        let (server, kinds) = (&reached.server, &reached.kinds);
        let wanted = platform::want_asking(server, kinds, &catalog, &mut facts, false).await;
        let mut lines = Vec::new();
        for outcome in wanted.outcomes {
            let asset = outcome.asset;
            let (object, excluded) = match outcome.result {
                Came::Included(object) => (object, false),
                Came::Filtered(object) => (object, true),
                Came::Excluded(why) => {
                    lines.push(Line { asset, object: outcome.component, state: "not wanted", why });
                    continue;
                }
                Came::Missing { need, .. } => {
                    lines.push(Line { asset, object: outcome.component, state: "not applicable", why: need.why() });
                    continue;
                }
                Came::Needs(_) => continue,
                Came::Error(why) => {
                    lines.push(Line { asset, object: outcome.component, state: "error", why });
                    continue;
                }
            };
            let live = match kinds.find(&object.key.kind) {
                Some(served) => {
                    let found = cluster::live::read(server, &served, &object.key).await;
                    found.with_context(|| format!("could not read {}", object.key))?
                }
                None => None,
            };
            let restarts = platform::restarts(&nodes, object.pool.as_deref());
            let openings = &arguments.patchable_kinds;
            lines.push(line(asset, &object, live.as_ref(), (&wanted.consent, openings), excluded, &restarts));
        }
        Ok(lines)
    })?;
    match arguments.output {
        super::Format::Json => print(&format!("{}\n", serde_json::to_string_pretty(&lines)?)),
        super::Format::Text => print(&table(&lines)),
    }
}

fn line(
    asset: String,
    object: &platform::Object,
    live: Option<&Live>,
    (consent, openings): (&Consent, &Openings),
    excluded: bool,
    restarts: &str,
) -> Line {
    let (key, wanted, impact) = (&object.key, &object.wanted, object.impact);
    let (remembered, budget, refused, deletions, dropped, frozen) = (None, None, &[], None, &[], false);
    let observed = Observed {
        key,
        wanted,
        impact,
        live,
        remembered,
        budget,
        refused,
        deletions,
        dropped,
        frozen,
        consent,
        openings,
        excluded,
        restarts,
    };
    let decision = autopilot::decide(&observed, Timestamp::now().as_millisecond());
    let (state, why) = match (decision.verdict, decision.refused) {
        (Verdict::Hold(reason), _) | (_, Some(reason)) => ("held", reason.to_string()),
        (Verdict::InSync, None) => ("kept", String::new()),
        // After a start one apply tells whether it is as it should be; what was taken from us meanwhile is a correction.
        (Verdict::Do(_), None) if decision.tell.is_none() => ("kept", String::new()),
        (Verdict::Do(_), None) if live.is_none() => ("to be applied", "it does not exist".into()),
        (Verdict::Do(_), None) => ("to be applied", "it differs from what is wanted".into()),
    };
    Line { asset, object: key.to_string(), state, why }
}

fn table(lines: &[Line]) -> String {
    let width = |of: fn(&Line) -> usize, least: usize| lines.iter().map(of).max().unwrap_or(0).max(least);
    let (asset, object) = (width(|line| line.asset.len(), 5), width(|line| line.object.len(), 6));
    let mut text = format!("{:<asset$}  {:<object$}  {:<14}  WHY\n", "ASSET", "OBJECT", "STATE");
    for line in lines {
        let row = format!("{:<asset$}  {:<object$}  {:<14}  {}", line.asset, line.object, line.state, line.why);
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}
