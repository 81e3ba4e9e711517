//! Measures the advisor: the time from a change of a spec to the plan in its status, compared with the dry runs that it needs, and its requests.

use super::Arguments;
use super::crd_growth;
use super::measure::{Measure, count};
use super::operator_process::OperatorProcess;
use super::pack::{counts, poll_until};
use futures::future::try_join_all;
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use playground::audit::{Kind, Mark, Requests};
use playground::certificates::ADMIN_USER;
use playground::deployment::{self, objects};
use playground::user_error::refused;
use playground::{Options, Playground, Progress, Scene, UserError};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const ACCOUNT: &str = "virt-advisor-operator";
/// Its user in the audit log.
const USER: &str = "openshift-cnv/virt-advisor-operator";
const PROFILE: &str = "virt-higher-density";
const ROUNDS: usize = 30;
/// What the time is spent with.
const PARTS: [&str; 4] =
    ["until the first request", "reads and dry runs", "until the status is sent", "the write of the status"];
/// After so long everything that follows from a change has happened.
const SETTLED: Duration = Duration::from_secs(10);

pub(crate) async fn measure(arguments: &Arguments) -> Result<Vec<Measure>, UserError> {
    let options = Options::for_bench(Some(Scene::preset("small")?));
    let playground = Playground::start(&options, Progress::Silent).await?;
    deployment::grant_for(&playground, &deployment::manifests(&["--products", "advisor"]).await?).await?;
    let account = playground.account(deployment::NAMESPACE, ACCOUNT).await?;
    // The server is still busy right after its start.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let log = playground.folder().join("virt-advisor.log");
    let operator = OperatorProcess::start_products(&account, "advisor", &log)?;
    let bench = Bench {
        profiles: objects(&playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None),
        playground,
    };
    poll_until("the profile is advertised", Duration::from_millis(20), async || {
        Ok(bench.profiles.get_opt(PROFILE).await.ok().flatten().map(|_| ()))
    })
    .await?;
    let mut measures = Vec::new();
    bench.plans(&mut measures).await?;
    bench.idle(&operator, arguments.idle, &mut measures).await?;
    measures.push(Measure::one("advisor: memory afterwards (Pss)", "MB", operator.pss()?));
    drop(operator);
    bench.both(arguments, &mut measures).await?;
    Ok(measures)
}

struct Bench {
    playground: Playground,
    profiles: Api<DynamicObject>,
}

/// One change of a spec: milliseconds to the plan, in parts too, writes of the status, other requests, and the status.
struct Planned {
    took: f64,
    parts: [f64; PARTS.len()],
    statuses: f64,
    requests: f64,
    status: Value,
}

impl Bench {
    /// The memory of one process that runs both products, with a plan, and what many unrelated CRDs add to it.
    async fn both(&self, arguments: &Arguments, measures: &mut Vec<Measure>) -> Result<(), UserError> {
        let manifests = deployment::manifests(&["--products", "autopilot,advisor"]).await?;
        let account = deployment::grant_for(&self.playground, &manifests).await?;
        let log = self.playground.folder().join("both.log");
        let operator = OperatorProcess::start_products(&account, "autopilot,advisor", &log)?;
        self.change(json!({"action": "Ignore"})).await?;
        self.change(json!({"action": "DryRun"})).await?;
        tokio::time::sleep(SETTLED).await;
        let memory = operator.pss()?;
        measures.push(Measure::one("both products in one process: memory (Pss)", "MB", memory));
        eprintln!("both products: {} more CRDs", arguments.crds);
        crd_growth::create(&self.playground, arguments.crds).await?;
        tokio::time::sleep(SETTLED).await;
        let name = format!("both products in one process: memory growth with {} more CRDs (Pss)", arguments.crds);
        measures.push(Measure::one(name, "MB", operator.pss()? - memory));
        Ok(())
    }

    async fn plans(&self, measures: &mut Vec<Measure>) -> Result<(), UserError> {
        let ([mut whole, mut edits], [mut bare_whole, mut bare_edits]) = ([vec![], vec![]], [vec![], vec![]]);
        let (mut statuses, mut requests) = (Vec::new(), Vec::new());
        let (mut whole_parts, mut edit_parts) = (PARTS.map(|_| Vec::new()), PARTS.map(|_| Vec::new()));
        for round in 0..ROUNDS {
            eprint!("\radvisor: plan {} of {ROUNDS}   ", round + 1);
            let ratio = 101 + 2 * round;
            let options = |ratio: usize| json!({"virtHigherDensity": {"memoryToRequestRatio": ratio}});
            self.change(json!({"action": "Ignore"})).await?;
            let planned = self.change(json!({"action": "DryRun", "options": options(ratio)})).await?;
            let wanted = manifests(&planned.status, |_| true);
            whole.push(planned.took);
            whole_parts.iter_mut().zip(planned.parts).for_each(|(all, part)| all.push(part));
            statuses.push(planned.statuses);
            requests.push(planned.requests);
            bare_whole.push(self.dry_runs(&wanted).await?);
            let planned = self.change(json!({"options": options(ratio + 1)})).await?;
            // Only the object that the option changes is compared again.
            let wanted = manifests(&planned.status, |kind| kind == "HyperConverged");
            edits.push(planned.took);
            edit_parts.iter_mut().zip(planned.parts).for_each(|(all, part)| all.push(part));
            statuses.push(planned.statuses);
            bare_edits.push(self.dry_runs(&wanted).await?);
        }
        eprintln!();
        let both = [
            ("Ignore to a plan", whole, bare_whole, whole_parts),
            ("an edited option to its plan", edits, bare_edits, edit_parts),
        ];
        for (name, took, bare, parts) in both {
            let took = Measure::of(format!("advisor: {name} in the status"), "ms", took);
            let bare = Measure::of("the dry runs that it needs, by the baseline client", "ms", bare);
            let ratio = took.ratio_to(&bare, &format!("advisor: {name}"));
            measures.extend([took, bare, ratio]);
            let parts = PARTS.iter().zip(parts);
            measures.extend(parts.map(|(part, took)| Measure::of(format!("advisor: {name}: {part}"), "ms", took)));
        }
        measures.push(Measure::of("advisor: writes of the status per change", "count", statuses));
        measures.push(Measure::of("advisor: other requests per plan", "count", requests));
        Ok(())
    }

    /// Changes the spec and waits until the status is about it.
    async fn change(&self, spec: Value) -> Result<Planned, UserError> {
        let mark = self.playground.audit_log().mark()?;
        let changed = self
            .profiles
            .patch(PROFILE, &PatchParams::default(), &Patch::Merge(json!({"spec": spec})))
            .await
            .map_err(|error| refused(&error))?;
        // The audit log has the times, and a busy client would slow down the server that is measured.
        let status = poll_until("the status is about the spec", Duration::from_millis(100), async || {
            let object = self.profiles.get(PROFILE).await.map_err(|error| refused(&error))?;
            let is_current = object.data["status"]["observedGeneration"].as_i64() == changed.metadata.generation;
            Ok(is_current.then(|| object.data["status"].clone()))
        })
        .await?;
        // What follows belongs to the same change.
        tokio::time::sleep(Duration::from_millis(300)).await;
        let own = self.own(mark)?;
        let statuses = own.filter(|request| request.resource.starts_with("virtplatformconfigs/status"));
        let all = self.playground.audit_log().since(mark)?.by(ADMIN_USER).of(Kind::Write);
        let ended = |requests: &Requests| requests.0.first().map(|request| request.ended).unwrap_or_default();
        let asked =
            own.filter(|request| request.kind != Kind::Watch && !request.resource.starts_with("virtplatformconfigs"));
        let begun = |requests: &Requests| requests.0.iter().map(|request| request.at).min().unwrap_or_default();
        let last = asked.0.iter().map(|request| request.ended).max().unwrap_or_default();
        let times = [ended(&all), begun(&asked), last, begun(&statuses), ended(&statuses)];
        let others = own.count() - own.of(Kind::Watch).count() - statuses.count();
        Ok(Planned {
            took: milliseconds(ended(&all), ended(&statuses)),
            parts: std::array::from_fn(|part| milliseconds(times[part], times[part + 1])),
            statuses: count(statuses.count()),
            requests: count(others),
            status,
        })
    }

    fn own(&self, since: Mark) -> Result<Requests, UserError> {
        let all = self.playground.audit_log().since(since)?;
        Ok(all.by(USER).filter(|request| ![Kind::Lease, Kind::Event].contains(&request.kind)))
    }

    /// Sends the dry runs of these objects at a time; the milliseconds that they take.
    async fn dry_runs(&self, wanted: &[Value]) -> Result<f64, UserError> {
        let begun = Instant::now();
        let params = PatchParams { dry_run: true, ..PatchParams::apply("baseline").force() };
        try_join_all(wanted.iter().map(async |object| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let namespace = object["metadata"]["namespace"].as_str();
            let api = objects(&self.playground, &text(&object["apiVersion"]), &text(&object["kind"]), namespace);
            let name = text(&object["metadata"]["name"]);
            api.patch(&name, &params, &Patch::Apply(object)).await.map_err(|error| refused(&error))
        }))
        .await?;
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }

    async fn idle(
        &self,
        operator: &OperatorProcess,
        seconds: u64,
        measures: &mut Vec<Measure>,
    ) -> Result<(), UserError> {
        tokio::time::sleep(Duration::from_secs(3)).await;
        eprintln!("advisor: idle for {seconds} s");
        let (mark, cpu) = (self.playground.audit_log().mark()?, operator.cpu()?);
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let own = self.own(mark)?;
        for request in counts(&own) {
            eprintln!("advisor: while idle: {request}");
        }
        let requests = own.count() - own.of(Kind::Watch).count();
        measures.push(Measure::count(
            format!("advisor: requests without watches and its lease in {seconds} s idle"),
            requests,
        ));
        let hours = Duration::from_secs(seconds.max(1)).as_secs_f64() / 3600.0;
        measures.push(Measure::one("advisor: CPU time while idle", "ms per hour", (operator.cpu()? - cpu) / hours));
        Ok(())
    }
}

/// The objects of a plan, of these kinds.
fn manifests(status: &Value, is_wanted: impl Fn(&str) -> bool) -> Vec<Value> {
    let items = status["items"].as_array().into_iter().flatten().map(|item| item["desiredState"].clone());
    items.filter(|object| is_wanted(object["kind"].as_str().unwrap_or_default()) && object.is_object()).collect()
}

fn milliseconds(from: Timestamp, to: Timestamp) -> f64 {
    SignedDuration::as_secs_f64(&to.duration_since(from)) * 1000.0
}
