//! The advisor on a real API server: a profile is planned, approved and applied, as a person sees it with kubectl.

use crate::crds::install;
use crate::operator::{NAMESPACE, Process, eventually, playground_of};
use catalog::profile;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use playground::deployment::objects;
use playground::{MachineConfigOperator, Playground, Scene, Timing};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::Duration;

pub(crate) const DENSITY: &str = "virt-higher-density";
pub(crate) const SWAP: &str = "90-worker-swap-online";
const LONG: Duration = Duration::from_secs(40);

/// A cluster with the advisor.
pub(crate) struct Advised {
    pub(crate) playground: Playground,
    process: Option<Process>,
}

impl Advised {
    /// Starts a playground with the CRD, and the advisor with all rights.
    pub(crate) async fn start(workers: usize) -> Advised {
        Advised::on(Scene { workers, ..Scene::preset("small").unwrap() }).await
    }

    pub(crate) async fn on(scene: Scene) -> Advised {
        let playground = playground_of(scene).await;
        install(&playground, &profile::crd(&crate::catalogue::catalogue().profiles)).await;
        let mut advised = Advised { playground, process: None };
        advised.restart();
        let profiles = advised.profiles();
        eventually("the kind is served", async || profiles.list(&Default::default()).await.ok()).await;
        advised
    }

    /// Kills the advisor, if it runs, and starts it.
    pub(crate) fn restart(&mut self) {
        self.restart_with("0");
    }

    /// The same; its metrics are served at this address.
    pub(crate) fn restart_with(&mut self, metrics: &str) {
        self.process = None;
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        command.args(["run", "--products=advisor", "--health-probe-bind-address=0"]);
        command.args(["--metrics-bind-address", metrics]);
        command.arg("--kubeconfig").arg(self.playground.kubeconfig());
        command.env("LOG_LEVEL", "info").stdin(Stdio::null());
        self.process = Some(Process::of(&mut command));
    }

    /// The memory of the advisor in MB.
    pub(crate) fn memory(&self) -> f64 {
        self.process.as_ref().unwrap().memory()
    }

    pub(crate) fn profiles(&self) -> Api<DynamicObject> {
        objects(&self.playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None)
    }

    pub(crate) fn machine_configs(&self) -> Api<DynamicObject> {
        objects(&self.playground, "machineconfiguration.openshift.io/v1", "MachineConfig", None)
    }

    pub(crate) fn hco(&self) -> Api<DynamicObject> {
        objects(&self.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE))
    }

    pub(crate) async fn machine_config_operator(&self) -> MachineConfigOperator {
        self.playground.start_machine_config_operator(Timing::short()).await.unwrap()
    }

    /// Creates or changes the object of a profile.
    pub(crate) async fn ask(&self, name: &str, spec: Value) {
        let mut spec = spec;
        spec["profile"] = json!(name);
        let object = json!({"apiVersion": "advisor.kubevirt.io/v1alpha1", "kind": "VirtPlatformConfig",
            "metadata": {"name": name}, "spec": spec});
        let params = PatchParams::apply("admin").force();
        eventually("the object is accepted", async || {
            self.profiles().patch(name, &params, &Patch::Apply(&object)).await.ok()
        })
        .await;
    }

    /// Asks for a plan, and approves it as it is shown.
    pub(crate) async fn review_and_apply(&self, name: &str, mut spec: Value) {
        spec["action"] = json!("DryRun");
        self.ask(name, spec.clone()).await;
        let status = self.phase(name, "ReviewRequired").await;
        (spec["action"], spec["approvedPlan"]) = (json!("Apply"), status["planDigest"].clone());
        self.ask(name, spec).await;
    }

    /// The status of a profile, once it fits and is about the present spec.
    pub(crate) async fn status(&self, name: &str, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let last = std::sync::Mutex::new(Value::Null);
        let found = tokio::time::timeout(LONG, async {
            loop {
                if let Ok(object) = self.profiles().get(name).await {
                    let status = object.data["status"].clone();
                    let is_current = status["observedGeneration"].as_i64() == object.metadata.generation;
                    if is_current && fits(&status) {
                        return status;
                    }
                    *last.lock().unwrap() = status;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        found.unwrap_or_else(|_| panic!("{name} never gets {what}: {:#}", last.lock().unwrap()))
    }

    pub(crate) async fn phase(&self, name: &str, phase: &str) -> Value {
        self.status(name, phase, |status| status["phase"] == phase).await
    }
}

pub(crate) fn item<'a>(status: &'a Value, name: &str) -> &'a Value {
    let mut items = status["items"].as_array().into_iter().flatten();
    items.find(|item| item["name"] == name).unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_planned_approved_rolled_out_and_rolled_back() {
    let advised = Advised::start(3).await;
    let mut stand_in = advised.machine_config_operator().await;
    advised.ask(DENSITY, json!({"action": "DryRun"})).await;
    let status = advised.phase(DENSITY, "ReviewRequired").await;
    let swap = item(&status, "enable-kubelet-swap");
    assert_eq!(swap["operation"], "Create");
    assert_eq!(swap["impactSeverity"], "High");
    assert_eq!(swap["restarts"], json!(["worker-0", "worker-1", "worker-2"]));
    let density = item(&status, "configure-higher-density");
    assert_eq!(density["operation"], "Update");
    assert!(density["diff"].as_str().unwrap().contains("memoryOvercommitPercentage"), "{density:#}");
    assert!(advised.machine_configs().get_opt(SWAP).await.unwrap().is_none(), "DryRun writes nothing");
    let digest = status["planDigest"].as_str().unwrap().to_owned();

    advised.ask(DENSITY, json!({"action": "Apply", "approvedPlan": digest})).await;
    // The overcommit waits for swap on all nodes.
    let status = advised.phase(DENSITY, "InProgress").await;
    assert_eq!(item(&status, "configure-higher-density")["state"], "Pending", "{status:#}");
    let percentage = async || {
        let hco = advised.hco().get("kubevirt-hyperconverged").await.unwrap();
        hco.data.pointer("/spec/virtualization/higherWorkloadDensity/memoryOvercommitPercentage").cloned()
    };
    assert_eq!(percentage().await, Some(json!(100)), "the default of the HCO");
    let status = advised.phase(DENSITY, "Completed").await;
    assert!(status["items"].as_array().unwrap().iter().all(|item| item["state"] == "Completed"), "{status:#}");
    assert_eq!(percentage().await, Some(json!(150)));
    for node in ["worker-0", "worker-1", "worker-2"] {
        assert_eq!(stand_in.restarts(node), 1, "{node}");
    }

    advised.ask(DENSITY, json!({"action": "DryRun", "rollback": true})).await;
    let status = advised.phase(DENSITY, "ReviewRequired").await;
    assert_eq!(item(&status, "enable-kubelet-swap")["operation"], "Delete", "{status:#}");
    advised.ask(DENSITY, json!({"action": "Apply", "rollback": true})).await;
    advised.phase(DENSITY, "Completed").await;
    assert!(advised.machine_configs().get_opt(SWAP).await.unwrap().is_none());
    assert_eq!(percentage().await, Some(json!(100)), "the default of the HCO");
    for node in ["worker-0", "worker-1", "worker-2"] {
        assert_eq!(stand_in.restarts(node), 2, "{node}");
    }
    let _ = &mut stand_in;
}
