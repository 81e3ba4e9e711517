//! Starts a playground and the operator on it, as it is deployed: with its own rights and no others.

use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use playground::audit::{AuditLog, Requests};
use playground::{Options, Playground, Progress, Scene};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A playground with the operator on it.
pub(crate) struct Running {
    pub(crate) playground: Playground,
    account: playground::service_account::Account,
    operator: Child,
}

pub(crate) const NAMESPACE: &str = "openshift-cnv";
pub(crate) const SERVICE: &str = "virt-platform-autopilot-metrics";
pub(crate) const SWAP: &str = "90-worker-swap-online";

/// A kind by its API version.
pub(crate) fn kind(api_version: &str, kind: &str) -> GroupVersionKind {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    GroupVersionKind::gvk(group, version, kind)
}

impl Running {
    /// Starts both; `autopilot` is the annotation on the HyperConverged, if any.
    pub(crate) async fn start(autopilot: Option<&str>) -> Running {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let options = Options::for_test(Scene::preset("small").unwrap());
        let playground =
            Playground::start(&options, Progress::Silent).await.unwrap_or_else(|trouble| panic!("{trouble}"));
        grant(&playground).await;
        let account = playground.account(NAMESPACE, "virt-platform-autopilot").await.unwrap();
        let operator = spawn(&account.kubeconfig);
        let running = Running { playground, account, operator };
        if let Some(value) = autopilot {
            running.annotate_hco("autopilot", Some(value)).await;
        }
        running
    }

    /// Kills the operator and starts another.
    pub(crate) fn restart(&mut self) {
        self.operator.kill().unwrap();
        self.operator.wait().unwrap();
        self.operator = spawn(&self.account.kubeconfig);
    }

    pub(crate) fn audit(&self) -> AuditLog {
        self.playground.audit_log()
    }

    /// Only the operator's own requests.
    pub(crate) fn own(&self, requests: &Requests) -> Requests {
        requests.by("openshift-cnv/virt-platform-autopilot")
    }

    pub(crate) fn api(&self, kind: &GroupVersionKind) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(kind);
        match kind.kind.as_str() {
            "MachineConfig" => Api::all_with(self.playground.client(), &resource),
            _ => Api::namespaced_with(self.playground.client(), NAMESPACE, &resource),
        }
    }

    pub(crate) fn services(&self) -> Api<DynamicObject> {
        self.api(&kind("v1", "Service"))
    }

    pub(crate) fn machine_configs(&self) -> Api<DynamicObject> {
        self.api(&kind("machineconfiguration.openshift.io/v1", "MachineConfig"))
    }

    /// Sets or removes an annotation of ours on the HyperConverged.
    pub(crate) async fn annotate_hco(&self, key: &str, value: Option<&str>) {
        let api = self.api(&kind("hco.kubevirt.io/v1", "HyperConverged"));
        annotate(&api, "kubevirt-hyperconverged", key, value).await;
    }

    /// All events so far with this reason.
    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let api: Api<Event> = Api::namespaced(self.playground.client(), NAMESPACE);
        let list = api.list(&ListParams::default()).await.unwrap();
        let fits = |event: &&Event| event.reason.as_deref() == Some(reason);
        list.items.iter().filter(fits).filter_map(|event| event.note.clone()).collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.operator.kill();
        let _ = self.operator.wait();
    }
}

/// Sets or removes an annotation of ours.
pub(crate) async fn annotate(api: &Api<DynamicObject>, name: &str, key: &str, value: Option<&str>) {
    let patch = json!({"metadata": {"annotations": {format!("platform.kubevirt.io/{key}"): value}}});
    let params = PatchParams { field_manager: Some("person".into()), ..PatchParams::default() };
    api.patch(name, &params, &Patch::Merge(&patch)).await.unwrap();
}

/// Changes an object as somebody with `kubectl edit` does.
pub(crate) async fn edit(api: &Api<DynamicObject>, name: &str, patch: Value) {
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    api.patch(name, &params, &Patch::Merge(&patch)).await.unwrap();
}

/// Asks until it is so; a busy machine needs a while.
pub(crate) async fn eventually<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "after a minute it is still not so: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The rights of the generated role, and no others.
async fn grant(playground: &Playground) {
    let manifests: Vec<Value> = serde_saphyr::from_multiple(include_str!("../../../../deploy/rbac/role.yaml")).unwrap();
    for manifest in manifests {
        let kind = kind(manifest["apiVersion"].as_str().unwrap(), manifest["kind"].as_str().unwrap());
        let resource = ApiResource::from_gvk(&kind);
        let api: Api<DynamicObject> = match manifest["metadata"]["namespace"].as_str() {
            Some(namespace) => Api::namespaced_with(playground.client(), namespace, &resource),
            None => Api::all_with(playground.client(), &resource),
        };
        let name = manifest["metadata"]["name"].as_str().unwrap();
        api.patch(name, &PatchParams::apply("installer"), &Patch::Apply(&manifest)).await.unwrap();
    }
}

fn spawn(kubeconfig: &std::path::Path) -> Child {
    Command::new(env!("CARGO_BIN_EXE_virtpilot"))
        .args(["run", "--kubeconfig"])
        .arg(kubeconfig)
        .args(["--metrics-bind-address=0", "--health-probe-bind-address=0"])
        .env("LOG_LEVEL", "info")
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}
