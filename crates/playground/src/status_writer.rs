//! Writes the statuses of objects whose operators a playground does not have: as those do, it says of each object that it has looked at it.

use futures::{StreamExt, TryStreamExt};
use kube::Client;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, WatchEvent, WatchParams,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinSet;

/// Its field manager.
pub const FIELD_MANAGER: &str = "operators-stand-in";
/// The kinds whose statuses it writes: those that the catalogue marks with `reports`.
pub const KINDS: [(&str, &str); 7] = [
    ("operator.openshift.io/v1", "KubeDescheduler"),
    ("remediation.medik8s.io/v1alpha1", "NodeHealthCheck"),
    ("storage-based-remediation.medik8s.io/v1alpha1", "StorageBasedRemediationConfig"),
    ("observability.openshift.io/v1alpha1", "UIPlugin"),
    ("observability.openshift.io/v1", "ClusterLogForwarder"),
    ("loki.grafana.com/v1", "LokiStack"),
    ("perses.dev/v1alpha2", "PersesDashboard"),
];
/// A kind that is not served, or cannot be watched now, is asked for again after this.
const PAUSE: Duration = Duration::from_millis(500);

/// What writes statuses; it stops when this value is dropped.
pub struct StatusWriter {
    _tasks: JoinSet<()>,
}

pub(crate) fn start(client: &Client) -> StatusWriter {
    let mut tasks = JoinSet::new();
    for (api_version, kind) in KINDS {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        tasks.spawn(follow(client.clone(), resource));
    }
    StatusWriter { _tasks: tasks }
}

async fn follow(client: Client, resource: ApiResource) {
    loop {
        let _ = follow_once(&client, &resource).await;
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow_once(client: &Client, resource: &ApiResource) -> kube::Result<()> {
    let all: Api<DynamicObject> = Api::all_with(client.clone(), resource);
    let list = all.list(&ListParams::default()).await?;
    for object in &list.items {
        write(client, resource, object).await?;
    }
    let version = list.metadata.resource_version.unwrap_or_default();
    let mut events = all.watch(&WatchParams::default(), &version).await?.boxed();
    while let Some(event) = events.try_next().await? {
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => write(client, resource, &object).await?,
            WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(_) => return Ok(()),
        }
    }
    Ok(())
}

async fn write(client: &Client, resource: &ApiResource, object: &DynamicObject) -> kube::Result<()> {
    let generation = object.metadata.generation.unwrap_or_default();
    let Some(status) = status(generation, &object.data["status"]) else { return Ok(()) };
    let name = object.metadata.name.as_deref().unwrap_or_default();
    let api: Api<DynamicObject> = match object.metadata.namespace.as_deref() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
        None => Api::all_with(client.clone(), resource),
    };
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    match api.patch_status(name, &params, &Patch::Merge(json!({"status": status}))).await {
        // Somebody has deleted it.
        Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
        answer => answer.map(|_| ()),
    }
}

/// The status of an object of this generation, unless somebody has already written one about it.
fn status(generation: i64, present: &Value) -> Option<Value> {
    let conditions = present["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_behind = |condition: &Value| condition["observedGeneration"].as_i64().is_some_and(|seen| seen < generation);
    (conditions.is_empty() || conditions.iter().any(is_behind)).then(|| {
        json!({"conditions": [{
            "type": "Available",
            "status": "True",
            "observedGeneration": generation,
            "lastTransitionTime": jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "reason": "StandIn",
            "message": "the playground has no operator of this kind",
        }]})
    })
}

#[cfg(test)]
mod tests {
    use super::status;
    use serde_json::{Value, json};

    #[test]
    fn a_status_is_written_once_for_each_generation_and_none_of_somebody_else_is_overwritten() {
        let first = status(1, &Value::Null).unwrap();
        assert_eq!(first["conditions"][0]["observedGeneration"], 1);
        assert_eq!(status(1, &first), None);
        assert_eq!(status(2, &first).unwrap()["conditions"][0]["observedGeneration"], 2);
        let degraded = json!({"conditions": [{"type": "Degraded", "status": "True"}]});
        assert_eq!(status(2, &degraded), None, "it says nothing of generations");
    }
}
