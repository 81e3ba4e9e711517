//! Overrides on managed objects, including the HyperConverged itself.

use crate::operator::{NAMESPACE, Running, annotate, edit, eventually, quiet};
use kube::api::{Api, DynamicObject, ObjectMeta, PostParams};
use playground::deployment;
use serde_json::{Value, json};
use std::process::Command;

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/scene");
const ROLE: &str = include_str!("../packs/scene.role.yaml");
const HCO: &str = "kubevirt-hyperconverged";

async fn becomes(api: &Api<DynamicObject>, name: &str, pointer: &str, wanted: Value) {
    eventually(&format!("{name}{pointer} is {wanted}"), async || {
        let object = serde_json::to_value(api.get_opt(name).await.unwrap()?).unwrap();
        (object.pointer(pointer) == Some(&wanted)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ignored_field_stays_the_users_after_a_restart_and_when_the_override_is_removed() {
    let mut running = Running::with_pack(ROLE, &["--assets-dir", PACK]).await;
    let maps = running.config_maps();
    becomes(&maps, "scene-settings", "/data/second", json!("two")).await;
    annotate(&maps, "scene-settings", "ignore-fields", Some("/data/second")).await;
    // The user's apply needs no --force-conflicts.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    let mine = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scene-settings, namespace: openshift-cnv}\ndata: {second: mine}\n";
    std::fs::write(&file, mine).unwrap();
    let kubectl = running.playground.folder().join("kubectl");
    eventually("the user's own apply succeeds", async || {
        let applied = Command::new(&kubectl).args(["apply", "--server-side", "-f"]).arg(&file).output().unwrap();
        applied.status.success().then_some(())
    })
    .await;
    // A later drift is corrected, so the operator has processed the apply; the value stays.
    let still_mine = async |when: &str| {
        edit(&maps, "scene-settings", json!({"data": {"first": when}})).await;
        becomes(&maps, "scene-settings", "/data/first", json!("one")).await;
        assert_eq!(maps.get("scene-settings").await.unwrap().data["data"]["second"], "mine", "{when}");
    };
    still_mine("ignored").await;
    running.restart();
    still_mine("after a restart").await;
    // Without the override the field is desired again, but another manager applied it and is reported.
    annotate(&maps, "scene-settings", "ignore-fields", None).await;
    let note = eventually("the other manager is reported", async || running.events("OwnedByAnother").await.pop()).await;
    assert!(note.contains("kubectl applies .data.second"), "{note}");
    running.restart();
    quiet(&running).await;
    assert_eq!(maps.get("scene-settings").await.unwrap().data["data"]["second"], "mine");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hyperconverged_is_reconciled_and_overridden_like_any_object() {
    let running = Running::with_pack(ROLE, &["--assets-dir", PACK]).await;
    let hco = deployment::objects(&running.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
    becomes(&hco, HCO, "/metadata/labels/scene", json!("kept")).await;
    edit(&hco, HCO, json!({"metadata": {"labels": {"scene": "edited"}}})).await;
    becomes(&hco, HCO, "/metadata/labels/scene", json!("kept")).await;
    let patch = r#"[{"op": "add", "path": "/metadata/labels/team", "value": "ours"}]"#;
    annotate(&hco, HCO, "patch", Some(patch)).await;
    becomes(&hco, HCO, "/metadata/labels/team", json!("ours")).await;
    // A pause of the HyperConverged pauses no other object.
    annotate(&hco, HCO, "reconcile-paused", Some("true")).await;
    edit(&hco, HCO, json!({"metadata": {"labels": {"scene": "edited"}}})).await;
    edit(&running.config_maps(), "scene-settings", json!({"data": {"first": "edited"}})).await;
    becomes(&running.config_maps(), "scene-settings", "/data/first", json!("one")).await;
    assert_eq!(hco.get(HCO).await.unwrap().metadata.labels.unwrap()["scene"], "edited");
    annotate(&hco, HCO, "reconcile-paused", None).await;
    becomes(&hco, HCO, "/metadata/labels/scene", json!("kept")).await;
    // With an invalid list of exclusions nothing is created or corrected: it may be excluded.
    annotate(&hco, HCO, "disabled-resources", Some("- {kind: ConfigMap, nmae: x}")).await;
    eventually("the invalid annotation is reported", async || {
        running.events("InvalidConfiguration").await.into_iter().find(|note| note.contains("nmae"))
    })
    .await;
    edit(&running.config_maps(), "scene-settings", json!({"data": {"first": "again"}})).await;
    running.config_maps().delete("scene-adopted", &Default::default()).await.unwrap();
    for name in ["scene-settings", "scene-adopted"] {
        eventually("drift that is not corrected is reported", async || {
            running.events("DriftDetected").await.into_iter().find(|note| note.contains(name))
        })
        .await;
    }
    quiet(&running).await;
    assert!(running.config_maps().get_opt("scene-adopted").await.unwrap().is_none(), "nothing is created");
    assert_eq!(running.config_maps().get("scene-settings").await.unwrap().data["data"]["first"], "again");
    annotate(&hco, HCO, "disabled-resources", None).await;
    becomes(&running.config_maps(), "scene-settings", "/data/first", json!("one")).await;
    becomes(&running.config_maps(), "scene-adopted", "/data/first", json!("one")).await;

    // Without a HyperConverged nothing is created, not even the HyperConverged; a new one resumes everything.
    let before = hco.get(HCO).await.unwrap();
    hco.delete(HCO, &Default::default()).await.unwrap();
    running.config_maps().delete("scene-adopted", &Default::default()).await.unwrap();
    quiet(&running).await;
    assert!(hco.get_opt(HCO).await.unwrap().is_none());
    assert!(running.config_maps().get_opt("scene-adopted").await.unwrap().is_none());
    let metadata =
        ObjectMeta { name: before.metadata.name, namespace: before.metadata.namespace, ..ObjectMeta::default() };
    hco.create(&PostParams::default(), &DynamicObject { metadata, ..before }).await.unwrap();
    becomes(&hco, HCO, "/metadata/labels/scene", json!("kept")).await;
    becomes(&running.config_maps(), "scene-adopted", "/data/first", json!("one")).await;
}
