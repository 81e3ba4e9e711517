//! What a person asks for.

use super::status::VirtPlatformConfigStatus;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A profile of the platform, planned and applied as it was approved. There is one object for each profile, and it has the profile's name.
#[derive(CustomResource, Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "advisor.kubevirt.io",
    version = "v1alpha1",
    kind = "VirtPlatformConfig",
    plural = "virtplatformconfigs",
    singular = "virtplatformconfig",
    status = "VirtPlatformConfigStatus",
    derive = "PartialEq",
    doc = "A profile of the platform, planned and applied as it was approved. There is one object for each profile, and it has the profile's name.",
    printcolumn = r#"{"name": "Action", "type": "string", "jsonPath": ".spec.action"}"#,
    printcolumn = r#"{"name": "Impact", "type": "string", "jsonPath": ".status.impactSeverity"}"#,
    printcolumn = r#"{"name": "Phase", "type": "string", "jsonPath": ".status.phase"}"#,
    printcolumn = r#"{"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}"#,
    printcolumn = r#"{"name": "Plan", "type": "string", "jsonPath": ".status.planDigest", "priority": 1}"#,
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct VirtPlatformConfigSpec {
    /// The profile. It cannot be changed.
    pub profile: String,
    /// DryRun plans and writes nothing, Apply applies the plan, Ignore leaves everything alone. None of them lets the autopilot write objects of the
    /// profile; see handOver.
    #[serde(default)]
    pub action: Action,
    /// What happens to the rest of a plan when an item fails: Abort leaves it, Continue applies it.
    #[serde(default)]
    pub failure_policy: FailurePolicy,
    /// With true, a plan is applied although the cluster has changed since it was shown, unless it now deletes something, restarts nodes or takes
    /// fields that somebody else applies, and that was not shown. It also corrects drift as remediation Automatic does; to have only that, set
    /// remediation to Automatic. Once a plan was applied, what changes with an input or with another version of the operator waits for an approval.
    #[serde(default)]
    pub bypass_optimistic_lock: bool,
    /// How long an item may take to become healthy, such as 30m; without it there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_timeout: Option<String>,
    /// The options of the profile, below the profile's own key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Map<String, Value>>,
    /// The digest of the plan that is approved, as status.planDigest shows it. Apply then applies this plan and no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_plan: Option<String>,
    /// With true, the plan restores what was there before the profile was applied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollback: Option<bool>,
    /// Whether drift of what was applied is corrected without a review. Automatic does so at most five times an hour, and never if that deletes
    /// something, restarts nodes or takes fields that somebody else applies, nor if an input or the version of the operator has changed, too:
    /// then a new plan waits for an approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation: Option<Remediation>,
    /// Whether the autopilot takes care of its own objects of the profile while the action is Ignore. By default it does not. The exception is an
    /// object that the advisor created to tell of the profile and whose spec nobody has written since: there it does, unless this is false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hand_over: Option<bool>,
}

impl VirtPlatformConfigSpec {
    /// Whether the autopilot leaves the objects of the profile alone, given whether the object [only tells](super::Authorship::only_tells) of it.
    pub fn governs(&self, only_tells: bool) -> bool {
        governs(self.action == Action::Ignore, self.hand_over, only_tells)
    }
}

/// Whether the autopilot leaves the objects of a profile alone: also if its `VirtPlatformConfig` is ignored, unless somebody has handed them
/// over, or it [only tells](super::Authorship::only_tells) of the profile.
pub fn governs(is_ignored: bool, hand_over: Option<bool>, only_tells: bool) -> bool {
    !is_ignored || !hand_over.unwrap_or(only_tells)
}

/// What is done with a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Action {
    /// It is shown, and nothing is written.
    #[default]
    DryRun,
    /// It is applied.
    Apply,
    /// There is none: everything is left alone.
    Ignore,
}

/// What happens to the rest of a plan when an item fails.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FailurePolicy {
    /// It is left.
    #[default]
    Abort,
    /// It is applied.
    Continue,
}

/// Who decides about drift.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Remediation {
    /// A person: drift is shown as a new plan.
    #[default]
    Manual,
    /// The advisor: drift of what was approved is corrected, at most five times an hour, unless that deletes something, restarts nodes or takes
    /// fields that somebody else applies.
    Automatic,
}

#[cfg(test)]
mod tests {
    use super::governs;

    #[test]
    fn ignore_keeps_the_autopilot_away_unless_it_is_handed_over_or_only_tells_of_a_profile() {
        for (hand_over, only_tells, expected) in [
            (None, false, true),
            (None, true, false),
            (Some(true), true, false),
            (Some(true), false, false),
            (Some(false), true, true),
        ] {
            assert_eq!(governs(true, hand_over, only_tells), expected, "{hand_over:?} {only_tells}");
            assert!(governs(false, hand_over, only_tells), "what is planned is always governed");
        }
    }
}
