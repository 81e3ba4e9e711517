//! A scenario of drift and overrides on a small pack; its end state must not depend on faults.

use crate::fixture::{Fixture, Scenario, create, json_patch};
use crate::operator::{NAMESPACE, annotate, edit};
use kube::api::{DeleteParams, Patch, PatchParams};
use playground::deployment;
use serde_json::{Value, json};

/// The scenario.
pub(crate) const OVERRIDES: Scenario = Scenario {
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
    arguments: &[],
};

const PATCH: &str = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
const REFUSED: &str = r#"[{"op": "replace", "path": "/metadata/name", "value": "other"}]"#;

/// Runs the scenario on a reset cluster; returns the end state, or the expected one as soon as it is reached.
pub(crate) async fn run(fixture: &Fixture, expected: Option<&Value>) -> Value {
    fixture.reset().await;
    let (services, maps) = (fixture.objects("Service"), fixture.objects("ConfigMap"));
    let (rules, workloads) = (fixture.objects("PrometheusRule"), fixture.objects("DaemonSet"));
    // One object exists before the install and differs from the desired state.
    let theirs = json!({"data": {"first": "theirs", "mine": "stays"}});
    create(&maps, "scene-adopted", theirs).await;
    fixture.start_operator();
    // All objects are created or adopted.
    fixture
        .until("everything exists", async || {
            for (api_version, kind, namespace, name) in OVERRIDES.objects {
                let api = deployment::objects(&fixture.playground, api_version, kind, *namespace);
                let object = api.get_opt(name).await.ok()??;
                object.metadata.labels?.get("platform.kubevirt.io/managed-by")?;
            }
            Some(())
        })
        .await;
    fixture.becomes(&maps, "scene-adopted", "/data/first", json!("one")).await;
    // Drift of every form: a value, a label, an item of a list, a key of a list, a deletion.
    edit(&maps, "scene-settings", json!({"data": {"first": "edited"}})).await;
    edit(&workloads, "scene-workload", json!({"metadata": {"labels": {"platform.kubevirt.io/managed-by": null}}}))
        .await;
    json_patch(&rules, "scene-rules", json!([{"op": "remove", "path": "/spec/groups/0/rules/0"}])).await;
    json_patch(&services, "scene-service", json!([{"op": "replace", "path": "/spec/ports/0/port", "value": 9999}]))
        .await;
    fixture.becomes(&maps, "scene-settings", "/data/first", json!("one")).await;
    fixture
        .becomes(
            &workloads,
            "scene-workload",
            "/metadata/labels/platform.kubevirt.io~1managed-by",
            json!("virt-platform-autopilot"),
        )
        .await;
    fixture.becomes(&rules, "scene-rules", "/spec/groups/0/rules/0/record", json!("scene:one")).await;
    fixture.becomes(&services, "scene-service", "/spec/ports/0/port", json!(8080)).await;
    maps.delete("scene-adopted", &DeleteParams::default()).await.unwrap();
    // A patch is honoured; another one is refused, and the last good state stays enforced.
    annotate(&services, "scene-service", "patch", Some(PATCH)).await;
    fixture.becomes(&services, "scene-service", "/spec/sessionAffinity", json!("ClientIP")).await;
    annotate(&rules, "scene-rules", "patch", Some(REFUSED)).await;
    json_patch(
        &rules,
        "scene-rules",
        json!([{"op": "replace", "path": "/spec/groups/0/rules/0/expr", "value": "vector(9)"}]),
    )
    .await;
    fixture.becomes(&rules, "scene-rules", "/spec/groups/0/rules/0/expr", json!("vector(1)")).await;
    fixture.becomes(&maps, "scene-adopted", "/data/first", json!("one")).await;
    // An ignored field belongs to the user.
    annotate(&maps, "scene-settings", "ignore-fields", Some("/data/second")).await;
    fixture.until("the field is released", async || {
            let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "scene-settings"}, "data": {"second": "mine"}});
            maps.patch("scene-settings", &PatchParams::apply("person"), &Patch::Apply(&theirs)).await.ok()
        })
        .await;
    // Drift during a pause is corrected when the pause ends.
    annotate(&workloads, "scene-workload", "reconcile-paused", Some("true")).await;
    edit(
        &workloads,
        "scene-workload",
        json!({"spec": {"template": {"spec": {"nodeSelector": {"scene/nowhere": "no"}}}}}),
    )
    .await;
    annotate(&workloads, "scene-workload", "reconcile-paused", None).await;
    fixture
        .becomes(&workloads, "scene-workload", "/spec/template/spec/nodeSelector/scene~1nowhere", json!("true"))
        .await;
    // An unmanaged object is not corrected.
    annotate(&maps, "scene-adopted", "mode", Some("unmanaged")).await;
    edit(&maps, "scene-adopted", json!({"data": {"first": "mine"}})).await;
    fixture.settled(expected).await
}
