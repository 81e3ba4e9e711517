//! The demo's chapter of jobs: ten jobs of a stand-in of GitHub arrive, get a machine of their own, run and vanish. Every step is checked.

use super::print;
use super::story::{check, print_step};
use playground::fleet_site::{FleetSite, text};
use playground::github::{Setup, Timing, WebhookEffect, WebhookFault};
use playground::job_site::{self, JobSite};
use playground::{ProxmoxStandIn, UserError, deployment};
use std::collections::BTreeSet;
use std::process::Output;
use std::time::{Duration, Instant};

const JOBS: usize = 10;
/// Fewer than jobs, so that some wait and the queue says why.
const MACHINES: usize = 4;
/// Whose webhook is lost.
const LOST: &str = "build-7";
/// What the story of such a job says, and what that means.
const FOUND: [(&str, &str); 3] = [
    ("it is queued, as a poll says", "found by a poll"),
    ("as a webhook says", "taken by the runner of another job, which got another one"),
    ("as a poll says", "found by a poll"),
];
/// What it must not say.
const NOT_LOST: &str = "it is queued, as a webhook says";

/// A stand-in of GitHub, with times for an audience.
pub(super) fn site(proxmox: &ProxmoxStandIn) -> Result<JobSite, UserError> {
    JobSite::start(proxmox, Setup::organization(Timing::demo()), Duration::from_secs(1))
}

/// Shows jobs on a fleet that runs, and that has a hypervisor and a template.
pub(super) async fn run(fleet: &FleetSite<'_>, jobs: &JobSite) -> Result<(), UserError> {
    print("\nJobs of GitHub Actions on this fleet, with a stand-in of GitHub:\n")?;
    for (name, data) in jobs.secrets() {
        fleet.secret(name, data).await?;
    }
    fleet.create("RunnerPool", job_site::POOL, jobs.pool(&["Webhook", "Poll"], MACHINES)).await?;
    let pool = ("RunnerPool", job_site::POOL);
    fleet.status(pool, "a connection to GitHub", job_site::is_connected).await?;
    print_step(
        "A RunnerPool with a GitHub App: the fleet logs in, and says so.",
        &format!("runners are registered for the organisation acme at {}", jobs.github.address),
    )?;
    let lost = push(jobs);
    let queue = fleet.until("jobs wait in the queue", async || waiting(fleet).await).await?;
    print_step(&format!("{JOBS} jobs are pushed, and one webhook is lost. `virtpilot queue`:"), &indented(&queue))?;
    let begun = Instant::now();
    fleet.until("all jobs are done", async || (jobs.open() == 0).then_some(())).await?;
    let took = begun.elapsed().as_secs_f64();
    let runners: BTreeSet<u64> = jobs.github.with(|state, _| state.executions().iter().map(|one| one.runner).collect());
    check(runners.len() == JOBS, "a runner had more than one job")?;
    print_step(
        "Each job has run once, on a machine of its own.",
        &format!("{JOBS} jobs on {} machines, at most {MACHINES} at a time, in {took:.1} s", runners.len()),
    )?;
    let address = jobs.github.with(|state, _| {
        let job = state.jobs().values().find(|job| job.run == lost)?;
        Some(format!("{}/acme/shop/actions/runs/{}/job/{}", jobs.github.address, job.run, job.id))
    });
    let address = address.unwrap_or_default();
    let story = fleet.until("the job has a story", async || told(fleet, &address).await).await?;
    let found = FOUND.iter().find(|(said, _)| story.contains(said)).map(|(_, found)| *found);
    check(!story.contains(NOT_LOST), "the webhook of the job was not lost")?;
    check(found.is_some(), "nobody knows how the job whose webhook was lost was found")?;
    let found = found.unwrap_or_default();
    print_step(
        &format!("The one without a webhook was {found}. `virtpilot explain job URL` tells its story:"),
        &indented(&story),
    )?;
    let is_empty = async || (jobs.runners() == 0 && fleet.machines().is_empty()).then_some(());
    fleet.until("nothing of the jobs is left", is_empty).await?;
    let line = kubectl(fleet, &["get", "runnerpools", "--namespace=ci"]).await?;
    print_step("Afterwards no machine and no runner is left. `kubectl get runnerpools`:", &indented(&line))
}

/// Pushes all jobs; returns the run of the one whose webhook is lost without a trace.
fn push(jobs: &JobSite) -> u64 {
    let mut lost = 0;
    for number in 1..=JOBS {
        let name = format!("build-{number}");
        let effect = WebhookEffect::Forget;
        if name == LOST {
            jobs.github.with(|state, _| state.inject_webhook(WebhookFault::once("queued", effect)));
        }
        let run = jobs.push("shop", &name);
        if name == LOST {
            lost = run;
        }
    }
    lost
}

/// The queue, once it shows that a job waits for a place in the pool.
async fn waiting(fleet: &FleetSite<'_>) -> Option<String> {
    let queue = virtpilot(fleet, &["queue"]).await.ok()?;
    let shown = String::from_utf8_lossy(&queue.stdout).into_owned();
    shown.contains("is full").then_some(shown)
}

/// The story of a job, once it has ended.
async fn told(fleet: &FleetSite<'_>, address: &str) -> Option<String> {
    let story = virtpilot(fleet, &["explain", "job", address]).await.ok()?;
    let shown = String::from_utf8_lossy(&story.stdout).into_owned();
    (story.status.success() && shown.contains("success")).then_some(shown)
}

async fn virtpilot(fleet: &FleetSite<'_>, arguments: &[&str]) -> Result<Output, UserError> {
    let mut command = tokio::process::Command::new(deployment::binary()?);
    command.args(arguments).env("KUBECONFIG", fleet.playground.kubeconfig()).kill_on_drop(true);
    command.output().await.map_err(|error| UserError::new("virtpilot cannot be run", "run again").with_source(error))
}

async fn kubectl(fleet: &FleetSite<'_>, arguments: &[&str]) -> Result<String, UserError> {
    let mut command = tokio::process::Command::new(fleet.playground.folder().join("kubectl"));
    let output = command.args(arguments).kill_on_drop(true).output().await;
    let output = output.map_err(|error| UserError::new("kubectl cannot be run", "run again").with_source(error))?;
    Ok(text(&String::from_utf8_lossy(&output.stdout).into()))
}

/// Several lines as evidence of a step.
fn indented(text: &str) -> String {
    text.trim_end().lines().collect::<Vec<_>>().join("\n      ")
}
