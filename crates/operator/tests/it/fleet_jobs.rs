//! Jobs from their push to nothing left: the operator as a process under its own role, its webhook and bootstrap endpoints, the guest as a
//! process in each machine, and stand-ins of GitHub and Proxmox VE.

use crate::fleet::Fleet;
use crate::fleet_canaries::Canaries;
use crate::operator::{Process, free_port, http};
use futures::TryStreamExt;
use kube::api::ListParams;
use kube::api::{WatchEvent, WatchParams};
use playground::github::{Assignment, Conclusion, Method, Rerun, Setup, Timing as GithubTiming, WebhookChaos};
use playground::job_site::{JobSite, POOL, is_connected};
use playground::proxmox::Timing;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SECRETS: &str = "ci/pve-token,ci/pve-ca,ci/github,ci/webhook";

/// Everything that takes part.
struct Scene {
    fleet: Fleet,
    jobs: JobSite,
    operator: Option<Process>,
    metrics: u16,
    kills: usize,
    canaries: Canaries,
    /// What any operator has counted of deliveries that GitHub was asked to make again.
    redelivered: f64,
}

impl Scene {
    async fn start(assignment: Assignment) -> Scene {
        let fleet = Fleet::install(Timing::short(), SECRETS).await;
        let setup = Setup { assignment, ..Setup::organization(GithubTiming::short()) };
        let jobs = JobSite::start(&fleet.proxmox, setup, Duration::from_millis(200)).unwrap();
        let canaries = Canaries::of(&fleet, &jobs);
        let (operator, metrics, kills, redelivered) = (None, free_port(), 0, 0.0);
        let mut scene = Scene { fleet, jobs, operator, metrics, kills, canaries, redelivered };
        scene.restart();
        scene.fleet.hypervisor().await;
        for (name, data) in scene.jobs.secrets() {
            scene.fleet.secret(name, data).await;
        }
        scene
    }

    /// Kills the operator, if it runs, and starts it again as the same pod.
    fn restart(&mut self) {
        self.operator = None;
        let (bootstrap, webhooks) = (self.jobs.bootstrap, self.jobs.webhooks);
        let metrics = format!("127.0.0.1:{}", self.metrics);
        let pod = "virtpilot-fleet-0";
        self.operator = Some(self.fleet.replica_with_all_servers(pod, bootstrap, webhooks, &metrics));
    }

    /// The pool, which hears of jobs from these sources; with more settings.
    async fn hear_from(&self, sources: &[&str], more: Value) {
        let mut pool = self.jobs.pool(sources, 12);
        let github = pool["workload"]["config"]["github"].as_object_mut().unwrap();
        github.extend(more.as_object().unwrap().clone());
        github.retain(|_, value| !value.is_null());
        self.fleet.apply("RunnerPool", POOL, pool).await;
        self.fleet.status("RunnerPool", POOL, "connected", is_connected).await;
    }

    /// Looks for secrets, and at what the operator has counted. It may have just begun.
    async fn look(&mut self) {
        let metrics = http(self.metrics, "GET", "/metrics").unwrap_or_default();
        let counted = metrics.lines().find_map(|line| line.strip_prefix(REDELIVERED));
        self.redelivered = counted.and_then(|text| text.trim().parse().ok()).unwrap_or(0.0_f64).max(self.redelivered);
        self.canaries.look(&self.fleet, &self.jobs, &metrics).await;
    }

    /// The end: nothing was refused to the operator, and no secret was shown.
    async fn end(mut self) {
        assert_eq!(self.fleet.denied(), Vec::<String>::new());
        let metrics = http(self.metrics, "GET", "/metrics").unwrap();
        self.canaries.look_at_all(&self.fleet, &self.jobs, &metrics).await;
        let secrets = self.canaries.end();
        assert!(secrets >= 50, "{secrets}");
    }

    /// Pushes jobs a few at a time, runs five of them again, kills the operator three times while jobs run, and waits for all.
    async fn run(&mut self, jobs: usize, chaos: WebhookChaos) {
        let begun = Instant::now();
        let mut looked = begun;
        self.jobs.github.with(|state, _| state.chaos = chaos);
        let before: BTreeSet<u64> = self.jobs.github.with(|state, _| state.jobs().keys().copied().collect());
        let mut runs = Vec::new();
        let mut rerun = BTreeSet::new();
        let kills = self.kills;
        while runs.len() < jobs || rerun.len() < 5 || self.jobs.open() > 0 {
            let done = runs.len();
            if done < jobs && self.jobs.open() < 30 {
                for number in done..(done + 5).min(jobs) {
                    runs.push(self.jobs.push(["shop", "site"][number % 2], &format!("build-{number}")));
                }
            }
            if rerun.len() < 5
                && let Some(run) = runs.iter().find(|run| !rerun.contains(*run)).copied()
                && !self.jobs.github.with(|state, now| state.rerun(run, Rerun::All, now)).is_empty()
            {
                rerun.insert(run);
            }
            // In the first, the second and the last quarter of the work.
            let wanted = [jobs / 5, jobs / 2, jobs].iter().filter(|after| done >= **after).count();
            if self.kills - kills < wanted && self.jobs.running() > 0 {
                self.restart();
                self.kills += 1;
            }
            if looked.elapsed() > Duration::from_secs(2) {
                self.look().await;
                looked = Instant::now();
            }
            let open = self.jobs.open();
            assert!(begun.elapsed() < Duration::from_secs(420), "{open} jobs are left after 420 s:\n{}", self.story());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(self.kills - kills, 3);
        // Every attempt of every job was run once, and by a machine of its own.
        let (wanted, executions) = self.jobs.github.with(|state, _| {
            let wanted: BTreeSet<u64> = state.jobs().keys().copied().filter(|id| !before.contains(id)).collect();
            let ran: Vec<(u64, u64)> = state.executions().iter().map(|one| (one.job, one.runner)).collect();
            (wanted, ran.into_iter().filter(|(job, _)| !before.contains(job)).collect::<Vec<_>>())
        });
        assert_eq!(wanted.len(), jobs + 5);
        let times = |each: fn(&(u64, u64)) -> u64| {
            let mut counts = BTreeMap::<u64, usize>::new();
            executions.iter().for_each(|one| *counts.entry(each(one)).or_default() += 1);
            counts
        };
        assert!(times(|one| one.0).values().all(|count| *count == 1), "a job was run twice");
        assert!(times(|one| one.1).values().all(|count| *count == 1), "a runner had two jobs");
        assert_eq!(executions.len(), jobs + 5);
        self.is_nothing_left(begun).await;
        println!("{jobs} jobs, 5 of them twice, 3 kills: {:.1} s", begun.elapsed().as_secs_f64());
    }

    /// How many jobs were run by runners of the scale set.
    fn of_the_scale_set(&self) -> usize {
        self.jobs.github.with(|state, _| state.jobs().values().filter(|job| job.assigned.is_some()).count())
    }

    /// No claim, no runner, no machine and no image is left.
    async fn is_nothing_left(&self, begun: Instant) {
        loop {
            let claims = self.fleet.api("MachineClaim").list(&ListParams::default()).await.unwrap().items;
            let runners = self.jobs.runners();
            let machines = self.fleet.machines();
            if claims.is_empty() && runners == 0 && machines.0.is_empty() && machines.1 == 0 {
                return;
            }
            let late = begun.elapsed() > Duration::from_secs(480);
            assert!(!late, "{} claims, {runners} runners and {machines:?} are left:\n{}", claims.len(), self.story());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What helps to understand a failure.
    fn story(&self) -> String {
        let jobs = self.jobs.github.with(|state, _| {
            let open = state.jobs().values().filter(|job| !job.is_completed());
            open.map(|job| format!("job {} {:?} assigned {:?}\n", job.id, job.state, job.assigned)).collect::<String>()
        });
        let runners = self.jobs.github.with(|state, _| {
            let all = state.runners().values();
            all.map(|one| format!("runner {} {} online {} job {:?}\n", one.id, one.name, one.is_online, one.job))
                .collect::<String>()
        });
        let said = self.jobs.machines.said();
        let tail = said.lines().rev().take(30).collect::<Vec<_>>().join("\n");
        format!("{jobs}{runners}{tail}\n{}", self.fleet.playground.folder().join("fleet.log").display())
    }
}

/// A fifth of the webhooks is lost, half of those without a trace, and a tenth arrives twice.
const CHAOS: WebhookChaos =
    WebhookChaos { lost: 10, forgotten: 10, duplicated: 10, late: 5, late_by: Duration::from_millis(300) };

/// As a metric is written.
const REDELIVERED: &str = "virtpilot_fleet_webhook_redeliveries_total{result=\"asked\"}";
const NONE: WebhookChaos = WebhookChaos { lost: 0, forgotten: 100, duplicated: 0, late: 0, late_by: Duration::ZERO };

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_jobs_are_run_once_each_although_webhooks_are_lost_and_the_operator_is_killed() {
    let mut scene = Scene::start(Assignment::Acquire).await;
    let address = format!("http://127.0.0.1:{}/webhooks/github", scene.jobs.webhooks);
    scene.hear_from(&["Webhook", "Poll"], json!({"webhookAddress": address})).await;
    scene.run(200, CHAOS).await;
    // What GitHub could not deliver was delivered again.
    let asked = scene.jobs.github.count(Method::Post, "/attempts");
    assert!(asked > 0 && scene.redelivered > 0.0, "{asked} requests, {} counted", scene.redelivered);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_a_scale_set_are_run_once_each_without_webhooks() {
    let mut scene = Scene::start(Assignment::Automatic).await;
    scene.hear_from(&["ScaleSet", "Poll"], json!({})).await;
    scene.run(60, NONE).await;
    assert_eq!(scene.of_the_scale_set(), 65);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_run_once_each_with_all_sources_as_it_is_by_default() {
    let mut scene = Scene::start(Assignment::Acquire).await;
    // Without a list of sources.
    scene.hear_from(&["Webhook", "ScaleSet", "Poll"], json!({"sources": null})).await;
    scene.run(60, CHAOS).await;
    // Others ran while nobody listened to it.
    assert!(scene.of_the_scale_set() > 32, "{}", scene.of_the_scale_set());
    scene.end().await;
}

/// What the condition Ready of all claims says, at any time.
async fn said_by_claims(fleet: &Fleet) -> Arc<Mutex<BTreeSet<(String, String)>>> {
    let said = Arc::new(Mutex::new(BTreeSet::new()));
    let (all, claims) = (said.clone(), fleet.api("MachineClaim"));
    let stream = claims.watch(&WatchParams::default().timeout(290), "0").await.unwrap();
    tokio::spawn(async move {
        let mut stream = std::pin::pin!(stream);
        while let Ok(Some(event)) = stream.try_next().await {
            let (WatchEvent::Added(claim) | WatchEvent::Modified(claim)) = event else { continue };
            let ready = crate::fleet::ready(&claim.data["status"]);
            let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
            all.lock().unwrap().insert((text("reason"), text("message")));
        }
    });
    said
}

/// A guest that fails at each of its steps, as a process in a machine: the machine is off, the claim says why, and the job gets another one.
#[tokio::test(flavor = "multi_thread")]
async fn a_claim_ends_with_the_reason_for_every_step_at_which_its_guest_fails() {
    let steps = ["Configure", "Exchange", "Download", "Verify", "Unpack", "Credentials", "Start", "Idle", "Job"];
    let scene = Scene::start(Assignment::Acquire).await;
    scene.hear_from(&["Webhook", "Poll"], json!({})).await;
    let said = said_by_claims(&scene.fleet).await;
    let begun = Instant::now();
    // The main thread has nothing to do at the first one of these steps, and its panic ends the guest all the same.
    let kind = |step: &str| if ["Idle", "Job"].contains(&step) { "main-panic" } else { "panic" };
    scene.jobs.machines.break_next(steps.iter().map(|step| format!("{}:{step}", kind(step))));
    for step in steps {
        scene.jobs.push("shop", step);
    }
    while scene.jobs.open() > 0 {
        assert!(begun.elapsed() < Duration::from_secs(300), "{}", scene.story());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    scene.is_nothing_left(begun).await;
    let said = said.lock().unwrap().clone();
    let unheard = "its guest stopped before it asked for credentials".to_owned();
    for step in steps {
        let expected = match step {
            "Configure" | "Exchange" => unheard.clone(),
            _ => format!("Panicked at {step}: "),
        };
        let fits = |(reason, message): &&(String, String)| reason == "GuestFailed" && message.starts_with(&expected);
        assert!(said.iter().any(|one| fits(&one)), "{step}: {said:#?}\n{}", scene.story());
    }
    // Only the job that ran on such a machine has failed with it.
    let failed = scene.jobs.github.with(|state, _| {
        let failed = state.jobs().values().filter(|job| job.conclusion() != Some(Conclusion::Success));
        failed.map(|job| job.spec.name.clone()).collect::<Vec<_>>()
    });
    assert_eq!(failed.len(), 1, "{failed:?}");
}
