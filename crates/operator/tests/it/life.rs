//! One play of everything that comes and goes: asked for, adopted, given back, pruned, buried.

use crate::operator::{NAMESPACE, annotate, edit};
use crate::stage::{Play, Stage, create};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// The play. The Namespace of the pack is not looked at: nobody here would ever finish its deletion.
pub(crate) const LIFE: Play = Play {
    pack: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/life"),
    role: include_str!("../packs/life.role.yaml"),
    objects: &[
        ("v1", "ConfigMap", Some(NAMESPACE), "life-settings"),
        ("v1", "ConfigMap", Some(NAMESPACE), "life-extra"),
        ("v1", "ConfigMap", Some(NAMESPACE), "life-adopted"),
        ("v1", "ConfigMap", Some(NAMESPACE), "life-kept"),
        ("v1", "ConfigMap", Some(NAMESPACE), "life-old"),
        ("v1", "ConfigMap", Some(NAMESPACE), "life-older"),
        ("monitoring.coreos.com/v1", "PrometheusRule", Some(NAMESPACE), "life-rules"),
        ("machineconfiguration.openshift.io/v1", "MachineConfig", None, "99-worker-life"),
    ],
};

/// Makes an object under our name, as a release of ours or our predecessor would have.
pub(crate) async fn make_under_our_name(api: &Api<DynamicObject>, object: &Value) {
    let params = PatchParams::apply(api::FIELD_MANAGER).force();
    api.patch(object["metadata"]["name"].as_str().unwrap(), &params, &Patch::Apply(object)).await.unwrap();
}

/// A ConfigMap with our label.
pub(crate) fn labelled(name: &str, origin: Option<&str>) -> Value {
    let (label, value) = api::MANAGED_BY;
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {label: value}}, "data": {"first": "old"}});
    if let Some(origin) = origin {
        map["metadata"]["annotations"] = json!({api::annotation::ORIGIN: origin});
    }
    map
}

/// Plays everything from an empty stage; returns what came of it, or what is expected as soon as it is so.
pub(crate) async fn play(stage: &Stage, expected: Option<&Value>) -> Value {
    stage.clear().await;
    let (maps, rules, machines) =
        (stage.objects("ConfigMap"), stage.objects("PrometheusRule"), stage.objects("MachineConfig"));
    let hco = stage.hco();
    let ask = async |key: &str, value: Option<&str>| annotate(&hco, api::hco::NAME, key, value).await;
    let gone = async |api: &Api<DynamicObject>, name: &str| {
        stage.until(&format!("{name} is gone"), async || api.get_opt(name).await.ok()?.is_none().then_some(())).await;
    };
    let theirs = json!({"data": {"first": "theirs", "mine": "stays"}});
    create(&maps, "life-adopted", theirs).await;
    make_under_our_name(&maps, &labelled("life-old", Some("created"))).await;
    make_under_our_name(&maps, &labelled("life-older", None)).await;
    // Installed: what is always wanted comes, what a former release made goes.
    stage.start();
    stage.becomes(&maps, "life-settings", "/data/first", json!("one")).await;
    stage.becomes(&rules, "life-rules", "/spec/groups/0/name", json!("life")).await;
    gone(&maps, "life-old").await;
    // Asked for: one is created, one adopted, one restarts nodes.
    ask("enable-extra", Some("true")).await;
    stage.becomes(&maps, "life-extra", "/data/first", json!("one")).await;
    stage.becomes(&maps, "life-kept", "/data/first", json!("one")).await;
    stage.becomes(&maps, "life-adopted", "/data/first", json!("one")).await;
    ask("enable-machines", Some("true")).await;
    stage.becomes(&machines, "99-worker-life", "/spec/kernelArguments/0", json!("life=1")).await;
    edit(&maps, "life-extra", json!({"data": {"first": "edited"}})).await;
    stage.becomes(&maps, "life-extra", "/data/first", json!("one")).await;
    // Not wanted any more: what we made goes, what we took over is given back.
    ask("enable-extra", None).await;
    gone(&maps, "life-extra").await;
    stage
        .until("it is given back", async || {
            let adopted = maps.get("life-adopted").await.ok()?;
            adopted.metadata.labels.unwrap_or_default().is_empty().then_some(())
        })
        .await;
    edit(&maps, "life-adopted", json!({"data": {"first": "theirs again"}})).await;
    ask("enable-machines", None).await;
    gone(&machines, "99-worker-life").await;
    // Only some are named; one of them is asked for again.
    ask("autopilot", Some("life-settings, life-extra")).await;
    gone(&rules, "life-rules").await;
    ask("enable-extra", Some("true")).await;
    stage.becomes(&maps, "life-extra", "/data/first", json!("one")).await;
    let copies = stage.backups().list(&ListParams::default().labels(api::BACKUP_OF)).await.unwrap();
    let of_adopted =
        copies.items.iter().filter_map(|copy| change::backup::object(&serde_json::to_value(copy).unwrap()));
    let is_copied = of_adopted.into_iter().any(|copy| copy["data"] == json!({"first": "theirs", "mine": "stays"}));
    assert!(is_copied, "there is a copy of what it was before");
    stage.settled(expected).await
}
