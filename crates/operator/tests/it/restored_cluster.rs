//! After a restore of etcd the versions of the API server are lower than those that the operator knows.

use crate::fixture::create;
use crate::operator::{Running, SERVICE, edit, eventually, quiet};
use kube::api::{Api, DynamicObject};
use serde_json::json;

async fn is_labelled(services: &Api<DynamicObject>) -> bool {
    let (key, wanted) = api::MANAGED_BY;
    let service = services.get(SERVICE).await.ok();
    service.and_then(|service| service.metadata.labels?.get(key).cloned()).is_some_and(|value| value == wanted)
}

async fn label_is_corrected(services: &Api<DynamicObject>, when: &str) {
    eventually(when, async || is_labelled(services).await.then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_runs_through_a_restore_reads_everything_again() {
    let mut running = Running::start(None).await;
    let (services, maps) = (running.services(), running.config_maps());
    eventually("the Service exists", async || services.get_opt(SERVICE).await.unwrap()).await;
    quiet(&running).await;
    // What is saved has drift that no operator has seen.
    running.stop();
    let drift = json!({"metadata": {"labels": {api::MANAGED_BY.0: "edited"}}});
    edit(&services, SERVICE, drift.clone()).await;
    let saved = tempfile::tempdir().unwrap();
    running.playground.save(saved.path()).await.unwrap_or_else(|error| panic!("{error}"));
    // A watch from a version that the restored server does not have yet is silent; with the default that takes longer.
    running.add_argument("--watch-silence=5s");
    let kubeconfig = running.kubeconfig().to_owned();
    let (_, log) = running.restart_logged(&kubeconfig);
    label_is_corrected(&services, "the drift is corrected").await;
    // The versions grow far beyond those that were saved.
    create(&maps, "counter", json!({"data": {}})).await;
    for number in 0..200 {
        edit(&maps, "counter", json!({"data": {"number": number.to_string()}})).await;
    }
    edit(&services, SERVICE, drift.clone()).await;
    label_is_corrected(&services, "drift before the restore is corrected").await;
    let version =
        async || services.get(SERVICE).await.unwrap().metadata.resource_version.unwrap().parse::<u64>().unwrap();
    let before = version().await;
    running.playground.restore(saved.path()).await.unwrap_or_else(|error| panic!("{error}"));
    assert!(maps.get_opt("counter").await.unwrap().is_none(), "it was not saved");
    label_is_corrected(&services, "the restored drift is corrected").await;
    let after = version().await;
    assert!(after < before, "versions went back: {after} and {before}");
    edit(&services, SERVICE, drift).await;
    label_is_corrected(&services, "drift after the restore is corrected").await;
    assert!(running.is_alive());
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("the versions of the API server went back"), "{log}");
}
