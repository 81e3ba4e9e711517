//! Moves from the predecessor and upgrades restart no node without approval, delete nothing and report differences.

use crate::life_cycle_scenario::{LIFE_CYCLE, apply_as_us};
use crate::operator::{
    NAMESPACE, Process, Running, SERVICE, SMALL, SWAP, annotate, digest_in, edit, eventually, quiet,
};
use kube::api::{Api, DynamicObject, PostParams};
use playground::audit::Kind;
use playground::deployment;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// The object that our pack renders for an asset, with the predecessor's label.
fn rendered(running: &Running, asset: &str) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_virtpilot"))
        .args(["render", "--output=json", "--asset", asset, "--assets-dir", SMALL, "--kubeconfig"])
        .arg(running.kubeconfig())
        .output()
        .unwrap();
    let mut object = serde_json::from_slice::<Value>(&output.stdout).unwrap()[0]["object"].take();
    object["metadata"]["labels"][api::MANAGED_BY.0] = json!(api::MANAGED_BY.1);
    object
}

/// Creates the expired lease of a pod of the predecessor.
async fn create_expired_lease(running: &Running) {
    let leases = deployment::objects(&running.playground, "coordination.k8s.io/v1", "Lease", Some(NAMESPACE));
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": api::LEASE},
        "spec": {"holderIdentity": "virt-platform-autopilot-6d5f-x7k_1b2c", "leaseDurationSeconds": 15, "leaseTransitions": 3,
            "acquireTime": "2026-01-01T00:00:00.000000Z", "renewTime": "2026-01-02T00:00:00.000000Z"}});
    leases.create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await.unwrap();
}

async fn version(api: &Api<DynamicObject>, name: &str) -> String {
    api.get(name).await.unwrap().metadata.resource_version.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn moving_from_the_predecessor_restarts_and_deletes_nothing_and_reports_differences() {
    let running = Running::without_operator().await;
    running.annotate_hco("autopilot", Some("true")).await;
    create_expired_lease(&running).await;
    let (services, machines) = (running.services(), running.machine_configs());
    let mut service = rendered(&running, "metrics-service");
    service["spec"]["ports"][0]["targetPort"] = json!(9090);
    apply_as_us(&services, &service).await;
    let (ours, mut theirs) = (rendered(&running, "swap-enable"), rendered(&running, "swap-enable"));
    theirs["spec"]["config"]["ignition"]["version"] = json!("3.5.0");
    apply_as_us(&machines, &theirs).await;
    let (before, mark) = (version(&machines, SWAP).await, running.audit().mark().unwrap());

    let operator = Process::start_as("pod", running.kubeconfig());
    let taken = eventually("the Service is taken over", async || running.events("TakenOver").await.pop()).await;
    assert!(taken.contains(".spec.ports[0].targetPort (9090 -> "), "{taken}");
    let required =
        eventually("the difference is reported", async || running.events("ApprovalRequired").await.pop()).await;
    assert!(required.contains(r#".spec.config.ignition.version ("3.5.0" -> "3.2.0")"#), "{required}");
    quiet(&running).await;
    let own = running.own(&running.audit().since(mark).unwrap());
    assert_eq!(
        own.of(Kind::Write).filter(|request| request.resource.starts_with("machineconfigs")).count(),
        0,
        "no High write"
    );
    assert_eq!(own.filter(|request| request.verb == "delete").count(), 0, "no delete");
    assert_eq!(version(&machines, SWAP).await, before);
    let service = services.get(SERVICE).await.unwrap();
    assert!(!service.metadata.annotations.unwrap().contains_key(api::annotation::ORIGIN), "its origin is unknown");
    // Approving exactly this change applies it.
    let digest = digest_in(&required);
    running.annotate_hco("approved", digest).await;
    eventually("the approved change is applied", async || {
        let found = machines.get(SWAP).await.unwrap();
        (found.data["spec"]["config"]["ignition"]["version"] == "3.2.0").then_some(())
    })
    .await;
    assert_eq!(operator.terminate(), Some(0));

    // An object without a difference is managed without a write.
    machines.delete(SWAP, &Default::default()).await.unwrap();
    apply_as_us(&machines, &ours).await;
    let _machine_config_operator = running.roll_out(SWAP).await;
    running.annotate_hco("approved", None).await;
    let before = version(&machines, SWAP).await;
    let _operator = Process::start_as("pod", running.kubeconfig());
    edit(&services, SERVICE, json!({"metadata": {"labels": {"app": "else"}}})).await;
    eventually("the operator corrects drift", async || {
        let labels = services.get(SERVICE).await.unwrap().metadata.labels.unwrap();
        (labels["app"] != "else").then_some(())
    })
    .await;
    quiet(&running).await;
    assert_eq!(version(&machines, SWAP).await, before, "an object in sync is not written");
    edit(&machines, SWAP, json!({"spec": {"kernelArguments": ["rogue"]}})).await;
    edit(&machines, SWAP, json!({"spec": {"config": {"ignition": {"version": "3.4.0"}}}})).await;
    eventually("the drift is corrected", async || {
        let found = machines.get(SWAP).await.unwrap();
        (found.data["spec"]["config"]["ignition"]["version"] == "3.2.0").then_some(())
    })
    .await;
}

/// Writes the pack of the life cycle scenario with other content.
fn write_pack(folder: &Path, machines: &str, settings: &str) {
    for part in ["active", "tombstones"] {
        std::fs::create_dir_all(folder.join(part)).unwrap();
        for file in std::fs::read_dir(Path::new(LIFE_CYCLE.pack).join(part)).unwrap() {
            let path = file.unwrap().path();
            let text = std::fs::read_to_string(&path).unwrap();
            let text = match path.file_name().unwrap().to_str().unwrap() {
                "machines.yaml.tpl" => text.replace("life=1", machines),
                "settings.yaml.tpl" => text.replace("one", settings),
                _ => text,
            };
            std::fs::write(folder.join(part).join(path.file_name().unwrap()), text).unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_requires_approval_for_changes_that_restart_nodes_and_applies_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let pack = folder.path().to_str().unwrap().to_owned();
    write_pack(folder.path(), "life=1", "one");
    let mut running = Running::with_pack(LIFE_CYCLE.role, &["--assets-dir", &pack]).await;
    running.annotate_hco("enable-machines", Some("true")).await;
    running.annotate_hco("autopilot", Some("true")).await;
    let required = eventually("an approval is required", async || running.events("ApprovalRequired").await.pop()).await;
    running.annotate_hco("approved", digest_in(&required)).await;
    let (machines, maps) = (running.machine_configs(), running.config_maps());
    let argument = async || {
        machines.get_opt("99-worker-life").await.unwrap()?.data["spec"]["kernelArguments"][0]
            .as_str()
            .map(str::to_owned)
    };
    eventually("the approved MachineConfig is created", async || {
        argument().await.filter(|argument| argument == "life=1")
    })
    .await;
    running.stop();
    write_pack(folder.path(), "life=2", "two");
    running.restart();
    eventually("the low-impact change is applied", async || {
        let settings = maps.get_opt("life-settings").await.unwrap()?;
        (settings.data["data"]["first"] == "two").then_some(())
    })
    .await;
    let required = eventually("the High change requires another approval", async || {
        running.events("ApprovalRequired").await.into_iter().find(|note| note.contains("changing it"))
    })
    .await;
    assert!(required.contains(r#".spec.kernelArguments[0] ("life=1" -> "life=2")"#), "{required}");
    quiet(&running).await;
    assert_eq!(argument().await.unwrap(), "life=1");
    let digest = digest_in(&required);
    let hco = deployment::objects(&running.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
    annotate(&hco, api::hco::NAME, "approved", digest).await;
    eventually("the approved change is applied", async || argument().await.filter(|argument| argument == "life=2"))
        .await;
    // An upgrade that makes an asset opt-in prunes nothing.
    running.stop();
    let catalogue = folder.path().join("active/metadata.yaml");
    let text = std::fs::read_to_string(&catalogue).unwrap();
    let conditions = "conditions: [{type: annotation, key: platform.kubevirt.io/enable-settings}]";
    let asset = "path: active/settings.yaml.tpl, install: ";
    let changed = text.replace(&format!("{asset}always,"), &format!("{asset}opt-in, {conditions},"));
    assert!(changed != text);
    std::fs::write(&catalogue, changed).unwrap();
    running.restart();
    eventually("the object that stays is reported", async || {
        running.events("LeftBehind").await.into_iter().find(|note| note.contains("opted out of it"))
    })
    .await;
    assert!(maps.get_opt("life-settings").await.unwrap().is_some());
}
