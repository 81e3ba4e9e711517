//! Jobs of GitLab from their push to nothing left: the operator as a process under its own role, the guest as a process in each machine, and
//! stand-ins of GitLab and Proxmox VE.

use crate::fleet::Fleet;
use crate::operator::{Process, eventually_within, free_port};
use crate::packages::{succeed, virtpilot};
use kube::api::ListParams;
use playground::gitlab_site::{GitlabSite, POOL, TAG};
use playground::job_site::is_connected;
use playground::proxmox::Timing;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const SECRETS: &str = "ci/pve-token,ci/pve-ca,ci/gitlab,ci/webhook";
const JOBS: usize = 20;

/// Everything that takes part.
struct Scene {
    fleet: Fleet,
    site: GitlabSite,
    operator: Option<Process>,
}

impl Scene {
    async fn start() -> Scene {
        let fleet = Fleet::install(Timing::short(), SECRETS).await;
        let site = GitlabSite::start(&fleet.proxmox, Duration::from_millis(200)).unwrap();
        let mut scene = Scene { fleet, site, operator: None };
        scene.restart();
        scene.fleet.hypervisor().await;
        for (name, data) in scene.site.secrets() {
            scene.fleet.secret(name, data).await;
        }
        scene
    }

    /// Kills the operator, if it runs, and starts it again as the same pod.
    fn restart(&mut self) {
        self.operator = None;
        let (bootstrap, webhooks) = (self.site.bootstrap, self.site.webhooks);
        let metrics = format!("127.0.0.1:{}", free_port());
        self.operator = Some(self.fleet.replica_with_all_servers("virtpilot-fleet-0", bootstrap, webhooks, &metrics));
    }

    /// Runs jobs of two projects at different depths, a few at a time, and waits for all. One webhook of five is lost, and the operator is
    /// killed once.
    async fn run(&mut self) -> BTreeSet<u64> {
        let begun = Instant::now();
        let (mut jobs, mut was_killed) = (BTreeSet::new(), false);
        loop {
            let done =
                self.site.gitlab.with(|state, _| jobs.iter().filter(|id| state.jobs()[id].status == "success").count());
            if done == JOBS {
                return jobs;
            }
            while jobs.len() < JOBS && jobs.len() < done + 6 {
                let project = ["acme/shop", "acme/lab/robot"][jobs.len() % 2];
                jobs.insert(self.site.push(project, &[TAG]));
            }
            self.site.deliver(|number| number % 5 == 1);
            if done >= JOBS / 2 && !std::mem::replace(&mut was_killed, true) {
                self.restart();
            }
            assert!(begun.elapsed() < Duration::from_secs(300), "{done} jobs are done after 300 s:\n{}", self.story());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// No claim, no runner, no machine and no image is left.
    async fn is_nothing_left(&mut self) {
        let begun = Instant::now();
        loop {
            self.site.deliver(|_| false);
            let claims = self.fleet.api("MachineClaim").list(&ListParams::default()).await.unwrap().items.len();
            let (runners, machines) = (self.site.runners(), self.fleet.machines());
            if claims == 0 && runners == 0 && machines.0.is_empty() && machines.1 == 0 {
                return;
            }
            let is_late = begun.elapsed() > Duration::from_secs(300);
            assert!(!is_late, "{claims} claims, {runners} runners and {machines:?} are left:\n{}", self.story());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What helps to understand a failure.
    fn story(&self) -> String {
        let state = self.site.gitlab.with(|state, _| format!("{:#?}\n{:#?}", state.jobs(), state.runners()));
        let said = self.site.machines.said();
        let tail = said.lines().rev().take(30).collect::<Vec<_>>().join("\n");
        format!("{state}\n{tail}\n{}", self.fleet.playground.folder().join("fleet.log").display())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_gitlab_are_run_once_each_although_webhooks_are_lost_and_nothing_is_left() {
    let mut scene = Scene::start().await;
    scene.fleet.apply("RunnerPool", POOL, scene.site.pool(&["Webhook", "Poll"], 6)).await;
    let status = scene.fleet.status("RunnerPool", POOL, "connected", is_connected).await;
    assert!(status.to_string().contains(&format!("{}/groups/acme", scene.site.gitlab.address)), "{status}");
    // Jobs of others: of another group, with another tag, and one that somebody else's runner has run, whose event has no tags.
    let [secret, gpu, foreign] = [("other/secret", TAG), ("acme/shop", "gpu"), ("acme/shop", "gpu")]
        .map(|(path, tag)| scene.site.push(path, &[tag]));
    scene.site.gitlab.with(|state, now| state.finish(foreign, "success", now));
    let jobs = scene.run().await;
    let runners: BTreeSet<u64> = scene.site.gitlab.with(|state, _| {
        assert!([secret, gpu].iter().all(|id| state.jobs()[id].status == "pending"));
        jobs.iter().filter_map(|id| Some(state.jobs()[id].runner.as_ref()?.0)).collect()
    });
    assert_eq!(runners.len(), JOBS, "each job has a machine of its own");
    scene.is_nothing_left().await;

    // People read of it in the words of GitLab.
    let last = jobs.last().unwrap();
    let page = format!("{}/acme/lab/robot/-/jobs/{last}", scene.site.gitlab.address);
    let kubeconfig = scene.fleet.playground.kubeconfig();
    let told = |arguments: &[&str]| succeed(virtpilot(arguments).env("KUBECONFIG", &kubeconfig)).0;
    // What the lost webhook would have said is in the next poll, which is five minutes away while no job is open.
    let story = eventually_within(Duration::from_secs(330), "the result of the last job is known", async || {
        let story = told(&["explain", "job", &page]);
        story.contains("success").then_some(story)
    })
    .await;
    println!("{story}");
    assert!(story.contains("acme/lab/robot") && story.contains("pipeline"), "{story}");
    assert!(story.contains("on GitLab") && !story.contains("GitHub"), "{story}");
    let queue = told(&["queue", "--all"]);
    assert!(queue.contains(&format!("#{last} ")), "{queue}");
    assert!([secret, gpu, foreign].iter().all(|id| !queue.contains(&format!("#{id} "))), "{queue}");
    assert_eq!(scene.fleet.denied(), Vec::<String>::new());
}
