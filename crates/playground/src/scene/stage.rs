//! Puts a scene's objects on an API server.

use super::Scene;
use crate::trouble::{Trouble, server_words};
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{Discovery, Scope};
use serde_json::{Value, json};

/// More at a time only makes the server slower.
const AT_A_TIME: usize = 16;
const MANAGER: &str = "playground-scene";

/// Applies every object, then what its operator would say in its status. Repeating it changes nothing.
pub async fn stage(client: &Client, scene: &Scene) -> Result<(), Trouble> {
    let objects = scene.objects();
    let discovery = Discovery::new(client.clone()).run_aggregated().await.map_err(|error| {
        Trouble::new("could not ask the API server what it serves", "look at its log in the playground's folder")
            .from(error)
    })?;
    // Namespaces come first; what lives in them follows together.
    let (namespaces, rest): (Vec<&Value>, Vec<&Value>) =
        objects.iter().partition(|object| object["kind"] == "Namespace");
    for group in [namespaces, rest] {
        stream::iter(group)
            .map(|object| put(client, &discovery, object))
            .buffer_unordered(AT_A_TIME)
            .try_collect::<Vec<()>>()
            .await?;
    }
    Ok(())
}

async fn put(client: &Client, discovery: &Discovery, object: &Value) -> Result<(), Trouble> {
    let kind = kind_of(object)?;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let failed = |words: &str| {
        Trouble::new(
            format!("could not set up {} {name}", kind.kind),
            "the scene does not fit this API server: report it",
        )
        .because(words)
    };
    let (resource, capabilities) =
        discovery.resolve_gvk(&kind).ok_or_else(|| failed("the API server does not serve this kind"))?;
    let api: Api<DynamicObject> = match (capabilities.scope, object["metadata"]["namespace"].as_str()) {
        (Scope::Namespaced, Some(namespace)) => Api::namespaced_with(client.clone(), namespace, &resource),
        _ => Api::all_with(client.clone(), &resource),
    };
    let params = PatchParams::apply(MANAGER).force();
    api.patch(name, &params, &Patch::Apply(object)).await.map_err(|error| failed(&server_words(&error)))?;
    if let Some(status) = object.get("status") {
        let status = json!({
            "apiVersion": object["apiVersion"],
            "kind": object["kind"],
            "metadata": {"name": name},
            "status": status,
        });
        api.patch_status(name, &params, &Patch::Apply(&status)).await.map_err(|error| failed(&server_words(&error)))?;
    }
    Ok(())
}

fn kind_of(object: &Value) -> Result<GroupVersionKind, Trouble> {
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let types = TypeMeta { api_version: text("apiVersion"), kind: text("kind") };
    GroupVersionKind::try_from(types).map_err(|error| {
        Trouble::new("an object of the scene has no kind", "this is a bug, please report it").from(error)
    })
}
