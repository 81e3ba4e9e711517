//! What makes the metrics secure: two rights of the operator, one of Prometheus, and a part of the Deployment.
//!
//! The Service and the ServiceMonitor are assets of the catalogue, which follow the operator's flag.

use crate::{Account, NAME, Settings};
use serde_json::{Value, json};

/// Where the certificate is mounted.
const FOLDER: &str = "/etc/virtpilot/metrics-certificate";

/// The roles and their bindings.
pub(crate) fn roles(settings: &Settings) -> Vec<Value> {
    let create =
        |group: &str, resource: &str| json!({"apiGroups": [group], "resources": [resource], "verbs": ["create"]});
    let reviews =
        [create("authentication.k8s.io", "tokenreviews"), create("authorization.k8s.io", "subjectaccessreviews")];
    let operator = Account { namespace: settings.namespace.clone(), name: settings.name().to_owned() };
    let granted = |name: &str, description: &str, rules: &[Value], to: &Account| {
        granted(&format!("{}-{name}", settings.name()), description, rules, to)
    };
    let read = [json!({"nonResourceURLs": ["/metrics"], "verbs": ["get"]})];
    [
        granted(
            "secure-metrics",
            "Lets the operator ask who scrapes its metrics, and whether they may.",
            &reviews,
            &operator,
        ),
        granted("metrics-reader", "Reads the metrics of the operator.", &read, &settings.prometheus),
    ]
    .concat()
}

/// A ClusterRole, and its binding to an account.
fn granted(name: &str, description: &str, rules: &[Value], to: &Account) -> Vec<Value> {
    let group = "rbac.authorization.k8s.io";
    let object = |kind: &str| {
        let metadata = json!({"name": name, "annotations": {"kubernetes.io/description": description}});
        json!({"apiVersion": format!("{group}/v1"), "kind": kind, "metadata": metadata})
    };
    let (mut role, mut binding) = (object("ClusterRole"), object("ClusterRoleBinding"));
    role["rules"] = json!(rules);
    binding["roleRef"] = json!({"apiGroup": group, "kind": "ClusterRole", "name": name});
    binding["subjects"] = json!([{"kind": "ServiceAccount", "name": to.name, "namespace": to.namespace}]);
    vec![role, binding]
}

/// The variables of the container that set the flags.
pub(crate) fn variables() -> [Value; 2] {
    [("METRICS_SECURE", "true"), ("METRICS_CERT_PATH", FOLDER)]
        .map(|(name, value)| json!({"name": name, "value": value}))
}

/// The volume of the certificate. OpenShift writes its Secret after the operator has created the Service; elsewhere there is none, unless
/// somebody makes one.
pub(crate) fn volume(name: &str) -> Value {
    json!({"name": "metrics-certificate", "secret": {"secretName": format!("{name}-metrics-certificate"), "optional": true}})
}

/// Where the container has it.
pub(crate) fn mount() -> Value {
    json!({"name": "metrics-certificate", "mountPath": FOLDER, "readOnly": true})
}

/// A strategic merge patch that makes the metrics of a Deployment secure.
pub fn deployment_patch() -> Value {
    let container = json!({"name": crate::workload::CONTAINER, "env": variables(), "volumeMounts": [mount()]});
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME},
        "spec": {"template": {"spec": {"containers": [container], "volumes": [volume(NAME)]}}},
    })
}
