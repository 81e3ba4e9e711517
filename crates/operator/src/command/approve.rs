//! `approve`: records a person's approval of one change that waits for it, or of all that a saved plan shows.

use super::evaluation::Evaluation;
use super::plan::{Document, cluster_of};
use super::print;
use super::target::Reached;
use crate::failure::Several;
use anyhow::bail;
use autopilot::plan::{Plan, moved};
use autopilot::{LineState, ObjectState, Previews, StatusLine, waiting_by_pool};
use change::{Consent, Digest, Reason};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The digest of the change, as shown by `virtpilot plan`, `status` and the event; its first 8 digits are enough
    #[arg(required_unless_present_any = ["plan", "pool"], conflicts_with_all = ["plan", "pool"])]
    digest: Option<String>,
    /// Approve everything that waits to restart nodes of this pool, as one rollout
    #[arg(long, value_name = "POOL", conflicts_with = "plan")]
    pool: Option<String>,
    /// Approve everything that waits in a plan saved by `virtpilot plan --out FILE`, unless the cluster has moved since
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    evaluation: Evaluation,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    match (&arguments.plan, &arguments.pool, &arguments.digest) {
        (Some(path), _, _) => approve_plan(&arguments.evaluation, path),
        (None, Some(pool), _) => approve_pool(&arguments.evaluation, pool),
        (None, None, digest) => approve_digest(&arguments.evaluation, digest.as_deref().unwrap_or_default().trim()),
    }
}

fn approve_digest(evaluation: &Evaluation, text: &str) -> anyhow::Result<()> {
    if !is_beginning(text) {
        bail!(
            "{text:?} is not a digest; copy it from \"virtpilot status\"; at least its first {SHORTEST} hexadecimal digits are needed"
        );
    }
    let core = evaluation.evaluate(evaluation.catalog()?)?;
    let waiting: Vec<(Option<Digest>, String)> = core.status().iter().filter_map(asked).collect();
    let digest = resolve(text, &waiting).map_err(anyhow::Error::msg)?;
    let is_asked = waiting.iter().any(|(asked, _)| *asked == Some(digest));
    evaluation.target().with(async |reached| {
        let refused = || refusal(&digest.to_string(), &waiting);
        let new = add(&reached, &[digest], |_| if is_asked { Ok(()) } else { Err(refused()) }).await?;
        print(&match (new.is_empty(), is_asked) {
            (false, _) => format!("approved {digest}\n"),
            (true, true) => format!("{digest} is already approved\n"),
            (true, false) => format!("{digest} is already approved; nothing waits for it now\n"),
        })
    })
}

/// Approves everything that waits to restart nodes of a pool.
fn approve_pool(evaluation: &Evaluation, pool: &str) -> anyhow::Result<()> {
    let core = evaluation.evaluate(evaluation.catalog()?)?;
    let status = core.status();
    let waiting = waiting_by_pool(&status);
    if waiting.is_empty() && status.iter().filter_map(asked).any(|(digest, _)| digest.is_none()) {
        bail!("the digests to approve are not known yet; start the operator, which asks, or wait until it has");
    }
    let Some(of_pool) = waiting.iter().find(|waiting| waiting.pool == pool) else {
        let pools: Vec<&str> = waiting.iter().map(|waiting| waiting.pool.as_str()).collect();
        match pools.as_slice() {
            [] => bail!("nothing waits for an approval to restart nodes; run \"virtpilot status\""),
            pools => {
                bail!("nothing waits for an approval to restart nodes of pool {pool:?}, but for {}", pools.join(", "))
            }
        }
    };
    let digests: Vec<Digest> = of_pool.changes.iter().map(|(digest, _)| *digest).collect();
    evaluation.target().with(async |reached| {
        let new = add(&reached, &digests, |_| Ok(())).await?;
        let line = |(digest, object): &(Digest, String)| match new.contains(digest) {
            true => format!("approved {digest} ({object})\n"),
            false => format!("{digest} ({object}) is already approved\n"),
        };
        print(&of_pool.changes.iter().map(line).collect::<String>())
    })
}

/// Approves exactly the digests of a saved plan. Whatever is different by now is printed, and then nothing is approved.
fn approve_plan(evaluation: &Evaluation, path: &Path) -> anyhow::Result<()> {
    let file = path.display();
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
    let digests: Vec<Digest> = approvals(&saved.plan).into_iter().collect();
    if digests.is_empty() {
        bail!(
            "nothing in {file} waits for an approval with a known digest; run \"virtpilot plan\" to see what waits now"
        );
    }
    let core = evaluation.evaluate_with(catalog, Previews::Diff)?;
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
    evaluation.target().with(async |reached| {
        let new = add(&reached, &digests, |_| Ok(())).await?;
        let line = |digest: &Digest| match new.contains(digest) {
            true => format!("approved {digest}\n"),
            false => format!("{digest} is already approved\n"),
        };
        print(&digests.iter().map(line).collect::<String>())
    })
}

/// The digests that a plan asks to approve.
fn approvals(plan: &Plan) -> BTreeSet<Digest> {
    plan.items.iter().filter(|item| item.is_pending() && item.needs_approval).filter_map(|item| item.approval).collect()
}

/// Adds digests to those that are approved, unless one may not be; returns the new ones.
async fn add(
    reached: &Reached,
    digests: &[Digest],
    check: impl Fn(&Digest) -> Result<(), String>,
) -> anyhow::Result<Vec<Digest>> {
    let missing = |before: Option<&str>| {
        let approved: BTreeSet<Digest> =
            Consent::digests(before.unwrap_or_default()).filter_map(Digest::parse).collect();
        digests.iter().copied().filter(|digest| !approved.contains(digest)).collect::<Vec<Digest>>()
    };
    let added = std::cell::RefCell::new(Vec::new());
    let change = |before: Option<&str>| {
        let new = missing(before);
        for digest in &new {
            check(digest).map_err(anyhow::Error::msg)?;
        }
        added.replace(new.clone());
        if new.is_empty() {
            return Ok(None);
        }
        let before = before.map(str::trim).filter(|before| !before.is_empty()).map(str::to_owned);
        Ok(Some(before.into_iter().chain(new.iter().map(ToString::to_string)).collect::<Vec<_>>().join(",")))
    };
    reached.annotate(api::annotation::APPROVED, change).await?;
    Ok(added.into_inner())
}

/// As many digits as `status` shows.
const SHORTEST: usize = 8;

/// Whether this may be a digest or its first digits.
fn is_beginning(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    (SHORTEST..=64).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The digest that this is, or that something waits for and that begins with it.
fn resolve(text: &str, waiting: &[(Option<Digest>, String)]) -> Result<Digest, String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text).to_lowercase();
    if let Some(digest) = Digest::parse(&format!("sha256:{digits}")) {
        return Ok(digest);
    }
    let begins = |digest: &Digest| digest.to_string().starts_with(&format!("sha256:{digits}"));
    let found: BTreeSet<Digest> = waiting.iter().filter_map(|(digest, _)| *digest).filter(begins).collect();
    let mut found = found.into_iter();
    match (found.next(), found.next()) {
        (Some(digest), None) => Ok(digest),
        (None, _) => Err(refusal(&digits, waiting)),
        (Some(_), Some(_)) => Err(format!("several digests begin with {digits}; give more digits")),
    }
}

/// What a line of the status asks to approve, and for which object; no digest if the operator has not asked yet.
fn asked(line: &StatusLine) -> Option<(Option<Digest>, String)> {
    let LineState::Object(ObjectState::Held(reason)) = &line.state else { return None };
    let object = line.key.as_ref().map_or(line.component.clone(), ToString::to_string);
    let digest = reason.asked().copied();
    (digest.is_some() || matches!(reason, Reason::NeedsApproval { .. })).then_some((digest, object))
}

fn refusal(digest: &str, waiting: &[(Option<Digest>, String)]) -> String {
    let line = |(digest, object): &(Option<Digest>, String)| match digest {
        Some(digest) => format!("{object} ({digest})"),
        None => format!("{object} (start the operator: it has not asked yet)"),
    };
    let waiting: Vec<String> = waiting.iter().map(line).collect();
    let waiting = if waiting.is_empty() { "nothing".to_owned() } else { waiting.join(", ") };
    format!(
        "nobody asks to approve {digest}; waiting for an approval: {waiting}; a digest changes with the change, and is good for one write"
    )
}

#[cfg(test)]
mod tests {
    use super::{approvals, is_beginning, resolve};
    use crate::command::plan::Document;
    use autopilot::plan::Plan;
    use change::Digest;
    use serde_json::json;

    #[test]
    fn the_first_digits_of_a_digest_are_enough_if_they_are_of_one() {
        let digest = |text: &str| Digest::parse(&format!("sha256:{text:0<64}")).unwrap();
        let (first, second) = (digest("abcdef0123"), digest("abcdef0199"));
        let waiting = [(Some(first), "one".to_owned()), (Some(second), "two".to_owned()), (None, "three".to_owned())];
        assert_eq!(resolve("ABCDEF0123", &waiting), Ok(first));
        assert_eq!(resolve("sha256:abcdef0199", &waiting), Ok(second));
        assert_eq!(resolve(&second.to_string(), &[]), Ok(second), "a whole one is taken as it is");
        assert_eq!(resolve("abcdef01", &waiting).unwrap_err(), "several digests begin with abcdef01; give more digits");
        assert!(resolve("12345678", &waiting).unwrap_err().starts_with("nobody asks to approve 12345678; waiting"));
        assert!(is_beginning("12345678") && is_beginning(&first.to_string()));
        for text in ["1234567", "swap-enable", "sha256:", &format!("{first}0")] {
            assert!(!is_beginning(text), "{text}");
        }
    }

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
