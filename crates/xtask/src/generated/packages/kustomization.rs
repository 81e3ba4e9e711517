//! `deploy/kustomize`, for `kubectl apply -k`.

use super::super::File;
use super::yaml;
use install::Installation;
use serde_json::{Value, json};

const FOLDER: &str = "deploy/kustomize";

pub(super) fn files(installation: &Installation) -> Vec<File> {
    let in_folder = |name: &str, objects: &[Value]| yaml(&format!("{FOLDER}/{name}"), objects);
    vec![
        in_folder("people.yaml", &installation.people),
        in_folder("policy.yaml", &installation.policy),
        in_folder("operator.yaml", &installation.workload),
        in_folder("kustomization.yaml", &[resources(&["../rbac", "people.yaml", "policy.yaml", "operator.yaml"])]),
        yaml("deploy/rbac/kustomization.yaml", &[resources(&["role.yaml"])]),
    ]
}

fn resources(paths: &[&str]) -> Value {
    json!({"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "resources": paths})
}
