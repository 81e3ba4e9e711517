//! The roles for people who use the advisor, and the admission policy that separates editing from approving: RBAC cannot.

use crate::ADVISOR;
use crate::people::{cluster_readers, role};
use crate::policy::APPROVE;
use serde_json::{Value, json};

const GROUP: &str = "advisor.kubevirt.io";
const RESOURCE: &str = "virtplatformconfigs";

/// The roles.
pub(crate) fn roles() -> Vec<Value> {
    let read = ["get", "list", "watch"];
    let viewer = vec![
        json!({"apiGroups": [GROUP], "resources": [RESOURCE], "verbs": read}),
        json!({"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": read}),
        json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"],
            "resourceNames": [catalog::role::ADVISOR_LEASE], "verbs": ["get"],
        }),
    ];
    let may = |verbs: &[&str]| {
        let rule = json!({"apiGroups": [GROUP], "resources": [RESOURCE], "verbs": verbs});
        [viewer.clone(), vec![rule]].concat()
    };
    let (editor, approver) = (may(&["create", "update", "patch", "delete"]), may(&["patch", APPROVE]));
    vec![
        role(ADVISOR, "viewer", "Sees profiles and their plans.", Some(cluster_readers()), &viewer),
        role(ADVISOR, "editor", "Also plans profiles, and has them ignored. Approves nothing.", None, &editor),
        role(ADVISOR, "approver", "Also approves plans of profiles. Changes nothing else.", None, &approver),
    ]
}

/// Nothing but the action and the approved plan is changed, and what the server changes itself.
const ONLY_APPROVAL: &str = "oldObject != null \
    && object.spec.all(k, k in ['action', 'approvedPlan'] || (k in oldObject.spec && object.spec[k] == oldObject.spec[k])) \
    && oldObject.spec.all(k, k == 'approvedPlan' || k in object.spec) \
    && object.metadata.all(k, k in ['managedFields', 'resourceVersion', 'generation'] \
    || (k in oldObject.metadata && object.metadata[k] == oldObject.metadata[k])) \
    && oldObject.metadata.all(k, k in object.metadata)";

/// The policy and its binding.
pub(crate) fn policy() -> Vec<Value> {
    let may = |verb: &str| {
        format!(
            "authorizer.group(request.resource.group).resource(request.resource.resource).name(request.name).check('{verb}').allowed()"
        )
    };
    let variable = |(name, expression): (&str, String)| json!({"name": name, "expression": expression});
    let variables = [
        ("approve", may(APPROVE)),
        // Whoever may update an object may change all of it but what is for approvers.
        ("update", may("update")),
        ("sameSpec", "oldObject != null && object.spec == oldObject.spec".to_owned()),
        ("onlyApproval", ONLY_APPROVAL.to_owned()),
    ];
    let validation = |(expression, message): (&str, String)| json!({"expression": expression, "message": message, "reason": "Forbidden"});
    let validations = [
        (
            // What is edited while the action is Apply would be applied.
            "variables.approve || object.spec.?action.orValue('DryRun') != 'Apply' || variables.sameSpec",
            format!(
                "with the action Apply, the spec is for approvers; set the action to DryRun to have a change planned, or ask for the \
                 ClusterRole {ADVISOR}-approver"
            ),
        ),
        (
            "variables.approve || !has(object.spec.approvedPlan) \
             || (oldObject != null && oldObject.spec.?approvedPlan == object.spec.?approvedPlan)",
            format!("spec.approvedPlan is for approvers; ask for the ClusterRole {ADVISOR}-approver"),
        ),
        (
            "variables.update || !variables.approve || variables.onlyApproval",
            format!(
                "the ClusterRole {ADVISOR}-approver is for spec.action and spec.approvedPlan alone; use \"virtpilot approve\", or ask for \
                 the ClusterRole {ADVISOR}-editor"
            ),
        ),
    ];
    let kind = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": ADVISOR}, "spec": spec});
    let rule = json!({
        "apiGroups": [GROUP], "apiVersions": ["*"], "resources": [RESOURCE], "operations": ["CREATE", "UPDATE"],
    });
    vec![
        kind(
            "ValidatingAdmissionPolicy",
            json!({
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": [rule]},
                "variables": variables.map(variable),
                "validations": validations.map(validation),
            }),
        ),
        kind("ValidatingAdmissionPolicyBinding", json!({"policyName": ADVISOR, "validationActions": ["Deny"]})),
    ]
}
