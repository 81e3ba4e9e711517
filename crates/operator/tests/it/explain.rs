//! `explain` says the same as the operator does, on a real API server.

use crate::commands::virtpilot;
use crate::operator::{NAMESPACE, Running, SERVICE, SMALL, SWAP, annotate, edit, eventually};
use serde_json::{Value, json};
use std::path::Path;

fn explain(kubeconfig: &Path, subject: &str) -> Value {
    let output = virtpilot(Some(kubeconfig), &["explain", subject, "--assets-dir", SMALL, "--output", "json"]);
    let all: Value = serde_json::from_str(&output.stdout).unwrap_or_else(|_| panic!("{}", output.stderr));
    all[0].clone()
}

/// The gate that decides.
fn deciding(explanation: &Value) -> String {
    let gates = explanation["gates"].as_array().unwrap();
    let decides: Vec<&str> =
        gates.iter().filter(|row| row["decides"] == true).filter_map(|row| row["gate"].as_str()).collect();
    decides.join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_gate_between_an_asset_and_its_object_is_explained() {
    let running = Running::start(None).await;
    let kubeconfig = running.playground.kubeconfig();
    let services = running.services();
    let service = format!("service/{NAMESPACE}/{SERVICE}");
    eventually("the Service is in sync", async || (explain(&kubeconfig, &service)["state"] == "InSync").then_some(()))
        .await;
    assert_eq!(deciding(&explain(&kubeconfig, "metrics-service")), "", "nothing is in the way");

    let swap = eventually("an approval is asked for", async || {
        let swap = explain(&kubeconfig, &format!("MachineConfig/{SWAP}"));
        swap["next"].as_str().is_some_and(|next| next.starts_with("virtpilot approve sha256:")).then_some(swap)
    })
    .await;
    assert_eq!((deciding(&swap).as_str(), &swap["state"]), ("approval", &json!("PendingApproval")));

    // The request for approval is history of an object without a namespace, too.
    eventually("the request is history", async || {
        let history = explain(&kubeconfig, &format!("MachineConfig/{SWAP}"))["history"].as_array()?.clone();
        let is_request =
            |entry: &Value| entry["what"].as_str().is_some_and(|what| what.starts_with("ApprovalRequired"));
        history.iter().any(is_request).then_some(())
    })
    .await;

    // A person's edit is history, and who made it.
    edit(&services, SERVICE, json!({"spec": {"selector": {"app": "other"}}})).await;
    let entry = eventually("the correction is history", async || {
        let history = explain(&kubeconfig, &service)["history"].as_array()?.clone();
        history.into_iter().find(|entry| entry["what"].as_str().is_some_and(|what| what.starts_with("DriftCorrected")))
    })
    .await;
    assert!(entry["what"].as_str().unwrap().contains("rogue changed .spec.selector"), "{entry}");

    // A refused patch, whose secret is not shown.
    let patch = r#"[{"op": "add", "path": "/spec/selector/x", "value": "password=hunter2"}]"#;
    annotate(&services, SERVICE, "patch", Some(patch)).await;
    let refused = explain(&kubeconfig, &service);
    assert_eq!((deciding(&refused).as_str(), &refused["state"]), ("patch", &json!("InvalidOverride")));
    assert!(!refused.to_string().contains("hunter2"), "{refused}");
    assert_eq!(refused["next"], "virtpilot explain patch Service");
    annotate(&services, SERVICE, "patch", None).await;

    annotate(&services, SERVICE, "mode", Some("unmanaged")).await;
    let unmanaged = explain(&kubeconfig, &service);
    assert_eq!((deciding(&unmanaged).as_str(), &unmanaged["state"]), ("mode", &json!("Unmanaged")));
    assert!(unmanaged["next"].as_str().unwrap().ends_with("platform.kubevirt.io/mode-"), "{unmanaged}");
    annotate(&services, SERVICE, "mode", None).await;

    running.annotate_hco("disabled-resources", Some("service/virt-*")).await;
    let excluded = explain(&kubeconfig, &service);
    assert_eq!((deciding(&excluded).as_str(), &excluded["state"]), ("exclusion", &json!("Excluded")));
    running.annotate_hco("disabled-resources", Some("- {kind: Service, nmae: x}")).await;
    assert_eq!(deciding(&explain(&kubeconfig, "metrics-service")), "settings");
    running.annotate_hco("disabled-resources", None).await;

    running.annotate_hco("autopilot", Some("swap-enable")).await;
    let unnamed = explain(&kubeconfig, "swap-enable");
    assert_eq!(deciding(&unnamed), "approval");
    running.annotate_hco("autopilot", Some("false")).await;
    let off = explain(&kubeconfig, "metrics-service");
    assert_eq!((deciding(&off).as_str(), &off["state"]), ("scope", &json!("Disabled")));
    assert!(off["next"].as_str().unwrap().ends_with("platform.kubevirt.io/autopilot=true"), "{off}");

    let unknown = virtpilot(Some(&kubeconfig), &["explain", "metrics-servise", "--assets-dir", SMALL]);
    assert_eq!(unknown.code, Some(1));
    assert!(
        unknown.stderr.contains("did you mean metrics-service?") && unknown.stderr.lines().count() == 1,
        "{}",
        unknown.stderr
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typing_error_is_shown_by_status_and_kinds_are_read_in_any_case() {
    let running = Running::without_operator().await;
    let kubeconfig = running.playground.kubeconfig();
    running.annotate_hco("autopilott", Some("true")).await;
    running.annotate_hco("disabled-resources", Some("SERVICE/virt-*, service/nothing")).await;
    let status = virtpilot(Some(&kubeconfig), &["status"]);
    assert!(status.stdout.contains("autopilott is not known (did you mean autopilot?)"), "{}", status.stdout);
    assert!(
        status.stdout.contains("the rule service/nothing") && status.stdout.contains("Excluded"),
        "{}",
        status.stdout
    );
}

#[test]
fn the_reference_is_printed_without_a_cluster() {
    for (subject, word) in [("annotations", "enable-mtv"), ("events", "DriftCorrected"), ("states", "PendingApproval")]
    {
        let text = virtpilot(None, &["explain", subject]);
        assert!(text.code == Some(0) && text.stdout.contains(word), "{subject}: {}", text.stderr);
        let json = virtpilot(None, &["explain", subject, "--output", "json"]);
        assert!(serde_json::from_str::<Value>(&json.stdout).unwrap().is_array(), "{subject}");
    }
}
