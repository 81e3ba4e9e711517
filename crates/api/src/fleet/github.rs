//! What a `RunnerPool` says about the CI platform that its machines run jobs of.

use super::gitlab::Gitlab;
use super::measure::Span;
use super::reference::SecretKeyRef;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Settings of a workload, by platform.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct WorkloadConfig {
    /// Settings of `github-actions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub github: Option<Box<Github>>,
    /// Settings of `gitlab-ci`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gitlab: Option<Box<Gitlab>>,
    /// Settings of other workloads, which the fleet only passes on.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

/// Where jobs come from and runners are registered. With credentials the fleet registers a runner for each job; without them it makes machines only.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "!has(self.credentials) || has(self.organization) || has(self.repository) || has(self.enterprise)",
        "message": "workload.config.github names nobody whose jobs are run: set organization, repository or enterprise"
    },
    {
        "rule": "!has(self.credentials) || !has(self.enterprise) || (!has(self.organization) && !has(self.repository))",
        "message": "workload.config.github.enterprise excludes organization and repository: remove it or them"
    },
    {
        "rule": "!has(self.credentials) || !has(self.repository) || has(self.organization) || self.repository.contains('/')",
        "message": "workload.config.github.repository needs its owner: write OWNER/NAME, or set organization, too"
    },
    {
        "rule": "!has(self.credentials) || size(self.labels) > 0",
        "message": "workload.config.github.labels is empty: name the labels of runs-on, such as self-hosted and linux"
    },
    {
        "rule": "!has(self.credentials) || self.server.startsWith('https://')",
        "message": "workload.config.github.server must begin with https://, since credentials are sent to it"
    }
]))]
pub struct Github {
    /// The address of the GitHub: `https://github.com`, or that of an enterprise server.
    #[serde(default = "github_com")]
    #[schemars(length(max = 253))]
    pub server: String,
    /// The organisation whose jobs are run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub organization: Option<String>,
    /// The only repository whose jobs are run: `OWNER/NAME`, or `NAME` with `organization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub repository: Option<String>,
    /// The enterprise whose jobs are run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub enterprise: Option<String>,
    /// The labels of the runners; a job goes to a pool that has all its labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 50), inner(length(min = 1, max = 256)))]
    pub labels: Vec<String>,
    /// The runner group; the default one if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 200))]
    pub runner_group: Option<String>,
    /// The only repositories that the runner group serves, without their owner; all if none is named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1_000), inner(length(min = 1, max = 100)))]
    pub repositories: Vec<String>,
    /// How the fleet logs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<GithubCredentials>,
    /// The authorities that the certificate of an enterprise server comes from, as PEM; those of the system if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<SecretKeyRef>,
    /// The secrets of the webhooks that send `workflow_job`; two while one is replaced. An event is taken for the pools whose secret signed it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 4))]
    pub webhook_secrets: Vec<SecretKeyRef>,
    /// Where those webhooks are sent, such as `https://fleet.example.com/webhooks/github`: what could not be delivered there is delivered again.
    /// Without it that is done for the webhook of an App, if its address ends with `/webhooks/github`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_000), regex(pattern = r"^https?://"))]
    pub webhook_address: Option<String>,
    /// Where the fleet hears of jobs. Polls also find what webhooks have lost.
    #[serde(default = "all_sources")]
    #[schemars(length(min = 1, max = 3))]
    pub sources: Vec<JobSource>,
    /// The scale set of the runners, which GitHub assigns jobs to; it is created with the labels of the pool. Needs the source `ScaleSet`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 100))]
    pub scale_set: Option<String>,
    /// Of several pools that may run a job, the one with the highest number does.
    #[serde(default)]
    #[schemars(range(min = -1_000, max = 1_000))]
    pub priority: i32,
    /// No machine is made for jobs; those that run one go on.
    #[serde(default)]
    pub paused: bool,
    /// The runner that is started in the machines.
    #[serde(default)]
    pub runner: RunnerProgram,
    /// What ends a runner and its machine.
    #[serde(default)]
    pub limits: RunnerLimits,
    /// How many machines repositories of the pool may have at a time. Of what several pools say about one repository or owner, the smallest
    /// number counts.
    #[serde(default)]
    pub quotas: JobQuotas,
}

fn github_com() -> String {
    "https://github.com".into()
}

fn all_sources() -> Vec<JobSource> {
    vec![JobSource::Webhook, JobSource::ScaleSet, JobSource::Poll]
}

/// Where the fleet hears of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum JobSource {
    /// Events that GitHub sends; needs `webhookSecrets`.
    Webhook,
    /// Messages of the scale set; needs `scaleSet`.
    ScaleSet,
    /// Lists of jobs, which the fleet asks for.
    Poll,
}

/// How the fleet logs in. Credentials never reach a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "has(self.token) != has(self.app)",
    "message": "workload.config.github.credentials has either token or app, and not both"
}]))]
pub struct GithubCredentials {
    /// A personal access token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<SecretKeyRef>,
    /// A GitHub App.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<GithubApp>,
}

/// A GitHub App.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GithubApp {
    /// Its id or its client id.
    #[schemars(length(min = 1, max = 100))]
    pub id: String,
    /// The id of its installation; it is looked up if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installation: Option<u64>,
    /// Its private key, as PEM.
    pub private_key: SecretKeyRef,
}

/// The runner that is started in machines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "(has(self.folder) ? 1 : 0) + (has(self.archive) ? 1 : 0) + (has(self.download) ? 1 : 0) + (has(self.upkeep) ? 1 : 0) <= 1",
    "message": "workload.config.github.runner has one of folder, archive, download and upkeep"
}, {
    "rule": "!has(self.version) || (!has(self.download) && !has(self.upkeep))",
    "message": "workload.config.github.runner.version is that of the image: with download or upkeep, set the version there"
}]))]
pub struct RunnerProgram {
    /// A folder of the image with the unpacked runner; `/opt/actions-runner` if no archive, download or upkeep is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1_000))]
    pub folder: Option<String>,
    /// An archive of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<RunnerArchive>,
    /// An archive that each machine downloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub download: Option<RunnerDownload>,
    /// The archive that GitHub offers, which each machine downloads. The fleet chooses its version, and tries a new one on a few machines first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upkeep: Option<RunnerUpkeep>,
    /// The version of the runner of the image, such as `2.329.0`: with it, people hear before GitHub refuses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$"))]
    pub version: Option<String>,
    /// The user that it runs as; root if none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub user: Option<String>,
    /// Its credentials are removed when a job starts: jobs cannot read them, but after an hour the runner does not hear of a cancellation.
    #[serde(default)]
    pub remove_credentials_at_job_start: bool,
}

/// An archive of the image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerArchive {
    /// Its path.
    #[schemars(length(min = 1, max = 1_000))]
    pub path: String,
    /// Its SHA-256 in hexadecimal digits.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: String,
}

/// An archive that each machine downloads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerDownload {
    /// Its address; `{version}` in it is replaced.
    #[schemars(length(min = 1, max = 1_000), regex(pattern = r"^https://"))]
    pub url: String,
    /// Its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32))]
    pub version: Option<String>,
    /// Its SHA-256 in hexadecimal digits.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: String,
}

/// The archive that GitHub offers, in a version that the fleet chooses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerUpkeep {
    /// The architecture of the machines.
    #[serde(default)]
    pub architecture: RunnerArchitecture,
    /// The only version that machines get, as long as it is known where it is: it was offered while the pool existed. Nothing is tried then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}$"))]
    pub version: Option<String>,
    /// A new version is tried so long after it was offered first; at once if nothing is given, or if no other can be used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum_age: Option<Span>,
    /// So many percent of the machines may have a version that is tried; one may in any case.
    #[serde(default = "ten_percent")]
    #[schemars(range(min = 1, max = 100))]
    pub canary_percent: u32,
}

fn ten_percent() -> u32 {
    10
}

/// The architecture of machines, as GitHub calls it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunnerArchitecture {
    /// x86-64.
    #[default]
    X64,
    /// 64-bit ARM.
    Arm64,
    /// 32-bit ARM.
    Arm,
}

impl RunnerArchitecture {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            RunnerArchitecture::X64 => "x64",
            RunnerArchitecture::Arm64 => "arm64",
            RunnerArchitecture::Arm => "arm",
        }
    }
}

/// What ends a runner and its machine, from inside. The operator ends machines, too, by `lifecycle`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerLimits {
    /// A runner that has waited for a job for so long; 30m if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Span>,
    /// A job that takes longer; 6h if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Span>,
    /// A machine that is older, also during a job; `lifecycle.maxLifetime`, or 1d.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime: Option<Span>,
    /// A runner that is obtained for longer; 15m if nothing is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prepare: Option<Span>,
}

/// How many machines repositories may have at a time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobQuotas {
    /// All repositories of the owner together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub owner: Option<u32>,
    /// Each repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub each_repository: Option<u32>,
    /// Repositories with rules of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["repository"]))]
    pub repositories: Vec<RepositoryShare>,
}

/// The rules of one repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RepositoryShare {
    /// The repository: `OWNER/NAME`, or `NAME` of the owner of the pool.
    #[schemars(length(min = 1, max = 200))]
    pub repository: String,
    /// How many machines it may have at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub quota: Option<u32>,
    /// Twice the weight is twice the machines, if there are not enough.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1_000))]
    pub weight: u32,
    /// Jobs of repositories with higher numbers go first, for half an hour.
    #[serde(default)]
    #[schemars(range(min = -1_000, max = 1_000))]
    pub priority: i32,
}

fn one() -> u32 {
    1
}

impl Github {
    /// All Secrets that are named.
    pub fn refs(&self) -> impl Iterator<Item = &SecretKeyRef> {
        let credentials = self.credentials.iter();
        let login =
            credentials.flat_map(|found| found.token.iter().chain(found.app.iter().map(|app| &app.private_key)));
        login.chain(&self.ca_certificate).chain(&self.webhook_secrets)
    }
}
