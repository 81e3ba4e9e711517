//! Publishes Kubernetes events, and writes nothing else.

use crate::request::{Failure, Request, WHOLE, send_within};
use crate::server::Server;
use change::Key;
use http::Method;
use jiff::Timestamp;
use serde_json::json;
use std::time::Duration;

/// The server accepts no longer note.
const LONGEST_NOTE: usize = 1024;
/// The server accepts no longer action.
const LONGEST_ACTION: usize = 128;
/// An event is not worth a longer wait.
const TIMEOUT: Duration = Duration::from_secs(5);

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Whether it is a warning.
    pub warning: bool,
    /// A machine-readable reason in CamelCase.
    pub reason: String,
    /// The object that was acted on, if it is not the one the event regards.
    pub about: Option<Key>,
    /// The message.
    pub note: String,
}

/// Publishes one event that regards this object; `instance` is the pod that reports it.
pub async fn publish(
    server: &Server,
    regarding: &Key,
    uid: &str,
    instance: &str,
    event: &Event,
    at: Timestamp,
) -> Result<(), Failure> {
    // Events about cluster-scoped objects live in the default namespace.
    let namespace = if regarding.namespace.is_empty() { "default" } else { &regarding.namespace };
    let action = event.about.as_ref().map_or_else(|| event.reason.clone(), |key| format!("{} {key}", event.reason));
    let object = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"generateName": format!("{}-", regarding.name), "namespace": namespace},
        // The server reads exactly six decimals.
        "eventTime": at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
        "type": if event.warning { "Warning" } else { "Normal" },
        "reason": event.reason,
        "action": shortened(&action, LONGEST_ACTION),
        "note": shortened(&event.note, LONGEST_NOTE),
        "regarding": {
            "apiVersion": regarding.kind.api_version(),
            "kind": regarding.kind.kind,
            "namespace": regarding.namespace,
            "name": regarding.name,
            "uid": uid,
        },
        "reportingController": server.identity.field_manager,
        "reportingInstance": instance,
    });
    let url = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let body = object.to_string().into_bytes();
    let request = Request { method: Method::POST, url, accept: WHOLE, content_type: WHOLE, body };
    send_within(TIMEOUT, server, request).await.map(|_| ())
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
