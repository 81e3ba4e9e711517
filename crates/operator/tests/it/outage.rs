//! The API server does not answer for a minute, and etcd is killed: the operator stays, keeps its lease, and goes on.

use crate::operator::{NAMESPACE, Process, Running, SERVICE, edit, eventually, eventually_within, quiet};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use playground::audit::Mark;
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long the server does not answer.
const OUTAGE: Duration = Duration::from_secs(60);

fn signal(running: &mut Running, program: &str, signal: &str) {
    let pid = running.playground.pid(program).unwrap().to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
}

/// The holder of the lease, and how often it changed.
async fn lease(running: &Running) -> (Option<String>, Option<i32>) {
    let leases: Api<Lease> = Api::namespaced(running.playground.client(), NAMESPACE);
    let spec = leases.get("virt-platform-autopilot.kubevirt.io").await.unwrap().spec.unwrap();
    (spec.holder_identity, spec.lease_transitions)
}

/// Drift is corrected soon, by the same process under the same lease, and no kind was listed twice.
async fn goes_on(running: &Running, process: &mut Process, before: &(Option<String>, Option<i32>), since: Mark) {
    let (key, wanted) = api::MANAGED_BY;
    edit(&running.services(), SERVICE, json!({"metadata": {"labels": {key: "edited"}}})).await;
    let begun = Instant::now();
    eventually("the drift is corrected", async || {
        let labels = running.services().get(SERVICE).await.unwrap().metadata.labels.unwrap_or_default();
        labels.get(key).is_some_and(|value| value == wanted).then_some(())
    })
    .await;
    println!("drift is corrected {} ms after the server is back", begun.elapsed().as_millis());
    assert!(process.is_alive(), "it was restarted");
    assert_eq!(lease(running).await, *before, "the lease went to another");
    let own = running.own(&running.audit().since(since).unwrap());
    let lists = own.filter(|request| request.verb == "list" && request.code == 200).table();
    let twice: Vec<_> = lists.iter().filter(|(_, count)| **count > 1).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_outlives_an_outage_of_the_api_server_and_of_etcd() {
    let mut running = Running::without_operator().await;
    let mut process = Process::start_observed("pod-1", running.kubeconfig(), "0", Stdio::inherit());
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    quiet(&running).await;
    let before = lease(&running).await;
    assert_eq!(before.0.as_deref(), Some("pod-1"));

    let since = running.audit().mark().unwrap();
    signal(&mut running, "kube-apiserver", "-STOP");
    tokio::time::sleep(OUTAGE).await;
    signal(&mut running, "kube-apiserver", "-CONT");
    eventually_within(OUTAGE * 3, "the server answers", async || running.services().get_opt(SERVICE).await.ok()).await;
    goes_on(&running, &mut process, &before, since).await;

    let since = running.audit().mark().unwrap();
    signal(&mut running, "etcd", "-KILL");
    eventually("the server does not answer", async || running.services().get_opt(SERVICE).await.err()).await;
    running.playground.start_etcd().unwrap_or_else(|error| panic!("{error}"));
    eventually_within(OUTAGE * 3, "the server answers after etcd is back", async || {
        running.services().get_opt(SERVICE).await.ok()
    })
    .await;
    goes_on(&running, &mut process, &before, since).await;
}
