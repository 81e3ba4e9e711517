//! Integration tests of the playground, on a real control plane.

// Clippy allows these in test functions only, not in their helpers.
#![allow(clippy::unwrap_used, clippy::panic)]

mod bad_input;
mod crds;
mod faults;
mod github_clients;
mod gitlab_clients;
mod isolation;
mod machine_config_operator;
mod marked_process;
mod pins;
mod process_cleanup;
mod proxmox_clients;
mod registry;
mod request_counter;
mod scenes;
mod terminal;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::api::{Api, ListParams, PostParams};
use playground::service_account::Account;
use playground::{Options, Playground, Progress, Scene, deployment, poll};
use serde_json::json;
use std::time::Duration;

/// A new cluster with a preset scene.
async fn start(scene: &str) -> Playground {
    start_scene(Scene::preset(scene).unwrap()).await
}

/// A service account with administrator rights in the operator's namespace.
async fn admin_account(playground: &Playground, name: &str) -> Account {
    let account = playground.account(deployment::NAMESPACE, name).await.unwrap();
    let binding: ClusterRoleBinding = serde_json::from_value(json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": deployment::NAMESPACE}],
    }))
    .unwrap();
    Api::all(playground.client()).create(&PostParams::default(), &binding).await.unwrap();
    let nodes: Api<Node> = Api::all(account.client.clone());
    // The authorizer sees the binding with a delay.
    eventually("the account has its rights", async || nodes.list(&ListParams::default()).await.is_ok()).await;
    account
}

/// Polls a condition for up to a minute: controllers are asynchronous, and the machine may be busy.
async fn eventually(what: &str, holds: impl AsyncFn() -> bool) {
    let attempt = async || Ok::<_, ()>(holds().await.then_some(()));
    let held = poll::with_timeout(Duration::from_millis(20), Duration::from_secs(60), attempt).await;
    assert_eq!(held, Ok(Some(())), "timed out after a minute waiting until {what}");
}

/// A new cluster with this scene.
async fn start_scene(scene: Scene) -> Playground {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Playground::start(&Options::for_test(scene), Progress::Silent).await.unwrap_or_else(|error| panic!("{error}"))
}
