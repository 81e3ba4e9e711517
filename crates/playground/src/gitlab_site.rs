//! What jobs of GitLab need beside a fleet and its hypervisor: its stand-in, machines that run their guest, and where the fleet is reached.

use crate::gitlab::{GitlabStandIn, Setup};
use crate::machines::Machines;
use crate::port;
use crate::proxmox::ProxmoxStandIn;
use crate::user_error::UserError;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// The RunnerPool.
pub const POOL: &str = "runners";
/// The tag of jobs.
pub const TAG: &str = "pve";
const WEBHOOK_SECRET: &str = "token-of-the-webhook-0123456789";
const GROUP: &str = "acme";

/// Everything that jobs need.
pub struct GitlabSite {
    /// Where jobs are pushed.
    pub gitlab: GitlabStandIn,
    /// Where they run.
    pub machines: Machines,
    /// The port where guests ask for their credentials.
    pub bootstrap: u16,
    /// The port that receives webhooks.
    pub webhooks: u16,
    /// How many webhooks there were.
    sent: usize,
}

impl GitlabSite {
    /// Starts everything. A job takes so long.
    pub fn start(proxmox: &ProxmoxStandIn, job: Duration) -> Result<GitlabSite, UserError> {
        let gitlab = GitlabStandIn::start(&Setup::group())?;
        let machines = Machines::start(proxmox, &gitlab.ca_pem, job, |_| {})?;
        let (bootstrap, webhooks) = (port::free()?, port::free()?);
        Ok(GitlabSite { gitlab, machines, bootstrap, webhooks, sent: 0 })
    }

    /// The Secrets that the pool names: their names, and what is in them.
    pub fn secrets(&self) -> [(&'static str, Value); 2] {
        [
            ("gitlab", json!({"token": Setup::TOKEN, "ca.crt": self.gitlab.ca_pem})),
            ("webhook", json!({"secret": WEBHOOK_SECRET})),
        ]
    }

    /// The spec of a pool of so many machines at most, which hears of jobs from these sources.
    pub fn pool(&self, sources: &[&str], most: usize) -> Value {
        let key = |name: &str, key: &str| json!({"name": name, "key": key});
        let (path, sha256) = self.machines.archive();
        let gitlab = json!({
            "url": self.gitlab.address, "group": GROUP, "tags": [TAG], "sources": sources,
            "credentials": {"token": key("gitlab", "token")},
            "caCertificate": key("gitlab", "ca.crt"),
            "webhookSecrets": [key("webhook", "secret")],
            "runner": {"archive": {"path": path, "sha256": sha256}},
        });
        json!({
            "templateRef": {"name": "linux"}, "scaling": {"maxReplicas": most, "scaleDownDelay": "1s"},
            "workload": {"type": "gitlab-ci", "config": {"gitlab": gitlab}},
        })
    }

    /// A new job of a project, by its path; its id.
    pub fn push(&self, project: &str, tags: &[&str]) -> u64 {
        self.gitlab.with(|state, now| state.push_job(project, tags, now))
    }

    /// How many runners are registered.
    pub fn runners(&self) -> usize {
        self.gitlab.with(|state, _| state.runners().len())
    }

    /// Sends the webhooks of what has happened, except those that are to be lost, by their number. GitLab repeats none that is refused.
    pub fn deliver(&mut self, is_lost: impl Fn(usize) -> bool) {
        for event in self.gitlab.with(|state, _| state.take_events()) {
            self.sent += 1;
            if !is_lost(self.sent) {
                // Nobody may listen just now.
                let _ = self.post(&event.to_string());
            }
        }
    }

    fn post(&self, body: &str) -> std::io::Result<String> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.webhooks))?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        let (number, length) = (self.sent, body.len());
        write!(
            stream,
            "POST /webhooks/gitlab HTTP/1.1\r\nHost: fleet\r\nConnection: close\r\nContent-Type: application/json\r\n\
             X-Gitlab-Event: Job Hook\r\nX-Gitlab-Event-UUID: event-{number}\r\nX-Gitlab-Token: {WEBHOOK_SECRET}\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }
}
