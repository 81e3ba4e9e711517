//! `RunnerPool`: how many machines there are, and how long they live.

use super::Condition;
use super::github::WorkloadConfig;
use super::measure::{Quantity, Span};
use super::reference::LocalRef;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A number of machines of one template.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hyperfleet.io",
    version = "v1alpha1",
    kind = "RunnerPool",
    plural = "runnerpools",
    singular = "runnerpool",
    shortname = "rp",
    category = "hyperfleet",
    namespaced,
    status = "RunnerPoolStatus",
    derive = "PartialEq",
    doc = "A number of machines of one template.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn = r#"{"name": "Template", "type": "string", "jsonPath": ".spec.templateRef.name"}"#,
    printcolumn = r#"{"name": "Desired", "type": "integer", "jsonPath": ".status.desiredReplicas"}"#,
    printcolumn = r#"{"name": "Current", "type": "integer", "jsonPath": ".status.replicas"}"#,
    printcolumn = r#"{"name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas"}"#,
    printcolumn = r#"{"name": "Queued", "type": "integer", "jsonPath": ".status.queued"}"#,
    printcolumn = r#"{"name": "Starting", "type": "integer", "jsonPath": ".status.starting"}"#,
    printcolumn = r#"{"name": "Idle", "type": "integer", "jsonPath": ".status.idle"}"#,
    printcolumn = r#"{"name": "Busy", "type": "integer", "jsonPath": ".status.busy"}"#,
    printcolumn = r#"{"name": "Failed", "type": "integer", "jsonPath": ".status.failedReplicas", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct RunnerPoolSpec {
    /// The template of its machines. Idle machines and stopped spares of another one, or of an earlier generation of it, are replaced, a quarter of them at a time.
    pub template_ref: LocalRef,
    /// How many machines are wanted beside spares, between the minimum and the maximum. `kubectl scale` sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub replicas: Option<i32>,
    /// How the number of machines follows demand.
    #[serde(default)]
    pub scaling: Scaling,
    /// How long machines live.
    #[serde(default)]
    pub lifecycle: Lifecycle,
    /// How many failed claims are kept for inspection. They do not count as machines, but as a part of the quota: fewer are kept where that is needed.
    #[serde(default = "two")]
    #[schemars(range(min = 0, max = 100))]
    pub keep_failed: i32,
    /// What all machines of the pool may use together, also those of failed claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Quota>,
    /// What machines are for; it is passed on to claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
}

fn two() -> i32 {
    2
}

/// How the number of machines follows demand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.minReplicas <= self.maxReplicas",
    "message": "scaling.minReplicas must not be greater than scaling.maxReplicas"
}]))]
pub struct Scaling {
    /// There are at least so many.
    #[serde(default)]
    #[schemars(range(min = 0, max = 10_000))]
    pub min_replicas: i32,
    /// There are at most so many.
    #[serde(default = "ten")]
    #[schemars(range(min = 0, max = 10_000))]
    pub max_replicas: i32,
    /// A machine that is not wanted any more is kept for so long.
    #[serde(default = "five_minutes")]
    pub scale_down_delay: Span,
    /// Machines beyond demand, so that work does not wait.
    #[serde(default)]
    pub spares: Spares,
    /// Minimums at certain times; of several, the highest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub schedules: Vec<Schedule>,
}

fn ten() -> i32 {
    10
}

fn five_minutes() -> Span {
    Span("5m".into())
}

impl Default for Scaling {
    fn default() -> Scaling {
        Scaling {
            min_replicas: 0,
            max_replicas: ten(),
            scale_down_delay: five_minutes(),
            spares: Spares::default(),
            schedules: Vec::new(),
        }
    }
}

/// Machines beyond demand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Spares {
    /// Machines that run and wait.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000))]
    pub booted: i32,
    /// Machines that are created and configured, and started when they are needed.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1_000))]
    pub stopped: i32,
}

/// A minimum at certain times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Schedule {
    /// The days; without them, every day.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 7))]
    pub days: Vec<Weekday>,
    /// From this time of day, such as `07:30`.
    #[schemars(regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub from: String,
    /// Up to this time of day; one that is not later than `from` is on the next day.
    #[schemars(regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"))]
    pub to: String,
    /// The time zone, such as `Europe/Berlin`.
    #[serde(default = "utc")]
    #[schemars(length(max = 64))]
    pub time_zone: String,
    /// There are at least so many machines then.
    #[schemars(range(min = 0, max = 10_000))]
    pub min_replicas: i32,
}

fn utc() -> String {
    "UTC".into()
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Weekday {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

/// How long machines live.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Lifecycle {
    /// A machine is ended and replaced this long after its start, also if it is busy; up to a tenth earlier, so that not all end at once. A stopped spare is
    /// replaced this long after its claim was created, or after 7 days if this is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lifetime: Option<Span>,
    /// A machine beyond the minimum that has been ready and not busy for so long is ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_timeout: Option<Span>,
    /// A machine that is drained and still busy after this is ended all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_timeout: Option<Span>,
    /// A machine that could not be made for so long after the first failure is given up: its claim fails, and another one is made. `15m` if it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provisioning_timeout: Option<Span>,
}

/// What all machines of a pool may use together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Quota {
    /// CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Quantity>,
}

/// What machines are for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "self.type in ['github-actions', 'gitlab-ci', 'buildkite', 'generic']",
    "message": "workload.type must be github-actions, gitlab-ci, buildkite or generic"
}, {
    "rule": "self.type == 'github-actions' || !has(self.config) || !has(self.config.github) || !has(self.config.github.credentials)",
    "message": "workload.config.github has credentials, which need workload.type github-actions"
}, {
    "rule": "self.type == 'gitlab-ci' || !has(self.config) || !has(self.config.gitlab) || !has(self.config.gitlab.credentials)",
    "message": "workload.config.gitlab has credentials, which need workload.type gitlab-ci"
}]))]
pub struct Workload {
    /// `github-actions`, `gitlab-ci`, `buildkite` or `generic`.
    #[schemars(length(max = 32))]
    pub r#type: String,
    /// Settings of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<WorkloadConfig>,
}

/// The state of a `RunnerPool`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerPoolStatus {
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many machines are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_replicas: Option<i32>,
    /// How many claims there are that have not failed and do not end.
    #[serde(default)]
    pub replicas: i32,
    /// How many of them are ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
    /// How many failed claims are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_replicas: Option<i32>,
    /// How many jobs wait for this pool; only of a pool with runners.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<i32>,
    /// How many machines are not ready yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting: Option<i32>,
    /// How many are ready and do nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<i32>,
    /// How many work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<i32>,
    /// The scale set of its runners on GitHub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_set: Option<ScaleSetRecord>,
    /// The label selector of its claims, for the scale subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// Since when fewer machines are wanted than there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surplus_since: Option<super::Time>,
    /// The versions of the runner that machines get; only of a pool that names one or has `upkeep`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_versions: Option<super::RunnerVersions>,
    /// Ready, Scaling, of a pool with runners Connected, Demand, ScaleSet and RunnerVersion, and InUse: what keeps a deleted object.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A scale set on GitHub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScaleSetRecord {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Whose it is: the address of the organisation, repository or enterprise.
    pub scope: String,
    /// Whether the fleet has created it. It deletes no other.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_created: bool,
}

/// The settings of runners that the fleet registers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Runners<'a> {
    /// Of GitHub.
    Github(&'a super::Github),
    /// Of GitLab.
    Gitlab(&'a super::Gitlab),
}

impl<'a> Runners<'a> {
    /// All Secrets that are named.
    pub fn refs(self) -> Vec<&'a super::SecretKeyRef> {
        match self {
            Runners::Github(github) => github.refs().collect(),
            Runners::Gitlab(gitlab) => gitlab.refs().collect(),
        }
    }
}

impl Workload {
    /// The settings of runners; nothing if the machines are not for runners that the fleet registers.
    pub fn runners(&self) -> Option<Runners<'_>> {
        let config = self.config.as_ref()?;
        match self.r#type.as_str() {
            "github-actions" => {
                config.github.as_deref().filter(|found| found.credentials.is_some()).map(Runners::Github)
            }
            "gitlab-ci" => config.gitlab.as_deref().filter(|found| found.credentials.is_some()).map(Runners::Gitlab),
            _ => None,
        }
    }
}
