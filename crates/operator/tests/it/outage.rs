//! The API server does not answer for a minute, and etcd is killed: the operator stays, keeps its lease, and goes on.

use crate::operator::{NAMESPACE, Process, Running, SERVICE, edit, eventually, quiet};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
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

async fn lease(running: &Running) -> LeaseSpec {
    let leases: Api<Lease> = Api::namespaced(running.playground.client(), NAMESPACE);
    leases.get("virt-platform-autopilot.kubevirt.io").await.unwrap().spec.unwrap()
}

/// Whether the server answers a read within a second.
async fn answers(running: &Running) -> Option<()> {
    let read = tokio::time::timeout(Duration::from_secs(1), running.services().get_opt(SERVICE)).await;
    read.is_ok_and(|answer| answer.is_ok()).then_some(())
}

/// Drift is corrected, by the same process under the same lease, which it renews, and no kind was listed twice.
async fn goes_on(running: &Running, process: &mut Process, before: &LeaseSpec, since: Mark) {
    let (key, wanted) = api::MANAGED_BY;
    edit(&running.services(), SERVICE, json!({"metadata": {"labels": {key: "edited"}}})).await;
    let begun = Instant::now();
    eventually("the drift is corrected", async || {
        let labels = running.services().get(SERVICE).await.unwrap().metadata.labels.unwrap_or_default();
        labels.get(key).is_some_and(|value| value == wanted).then_some(())
    })
    .await;
    println!("drift is corrected {} ms after the server is back", begun.elapsed().as_millis());
    let after = eventually("the lease is renewed", async || {
        Some(lease(running).await).filter(|lease| lease.renew_time > before.renew_time)
    })
    .await;
    println!("the lease is renewed {} ms after the server is back", begun.elapsed().as_millis());
    assert!(process.is_alive(), "it was restarted");
    let holder = |lease: &LeaseSpec| (lease.holder_identity.clone(), lease.lease_transitions);
    assert_eq!(holder(&after), holder(before), "the lease went to another");
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
    assert_eq!(before.holder_identity.as_deref(), Some("pod-1"));

    let since = running.audit().mark().unwrap();
    signal(&mut running, "kube-apiserver", "-STOP");
    tokio::time::sleep(OUTAGE).await;
    signal(&mut running, "kube-apiserver", "-CONT");
    eventually("the server answers", async || answers(&running).await).await;
    goes_on(&running, &mut process, &before, since).await;

    let (since, before) = (running.audit().mark().unwrap(), lease(&running).await);
    signal(&mut running, "etcd", "-KILL");
    eventually("the server does not answer", async || answers(&running).await.is_none().then_some(())).await;
    running.playground.start_etcd().unwrap_or_else(|error| panic!("{error}"));
    eventually("the server answers after etcd is back", async || answers(&running).await).await;
    goes_on(&running, &mut process, &before, since).await;
}
