//! What jobs need beside a fleet and its hypervisor: a stand-in of GitHub, machines that run their guest, and where the fleet is reached.

use crate::github::{GithubStandIn, JobSpec, JobState, Options, Scope, Setup};
use crate::machines::Machines;
use crate::port;
use crate::proxmox::ProxmoxStandIn;
use crate::user_error::UserError;
use serde_json::{Value, json};
use std::time::Duration;

/// The RunnerPool.
pub const POOL: &str = "runners";
/// What jobs ask for with `runs-on`.
pub const LABELS: [&str; 2] = ["self-hosted", "pve"];
/// What webhooks are signed with.
pub const WEBHOOK_SECRET: &str = "secret-of-the-webhook-0123456789";
const ORGANIZATION: &str = "acme";

/// Everything that jobs need.
pub struct JobSite {
    /// Where jobs are pushed.
    pub github: GithubStandIn,
    /// Where they run.
    pub machines: Machines,
    /// The port where guests ask for their credentials.
    pub bootstrap: u16,
    /// The port that receives webhooks.
    pub webhooks: u16,
}

impl JobSite {
    /// Starts everything. A job takes so long.
    pub fn start(proxmox: &ProxmoxStandIn, setup: Setup, job: Duration) -> Result<JobSite, UserError> {
        let github = GithubStandIn::start(&Options { setup, ..Options::for_test() })?;
        let shared = github.shared();
        let lost = move |runner| shared.with(|state, now| state.runner_lost(runner, now));
        let machines = Machines::start(proxmox, &github.ca_pem, job, lost)?;
        let (bootstrap, webhooks) = (port::free()?, port::free()?);
        let url = format!("http://127.0.0.1:{webhooks}/webhooks/github");
        let scope = Scope::Organization(ORGANIZATION.to_owned());
        github.with(|state, _| state.add_hook(Some(scope), &url, Some(WEBHOOK_SECRET)));
        Ok(JobSite { github, machines, bootstrap, webhooks })
    }

    /// The arguments with which the fleet serves webhooks and guests.
    pub fn arguments(&self) -> [String; 3] {
        [
            format!("--webhook-bind-address=127.0.0.1:{}", self.webhooks),
            format!("--bootstrap-bind-address=127.0.0.1:{}", self.bootstrap),
            format!("--bootstrap-address=localhost:{}", self.bootstrap),
        ]
    }

    /// The Secrets that the pool names: their names, and what is in them.
    pub fn secrets(&self) -> [(&'static str, Value); 2] {
        let credentials = &self.github.credentials;
        [
            ("github", json!({"privateKey": credentials.private_key, "ca.crt": self.github.ca_pem})),
            ("webhook", json!({"secret": WEBHOOK_SECRET})),
        ]
    }

    /// The spec of a pool of so many machines at most, which hears of jobs from these sources.
    pub fn pool(&self, sources: &[&str], most: usize) -> Value {
        let key = |name: &str, key: &str| json!({"name": name, "key": key});
        let (path, sha256) = self.machines.archive();
        let mut github = json!({
            "server": self.github.address, "organization": ORGANIZATION, "labels": LABELS, "sources": sources,
            "credentials": {"app": {"id": Setup::APP_ID.to_string(), "privateKey": key("github", "privateKey")}},
            "caCertificate": key("github", "ca.crt"),
            "webhookSecrets": [key("webhook", "secret")],
            "runner": {"archive": {"path": path, "sha256": sha256}},
        });
        if sources.contains(&"ScaleSet") {
            github["scaleSet"] = "pve".into();
        }
        json!({
            "templateRef": {"name": "linux"}, "scaling": {"maxReplicas": most, "scaleDownDelay": "1s"},
            "workload": {"type": "github-actions", "config": {"github": github}},
        })
    }

    /// Pushes a commit whose workflow has one job for the pool; returns its run.
    pub fn push(&self, repository: &str, name: &str) -> u64 {
        let spec = JobSpec::new(&format!("{ORGANIZATION}/{repository}"), &LABELS).named(name);
        self.github.with(|state, now| state.push_run(&[spec], now))
    }

    /// How many jobs are not over.
    pub fn open(&self) -> usize {
        self.github.with(|state, _| state.jobs().values().filter(|job| !job.is_completed()).count())
    }

    /// How many jobs run.
    pub fn running(&self) -> usize {
        let runs = |state: &JobState| matches!(state, JobState::InProgress(_));
        self.github.with(|state, _| state.jobs().values().filter(|job| runs(&job.state)).count())
    }

    /// How many runners are registered.
    pub fn runners(&self) -> usize {
        self.github.with(|state, _| state.runners().len())
    }
}

/// Whether the status of a pool says that it is connected.
pub fn is_connected(status: &Value) -> bool {
    let conditions = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    conditions.iter().any(|one| one["type"] == "Connected" && one["status"] == "True")
}
