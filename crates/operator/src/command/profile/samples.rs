//! Objects for tests.

use super::Profile;
use change::diff;
use serde_json::{Value, json};

pub(super) const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A script of two lines.
const PACKED: &str = "data:;base64,H4sIAAAAAAACA1NW1E/KzNMvzuAqLk8syM9T0E3kAgAXtu/2FAAAAA==";

/// A profile with these fields of its spec, and this status about it.
pub(super) fn profile(spec: &Value, mut status: Value) -> Profile {
    let mut object = json!({
        "metadata": {"name": "load-aware-rebalancing", "generation": 3, "resourceVersion": "7", "creationTimestamp": "2026-11-17T09:00:00Z"},
        "spec": {"profile": "load-aware-rebalancing", "action": "DryRun"},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        object["spec"][key] = value.clone();
    }
    if status.as_object().is_some_and(|fields| !fields.is_empty()) {
        status["observedGeneration"] = json!(3);
        object["status"] = status;
    }
    Profile::read(&object).unwrap()
}

/// One that waits for a review.
pub(super) fn sample() -> Profile {
    let item = |name: &str, api_version: &str, kind: &str, object: &str, more: Value| {
        let mut item = json!({"name": name, "targetRef": {"apiVersion": api_version, "kind": kind, "name": object}, "state": "Pending"});
        for (key, value) in more.as_object().into_iter().flatten() {
            item[key] = value.clone();
        }
        item
    };
    let shown = |live: Option<&Value>, wanted: &Value| diff::text(&diff::of_wanted(live, wanted, &[]));
    let psi = json!({
        "apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "99-psi"},
        "spec": {"kernelArguments": ["psi=1"], "config": {"ignition": {"version": "3.2.0"}, "storage": {"files": [
            {"path": "/usr/local/bin/psi", "mode": 0o755, "contents": {"source": PACKED, "compression": "gzip"}},
        ]}}},
    });
    let mode = |mode: &str| json!({"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "spec": {"mode": mode}});
    let config = item(
        "enable-psi-metrics",
        "machineconfiguration.openshift.io/v1",
        "MachineConfig",
        "99-psi",
        json!({
            "operation": "Create", "impactSeverity": "High", "restarts": ["worker-0", "worker-1"],
            "diff": shown(None, &psi), "desiredState": psi,
        }),
    );
    let mut descheduler = item(
        "enable-load-aware-descheduling",
        "operator.openshift.io/v1",
        "KubeDescheduler",
        "cluster",
        json!({
            "operation": "Update", "impactSeverity": "Medium", "takesFrom": ["kubectl-edit", "argocd"],
            "diff": shown(Some(&mode("Predictive")), &mode("Automatic")), "desiredState": mode("Automatic"),
            "message": "waits for enable-psi-metrics",
        }),
    );
    descheduler["targetRef"]["namespace"] = json!("descheduler");
    let kept = item(
        "reserve-memory",
        "v1",
        "ConfigMap",
        "kept",
        json!({"operation": "Keep", "impactSeverity": "Low", "state": "Completed"}),
    );
    let condition = json!({
        "type": "ReviewRequired", "status": "True", "lastTransitionTime": "2026-11-17T10:00:00Z", "reason": "ChangesPending",
        "message": "the plan has 2 changes; approve it to apply it",
    });
    profile(
        &json!({}),
        json!({
            "phase": "ReviewRequired", "impactSeverity": "High", "planDigest": DIGEST, "conditions": [condition],
            "inputs": [{"name": "hyperconverged.parallelMigrationsPerCluster", "value": "5"}],
            "items": [config, descheduler, kept],
        }),
    )
}
