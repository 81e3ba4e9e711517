//! `handback`: lets go of every object, before an uninstall.

use super::print;
use super::target::{Reached, Target};
use crate::pack::Pack;
use catalog::Catalog;
use change::{Effect, Kind, handback};
use cluster::list;
use protocol::WriteError;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// An operator that was just writing takes an object back once; whoever does so more often was not told to stop.
const ROUNDS: usize = 5;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    pack: Pack,
    /// Only show what would be done
    #[arg(long)]
    dry_run: bool,
}

/// Exits with 1 when something may be left that is still ours.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let catalog = arguments.pack.load()?;
    arguments.target.with(async |reached| {
        switch_off(&reached, arguments.dry_run).await?;
        let (kinds, mut left) = kinds(&catalog, &reached);
        let mut rounds = 0;
        loop {
            rounds += 1;
            let (found, troubles) = one_round(&reached, &kinds, arguments.dry_run).await?;
            // What was in the way in the last round is in the way.
            let is_last = found == 0 || rounds == ROUNDS || arguments.dry_run;
            if is_last {
                if found > 0 && rounds == ROUNDS && troubles.is_empty() {
                    left.push("objects are taken back again and again: is an operator still running that was not told to stop?".into());
                }
                left.extend(troubles);
                break;
            }
        }
        for trouble in &left {
            print(&format!("not done: {trouble}\n"))?;
        }
        let namespace = &reached.key.namespace;
        if !arguments.dry_run {
            print(&format!(
                "nothing was deleted. When the operator is uninstalled, backups and what it wrote down may go:\n  \
                 kubectl --namespace {namespace} delete secrets --selector {}\n  \
                 kubectl --namespace {namespace} delete configmap/{} lease/{}\n",
                api::BACKUP_OF, api::STATE, api::LEASE
            ))?;
        }
        Ok(if left.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// First of all: else what is handed back would be taken again at once.
async fn switch_off(reached: &Reached, dry_run: bool) -> anyhow::Result<()> {
    let name = api::annotation::AUTOPILOT;
    let off = |before: Option<&str>| {
        let is_off = before.is_some_and(|value| value.trim().eq_ignore_ascii_case("false"));
        Ok((!is_off && !dry_run).then(|| "false".to_owned()))
    };
    let is_new = reached.annotate(name, off).await?;
    print(&match (dry_run, is_new) {
        (true, _) => format!("would set the annotation {name} of {} to false\n", reached.key),
        (false, true) => {
            format!("set the annotation {name} of {} to false: the autopilot writes nothing any more\n", reached.key)
        }
        (false, false) => format!("the annotation {name} of {} is false already\n", reached.key),
    })
}

/// Every kind of which there may be objects of ours, and what cannot be told.
fn kinds(catalog: &Catalog, reached: &Reached) -> (BTreeSet<Kind>, Vec<String>) {
    let (mut kinds, mut untold) = (BTreeSet::from([reached.key.kind.clone()]), Vec::new());
    for asset in &catalog.assets {
        match asset.kind.clone() {
            Some(kind) => {
                kinds.insert(kind);
            }
            None if asset.component == api::hco::KIND => {}
            None => untold.push(format!("it is unclear of which kind the object of asset {} is", asset.name)),
        }
    }
    kinds.extend(catalog.tombstones.iter().map(|tombstone| Kind::new(&tombstone.api_version, &tombstone.kind)));
    (kinds, untold)
}

/// Lists every kind once and hands back what is ours; returns how many there were, and what was in the way.
async fn one_round(reached: &Reached, kinds: &BTreeSet<Kind>, dry_run: bool) -> anyhow::Result<(usize, Vec<String>)> {
    let (mut found, mut troubles) = (0, Vec::new());
    let selector = autopilot::IDENTITY.selector();
    for served in kinds.iter().filter_map(|kind| reached.kinds.find(kind)) {
        let ours = match list::lives(&reached.server, &served, "", &selector).await {
            Ok(ours) => ours,
            Err(failure) => {
                troubles.push(format!("{} cannot be listed: {failure}", served.kind().kind));
                continue;
            }
        };
        for (key, live) in ours {
            found += 1;
            if dry_run {
                print(&format!("would hand back {key}\n"))?;
                continue;
            }
            let effect = Effect::HandBack { patch: handback::patch(&live) };
            match reached.write(api::FIELD_MANAGER, &served, &key, effect).await {
                Ok(_) => print(&format!("handed back {key}\n"))?,
                // It is looked at again in the next round.
                Err(WriteError::Stale(_) | WriteError::Refused { code: 404, .. }) => {}
                Err(error) => troubles.push(error.to_string()),
            }
        }
    }
    Ok((found, troubles))
}
