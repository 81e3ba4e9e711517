//! What people and machines do behind the API, and what a test reads there.

use crate::access::Caller;
use crate::chaos::WebhookFault;
use crate::fault::Fault;
use crate::happening::Happening;
use crate::hook::{DeliveryRecord, Hook};
use crate::job::{Conclusion, Execution, Job, JobSpec, JobState, Rerun, Run};
use crate::names::Scope;
use crate::runner::{Runner, RunnerGroup, RunnerSpec, is_at_least, secret_of_jit_config};
use crate::service::ScaleSet;
use crate::setup::Setup;
use crate::stand_in::StandIn;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Why a runner cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunnerRefusal {
    /// Its registration was deleted, or there never was one.
    NotRegistered,
    /// The configuration was used before.
    AlreadyUsed,
    /// It is too old to get jobs.
    TooOld {
        /// What it has to be at least.
        minimum: String,
    },
}

impl std::fmt::Display for RunnerRefusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunnerRefusal::NotRegistered => {
                write!(f, "The runner registration has been deleted from the server, please re-configure.")
            }
            RunnerRefusal::AlreadyUsed => write!(f, "A session for this runner already exists."),
            RunnerRefusal::TooOld { minimum } => {
                write!(f, "Runner version is deprecated and cannot receive messages, it has to be at least v{minimum}.")
            }
        }
    }
}

impl StandIn {
    /// Starts a run with one job; returns the id of the job.
    pub fn push_job(&mut self, spec: &JobSpec, now: Duration) -> u64 {
        let run = self.push_run(std::slice::from_ref(spec), now);
        self.jobs.values().find(|job| job.run == run).map_or(0, |job| job.id)
    }

    /// Starts a run with these jobs, all of one repository; returns its id.
    pub fn push_run(&mut self, specs: &[JobSpec], now: Duration) -> u64 {
        self.advance(now);
        let id = self.number("run", 16_000_000_001);
        let number = self.number("run number", 1);
        let Some(first) = specs.first() else { return id };
        let repository = first.repository.clone();
        self.runs.insert(id, Run { id, repository, number, attempt: 1, created: self.now, started: self.now });
        for spec in specs {
            self.queue_job(id, 1, spec.clone());
        }
        id
    }

    fn queue_job(&mut self, run: u64, attempt: u64, spec: JobSpec) -> u64 {
        let id = self.number("job", 46_000_000_001);
        let now = self.now;
        let job = Job { id, run, attempt, spec, created: now, state: JobState::Queued, assigned: None };
        self.jobs.insert(id, job);
        self.emit(id, "queued", now);
        self.offer(id);
        self.plan_assignment();
        id
    }

    /// Runs a run again, once it is completed; returns the ids of the new jobs, none if it cannot.
    pub fn rerun(&mut self, run: u64, which: Rerun, now: Duration) -> Vec<u64> {
        self.advance(now);
        let moment = self.now;
        let Some(found) = self.runs.get(&run).cloned() else { return Vec::new() };
        let latest = self.latest_jobs(run);
        let is_wanted = |job: &&Job| match which {
            Rerun::All => true,
            Rerun::Failed => job.conclusion() != Some(Conclusion::Success),
            Rerun::Job(id) => job.id == id,
        };
        let specs: Vec<JobSpec> = latest.iter().filter(is_wanted).map(|job| job.spec.clone()).collect();
        if specs.is_empty() || latest.iter().any(|job| !job.is_completed()) {
            return Vec::new();
        }
        self.runs.insert(run, Run { attempt: found.attempt + 1, started: moment, ..found.clone() });
        specs.into_iter().map(|spec| self.queue_job(run, found.attempt + 1, spec)).collect()
    }

    /// The last job of each name in a run.
    pub(crate) fn latest_jobs(&self, run: u64) -> Vec<Job> {
        let mut latest: BTreeMap<String, Job> = BTreeMap::new();
        for job in self.jobs.values().filter(|job| job.run == run) {
            latest.insert(job.spec.name.clone(), job.clone());
        }
        latest.into_values().collect()
    }

    /// Cancels a run; returns whether it was not over yet.
    pub fn cancel(&mut self, run: u64, now: Duration) -> bool {
        self.advance(now);
        let moment = self.now;
        let open: Vec<Job> = self.jobs.values().filter(|job| job.run == run && !job.is_completed()).cloned().collect();
        for job in &open {
            match job.ran_on() {
                None => self.finish_job(job.id, Conclusion::Cancelled, moment),
                Some(on) => {
                    let (job, runner, conclusion) = (job.id, on.id, Conclusion::Cancelled);
                    self.schedule(moment + self.timing.cancel, Happening::JobEnded { job, runner, conclusion });
                }
            }
        }
        !open.is_empty()
    }

    /// A machine starts a runner with its JIT config and the oldest version that is allowed; returns its id.
    pub fn runner_online(&mut self, jit: &str, now: Duration) -> Result<u64, RunnerRefusal> {
        let version = self.minimum_runner.clone();
        self.runner_online_with(jit, &version, now)
    }

    /// A machine starts a runner of this version with its JIT config; returns its id.
    pub fn runner_online_with(&mut self, jit: &str, version: &str, now: Duration) -> Result<u64, RunnerRefusal> {
        self.advance(now);
        let moment = self.now;
        let found = self.runners.values_mut().find(|runner| runner.jit.as_deref() == Some(jit));
        let runner = found.ok_or(RunnerRefusal::NotRegistered)?;
        if runner.is_used {
            return Err(RunnerRefusal::AlreadyUsed);
        }
        if !is_at_least(version, &self.minimum_runner) {
            return Err(RunnerRefusal::TooOld { minimum: self.minimum_runner.clone() });
        }
        runner.is_used = true;
        runner.is_online = true;
        runner.since = moment;
        runner.version = Some(version.to_owned());
        "linux".clone_into(&mut runner.os);
        let id = runner.id;
        self.plan_assignment();
        Ok(id)
    }

    /// Somebody else registers a runner, which is online at once and may take any job that fits; returns its id.
    pub fn register_runner(&mut self, spec: &RunnerSpec, now: Duration) -> u64 {
        self.advance(now);
        let id = self.number("runner", 1);
        self.runners.insert(
            id,
            Runner {
                id,
                name: spec.name.clone(),
                scope: spec.scope.clone(),
                group: 1,
                labels: spec.labels.clone(),
                os: "linux".to_owned(),
                is_online: true,
                job: None,
                is_ephemeral: spec.is_ephemeral,
                scale_set: None,
                created: self.now,
                version: Some(self.minimum_runner.clone()),
                is_lost: false,
                since: self.now,
                jit: None,
                is_used: true,
            },
        );
        self.plan_assignment();
        id
    }

    /// A runner ended: with its job, or without one as by an idle time-out. It is gone if it is ephemeral, and offline otherwise.
    pub fn runner_finished(&mut self, id: u64, conclusion: Conclusion, now: Duration) {
        self.advance(now);
        let moment = self.now;
        let Some(runner) = self.runners.get_mut(&id) else { return };
        match runner.job {
            Some(job) => self.finish_job(job, conclusion, moment),
            None => {
                runner.is_online = false;
                runner.since = moment;
                self.remove_if_unused(id, moment);
            }
        }
    }

    /// The machine of a runner dies, and nobody tells GitHub.
    pub fn runner_lost(&mut self, id: u64, now: Duration) {
        self.advance(now);
        let moment = self.now;
        let Some(runner) = self.runners.get_mut(&id).filter(|runner| !runner.is_lost) else { return };
        runner.is_lost = true;
        let job = runner.job;
        self.schedule(moment + self.timing.offline, Happening::Offline(id));
        if let Some(job) = job {
            self.give_up_job(job, id, moment);
        }
    }

    /// Adds a hook of a scope, or of the App if none is given; returns its id.
    pub fn add_hook(&mut self, scope: Option<Scope>, url: &str, secret: Option<&str>) -> u64 {
        let id = self.number("hook", 500_000_001);
        let events = vec!["workflow_job".to_owned()];
        let (url, secret, created) = (url.to_owned(), secret.map(str::to_owned), self.now);
        self.hooks.insert(id, Hook { id, scope, url, secret, events, is_active: true, created });
        id
    }

    /// Adds a runner group of an organisation or the enterprise; returns its id.
    pub fn add_group(&mut self, scope: &Scope, mut group: RunnerGroup) -> u64 {
        group.id = self.number("group", 2);
        let id = group.id;
        self.groups.insert((scope.clone(), id), group);
        id
    }

    /// What came back from the receiver of a webhook; nothing if it did not answer. Whoever sends webhooks has to call it.
    pub fn delivered(&mut self, id: u64, status: Option<u16>) {
        if let Some(record) = self.deliveries.get_mut(&id) {
            record.status = status;
            record.is_done = true;
        }
    }

    /// A token of the installation, as the App would get one.
    pub fn installation_token(&mut self) -> String {
        let claims = serde_json::json!({
            "iss": Setup::APP_ID,
            "jti": self.random.uuid(),
            "scope": self.random.text(240),
        });
        let token = format!("ghs_{}", crate::jwt::sign(&claims, &self.secret));
        self.hand_out(token, Caller::Installation, self.timing.token)
    }

    /// Adds a fault.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.pending.push(fault);
    }

    /// Adds a fault of webhooks.
    pub fn inject_webhook(&mut self, fault: WebhookFault) {
        self.webhook_faults.push(fault);
    }

    /// Removes all faults that are still to happen.
    pub fn clear_faults(&mut self) {
        self.faults.pending.clear();
        self.webhook_faults.clear();
    }

    /// Uses up all budgets until their windows end.
    pub fn exhaust_budgets(&mut self) {
        let (limits, now) = (self.limits, self.now);
        for account in [Caller::Installation, Caller::App, Caller::Person(vec![String::new()])] {
            self.budgets.entry(account.account()).or_default().exhaust(&limits, now);
        }
    }

    /// How many requests were refused by a limit.
    pub fn refused_by_limits(&self) -> u64 {
        self.refused_by_limits
    }

    /// How much each client used of its budget in its window.
    pub fn budgets(&self) -> BTreeMap<&str, u64> {
        self.budgets.iter().map(|(account, budget)| (account.as_str(), budget.used)).collect()
    }

    /// What nobody may show: all tokens that were handed out.
    pub fn tokens(&self) -> BTreeSet<String> {
        self.tokens.keys().cloned().collect()
    }

    /// The same of the runners that are registered: their configurations, each with the secret that is in it.
    pub fn jit_configs(&self) -> BTreeMap<String, Option<String>> {
        let configs = self.runners.values().filter_map(|runner| runner.jit.clone());
        configs.map(|config| (config.clone(), secret_of_jit_config(&config))).collect()
    }

    /// All runners.
    pub fn runners(&self) -> &BTreeMap<u64, Runner> {
        &self.runners
    }

    /// All jobs.
    pub fn jobs(&self) -> &BTreeMap<u64, Job> {
        &self.jobs
    }

    /// All runs.
    pub fn runs(&self) -> &BTreeMap<u64, Run> {
        &self.runs
    }

    /// Which runner started which job, in this order.
    pub fn executions(&self) -> &[Execution] {
        &self.executions
    }

    /// All deliveries that were made.
    pub fn deliveries(&self) -> &BTreeMap<u64, DeliveryRecord> {
        &self.deliveries
    }

    /// All scale sets.
    pub fn scale_sets(&self) -> &BTreeMap<u64, ScaleSet> {
        &self.scale_sets
    }

    /// How a run of an attempt stands: the status and the conclusion.
    pub(crate) fn run_status(&self, run: u64, attempt: u64) -> (&'static str, Option<&'static str>) {
        let jobs: Vec<&Job> = self.jobs.values().filter(|job| job.run == run && job.attempt == attempt).collect();
        if jobs.iter().all(|job| job.is_completed()) {
            let ends = |wanted: Conclusion| jobs.iter().any(|job| job.conclusion() == Some(wanted));
            let conclusion = match (ends(Conclusion::Failure), ends(Conclusion::Cancelled)) {
                (true, _) => Conclusion::Failure,
                (false, true) => Conclusion::Cancelled,
                (false, false) => Conclusion::Success,
            };
            return ("completed", Some(conclusion.as_str()));
        }
        match jobs.iter().all(|job| job.is_queued()) {
            true => ("queued", None),
            false => ("in_progress", None),
        }
    }
}
