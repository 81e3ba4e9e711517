//! What `virtpilot status` predicts is what the operator does when it starts.

use crate::commands::virtpilot;
use crate::fixture::create;
use crate::life_cycle_scenario::{LIFE_CYCLE, apply_as_us, labelled};
use crate::operator::{NAMESPACE, Running, annotate, digest_in, edit, quiet};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use playground::{Scene, deployment};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// What `virtpilot status --output json` prints.
#[derive(Debug, Deserialize)]
struct Status {
    assets: Vec<Line>,
}

/// One asset of it.
#[derive(Debug, Deserialize)]
struct Line {
    asset: String,
    object: String,
    state: String,
    why: String,
}

fn api_of(running: &Running, object: &str) -> Option<(Api<DynamicObject>, String)> {
    let (kind, name) = object.split_once(' ')?;
    let (api_version, namespace) = match kind {
        "ConfigMap" => ("v1", Some(NAMESPACE)),
        "PrometheusRule" => ("monitoring.coreos.com/v1", Some(NAMESPACE)),
        "MachineConfig" => ("machineconfiguration.openshift.io/v1", None),
        "HyperConverged" => ("hco.kubevirt.io/v1", Some(NAMESPACE)),
        "Namespace" => ("v1", None),
        _ => return None,
    };
    let name = name.rsplit('/').next()?.to_owned();
    Some((deployment::objects(&running.playground, api_version, kind, namespace), name))
}

async fn find(running: &Running, object: &str) -> Option<DynamicObject> {
    let (api, name) = api_of(running, object)?;
    api.get_opt(&name).await.unwrap()
}

/// States of objects that are left as they are, which an event explains.
const HELD: [&str; 8] =
    ["PendingApproval", "Unmanaged", "Paused", "Conflict", "LeftBehind", "Excluded", "Suspended", "InvalidOverride"];

/// Predicts while no operator runs, starts one, and compares; returns how many objects had which state.
async fn compare(running: &mut Running, scene: &str) -> BTreeMap<String, usize> {
    let arguments = ["status", "--output", "json", "--assets-dir", LIFE_CYCLE.pack];
    let printed = virtpilot(Some(&running.playground.kubeconfig()), &arguments);
    let Status { assets: lines } =
        serde_json::from_str(&printed.stdout).unwrap_or_else(|_| panic!("{}", printed.stderr));
    let mut before = BTreeMap::new();
    for line in &lines {
        before.insert(line.object.clone(), find(running, &line.object).await);
    }
    running.restart();
    quiet(running).await;
    let mut states = BTreeMap::new();
    for Line { asset, object, state, why } in lines {
        let (before, after) = (before.remove(&object).flatten(), find(running, &object).await);
        let version = |object: &Option<DynamicObject>| object.as_ref()?.metadata.resource_version.clone();
        let is_same = version(&before) == version(&after);
        let expected = match state.as_str() {
            "InSync" => before.is_some() && is_same,
            held if HELD.contains(&held) => {
                let note = format!("{object}: {why}");
                let mut events = Vec::new();
                for reason in [
                    "ApprovalRequired",
                    "UnmanagedMode",
                    "Paused",
                    "OwnedByAnother",
                    "LeftBehind",
                    "Excluded",
                    "InvalidConfiguration",
                ] {
                    events.extend(running.events(reason).await);
                }
                // Only the operator writes what a digest depends on.
                let unasked = why.split_once("; the digest to approve is not known until");
                let is_asked = unasked.is_some_and(|(why, _)| {
                    let note = format!("{object}: {why}; run \"virtpilot approve sha256:");
                    events.iter().any(|event| event.starts_with(&note))
                });
                // What is wrong with the whole is reported once, with names that may be written.
                let is_whole = why.split_once("; write true, false, or names ").is_some_and(|(cause, _)| {
                    let start = format!("{cause}. Write true, false, or names such as ");
                    events.iter().any(|event| event.starts_with(&start))
                });
                is_same && (events.contains(&note) || events.contains(&why) || is_whole || is_asked)
            }
            "Pending" => after.is_some() && !is_same,
            "PendingRemoval" => before.is_some() && after.is_none(),
            "PendingHandback" => {
                after.is_some_and(|after| !after.metadata.labels.unwrap_or_default().contains_key(api::MANAGED_BY.0))
            }
            _ => is_same,
        };
        assert!(expected, "{scene}: {asset} ({object}) was predicted as {state:?} {why:?}");
        *states.entry(state).or_default() += 1;
    }
    running.stop();
    states
}

#[tokio::test(flavor = "multi_thread")]
async fn status_predicts_what_the_operator_does_in_five_scenes() {
    let small = Scene::preset("small").unwrap();
    let mut running = Running::on(small, LIFE_CYCLE.role, &["--assets-dir", LIFE_CYCLE.pack]).await;
    let (maps, rules) = (running.config_maps(), api_of(&running, "PrometheusRule life-rules").unwrap().0);
    let count = |states: &BTreeMap<String, usize>, state: &str| states.get(state).copied().unwrap_or_default();

    let held = |states: &BTreeMap<String, usize>| HELD.iter().map(|state| count(states, state)).sum::<usize>();

    // A fresh cluster with leftovers of a former release, and an object of somebody else.
    apply_as_us(&maps, &labelled("life-old", Some("created"))).await;
    apply_as_us(&maps, &labelled("life-older", None)).await;
    create(&maps, "life-adopted", json!({"data": {"first": "theirs", "mine": "stays"}})).await;
    let states = compare(&mut running, "a fresh cluster").await;
    assert_eq!((count(&states, "Pending"), count(&states, "PendingRemoval"), held(&states)), (2, 1, 1), "{states:?}");

    // Everything is asked for: an adoption, and a MachineConfig that waits for approval.
    running.annotate_hco("enable-extra", Some("true")).await;
    running.annotate_hco("enable-machines", Some("true")).await;
    let states = compare(&mut running, "everything is asked for").await;
    assert!(count(&states, "InSync") >= 2 && held(&states) >= 2, "{states:?}");

    // Approved, then everything is as it should be.
    let request = running.events("ApprovalRequired").await.pop().unwrap();
    running.annotate_hco("approved", digest_in(&request)).await;
    compare(&mut running, "the MachineConfig is approved").await;
    let states = compare(&mut running, "everything is in sync").await;
    assert_eq!(count(&states, "Pending"), 0, "{states:?}");

    // While no operator runs: an edit, a deletion, an object that is unmanaged, and one that GitOps applies.
    edit(&maps, "life-extra", json!({"data": {"first": "edited"}})).await;
    maps.delete("life-kept", &DeleteParams::default()).await.unwrap();
    annotate(&maps, "life-adopted", "mode", Some("unmanaged")).await;
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "life-settings"}, "data": {"first": "gitops"}});
    maps.patch("life-settings", &PatchParams::apply("gitops").force(), &Patch::Apply(&theirs)).await.unwrap();
    let states = compare(&mut running, "changes while no operator runs").await;
    assert_eq!(count(&states, "Pending"), 2, "{states:?}");

    // Opted out, and a list that does not name the rules.
    annotate(&maps, "life-adopted", "mode", None).await;
    running.annotate_hco("enable-extra", None).await;
    running.annotate_hco("autopilot", Some("life-settings, life-extra, life-adopted, life-machines")).await;
    let states = compare(&mut running, "opted out").await;
    assert_eq!((count(&states, "PendingRemoval"), count(&states, "PendingHandback")), (2, 2), "{states:?}");
    assert!(rules.get_opt("life-rules").await.unwrap().is_none());

    // A typo: nothing is done.
    running.annotate_hco("autopilot", Some("life-setings")).await;
    let states = compare(&mut running, "a typo").await;
    assert_eq!(states.keys().collect::<Vec<_>>(), ["Suspended"], "{states:?}");
}
