//! What other field managers apply is theirs, down to one field of an item of our list; and what a user wants to be left alone is not
//! changed before it is known that it can be.

use crate::operator::{NAMESPACE, Running, SERVICE, annotate, edit, eventually, quiet};
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

async fn apply(running: &Running, manager: &str, is_forced: bool, mut service: Value) {
    service["apiVersion"] = json!("v1");
    service["kind"] = json!("Service");
    service["metadata"]["name"] = json!(SERVICE);
    let params = PatchParams { force: is_forced, ..PatchParams::apply(manager) };
    running.services().patch(SERVICE, &params, &Patch::Apply(&service)).await.unwrap();
}

async fn value(running: &Running, pointer: &str) -> Value {
    let service = serde_json::to_value(running.services().get_opt(SERVICE).await.unwrap()).unwrap();
    service.pointer(pointer).cloned().unwrap_or_default()
}

async fn becomes(running: &Running, pointer: &str, wanted: Value) {
    eventually(&format!("{pointer} is {wanted}"), async || (value(running, pointer).await == wanted).then_some(()))
        .await;
}

async fn reported(running: &Running, reason: &str, words: &str) -> String {
    eventually(&format!("{reason} with {words}"), async || {
        running.events(reason).await.into_iter().find(|note| note.contains(words))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_another_manager_applies_in_an_item_of_our_list_is_theirs() {
    let mut running = Running::start(Some("metrics-service")).await;
    let port = "/spec/ports/0/targetPort";
    becomes(&running, port, json!(8080)).await;
    let item = |target: Value| json!({"spec": {"ports": [{"port": 8080, "protocol": "TCP", "targetPort": target}]}});
    apply(&running, "gitops", true, item(json!(9090))).await;
    let path = ".spec.ports[port=8080,protocol=\"TCP\"].targetPort";
    reported(&running, "OwnedByAnother", &format!("gitops applies {path}")).await;
    quiet(&running).await;
    assert_eq!(value(&running, port).await, json!(9090));
    running.restart();
    quiet(&running).await;
    assert_eq!(value(&running, port).await, json!(9090), "after a restart");
    // What they give up is ours again.
    apply(&running, "gitops", true, json!({"metadata": {"labels": {"team": "theirs"}}})).await;
    becomes(&running, port, json!(8080)).await;

    // A plain update in an item is drift, also while nobody watched: it is reported, and costs budget.
    let budget = "/metadata/annotations/platform.kubevirt.io~1budget";
    let before = value(&running, budget).await;
    running.stop();
    edit_port(&running, 7070).await;
    running.restart();
    becomes(&running, port, json!(8080)).await;
    reported(&running, "DriftCorrected", &format!("rogue changed {path}")).await;
    assert_ne!(value(&running, budget).await, before);
}

async fn edit_port(running: &Running, target: i64) {
    let change = json!([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": target}]);
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    let patch = Patch::Json::<()>(serde_json::from_value(change).unwrap());
    running.services().patch(SERVICE, &params, &patch).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_another_manager_applies_too_is_not_taken_when_ours_changes() {
    let mut running = Running::start(Some("metrics-service")).await;
    let label = "/metadata/labels/app";
    becomes(&running, label, json!("virt-platform-autopilot")).await;
    apply(&running, "gitops", false, json!({"metadata": {"labels": {"app": "virt-platform-autopilot"}}})).await;
    quiet(&running).await;
    let patch = r#"[{"op": "replace", "path": "/metadata/labels/app", "value": "new"}]"#;
    annotate(&running.services(), SERVICE, "patch", Some(patch)).await;
    reported(&running, "OwnedByAnother", "gitops applies .metadata.labels.app").await;
    running.restart();
    quiet(&running).await;
    assert_eq!(value(&running, label).await, json!("virt-platform-autopilot"));
    // An item of our list that they do not apply is still ours.
    annotate(&running.services(), SERVICE, "patch", None).await;
    edit_port(&running, 7070).await;
    becomes(&running, "/spec/ports/0/targetPort", json!(8080)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_ignores_in_a_field_with_one_owner_never_changes() {
    let mut running = Running::start(Some("metrics-service")).await;
    let (services, selector) = (running.services(), "/spec/selector");
    becomes(&running, "/spec/selector/app", json!("virt-platform-autopilot")).await;
    // Somebody takes the selector, which has one owner, while the object is unmanaged.
    annotate(&services, SERVICE, "mode", Some("unmanaged")).await;
    let mine = json!({"app": "virt-platform-autopilot", "control-plane": "mine"});
    edit(&services, SERVICE, json!({"spec": {"selector": mine}})).await;
    let annotations = json!({"platform.kubevirt.io/mode": null, "platform.kubevirt.io/ignore-fields": "/spec/selector/control-plane"});
    edit(&services, SERVICE, json!({"metadata": {"annotations": annotations}})).await;
    reported(&running, "InvalidIgnoreFields", "/spec/selector as a whole").await;
    quiet(&running).await;
    assert_eq!(value(&running, selector).await, mine);
    running.restart();
    quiet(&running).await;
    assert_eq!(value(&running, selector).await, mine, "after a restart");
    // Ignored as a whole, as the message says, it stays the user's, and the rest is ours again.
    annotate(&services, SERVICE, "ignore-fields", Some(selector)).await;
    edit_port(&running, 7070).await;
    becomes(&running, "/spec/ports/0/targetPort", json!(8080)).await;
    assert_eq!(value(&running, selector).await, mine);
    // Released, it has no owner at all, so nothing tells whether it can be shared.
    annotate(&services, SERVICE, "ignore-fields", Some("/spec/selector/control-plane")).await;
    quiet(&running).await;
    assert_eq!(value(&running, selector).await, mine);

    // The same for an object that is found and would be adopted.
    running.stop();
    services.delete(SERVICE, &kube::api::DeleteParams::default()).await.unwrap();
    let found = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE, "annotations": {"platform.kubevirt.io/ignore-fields": "/spec/selector/control-plane"}},
        "spec": {"selector": mine, "ports": [{"name": "metrics", "port": 8080}]}});
    services.create(&kube::api::PostParams::default(), &serde_json::from_value(found).unwrap()).await.unwrap();
    running.restart();
    quiet(&running).await;
    assert_eq!(value(&running, selector).await, mine, "at adoption");
    assert_eq!(value(&running, "/metadata/annotations/platform.kubevirt.io~1origin").await, Value::Null);
}
