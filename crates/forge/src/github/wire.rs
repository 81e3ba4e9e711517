//! How GitHub spells runners, jobs, deliveries and scale sets.

use fleet::forge::{
    Delivery, Job, JobId, JobStatus, RepositoryName, Runner, RunnerDownload, RunnerId, ScaleSet, ScaleSetEvent,
    ScaleSetEventKind, ScaleSetId, Statistics,
};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeSet;

/// A page of runners.
#[derive(Deserialize)]
pub(crate) struct RunnerPage {
    pub(crate) total_count: usize,
    pub(crate) runners: Vec<WireRunner>,
}

#[derive(Deserialize)]
pub(crate) struct WireRunner {
    pub(crate) id: u64,
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    busy: bool,
    #[serde(default)]
    labels: Vec<Label>,
}

#[derive(Deserialize)]
struct Label {
    name: String,
}

fn names(labels: Vec<Label>) -> BTreeSet<String> {
    labels.into_iter().map(|label| label.name).collect()
}

impl From<WireRunner> for (RunnerId, Runner) {
    fn from(runner: WireRunner) -> (RunnerId, Runner) {
        let WireRunner { id, name, status, busy, labels } = runner;
        (RunnerId(id), Runner { name, is_online: status == "online", is_busy: busy, labels: names(labels) })
    }
}

/// The answer to `generate-jitconfig`, of the REST API and of the service of scale sets.
#[derive(Deserialize)]
pub(crate) struct WireJit {
    pub(crate) runner: RunnerRef,
    #[serde(alias = "encodedJITConfig")]
    pub(crate) encoded_jit_config: String,
}

#[derive(Deserialize)]
pub(crate) struct RunnerRef {
    pub(crate) id: u64,
}

/// A page of runner groups.
#[derive(Deserialize)]
pub(crate) struct GroupPage {
    pub(crate) runner_groups: Vec<Group>,
}

#[derive(Deserialize)]
pub(crate) struct Group {
    pub(crate) id: u64,
    pub(crate) name: String,
}

#[derive(Deserialize)]
pub(crate) struct WireDownload {
    #[serde(default)]
    os: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    download_url: String,
    #[serde(default)]
    filename: String,
    #[serde(default)]
    sha256_checksum: Option<String>,
}

impl WireDownload {
    /// Nothing if it has no version in its name.
    pub(crate) fn download(self) -> Option<RunnerDownload> {
        Some(RunnerDownload {
            version: version(&self.filename)?,
            os: self.os,
            architecture: self.architecture,
            url: self.download_url,
            sha256: self.sha256_checksum.filter(|sum| !sum.is_empty()),
        })
    }
}

/// `actions-runner-linux-x64-2.329.0.tar.gz` has its version before its suffix.
fn version(file: &str) -> Option<String> {
    let plain = file.strip_suffix(".tar.gz").or_else(|| file.strip_suffix(".zip"))?;
    let found = plain.rsplit('-').next()?;
    let is_version = found.contains('.') && found.split('.').all(|part| part.parse::<u64>().is_ok());
    is_version.then(|| found.to_owned())
}

/// A webhook of an organisation or a repository.
#[derive(Deserialize)]
pub(crate) struct WireHook {
    pub(crate) id: u64,
    #[serde(default)]
    pub(crate) config: HookConfig,
}

/// Where a webhook is sent.
#[derive(Default, Deserialize)]
pub(crate) struct HookConfig {
    #[serde(default)]
    pub(crate) url: String,
}

/// A page of repositories of an installation.
#[derive(Deserialize)]
pub(crate) struct RepositoryPage {
    pub(crate) repositories: Vec<WireRepository>,
}

#[derive(Deserialize)]
pub(crate) struct WireRepository {
    full_name: String,
    #[serde(default)]
    archived: bool,
    #[serde(default)]
    disabled: bool,
}

impl WireRepository {
    /// Nothing if no job can be queued there.
    pub(crate) fn name(&self) -> Option<RepositoryName> {
        RepositoryName::parse(&self.full_name).filter(|_| !self.archived && !self.disabled)
    }
}

/// A page of runs.
#[derive(Deserialize)]
pub(crate) struct RunPage {
    pub(crate) workflow_runs: Vec<WireRun>,
}

#[derive(Deserialize)]
pub(crate) struct WireRun {
    pub(crate) id: u64,
    #[serde(default = "one")]
    pub(crate) run_attempt: u64,
}

fn one() -> u64 {
    1
}

/// A page of jobs.
#[derive(Deserialize)]
pub(crate) struct JobPage {
    pub(crate) jobs: Vec<WireJob>,
}

#[derive(Deserialize)]
pub(crate) struct WireJob {
    id: u64,
    run_id: u64,
    #[serde(default = "one")]
    run_attempt: u64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    labels: Vec<String>,
    status: String,
    #[serde(default)]
    conclusion: Option<String>,
    #[serde(default)]
    runner_id: Option<u64>,
    #[serde(default)]
    runner_name: Option<String>,
    #[serde(default)]
    created_at: Option<Timestamp>,
}

impl WireJob {
    pub(crate) fn job(self, repository: &RepositoryName) -> Job {
        let status = match self.status.as_str() {
            "queued" => JobStatus::Queued,
            "in_progress" => JobStatus::InProgress,
            "completed" => JobStatus::Completed(self.conclusion.unwrap_or_default()),
            _ => JobStatus::Waiting,
        };
        Job {
            id: JobId(self.id),
            run: self.run_id,
            attempt: self.run_attempt,
            repository: repository.clone(),
            name: self.name,
            labels: self.labels.into_iter().collect(),
            status,
            runner: self.runner_id.filter(|id| *id != 0).map(|id| (RunnerId(id), self.runner_name.unwrap_or_default())),
            created: self.created_at,
        }
    }
}

#[derive(Deserialize)]
pub(crate) struct WireDelivery {
    id: u64,
    #[serde(default)]
    guid: String,
    delivered_at: Timestamp,
    #[serde(default)]
    redelivery: bool,
    #[serde(default)]
    status_code: i64,
    #[serde(default)]
    event: String,
    #[serde(default)]
    action: Option<String>,
}

impl From<WireDelivery> for Delivery {
    fn from(delivery: WireDelivery) -> Delivery {
        Delivery {
            id: delivery.id,
            guid: delivery.guid,
            at: delivery.delivered_at,
            event: (delivery.event, delivery.action),
            is_accepted: (200..300).contains(&delivery.status_code),
            is_redelivery: delivery.redelivery,
        }
    }
}

/// A list of the service of scale sets.
#[derive(Deserialize)]
pub(crate) struct ServiceList<T> {
    #[serde(default = "Vec::new")]
    pub(crate) value: Vec<T>,
}

#[derive(Deserialize)]
pub(crate) struct WireScaleSet {
    id: u64,
    name: String,
    #[serde(default)]
    labels: Vec<Label>,
    #[serde(default)]
    statistics: Option<WireStatistics>,
}

impl From<WireScaleSet> for ScaleSet {
    fn from(set: WireScaleSet) -> ScaleSet {
        let statistics = set.statistics.map(Statistics::from);
        ScaleSet { id: ScaleSetId(set.id), name: set.name, labels: names(set.labels), statistics, is_new: false }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct WireStatistics {
    total_available_jobs: u64,
    total_acquired_jobs: u64,
    total_assigned_jobs: u64,
    total_running_jobs: u64,
    total_registered_runners: u64,
    total_busy_runners: u64,
    total_idle_runners: u64,
}

impl From<WireStatistics> for Statistics {
    fn from(found: WireStatistics) -> Statistics {
        Statistics {
            available: found.total_available_jobs,
            acquired: found.total_acquired_jobs,
            assigned: found.total_assigned_jobs,
            running: found.total_running_jobs,
            registered: found.total_registered_runners,
            busy: found.total_busy_runners,
            idle: found.total_idle_runners,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireSession {
    pub(crate) session_id: String,
    pub(crate) message_queue_url: String,
    pub(crate) message_queue_access_token: String,
    #[serde(default)]
    pub(crate) statistics: Option<WireStatistics>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireMessage {
    pub(crate) message_id: u64,
    #[serde(default)]
    pub(crate) message_type: String,
    #[serde(default)]
    pub(crate) body: String,
    #[serde(default)]
    pub(crate) statistics: Option<WireStatistics>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WireEvent {
    #[serde(default)]
    message_type: String,
    #[serde(default)]
    runner_request_id: u64,
    #[serde(default)]
    repository_name: String,
    #[serde(default)]
    owner_name: String,
    #[serde(default)]
    job_display_name: String,
    #[serde(default)]
    workflow_run_id: u64,
    #[serde(default)]
    request_labels: Vec<String>,
    #[serde(default)]
    runner_id: u64,
    #[serde(default)]
    runner_name: String,
    #[serde(default)]
    result: String,
}

impl WireEvent {
    /// Nothing if it is of a kind that is not known.
    pub(crate) fn event(self) -> Option<ScaleSetEvent> {
        let runner = (self.runner_id != 0).then(|| (RunnerId(self.runner_id), self.runner_name.clone()));
        let kind = match self.message_type.as_str() {
            "JobAvailable" => ScaleSetEventKind::Available,
            "JobAssigned" => ScaleSetEventKind::Assigned,
            "JobStarted" => ScaleSetEventKind::Started(RunnerId(self.runner_id), self.runner_name),
            "JobCompleted" => ScaleSetEventKind::Completed(self.result, runner),
            _ => return None,
        };
        Some(ScaleSetEvent {
            kind,
            request: self.runner_request_id,
            repository: RepositoryName { owner: self.owner_name, name: self.repository_name },
            name: self.job_display_name,
            run: self.workflow_run_id,
            labels: self.request_labels.into_iter().collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{WireJob, WireRepository, version};
    use fleet::forge::{JobStatus, RepositoryName};
    use serde_json::json;

    #[test]
    fn versions_are_read_from_names_of_files() {
        assert_eq!(version("actions-runner-linux-x64-2.329.0.tar.gz").as_deref(), Some("2.329.0"));
        assert_eq!(version("actions-runner-win-x64-2.329.0.zip").as_deref(), Some("2.329.0"));
        for wrong in ["actions-runner-linux-x64.tar.gz", "x-2.a.tar.gz", "2.329.0"] {
            assert_eq!(version(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_job_without_optional_keys_is_read_and_a_status_that_is_not_known_waits() {
        let repository = RepositoryName { owner: "acme".into(), name: "shop".into() };
        let of = |status: &str| {
            let job: WireJob = serde_json::from_value(json!({"id": 1, "run_id": 2, "status": status})).unwrap();
            job.job(&repository)
        };
        assert_eq!((of("queued").status, of("queued").attempt), (JobStatus::Queued, 1));
        for status in ["waiting", "pending", "requested", "something new"] {
            assert_eq!(of(status).status, JobStatus::Waiting, "{status}");
        }
    }

    #[test]
    fn archived_repositories_have_no_jobs() {
        let of = |archived: bool| -> WireRepository {
            serde_json::from_value(json!({"full_name": "acme/shop", "archived": archived})).unwrap()
        };
        assert!(of(false).name().is_some() && of(true).name().is_none());
    }
}
