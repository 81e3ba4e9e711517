//! What the advisor shows. Nothing of it is executed: a plan is computed again before it is applied.

use super::phase::Phase;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The state of a `VirtPlatformConfig`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VirtPlatformConfigStatus {
    /// The phase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// The worst impact of the items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact_severity: Option<Impact>,
    /// The generation of the spec that this status is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The digest of the plan: of its targets, their desired content, what it replaces, and the inputs it came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_digest: Option<String>,
    /// The plan that was shown for review before this one, and what is different now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_plan: Option<ReplacedPlan>,
    /// The plan that was shown for review, while a part of it cannot be planned: the next one is compared with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted_plan: Option<InterruptedPlan>,
    /// Whether the plan restores what was there before the profile was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<bool>,
    /// The plan that a person approved and that is being applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<ApprovedPlan>,
    /// The last plan that was applied completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied: Option<AppliedPlan>,
    /// The digest of what the plan found in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_snapshot_hash: Option<String>,
    /// The version of the operator that made the plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<String>,
    /// The options that the plan was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_options: Option<Map<String, Value>>,
    /// The values of the cluster that the plan was derived from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub inputs: Vec<Input>,
    /// The plan, in the order in which it is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub items: Vec<Item>,
    /// The conditions Ready, Progressing and Degraded, and one for each phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}

/// A plan that waited for a review when the cluster changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReplacedPlan {
    /// Its digest.
    pub digest: String,
    /// What is different now, a sentence each.
    pub changes: Vec<String>,
}

/// A plan that was shown for review before a part of it could not be planned any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterruptedPlan {
    /// Its digest. It cannot be approved meanwhile.
    pub digest: String,
    /// The digests of its items.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub items: Vec<ApprovedItem>,
    /// The plan that it had replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<ReplacedPlan>,
}

/// A plan that a person approved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedPlan {
    /// Its digest.
    pub digest: String,
    /// The generation of the spec that approved it.
    pub generation: i64,
    /// The digest of what it makes of all objects, whatever they are now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The digests of its items; none if the cluster had changed before it was approved, so that nothing of it is applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub items: Vec<ApprovedItem>,
}

/// An item of a plan that a person approved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovedItem {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub digest: String,
}

/// A plan that was applied completely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedPlan {
    /// Its digest.
    pub digest: String,
    /// The digest of what it makes of all objects.
    pub content: String,
    /// The digest of the options that it was made with.
    pub request: String,
    /// When everything was applied and healthy.
    pub time: Time,
    /// The values of the cluster that it was derived from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub inputs: Vec<Input>,
    /// What it made of each object, so that drift is recognised also while another version of the operator wants something else.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub items: Vec<AppliedItem>,
    /// When drift was corrected without a review in the last hour.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrections: Vec<Time>,
}

/// An item of a plan that was applied completely.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppliedItem {
    /// Its name.
    pub name: String,
    /// Its object.
    pub object: String,
    /// The digest of what was wanted of its object.
    pub content: String,
}

/// A point in time, as RFC 3339 writes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Time(#[schemars(extend("format" = "date-time"))] pub String);

/// A condition, as all Kubernetes objects have them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Its type.
    #[schemars(length(max = 316))]
    pub r#type: String,
    /// Whether it holds.
    pub status: Truth,
    /// The generation of the spec that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When its status changed.
    pub last_transition_time: Time,
    /// Why, in one word.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Why, in a sentence.
    #[schemars(length(max = 32768))]
    pub message: String,
}

/// Whether a condition holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

/// How much a change disturbs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Impact {
    /// Nobody notices.
    Low,
    /// Something behaves differently.
    Medium,
    /// Nodes restart, or virtual machines move.
    High,
}

/// A value of the cluster that a plan was derived from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Input {
    /// Where it is.
    pub name: String,
    /// The value.
    pub value: String,
}

/// One object of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its name, unique within the plan.
    pub name: String,
    /// The object.
    pub target_ref: TargetRef,
    /// The digest of what is done to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// What is done to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// How much that disturbs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub impact_severity: Option<Impact>,
    /// The difference as the server would apply it. Each line begins with a +, a - or a space; then follows the path of a field with its value,
    /// or, after two more spaces, one line of a text, for example of a file or unit of a MachineConfig. What looks like a secret is not shown.
    /// It is cut after 32 KiB; the last line then says how to see the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The fields that are applied, as far as they may be shown; nothing if they are larger than 32 KiB. It is shown, and never executed. Files of
    /// a MachineConfig are encoded: virtpilot plan show NAME --full prints them as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desired_state: Option<Map<String, Value>>,
    /// How far it is.
    #[serde(default)]
    pub state: ItemState,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the state changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Time>,
    /// When it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applied_time: Option<Time>,
    /// Since when it is approved, would be written next, and waits for something else, such as a pool of nodes that is degraded or updating.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_since: Option<Time>,
    /// The paths of the fields that are applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_fields: Vec<String>,
    /// The nodes that restart, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<String>,
    /// Field managers whose fields the plan takes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes_from: Vec<String>,
}

/// What is done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Operation {
    /// It is created.
    Create,
    /// Fields of it change.
    Update,
    /// It is deleted.
    Delete,
    /// Nothing: it is as it should be.
    Keep,
}

/// How far an item is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ItemState {
    /// It was not applied yet.
    #[default]
    Pending,
    /// It was applied, and is not healthy yet.
    InProgress,
    /// It is applied and healthy.
    Completed,
    /// It could not be applied, or did not become healthy.
    Failed,
}

/// An object of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TargetRef {
    /// Its API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its namespace, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
