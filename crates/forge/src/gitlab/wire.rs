//! What answers of GitLab contain, as far as it is needed.

use fleet::forge::gitlab::{labels, project, status};
use fleet::forge::{Job, JobId, RepositoryName, Runner, RunnerId};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeSet;

#[derive(Deserialize)]
pub(crate) struct WireId {
    pub(crate) id: u64,
}

#[derive(Deserialize)]
pub(crate) struct WireVersion {
    #[serde(default)]
    pub(crate) version: String,
}

#[derive(Deserialize)]
pub(crate) struct WireToken {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) scopes: BTreeSet<String>,
    #[serde(default)]
    pub(crate) user_id: u64,
    #[serde(default)]
    pub(crate) expires_at: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct WireUser {
    #[serde(default)]
    pub(crate) username: String,
    #[serde(default)]
    pub(crate) is_admin: bool,
}

#[derive(Deserialize)]
pub(crate) struct WireMember {
    #[serde(default)]
    pub(crate) access_level: u64,
}

/// A new runner. Its token is shown this once.
#[derive(Deserialize)]
pub(crate) struct WireNewRunner {
    pub(crate) id: u64,
    pub(crate) token: String,
}

#[derive(Deserialize)]
pub(crate) struct WireRunner {
    pub(crate) id: u64,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    online: Option<bool>,
    /// Not said by older versions.
    #[serde(default)]
    job_execution_status: Option<String>,
    /// Not said in lists.
    #[serde(default)]
    tag_list: BTreeSet<String>,
}

impl WireRunner {
    /// Whether it has a job, if that is said.
    pub(crate) fn is_busy(&self) -> Option<bool> {
        self.job_execution_status.as_deref().map(|status| status == "active")
    }

    pub(crate) fn is_online(&self) -> bool {
        self.online.unwrap_or(false)
    }

    pub(crate) fn name(&self) -> &str {
        self.description.as_deref().unwrap_or_default()
    }

    pub(crate) fn runner(self, is_busy: bool) -> (RunnerId, Runner) {
        let is_online = self.is_online();
        let runner = Runner { name: self.description.unwrap_or_default(), is_online, is_busy, labels: self.tag_list };
        (RunnerId(self.id), runner)
    }
}

#[derive(Deserialize)]
pub(crate) struct WireProject {
    path_with_namespace: String,
}

impl WireProject {
    pub(crate) fn name(&self) -> Option<RepositoryName> {
        project(&self.path_with_namespace)
    }
}

#[derive(Deserialize)]
struct WirePipeline {
    id: u64,
}

#[derive(Deserialize)]
struct WireJobRunner {
    id: u64,
    #[serde(default)]
    description: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct WireJob {
    id: u64,
    #[serde(default)]
    name: String,
    status: String,
    #[serde(default)]
    tag_list: Vec<String>,
    #[serde(default)]
    pipeline: Option<WirePipeline>,
    #[serde(default)]
    runner: Option<WireJobRunner>,
    #[serde(default)]
    created_at: Option<Timestamp>,
}

impl WireJob {
    /// Whether a runner has it.
    pub(crate) fn is_at_runner(&self) -> bool {
        matches!(self.status.as_str(), "running" | "canceling")
    }

    pub(crate) fn job(self, repository: &RepositoryName) -> Job {
        Job {
            id: JobId(self.id),
            run: self.pipeline.map_or(0, |pipeline| pipeline.id),
            // A job that is tried again is another job.
            attempt: 1,
            repository: repository.clone(),
            name: self.name,
            labels: labels(self.tag_list),
            status: status(&self.status),
            runner: self.runner.map(|runner| (RunnerId(runner.id), runner.description.unwrap_or_default())),
            created: self.created_at,
        }
    }
}
