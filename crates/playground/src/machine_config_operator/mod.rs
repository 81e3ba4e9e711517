//! Runs the stand-in of the machine-config operator against the API server, with one that writes the statuses of other operators.

mod cache;
mod run;
mod watch;
mod write;

use crate::playground::Playground;
use crate::status_writer::{self, StatusWriter};
use crate::user_error::{UserError, refused};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use mco_stand_in::{API_VERSION, Kind, Timing};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// The namespace of the operator.
pub const NAMESPACE: &str = "openshift-machine-config-operator";
/// The service account by which the audit log names it.
pub const ACCOUNT: &str = "machine-config-stand-in";
/// Its field manager.
pub const FIELD_MANAGER: &str = "mco-stand-in";

/// How often each node was restarted.
type Restarts = Arc<Mutex<BTreeMap<String, u64>>>;

/// The running stand-in of the machine-config operator; it stops when this value is dropped.
pub struct MachineConfigOperator {
    restarts: Restarts,
    task: JoinHandle<()>,
    _statuses: StatusWriter,
}

impl MachineConfigOperator {
    /// How often it restarted a node.
    pub fn restarts(&self, node: &str) -> u64 {
        self.restarts.lock().unwrap_or_else(PoisonError::into_inner).get(node).copied().unwrap_or_default()
    }

    /// Stops it; nodes stay as they are.
    pub async fn stop(mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

impl Drop for MachineConfigOperator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Starts it with its own service account, and returns once it has read the cluster.
pub(crate) async fn start(playground: &Playground, timing: Timing) -> Result<MachineConfigOperator, UserError> {
    let account = playground.account(NAMESPACE, ACCOUNT).await?;
    let binding = serde_json::from_value::<ClusterRoleBinding>(json!({
        "metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": NAMESPACE}],
    }));
    let binding = binding.map_err(|error| {
        UserError::new("an object of the stand-in is invalid", "this is a bug, please report it").with_source(error)
    })?;
    match Api::all(playground.client()).create(&PostParams::default(), &binding).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Err(refused(&error)),
    }
    let restarts = Restarts::default();
    let log = playground.folder().join("machine-config-stand-in.log");
    let (ready, is_ready) = tokio::sync::oneshot::channel();
    let statuses = status_writer::start(&account.client);
    let task = tokio::spawn(run::run(account.client, timing, restarts.clone(), log, ready));
    let operator = MachineConfigOperator { restarts, task, _statuses: statuses };
    match is_ready.await {
        Ok(()) => Ok(operator),
        Err(_) => Err(UserError::new(
            "the stand-in of the machine-config operator ended early",
            "see machine-config-stand-in.log in the playground's folder (run with --keep)",
        )),
    }
}

/// What is watched: the kinds that are written, and the node disruption policy.
const WATCHED: [Option<Kind>; 5] =
    [Some(Kind::MachineConfig), Some(Kind::KubeletConfig), Some(Kind::Pool), Some(Kind::Node), None];

/// The API of a kind; `None` is the MachineConfiguration, which is only read.
fn api(client: &Client, kind: Option<Kind>) -> Api<DynamicObject> {
    let (api_version, kind) = match kind {
        Some(Kind::MachineConfig) => (API_VERSION, "MachineConfig"),
        Some(Kind::KubeletConfig) => (API_VERSION, "KubeletConfig"),
        Some(Kind::Pool) => (API_VERSION, "MachineConfigPool"),
        Some(Kind::Node) => ("v1", "Node"),
        None => ("operator.openshift.io/v1", "MachineConfiguration"),
    };
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    Api::all_with(client.clone(), &ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind)))
}
