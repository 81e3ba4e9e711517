//! Of several processes only the leader writes; another one takes over when it ends.

use crate::operator::{
    NAMESPACE, Process, Running, SERVICE, SMALL_ROLE, edit, eventually, eventually_within, readiness, with_pack,
};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use playground::Scene;
use serde_json::{Value, json};
use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The lease, and the pods whose status the test sets as a kubelet does.
struct Stage {
    running: Running,
    leases: Api<Lease>,
    pods: Api<Pod>,
}

impl Stage {
    fn on(running: Running) -> Stage {
        let client = running.playground.client();
        let (leases, pods) = (Api::namespaced(client.clone(), NAMESPACE), Api::namespaced(client, NAMESPACE));
        Stage { running, leases, pods }
    }

    async fn lease(&self) -> Option<Lease> {
        self.leases.get_opt("virt-platform-autopilot.kubevirt.io").await.unwrap()
    }

    async fn holder(&self) -> Option<String> {
        self.lease().await?.spec?.holder_identity
    }

    /// Waits until a process leads; returns for how long.
    async fn leads(&self, pod: &str, within: Duration) -> Duration {
        let begun = Instant::now();
        eventually_within(within, &format!("{pod} leads"), async || self.holder().await.filter(|holder| holder == pod))
            .await;
        begun.elapsed()
    }

    async fn create_pod(&self, name: &str) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "nodeName": "worker-0", "serviceAccountName": "virt-platform-autopilot", "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 30, "containers": [{"name": "manager", "image": "registry.example/operator:1"}]}});
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
        self.report(name, "Running", json!({"running": {"startedAt": "2026-01-01T00:00:00Z"}})).await;
    }

    /// Reports the status of a pod as a kubelet does.
    async fn report(&self, pod: &str, phase: &str, state: Value) {
        let container = json!({"name": "manager", "image": "registry.example/operator:1", "imageID": "", "ready": false,
            "restartCount": 0, "state": state});
        let patch = json!({"status": {"phase": phase, "containerStatuses": [container]}});
        self.pods.patch_status(pod, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    /// Deletes a pod from the API server without asking its kubelet, or as a kubelet does in the end.
    async fn remove(&self, pod: &str) {
        self.pods.delete(pod, &DeleteParams::default().grace_period(0)).await.unwrap();
    }

    /// A process with its probes on a free port, and its log.
    fn start(&self, pod: &str) -> (Process, u16, PathBuf) {
        let log = self.running.playground.folder().join(format!("{pod}.log"));
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (address, file) = (format!("127.0.0.1:{port}"), File::create(&log).unwrap());
        (Process::start_observed(pod, self.running.kubeconfig(), &address, Stdio::from(file)), port, log)
    }

    /// Waits until a process says on `/readyz` that it waits for another.
    async fn waits(&self, port: u16, holder: &str) {
        let expected = format!("ok, standby: waiting for {holder}, which holds the lease");
        eventually("it says for whom it waits", async || readiness(port).filter(|text| text.contains(&expected))).await;
    }

    /// Waits until standby processes have read the lease some more times.
    async fn several_polls(&self) {
        let mark = self.running.audit().mark().unwrap();
        eventually("the lease is read again", async || {
            let own = self.running.own(&self.running.audit().since(mark).unwrap());
            let reads = own.filter(|request| request.verb == "get" && request.resource.starts_with("leases"));
            (reads.count() >= 3).then_some(())
        })
        .await;
    }
}

fn killed() -> Value {
    json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}})
}

/// As long as a standby may take to follow a leader whose pod has ended.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn one_process_leads_and_releases_the_lease_on_sigterm() {
    let stage = Stage::on(Running::without_operator().await);
    let running = &stage.running;
    running.annotate_hco("autopilot", Some("metrics-service")).await;
    let first = Process::start_as("pod-one", running.kubeconfig());
    stage.leads("pod-one", Duration::from_secs(60)).await;
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    let (second, port, _) = stage.start("pod-two");
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "else"}}})).await;
    let ours = async || {
        let service = running.services().get(SERVICE).await.unwrap();
        (service.data["spec"]["selector"]["app"] == "virt-platform-autopilot").then_some(())
    };
    eventually("the first process corrects drift", ours).await;
    stage.waits(port, "pod-one").await;
    assert_eq!(stage.holder().await.as_deref(), Some("pod-one"), "a waiting process does not take the lease");

    assert_eq!(first.terminate(), Some(0), "SIGTERM ends it with success");
    let after = stage.leads("pod-two", Duration::from_secs(5)).await;
    println!("a stopped leader was followed {} ms after it had ended", after.as_millis());
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "again"}}})).await;
    eventually("the second process corrects drift", ours).await;
    let ready = async || readiness(port).filter(|text| text.ends_with("\r\n\r\nok\n"));
    eventually("a leader is no standby", ready).await;

    // A killed process that starts again under the same name does not wait for its own lease to expire.
    drop(second);
    let _restarted = Process::start_as("pod-two", running.kubeconfig());
    edit(&running.services(), SERVICE, json!({"spec": {"selector": {"app": "last"}}})).await;
    eventually_within(Duration::from_secs(10), "it takes its lease back", ours).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_is_followed_when_its_kubelet_has_seen_it_end_and_not_before() {
    let stage = Stage::on(Running::without_operator().await);
    for pod in ["pod-one", "pod-two", "pod-three", "pod-four"] {
        stage.create_pod(pod).await;
    }
    let (one, ..) = stage.start("pod-one");
    stage.leads("pod-one", Duration::from_secs(60)).await;
    let (two, port, _) = stage.start("pod-two");
    stage.waits(port, "pod-one").await;

    // A container that has ended is started again: until the pod is over, nobody else may take its lease.
    drop(one);
    stage.report("pod-one", "Running", killed()).await;
    stage.several_polls().await;
    assert_eq!(stage.holder().await.as_deref(), Some("pod-one"));
    stage.report("pod-one", "Failed", killed()).await;
    let after = stage.leads("pod-two", SOON).await;
    println!("a leader whose pod had failed was followed {} ms after the report", after.as_millis());

    // The kubelet reports the end of a pod that was deleted, and then removes it.
    let (three, port, log) = stage.start("pod-three");
    stage.waits(port, "pod-two").await;
    stage.pods.delete("pod-two", &DeleteParams::default()).await.unwrap();
    drop(two);
    stage.report("pod-two", "Failed", killed()).await;
    stage.remove("pod-two").await;
    let after = stage.leads("pod-three", SOON).await;
    println!("a leader whose pod had ended and gone was followed {} ms after that", after.as_millis());
    let log = eventually("it says why it leads", async || {
        std::fs::read_to_string(&log).ok().filter(|text| text.contains("this replica leads"))
    })
    .await;
    assert!(log.contains("standby: pod-two holds the lease openshift-cnv/"), "{log}");
    assert!(log.contains("whose holder's pod has ended"), "{log}");

    // A pod that was deleted by force may still run, as far as anybody knows.
    let (_four, port, _) = stage.start("pod-four");
    stage.waits(port, "pod-three").await;
    drop(three);
    stage.remove("pod-three").await;
    stage.several_polls().await;
    stage.waits(port, "pod-three").await;
    assert_eq!(stage.holder().await.as_deref(), Some("pod-three"));

    // A process of the same name takes its lease back at once.
    let _restarted = stage.start("pod-three");
    eventually_within(SOON, "pod-three leads again and has no pod any more", async || {
        let annotations = stage.lease().await?.metadata.annotations?;
        (!annotations.contains_key("platform.kubevirt.io/leader-pod")).then_some(())
    })
    .await;
    assert_eq!(stage.holder().await.as_deref(), Some("pod-three"));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_right_to_read_pods_a_standby_says_so_once_and_waits_for_the_lease() {
    const RIGHT: &str = "  - apiGroups: [\"\"]\n    resources: [pods]\n    verbs: [get, watch]\n";
    assert!(SMALL_ROLE.contains(RIGHT));
    let role = SMALL_ROLE.replace(RIGHT, "");
    let stage = Stage::on(Running::on(Scene::preset("small").unwrap(), &role, &with_pack(&[])).await);
    stage.create_pod("pod-one").await;
    let (one, ..) = stage.start("pod-one");
    stage.leads("pod-one", Duration::from_secs(60)).await;
    let (_two, port, log) = stage.start("pod-two");
    stage.waits(port, "pod-one").await;
    stage.report("pod-one", "Failed", killed()).await;
    stage.several_polls().await;
    assert_eq!(stage.holder().await.as_deref(), Some("pod-one"));
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("could not read pods of the namespace openshift-cnv").count(), 1, "{log}");
    assert_eq!(one.terminate(), Some(0));
    stage.leads("pod-two", Duration::from_secs(5)).await;
}
