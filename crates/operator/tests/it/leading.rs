//! Of several processes one writes; the next takes over when it ends.

use crate::operator::{NAMESPACE, Process, Running, SERVICE, edit, eventually, eventually_within};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use serde_json::json;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn one_process_leads_and_hands_over_when_it_is_asked_to_end() {
    let running = Running::without_operator().await;
    running.annotate_hco("autopilot", Some("metrics-service")).await;
    let leases: Api<Lease> = Api::namespaced(running.playground.client(), NAMESPACE);
    let holder = async || {
        let lease = leases.get_opt("virt-platform-autopilot.kubevirt.io").await.unwrap()?;
        lease.spec?.holder_identity
    };
    let first = Process::start_as("pod-one", running.kubeconfig());
    eventually("the first leads", async || holder().await.filter(|holder| holder == "pod-one")).await;
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    let second = Process::start_as("pod-two", running.kubeconfig());
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "else"}}})).await;
    let ours = async || {
        let service = running.services().get(SERVICE).await.unwrap();
        (service.data["spec"]["selector"]["app"] == "virt-platform-autopilot").then_some(())
    };
    eventually("the edit is undone", ours).await;
    assert_eq!(holder().await.as_deref(), Some("pod-one"), "who waits does not take");

    assert_eq!(first.terminate(), Some(0), "asked to end, it ends well");
    eventually_within(Duration::from_secs(5), "the second leads", async || {
        holder().await.filter(|holder| holder == "pod-two")
    })
    .await;
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "again"}}})).await;
    eventually("the second undoes an edit", ours).await;

    // One that was killed comes back under its own name and does not wait for its own lease to run out.
    drop(second);
    let _again = Process::start_as("pod-two", running.kubeconfig());
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "last"}}})).await;
    eventually_within(Duration::from_secs(10), "it retakes its lease", ours).await;
}
