//! Events: what a person finds with `kubectl get events`. Nothing else is written here.

use change::Key;
use jiff::Timestamp;
use kube::Client;
use serde_json::json;
use std::time::Duration;

/// The server takes no longer text.
const LONGEST: usize = 1024;
/// An event is not worth waiting for.
const PATIENCE: Duration = Duration::from_secs(5);

/// One event about the HyperConverged, which is what users look at.
#[derive(Debug, Clone)]
pub struct Told {
    /// Whether it is a warning.
    pub warning: bool,
    /// The word it is filed under.
    pub reason: String,
    /// The object it is about.
    pub about: Option<Key>,
    /// The sentence.
    pub note: String,
}

/// Writes one event.
pub async fn tell(
    client: &Client,
    regarding: &Key,
    uid: &str,
    pod: &str,
    told: &Told,
    now: Timestamp,
) -> kube::Result<()> {
    let mut note: String = told.note.chars().take(LONGEST).collect();
    while note.len() > LONGEST {
        note.pop();
    }
    let action = told.about.as_ref().map_or_else(|| told.reason.clone(), |key| format!("{} {key}", told.reason));
    let event = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{}-", regarding.name), "namespace": regarding.namespace},
        // The server reads exactly six digits.
        "eventTime": now.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        "type": if told.warning { "Warning" } else { "Normal" },
        "reason": told.reason,
        "action": action.chars().take(128).collect::<String>(),
        "note": note,
        "regarding": {
            "apiVersion": regarding.kind.api_version(),
            "kind": regarding.kind.kind,
            "namespace": regarding.namespace,
            "name": regarding.name,
            "uid": uid,
        },
        "reportingController": api::FIELD_MANAGER,
        "reportingInstance": pod,
    });
    let path = format!("/apis/events.k8s.io/v1/namespaces/{}/events", regarding.namespace);
    let body = serde_json::to_vec(&event).map_err(kube::Error::SerdeError)?;
    let request = http::Request::post(path).header("content-type", "application/json").body(body);
    let request = request.map_err(kube::Error::HttpError)?;
    match tokio::time::timeout(PATIENCE, client.request_text(request)).await {
        Ok(answer) => answer.map(|_| ()),
        Err(_) => Err(kube::Error::Service("no answer in time".into())),
    }
}
