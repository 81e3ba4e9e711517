//! Measures the cost of managing an asset pack, from the API server's audit log.

use super::measure::Measure;
use super::operator_process::{self, OperatorProcess};
use super::{Arguments, Only, catalogue, crd_growth, deletion, drift, idle, operator_start, plan};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DynamicObject, GroupVersionKind};
use kube::discovery::Discovery;
use playground::audit::{Kind, Mark, Requests};
use playground::deployment::{self, edit, objects};
use playground::service_account::Account;
use playground::user_error::refused;
use playground::{Options, Playground, Progress, Scene, UserError, poll, user_error};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) const OPERATOR: &str = "openshift-cnv/virt-platform-autopilot";
/// Only an overloaded machine needs longer.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(120);
/// The operator's log in the playground's folder.
const LOG: &str = "virtpilot.log";
/// The operator is idle if it sends no request for this long.
const IDLE: Duration = Duration::from_millis(500);
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
    /// Whether it can be copied and deleted without an effect on other objects.
    pub(crate) is_alone: bool,
}

pub(crate) async fn measure(arguments: &Arguments, pack: Option<&PathBuf>) -> Result<Vec<Measure>, UserError> {
    let scene = if pack.is_some() { "small" } else { "gpu" };
    let options = Options::for_bench(Some(Scene::preset(scene)?));
    let playground = Playground::start(&options, Progress::Silent).await?;
    let account = match pack {
        None => catalogue::prepare(&playground).await?,
        Some(folder) => {
            let role = folder.join("role.yaml");
            let role = std::fs::read_to_string(&role).map_err(|error| user_error::io("read", &role, error))?;
            deployment::grant_for(&playground, &role).await?
        }
    };
    let hco = objects(&playground, "hco.kubevirt.io/v1", "HyperConverged", Some(deployment::NAMESPACE));
    let annotations = json!({"platform.kubevirt.io/autopilot": "true", "platform.kubevirt.io/approval": "none"});
    let enable = json!({"metadata": {"annotations": annotations}});
    edit(&hco, "kubevirt-hyperconverged", &enable).await?;
    let name = if pack.is_some() { "80 assets" } else { "the catalogue" };
    // The server is still busy right after its start.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut bench =
        Bench { playground, account, pack: pack.map(PathBuf::as_path), name, objects: Vec::new(), watches: 0 };
    let mut measures = Vec::new();

    if pack.is_some() {
        plan::measure(&mut bench, "a new cluster", &mut measures).await?;
    }
    let operator = operator_start::measure(&mut bench, &mut measures).await?;
    if pack.is_some() {
        plan::measure(&mut bench, "a cluster in sync", &mut measures).await?;
    }
    if arguments.only == Some(Only::Plans) {
        return Ok(measures);
    }
    // Each object has a budget before the operator pauses it.
    let drifts = if pack.is_some() { arguments.drifts } else { arguments.drifts.min(200) };
    drift::measure(&bench, drifts, &mut measures).await?;
    deletion::measure(&bench, &mut measures).await?;
    idle::measure(&bench, &operator, arguments.idle, &mut measures).await?;
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
        OperatorProcess::start(&self.account, self.pack, &self.playground.folder().join(LOG))
    }

    pub(crate) fn mark(&self) -> Result<Mark, UserError> {
        self.playground.audit_log().mark()
    }

    pub(crate) fn all(&self, since: Mark) -> Result<Requests, UserError> {
        self.playground.audit_log().since(since)
    }

    /// The operator's requests since a mark. It renews its lease at fixed times, whatever happens: that is counted only while it is idle.
    pub(crate) fn own(&self, since: Mark) -> Result<Requests, UserError> {
        Ok(self.all(since)?.by(OPERATOR).filter(|request| request.kind != Kind::Lease))
    }

    /// Waits until the operator is idle.
    pub(crate) async fn wait_until_idle(&self) -> Result<(), UserError> {
        self.wait_until_idle_for(IDLE).await
    }

    /// Waits until the operator has been idle for so long.
    pub(crate) async fn wait_until_idle_for(&self, time: Duration) -> Result<(), UserError> {
        let begun = self.mark()?;
        let mut mark = begun;
        tokio::time::sleep(time).await;
        let idle = poll::with_timeout(time, TIMEOUT, async || {
            let since = std::mem::replace(&mut mark, self.mark()?);
            Ok((self.own(since)?.count() == 0).then_some(()))
        });
        idle.await?.ok_or_else(|| self.not_done("the operator is idle", begun))
    }

    /// Waits until the operator has sent this many requests of a kind.
    pub(crate) async fn wait_for(&self, since: Mark, kind: Kind, count: usize) -> Result<(), UserError> {
        self.wait_until(since, |own| {
            let missing = count.saturating_sub(own.of(kind).count());
            (missing > 0).then(|| format!("{missing} more requests of the kind {kind:?}, which makes {count}"))
        })
        .await
    }

    /// Waits until nothing is missing from the operator's requests since a mark; else the error says what is.
    pub(crate) async fn wait_until(
        &self,
        since: Mark,
        missing: impl Fn(&Requests) -> Option<String>,
    ) -> Result<(), UserError> {
        // Reading the log takes CPU time from what is being measured, so not more often than this.
        let interval = Duration::from_millis(20);
        let mut last = None;
        let done = poll::with_timeout(interval, TIMEOUT, async || {
            last = missing(&self.own(since)?);
            Ok(last.is_none().then_some(()))
        });
        done.await?.ok_or_else(|| self.not_done(&last.unwrap_or_default(), since))
    }

    /// The error for something that the operator did not do in time, with what it did instead.
    fn not_done(&self, what: &str, since: Mark) -> UserError {
        let requests = counts(&self.own(since).unwrap_or_default());
        let log = std::fs::read_to_string(self.playground.folder().join(LOG)).unwrap_or_default();
        let log: Vec<&str> = log.lines().rev().take(10).collect();
        let seen: Vec<String> = requests.into_iter().chain(log.into_iter().rev().map(str::to_owned)).collect();
        timed_out(what, TIMEOUT).with_detail(seen.join("\n"))
    }

    /// Finds the objects of the pack by letting the operator render them.
    pub(crate) async fn find_objects(&mut self) -> Result<(), UserError> {
        self.objects.clear();
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
            // All depends on the HyperConverged, a namespace contains others, and a second KubeletConfig would be in the way of ours.
            let is_alone = !["HyperConverged", "Namespace", "KubeletConfig"].contains(&kind.as_str());
            self.objects.push(Object { api, name: text(&object["metadata"]["name"]), is_core, is_alone });
        }
        Ok(())
    }
}

/// Repeats an attempt until it returns a value, or fails after the timeout with what was waited for.
pub(crate) async fn poll_until<T>(
    what: &str,
    interval: Duration,
    attempt: impl AsyncFnMut() -> Result<Option<T>, UserError>,
) -> Result<T, UserError> {
    poll::with_timeout(interval, TIMEOUT, attempt).await?.ok_or_else(|| timed_out(what, TIMEOUT))
}

/// The error for something that did not happen in time.
pub(crate) fn timed_out(what: &str, timeout: Duration) -> UserError {
    UserError::new(
        format!("not within {} s: {what}", timeout.as_secs()),
        "run the benchmark again on an idle machine; if it fails again, report what is missing",
    )
}

pub(crate) fn millis(time: SignedDuration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(crate) fn between(from: Timestamp, to: Timestamp) -> f64 {
    millis(to.duration_since(from))
}

/// How often each request was sent.
pub(crate) fn counts(requests: &Requests) -> Vec<String> {
    let mut counts = BTreeMap::<String, usize>::new();
    for request in &requests.0 {
        *counts.entry(format!("{} {} {}", request.verb, request.resource, request.code)).or_default() += 1;
    }
    counts.iter().map(|(request, count)| format!("{count} x {request}")).collect()
}
