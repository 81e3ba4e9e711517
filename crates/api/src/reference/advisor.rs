//! The events of the advisor.

use super::{EventReason, NOTHING, normal, warning};

const READ_IT: &str = "`virtpilot plan show NAME`, then `virtpilot approve NAME --digest DIGEST`";

/// Every event that the advisor publishes, all about a VirtPlatformConfig. All but the first are reasons of its conditions, too.
pub const ADVISOR_EVENTS: [EventReason; 24] = [
    normal("ItemApplied", "an item of an approved plan was written; the event is also about its object", NOTHING),
    warning(
        "ItemFailed",
        "an item could not be written, or was held, or did not become healthy, for longer than waitTimeout; with failurePolicy Abort the rest waits",
        "correct what is named; it is tried again",
    ),
    warning(
        "ItemsFailed",
        "everything that could be applied was, and some items have failed",
        "correct what is named; it is tried again",
    ),
    normal("PlanReady", "a plan waits for an approval", READ_IT),
    normal(
        "PlanUnseen",
        "Apply was written before the plan was shown, and it restarts nodes or takes something away, so it waits",
        READ_IT,
    ),
    normal(
        "PlanChanged",
        "the cluster has changed since the plan was approved or shown, so nothing more of it is applied",
        READ_IT,
    ),
    normal("AnotherPlanApproved", "spec.approvedPlan names another plan, so nothing is applied", READ_IT),
    normal("InputsChanged", "a value that the plan is derived from has changed", READ_IT),
    normal(
        "LogicChanged",
        "the profile wants something else now than was applied, mostly because the operator is another version",
        "read the plan, then approve it, or leave it",
    ),
    normal("Applying", "an item of an approved plan is being applied, or waits for its effect", NOTHING),
    normal(
        "ApplyingAfterFailure",
        "an item has failed, and with failurePolicy Continue others are being applied",
        "correct what is named",
    ),
    normal(
        "Waiting",
        "the next item waits for something, such as a pool of nodes that is degraded or updating",
        "repair what is named, or wait",
    ),
    normal(
        "WaitingForWindow",
        "the next item restarts nodes, and waits for a maintenance window",
        "wait, or change maintenance-window on the HyperConverged",
    ),
    warning(
        "WaitingForLong",
        "the next item has waited for an hour before it was written, and no waitTimeout is set, so it waits on",
        "repair what is named; the item is then written by itself",
    ),
    normal("Applied", "the cluster is as the profile wants it", NOTHING),
    warning(
        "Unhealthy",
        "all is applied, and the operator of an object says in its status that something is wrong with it",
        "correct what the item names; it is over once that operator says so",
    ),
    normal("NotApplicable", "nothing of the profile applies to this cluster", NOTHING),
    warning(
        "Drifted",
        "somebody changed what was applied",
        "find who; approve the plan to restore it, or edit the profile",
    ),
    warning(
        "CorrectionsStopped",
        "drift was corrected five times within an hour, and is not corrected any more",
        "find who changes it; approve the plan, or edit the profile",
    ),
    warning(
        "PrerequisiteMissing",
        "something that the profile needs is missing, or its spec cannot be used",
        "install or correct what is named; the plan follows by itself",
    ),
    warning(
        "PlanFailed",
        "an item cannot be planned, so nothing can be approved",
        "correct what the item names; it is tried again",
    ),
    normal("Unknown", "nothing is known of the cluster yet", NOTHING),
    normal("Drafting", "the plan takes longer than a second to be made", NOTHING),
    normal(
        "Ignored",
        "the action is Ignore: everything is left as it is; whether by the autopilot, too, is said",
        "to have the autopilot take care of its objects again, set spec.handOver to true",
    ),
];
