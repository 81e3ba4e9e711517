//! One play with everything users do, on a small pack of its own: what comes out must not depend on what goes wrong meanwhile.

use crate::operator::{NAMESPACE, annotate, edit};
use crate::stage::{Play, Stage, create, json_patch};
use kube::api::{DeleteParams, Patch, PatchParams};
use playground::deployment;
use serde_json::{Value, json};

/// The play.
pub(crate) const SCENE: Play = Play {
    pack: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/scene"),
    role: include_str!("../packs/scene.role.yaml"),
    objects: &[
        ("v1", "Service", Some(NAMESPACE), "scene-service"),
        ("v1", "ConfigMap", Some(NAMESPACE), "scene-settings"),
        ("v1", "ConfigMap", Some(NAMESPACE), "scene-adopted"),
        ("monitoring.coreos.com/v1", "PrometheusRule", Some(NAMESPACE), "scene-rules"),
        ("apps/v1", "DaemonSet", Some(NAMESPACE), "scene-workload"),
        ("machineconfiguration.openshift.io/v1", "MachineConfig", None, "99-worker-scene"),
    ],
};

const PATCH: &str = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
const REFUSED: &str = r#"[{"op": "replace", "path": "/metadata/name", "value": "other"}]"#;

/// Plays everything from an empty stage; returns what came of it, or what is expected as soon as it is so.
pub(crate) async fn play(stage: &Stage, expected: Option<&Value>) -> Value {
    stage.clear().await;
    let (services, maps) = (stage.objects("Service"), stage.objects("ConfigMap"));
    let (rules, workloads) = (stage.objects("PrometheusRule"), stage.objects("DaemonSet"));
    // Somebody made one of them before us, and it is not as we want it.
    let theirs = json!({"data": {"first": "theirs", "mine": "stays"}});
    create(&maps, "scene-adopted", theirs).await;
    stage.start();
    // Created and adopted.
    stage
        .until("everything exists", async || {
            for (api_version, kind, namespace, name) in SCENE.objects {
                let api = deployment::objects(&stage.playground, api_version, kind, *namespace);
                let object = api.get_opt(name).await.ok()??;
                object.metadata.labels?.get("platform.kubevirt.io/managed-by")?;
            }
            Some(())
        })
        .await;
    stage.becomes(&maps, "scene-adopted", "/data/first", json!("one")).await;
    // Drift of every shape: a value, a label, an item of a list, a key of a list, a deletion.
    edit(&maps, "scene-settings", json!({"data": {"first": "edited"}})).await;
    edit(&workloads, "scene-workload", json!({"metadata": {"labels": {"platform.kubevirt.io/managed-by": null}}}))
        .await;
    json_patch(&rules, "scene-rules", json!([{"op": "remove", "path": "/spec/groups/0/rules/0"}])).await;
    json_patch(&services, "scene-service", json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 9999}]))
        .await;
    stage.becomes(&maps, "scene-settings", "/data/first", json!("one")).await;
    stage
        .becomes(
            &workloads,
            "scene-workload",
            "/metadata/labels/platform.kubevirt.io~1managed-by",
            json!("virt-platform-autopilot"),
        )
        .await;
    stage.becomes(&rules, "scene-rules", "/spec/groups/0/rules/0/record", json!("scene:one")).await;
    stage.becomes(&services, "scene-service", "/spec/ports/0/port", json!(8080)).await;
    maps.delete("scene-adopted", &DeleteParams::default()).await.unwrap();
    // A patch is honoured; another one is refused and what was good is defended.
    annotate(&services, "scene-service", "patch", Some(PATCH)).await;
    stage.becomes(&services, "scene-service", "/spec/sessionAffinity", json!("ClientIP")).await;
    annotate(&rules, "scene-rules", "patch", Some(REFUSED)).await;
    json_patch(
        &rules,
        "scene-rules",
        json!([{"op": "replace", "path": "/spec/groups/0/rules/0/expr", "value": "vector(9)"}]),
    )
    .await;
    stage.becomes(&rules, "scene-rules", "/spec/groups/0/rules/0/expr", json!("vector(1)")).await;
    stage.becomes(&maps, "scene-adopted", "/data/first", json!("one")).await;
    // An ignored field is the user's.
    annotate(&maps, "scene-settings", "ignore-fields", Some("/data/second")).await;
    stage.until("the field is nobody's", async || {
            let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scene-settings"}, "data": {"second": "mine"}});
            maps.patch("scene-settings", &PatchParams::apply("person"), &Patch::Apply(&theirs)).await.ok()
        })
        .await;
    // Paused, edited, resumed.
    annotate(&workloads, "scene-workload", "reconcile-paused", Some("true")).await;
    edit(
        &workloads,
        "scene-workload",
        json!({"spec": {"template": {"spec": {"nodeSelector": {"scene/nowhere": "no"}}}}}),
    )
    .await;
    annotate(&workloads, "scene-workload", "reconcile-paused", None).await;
    stage.becomes(&workloads, "scene-workload", "/spec/template/spec/nodeSelector/scene~1nowhere", json!("true")).await;
    // Left alone.
    annotate(&maps, "scene-adopted", "mode", Some("unmanaged")).await;
    edit(&maps, "scene-adopted", json!({"data": {"first": "mine"}})).await;
    stage.settled(expected).await
}
