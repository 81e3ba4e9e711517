//! Measures jobs on machines of the fleet: from a webhook to the request to clone, and from the end of a job to its machine gone.

use super::measure::Measure;
use super::operator_process::OperatorProcess;
use playground::fleet_site::{self, FleetSite};
use playground::github::{Setup, Timing as GithubTiming};
use playground::job_site::{JobSite, POOL, is_connected};
use playground::proxmox::{Options, Setup as ProxmoxSetup, Timing};
use playground::{Options as PlaygroundOptions, Playground, Progress, ProxmoxStandIn, Scene, UserError};
use std::time::{Duration, Instant};

/// One after the other, and the same number at once.
const JOBS: usize = 100;
/// From a webhook to the request to clone, in milliseconds: half of them, and 99 of a hundred.
const CLONE_ASKED: (f64, f64) = (30.0, 150.0);
/// From the end of a job to its machine gone, in seconds.
const GONE: f64 = 2.0;

pub(crate) async fn measure() -> Result<Vec<Measure>, UserError> {
    let playground =
        Playground::start(&PlaygroundOptions::for_bench(Some(Scene::preset("small")?)), Progress::Silent).await?;
    let account = fleet_site::install(&playground).await?;
    let log = playground.folder().join("fleet.log");
    let options = Options { setup: ProxmoxSetup::cluster(Timing::short()), port: None };
    let site = FleetSite { playground: &playground, proxmox: ProxmoxStandIn::start(&options)? };
    let setup = Setup::organization(GithubTiming::short());
    let jobs = JobSite::start(&site.proxmox, setup, Duration::from_millis(100))?;
    let _operator = OperatorProcess::start_fleet_with(&account, &jobs.arguments(), &log)?;
    site.connect(site.token().1).await?;
    site.add_template().await?;
    for (name, data) in jobs.secrets() {
        site.secret(name, data).await?;
    }
    site.create("RunnerPool", POOL, jobs.pool(&["Webhook", "Poll"], 12)).await?;
    site.status(("RunnerPool", POOL), "a connection to GitHub", is_connected).await?;
    let (mut asked, mut gone, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..JOBS {
        eprint!("\rfleet: job {} of {JOBS}   ", round + 1);
        site.proxmox.forget_requests();
        let (begun, started) = (site.proxmox.elapsed(), Instant::now());
        jobs.push("shop", &format!("job-{round}"));
        site.until("the job is done", async || (jobs.open() == 0).then_some(())).await?;
        let ended = Instant::now();
        site.until("its machine is gone", async || site.machines().is_empty().then_some(())).await?;
        gone.push(ended.elapsed().as_secs_f64());
        whole.push(started.elapsed().as_secs_f64());
        let requests = site.proxmox.requests();
        let Some(clone) = requests.iter().find(|line| line.path.ends_with("/clone")) else {
            return Err(UserError::new("a job ran without a request to clone a machine", "look at the fleet's log"));
        };
        let took = clone.at.saturating_sub(begun);
        asked.push(took.saturating_sub(GithubTiming::short().webhook).as_secs_f64() * 1000.0);
        site.until("its claim is gone", async || {
            let claims = site.api("MachineClaim").list(&kube::api::ListParams::default()).await.ok()?;
            (claims.items.is_empty() && jobs.runners() == 0).then_some(())
        })
        .await?;
    }
    let begun = Instant::now();
    for number in 0..JOBS {
        jobs.push("site", &format!("many-{number}"));
    }
    site.until("all jobs are done", async || (jobs.open() == 0).then_some(())).await?;
    let together = begun.elapsed().as_secs_f64();
    eprintln!();
    Ok(vec![
        Measure::of("fleet: webhook to the request to clone", "ms", asked)
            .at_most(CLONE_ASKED.0)
            .p99_at_most(CLONE_ASKED.1),
        Measure::of("fleet: end of a job to its machine gone", "s", gone).at_most(GONE),
        Measure::of("fleet: job pushed to its machine gone", "s", whole),
        Measure::one(format!("fleet: {JOBS} jobs at once on 12 machines"), "s", together),
    ])
}
