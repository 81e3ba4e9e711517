//! `status`: what the autopilot would do about every object now, and why.

use super::print;
use super::target::Target;
use crate::autopilot::platform::{self, Result as Came, Source};
use crate::pack;
use anyhow::Context;
use autopilot::{Consent, Observed, Verdict};
use change::{Digest, Entry, Key, Live, Overrides};
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
        let (mut facts, nodes) = reached.facts().await?;
        let (client, kinds) = (&reached.client, &reached.kinds);
        let source = Source { client, kinds };
        let wanted = platform::want(Some(&source), &catalog, &mut facts, false).await;
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
                Came::Error(why) => {
                    lines.push(Line { asset, object: outcome.component, state: "error", why });
                    continue;
                }
            };
            let live = match kinds.find(&object.key.kind) {
                Some(served) => {
                    let api = served.api(client, &object.key.namespace);
                    let found = api.get_metadata_opt(&object.key.name).await;
                    found
                        .with_context(|| format!("could not read {}", object.key))?
                        .map(|found| cluster::live::live(found.metadata))
                }
                None => None,
            };
            let restarts = platform::restarts(&nodes, &object.object);
            lines.push(line(asset, &object, live.as_ref(), &wanted.consent, excluded, &restarts));
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
    consent: &Consent,
    excluded: bool,
    restarts: &str,
) -> Line {
    let (key, wanted) = (&object.key, &object.object);
    let observed = Observed { key, wanted, impact: object.impact, live, remembered: None, consent, excluded, restarts };
    let decision = autopilot::decide(&observed, Timestamp::now().as_millisecond());
    let (state, why) = match decision.verdict {
        Verdict::Hold(reason) => ("held", reason.to_string()),
        Verdict::InSync => ("kept", String::new()),
        Verdict::Do(_) if is_as_applied(key, wanted, live) => ("kept", String::new()),
        Verdict::Do(_) => (
            "to be applied",
            if live.is_some() { "it differs from what is wanted".into() } else { "it does not exist".into() },
        ),
    };
    Line { asset, object: key.to_string(), state, why }
}

/// Whether the last thing applied is what is wanted now; whether somebody changed it since only the operator knows.
fn is_as_applied(key: &Key, wanted: &serde_json::Value, live: Option<&Live>) -> bool {
    let Some(live) = live else { return false };
    let overridden = Overrides::read(&live.annotations, key).and_then(|overrides| overrides.apply(wanted));
    let applied = live.annotations.get(api::annotation::APPLIED);
    let ours = Entry::all(&live.managed_fields);
    let owned = Entry::ours(&ours, api::FIELD_MANAGER).is_some();
    owned && overridden.is_ok_and(|wanted| applied.is_some_and(|applied| applied == Digest::of(&wanted).as_str()))
}

fn table(lines: &[Line]) -> String {
    let width = |of: fn(&Line) -> usize, least: usize| lines.iter().map(of).max().unwrap_or(0).max(least);
    let (asset, object) = (width(|line| line.asset.len(), 5), width(|line| line.object.len(), 6));
    let mut text = format!("{:<asset$}  {:<object$}  {:<13}  WHY\n", "ASSET", "OBJECT", "STATE");
    for line in lines {
        let row = format!("{:<asset$}  {:<object$}  {:<13}  {}", line.asset, line.object, line.state, line.why);
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text
}
