//! The admission policy that keeps people within their roles: RBAC allows a patch of all fields or of none.

use crate::NAME;
use crate::rules::Rules;
use serde_json::{Value, json};

/// The verb of those who may change annotations. Kubernetes does not know it; the policy asks for it.
pub(crate) const ANNOTATE: &str = "annotate";
/// The verb of those who may approve.
pub(crate) const APPROVE: &str = "approve";

/// Everything but the annotations, and what the server changes itself, is the same.
const ONLY_ANNOTATIONS: &str = "oldObject != null \
    && object.all(k, k == 'metadata' || (k in oldObject && object[k] == oldObject[k])) \
    && oldObject.all(k, k in object) \
    && object.metadata.all(k, k in ['annotations', 'managedFields', 'resourceVersion', 'generation'] \
    || (k in oldObject.metadata && object.metadata[k] == oldObject.metadata[k])) \
    && oldObject.metadata.all(k, k == 'annotations' || k in object.metadata)";

/// What was applied, and by whom, is the same but for metadata: whoever could write it could hand a field of somebody else to the autopilot,
/// which then deletes it. The entry of the autopilot is the same in all.
const SAME_OWNERS: &str = "variables.ownersBefore.all(e, e.?fieldsV1.orValue({}).all(k, k == 'f:metadata') \
    || variables.ownersAfter.exists(n, SAME)) \
    && variables.ownersAfter.all(n, n.?fieldsV1.orValue({}).all(k, k == 'f:metadata') \
    || variables.ownersBefore.exists(e, SAME)) \
    && variables.ownersBefore.filter(e, e.manager == 'OURS').map(e, e.?fieldsV1) \
    == variables.ownersAfter.filter(e, e.manager == 'OURS').map(e, e.?fieldsV1)";
/// Two entries have the same manager and the same fields but for metadata.
const SAME: &str = "n.manager == e.manager \
    && n.?fieldsV1.orValue({}).all(k, k == 'f:metadata' || (k in e.?fieldsV1.orValue({}) && n.fieldsV1[k] == e.fieldsV1[k])) \
    && e.?fieldsV1.orValue({}).all(k, k == 'f:metadata' || k in n.?fieldsV1.orValue({}))";

/// The annotations that differ. Those of other operators may give privileges: with one, KubeVirt itself can be patched.
const CHANGED: &str = "variables.before.filter(k, !(k in variables.after) || variables.before[k] != variables.after[k]) \
    + variables.after.filter(k, !(k in variables.before))";

/// The policy and its binding.
pub(crate) fn objects(rules: &Rules) -> Vec<Value> {
    let (approved, approval, approved_by) =
        (api::annotation::APPROVED, api::annotation::APPROVAL, api::annotation::APPROVED_BY);
    let may = |verb: &str| {
        format!(
            "authorizer.group(request.resource.group).resource(request.resource.resource)\
             .namespace(request.?namespace.orValue('')).name(request.name).check('{verb}').allowed()"
        )
    };
    let annotations = |object: &str| format!("{object} == null ? {{}} : {object}.metadata.?annotations.orValue({{}})");
    let same = |annotation: &str| format!("variables.before[?'{annotation}'] == variables.after[?'{annotation}']");
    let owners = |object: &str| {
        let entries = format!("{object}.metadata.?managedFields.orValue([])");
        format!("{object} == null ? [] : {entries}.filter(e, e.?operation.orValue('') == 'Apply')")
    };
    let lines = |side: &str| format!("variables.{side}[?'{approved_by}'].orValue('').split('\\n')");
    let ours = api::annotation::OURS.map(|key| format!("'{key}'")).join(", ");
    let is_users = format!("k.startsWith('{}') && !(k in [{ours}])", api::annotation::PREFIX);
    let variable = |(name, expression): (&str, String)| json!({"name": name, "expression": expression});
    let variables = [
        ("before", annotations("oldObject")),
        ("after", annotations("object")),
        // Whoever may update an object may change all of it.
        ("update", may("update")),
        ("annotate", may(ANNOTATE)),
        ("approve", may(APPROVE)),
        ("ownersBefore", owners("oldObject")),
        ("ownersAfter", owners("object")),
        ("sameOwners", SAME_OWNERS.replace("SAME", SAME).replace("OURS", api::FIELD_MANAGER)),
        ("onlyAnnotations", format!("{ONLY_ANNOTATIONS} && variables.sameOwners")),
        ("changed", CHANGED.to_owned()),
    ];
    let validation = |(expression, message): (String, String)| json!({"expression": expression, "message": message, "reason": "Forbidden"});
    let validations = [
        (
            format!("({} && {} && {}) || variables.approve", same(approved), same(approval), same(approved_by)),
            format!(
                "the annotations {approved}, {approved_by} and {approval} are for approvers; ask for the ClusterRole {NAME}-approver"
            ),
        ),
        (
            format!(
                "variables.update || !variables.annotate || (variables.onlyAnnotations && variables.changed.all(k, {is_users}))"
            ),
            format!(
                "the ClusterRole {NAME}-editor is for the annotations of the autopilot that users set; ask for the right to update this \
                 object"
            ),
        ),
        (
            format!(
                "variables.update || variables.annotate || !variables.approve \
                 || (variables.onlyAnnotations && variables.changed.all(k, k in ['{approved}', '{approved_by}']))"
            ),
            format!(
                "the ClusterRole {NAME}-approver is for the annotations {approved} and {approved_by} alone; use \"virtpilot approve\""
            ),
        ),
        (
            // An entry is a digest, a time, an object and the name of a user, which may have blanks.
            format!(
                "variables.update || {} || {}.all(line, line == '' || line in {} \
                 || (line.split(' ', 4).size() == 4 && line.split(' ', 4)[3] == request.userInfo.username))",
                same(approved_by),
                lines("after"),
                lines("before")
            ),
            format!("an entry in the annotation {approved_by} names its author; use \"virtpilot approve\""),
        ),
    ];
    let resource = |((group, resource), names): (&(String, String), _)| {
        json!({
            "apiGroups": [group], "apiVersions": ["*"], "resources": [resource], "resourceNames": names,
            "operations": ["CREATE", "UPDATE"],
        })
    };
    let kind = |kind: &str, spec: Value| json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": NAME}, "spec": spec});
    vec![
        kind(
            "ValidatingAdmissionPolicy",
            json!({
                "failurePolicy": "Fail",
                "matchConstraints": {"resourceRules": rules.writes.iter().map(resource).collect::<Vec<_>>()},
                "variables": variables.map(variable),
                "validations": validations.map(validation),
            }),
        ),
        kind("ValidatingAdmissionPolicyBinding", json!({"policyName": NAME, "validationActions": ["Deny"]})),
    ]
}
