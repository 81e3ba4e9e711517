//! Installs CRDs and waits until they are established.

use crate::poll;
use crate::user_error::{UserError, server_message};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// More concurrent requests only slow the server down.
const CONCURRENCY: usize = 8;
/// Fifty CRDs take about three seconds on two cores; a busy machine may need much longer.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Creates every CRD and returns when all are established.
pub async fn install(client: &Client, crds: &[Value]) -> Result<(), UserError> {
    // Untyped, because a typed value would drop fields unknown to this program.
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::erase::<CustomResourceDefinition>(&()));
    stream::iter(crds)
        .map(|crd| {
            let api = api.clone();
            async move {
                let name = crd["metadata"]["name"].as_str().unwrap_or_default();
                let refused = |message: String| {
                    UserError::new(
                        format!("the API server rejected the CRD {name}"),
                        "the pinned package does not fit this API server: change its entry in tools/crds/crds.toml",
                    )
                    .with_detail(message)
                };
                let object = serde_json::from_value(crd.clone()).map_err(|error| refused(error.to_string()))?;
                api.create(&PostParams::default(), &object)
                    .await
                    .map(|_| ())
                    .map_err(|error| refused(server_message(&error)))
            }
        })
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    let wanted: BTreeSet<&str> = crds.iter().filter_map(|crd| crd["metadata"]["name"].as_str()).collect();
    let mut waiting = Vec::new();
    let done = poll::with_timeout(Duration::from_millis(50), TIMEOUT, async || {
        let ready = established(client).await?;
        waiting = wanted.iter().filter(|name| !ready.contains(**name)).copied().collect();
        Ok(waiting.is_empty().then_some(()))
    });
    if done.await?.is_some() {
        return Ok(());
    }
    Err(UserError::new(
        format!("these CRDs are not established after {} s: {}", TIMEOUT.as_secs(), waiting.join(", ")),
        "the machine is too busy or the CRDs conflict: check their status conditions",
    ))
}

/// The names of all established CRDs.
pub async fn established(client: &Client) -> Result<BTreeSet<String>, UserError> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let list = api.list(&ListParams::default()).await.map_err(|error| {
        UserError::new("could not list the CRDs", "see the log of the API server in the playground's folder")
            .with_source(error)
    })?;
    let is_ready = |crd: &CustomResourceDefinition| {
        let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Established" && condition.status == "True")
    };
    Ok(list.items.into_iter().filter(is_ready).filter_map(|crd| crd.metadata.name).collect())
}
