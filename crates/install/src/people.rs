//! The roles for people: viewer, editor and approver.

use crate::NAME;
use crate::policy::{ANNOTATE, APPROVE};
use crate::rules::Rules;
use serde_json::{Value, json};

/// The roles. None is for one namespace: the objects of the platform are in many, and some in none.
pub(crate) fn roles(rules: &Rules) -> Vec<Value> {
    let viewer = reads(rules);
    let editor = [viewer.clone(), annotations(rules)].concat();
    let approver = [viewer.clone(), vec![approvals()]].concat();
    vec![
        role(
            NAME,
            "viewer",
            "Sees what `virtpilot status`, `plan` and `facts` show.",
            Some(cluster_readers()),
            &viewer,
        ),
        role(NAME, "editor", "Also sets the annotations of the autopilot. Approves nothing.", None, &editor),
        role(NAME, "approver", "Also approves changes that restart nodes. Changes nothing else.", None, &approver),
    ]
}

/// The labels by which whoever may read the whole cluster on OpenShift may read this, too. The other roles are granted by name only.
pub(crate) fn cluster_readers() -> Value {
    json!({"rbac.authorization.k8s.io/aggregate-to-cluster-reader": "true"})
}

/// A role for people of a product.
pub(crate) fn role(product: &str, name: &str, description: &str, labels: Option<Value>, rules: &[Value]) -> Value {
    let mut metadata =
        json!({"name": format!("{product}-{name}"), "annotations": {"kubernetes.io/description": description}});
    if let Some(labels) = labels {
        metadata["labels"] = labels;
    }
    json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules})
}

/// What the commands that only read need: everything that the operator reads, its lease and its events.
fn reads(rules: &Rules) -> Vec<Value> {
    let read = ["get", "list", "watch"];
    let resources = rules
        .reads
        .iter()
        .map(|(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": read}));
    let own = [
        json!({"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": read}),
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [api::LEASE], "verbs": ["get"]}),
    ];
    resources.chain(own).collect()
}

/// A patch of the objects that the operator writes; the policy restricts it to annotations.
fn annotations(rules: &Rules) -> Vec<Value> {
    let rule = |((group, resource), names): (&(String, String), _)| json!({"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": ["patch", ANNOTATE]});
    rules.writes.iter().map(rule).collect()
}

/// A patch of the HyperConverged; the policy restricts it to the annotations that `virtpilot approve` writes.
fn approvals() -> Value {
    json!({
        "apiGroups": [api::hco::GROUP],
        "resources": ["hyperconvergeds"],
        "resourceNames": [api::hco::NAME],
        "verbs": ["patch", APPROVE],
    })
}
