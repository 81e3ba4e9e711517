//! Installs CRDs on an API server and waits until it serves them.

use crate::trouble::{Trouble, server_words};
use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, PostParams};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// More at a time only makes the server slower.
const AT_A_TIME: usize = 8;
/// Fifty CRDs take about three seconds on two cores; a machine that is busy with other things may need much longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Creates every CRD and returns when all are established.
pub async fn install(client: &Client, crds: &[Value]) -> Result<(), Trouble> {
    // As it was published: a typed value would drop what this program does not know.
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::erase::<CustomResourceDefinition>(&()));
    stream::iter(crds)
        .map(|crd| {
            let api = api.clone();
            async move {
                let name = crd["metadata"]["name"].as_str().unwrap_or_default();
                let refused = |words: String| {
                    Trouble::new(
                        format!("the API server refused the CRD {name}"),
                        "the pinned package and this API server do not fit: change its row in tools/crds/crds.toml",
                    )
                    .because(words)
                };
                let object = serde_json::from_value(crd.clone()).map_err(|error| refused(error.to_string()))?;
                api.create(&PostParams::default(), &object)
                    .await
                    .map(|_| ())
                    .map_err(|error| refused(server_words(&error)))
            }
        })
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<()>>()
        .await?;
    let wanted: BTreeSet<&str> = crds.iter().filter_map(|crd| crd["metadata"]["name"].as_str()).collect();
    let begun = Instant::now();
    loop {
        let ready = established(client).await?;
        let waiting: Vec<&str> = wanted.iter().filter(|name| !ready.contains(**name)).copied().collect();
        if waiting.is_empty() {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(Trouble::new(
                format!("these CRDs are not established after {} s: {}", PATIENCE.as_secs(), waiting.join(", ")),
                "the machine is too busy, or the definitions clash: look at their status conditions",
            ));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The names of all CRDs the server says are established.
pub async fn established(client: &Client) -> Result<BTreeSet<String>, Trouble> {
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let list = api.list(&ListParams::default()).await.map_err(|error| {
        Trouble::new("could not list the CRDs", "see the log of the API server in the playground's folder").from(error)
    })?;
    let is_ready = |crd: &CustomResourceDefinition| {
        let conditions = crd.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.into_iter().flatten().any(|condition| condition.type_ == "Established" && condition.status == "True")
    };
    Ok(list.items.into_iter().filter(is_ready).filter_map(|crd| crd.metadata.name).collect())
}
