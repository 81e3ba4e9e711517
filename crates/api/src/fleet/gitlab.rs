//! What a `RunnerPool` says about GitLab, if its machines run jobs of that.

use super::github::{JobQuotas, RunnerArchive, RunnerDownload, RunnerLimits};
use super::reference::SecretKeyRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where jobs come from and runners are registered. With credentials the fleet registers a runner for each job; without them it makes machines only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.credentials) || has(self.group) != has(self.project)",
        "message": "workload.config.gitlab names whose jobs are run by either group or project: set one of them"
    },
    {
        "rule": "!has(self.credentials) || self.runUntagged || (has(self.tags) && size(self.tags) > 0)",
        "message": "workload.config.gitlab.tags is empty: name the tags of jobs, or set runUntagged to run those without tags"
    },
    {
        "rule": "!has(self.credentials) || self.url.startsWith('https://')",
        "message": "workload.config.gitlab.url must begin with https://, since credentials are sent to it"
    }
]))]
pub struct Gitlab {
    /// The address of the server: `https://gitlab.com`, or that of one of your own.
    #[serde(default = "gitlab_com")]
    #[schemars(length(max = 253))]
    pub url: String,
    /// The path of the group whose jobs are run, such as `acme` or `acme/lab`, with those of all groups below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 255),
        regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$")
    )]
    pub group: Option<String>,
    /// The path of the only project whose jobs are run, such as `acme/shop`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 3, max = 255),
        regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)+$")
    )]
    pub project: Option<String>,
    /// The tags of the runners; a job goes to a pool that has all its tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 255)))]
    pub tags: Vec<String>,
    /// Jobs without tags are run, too.
    #[serde(default)]
    pub run_untagged: bool,
    /// How the fleet logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<GitlabCredentials>,
    /// The authorities that the certificate of the server comes from, as PEM; those of the system if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<SecretKeyRef>,
    /// The secret tokens of the webhooks that send job events; two while one is replaced. An event is taken for the pools whose token it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub webhook_secrets: Vec<SecretKeyRef>,
    /// Where the fleet hears of jobs. Polls also find what webhooks have lost.
    #[serde(default = "all_sources")]
    #[schemars(length(min = 1, max = 2))]
    pub sources: Vec<GitlabSource>,
    /// Of several pools that may run a job, the one with the highest number does.
    #[serde(default)]
    #[schemars(range(min = -1_000, max = 1_000))]
    pub priority: i32,
    /// No machine is made for jobs; those that run one go on.
    #[serde(default)]
    pub paused: bool,
    /// The runner that is started in the machines.
    #[serde(default)]
    pub runner: GitlabRunner,
    /// What ends a runner and its machine.
    #[serde(default)]
    pub limits: RunnerLimits,
    /// How many machines projects of the pool may have at a time; `repository` is the path of a project. Of what several pools say about one
    /// project or group, the smallest number counts.
    #[serde(default)]
    pub quotas: JobQuotas,
}

fn gitlab_com() -> String {
    "https://gitlab.com".into()
}

fn all_sources() -> Vec<GitlabSource> {
    vec![GitlabSource::Webhook, GitlabSource::Poll]
}

/// Where the fleet hears of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum GitlabSource {
    /// Events that GitLab sends; needs `webhookSecrets`.
    Webhook,
    /// Lists of jobs, which the fleet asks for.
    Poll,
}

/// How the fleet logs in. Credentials never reach a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GitlabCredentials {
    /// An access token with the scopes `create_runner`, `manage_runner` and `read_api`, of the group or project or of a person.
    pub token: SecretKeyRef,
}

/// The runner that is started in machines: `gitlab-runner` with a `run.sh` beside it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.folder) ? 1 : 0) + (has(self.archive) ? 1 : 0) + (has(self.download) ? 1 : 0) <= 1",
    "message": "workload.config.gitlab.runner has one of folder, archive and download"
}]))]
pub struct GitlabRunner {
    /// A folder of the image with the runner; `/opt/gitlab-runner` if no archive or download is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_000))]
    pub folder: Option<String>,
    /// An archive of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<RunnerArchive>,
    /// An archive that each machine downloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<RunnerDownload>,
    /// The user that it runs as; root if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub user: Option<String>,
    /// Its credentials are removed when a job starts: jobs cannot read them.
    #[serde(default)]
    pub remove_credentials_at_job_start: bool,
}

impl Gitlab {
    /// All Secrets that are named.
    pub fn refs(&self) -> impl Iterator<Item = &SecretKeyRef> {
        let login = self.credentials.iter().map(|found| &found.token);
        login.chain(&self.ca_certificate).chain(&self.webhook_secrets)
    }
}
