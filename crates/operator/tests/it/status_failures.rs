//! `virtpilot status` shows what the API server would refuse.

use crate::commands::virtpilot;
use crate::operator::{NAMESPACE, Running, SERVICE, annotate, eventually, quiet};
use kube::api::{DeleteParams, DynamicObject, PostParams};
use playground::audit::Kind;
use playground::certificates::ADMIN_USER;
use playground::deployment;
use serde_json::{Value, json};
use std::path::Path;

/// State and reason of the metrics Service.
fn service(kubeconfig: &Path) -> (String, String) {
    let output = virtpilot(Some(kubeconfig), &["status", "--output", "json"]);
    let lines: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    let line =
        lines["assets"].as_array().unwrap().iter().find(|line| line["asset"] == "metrics-service").unwrap().clone();
    let text = |field: &str| line[field].as_str().unwrap().to_owned();
    (text("state"), text("why"))
}

async fn create(running: &Running, api_version: &str, kind: &str, name: &str, fields: Value) {
    let api = deployment::objects(&running.playground, api_version, kind, None);
    let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name}});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_what_the_server_refuses_and_asks_only_about_what_would_be_written() {
    let mut running = Running::start(None).await;
    let (services, admin) = (running.services(), running.playground.kubeconfig());
    eventually("the Service exists", async || services.get_opt(SERVICE).await.unwrap()).await;
    quiet(&running).await;
    running.stop();
    let dry_runs = |since| running.audit().since(since).unwrap().by(ADMIN_USER).of(Kind::DryRun).count();
    let mark = running.audit().mark().unwrap();
    assert_eq!(service(&admin), ("InSync".to_owned(), String::new()));
    assert_eq!(dry_runs(mark), 0, "nothing would be written");

    // A patch that the table refuses needs no request.
    annotate(&services, SERVICE, "patch", Some(r#"[{"op": "add", "path": "/spec/selector/x", "value": "y"}]"#)).await;
    let (state, why) = service(&admin);
    assert!(state == "InvalidOverride" && why.contains("/spec/selector/x may not be patched"), "{state} {why}");
    assert_eq!(dry_runs(mark), 0);

    // A patch that the table allows and the server refuses; what looks like a secret is not shown.
    let wrong = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "password=hunter2"}]"#;
    annotate(&services, SERVICE, "patch", Some(wrong)).await;
    let mark = running.audit().mark().unwrap();
    let (state, why) = service(&admin);
    assert!(
        state == "InvalidOverride" && why.contains("patch refused") && why.contains("sessionAffinity"),
        "{state} {why}"
    );
    assert!(!why.contains("hunter2"), "{why}");
    assert_eq!(dry_runs(mark), 1, "the last good state is as it should be");

    // An object that does not exist, and that admission refuses.
    annotate(&services, SERVICE, "patch", None).await;
    services.delete(SERVICE, &DeleteParams::default()).await.unwrap();
    assert_eq!(service(&admin), ("Pending".to_owned(), "it does not exist".to_owned()));
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["services"], "operations": ["CREATE"]});
    let validation = json!({"expression": "false", "message": "no Services here", "reason": "Forbidden"});
    let (group, policy) = ("admissionregistration.k8s.io/v1", "no-services");
    let spec = json!({"matchConstraints": {"resourceRules": [rule]}, "validations": [validation]});
    create(&running, group, "ValidatingAdmissionPolicy", policy, json!({"spec": spec})).await;
    let spec = json!({"policyName": policy, "validationActions": ["Deny"]});
    create(&running, group, "ValidatingAdmissionPolicyBinding", policy, json!({"spec": spec})).await;
    let why = eventually("the policy is in force", async || {
        let (state, why) = service(&admin);
        (state == "Failed").then_some(why)
    })
    .await;
    assert!(why.starts_with("the API server refused it: ") && why.contains("no Services here"), "{why}");

    // A person who may only look sees the state without it.
    let viewer = running.playground.account(NAMESPACE, "viewer").await.unwrap_or_else(|error| panic!("{error}"));
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]);
    let group = "rbac.authorization.k8s.io/v1";
    create(&running, group, "ClusterRole", "viewer", json!({"rules": everything})).await;
    let role = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "viewer"});
    let subject = json!({"kind": "ServiceAccount", "name": "viewer", "namespace": NAMESPACE});
    create(&running, group, "ClusterRoleBinding", "viewer", json!({"roleRef": role, "subjects": [subject]})).await;
    let shown = eventually("the viewer may look", async || {
        let output = virtpilot(Some(&viewer.kubeconfig), &["status"]);
        (output.code == Some(0)).then(|| service(&viewer.kubeconfig))
    })
    .await;
    assert_eq!(shown, ("Pending".to_owned(), "it does not exist".to_owned()));
}
