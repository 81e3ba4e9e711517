//! Reads the resourceVersion of a message without parsing the rest of it.

use serde::Deserialize;

#[derive(Deserialize, Default)]
struct Versioned {
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default, rename = "resourceVersion")]
    resource_version: Option<String>,
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    object: Versioned,
}

/// The version of an object or a list, if the body is one.
pub(super) fn of_object(body: &[u8]) -> Option<String> {
    let versioned: Versioned = serde_json::from_slice(body).ok()?;
    versioned.metadata.resource_version.filter(|version| !version.is_empty())
}

/// The type and the version of a watch event.
pub(super) fn of_event(line: &[u8]) -> Option<(String, Option<String>)> {
    let event: Event = serde_json::from_slice(line).ok()?;
    Some((event.kind, event.object.metadata.resource_version))
}

#[cfg(test)]
mod tests {
    use super::{of_event, of_object};

    #[test]
    fn the_version_of_an_object_and_of_an_event_is_found() {
        assert_eq!(
            of_object(br#"{"a":{"b":[1]},"metadata":{"name":"x","resourceVersion":"7"}}"#).as_deref(),
            Some("7")
        );
        assert_eq!(of_object(br#"{"metadata":{"resourceVersion":""}}"#), None);
        assert_eq!(of_object(b"k: v"), None);
        let line = br#"{"type":"ADDED","object":{"metadata":{"resourceVersion":"8"}}}"#;
        assert_eq!(of_event(line), Some(("ADDED".into(), Some("8".into()))));
        assert_eq!(of_event(b"half of an ev"), None);
    }
}
