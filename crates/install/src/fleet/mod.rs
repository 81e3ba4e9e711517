//! What installs the fleet: its kinds, its account with the least rights, and the roles for people who use it.

mod dashboard;
mod monitoring;

use crate::people::{cluster_readers, role};
use crate::{FLEET, Settings};
use api::fleet::{BOOTSTRAP_SECRET, GROUP, LEASE, QUEUE};
pub use dashboard::{dashboard, dashboard_of_jobs};
pub use monitoring::monitoring;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The kinds as their types say, written by `cargo xtask gen`.
const CRDS: &str = include_str!("crds.json");
const RBAC: &str = "rbac.authorization.k8s.io";

/// What the fleet may reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetSettings {
    /// The Secrets with credentials and CAs of hypervisors, as namespace and name. The fleet reads no others.
    pub secrets: BTreeSet<(String, String)>,
    /// The namespaces in which it may create and delete VirtualMachines of KubeVirt.
    pub kubevirt: BTreeSet<String>,
    /// The ports of hypervisors.
    pub hypervisor_ports: Vec<u16>,
    /// The bootstrap endpoint as machines reach it, as HOST:PORT; without it, it is off unless the environment says where it is.
    pub bootstrap_address: Option<String>,
    /// How the Service of webhooks and of the bootstrap endpoint is reached: `ClusterIP`, `NodePort` or `LoadBalancer`.
    pub service_type: String,
}

impl Default for FleetSettings {
    fn default() -> FleetSettings {
        FleetSettings {
            secrets: BTreeSet::new(),
            kubevirt: BTreeSet::new(),
            hypervisor_ports: vec![8006],
            bootstrap_address: None,
            service_type: "ClusterIP".to_owned(),
        }
    }
}

/// The CRDs.
pub(crate) fn crds() -> Vec<Value> {
    serde_json::from_str(CRDS).unwrap_or_default()
}

/// The account and its rights.
pub fn rights(settings: &Settings) -> Vec<Value> {
    let namespace = settings.namespace.as_str();
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": FLEET, "namespace": namespace},
        // The operator's pod mounts its token; a pod that does not ask gets none.
        "automountServiceAccountToken": false,
    });
    let mut objects = vec![account];
    objects.extend(granted(FLEET, None, namespace, &everywhere(namespace)));
    objects.extend(granted(FLEET, Some(namespace), namespace, &own()));
    // Each has a role of its own, so that another one is added without a loss.
    for (of, name) in &settings.fleet.secrets {
        objects.extend(granted(&format!("{FLEET}-secret-{name}"), Some(of), namespace, &[secret(name)]));
    }
    for of in &settings.fleet.kubevirt {
        objects.extend(granted(&format!("{FLEET}-machines"), Some(of), namespace, &machines()));
    }
    if !settings.fleet.kubevirt.is_empty() {
        // What nodes have is what is left for machines.
        let nodes = [json!({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]})];
        objects.extend(granted(&format!("{FLEET}-nodes"), None, namespace, &nodes));
    }
    objects
}

/// In all namespaces: the objects of the fleet, and events about them.
fn everywhere(namespace: &str) -> Vec<Value> {
    let kinds = ["hypervisorclusters", "hypervisormachinetemplates", "machineclaims", "runnerpools"];
    let status = kinds.map(|kind| format!("{kind}/status"));
    vec![
        // A hypervisor, or a pool with runners, is read again before each check.
        json!({"apiGroups": [GROUP], "resources": ["hypervisorclusters", "runnerpools"], "verbs": ["get"]}),
        // A patch sets finalizers, and the annotation that drains a machine.
        json!({"apiGroups": [GROUP], "resources": kinds, "verbs": ["list", "watch", "patch"]}),
        json!({"apiGroups": [GROUP], "resources": status, "verbs": ["patch"]}),
        json!({"apiGroups": [GROUP], "resources": ["machineclaims"], "verbs": ["create", "delete"]}),
        json!({"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["list", "watch"]}),
        // A patch counts an event that was published before.
        json!({"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]}),
        // The uid of its own namespace is in the record of every machine.
        json!({"apiGroups": [""], "resources": ["namespaces"], "resourceNames": [namespace], "verbs": ["get"]}),
    ]
}

/// In its own namespace: leader election, the authority of the bootstrap endpoint, and the queue of jobs.
fn own() -> Vec<Value> {
    vec![
        // A creation cannot be restricted by name.
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["create"]}),
        json!({
            "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LEASE],
            "verbs": ["get", "update"],
        }),
        // An apply that creates it names it, so that this allows no other one.
        json!({
            "apiGroups": [""], "resources": ["secrets"], "resourceNames": [BOOTSTRAP_SECRET],
            "verbs": ["get", "create", "patch"],
        }),
        // The queue of jobs that people read.
        json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [QUEUE], "verbs": ["create", "patch"]}),
        // The pod of the leader: a standby replica follows at once when it has ended.
        json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "watch"]}),
    ]
}

/// In a namespace with hypervisors: a Secret that one of them names. List and watch are for this name alone, so that other credentials are
/// noticed at once.
fn secret(name: &str) -> Value {
    json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": [name], "verbs": ["get", "list", "watch"]})
}

/// In a namespace with machines of KubeVirt. Whoever may create machines can give them any Secret of the namespace, so that it is no further
/// right to create Secrets there, which cannot be restricted by name; they are never read, changed or deleted: they go with their machines.
fn machines() -> [Value; 3] {
    let all = ["get", "list", "create", "update", "patch", "delete"];
    [
        json!({"apiGroups": ["kubevirt.io"], "resources": ["virtualmachines"], "verbs": all}),
        json!({"apiGroups": ["kubevirt.io"], "resources": ["virtualmachineinstances"], "verbs": ["get"]}),
        // The cloud-init data of a machine.
        json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]}),
    ]
}

/// A role in a namespace, or in all of them, and its binding to the account of the fleet.
fn granted(name: &str, namespace: Option<&str>, account: &str, rules: &[Value]) -> [Value; 2] {
    let kind = if namespace.is_some() { "Role" } else { "ClusterRole" };
    let mut metadata = json!({"name": name});
    if let Some(namespace) = namespace {
        metadata["namespace"] = json!(namespace);
    }
    let api_version = format!("{RBAC}/v1");
    [
        json!({"apiVersion": api_version, "kind": kind, "metadata": metadata, "rules": rules}),
        json!({
            "apiVersion": api_version, "kind": format!("{kind}Binding"), "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": FLEET, "namespace": account}],
        }),
    ]
}

/// The roles for people. Whoever may change a HypervisorCluster or a RunnerPool chooses where the Secrets that it names are sent, so that this is a
/// role of its own.
pub(crate) fn people() -> Vec<Value> {
    let (read, write) = (["get", "list", "watch"], ["create", "update", "patch", "delete"]);
    let kinds = ["hypervisorclusters", "hypervisormachinetemplates", "machineclaims", "runnerpools"];
    let rule =
        |resources: &[&str], verbs: &[&str]| json!({"apiGroups": [GROUP], "resources": resources, "verbs": verbs});
    let viewer = vec![
        rule(&kinds, &read),
        json!({"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": read}),
        // The queue of jobs, and whether somebody keeps it up to date.
        json!({"apiGroups": [""], "resources": ["configmaps"], "resourceNames": [QUEUE], "verbs": ["get"]}),
        json!({"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "resourceNames": [LEASE], "verbs": ["get"]}),
    ];
    let used = ["hypervisormachinetemplates", "machineclaims"];
    let scale = rule(&["runnerpools/scale"], &["get", "update", "patch"]);
    let editor = [viewer.clone(), vec![rule(&used, &write), scale.clone()]].concat();
    let admin = [viewer.clone(), vec![rule(&kinds, &write), scale]].concat();
    vec![
        role(
            FLEET,
            "viewer",
            "Sees hypervisors, templates, pools, machines and jobs.",
            Some(cluster_readers()),
            &viewer,
        ),
        role(
            FLEET,
            "editor",
            "Also makes templates and claims on the hypervisors that there are, and scales pools.",
            None,
            &editor,
        ),
        role(
            FLEET,
            "admin",
            "Also connects hypervisors and CI platforms, and so uses the Secrets that the fleet may read.",
            None,
            &admin,
        ),
    ]
}

#[cfg(test)]
mod tests;
