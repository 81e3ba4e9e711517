//! The fleet on a real API server with stand-ins of Proxmox VE and GitHub: jobs become runners on machines, and nothing is left.
//! Guests are simulated here: they take their configuration from the machine, and ask the border as the bootstrap endpoint would.

use super::border::{Border, Endpoint};
use crate::metrics::Metrics;
use ::bootstrap::{Config as GuestConfig, End, EndReason, Exchange, Phase, Report, Secret, Step};
use cluster::{KubeconfigContext, Timeouts, lease};
use fleet::bootstrap::Reply;
use futures::FutureExt;
use jiff::Timestamp;
use playground::deployment::{self, objects};
use playground::fleet_site::{self, FleetSite, HOME, SPACE};
use playground::github::{Conclusion, GithubStandIn, JobSpec, RepositoryName};
use playground::service_account::Account;
use playground::{Playground, Progress, ProxmoxStandIn, Scene, github, proxmox};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;

const SECRETS: &str = "ci/pve-token,ci/pve-ca,ci/github";

/// A guest in a machine.
struct Guest {
    config: GuestConfig,
    granted: Option<(Secret, u64)>,
    is_running: bool,
}

struct Scenery<'a> {
    site: FleetSite<'a>,
    github: GithubStandIn,
    account: Account,
    border: Arc<Border>,
    process: Option<JoinHandle<anyhow::Result<()>>>,
    guests: BTreeMap<u32, Guest>,
    /// Machines whose guest has ended.
    ended: BTreeSet<u32>,
}

impl Scenery<'_> {
    /// Ends the process, if there is one, and starts another one, which knows nothing.
    async fn restart(&mut self) {
        if let Some(process) = self.process.take() {
            process.abort();
            let _ = process.await;
        }
        let context = KubeconfigContext::current(Some(&self.account.kubeconfig));
        let server = cluster::connect(context, Timeouts::default(), fleet::IDENTITY).await.unwrap();
        self.border = Border::new();
        self.border.serve_at(Endpoint { address: "https://127.0.0.1:1".into(), ca: "none".into() });
        let namespace = objects(self.site.playground, "v1", "Namespace", None).get(HOME).await.unwrap();
        let operator = namespace.metadata.uid.unwrap();
        let config = fleet::Config { operator, concurrency: fleet::Concurrency::default() };
        let (permit, border) = (lease::without_election(), self.border.clone());
        let observers = ("virtpilot-fleet-0".to_owned(), Timestamp::now(), Arc::new(Metrics::new("").with_fleet(true)));
        let readiness = watch::channel(Vec::new()).0;
        let stop = std::future::pending().boxed();
        let run = super::run(config, (server, HOME.to_owned()), (permit, border), observers, readiness, stop);
        self.process = Some(tokio::spawn(run));
    }

    /// Lets every guest do what it does next.
    fn pass(&mut self) {
        let seeds: Vec<(u32, String)> = self.site.proxmox.with(|state| {
            let running = state.vms().iter().filter(|(_, vm)| vm.run.is_some());
            let seed = |files: &BTreeMap<String, String>| files.get("/var/lib/cloud/seed/nocloud/user-data").cloned();
            running.filter_map(|(id, vm)| Some((*id, seed(&vm.guest.files)?))).collect()
        });
        for (machine, text) in seeds {
            if self.ended.contains(&machine) {
                continue;
            }
            let guest = match self.guests.remove(&machine) {
                Some(guest) => guest,
                None => match configured(&text) {
                    Some(config) => Guest { config, granted: None, is_running: false },
                    None => continue,
                },
            };
            match self.pass_guest(machine, guest) {
                Some(guest) => drop(self.guests.insert(machine, guest)),
                None => {
                    self.ended.insert(machine);
                    self.site.proxmox.with(|state| state.power_off(machine));
                }
            }
        }
    }

    /// One guest; nothing if it has ended.
    fn pass_guest(&self, machine: u32, mut guest: Guest) -> Option<Guest> {
        let claim = guest.config.claim.clone();
        let Some((report, runner)) = guest.granted.clone() else {
            let exchange = Exchange {
                claim,
                attestation: guest.config.attestation.clone(),
                nonce: Secret::new(format!("{machine:0>40}")),
                version: String::new(),
            };
            if let Ok(Reply::Granted(grant)) = self.border.exchange(&exchange, Timestamp::now()) {
                let jit = grant.jit_config.expose().to_owned();
                let runner = self.github.with(|state, now| state.runner_online(&jit, now)).unwrap();
                guest.granted = Some((grant.report_token.clone(), runner));
            }
            return Some(guest);
        };
        let (is_registered, job) = self.github.with(|state, _| {
            let found = state.runners().get(&runner);
            (found.is_some(), found.and_then(|found| found.job))
        });
        if job.is_some() && !guest.is_running {
            guest.is_running = true;
            let report_of = Report { claim: claim.clone(), phase: Phase::Running, uptime_seconds: 1 };
            let answer = self.border.report(&report, &report_of);
            assert!(!matches!(answer, Ok(Reply::Refused { .. })), "a guest is refused: {answer:?}");
        }
        if is_registered {
            return Some(guest);
        }
        let end = End {
            claim,
            reason: EndReason::JobCompleted,
            step: Step::Job,
            message: "the job is done".into(),
            ran_job: guest.is_running,
            exit_code: Some(0),
            log: String::new(),
        };
        // Without an answer it ends all the same.
        let _ = self.border.end(&report, &end);
        None
    }

    /// Lets time pass until something holds.
    async fn until(&mut self, what: &str, mut holds: impl FnMut(&Scenery<'_>) -> bool) {
        let begun = std::time::Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < Duration::from_secs(180), "it never comes to this: {what}");
            assert!(self.process.as_ref().is_some_and(|process| !process.is_finished()), "the fleet has ended");
            self.pass();
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn open_jobs(&self) -> usize {
        self.github.with(|state, _| state.jobs().values().filter(|job| !job.is_completed()).count())
    }

    fn busy(&self) -> usize {
        self.guests.values().filter(|guest| guest.is_running).count()
    }

    async fn is_nothing_left(&self) -> bool {
        let claims = self.site.api("MachineClaim").list(&kube::api::ListParams::default()).await.unwrap().items;
        let runners = self.github.with(|state, _| state.runners().len());
        claims.is_empty() && runners == 0 && self.site.machines().is_empty()
    }
}

/// The configuration of the guest in cloud-init data.
fn configured(user_data: &str) -> Option<GuestConfig> {
    let data: Value = serde_saphyr::from_str(user_data).ok()?;
    let file = data["write_files"].as_array()?.iter().find(|file| file["path"] == "/etc/virtpilot/guest.json")?;
    serde_json::from_str(file["content"].as_str()?).ok()
}

fn job(number: usize) -> JobSpec {
    JobSpec {
        repository: RepositoryName { owner: "acme".into(), name: "shop".into() },
        name: format!("build-{number}"),
        labels: vec!["self-hosted".into(), "pve".into()],
        group: None,
        duration: Some(Duration::from_secs(4)),
        conclusion: Conclusion::Success,
    }
}

/// Jobs that were queued before the pool existed, found by polls alone; the operator is killed while they run.
#[tokio::test(flavor = "multi_thread")]
async fn queued_jobs_run_on_machines_of_their_own_also_if_the_operator_is_killed_and_nothing_is_left() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = playground::Options::for_test(Scene::preset("small").unwrap());
    let playground = Playground::start(&options, Progress::Silent).await.unwrap_or_else(|error| panic!("{error}"));
    let account = fleet_site::install(&playground).await.unwrap();
    let rights = ["--products", "fleet", "--create-namespace", "--fleet-secrets", SECRETS];
    deployment::grant_for(&playground, &deployment::manifests(&rights).await.unwrap()).await.unwrap();
    let proxmox = ProxmoxStandIn::start(&proxmox::Options::for_test()).unwrap();
    let github = GithubStandIn::start(&github::Options::for_test()).unwrap();
    let rights = ["VM.GuestAgent.Unrestricted"];
    for who in ["fleet@pve!virtpilot", "fleet@pve"] {
        proxmox.with(|state| state.grant(who, "/pool/virtpilot", &rights));
    }
    let jobs = 3;
    for number in 0..jobs {
        github.with(|state, now| state.push_job(&job(number), now));
    }
    let site = FleetSite { playground: &playground, proxmox };
    let secret = site.token().1.to_owned();
    site.connect(&secret).await.unwrap();
    let mut template = fleet_site::template_spec("pve");
    template["cloudInit"] = json!({"userData": "#cloud-config\n", "delivery": "GuestAgent"});
    site.create("HypervisorMachineTemplate", "linux", template).await.unwrap();
    let data = json!({"token": github.credentials.token, "ca.crt": github.ca_pem});
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "github"}, "stringData": data});
    let parameters = kube::api::PatchParams::apply("administrator").force();
    let secrets = objects(&playground, "v1", "Secret", Some(SPACE));
    secrets.patch("github", &parameters, &kube::api::Patch::Apply(&object)).await.unwrap();
    let key = |key: &str| json!({"name": "github", "key": key});
    let settings = json!({
        "server": github.address, "organization": "acme", "labels": ["self-hosted", "pve"],
        "credentials": {"token": key("token")}, "caCertificate": key("ca.crt"),
    });
    let pool = json!({
        "templateRef": {"name": "linux"}, "scaling": {"maxReplicas": 5, "scaleDownDelay": "1s"},
        "workload": {"type": "github-actions", "config": {"github": settings}},
    });
    site.create("RunnerPool", "runners", pool).await.unwrap();
    let (guests, ended) = (BTreeMap::new(), BTreeSet::new());
    let mut scene = Scenery { site, github, account, border: Border::new(), process: None, guests, ended };
    scene.restart().await;
    scene.until("a job runs", |scene| scene.busy() > 0).await;
    scene.restart().await;
    scene.until("all jobs are done", |scene| scene.open_jobs() == 0).await;
    let executions = scene.github.with(|state, _| state.executions().len());
    assert_eq!(executions, jobs, "each job was started once");
    let begun = std::time::Instant::now();
    while !scene.is_nothing_left().await {
        scene.pass();
        assert!(begun.elapsed() < Duration::from_secs(180), "something is left");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let ended = async |scene: &Scenery<'_>| {
        let found = objects(scene.site.playground, "v1", "ConfigMap", Some(HOME)).get(api::fleet::QUEUE).await.ok()?;
        let text = found.data["data"]["queue.json"].as_str().unwrap_or_default().to_owned();
        serde_json::from_str::<Value>(&text).ok()?["total"]["ended"].as_u64()
    };
    while ended(&scene).await != Some(3) {
        assert!(begun.elapsed() < Duration::from_secs(180), "the queue never shows that all have ended");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let status = scene.site.api("RunnerPool").get("runners").await.unwrap().data["status"].clone();
    assert!(status.to_string().contains("\"Connected\""), "{status:#}");
    let shown = format!("{status}");
    assert!(!shown.contains(&scene.github.credentials.token), "a secret is shown");
    scene.process.take().unwrap().abort();
}
