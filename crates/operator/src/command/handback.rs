//! `handback`: stops managing every object, before an uninstall.

use super::print;
use super::target::{Reached, Target};
use crate::pack::Pack;
use catalog::Catalog;
use change::{Effect, Kind, handback};
use cluster::list;
use protocol::WriteError;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// A write in flight may take an object back once; after this many rounds an operator is still managing objects.
const ROUNDS: usize = 5;

/// The kinds of the objects with which the operator itself is monitored; an alert that it is down would fire for ever.
const MONITORING: [(&str, &str); 3] =
    [("v1", "Service"), ("monitoring.coreos.com/v1", "ServiceMonitor"), ("monitoring.coreos.com/v1", "PrometheusRule")];

/// The kind of its dashboard, which has another label.
const DASHBOARD: (&str, &str) = ("perses.dev/v1alpha2", "PersesDashboard");

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    pack: Pack,
    /// Show what would be done and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Exits with 1 when an object may still be managed.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let catalog = arguments.pack.load()?;
    arguments.target.with(async |reached| {
        switch_off(&reached, arguments.dry_run).await?;
        let (kinds, mut failures) = kinds(&catalog, &reached);
        let mut rounds = 0;
        loop {
            rounds += 1;
            let (found, failed) = one_round(&reached, &kinds, arguments.dry_run).await?;
            // Only the failures of the last round count.
            let is_last = found == 0 || rounds == ROUNDS || arguments.dry_run;
            if is_last {
                if found > 0 && rounds == ROUNDS && failed.is_empty() {
                    failures.push(format!(
                        "objects are still being managed after {ROUNDS} rounds; stop every running operator, then run the command again"
                    ));
                }
                failures.extend(failed);
                break;
            }
        }
        for failure in &failures {
            print(&format!("incomplete: {failure}\n"))?;
        }
        if !arguments.dry_run {
            print(&leftovers(&reached))?;
        }
        Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    })
}

/// How to delete what only the operator used.
fn leftovers(reached: &Reached) -> String {
    let (backups, state, status) = (api::BACKUP_OF, api::STATE, api::STATUS);
    let (lease, name) = (api::LEASE, api::FIELD_MANAGER);
    let delete = format!("kubectl --namespace {} delete", reached.key.namespace);
    let monitoring: Vec<String> = MONITORING
        .iter()
        .filter_map(|(version, kind)| reached.kinds.find(&Kind::new(version, kind)))
        .map(|served| served.plural.to_string())
        .collect();
    let dashboards = reached.kinds.find(&Kind::new(DASHBOARD.0, DASHBOARD.1)).map_or_else(String::new, |served| {
        format!("  {delete} {} --selector app.kubernetes.io/name={name}\n", served.plural)
    });
    format!(
        "nothing was deleted. After the uninstall, delete the backups, the operator's state and its monitoring with:\n  \
         {delete} configmaps,secrets --selector {backups}\n  \
         {delete} --ignore-not-found configmap/{state} configmap/{status} lease/{lease}\n  \
         {delete} {} --selector app={name}\n{dashboards}",
        monitoring.join(",")
    )
}

/// Comes first: a running operator would take back what is handed back.
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
            format!("set the annotation {name} of {} to false: the autopilot is off\n", reached.key)
        }
        (false, false) => format!("the annotation {name} of {} is already false\n", reached.key),
    })
}

/// Every kind that managed objects may have, and the assets whose kind is unknown.
fn kinds(catalog: &Catalog, reached: &Reached) -> (BTreeSet<Kind>, Vec<String>) {
    let (mut kinds, mut unknown) = (BTreeSet::from([reached.key.kind.clone()]), Vec::new());
    for asset in &catalog.assets {
        match asset.kind.clone() {
            Some(kind) => {
                kinds.insert(kind);
            }
            None if asset.component == api::hco::KIND => {}
            None => unknown.push(format!("the kind of the object of asset {} is unknown", asset.name)),
        }
    }
    kinds.extend(catalog.tombstones.iter().map(|tombstone| Kind::new(&tombstone.api_version, &tombstone.kind)));
    (kinds, unknown)
}

/// Lists every kind once and hands back every managed object; returns how many there were, and the failures.
async fn one_round(reached: &Reached, kinds: &BTreeSet<Kind>, dry_run: bool) -> anyhow::Result<(usize, Vec<String>)> {
    let (mut found, mut failures) = (0, Vec::new());
    let selector = autopilot::IDENTITY.selector();
    for served in kinds.iter().filter_map(|kind| reached.kinds.find(kind)) {
        let managed = match list::lives(&reached.server, &served, "", &selector).await {
            Ok(managed) => managed,
            Err(failure) => {
                failures.push(format!("could not list {}: {failure}", served.kind().kind));
                continue;
            }
        };
        for (key, live) in managed {
            found += 1;
            if dry_run {
                print(&format!("would hand back {key}\n"))?;
                continue;
            }
            let effect = Effect::HandBack { patch: handback::patch(&live) };
            match reached.write(api::FIELD_MANAGER, &served, &key, effect).await {
                Ok(_) => print(&format!("handed back {key}\n"))?,
                // The next round lists it again.
                Err(WriteError::Stale(_) | WriteError::Refused { code: 404, .. }) => {}
                Err(error) => failures.push(error.to_string()),
            }
        }
    }
    Ok((found, failures))
}
