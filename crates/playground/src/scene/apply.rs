//! Applies a scene's objects to an API server.

use super::Scene;
use crate::user_error::{UserError, server_message};
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{Discovery, Scope};
use serde_json::{Value, json};

/// More concurrent requests only slow the server down.
const CONCURRENCY: usize = 16;
const MANAGER: &str = "playground-scene";

/// Applies every object and the status that its operator would set. It is idempotent.
pub async fn apply(client: &Client, scene: &Scene) -> Result<(), UserError> {
    let objects = scene.objects();
    let discovery = Discovery::new(client.clone()).run_aggregated().await.map_err(|error| {
        UserError::new("could not discover the API server's resources", "see its log in the playground's folder")
            .with_source(error)
    })?;
    // Namespaces first, then everything else concurrently.
    let (namespaces, rest): (Vec<&Value>, Vec<&Value>) =
        objects.iter().partition(|object| object["kind"] == "Namespace");
    for group in [namespaces, rest] {
        stream::iter(group)
            .map(|object| apply_object(client, &discovery, object))
            .buffer_unordered(CONCURRENCY)
            .try_collect::<Vec<()>>()
            .await?;
    }
    Ok(())
}

async fn apply_object(client: &Client, discovery: &Discovery, object: &Value) -> Result<(), UserError> {
    let kind = kind_of(object)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let failed = |message: &str| {
        UserError::new(
            format!("could not set up {} {name}", kind.kind),
            "the scene does not fit this API server; this is a bug, please report it",
        )
        .with_detail(message)
    };
    let (resource, capabilities) =
        discovery.resolve_gvk(&kind).ok_or_else(|| failed("the API server does not serve this kind"))?;
    let api: Api<DynamicObject> = match (capabilities.scope, object["metadata"]["namespace"].as_str()) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource),
        _ => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply(MANAGER).force();
    api.patch(name, &params, &Patch::Apply(object)).await.map_err(|error| failed(&server_message(&error)))?;
    if let Some(status) = object.get("status") {
        let status = json!({
            "apiVersion": object["apiVersion"],
            "kind": object["kind"],
            "metadata": {"name": name},
            "status": status,
        });
        api.patch_status(name, &params, &Patch::Apply(&status))
            .await
            .map_err(|error| failed(&server_message(&error)))?;
    }
    Ok(())
}

fn kind_of(object: &Value) -> Result<GroupVersionKind, UserError> {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let types = TypeMeta { api_version: text("apiVersion"), kind: text("kind") };
    GroupVersionKind::try_from(types).map_err(|error| {
        UserError::new("an object of the scene has no kind", "this is a bug, please report it").with_source(error)
    })
}
