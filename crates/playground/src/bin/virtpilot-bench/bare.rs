//! What a client does that only does what is necessary: the limit to compare with.

use super::pack::{Bench, LABEL, Object, refused};
use kube::api::{DynamicObject, Patch, PatchParams};
use playground::Trouble;
use serde_json::{Value, json};

/// An object like one of the pack, under another name: nobody keeps it.
pub(crate) struct Twin {
    pub(crate) object: Object,
    manifest: Value,
}

impl Twin {
    /// A twin of an object, as it is now.
    pub(crate) async fn of(object: &Object) -> Result<Twin, Trouble> {
        let live = object.api.get(&object.name).await.map_err(|error| refused(&error))?;
        let name = format!("bare-{}", object.name);
        let DynamicObject { types, metadata, mut data } = live;
        let types = types.unwrap_or_default();
        if let Some(fields) = data.as_object_mut() {
            fields.remove("status");
        }
        if let Some(spec) = data.get_mut("spec").and_then(Value::as_object_mut) {
            // What the server chose for the one cannot be the other's.
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
        Ok(Twin { object: Object { name, ..object.clone() }, manifest })
    }

    /// The one write a correction needs.
    pub(crate) async fn apply(&self) -> Result<(), Trouble> {
        self.try_apply().await.map_err(|error| refused(&error))
    }

    async fn try_apply(&self) -> kube::Result<()> {
        let params = PatchParams::apply("bare").force();
        let applied = self.object.api.patch_metadata(&self.object.name, &params, &Patch::Apply(&self.manifest)).await;
        applied.map(|_| ())
    }
}

/// Twins of all objects that can have one, each beside its object: some kinds know only one name.
pub(crate) async fn twins<'a>(bench: &'a Bench<'_>) -> Result<Vec<(&'a Object, Twin)>, Trouble> {
    let mut twins = Vec::new();
    for object in &bench.objects {
        let twin = Twin::of(object).await?;
        if twin.try_apply().await.is_ok() {
            twins.push((object, twin));
        }
    }
    Ok(twins)
}

/// A change that somebody makes and that has to be undone.
pub(crate) fn change() -> Value {
    json!({"metadata": {"labels": {LABEL: "somebody-else"}}})
}
