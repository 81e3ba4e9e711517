//! `MachineClaim`: one machine, for as long as the claim exists.

use super::measure::Span;
use super::pool::Workload;
use super::reference::LocalRef;
use super::{Condition, Time};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One machine.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "hyperfleet.io",
    version = "v1alpha1",
    kind = "MachineClaim",
    plural = "machineclaims",
    singular = "machineclaim",
    shortname = "mclaim",
    category = "hyperfleet",
    namespaced,
    status = "MachineClaimStatus",
    derive = "PartialEq",
    doc = "One machine, for as long as the claim exists.",
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Machine", "type": "string", "jsonPath": ".status.vmRef.vmId"}"#,
    printcolumn = r#"{"name": "Node", "type": "string", "jsonPath": ".status.vmRef.node"}"#,
    printcolumn = r#"{"name": "Address", "type": "string", "jsonPath": ".status.networkInfo.ipAddress"}"#,
    printcolumn = r#"{"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason"}"#,
    printcolumn = r#"{"name": "Pool", "type": "string", "jsonPath": ".spec.runnerPoolRef.name", "priority": 1}"#,
    printcolumn = r#"{"name": "Runner", "type": "string", "jsonPath": ".status.runner.name", "priority": 1}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.templateRef == oldSelf.templateRef",
        "message": "templateRef cannot be changed; create another MachineClaim"
    },
    {
        "rule": "has(self.runnerPoolRef) == has(oldSelf.runnerPoolRef) && (!has(self.runnerPoolRef) || self.runnerPoolRef == oldSelf.runnerPoolRef)",
        "message": "runnerPoolRef cannot be changed: a claim stays in its pool; create another MachineClaim"
    },
    {
        "rule": "self.power == oldSelf.power || self.power == 'Running'",
        "message": "a machine that was asked to run cannot be asked to wait again; delete the claim to end the machine"
    }
]))]
pub struct MachineClaimSpec {
    /// The template of the machine.
    pub template_ref: LocalRef,
    /// The pool that the claim belongs to; a claim may be made by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_pool_ref: Option<LocalRef>,
    /// Stopped creates and configures the machine and starts it once this is Running.
    #[serde(default)]
    pub power: ClaimPower,
    /// The claim is deleted this long after it was created, whatever became of its machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<Span>,
    /// The claim is deleted this long after its machine was started; one of a pool up to a tenth earlier, so that not all end at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lifetime: Option<Span>,
    /// The generation of its template when its pool created it. A pool replaces machines of an earlier one while they are idle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_generation: Option<i64>,
    /// The version of the runner that its guest gets, if its pool has `upkeep`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub runner_version: Option<String>,
    /// What the machine is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload_config: Option<Workload>,
}

/// Whether a machine is to run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ClaimPower {
    /// It is started.
    #[default]
    Running,
    /// It waits.
    Stopped,
}

/// The state of a `MachineClaim`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineClaimStatus {
    /// How far it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClaimPhase>,
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The machine. It is recorded before the hypervisor is asked to create it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vm_ref: Option<VmRef>,
    /// Its addresses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_info: Option<NetworkInfo>,
    /// When the machine was seen to exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_time: Option<Time>,
    /// When it was seen to run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_time: Option<Time>,
    /// When it was ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_time: Option<Time>,
    /// When it had taken its cloud-init data: the image was removed from the hypervisor, or the guest agent had carried it out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seeded_time: Option<Time>,
    /// Its runner, from its registration on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<Box<RunnerRecord>>,
    /// What its guest has proved, without any secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_info: Option<Box<BootstrapInfo>>,
    /// Why its guest has ended, if that is not as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guest_failure: Option<Box<GuestFailure>>,
    /// Since when it is ready and not busy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_since: Option<Time>,
    /// How often something has failed since the last success.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    /// What failed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<LastFailure>,
    /// Provisioning, Bootstrapped, Ready and VMCleanedUp.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// How far a claim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ClaimPhase {
    /// There is no machine yet: it waits for the hypervisor, its template, or room.
    Pending,
    /// The machine is created, configured and started.
    Provisioning,
    /// It runs, and is not ready yet.
    Bootstrapping,
    /// It is ready.
    Ready,
    /// It takes no more work, and ends when it is not busy.
    Draining,
    /// The machine is destroyed, and then the claim goes.
    Terminating,
    /// It will not become ready; it is kept for inspection.
    Failed,
}

impl ClaimPhase {
    /// All of them, in the order of a machine's life.
    pub const ALL: [ClaimPhase; 7] = [
        ClaimPhase::Pending,
        ClaimPhase::Provisioning,
        ClaimPhase::Bootstrapping,
        ClaimPhase::Ready,
        ClaimPhase::Draining,
        ClaimPhase::Terminating,
        ClaimPhase::Failed,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            ClaimPhase::Pending => "Pending",
            ClaimPhase::Provisioning => "Provisioning",
            ClaimPhase::Bootstrapping => "Bootstrapping",
            ClaimPhase::Ready => "Ready",
            ClaimPhase::Draining => "Draining",
            ClaimPhase::Terminating => "Terminating",
            ClaimPhase::Failed => "Failed",
        }
    }
}

/// A machine on a hypervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VmRef {
    /// Namespace and name of its `HypervisorCluster`, as `NAMESPACE/NAME`.
    pub hypervisor_cluster: String,
    /// What the hypervisor calls it.
    pub vm_id: String,
    /// The node it is on, or is created on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
}

/// The addresses of a machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkInfo {
    /// The first address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip_address: Option<String>,
    /// All addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// The address of its network card.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac_address: Option<String>,
}

/// A runner that is registered on a CI platform. Its configuration is never kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerRecord {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The scale set that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale_set: Option<u64>,
    /// Where it is registered, whatever its pool says now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<RunnerScope>,
    /// When it was registered.
    pub registered_time: Time,
    /// When its configuration had reached the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered_time: Option<Time>,
}

/// Where a runner is registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunnerScope {
    /// The address of the API.
    pub server: String,
    /// The organisation or the user, in lower case; `enterprises/NAME` for an enterprise.
    pub owner: String,
    /// The repository, if it is of one repository only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
}

/// What the guest of a machine has proved. Tokens are recorded by their SHA-256 only, so that an operator that is started again knows them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BootstrapInfo {
    /// The digest of the token that works once.
    pub token: String,
    /// Until when it works.
    pub expires: Time,
    /// Who has used it, as a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// The digest of the token of its reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<String>,
    /// When it got the configuration of its runner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_time: Option<Time>,
    /// Whether it has reported since.
    #[serde(default)]
    pub has_reported: bool,
    /// Whether it has said that it ends.
    #[serde(default)]
    pub has_ended: bool,
    /// Whether it was asked to end unless a job runs.
    #[serde(default)]
    pub stop: bool,
}

/// Why the guest of a machine has ended, as it said itself, without any secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GuestFailure {
    /// In one word.
    pub reason: String,
    /// The reason and the step of the guest, and what happened.
    pub message: String,
}

/// Something that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastFailure {
    /// What helps.
    pub class: FailureClass,
    /// What happened, and what to do.
    pub message: String,
    /// When it happened first.
    pub time: Time,
}

/// What helps against a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum FailureClass {
    /// Waiting: it is tried again.
    Transient,
    /// Nothing: the claim has failed.
    Permanent,
    /// A person has to change something.
    Configuration,
    /// Room on the hypervisor: it is tried again.
    Resource,
}
