//! The series of metrics follow the objects.

use crate::advisor::Advised;
use crate::commands::virtpilot;
use crate::operator::{NAMESPACE, Running, edit, eventually, free_port, http};
use kube::api::{Patch, PatchParams};
use playground::{Scene, deployment};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// How many objects there may be; half of them are wanted at a time, because more than five deletions at once wait for an approval.
const OBJECTS: usize = 10;
/// Each round creates five objects and deletes five.
const ROUNDS: usize = 100;

/// Writes a pack of ConfigMaps that annotations switch on and off.
fn write_pack(folder: &Path) {
    let active = folder.join("active");
    std::fs::create_dir_all(&active).unwrap();
    let (mut assets, mut names) = (String::from("assets:\n"), Vec::new());
    for number in 0..OBJECTS {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("map-{number}"), "namespace": NAMESPACE}, "data": {"a": "1"}});
        std::fs::write(active.join(format!("map-{number}.yaml")), map.to_string()).unwrap();
        let condition = format!("{{type: annotation, key: platform.kubevirt.io/enable-map-{number}, value: \"true\"}}");
        assets.push_str(&format!(
            "  - {{name: map-{number}, path: active/map-{number}.yaml, install: opt-in, component: ConfigMap, reconcile_order: 1, conditions: [{condition}]}}\n"
        ));
        names.push(format!("map-{number}"));
    }
    let features = format!("features:\n  - {{name: maps, description: Maps, assets: [{}]}}\n", names.join(", "));
    std::fs::write(active.join("metadata.yaml"), format!("{assets}{features}")).unwrap();
}

/// The names of the objects with a series, by metric.
fn series(port: u16) -> Option<BTreeMap<String, BTreeSet<String>>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let text = http(port, "GET", "/metrics")?;
    for line in text.lines().filter(|line| line.starts_with("kubevirt_autopilot_")) {
        let metric = line.split(['{', ' ']).next().unwrap().trim_start_matches("kubevirt_autopilot_");
        if let Some(name) = line.split("name=\"").nth(1).and_then(|rest| rest.split('"').next()) {
            found.entry(metric.to_owned()).or_default().insert(name.to_owned());
        }
    }
    Some(found)
}

#[tokio::test(flavor = "multi_thread")]
async fn no_series_is_left_and_none_is_missing_after_a_thousand_changes() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path());
    let pack = folder.path().to_str().unwrap();
    let role = virtpilot(None, &["rbac", "--assets-dir", pack]).stdout;
    let mut running = Running::on(Scene::preset("small").unwrap(), &role, &["--assets-dir", pack]).await;
    let kubeconfig = running.kubeconfig().to_owned();
    let served = running.restart_served(&kubeconfig, &[]);
    let maps = running.config_maps();
    let hco = deployment::objects(&running.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
    let mut before = BTreeSet::new();
    let mut changes = 0;
    for round in 0..ROUNDS {
        let is_wanted = |number: usize| (number + round).is_multiple_of(2);
        let wanted: BTreeSet<String> =
            (0..OBJECTS).filter(|number| is_wanted(*number)).map(|number| format!("map-{number}")).collect();
        let mut annotations = Map::new();
        for number in 0..OBJECTS {
            let value = if is_wanted(number) { json!("true") } else { Value::Null };
            annotations.insert(format!("platform.kubevirt.io/enable-map-{number}"), value);
        }
        let patch = Patch::Merge(json!({"metadata": {"annotations": annotations}}));
        hco.patch(api::hco::NAME, &PatchParams::default(), &patch).await.unwrap();
        changes += before.symmetric_difference(&wanted).count();
        let exact = ["compliance_status", "paused_resources", "reconcile_duration_seconds_count"];
        eventually("exactly the wanted objects have series", async || {
            let found = series(served.metrics)?;
            let is_exact = exact.iter().all(|metric| found.get(*metric) == Some(&wanted));
            let is_known = found.values().all(|names| names.is_subset(&wanted));
            (is_exact && is_known).then_some(())
        })
        .await;
        // Somebody edits one of them, and overrides another.
        let mut names = wanted.iter();
        edit(&maps, names.next().unwrap(), json!({"data": {"a": "2"}})).await;
        let annotation = json!({"metadata": {"annotations": {"platform.kubevirt.io/ignore-fields": "/data/b"}}});
        edit(&maps, names.next().unwrap(), annotation).await;
        eventually("the edit and the override have series", async || {
            let found = series(served.metrics)?;
            let has_one = |metric: &str| found.get(metric).is_some_and(|names| names.len() == 1);
            (has_one("drift_corrections_total") && has_one("customization_info")).then_some(())
        })
        .await;
        before = wanted;
    }
    assert!(changes >= 990, "{changes}");
    let text = http(served.metrics, "GET", "/metrics").unwrap();
    assert!(text.contains("manager=\"rogue\"") && text.contains("kubevirt_autopilot_leader 1"), "{text}");
    println!("{changes} changes");
}

/// What Prometheus sees of one profile from Ignore over a review and its application to drift, and to Ignore again.
#[tokio::test(flavor = "multi_thread")]
async fn the_series_of_a_profile_follow_it() {
    let mut advised = Advised::start(1).await;
    let port = free_port();
    advised.restart_with(&format!("127.0.0.1:{port}"));
    let name = "example-profile";
    let shows = async |what: &str, series: &[&str]| {
        let wanted: Vec<String> =
            series.iter().map(|series| series.replace("PROFILE", "profile=\"example-profile\"")).collect();
        eventually(what, async || {
            let text = http(port, "GET", "/metrics")?;
            wanted.iter().all(|series| text.contains(&format!("virt_advisor_{series}"))).then_some(text)
        })
        .await
    };
    advised.ask(name, json!({"action": "Ignore"})).await;
    let text =
        shows("it is ignored", &["phase{PROFILE,phase=\"Ignored\"} 1\n", "ignored{PROFILE} 1\n", "drift{PROFILE} 0\n"])
            .await;
    assert!(!text.contains("virt_advisor_waiting_since_timestamp_seconds{profile=\"example-profile\"}"), "{text}");
    advised.review_and_apply(name, json!({})).await;
    advised.phase(name, "Completed").await;
    let text = shows(
        "it is applied",
        &["phase{PROFILE,phase=\"Completed\"} 1\n", "apply_duration_seconds_count{PROFILE} 1\n"],
    )
    .await;
    assert!(!text.contains("waiting_since_timestamp_seconds{profile=\"example-profile\"}"), "{text}");
    let maps = deployment::objects(&advised.playground, "v1", "ConfigMap", Some(NAMESPACE));
    edit(&maps, "example-config", json!({"data": {"example": "mine"}})).await;
    shows("it has drifted", &["phase{PROFILE,phase=\"Drifted\"} 1\n", "drift{PROFILE} 1\n"]).await;
    advised.ask(name, json!({"action": "Ignore"})).await;
    shows("it is ignored again", &["ignored{PROFILE} 1\n", "drift{PROFILE} 0\n"]).await;
}
