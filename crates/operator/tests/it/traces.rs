//! Traces, received by the OpenTelemetry Collector's own receiver.

use crate::fixture::json_patch;
use crate::operator::{NAMESPACE, Process, Running, SERVICE, SMALL, annotate, eventually, eventually_within};
use playground::cache::Cache;
use playground::tools::Tools;
use playground::{Progress, UserError, otlp_receiver};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// It is in the cluster and in answers of the server, and must be in no trace.
const CANARY: &str = "canary-of-a-secret";

/// A collector, and the spans that it has received.
pub(crate) struct Receiver {
    child: Child,
    spans: Arc<Mutex<Vec<Value>>>,
    pub(crate) address: String,
}

impl Receiver {
    pub(crate) async fn start() -> Receiver {
        let program: Result<PathBuf, UserError> =
            async { otlp_receiver::ensure(&Tools::load()?, &Cache::open()?, Progress::detect()).await }.await;
        let program = program.unwrap_or_else(|error| panic!("{error}"));
        let address = format!("127.0.0.1:{}", closed_port());
        let mut command = Command::new(program);
        command.arg(&address).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "listening");
        let spans: Arc<Mutex<Vec<Value>>> = Arc::default();
        let received = spans.clone();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                received.lock().unwrap().push(serde_json::from_str(&line).unwrap());
            }
        });
        Receiver { child, spans, address }
    }

    pub(crate) fn spans(&self) -> Vec<Value> {
        self.spans.lock().unwrap().clone()
    }

    /// The first trace whose root has this name and that has these children without an error; the root is the first span.
    fn trace(&self, root: &str, children: &[&str]) -> Option<Vec<Value>> {
        let spans = self.spans();
        spans.iter().filter(|span| span["name"] == root && span["parentId"] == "").find_map(|root| {
            let mut trace = vec![root.clone()];
            for name in children {
                let is_child = |span: &&Value| span["name"] == *name && span["parentId"] == root["spanId"];
                let child = |span: &&Value| is_child(span) && span["status"] == "Unset";
                trace.push(spans.iter().find(child)?.clone());
            }
            Some(trace)
        })
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn closed_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A cluster with everything switched on and an operator that sends traces; its log is in a file.
async fn start(address: &str) -> (Running, Process, PathBuf) {
    let running = Running::without_operator().await;
    running.annotate_hco("approval", Some("none")).await;
    running.annotate_hco("autopilot", Some("true")).await;
    let log = running.playground.folder().join("traces.log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
    command.args(["run", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--assets-dir", SMALL]);
    command.arg(format!("--otlp-endpoint=http://{address}")).arg("--kubeconfig").arg(running.kubeconfig());
    let process = Process::of(command.stderr(std::fs::File::create(&log).unwrap()));
    let services = running.services();
    eventually("the Service is there", async || services.get_opt(SERVICE).await.unwrap()).await;
    (running, process, log)
}

/// Changes a field of the Service, and waits until that is corrected.
async fn drift(running: &Running) {
    let services = running.services();
    let before = services.get(SERVICE).await.unwrap().data["spec"]["selector"].clone();
    let change = json!([{"op": "replace", "path": "/spec/selector", "value": {"app": CANARY}}]);
    json_patch(&services, SERVICE, change).await;
    eventually("the drift is corrected", async || {
        (services.get(SERVICE).await.unwrap().data["spec"]["selector"] == before).then_some(())
    })
    .await;
}

fn count(log: &Path, text: &str) -> usize {
    std::fs::read_to_string(log).unwrap().matches(text).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_is_one_trace_with_its_evaluation_and_its_requests() {
    let receiver = Receiver::start().await;
    let (running, process, log) = start(&receiver.address).await;
    // Both are quoted by the server's answer to an apply.
    annotate(&running.services(), SERVICE, "token", Some(CANARY)).await;
    let patch = json!([{"op": "add", "path": "/spec/sessionAffinity", "value": CANARY}]).to_string();
    annotate(&running.services(), SERVICE, "patch", Some(&patch)).await;
    eventually("the server refuses the patch", async || {
        let refused =
            |span: &Value| span["name"] == "apply Service" && span["attributes"]["http.response.status_code"] == 422;
        receiver.spans().into_iter().find(refused)
    })
    .await;
    annotate(&running.services(), SERVICE, "patch", None).await;
    drift(&running).await;
    let children = ["evaluate", "apply Service", "create Event"];
    let trace = eventually("the trace arrives", async || receiver.trace("reconcile Service", &children)).await;
    let [root, evaluate, apply, _] = &trace[..] else { panic!("{trace:?}") };
    for span in &trace {
        assert_eq!(span["traceId"], root["traceId"]);
        assert_eq!(span["resource"]["service.name"], "virt-platform-autopilot");
        assert_eq!(span["scope"], "virtpilot");
        assert!(
            span["start"].as_u64() >= root["start"].as_u64() && span["end"].as_u64() <= root["end"].as_u64(),
            "{trace:?}"
        );
    }
    assert!(evaluate["end"].as_u64() <= apply["start"].as_u64(), "{trace:?}");
    let path = format!("/api/v1/namespaces/{NAMESPACE}/services/{SERVICE}");
    assert_eq!(
        (&root["kind"], &evaluate["kind"], &apply["kind"]),
        (&json!("Internal"), &json!("Internal"), &json!("Client"))
    );
    assert_eq!(
        apply["attributes"],
        json!({
            "http.request.method": "PATCH", "http.response.status_code": 200, "url.path": path,
            "k8s.object.kind": "Service", "k8s.object.name": SERVICE, "k8s.namespace.name": NAMESPACE,
        })
    );
    // Log lines name the trace.
    let id = root["traceId"].as_str().unwrap();
    assert!(count(&log, &format!("trace{{trace_id={id}}}: ")) > 0, "{}", std::fs::read_to_string(&log).unwrap());
    // What is still queued is sent before the end.
    let applied = || receiver.spans().iter().filter(|span| span["name"] == "apply Service").count();
    let before = applied();
    drift(&running).await;
    assert_eq!(process.terminate(), Some(0));
    eventually("the last spans arrive", async || (applied() > before).then_some(())).await;
    assert_eq!(count(&log, "could not send traces"), 0);
    let spans = serde_json::to_string(&receiver.spans()).unwrap();
    assert!(!spans.contains(CANARY), "{spans}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_is_down_disturbs_nothing() {
    let (running, process, log) = start(&format!("127.0.0.1:{}", closed_port())).await;
    drift(&running).await;
    let warning = "could not send traces to http://127.0.0.1:";
    eventually_within(Duration::from_secs(40), "a warning", async || (count(&log, warning) > 0).then_some(())).await;
    drift(&running).await;
    let begun = Instant::now();
    assert_eq!(process.terminate(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(5), "it stopped after {:?}", begun.elapsed());
    assert_eq!(count(&log, warning), 1, "one warning is enough");
}
