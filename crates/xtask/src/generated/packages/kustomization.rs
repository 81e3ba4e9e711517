//! `deploy/kustomize`, for `kubectl apply -k`.

use super::super::File;
use super::yaml;
use install::Installation;
use serde_json::{Value, json};

const FOLDER: &str = "deploy/kustomize";

/// The files; `secure` is the same installation with secure metrics, `advisor` that of the advisor alone, and `fleet` that of the fleet.
pub(super) fn files(
    installation: &Installation,
    secure: &Installation,
    advisor: Installation,
    fleet: Installation,
) -> Vec<File> {
    let in_folder = |name: &str, objects: &[Value]| yaml(&format!("{FOLDER}/{name}"), objects);
    let own: Vec<&Value> = installation.crds.iter().chain(&installation.advisor).collect();
    let alone: Vec<Value> = advisor.objects().collect();
    let fleet: Vec<Value> = [install::namespace(install::FLEET_NAMESPACE)].into_iter().chain(fleet.objects()).collect();
    vec![
        yaml(&format!("{FOLDER}/advisor.yaml"), own),
        in_folder("advisor-alone/advisor.yaml", &alone),
        in_folder("advisor-alone/kustomization.yaml", &[resources(&["advisor.yaml"])]),
        in_folder("fleet/fleet.yaml", &fleet),
        in_folder("fleet/kustomization.yaml", &[resources(&["fleet.yaml"])]),
        in_folder("people.yaml", &installation.people),
        in_folder("policy.yaml", &installation.policy),
        in_folder("operator.yaml", &installation.workload),
        in_folder("secure-metrics/roles.yaml", &secure.metrics),
        in_folder("secure-metrics/deployment.yaml", &[install::deployment_patch()]),
        in_folder("secure-metrics/kustomization.yaml", &[component(&["roles.yaml"], "deployment.yaml")]),
        in_folder(
            "kustomization.yaml",
            &[resources(&["../rbac", "advisor.yaml", "people.yaml", "policy.yaml", "operator.yaml"])],
        ),
        yaml("deploy/rbac/kustomization.yaml", &[resources(&["role.yaml"])]),
    ]
}

/// Without a target, a patch applies only in its own namespace.
fn component(resources: &[&str], patch: &str) -> Value {
    let target = json!({"kind": "Deployment", "name": install::NAME});
    json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "resources": resources,
        "patches": [{"path": patch, "target": target}],
    })
}

fn resources(paths: &[&str]) -> Value {
    json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": paths})
}
