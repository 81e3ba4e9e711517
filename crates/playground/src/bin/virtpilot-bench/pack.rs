//! What keeping one pack costs, counted and timed from the API server's own audit log.

use super::measure::Measure;
use super::subject::{self, Subject};
use super::{Arguments, deletion, drift, growth, idle, start};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::discovery::Discovery;
use playground::audit::{Kind, Mark, Requests};
use playground::deployment::{self, objects};
use playground::service_account::Account;
use playground::{Options, Playground, Progress, Scene, Trouble, trouble};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) const OPERATOR: &str = "openshift-cnv/virt-platform-autopilot";
/// Only a machine in trouble needs longer.
const PATIENCE: Duration = Duration::from_secs(120);
/// Every object we keep has it, so every object can be changed in it.
pub(crate) const LABEL: &str = "platform.kubevirt.io/managed-by";

/// A cluster, a pack and the operator that keeps it.
pub(crate) struct Bench<'a> {
    pub(crate) playground: Playground,
    pub(crate) account: Account,
    pub(crate) pack: Option<&'a Path>,
    /// How figures of this pack are called.
    pub(crate) name: &'static str,
    pub(crate) objects: Vec<Object>,
    /// How many watches a start opens.
    pub(crate) watches: usize,
}

/// One object of the pack.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) api: Api<DynamicObject>,
    pub(crate) name: String,
    pub(crate) is_core: bool,
}

pub(crate) async fn measure(arguments: &Arguments, pack: Option<&PathBuf>) -> Result<Vec<Measure>, Trouble> {
    let scene = Some(Scene::preset("small")?);
    let options = Options { scene, fsync: true, port: None, keep: false, in_turn: false };
    let playground = Playground::start(&options, Progress::Silent).await?;
    let account = match pack {
        None => deployment::grant(&playground).await?,
        Some(folder) => {
            let role = folder.join("role.yaml");
            let role = std::fs::read_to_string(&role).map_err(|error| trouble::io("read", &role, error))?;
            deployment::grant_for(&playground, &role).await?
        }
    };
    let hco = objects(&playground, "hco.kubevirt.io/v1", "HyperConverged", Some(deployment::NAMESPACE));
    let yes = json!({"metadata": {"annotations": {"platform.kubevirt.io/autopilot": "true"}}});
    edit(&hco, "kubevirt-hyperconverged", &yes).await?;
    let name = if pack.is_some() { "80 assets" } else { "2 assets" };
    // A server that has just started is still busy with itself.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut bench =
        Bench { playground, account, pack: pack.map(PathBuf::as_path), name, objects: Vec::new(), watches: 0 };
    let mut measures = Vec::new();

    let subject = start::measure(&mut bench, &mut measures).await?;
    // With fewer objects there is less budget: what is corrected too often is a fight.
    let drifts = if pack.is_some() { arguments.drifts } else { 18 };
    drift::measure(&bench, drifts, &mut measures).await?;
    deletion::measure(&bench, &mut measures).await?;
    // The long quiet is for the large pack.
    let seconds = if pack.is_some() { arguments.idle } else { arguments.idle.min(30) };
    idle::measure(&bench, &subject, seconds, &mut measures).await?;
    let before = subject.pss()?;
    measures.push(Measure::one(bench.named("memory after all that (Pss)"), "MB", before));
    measures.push(Measure::one(bench.named("most memory ever (VmHWM)"), "MB", subject.most_memory()?));
    if pack.is_some() && arguments.crds > 0 {
        growth::measure(&bench, subject, arguments.crds, &mut measures).await?;
    }
    Ok(measures)
}

impl Bench<'_> {
    pub(crate) fn named(&self, what: &str) -> String {
        format!("{}: {what}", self.name)
    }

    pub(crate) fn subject(&self) -> Result<Subject, Trouble> {
        Subject::start(&self.account, self.pack, &self.playground.folder().join("virtpilot.log"))
    }

    pub(crate) fn mark(&self) -> Result<Mark, Trouble> {
        self.playground.audit_log().mark()
    }

    pub(crate) fn all(&self, since: Mark) -> Result<Requests, Trouble> {
        self.playground.audit_log().since(since)
    }

    /// The operator's own requests.
    pub(crate) fn own(&self, since: Mark) -> Result<Requests, Trouble> {
        Ok(self.all(since)?.by(OPERATOR))
    }

    /// Waits until the operator has not asked for anything for a while.
    pub(crate) async fn quiet(&self) -> Result<(), Trouble> {
        let begun = Instant::now();
        loop {
            let mark = self.mark()?;
            tokio::time::sleep(Duration::from_millis(500)).await;
            if self.own(mark)?.count() == 0 {
                return Ok(());
            }
            give_up_after(begun)?;
        }
    }

    /// Waits until the operator has made so many requests of a kind.
    pub(crate) async fn until(&self, since: Mark, kind: Kind, count: usize) -> Result<(), Trouble> {
        let begun = Instant::now();
        while self.own(since)?.of(kind).count() < count {
            give_up_after(begun)?;
            // Reading the log costs time of the machine that is measured.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Finds the objects of the pack, as the operator itself renders them.
    pub(crate) async fn find_objects(&mut self) -> Result<(), Trouble> {
        let rendered = subject::render(&self.playground, self.pack).await?;
        let found = Discovery::new(self.playground.client()).run_aggregated().await.map_err(|error| refused(&error))?;
        for object in rendered.as_array().into_iter().flatten().map(|asset| &asset["object"]) {
            let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (api_version, kind) = (word(&object["apiVersion"]), word(&object["kind"]));
            let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
            let Some((resource, _)) = found.resolve_gvk(&GroupVersionKind::gvk(group, version, &kind)) else {
                return Err(Trouble::new(format!("the cluster does not serve {kind}"), "use another pack"));
            };
            let client = self.playground.client();
            let api = match object["metadata"]["namespace"].as_str() {
                Some(namespace) => Api::namespaced_with(client, namespace, &resource),
                None => Api::all_with(client, &resource),
            };
            let is_core = group.is_empty() || group == "apps" || group.ends_with(".k8s.io");
            self.objects.push(Object { api, name: word(&object["metadata"]["name"]), is_core });
        }
        Ok(())
    }
}

pub(crate) fn give_up_after(begun: Instant) -> Result<(), Trouble> {
    if begun.elapsed() < PATIENCE {
        return Ok(());
    }
    Err(Trouble::new("the operator did not do what is measured", "read virtpilot.log in the playground's folder"))
}

/// Changes an object as somebody else would.
pub(crate) async fn edit(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<(), Trouble> {
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    api.patch_metadata(name, &params, &Patch::Merge(patch)).await.map(|_| ()).map_err(|error| refused(&error))
}

pub(crate) fn refused(error: &kube::Error) -> Trouble {
    Trouble::new("the API server refused a step of the bench", "this is a bug, please report it")
        .because(trouble::server_words(error))
}

pub(crate) fn millis(time: SignedDuration) -> f64 {
    time.as_secs_f64() * 1000.0
}

pub(crate) fn between(from: Timestamp, to: Timestamp) -> f64 {
    millis(to.duration_since(from))
}
