//! The operator as it is deployed: its own service account, the generated role, and nothing else.

use crate::playground::Playground;
use crate::service_account::Account;
use crate::trouble::{Trouble, server_words};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::Value;

/// Where it lives, and what it is called.
pub const NAMESPACE: &str = api::hco::NAMESPACE;
/// See [`NAMESPACE`].
pub const ACCOUNT: &str = api::FIELD_MANAGER;

/// Applies `deploy/rbac/role.yaml` and returns the account.
pub async fn grant(playground: &Playground) -> Result<Account, Trouble> {
    grant_for(playground, include_str!("../../../deploy/rbac/role.yaml")).await
}

/// Applies the role of another pack and returns the account.
pub async fn grant_for(playground: &Playground, role: &str) -> Result<Account, Trouble> {
    let stale = |words: String| Trouble::new("a role cannot be used", "run `cargo xtask gen`").because(words);
    let manifests: Vec<Value> = serde_saphyr::from_multiple(role).map_err(|error| stale(error.to_string()))?;
    for manifest in manifests {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = manifest["metadata"]["namespace"].as_str();
        let api = objects(playground, &word(&manifest["apiVersion"]), &word(&manifest["kind"]), namespace);
        let params = PatchParams::apply("installer").force();
        let applied = api.patch(&word(&manifest["metadata"]["name"]), &params, &Patch::Apply(&manifest)).await;
        applied.map_err(|error| stale(server_words(&error)))?;
    }
    playground.account(NAMESPACE, ACCOUNT).await
}

/// Starts the operator's binary, the one beside this program; it lives as long as the playground.
pub fn start(playground: &mut Playground, account: &Account) -> Result<(), Trouble> {
    let own =
        std::env::current_exe().map_err(|error| Trouble::new("cannot find this program", "run again").from(error))?;
    let mut arguments =
        vec!["run".to_owned(), "--metrics-bind-address=0".into(), "--health-probe-bind-address=0".into()];
    arguments.extend(["--kubeconfig".into(), account.kubeconfig.display().to_string()]);
    playground.start_program("virtpilot", &own.with_file_name("virtpilot"), arguments)
}

/// The objects of a kind, in a namespace or cluster-wide, as an administrator sees them.
pub fn objects(playground: &Playground, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(playground.client(), namespace, &resource),
        None => Api::all_with(playground.client(), &resource),
    }
}
