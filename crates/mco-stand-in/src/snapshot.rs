//! What the stand-in sees of the cluster, and what it wants written.

use crate::patch;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The objects that the stand-in reads, by name.
///
/// A step must see the writes of the steps before it: a caller that reads from watches puts the answer to every write here at once.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Snapshot {
    /// MachineConfigs, also the rendered ones.
    pub machine_configs: BTreeMap<String, Value>,
    /// KubeletConfigs.
    pub kubelet_configs: BTreeMap<String, Value>,
    /// MachineConfigPools.
    pub pools: BTreeMap<String, Value>,
    /// Nodes.
    pub nodes: BTreeMap<String, Value>,
    /// The `MachineConfiguration` named `cluster`, whose `spec.nodeDisruptionPolicy` says which changes need no restart.
    pub machine_configuration: Option<Value>,
}

/// A kind that the stand-in writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A MachineConfig.
    MachineConfig,
    /// A KubeletConfig.
    KubeletConfig,
    /// A MachineConfigPool.
    Pool,
    /// A node.
    Node,
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The kind of the object.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// What is done with it.
    pub action: Action,
}

/// What is done with an object.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Create it.
    Create(Value),
    /// Change it with a JSON merge patch.
    Patch(Value),
    /// Change its status with a JSON merge patch.
    PatchStatus(Value),
    /// Delete it.
    Delete,
}

impl Write {
    pub(crate) fn new(kind: Kind, name: &str, action: Action) -> Write {
        Write { kind, name: name.to_owned(), action }
    }

    /// A patch with what remains of it for this object, if anything does.
    pub(crate) fn patch(kind: Kind, name: &str, object: &Value, wanted: &Value) -> Option<Write> {
        Some(Write::new(kind, name, Action::Patch(patch::remaining(wanted, object)?)))
    }

    /// The same for the status.
    pub(crate) fn patch_status(kind: Kind, name: &str, object: &Value, wanted: &Value) -> Option<Write> {
        Some(Write::new(kind, name, Action::PatchStatus(patch::remaining(wanted, object)?)))
    }
}

impl Snapshot {
    /// The objects of a kind.
    pub fn objects(&mut self, kind: Kind) -> &mut BTreeMap<String, Value> {
        match kind {
            Kind::MachineConfig => &mut self.machine_configs,
            Kind::KubeletConfig => &mut self.kubelet_configs,
            Kind::Pool => &mut self.pools,
            Kind::Node => &mut self.nodes,
        }
    }

    /// Does what an API server does with a write: it counts generations, keeps status and spec apart, and keeps an object whose deletion was
    /// requested until it has no finalizer. For tests and simulations without a server.
    pub fn apply(&mut self, write: &Write) {
        let objects = self.objects(write.kind);
        match &write.action {
            Action::Create(object) => {
                let mut object = object.clone();
                object["metadata"]["generation"] = json!(1);
                object["metadata"]["uid"] = json!(format!("uid-of-{}", write.name));
                objects.entry(write.name.clone()).or_insert(object);
            }
            Action::Patch(patch) => {
                let Some(object) = objects.get_mut(&write.name) else { return };
                let (spec, status) = (object["spec"].clone(), object.get("status").cloned());
                patch::merge(object, patch);
                if let (Some(status), Some(object)) = (status, object.as_object_mut()) {
                    object.insert("status".into(), status);
                }
                if object["spec"] != spec {
                    object["metadata"]["generation"] =
                        json!(object["metadata"]["generation"].as_i64().unwrap_or(1) + 1);
                }
                if !object["metadata"]["deletionTimestamp"].is_null() && !has_finalizers(object) {
                    objects.remove(&write.name);
                }
            }
            Action::PatchStatus(patch) => {
                if let Some(object) = objects.get_mut(&write.name) {
                    patch::merge(object, &json!({"status": patch["status"]}));
                }
            }
            Action::Delete => match objects.get_mut(&write.name) {
                Some(object) if has_finalizers(object) => {
                    object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
                }
                _ => {
                    objects.remove(&write.name);
                }
            },
        }
    }
}

fn has_finalizers(object: &Value) -> bool {
    object["metadata"]["finalizers"].as_array().is_some_and(|finalizers| !finalizers.is_empty())
}
