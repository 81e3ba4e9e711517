//! `status`: what the autopilot would do about every object now, and why.

use super::print;
use super::target::Target;
use crate::autopilot::item::{Item, Seen, User};
use crate::autopilot::platform::{self, Result as Came};
use crate::pack::Pack;
use anyhow::Context;
use autopilot::{Cause, Decision, Effect, Verdict};
use change::{Desired, Impact, Key, Kind, PatchableKinds};
use cluster::{Kinds, Server};
use jiff::Timestamp;
use serde::Serialize;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    pack: Pack,
    /// Sensitive kinds that users may patch after all, as the operator was told
    #[arg(long, default_value = "", value_name = "KINDS", value_parser = PatchableKinds::parse, hide_default_value = true)]
    patchable_kinds: PatchableKinds,
    /// As if nothing were kept unless the HyperConverged says so, as the operator was told
    #[arg(long)]
    opt_in: bool,
    /// Whether the operator deletes what is not wanted any more
    #[arg(long, num_args = 0..=1, default_missing_value = "true", default_value_t = true, action = clap::ArgAction::Set)]
    prune: bool,
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
    let catalog = arguments.pack.load()?;
    let lines = arguments.target.with(async |reached| {
        let (mut facts, nodes) = reached.facts(&catalog).await?;
        let (server, kinds) = (&reached.server, &reached.kinds);
        let wanted = platform::want_asking(server, kinds, &catalog, &mut facts, arguments.opt_in).await;
        let created = reached.hco.metadata.creation_timestamp.as_ref();
        let hco_created = created.map(|created| created.0.as_millisecond());
        let user = User {
            consent: &wanted.consent,
            openings: &arguments.patchable_kinds,
            prune: arguments.prune,
            hco_created,
        };
        let mut lines = Vec::new();
        for outcome in wanted.outcomes {
            let asset = outcome.asset;
            let (object, excluded, parting) = match outcome.result {
                Came::Included(object) => (object, false, None),
                Came::Filtered(object) => (object, true, None),
                Came::Unwanted { cause, why, object: Some(object) } => {
                    let excluded = wanted.rules.excludes(&object.key);
                    (object, excluded, Some((cause, why)))
                }
                Came::Unwanted { why, object: None, .. } => {
                    lines.push(Line { asset, object: outcome.component, state: "not wanted", why });
                    continue;
                }
                Came::Excluded(why) => {
                    let is_fact = !wanted.is_off && wanted.held.is_none();
                    let state = if is_fact { "not applicable" } else { "not wanted" };
                    lines.push(Line { asset, object: outcome.component, state, why });
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
            let mut item = Item::new(object.wanted.clone());
            item.want(&object, platform::restarts(&nodes, object.pool.as_deref()));
            (item.excluded, item.parting) = (excluded, parting.as_ref().map(|(cause, _)| *cause));
            let decision = decide(server, kinds, &object.key, &mut item, user).await?;
            let (state, why) = match parting {
                Some((_, why)) if item.is_gone() => ("not wanted", why),
                _ => told(decision, &item),
            };
            lines.push(Line { asset, object: object.key.to_string(), state, why });
        }
        for tombstone in catalog.tombstones.iter().filter(|_| !wanted.is_off) {
            let kind = Kind::new(&tombstone.api_version, &tombstone.kind);
            let Some(served) = kinds.find(&kind) else { continue };
            let namespace = tombstone.namespace.clone().filter(|_| served.namespaced).unwrap_or_default();
            let key = Key { kind, namespace, name: tombstone.name.clone() };
            let mut item = Item::new(Desired::of(&serde_json::Value::Null));
            (item.parting, item.excluded) = (Some(Cause::Tombstone), wanted.rules.excludes(&key));
            (item.impact, item.frozen) = (Impact::implied_by(&key.kind.group, &key.kind.kind), wanted.held.is_some());
            let decision = decide(server, kinds, &key, &mut item, user).await?;
            if matches!(item.live, Seen::Present(_)) {
                let (state, why) = told(decision, &item);
                lines.push(Line { asset: tombstone.file.clone(), object: key.to_string(), state, why });
            }
        }
        Ok(lines)
    })?;
    match arguments.output {
        super::Format::Json => print(&format!("{}\n", serde_json::to_string_pretty(&lines)?)),
        super::Format::Text => print(&table(&lines)),
    }
}

/// What the operator would decide after a start, with as many looks as it would take.
async fn decide(
    server: &Server,
    kinds: &Kinds,
    key: &Key,
    item: &mut Item,
    user: User<'_>,
) -> anyhow::Result<Option<Decision>> {
    item.live = Seen::Absent(None);
    let now = Timestamp::now().as_millisecond();
    let Some(served) = kinds.find(&key.kind) else { return Ok(item.decide(key, user, now)) };
    let could_not = || format!("could not read {key}");
    if let Some(live) = cluster::live::read(server, &served, key).await.with_context(could_not)? {
        item.live = Seen::Present(live);
    }
    let decision = item.decide(key, user, now);
    if !decision.as_ref().is_some_and(|decision| decision.verdict == Verdict::Look) {
        return Ok(decision);
    }
    if let Some((live, content)) = cluster::live::content(server, &served, key).await.with_context(could_not)? {
        item.live = Seen::Present(live);
        item.inspect(key, user, &content);
    }
    Ok(item.decide(key, user, now))
}

/// A decision in a word and a sentence.
fn told(decision: Option<Decision>, item: &Item) -> (&'static str, String) {
    let Some(decision) = decision else { return ("unknown", String::new()) };
    let is_there = matches!(item.live, Seen::Present(_));
    match (decision.verdict, decision.refused) {
        (Verdict::Hold(reason), _) | (_, Some(reason)) => ("held", reason.to_string()),
        (Verdict::Do(Effect::Delete { .. }), _) => ("to be deleted", "it is not wanted any more".into()),
        (Verdict::Do(Effect::HandBack { .. }), _) => ("to be given back", "it is not wanted any more".into()),
        (Verdict::Look, _) => ("unknown", "it changes too fast to be looked at".into()),
        (Verdict::InSync | Verdict::TakeOver { .. }, _) => ("kept", String::new()),
        // After a start one apply tells whether it is as it should be; what was taken from us meanwhile is a correction.
        (Verdict::Do(_), _) if decision.tell.is_none() => ("kept", String::new()),
        (Verdict::Do(_), _) if !is_there => ("to be applied", "it does not exist".into()),
        (Verdict::Do(_), _) => ("to be applied", "it differs from what is wanted".into()),
    }
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
