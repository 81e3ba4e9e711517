//! The report that the operator publishes, and `status` that shows it.

use crate::commands::virtpilot;
use crate::operator::{ACCOUNT, NAMESPACE, Process, Running, SERVICE, annotate, edit, eventually};
use playground::audit::Kind;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn status_shows_what_the_leader_reports_and_says_when_none_leads() {
    let running = Running::without_operator().await;
    let kubeconfig = running.playground.kubeconfig();
    let status = |arguments: &[&str]| {
        let output = virtpilot(Some(&kubeconfig), &[&["status"], arguments].concat());
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
        let evaluated = read(&["--output=json", "--evaluate"]);
        let is_same = published["operator"]["pod"] == "pod-1" && published["assets"] == evaluated["assets"];
        is_same.then_some(published)
    })
    .await;
    assert_eq!(published["policy"], json!({"autopilot": "on", "approval": "high-impact"}));
    assert!(status(&[]).starts_with("Operator  running, leader pod-1 since 20"), "{}", status(&[]));
    assert!(status(&["--output=yaml"]).contains("pod: pod-1\n"), "{}", status(&["--output=yaml"]));

    // A drift that is corrected is no news, and an override is.
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
        shown.contains("override: Service").then_some(())
    })
    .await;
    assert_eq!(reports(), before + 1);

    assert_eq!(leader.terminate(), Some(0));
    assert!(status(&[]).starts_with(&evaluated), "{}", status(&[]));
}
