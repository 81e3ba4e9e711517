//! Measures `virtpilot plan`, from exec to exit, compared with a client that only sends the dry runs it needs.

use super::measure::Measure;
use super::operator_process;
use super::pack::{Bench, Object};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Patch, PatchParams};
use playground::audit::Kind;
use playground::certificates::ADMIN_USER;
use playground::user_error::refused;
use playground::{UserError, deployment};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// As many as the plan sends concurrently.
const CONCURRENCY: usize = 8;
const ROUNDS: u32 = 32;

/// Plans for the cluster as it is.
pub(crate) async fn measure(bench: &mut Bench<'_>, when: &str, measures: &mut Vec<Measure>) -> Result<(), UserError> {
    eprintln!("{}: plan of {when}", bench.name);
    bench.find_objects().await?;
    // An object that was written a moment ago is read, because times in managedFields are in seconds.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let rendered = operator_process::render(&bench.playground, bench.pack).await?;
    let manifests: Vec<Value> =
        rendered.as_array().into_iter().flatten().map(|asset| asset["object"].clone()).collect();
    let (mut plans, mut dry_runs, mut requests) = (Vec::new(), Vec::new(), 0);
    // Whether the server collects its garbage during one or the other depends on what came before, so their order varies.
    for round in 0..ROUNDS {
        for is_plan in [round.count_ones() % 2 == 0, round.count_ones() % 2 == 1] {
            let (begun, mark) = (Instant::now(), bench.mark()?);
            if is_plan {
                run(bench).await?;
                plans.push(begun.elapsed().as_secs_f64() * 1000.0);
                requests = bench.all(mark)?.by(ADMIN_USER).of(Kind::DryRun).count();
            } else {
                dry_run_all(bench, &manifests).await?;
                dry_runs.push(begun.elapsed().as_secs_f64() * 1000.0);
            }
        }
    }
    let together = plans.iter().sum::<f64>() / dry_runs.iter().sum::<f64>();
    let plan = Measure::of(bench.named(&format!("plan of {when}")), "ms", plans);
    let baseline = Measure::of(bench.named("the dry runs that it needs, by the baseline client"), "ms", dry_runs);
    let ratio = plan.ratio_to(&baseline, &bench.named(&format!("plan of {when}")));
    measures.extend([plan, baseline, ratio]);
    let name = bench.named(&format!("plan of {when}, all rounds together"));
    measures.push(Measure::one(name, "times the baseline", together));
    measures.push(Measure::count(bench.named("dry runs for that"), requests));
    Ok(())
}

async fn run(bench: &Bench<'_>) -> Result<(), UserError> {
    let mut command = tokio::process::Command::new(deployment::binary()?);
    command.args(["plan", "--kubeconfig"]).arg(bench.playground.kubeconfig()).stdout(Stdio::null());
    if let Some(pack) = bench.pack {
        command.arg("--assets-dir").arg(pack);
    }
    let failed = |message: String| UserError::new("there is no plan", "run `virtpilot plan`").with_detail(message);
    let output = command.stderr(Stdio::piped()).output().await.map_err(|error| failed(error.to_string()))?;
    match output.status.code() {
        Some(0 | 2) => Ok(()),
        _ => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

async fn dry_run_all(bench: &Bench<'_>, manifests: &[Value]) -> Result<(), UserError> {
    stream::iter(bench.objects.iter().zip(manifests))
        .map(|(object, manifest)| dry_run(object, manifest))
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    Ok(())
}

async fn dry_run(object: &Object, manifest: &Value) -> Result<(), UserError> {
    let params = PatchParams { dry_run: true, ..PatchParams::apply("bare").force() };
    let applied = object.api.patch(&object.name, &params, &Patch::Apply(manifest)).await;
    applied.map(|_| ()).map_err(|error| refused(&error))
}
