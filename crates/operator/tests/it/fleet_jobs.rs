//! Jobs from their push to nothing left: the operator as a process under its own role, its webhook and bootstrap endpoints, the guest as a
//! process in each machine, and stand-ins of GitHub and Proxmox VE.

use crate::fleet::Fleet;
use crate::fleet_canaries::Canaries;
use crate::operator::{Process, free_port, http};
use kube::api::ListParams;
use playground::github::{Assignment, Rerun, Setup, Timing as GithubTiming, WebhookChaos};
use playground::job_site::{JobSite, POOL, is_connected};
use playground::proxmox::Timing;
use std::collections::{BTreeMap, BTreeSet};
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
}

impl Scene {
    async fn start(assignment: Assignment) -> Scene {
        let fleet = Fleet::install(Timing::short(), SECRETS).await;
        let setup = Setup { assignment, ..Setup::organization(GithubTiming::short()) };
        let jobs = JobSite::start(&fleet.proxmox, setup, Duration::from_millis(200)).unwrap();
        let canaries = Canaries::of(&fleet, &jobs);
        let mut scene = Scene { fleet, jobs, operator: None, metrics: free_port(), kills: 0, canaries };
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

    /// The pool, which hears of jobs from these sources.
    async fn hear_from(&self, sources: &[&str]) {
        self.fleet.apply("RunnerPool", POOL, self.jobs.pool(sources, 12)).await;
        self.fleet.status("RunnerPool", POOL, "connected", is_connected).await;
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
            if looked.elapsed() > Duration::from_millis(500) {
                looked = Instant::now();
                self.canaries.look(&self.fleet, &self.jobs);
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

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_jobs_are_run_once_each_although_webhooks_are_lost_and_the_operator_is_killed() {
    let mut scene = Scene::start(Assignment::Acquire).await;
    scene.hear_from(&["Webhook", "Poll"]).await;
    scene.run(200, CHAOS).await;
    assert_eq!(scene.fleet.denied(), Vec::<String>::new());
    let metrics = http(scene.metrics, "GET", "/metrics").unwrap();
    scene.canaries.look_at_all(&scene.fleet, &scene.jobs, &metrics).await;
    assert!(scene.canaries.end() >= 50);
}
