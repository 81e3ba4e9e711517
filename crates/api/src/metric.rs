//! The metrics that the operator exports; names and labels of the autopilot's first seven are the predecessor's.

/// What every name of the autopilot starts with.
pub const PREFIX: &str = "kubevirt_autopilot";
/// What every name of the advisor starts with.
pub const ADVISOR_PREFIX: &str = "virt_advisor";
/// What every name of the fleet starts with.
pub const FLEET_PREFIX: &str = "virtpilot_fleet";

/// The label of a profile.
const PROFILE: &[&str] = &["profile"];

/// The label of a hypervisor, as NAMESPACE/NAME.
const HYPERVISOR: &[&str] = &["hypervisor"];
/// The label of a pool of the fleet, as NAMESPACE/NAME.
const FLEET_POOL: &[&str] = &["pool"];

/// The labels of an object.
const OBJECT: &[&str] = &["kind", "name", "namespace"];

/// One metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name without the prefix.
    pub name: &'static str,
    /// What it counts or measures.
    pub form: Form,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// What it means.
    pub help: &'static str,
}

/// The type of a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A value that rises and falls.
    Gauge,
    /// A count that only grows.
    Counter,
    /// A distribution.
    Histogram,
}

impl Metric {
    /// The name of a metric of the autopilot, as Prometheus shows it.
    pub fn full_name(&self) -> String {
        self.name_after(PREFIX)
    }

    /// The same after another prefix.
    pub fn name_after(&self, prefix: &str) -> String {
        format!("{prefix}_{}", self.name)
    }

    /// The name to register: the library adds `_total` to a counter.
    pub fn registered(&self) -> &'static str {
        self.name.strip_suffix("_total").unwrap_or(self.name)
    }
}

const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, form: Form::Gauge, labels, help }
}

const fn histogram(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, form: Form::Histogram, labels, help }
}

const fn counter(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { name, form: Form::Counter, labels, help }
}

/// Whether an object is in sync.
pub const COMPLIANCE_STATUS: Metric = gauge(
    "compliance_status",
    OBJECT,
    "1 if the object is in sync, 0 if something failed; absent for unmanaged and excluded objects and while an object waits or is held",
);
/// Edit wars.
pub const THRASHING: Metric = counter(
    "thrashing_total",
    OBJECT,
    "Number of times the object was paused because another writer keeps changing it",
);
/// Paused objects.
pub const PAUSED_RESOURCES: Metric =
    gauge("paused_resources", OBJECT, "1 if reconciliation of the object is paused, 0 if not");
/// Overrides.
pub const CUSTOMIZATION_INFO: Metric = gauge(
    "customization_info",
    &["kind", "name", "namespace", "type"],
    "1 if the object has an override of this type: patch, ignore or unmanaged",
);
/// Missing CRDs.
pub const MISSING_DEPENDENCY: Metric = gauge(
    "missing_dependency",
    &["group", "version", "kind"],
    "1 if a requested asset needs this kind and the cluster does not serve it; for a gate CRD the version is empty",
);
/// The duration of writes.
pub const RECONCILE_DURATION: Metric = Metric {
    name: "reconcile_duration_seconds",
    form: Form::Histogram,
    labels: OBJECT,
    help: "Time from sending a write of the object to its answer",
};
/// Tombstones.
pub const TOMBSTONE_STATUS: Metric = gauge(
    "tombstone_status",
    OBJECT,
    "0 if the object is gone, 1 if it still exists, -1 if its deletion failed or is stuck, -2 if it may not be deleted",
);
/// Held objects.
pub const HELD_RESOURCES: Metric = gauge(
    "held_resources",
    &["kind", "name", "namespace", "reason"],
    "1 if the object waits or is held for this reason, such as ApprovalRequired; nothing failed",
);
/// Failed writes.
pub const APPLY_ERRORS: Metric = counter(
    "apply_errors_total",
    OBJECT,
    "Number of writes of the object that failed or had no answer; one that was only too late for a newer version does not count",
);
/// Corrections.
pub const DRIFT_CORRECTIONS: Metric = counter(
    "drift_corrections_total",
    &["kind", "name", "namespace", "manager"],
    "Number of corrections of the object, by the field manager that caused the drift; unknown after a deletion",
);
/// Approvals.
pub const PENDING_APPROVALS: Metric =
    gauge("pending_approvals", &[], "Number of objects whose write waits for an approval");
/// Maintenance windows.
pub const WAITING_FOR_WINDOW: Metric =
    gauge("waiting_for_window", &[], "Number of objects whose write waits for a maintenance window");
/// Pools.
pub const WAITING_FOR_POOL: Metric =
    gauge("waiting_for_pool", &[], "Number of objects whose write waits until its pool is healthy");
/// The machines of a pool.
pub const POOL_MACHINES: Metric = gauge("pool_machines", &["pool"], "Number of machines of the pool");
/// Those of them that are done.
pub const POOL_UPDATED_MACHINES: Metric =
    gauge("pool_updated_machines", &["pool"], "Number of machines of the pool that run its configuration");
/// Degraded pools.
pub const POOL_DEGRADED: Metric = gauge("pool_degraded", &["pool"], "1 if the pool is degraded, 0 if not");
/// Restarts.
pub const NODE_RESTARTS: Metric = counter(
    "node_restarts_total",
    &["pool"],
    "Number of restarts of nodes of the pool that were seen, by their boot id",
);
/// The version.
pub const BUILD_INFO: Metric = gauge(
    "build_info",
    &["version", "commit", "catalogue"],
    "1, with the version of the operator and of its asset pack",
);
/// Leadership.
pub const LEADER: Metric = gauge("leader", &[], "1 if this replica leads, 0 if it is a standby replica");

/// The phase of a profile.
pub const ADVISOR_PHASE: Metric =
    gauge("phase", &["profile", "phase"], "1 for the phase that the profile is in, and no series for the others");
/// Drift.
pub const ADVISOR_DRIFT: Metric = gauge(
    "drift",
    PROFILE,
    "Number of objects that somebody changed or deleted after the profile was applied, also while a changed input asks for a review; 0 while a plan is being applied or cannot be made",
);
/// Plans that wait.
pub const ADVISOR_WAITING_SINCE: Metric = gauge(
    "waiting_since_timestamp_seconds",
    PROFILE,
    "When the profile began to wait for an approval (ReviewRequired or CompletedWithUpgrade), as Unix time; a plan that replaces another one does not change it; absent if none waits",
);
/// Applied plans.
pub const ADVISOR_APPLY_DURATION: Metric = Metric {
    name: "apply_duration_seconds",
    form: Form::Histogram,
    labels: PROFILE,
    help: "Time from when the profile became InProgress until it was Completed, with the failures between; also of drift that was corrected without a review",
};
/// Ignored profiles.
pub const ADVISOR_IGNORED: Metric = gauge("ignored", PROFILE, "1 if the action of the profile is Ignore, 0 if not");

/// Profiles that wait for a maintenance window.
pub const ADVISOR_WAITING_FOR_WINDOW: Metric = gauge(
    "waiting_for_window",
    PROFILE,
    "1 while the next item of an approved plan waits for a maintenance window, 0 if not",
);

/// All of the advisor.
pub const ADVISOR: [Metric; 6] = [
    ADVISOR_PHASE,
    ADVISOR_DRIFT,
    ADVISOR_WAITING_SINCE,
    ADVISOR_WAITING_FOR_WINDOW,
    ADVISOR_APPLY_DURATION,
    ADVISOR_IGNORED,
];

/// Machines.
pub const FLEET_MACHINES: Metric = gauge(
    "machines",
    &["hypervisor", "phase"],
    "Number of claims by phase; a claim without a machine counts for the hypervisor of its template",
);
/// Machines by what their hypervisor says.
pub const FLEET_MACHINES_BY_POWER: Metric = gauge(
    "machines_by_power",
    &["hypervisor", "power"],
    "Number of machines of claims in the last list of the hypervisor by power state: running, stopped, or unknown because a node does not answer",
);
/// How long it takes until a machine is ready.
pub const FLEET_PROVISIONING_DURATION: Metric = histogram(
    "provisioning_duration_seconds",
    &["template"],
    "Time from the creation of a claim until its machine was ready",
);
/// How it ended.
pub const FLEET_PROVISIONING_RESULTS: Metric = counter(
    "provisioning_results_total",
    &["template", "result"],
    "Number of claims whose machine became ready (Ready), or that failed, by the reason",
);
/// Requests to hypervisors.
pub const FLEET_OPERATION_DURATION: Metric = histogram(
    "operation_duration_seconds",
    &["hypervisor", "operation"],
    "Time that an operation on the hypervisor took, whether it succeeded or not",
);
/// Requests of which operations consist.
pub const FLEET_REQUEST_DURATION: Metric = histogram(
    "hypervisor_request_duration_seconds",
    &["method", "path", "status"],
    "Time until a request to a hypervisor was answered; status is 2xx, 4xx, 5xx, or none if there was no answer",
);
/// Those that failed.
pub const FLEET_OPERATION_ERRORS: Metric = counter(
    "operation_errors_total",
    &["hypervisor", "operation", "class"],
    "Number of operations on the hypervisor that failed: Transient, Permanent, Configuration or Resource",
);
/// Hypervisors that answer.
pub const FLEET_HYPERVISOR_READY: Metric =
    gauge("hypervisor_ready", HYPERVISOR, "1 if machines can be created on the hypervisor, 0 if not");
/// CPUs that are left.
pub const FLEET_AVAILABLE_CPUS: Metric = gauge(
    "hypervisor_available_cpus",
    HYPERVISOR,
    "CPUs that are left for further machines on the hypervisor, with its overcommit",
);
/// Memory that is left.
pub const FLEET_AVAILABLE_MEMORY: Metric = gauge(
    "hypervisor_available_memory_bytes",
    HYPERVISOR,
    "Memory that is left for further machines on the hypervisor, with its overcommit",
);
/// Orphans that there are.
pub const FLEET_ORPHANS: Metric =
    gauge("orphans", HYPERVISOR, "Number of machines of this installation on the hypervisor that no claim refers to");
/// Orphans that were found.
pub const FLEET_ORPHANS_FOUND: Metric = counter(
    "orphans_found_total",
    HYPERVISOR,
    "Number of machines of this installation that were found without a claim",
);
/// Orphans that were destroyed.
pub const FLEET_ORPHANS_DESTROYED: Metric = counter(
    "orphans_destroyed_total",
    HYPERVISOR,
    "Number of attempts to destroy a machine without a claim after its grace period",
);
/// The size that a pool wants.
pub const FLEET_POOL_DESIRED: Metric =
    gauge("pool_desired_machines", FLEET_POOL, "Number of machines that the pool wants");
/// The size that it has.
pub const FLEET_POOL_MACHINES: Metric =
    gauge("pool_machines", FLEET_POOL, "Number of claims of the pool that have not failed and do not end");
/// Its machines that are ready.
pub const FLEET_POOL_READY: Metric =
    gauge("pool_ready_machines", FLEET_POOL, "Number of machines of the pool that are ready");
/// Its claims that failed.
pub const FLEET_POOL_FAILED: Metric =
    gauge("pool_failed_machines", FLEET_POOL, "Number of failed claims of the pool that are kept for inspection");
/// The version.
pub const FLEET_BUILD_INFO: Metric = gauge("build_info", &["version", "commit"], "1, with the version of the operator");
/// Leadership.
pub const FLEET_LEADER: Metric =
    gauge("leader", &[], "1 if this replica of the fleet leads, 0 if it is a standby replica");

/// Webhooks.
pub const FLEET_WEBHOOKS: Metric = counter(
    "webhooks_total",
    &["result"],
    "Number of webhooks, by what became of them: accepted, ignored (ping, other_event, repeated, too_old), or why they were refused",
);
/// Requests of guests.
pub const FLEET_BOOTSTRAP_REQUESTS: Metric = counter(
    "bootstrap_requests_total",
    &["request", "result"],
    "Number of requests to the bootstrap endpoint, by request (exchange, report, end) and what became of it",
);

/// All of the fleet.
pub const FLEET: [Metric; 21] = [
    FLEET_MACHINES,
    FLEET_MACHINES_BY_POWER,
    FLEET_PROVISIONING_DURATION,
    FLEET_PROVISIONING_RESULTS,
    FLEET_OPERATION_DURATION,
    FLEET_REQUEST_DURATION,
    FLEET_OPERATION_ERRORS,
    FLEET_HYPERVISOR_READY,
    FLEET_AVAILABLE_CPUS,
    FLEET_AVAILABLE_MEMORY,
    FLEET_ORPHANS,
    FLEET_ORPHANS_FOUND,
    FLEET_ORPHANS_DESTROYED,
    FLEET_POOL_DESIRED,
    FLEET_POOL_MACHINES,
    FLEET_POOL_READY,
    FLEET_POOL_FAILED,
    FLEET_BUILD_INFO,
    FLEET_LEADER,
    FLEET_WEBHOOKS,
    FLEET_BOOTSTRAP_REQUESTS,
];

/// Jobs that wait.
pub const FLEET_JOBS_WAITING: Metric =
    gauge("jobs_waiting", &["reason"], "Number of jobs that wait, by the reason that `virtpilot queue -o json` shows");
/// Since when they do.
pub const FLEET_JOBS_WAITING_SINCE: Metric = gauge(
    "jobs_waiting_since_timestamp_seconds",
    &["reason"],
    "When the job was created that has waited longest for this reason, in Unix time",
);
/// How long jobs waited.
pub const FLEET_JOB_QUEUE: Metric =
    histogram("job_queue_seconds", FLEET_POOL, "Time from the creation of a job until a runner of the pool started it");
/// The parts of that.
pub const FLEET_JOB_START_PHASE: Metric = histogram(
    "job_start_phase_seconds",
    &["pool", "phase"],
    "Parts of the queue time: notice (until the fleet heard of the job), admission (until it was granted a machine), creation (until its claim existed), boot (until the runner was online), assignment (until GitHub had given it the job)",
);
/// How jobs ended.
pub const FLEET_JOB_RESULTS: Metric = counter(
    "job_results_total",
    &["pool", "result"],
    "Number of jobs that ended on machines of the pool, by their conclusion",
);
/// Who reported jobs first.
pub const FLEET_JOBS_NOTICED: Metric = counter(
    "jobs_noticed_total",
    &["source"],
    "Number of jobs by the source that reported them first: webhook, scale-set or poll; a poll only finds what the others have lost",
);
/// Runners.
pub const FLEET_RUNNERS: Metric =
    gauge("runners", &["pool", "phase"], "Number of runners by phase: starting, idle, busy or ending");
/// What is left of the limit of requests.
pub const FLEET_FORGE_REMAINING: Metric = gauge(
    "github_requests_remaining",
    &["owner"],
    "Number of requests to GitHub that are left until its limit is reset",
);
/// The limit.
pub const FLEET_FORGE_LIMIT: Metric =
    gauge("github_requests_limit", &["owner"], "Number of requests to GitHub that are allowed in an hour");
/// Runners without a claim.
pub const FLEET_ORPHAN_RUNNERS: Metric = counter(
    "orphan_runners_found_total",
    &["owner"],
    "Number of runners of this installation that were registered on GitHub without a claim, and are removed",
);
/// Versions of runners.
pub const FLEET_RUNNER_VERSION: Metric = gauge(
    "runner_version_info",
    &["pool", "version", "role"],
    "1 for each runner version of the pool: current, canary (it is tried) or rolled-back",
);
/// When they are refused.
pub const FLEET_RUNNER_VERSION_REFUSED: Metric = gauge(
    "runner_version_refused_timestamp_seconds",
    &["pool", "version"],
    "When GitHub gives runners of the version that the pool uses no jobs any more, in Unix time; absent while it is the newest",
);
/// Webhooks that should come.
pub const FLEET_WEBHOOKS_EXPECTED: Metric = gauge(
    "webhooks_expected",
    &[],
    "Number of pools that name the secret of a webhook, so that GitHub should send events",
);

/// Webhooks that failed.
pub const FLEET_WEBHOOK_REDELIVERIES: Metric = counter(
    "webhook_redeliveries_total",
    &["result"],
    "Number of deliveries of webhooks that failed and that GitHub was asked to make again (asked), and of events that are left to polls (given-up)",
);

/// All of the jobs of the fleet.
pub const FLEET_JOBS: [Metric; 14] = [
    FLEET_JOBS_WAITING,
    FLEET_JOBS_WAITING_SINCE,
    FLEET_JOB_QUEUE,
    FLEET_JOB_START_PHASE,
    FLEET_JOB_RESULTS,
    FLEET_JOBS_NOTICED,
    FLEET_RUNNERS,
    FLEET_FORGE_REMAINING,
    FLEET_FORGE_LIMIT,
    FLEET_ORPHAN_RUNNERS,
    FLEET_RUNNER_VERSION,
    FLEET_RUNNER_VERSION_REFUSED,
    FLEET_WEBHOOKS_EXPECTED,
    FLEET_WEBHOOK_REDELIVERIES,
];

/// All of the autopilot.
pub const ALL: [Metric; 19] = [
    COMPLIANCE_STATUS,
    THRASHING,
    PAUSED_RESOURCES,
    CUSTOMIZATION_INFO,
    MISSING_DEPENDENCY,
    RECONCILE_DURATION,
    TOMBSTONE_STATUS,
    HELD_RESOURCES,
    APPLY_ERRORS,
    DRIFT_CORRECTIONS,
    PENDING_APPROVALS,
    WAITING_FOR_WINDOW,
    WAITING_FOR_POOL,
    POOL_MACHINES,
    POOL_UPDATED_MACHINES,
    POOL_DEGRADED,
    NODE_RESTARTS,
    BUILD_INFO,
    LEADER,
];
