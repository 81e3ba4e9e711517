//! Runs the operator as it is deployed: with its own service account and only the generated role.

use crate::playground::Playground;
use crate::service_account::Account;
use crate::user_error::{self, UserError, server_message};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::Value;
use std::path::PathBuf;

/// The operator's namespace.
pub const NAMESPACE: &str = api::hco::NAMESPACE;
/// The operator's service account.
pub const ACCOUNT: &str = api::FIELD_MANAGER;

/// Applies `deploy/rbac/role.yaml` and returns the service account.
pub async fn grant(playground: &Playground) -> Result<Account, UserError> {
    grant_for(playground, include_str!("../../../deploy/rbac/role.yaml")).await
}

/// Applies the role of another asset pack and returns the service account.
pub async fn grant_for(playground: &Playground, role: &str) -> Result<Account, UserError> {
    let invalid = |message: String| {
        UserError::new("the operator's role cannot be applied", "run `cargo xtask gen`").with_detail(message)
    };
    let manifests: Vec<Value> = serde_saphyr::from_multiple(role).map_err(|error| invalid(error.to_string()))?;
    for manifest in manifests {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let namespace = manifest["metadata"]["namespace"].as_str();
        let api = objects(playground, &text(&manifest["apiVersion"]), &text(&manifest["kind"]), namespace);
        let params = PatchParams::apply("installer").force();
        let applied = api.patch(&text(&manifest["metadata"]["name"]), &params, &Patch::Apply(&manifest)).await;
        applied.map_err(|error| invalid(server_message(&error)))?;
    }
    playground.account(NAMESPACE, ACCOUNT).await
}

/// Starts the operator binary beside this program; it ends with the playground.
pub fn start(playground: &mut Playground, account: &Account) -> Result<(), UserError> {
    playground.start_program("virtpilot", &binary()?, arguments(account))
}

/// What `virtpilot manifests` prints with these arguments: an installation.
pub async fn manifests(arguments: &[&str]) -> Result<String, UserError> {
    let failed = |message: String| {
        UserError::new("the installation cannot be printed", "run `virtpilot manifests`").with_detail(message)
    };
    let output = tokio::process::Command::new(binary()?).arg("manifests").args(arguments).output().await;
    let output = output.map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).into_owned())),
    }
}

/// The operator binary beside this program.
pub fn binary() -> Result<PathBuf, UserError> {
    std::env::current_exe()
        .map(|own| {
            let folder = own.parent().unwrap_or(&own);
            // Cargo puts programs with tests of their own one folder deeper.
            let folder = if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder };
            folder.join("virtpilot")
        })
        .map_err(|error| UserError::new("could not find the path of this program", "run again").with_source(error))
}

/// The arguments that run the operator with this account and without its HTTP servers.
pub fn arguments(account: &Account) -> Vec<String> {
    let kubeconfig = account.kubeconfig.display().to_string();
    ["run", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--kubeconfig", &kubeconfig]
        .map(str::to_owned)
        .to_vec()
}

/// Changes an object as another field manager would, for example a user with kubectl.
pub async fn edit(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<(), UserError> {
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    api.patch_metadata(name, &params, &Patch::Merge(patch))
        .await
        .map(|_| ())
        .map_err(|error| user_error::refused(&error))
}

/// An untyped API with administrator rights for a kind, in a namespace or cluster-wide.
pub fn objects(playground: &Playground, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(playground.client(), namespace, &resource),
        None => Api::all_with(playground.client(), &resource),
    }
}
