//! Reads one object: what decisions need of its metadata, or all of it.

use crate::request::{Failure, METADATA, Request, WHOLE, send_opt};
use crate::server::Server;
use change::{Identity, Key, Live, ManagedFields};
use protocol::Served;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// An object of which only the metadata is read.
#[derive(Deserialize)]
pub(crate) struct Object<'a> {
    #[serde(borrow)]
    pub(crate) metadata: Metadata<'a>,
}

/// What is read of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Metadata<'a> {
    #[serde(default)]
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) namespace: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    pub(crate) resource_version: String,
    #[serde(default)]
    pub(crate) generation: i64,
    #[serde(default)]
    annotations: Option<BTreeMap<String, String>>,
    #[serde(default, borrow)]
    managed_fields: Option<&'a RawValue>,
    #[serde(default)]
    labels: Option<BTreeMap<String, String>>,
    #[serde(default)]
    creation_timestamp: Option<jiff::Timestamp>,
    #[serde(default)]
    deletion_timestamp: Option<jiff::Timestamp>,
    #[serde(default)]
    finalizers: Option<Vec<String>>,
}

impl Metadata<'_> {
    /// Keeps uid, version and deletion only.
    pub(crate) fn identity_and_version(self) -> Live {
        let deleting = self.deletion_timestamp;
        Live { uid: self.uid, resource_version: self.resource_version, deleting, ..Live::default() }
    }

    /// Keeps what decisions need; of annotations and labels only the product's own.
    pub(crate) fn live(self, identity: &Identity) -> Live {
        let mut annotations = self.annotations.unwrap_or_default();
        annotations.retain(|key, _| key.starts_with(identity.annotation_prefix));
        let (label, value) = identity.label;
        Live {
            uid: self.uid,
            resource_version: self.resource_version,
            annotations,
            managed_fields: ManagedFields::new(self.managed_fields.map_or("[]", RawValue::get)),
            labelled: self.labels.is_some_and(|labels| labels.get(label).is_some_and(|found| found == value)),
            created: self.creation_timestamp,
            deleting: self.deletion_timestamp,
            finalizers: self.finalizers.unwrap_or_default(),
        }
    }
}

/// Reads the metadata of one object; nothing if it does not exist.
pub async fn read(server: &Server, served: &Served, key: &Key) -> Result<Option<Live>, Failure> {
    let request = Request::get(&key.kind.kind, &served.url(&key.namespace, &key.name), METADATA);
    let Some(text) = send_opt(server, request).await? else { return Ok(None) };
    Ok(Some(serde_json::from_str::<Object<'_>>(&text)?.metadata.live(&server.identity)))
}

/// Reads one whole object with its metadata; nothing if it does not exist.
pub async fn inspect(server: &Server, served: &Served, key: &Key) -> Result<Option<(Live, Value)>, Failure> {
    let request = Request::get(&key.kind.kind, &served.url(&key.namespace, &key.name), WHOLE);
    let Some(text) = send_opt(server, request).await? else { return Ok(None) };
    let live = serde_json::from_str::<Object<'_>>(&text)?.metadata.live(&server.identity);
    Ok(Some((live, serde_json::from_str(&text)?)))
}

/// Reads one whole object; nothing if it does not exist.
pub async fn whole(server: &Server, served: &Served, key: &Key) -> Result<Option<Value>, Failure> {
    let request = Request::get(&key.kind.kind, &served.url(&key.namespace, &key.name), WHOLE);
    let Some(text) = send_opt(server, request).await? else { return Ok(None) };
    Ok(Some(serde_json::from_str(&text)?))
}

#[cfg(test)]
mod tests {
    use super::Object;
    use change::Identity;

    const MINE: Identity =
        Identity { field_manager: "mine", label: ("managed-by", "mine"), annotation_prefix: "mine.io/", lease: "mine" };
    const THEIRS: Identity = Identity {
        field_manager: "theirs",
        label: ("managed-by", "theirs"),
        annotation_prefix: "theirs.io/",
        lease: "theirs",
    };

    #[test]
    fn a_product_sees_its_own_label_and_annotations_only() {
        let text = r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7","labels":{"managed-by":"mine"},
            "annotations":{"mine.io/mode":"off","theirs.io/mode":"on"},"creationTimestamp":"2024-01-01T00:00:00Z"}}"#;
        let live = |identity| serde_json::from_str::<Object<'_>>(text).unwrap().metadata.live(identity);
        let (mine, theirs) = (live(&MINE), live(&THEIRS));
        assert!(mine.labelled && !theirs.labelled);
        assert_eq!(mine.annotations.keys().collect::<Vec<_>>(), ["mine.io/mode"]);
        assert_eq!(theirs.annotations.keys().collect::<Vec<_>>(), ["theirs.io/mode"]);
        assert_eq!(mine.created.unwrap().to_string(), "2024-01-01T00:00:00Z");
    }
}
