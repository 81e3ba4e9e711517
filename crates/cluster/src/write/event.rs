//! Publishes Kubernetes events, and writes nothing else.

use crate::request::{Failure, METADATA, Request, WHOLE, send_within};
use crate::server::Server;
use change::Key;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;

/// The server accepts no longer note.
const LONGEST_NOTE: usize = 1024;
/// The server accepts no longer action.
const LONGEST_ACTION: usize = 128;
const MERGE_PATCH: &str = "application/merge-patch+json";
/// An event is not worth a longer wait.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The object that it regards; its events show it.
    pub regarding: Reference,
    /// Another object that it is about.
    pub related: Option<Reference>,
    /// Whether it is a warning.
    pub warning: bool,
    /// A machine-readable reason in CamelCase.
    pub reason: String,
    /// The object that was acted on, if it is not the one the event regards.
    pub about: Option<Key>,
    /// The message.
    pub note: String,
}

/// An object that an event names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The object.
    pub key: Key,
    /// Its uid; empty if it does not exist.
    pub uid: String,
}

impl Reference {
    fn value(&self) -> Value {
        let Key { kind, namespace, name } = &self.key;
        json!({
            "apiVersion": kind.api_version(), "kind": kind.kind, "namespace": namespace, "name": name, "uid": self.uid,
        })
    }
}

impl Event {
    fn url(&self) -> String {
        format!("/apis/events.k8s.io/v1/namespaces/{}/events", namespace_of(&self.regarding.key))
    }
}

/// Where the events about an object are: those about cluster-scoped objects in the default namespace, because the server accepts no other.
pub fn namespace_of(key: &Key) -> &str {
    if key.namespace.is_empty() { "default" } else { &key.namespace }
}

/// Publishes an event; `instance` is the pod that reports it. Returns its name.
pub async fn publish(server: &Server, instance: &str, event: &Event, at: Timestamp) -> Result<String, Failure> {
    let action = event.about.as_ref().map_or_else(|| event.reason.clone(), |key| format!("{} {key}", event.reason));
    let mut object = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{}-", event.regarding.key.name), "namespace": namespace_of(&event.regarding.key)},
        "eventTime": time(at),
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": event.reason,
        "action": shortened(&action, LONGEST_ACTION),
        "note": shortened(&event.note, LONGEST_NOTE),
        "regarding": event.regarding.value(),
        "reportingController": server.identity.field_manager,
        "reportingInstance": instance,
    });
    if let Some(related) = &event.related {
        object["related"] = related.value();
    }
    let (body, url) = (object.to_string().into_bytes(), event.url());
    let request =
        Request { kind: "Event".into(), method: Method::POST, url, accept: METADATA, content_type: WHOLE, body };
    let answer: Value = serde_json::from_str(&send_within(TIMEOUT, server, request).await?)?;
    Ok(answer["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}

/// Counts an event that was published before under this name: it has happened so many times.
pub async fn repeat(server: &Server, event: &Event, name: &str, count: u32, at: Timestamp) -> Result<(), Failure> {
    let series = json!({"series": {"count": count, "lastObservedTime": time(at)}});
    let (body, url) = (series.to_string().into_bytes(), format!("{}/{name}", event.url()));
    let request =
        Request { kind: "Event".into(), method: Method::PATCH, url, accept: METADATA, content_type: MERGE_PATCH, body };
    send_within(TIMEOUT, server, request).await.map(|_| ())
}

/// The server reads exactly six decimals.
fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// As much of a text as fits into so many bytes.
fn shortened(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened("abc", 5), "abc");
        assert_eq!(shortened("abcdef", 5), "abcde");
        assert_eq!(shortened("abc\u{e9}\u{e9}", 4), "abc");
    }
}
