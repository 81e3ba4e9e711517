//! Of several processes only the leader writes; another one takes over when it ends.

use crate::operator::{NAMESPACE, Process, Running, SERVICE, edit, eventually, eventually_within};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use serde_json::json;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn one_process_leads_and_releases_the_lease_on_sigterm() {
    let running = Running::without_operator().await;
    running.annotate_hco("autopilot", Some("metrics-service")).await;
    let leases: Api<Lease> = Api::namespaced(running.playground.client(), NAMESPACE);
    let holder = async || {
        let lease = leases.get_opt("virt-platform-autopilot.kubevirt.io").await.unwrap()?;
        lease.spec?.holder_identity
    };
    let first = Process::start_as("pod-one", running.kubeconfig());
    eventually("the first process leads", async || holder().await.filter(|holder| holder == "pod-one")).await;
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    let second = Process::start_as("pod-two", running.kubeconfig());
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "else"}}})).await;
    let ours = async || {
        let service = running.services().get(SERVICE).await.unwrap();
        (service.data["spec"]["selector"]["app"] == "virt-platform-autopilot").then_some(())
    };
    eventually("the first process corrects drift", ours).await;
    assert_eq!(holder().await.as_deref(), Some("pod-one"), "a waiting process does not take the lease");

    assert_eq!(first.terminate(), Some(0), "SIGTERM ends it with success");
    eventually_within(Duration::from_secs(5), "the second process leads", async || {
        holder().await.filter(|holder| holder == "pod-two")
    })
    .await;
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "again"}}})).await;
    eventually("the second process corrects drift", ours).await;

    // A killed process that starts again under the same name does not wait for its own lease to expire.
    drop(second);
    let _restarted = Process::start_as("pod-two", running.kubeconfig());
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "last"}}})).await;
    eventually_within(Duration::from_secs(10), "it takes its lease back", ours).await;
}
