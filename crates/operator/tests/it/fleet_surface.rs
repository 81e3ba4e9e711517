//! What people see of the fleet: its metrics, its events, and the story of each claim.

use crate::fleet::Fleet;
use crate::operator::{eventually, eventually_within, free_port, http};
use crate::packages::{deploy, succeed, virtpilot};
use crate::traces::Receiver;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use playground::Progress;
use playground::deployment::objects;
use playground::packaging::Packaging;
use playground::proxmox::Timing;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

/// The value of a series.
fn value(text: &str, series: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Requests to hypervisors are spans below what led to them, beside those to the API server; they contain neither secrets nor ids.
async fn traced(fleet: &Fleet, receiver: &Receiver) {
    let path = "/nodes/{node}/qemu/{vmid}/clone";
    let found = eventually("the clone is a span", async || {
        receiver.spans().into_iter().find(|span| span["name"] == format!("POST {path}"))
    })
    .await;
    let server = fleet.proxmox.address.trim_start_matches("https://");
    let attributes = json!({
        "http.request.method": "POST", "http.response.status_code": 200, "url.template": path, "server.address": server,
    });
    assert_eq!((&found["attributes"], &found["kind"]), (&attributes, &json!("Client")));
    assert_eq!(found["resource"]["service.name"], "virtpilot-fleet");
    let is_of_trace = |span: &Value| span["traceId"] == found["traceId"];
    let roots = eventually("its root ends", async || {
        let trace: Vec<Value> = receiver.spans().into_iter().filter(is_of_trace).collect();
        trace.iter().find(|span| span["spanId"] == found["parentId"]).cloned()
    })
    .await;
    assert!(roots["name"].as_str().unwrap().starts_with("reconcile"), "{roots}");
    let all = serde_json::to_string(&receiver.spans()).unwrap();
    let (_, secret) = fleet.token();
    assert!(!all.contains(&secret) && !all.contains("PVEAPIToken"), "{all}");
}

/// Helm does not remove an autopilot that runs: nobody would release what it manages.
async fn guards_autopilot(fleet: &Fleet) {
    let helm = Packaging::ensure(Progress::Silent).await.unwrap().helm;
    // It keeps there what the server serves.
    let home = tempfile::tempdir().unwrap();
    let template = || {
        let mut command = Command::new(&helm);
        command.args(["template", "virtpilot", "--dry-run=server", "--namespace=ci"]).arg(deploy("helm/virtpilot"));
        command.args(["--set", "autopilot.enabled=false,fleet.enabled=true"]);
        command.env("KUBECONFIG", fleet.playground.kubeconfig()).env("HOME", home.path()).output().unwrap()
    };
    let labels = json!({"app": "x"});
    let pod = json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "x", "image": "x"}]}});
    let mut deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "virt-platform-autopilot", "annotations": {"meta.helm.sh/release-name": "virtpilot"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    });
    let deployments = objects(&fleet.playground, "apps/v1", "Deployment", Some("ci"));
    for (replicas, name, is_refused) in [(1, "virtpilot", true), (0, "virtpilot", false), (1, "another", false)] {
        deployment["spec"]["replicas"] = json!(replicas);
        deployment["metadata"]["annotations"]["meta.helm.sh/release-name"] = json!(name);
        let params = PatchParams::apply("helm").force();
        deployments.patch("virt-platform-autopilot", &params, &Patch::Apply(&deployment)).await.unwrap();
        let output = template();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // The kinds of the fleet, which this release did not make, are refused later.
        assert_eq!(said.contains("virtpilot handback --namespace ci"), is_refused, "{replicas} of {name}: {said}");
    }
    deployments.delete("virt-platform-autopilot", &DeleteParams::default()).await.unwrap();
}

/// P18.
#[tokio::test(flavor = "multi_thread")]
async fn machines_pools_and_hypervisors_have_metrics_events_and_a_story_until_they_are_gone() {
    let mut fleet = Fleet::start(Timing::short()).await;
    let port = free_port();
    fleet.process = None;
    let receiver = Receiver::start().await;
    let metrics = format!("127.0.0.1:{port}");
    fleet.process = Some(fleet.replica_with("virtpilot-fleet-0", &metrics, Some(&receiver.address)).0);
    fleet.reason("HypervisorCluster", "pve", "ConnectionSuccessful").await;
    fleet.claim("one").await;
    fleet.ready_claim("one").await;
    fleet.apply("RunnerPool", "pool", json!({"templateRef": {"name": "linux"}, "scaling": {"minReplicas": 1}})).await;
    fleet.status("RunnerPool", "pool", "a machine", |status: &Value| status["readyReplicas"] == 1).await;
    let text = eventually("both machines are counted", async || {
        let text = http(port, "GET", "/metrics")?;
        let is_there = |series: &str, count: f64| value(&text, &format!("virtpilot_fleet_{series}")) == Some(count);
        let is_all = is_there("machines{hypervisor=\"ci/pve\",phase=\"Ready\"}", 2.0)
            && is_there("pool_ready_machines{pool=\"ci/pool\"}", 1.0)
            && is_there("pool_desired_machines{pool=\"ci/pool\"}", 1.0);
        is_all.then_some(text)
    })
    .await;
    for (series, expected) in [
        ("hypervisor_ready{hypervisor=\"ci/pve\"}", 1.0),
        ("orphans{hypervisor=\"ci/pve\"}", 0.0),
        ("provisioning_results_total{template=\"ci/linux\",result=\"Ready\"}", 2.0),
        ("provisioning_duration_seconds_count{template=\"ci/linux\"}", 2.0),
        ("operation_duration_seconds_count{hypervisor=\"ci/pve\",operation=\"create\"}", 2.0),
        ("leader", 1.0),
    ] {
        assert_eq!(value(&text, &format!("virtpilot_fleet_{series}")), Some(expected), "{series}\n{text}");
    }
    assert!(value(&text, "virtpilot_fleet_hypervisor_available_cpus{hypervisor=\"ci/pve\"}").unwrap() > 0.0, "{text}");
    assert!(!text.contains("kubevirt_autopilot") && !text.contains("ci/one"), "{text}");

    // The hypervisor is listed every 30 seconds.
    eventually_within(Duration::from_secs(60), "the list shows that both run", async || {
        let text = http(port, "GET", "/metrics")?;
        let of = |power: &str| {
            value(&text, &format!("virtpilot_fleet_machines_by_power{{hypervisor=\"ci/pve\",power=\"{power}\"}}"))
        };
        (of("running") == Some(2.0) && of("stopped") == Some(0.0)).then_some(())
    })
    .await;

    traced(&fleet, &receiver).await;
    guards_autopilot(&fleet).await;

    // The story of a claim, and why the pool has its size.
    let kubeconfig = fleet.playground.kubeconfig();
    let told = |arguments: &[&str]| succeed(virtpilot(arguments).env("KUBECONFIG", &kubeconfig)).0;
    let story = told(&["fleet", "explain", "one"]);
    println!("{story}");
    assert_eq!(told(&["explain", "machine", "one", "-n", "ci"]).lines().next(), story.lines().next());
    for part in
        ["MachineClaim ci/one\nReady since ", "ci/linux: 2 CPUs, 2Gi of memory", "readyTime", "Cloning", "addresses  "]
    {
        assert!(story.contains(part), "{part}\n{story}");
    }
    assert!(!story.contains("<- decides"), "{story}");
    let document: Value = serde_json::from_str(&told(&["fleet", "explain", "one", "-o", "json"])).unwrap();
    assert_eq!((&document["state"], &document["subject"]), (&json!("Ready"), &json!("MachineClaim ci/one")));
    let pool = told(&["fleet", "explain", "pool/pool"]);
    println!("{pool}");
    assert!(pool.contains("RunnerPool ci/pool\nReady since ") && pool.contains("wanted   1: demand"), "{pool}");
    fleet.apply("MachineClaim", "lost", json!({"templateRef": {"name": "nowhere"}})).await;
    fleet.reason("MachineClaim", "lost", "TemplateNotFound").await;
    let lost = told(&["fleet", "explain", "machine/lost"]);
    println!("{lost}");
    assert!(lost.contains("Next: create the HypervisorMachineTemplate nowhere in the namespace ci"), "{lost}");
    assert!(lost.contains("there is no HypervisorMachineTemplate ci/nowhere  <- decides"), "{lost}");
    assert!(lost.contains("\n  created            -\n"), "{lost}");
    let unknown = virtpilot(&["fleet", "explain", "on"]).env("KUBECONFIG", &kubeconfig).output().unwrap();
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("there is no MachineClaim \"on\""), "{unknown:?}");
    fleet.delete("MachineClaim", "lost").await;

    fleet.delete("RunnerPool", "pool").await;
    fleet.delete("MachineClaim", "one").await;
    // Every event that was published is in the reference, with its type.
    let events = objects(&fleet.playground, "events.k8s.io/v1", "Event", Some("ci")).list(&ListParams::default()).await;
    let events = events.unwrap().items;
    assert!(events.len() > 5, "{events:?}");
    for event in events {
        let (reason, is_warning) = (event.data["reason"].as_str().unwrap(), event.data["type"] == "Warning");
        let row = api::reference::FLEET_EVENTS.iter().find(|row| row.name == reason);
        assert_eq!(row.map(|row| row.warning), Some(is_warning), "{reason}");
    }
    for kind in [("HypervisorMachineTemplate", "linux"), ("HypervisorCluster", "pve")] {
        fleet.delete(kind.0, kind.1).await;
    }
    eventually("no series is left", async || {
        let text = http(port, "GET", "/metrics")?;
        (text.contains("virtpilot_fleet_leader 1") && !text.contains("ci/")).then_some(())
    })
    .await;
    assert_eq!(fleet.denied(), Vec::<String>::new());
}
