//! Measures the fleet on a stand-in of Proxmox VE: how fast machines come and go, parallel clones, crashes, and many claims.

use super::measure::{Measure, count};
use super::operator_process::OperatorProcess;
use super::pack::poll_until;
use futures::StreamExt;
use futures::stream;
use kube::api::{DeleteParams, ListParams};
use playground::fleet_site::{self, FleetSite};
use playground::proxmox::{Deed, Options, Setup, Timing};
use playground::pseudo_random::PseudoRandom;
use playground::service_account::Account;
use playground::user_error::refused;
use playground::{Options as PlaygroundOptions, Playground, Progress, ProxmoxStandIn, Scene, UserError};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// One after the other.
const SINGLE: usize = 40;
/// At the same time, where the third clone of a storage fails.
const PARALLEL: usize = 30;
const CRASHING: usize = 500;
const CRASHES: usize = 20;
/// For memory and polling.
const MANY: usize = 5_000;
/// Between two lists of all machines of a hypervisor.
const POLL: Duration = Duration::from_secs(30);

/// The limits: milliseconds from a claim to the request to clone, and from the deletion of a claim to the end of its machine; seconds from the moment at which a
/// machine stops by itself, which is found by the next list; clones at once, compared with one after the other; MB; lists in 120 s; milliseconds of one pass.
const CLONE_ASKED: f64 = 30.0;
const GONE_AFTER_END: f64 = 2_000.0;
const GONE_AFTER_STOP: f64 = 35.0;
const PARALLEL_CLONES: f64 = 1.1;
const MEMORY: f64 = 40.0;
const LISTS: f64 = 5.0;
const PASS: f64 = 50.0;

pub(crate) async fn measure(is_many_only: bool) -> Result<Vec<Measure>, UserError> {
    let playground =
        Playground::start(&PlaygroundOptions::for_bench(Some(Scene::preset("small")?)), Progress::Silent).await?;
    let account = fleet_site::install(&playground).await?;
    let log = playground.folder().join("fleet.log");
    let site = FleetSite { playground: &playground, proxmox: start(Setup::cluster(Timing::short()))? };
    site.connect(site.token().1).await?;
    site.add_template().await?;
    let mut bench = Bench { operator: Some(OperatorProcess::start_fleet(&account, &log)?), account, log, site };
    let mut measures = Vec::new();
    if !is_many_only {
        bench.single(&mut measures).await?;
        bench.parallel(&mut measures).await?;
        bench.crash(&mut measures).await?;
    }
    bench.many(&mut measures).await?;
    Ok(measures)
}

/// A hypervisor with room for everything.
fn start(mut setup: Setup) -> Result<ProxmoxStandIn, UserError> {
    for node in &mut setup.nodes {
        (node.cpus, node.memory) = (8_192, 32 << 40);
    }
    for storage in &mut setup.storages {
        storage.bytes <<= 10;
    }
    ProxmoxStandIn::start(&Options { setup, port: None })
}

struct Bench<'a> {
    operator: Option<OperatorProcess>,
    account: Account,
    log: PathBuf,
    site: FleetSite<'a>,
}

impl Bench<'_> {
    /// Claims one after the other: created to the request to clone, created to ready, deleted to gone; then machines that stop by themselves.
    async fn single(&mut self, measures: &mut Vec<Measure>) -> Result<(), UserError> {
        let (mut asked, mut ready, mut ended) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..SINGLE {
            eprint!("\rfleet: claim {} of {SINGLE}   ", round + 1);
            let name = format!("single-{round}");
            self.site.proxmox.forget_requests();
            let begun = self.site.proxmox.elapsed();
            self.site.claim(&name).await?;
            self.ready(&name).await?;
            ready.push(milliseconds(self.site.proxmox.elapsed() - begun));
            let requests = self.site.proxmox.requests();
            let clone = requests.iter().find(|line| line.path.ends_with("/clone"));
            asked.push(clone.map_or(0.0, |line| milliseconds(line.at.saturating_sub(begun))));
            let begun = Instant::now();
            self.site.delete("MachineClaim", &name).await?;
            self.empty().await?;
            ended.push(milliseconds(begun.elapsed()));
            self.site.gone("MachineClaim", &name).await?;
        }
        eprintln!("\nfleet: machines that stop by themselves");
        let names: Vec<String> = (0..SINGLE).map(|number| format!("stops-{number}")).collect();
        for name in &names {
            self.site.claim(name).await?;
        }
        for name in &names {
            self.ready(name).await?;
        }
        let stopped = self.stop_at_random_times().await?;
        measures.push(Measure::of("fleet: claim created to the request to clone", "ms", asked).at_most(CLONE_ASKED));
        measures.push(Measure::of("fleet: claim created to ready (the stand-in needs 180)", "ms", ready));
        let gone = Measure::of("fleet: claim deleted to its machine gone (the stand-in needs 40)", "ms", ended);
        measures.push(gone.at_most(GONE_AFTER_END));
        measures.push(Measure::of("fleet: machine stopped by itself to gone", "s", stopped).at_most(GONE_AFTER_STOP));
        Ok(())
    }

    /// Stops all machines within the time between two polls; the seconds until each is gone.
    async fn stop_at_random_times(&self) -> Result<Vec<f64>, UserError> {
        let mut random = PseudoRandom::new(7);
        let mut stops: Vec<(Duration, u32)> =
            self.site.machines().into_iter().map(|id| (POLL.mul_f64(random.fraction()), id)).collect();
        stops.sort();
        let (begun, mut stopped, mut took) = (Instant::now(), BTreeMap::new(), Vec::new());
        let mut stops = stops.into_iter().peekable();
        while stops.peek().is_some() || !stopped.is_empty() {
            while let Some((_, id)) = stops.next_if(|(at, _)| *at <= begun.elapsed()) {
                self.site.proxmox.with(|state| state.power_off(id));
                stopped.insert(id, Instant::now());
            }
            let left = self.site.machines();
            stopped.retain(|id, since| {
                let is_left = left.contains(id);
                if !is_left {
                    took.push(since.elapsed().as_secs_f64());
                }
                is_left
            });
            if begun.elapsed() > Duration::from_secs(300) {
                return Err(UserError::new("a machine that stopped is not destroyed", "read the log of the fleet"));
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(took)
    }

    /// Clones at the same time, on a hypervisor whose storage refuses the third.
    async fn parallel(&mut self, measures: &mut Vec<Measure>) -> Result<(), UserError> {
        eprintln!("fleet: {PARALLEL} claims at once");
        let clone = Duration::from_millis(300);
        self.site.proxmox.with(|state| {
            (state.max_clones, state.timing.linked_clone) = (Some(2), clone);
        });
        self.site.proxmox.forget_requests();
        let names: Vec<String> = (0..PARALLEL).map(|number| format!("parallel-{number}")).collect();
        let begun = Instant::now();
        for name in &names {
            self.site.claim(name).await?;
        }
        poll_until("all clones are there", Duration::from_millis(5), async || {
            let is_done = self.site.machines().len() == PARALLEL
                && self.site.proxmox.with(|state| state.tasks().values().all(|task| !task.is_running()));
            Ok(is_done.then_some(()))
        })
        .await?;
        let took = begun.elapsed();
        let failed = self.site.proxmox.with(|state| {
            state.tasks().values().filter(|task| task.exit.as_ref().is_some_and(|exit| exit != "OK")).count()
        });
        for name in &names {
            self.ready(name).await?;
        }
        let serial = clone * u32::try_from(PARALLEL).unwrap_or_default();
        let name = format!(
            "fleet: {PARALLEL} clones at once where the third on a storage fails, compared with one after the other"
        );
        let ratio = took.as_secs_f64() / serial.as_secs_f64();
        measures.push(Measure::one(name, "times", ratio).at_most(PARALLEL_CLONES));
        measures.push(Measure::count("fleet: clones that failed among them", failed).at_most(0.0));
        self.site.proxmox.with(|state| {
            (state.max_clones, state.timing) = (None, Timing::short());
        });
        expect("clones that failed", failed, 0)?;
        self.delete_all().await
    }

    /// Claims are created, run and end while the operator is killed again and again.
    async fn crash(&mut self, measures: &mut Vec<Measure>) -> Result<(), UserError> {
        let before = self.clones();
        let mut random = PseudoRandom::new(11);
        for round in 0..CRASHES {
            eprint!("\rfleet: {CRASHING} claims, kill {} of {CRASHES}   ", round + 1);
            let names = (0..CRASHING / CRASHES).map(|number| format!("crash-{round}-{number}"));
            let site = &self.site;
            let made: Vec<Result<(), UserError>> =
                stream::iter(names).map(async |name| site.claim(&name).await).buffer_unordered(16).collect().await;
            made.into_iter().collect::<Result<(), UserError>>()?;
            // Some machines of earlier rounds end by themselves meanwhile, some claims are deleted.
            for (number, id) in site.machines().into_iter().enumerate() {
                if number % 3 == 0 {
                    site.proxmox.with(|state| state.power_off(id));
                }
            }
            tokio::time::sleep(Duration::from_millis(200) + Duration::from_secs(2).mul_f64(random.fraction())).await;
            self.operator = None;
            self.operator = Some(OperatorProcess::start_fleet(&self.account, &self.log)?);
        }
        eprintln!();
        // Every claim has one machine at some time; what has not ended by itself is deleted.
        poll_until("every claim has had its machine", Duration::from_millis(200), async || {
            Ok((self.clones() - before >= CRASHING).then_some(()))
        })
        .await?;
        self.delete_all().await?;
        measures.push(Measure::count(
            format!("fleet: clones for {CRASHING} claims with {CRASHES} kills"),
            self.clones() - before,
        ));
        measures.push(Measure::count("fleet: machines left afterwards", self.site.machines().len()).at_most(0.0));
        expect("clones", self.clones() - before, CRASHING)?;
        expect("machines left", self.site.machines().len(), 0)
    }

    /// Memory, requests and work with many machines that just run.
    async fn many(&mut self, measures: &mut Vec<Measure>) -> Result<(), UserError> {
        self.site.proxmox.with(|state| state.timing.linked_clone = Duration::from_millis(1));
        let patch = json!({"spec": {"limits": {"clonesPerStorage": 50, "clonesPerNode": 50}}});
        playground::deployment::edit(&self.site.api("HypervisorCluster"), "pve", &patch).await?;
        let names = (0..MANY).map(|number| format!("many-{number}"));
        let site = &self.site;
        let mut claims = stream::iter(names).map(async |name| site.claim(&name).await).buffer_unordered(16);
        while let Some(made) = claims.next().await {
            made?;
            eprint!("\rfleet: {} of {MANY} machines   ", site.machines().len());
        }
        let begun = Instant::now();
        loop {
            let machines = site.machines().len();
            eprint!("\rfleet: {machines} of {MANY} machines   ");
            let is_booting =
                site.proxmox.with(|state| state.tasks().values().any(playground::proxmox::Task::is_running));
            if machines == MANY && !is_booting && self.are_ready().await? {
                break;
            }
            if begun.elapsed() > Duration::from_secs(1_800) {
                return Err(UserError::new("the machines do not get ready", "read the log of the fleet"));
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        }
        eprintln!();
        // Two polls, so that the memory of the start is returned.
        tokio::time::sleep(POLL * 2).await;
        let Some(operator) = &self.operator else { return Ok(()) };
        self.site.proxmox.forget_requests();
        let cpu = operator.cpu()?;
        tokio::time::sleep(POLL * 4).await;
        let (cpu, requests) = (operator.cpu()? - cpu, self.site.proxmox.requests());
        let lists = requests.iter().filter(|line| line.path.ends_with("cluster/resources")).count();
        let memory = Measure::one(format!("fleet: memory with {MANY} machines (Pss)"), "MB", operator.pss()?);
        measures.push(memory.at_most(MEMORY));
        measures.push(Measure::count("fleet: lists of all machines in 120 s", lists).at_most(LISTS));
        measures.push(Measure::count("fleet: other requests to the hypervisor in 120 s", requests.len() - lists));
        let pass = cpu / count(lists.max(1));
        measures.push(Measure::one("fleet: CPU time for one list that changes nothing", "ms", pass).at_most(PASS));
        Ok(())
    }

    async fn are_ready(&self) -> Result<bool, UserError> {
        let mut params = ListParams::default().limit(500);
        loop {
            let page = self.site.api("MachineClaim").list(&params).await.map_err(|error| refused(&error))?;
            if page.items.iter().any(|claim| claim.data["status"]["phase"] != "Ready") {
                return Ok(false);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = params.continue_token(&token),
                None => return Ok(true),
            }
        }
    }

    async fn ready(&self, name: &str) -> Result<(), UserError> {
        self.site.status(("MachineClaim", name), "a machine", |status| status["phase"] == "Ready").await.map(|_| ())
    }

    async fn empty(&self) -> Result<(), UserError> {
        self.site.until("no machine is left", async || self.site.machines().is_empty().then_some(())).await
    }

    /// Deletes all claims, and waits until they and their machines are gone.
    async fn delete_all(&self) -> Result<(), UserError> {
        let api = self.site.api("MachineClaim");
        let deleted = api.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
        deleted.map_err(|error| refused(&error))?;
        self.site
            .until("no claim is left", async || {
                let left = api.list_metadata(&ListParams::default().limit(1)).await.ok()?;
                left.items.is_empty().then_some(())
            })
            .await?;
        self.empty().await
    }

    fn clones(&self) -> usize {
        self.site.proxmox.with(|state| {
            state.history().deeds.iter().filter(|(_, _, _, deed)| matches!(deed, Deed::Cloned { .. })).count()
        })
    }
}

/// A result that no machine makes worse.
fn expect(what: &str, found: usize, expected: usize) -> Result<(), UserError> {
    match found == expected {
        true => Ok(()),
        false => Err(UserError::new(
            format!("the fleet is wrong: {found} {what}, expected {expected}"),
            "read the log of the fleet, and run the seeds of its simulation: make faults",
        )),
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
