//! Takes from an object's metadata what decisions need.

use crate::kinds::Served;
use crate::request::{Failure, METADATA, Sent, WHOLE, send};
use crate::server::Server;
use api::MANAGED_BY;
use api::annotation::PREFIX;
use change::{Key, Live, ManagedFields};
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
    /// Takes only what tells one look from another.
    pub(crate) fn name_and_version(self) -> Live {
        let deleting = self.deletion_timestamp.map(jiff::Timestamp::as_millisecond);
        Live { uid: self.uid, resource_version: self.resource_version, deleting, ..Live::default() }
    }

    /// Takes what is needed and drops the rest.
    pub(crate) fn live(self) -> Live {
        let mut annotations = self.annotations.unwrap_or_default();
        annotations.retain(|key, _| key.starts_with(PREFIX));
        Live {
            uid: self.uid,
            resource_version: self.resource_version,
            annotations,
            managed_fields: ManagedFields::new(self.managed_fields.map_or("[]", RawValue::get)),
            labelled: self.labels.is_some_and(|labels| labels.get(MANAGED_BY.0).is_some_and(|by| by == MANAGED_BY.1)),
            created: self.creation_timestamp.map(jiff::Timestamp::as_millisecond),
            deleting: self.deletion_timestamp.map(jiff::Timestamp::as_millisecond),
            finalizers: self.finalizers.unwrap_or_default(),
        }
    }
}

/// Reads all of one object; `None` if it does not exist.
pub async fn content(server: &Server, served: &Served, key: &Key) -> Result<Option<(Live, Value)>, Failure> {
    let url = served.url(&key.namespace, &key.name);
    match send(server, Sent::get(&url, WHOLE)).await {
        Ok(text) => {
            let live = serde_json::from_str::<Object<'_>>(&text)?.metadata.live();
            Ok(Some((live, serde_json::from_str(&text)?)))
        }
        Err(Failure::Answered { code: 404, .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Reads the metadata of one object; `None` if it does not exist.
pub async fn read(server: &Server, served: &Served, key: &Key) -> Result<Option<Live>, Failure> {
    let url = served.url(&key.namespace, &key.name);
    match send(server, Sent::get(&url, METADATA)).await {
        Ok(text) => Ok(Some(serde_json::from_str::<Object<'_>>(&text)?.metadata.live())),
        Err(Failure::Answered { code: 404, .. }) => Ok(None),
        Err(failure) => Err(failure),
    }
}
