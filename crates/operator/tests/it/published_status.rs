//! The report that the operator publishes, and `status` that shows it.

use crate::commands::{virtpilot, virtpilot_as_given};
use crate::operator::{ACCOUNT, NAMESPACE, Process, Running, SERVICE, annotate, edit, eventually};
use kube::api::DeleteParams;
use playground::audit::Kind;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_what_the_leader_reports_and_says_when_none_leads() {
    let running = Running::without_operator().await;
    let kubeconfig = running.playground.kubeconfig();
    let status = |arguments: &[&str]| {
        let output = virtpilot_as_given(Some(&kubeconfig), &[&["status"], arguments].concat());
        assert_eq!(output.code, Some(0), "{}", output.stderr);
        output.stdout
    };
    let read = |arguments: &[&str]| -> Value { serde_json::from_str(&status(arguments)).unwrap() };
    let evaluated = format!("Operator  none leads in namespace {NAMESPACE}; evaluated by this command\n");
    assert!(status(&[]).starts_with(&evaluated), "{}", status(&[]));

    let begun = running.audit().mark().unwrap();
    let leader = Process::start_as("pod-1", running.kubeconfig());
    let published = eventually("the leader reports what a command evaluates, too", async || {
        let published = read(&["--output=json"]);
        let evaluated = virtpilot(Some(&kubeconfig), &["status", "--output=json"]).stdout;
        let evaluated: Value = serde_json::from_str(&evaluated).unwrap();
        assert_eq!(evaluated["operator"], Value::Null, "a flag that says how to decide implies --evaluate");
        let is_same = published["operator"]["pod"] == "pod-1" && published["assets"] == evaluated["assets"];
        is_same.then_some(published)
    })
    .await;
    assert_eq!(published["policy"], json!({"autopilot": "on", "approval": "high-impact"}));
    assert!(status(&[]).starts_with("Operator  running, leader pod-1 since 20"), "{}", status(&[]));
    assert!(status(&["--output=yaml"]).contains("pod: pod-1\n"), "{}", status(&["--output=yaml"]));

    // A report that another process of the same pod has made, or that does not exist, is not shown as current.
    let first_line = || status(&[]).lines().next().unwrap_or_default().to_owned();
    let maps = running.config_maps();
    let written = maps.get(api::STATUS).await.unwrap().data["data"]["status.json"].clone();
    let mut forged: Value = serde_json::from_str(written.as_str().unwrap()).unwrap();
    forged["operator"]["started"] = json!("2026-01-01T00:00:00Z");
    edit(&maps, api::STATUS, json!({"data": {"status.json": forged.to_string()}})).await;
    let another =
        "Operator  pod-1 leads, and the report was made by another process of that name; evaluated by this command";
    assert_eq!(first_line(), another);
    maps.delete(api::STATUS, &DeleteParams::default()).await.unwrap();
    assert_eq!(first_line(), "Operator  pod-1 leads, and there is no report of it; evaluated by this command");

    // A drift that is corrected is no news, and an override is, with which the report is there again.
    let reports = || running.audit().since(begun).unwrap().by(ACCOUNT).of(Kind::Report).count();
    let before = reports();
    edit(&running.services(), SERVICE, json!({"metadata": {"labels": {"platform.kubevirt.io/managed-by": null}}}))
        .await;
    eventually("the drift is corrected", async || {
        let service = running.services().get(SERVICE).await.unwrap();
        service
            .metadata
            .labels
            .is_some_and(|labels| labels.contains_key("platform.kubevirt.io/managed-by"))
            .then_some(())
    })
    .await;
    annotate(&running.services(), SERVICE, "mode", Some("unmanaged")).await;
    eventually("the override is reported", async || {
        let shown = status(&[]);
        (shown.starts_with("Operator  running") && shown.contains("override: Service")).then_some(())
    })
    .await;
    assert_eq!(reports(), before + 1);

    assert_eq!(leader.terminate(), Some(0));
    assert!(status(&[]).starts_with(&evaluated), "{}", status(&[]));
}
