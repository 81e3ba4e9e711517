//! `approve --plan`: approves exactly the digests of a saved plan, unless the cluster has moved since.

use super::waiting::{self, Change, Next, Waiting};
use super::{Arguments, show, write};
use crate::command::colour::Palette;
use crate::command::plan::{Document, Style, cluster_of};
use crate::command::print;
use crate::failure::Several;
use anyhow::bail;
use autopilot::Previews;
use autopilot::plan::{Plan, moved};
use change::Digest;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

/// Approves exactly the digests of a saved plan. Whatever is different by now is printed, and then nothing is approved.
pub(super) fn approve(arguments: &Arguments, path: &Path) -> anyhow::Result<ExitCode> {
    let (evaluation, file) = (&arguments.evaluation, path.display());
    let saved = Document::read(path)?;
    let catalog = evaluation.catalog()?;
    let Some(cluster) = &saved.cluster else {
        bail!(
            "{file} was made without a cluster, so it has nothing to approve; run \"virtpilot plan --out {file}\" on a cluster"
        );
    };
    if saved.catalogue != catalog.digest() {
        bail!(
            "{file} was made with the asset pack {}, this command has {}; give the same --assets-dir, or save the plan again",
            saved.catalogue,
            catalog.digest()
        );
    }
    let digests = approvals(&saved.plan);
    if digests.is_empty() {
        bail!(
            "nothing in {file} waits for an approval with a known digest; run \"virtpilot plan\" to see what waits now"
        );
    }
    let names = waiting::names(&catalog);
    let core = evaluation.evaluate_with(catalog, Previews::Diff, None)?;
    let found = cluster_of(&core);
    if found.as_ref() != Some(cluster) {
        bail!(
            "{file} is a plan for another cluster: its HyperConverged has the uid {cluster}, that of this one is {}; choose the \
             kubeconfig of that cluster, or save the plan again",
            found.as_deref().unwrap_or("not known")
        );
    }
    let now = Document::new(core.plan(), saved.catalogue.clone(), found, saved.asset.clone());
    // Every digest of the saved plan is one that is asked for now, in the same words.
    let moved = moved(&saved.plan, &now.plan);
    if !moved.is_empty() {
        let mut errors = vec![format!(
            "the cluster has moved since {file} was saved, so nothing is approved; run \"virtpilot plan --out {file}\" again"
        )];
        errors.extend(moved.iter().map(|moved| format!("moved: {moved}")));
        return Err(Several(errors).into());
    }
    let waiting = Waiting::of(core, names);
    let is_saved = |change: &&Change| change.digest.is_some_and(|digest| digests.contains(&digest));
    let new: Vec<&Change> = waiting.changes.iter().filter(is_saved).collect();
    if arguments.dry_run {
        print(&show::changes(&new, &waiting, Style::new(arguments.full)))?;
        return print(&show::dry_run(&[], &new)).map(|()| ExitCode::SUCCESS);
    }
    let after = waiting.after(evaluation, &digests.into_iter().collect::<Vec<_>>())?;
    if new.iter().any(|change| waiting::next(&after, change) == Next::Moved) {
        bail!("the cluster has changed meanwhile, so nothing is approved; run \"virtpilot plan --out {file}\" again");
    }
    let when = super::when_made(evaluation)?;
    let written = write::add(evaluation, &waiting, &new)?;
    let line = |change: &&Change| {
        let next = waiting::next(&after, change);
        show::approved(change, written.by.as_deref(), &next, &when, Palette::of_output())
    };
    print(&new.iter().map(line).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// The digests that a plan asks to approve.
fn approvals(plan: &Plan) -> BTreeSet<Digest> {
    plan.items.iter().filter(|item| item.is_pending() && item.needs_approval).filter_map(|item| item.approval).collect()
}

#[cfg(test)]
mod tests {
    use super::approvals;
    use crate::command::plan::Document;
    use autopilot::plan::Plan;
    use serde_json::json;

    /// Many deletions share one digest, so a plan of one asset that approves it approves deletions that it does not show.
    #[test]
    fn a_plan_of_one_asset_approves_nothing_of_another() {
        let item = |number: usize| {
            let object = json!({"kind": {"group": "", "version": "v1", "kind": "ConfigMap"}, "namespace": "virt", "name": format!("m{number}")});
            json!({"asset": format!("m{number}"), "object": object, "operation": "delete", "state": "waiting", "needsApproval": true,
                "approval": format!("sha256:{}", "ab".repeat(32)), "diff": [], "source": {"from": "none"}})
        };
        let items: Vec<_> = (0..7).map(item).collect();
        let plan: Plan = serde_json::from_value(json!({"items": items, "inSync": 0})).unwrap();
        let document = Document::new(plan, String::new(), None, Some("m0".to_owned()));
        let (shown, approved) = (document.plan.items.len(), approvals(&document.plan).len());
        assert!(shown == 7 || approved == 0, "{shown} of 7 deletions is shown, and all are approved");
    }
}
