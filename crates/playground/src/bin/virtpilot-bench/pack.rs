//! Measures the cost of managing an asset pack, from the API server's audit log.

use super::measure::Measure;
use super::operator_process::{self, OperatorProcess};
use super::{Arguments, crd_growth, deletion, drift, idle, operator_start};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::discovery::Discovery;
use playground::audit::{Kind, Mark, Requests};
use playground::deployment::{self, objects};
use playground::service_account::Account;
use playground::{Options, Playground, Progress, Scene, UserError, user_error};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) const OPERATOR: &str = "openshift-cnv/virt-platform-autopilot";
/// Only an overloaded machine needs longer.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Every managed object has this label, so every object can be changed in it.
pub(crate) const LABEL: &str = "platform.kubevirt.io/managed-by";

/// A cluster and an asset pack for the operator to manage.
pub(crate) struct Bench<'a> {
    pub(crate) playground: Playground,
    pub(crate) account: Account,
    pub(crate) pack: Option<&'a Path>,
    /// The prefix of the measurements' names.
    pub(crate) name: &'static str,
    pub(crate) objects: Vec<Object>,
    /// How many watches the operator opens at its start.
    pub(crate) watches: usize,
}

/// An object of the pack.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) api: Api<DynamicObject>,
    pub(crate) name: String,
    pub(crate) is_core: bool,
}

pub(crate) async fn measure(arguments: &Arguments, pack: Option<&PathBuf>) -> Result<Vec<Measure>, UserError> {
    let scene = Some(Scene::preset("small")?);
    let options = Options { scene, fsync: true, port: None, keep: false, wait_for_slot: false };
    let playground = Playground::start(&options, Progress::Silent).await?;
    let account = match pack {
        None => deployment::grant(&playground).await?,
        Some(folder) => {
            let role = folder.join("role.yaml");
            let role = std::fs::read_to_string(&role).map_err(|error| user_error::io("read", &role, error))?;
            deployment::grant_for(&playground, &role).await?
        }
    };
    let hco = objects(&playground, "hco.kubevirt.io/v1", "HyperConverged", Some(deployment::NAMESPACE));
    let enable = json!({"metadata": {"annotations": {"platform.kubevirt.io/autopilot": "true"}}});
    edit(&hco, "kubevirt-hyperconverged", &enable).await?;
    let name = if pack.is_some() { "80 assets" } else { "2 assets" };
    // The server is still busy right after its start.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut bench =
        Bench { playground, account, pack: pack.map(PathBuf::as_path), name, objects: Vec::new(), watches: 0 };
    let mut measures = Vec::new();

    let operator = operator_start::measure(&mut bench, &mut measures).await?;
    // Fewer objects have a smaller total budget before the operator pauses them.
    let drifts = if pack.is_some() { arguments.drifts } else { 18 };
    drift::measure(&bench, drifts, &mut measures).await?;
    deletion::measure(&bench, &mut measures).await?;
    // Only the large pack is measured for the full idle time.
    let seconds = if pack.is_some() { arguments.idle } else { arguments.idle.min(30) };
    idle::measure(&bench, &operator, seconds, &mut measures).await?;
    measures.push(Measure::one(bench.named("memory afterwards (Pss)"), "MB", operator.pss()?));
    measures.push(Measure::one(bench.named("peak memory (VmHWM)"), "MB", operator.peak_memory()?));
    if pack.is_some() && arguments.crds > 0 {
        crd_growth::measure(&bench, operator, arguments.crds, &mut measures).await?;
    }
    Ok(measures)
}

impl Bench<'_> {
    pub(crate) fn named(&self, what: &str) -> String {
        format!("{}: {what}", self.name)
    }

    pub(crate) fn start_operator(&self) -> Result<OperatorProcess, UserError> {
        OperatorProcess::start(&self.account, self.pack, &self.playground.folder().join("virtpilot.log"))
    }

    pub(crate) fn mark(&self) -> Result<Mark, UserError> {
        self.playground.audit_log().mark()
    }

    pub(crate) fn all(&self, since: Mark) -> Result<Requests, UserError> {
        self.playground.audit_log().since(since)
    }

    /// The operator's requests since a mark.
    pub(crate) fn own(&self, since: Mark) -> Result<Requests, UserError> {
        Ok(self.all(since)?.by(OPERATOR))
    }

    /// Waits until the operator has sent no request for half a second.
    pub(crate) async fn wait_until_idle(&self) -> Result<(), UserError> {
        let started = Instant::now();
        loop {
            let mark = self.mark()?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            if self.own(mark)?.count() == 0 {
                return Ok(());
            }
            check_timeout(started)?;
        }
    }

    /// Waits until the operator has sent this many requests of a kind.
    pub(crate) async fn wait_for(&self, since: Mark, kind: Kind, count: usize) -> Result<(), UserError> {
        let started = Instant::now();
        while self.own(since)?.of(kind).count() < count {
            check_timeout(started)?;
            // Reading the log takes CPU time from what is being measured.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Finds the objects of the pack by letting the operator render them.
    pub(crate) async fn find_objects(&mut self) -> Result<(), UserError> {
        let rendered = operator_process::render(&self.playground, self.pack).await?;
        let found = Discovery::new(self.playground.client()).run_aggregated().await.map_err(|error| refused(&error))?;
        for object in rendered.as_array().into_iter().flatten().map(|asset| &asset["object"]) {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (api_version, kind) = (text(&object["apiVersion"]), text(&object["kind"]));
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            let Some((resource, _)) = found.resolve_gvk(&GroupVersionKind::gvk(group, version, &kind)) else {
                return Err(UserError::new(
                    format!("the cluster does not serve the kind {kind}"),
                    "use another asset pack",
                ));
            };
            let client = self.playground.client();
            let api = match object["metadata"]["namespace"].as_str() {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            let is_core = group.is_empty() || group == "apps" || group.ends_with(".k8s.io");
            self.objects.push(Object { api, name: text(&object["metadata"]["name"]), is_core });
        }
        Ok(())
    }
}

pub(crate) fn check_timeout(started: Instant) -> Result<(), UserError> {
    if started.elapsed() < TIMEOUT {
        return Ok(());
    }
    Err(UserError::new(
        format!("the benchmark timed out after {} s", TIMEOUT.as_secs()),
        "read virtpilot.log in the playground's folder",
    ))
}

/// Changes an object as another field manager.
pub(crate) async fn edit(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<(), UserError> {
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    api.patch_metadata(name, &params, &Patch::Merge(patch)).await.map(|_| ()).map_err(|error| refused(&error))
}

pub(crate) fn refused(error: &kube::Error) -> UserError {
    UserError::new("the API server refused a request of the benchmark", "this is a bug, please report it")
        .with_detail(user_error::server_message(error))
}

pub(crate) fn millis(time: SignedDuration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(crate) fn between(from: Timestamp, to: Timestamp) -> f64 {
    millis(to.duration_since(from))
}
