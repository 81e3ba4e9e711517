//! A scenario of the life cycle: objects are requested, adopted, handed back and pruned, and tombstones are deleted.

use crate::fixture::{Fixture, Scenario, create};
use crate::operator::{NAMESPACE, annotate, edit};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

/// The scenario. The Namespace of the pack is left out, because no controller here would finish its deletion.
pub(crate) const LIFE_CYCLE: Scenario = Scenario {
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
    arguments: &[],
};

/// Applies an object with our field manager, as a former release or the predecessor would.
pub(crate) async fn apply_as_us(api: &Api<DynamicObject>, object: &Value) {
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

/// Runs the scenario on a reset cluster; returns the end state, or the expected one as soon as it is reached.
pub(crate) async fn run(fixture: &Fixture, expected: Option<&Value>) -> Value {
    fixture.reset().await;
    let (maps, rules, machines) =
        (fixture.objects("ConfigMap"), fixture.objects("PrometheusRule"), fixture.objects("MachineConfig"));
    let hco = fixture.hco();
    let set = async |key: &str, value: Option<&str>| annotate(&hco, api::hco::NAME, key, value).await;
    let gone = async |api: &Api<DynamicObject>, name: &str| {
        fixture.until(&format!("{name} is gone"), async || api.get_opt(name).await.ok()?.is_none().then_some(())).await;
    };
    let theirs = json!({"data": {"first": "theirs", "mine": "stays"}});
    create(&maps, "life-adopted", theirs).await;
    apply_as_us(&maps, &labelled("life-old", Some("created"))).await;
    apply_as_us(&maps, &labelled("life-older", None)).await;
    // Install: assets that are always wanted are created, and the tombstone is deleted.
    fixture.start_operator();
    fixture.becomes(&maps, "life-settings", "/data/first", json!("one")).await;
    fixture.becomes(&rules, "life-rules", "/spec/groups/0/name", json!("life")).await;
    gone(&maps, "life-old").await;
    // Opt-ins: one object is created, one adopted, one restarts nodes.
    set("enable-extra", Some("true")).await;
    fixture.becomes(&maps, "life-extra", "/data/first", json!("one")).await;
    fixture.becomes(&maps, "life-kept", "/data/first", json!("one")).await;
    fixture.becomes(&maps, "life-adopted", "/data/first", json!("one")).await;
    set("enable-machines", Some("true")).await;
    fixture.becomes(&machines, "99-worker-life", "/spec/kernelArguments/0", json!("life=1")).await;
    edit(&maps, "life-extra", json!({"data": {"first": "edited"}})).await;
    fixture.becomes(&maps, "life-extra", "/data/first", json!("one")).await;
    // Opt-out: created objects are pruned, adopted ones handed back.
    set("enable-extra", None).await;
    gone(&maps, "life-extra").await;
    fixture
        .until("life-adopted is handed back", async || {
            let adopted = maps.get("life-adopted").await.ok()?;
            adopted.metadata.labels.unwrap_or_default().is_empty().then_some(())
        })
        .await;
    edit(&maps, "life-adopted", json!({"data": {"first": "theirs again"}})).await;
    set("enable-machines", None).await;
    gone(&machines, "99-worker-life").await;
    // A list of assets; one of them is opted into again.
    set("autopilot", Some("life-settings, life-extra")).await;
    gone(&rules, "life-rules").await;
    set("enable-extra", Some("true")).await;
    fixture.becomes(&maps, "life-extra", "/data/first", json!("one")).await;
    let backups = fixture.backups().list(&ListParams::default().labels(api::BACKUP_OF)).await.unwrap();
    let backups = backups.items.iter().filter_map(|map| change::backup::object(&serde_json::to_value(map).unwrap()));
    let is_backed_up = backups.into_iter().any(|backup| backup["data"] == json!({"first": "theirs", "mine": "stays"}));
    assert!(is_backed_up, "life-adopted was backed up before its adoption");
    fixture.settled(expected).await
}
