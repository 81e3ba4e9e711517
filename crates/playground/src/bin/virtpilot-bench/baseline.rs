//! The baseline: a client that only sends the necessary requests.

use super::pack::{Bench, LABEL, Object};
use kube::api::{DynamicObject, Patch, PatchParams};
use playground::UserError;
use playground::user_error::refused;
use serde_json::{Value, json};

/// An unmanaged copy of an object of the pack, under another name.
pub(crate) struct UnmanagedCopy {
    pub(crate) object: Object,
    manifest: Value,
}

impl UnmanagedCopy {
    /// Copies the current state of an object.
    pub(crate) async fn of(object: &Object) -> Result<UnmanagedCopy, UserError> {
        let live = object.api.get(&object.name).await.map_err(|error| refused(&error))?;
        let name = format!("bare-{}", object.name);
        let DynamicObject { types, metadata, mut data } = live;
        let types = types.unwrap_or_default();
        if let Some(fields) = data.as_object_mut() {
            fields.remove("status");
        }
        if let Some(spec) = data.get_mut("spec").and_then(Value::as_object_mut) {
            // The server allocates these and rejects duplicates.
            spec.retain(|key, _| !["clusterIP", "clusterIPs"].contains(&key.as_str()));
        }
        let mut manifest = data;
        manifest["apiVersion"] = json!(types.api_version);
        manifest["kind"] = json!(types.kind);
        let labels = metadata.labels.unwrap_or_default();
        manifest["metadata"] = json!({"name": name, "labels": labels});
        if let Some(namespace) = metadata.namespace {
            manifest["metadata"]["namespace"] = json!(namespace);
        }
        Ok(UnmanagedCopy { object: Object { name, ..object.clone() }, manifest })
    }

    /// Sends the one write that a correction needs.
    pub(crate) async fn apply(&self) -> Result<(), UserError> {
        self.try_apply().await.map_err(|error| refused(&error))
    }

    async fn try_apply(&self) -> kube::Result<()> {
        let params = PatchParams::apply("bare").force();
        let applied = self.object.api.patch_metadata(&self.object.name, &params, &Patch::Apply(&self.manifest)).await;
        applied.map(|_| ())
    }
}

/// All objects that can be copied, with their copies; some kinds allow only one name.
pub(crate) async fn copies<'a>(bench: &'a Bench<'_>) -> Result<Vec<(&'a Object, UnmanagedCopy)>, UserError> {
    let mut copies = Vec::new();
    for object in bench.objects.iter().filter(|object| object.is_alone) {
        let copy = UnmanagedCopy::of(object).await?;
        if copy.try_apply().await.is_ok() {
            copies.push((object, copy));
        }
    }
    Ok(copies)
}

/// A manual edit for the operator to revert.
pub(crate) fn manual_edit() -> Value {
    json!({"metadata": {"labels": {LABEL: "manual-edit"}}})
}
