//! The only writer of platform objects.

use crate::kinds::Served;
use crate::live::live;
use crate::permit::Permit;
use change::{Entry, FieldSet, Key, Live, list_repair};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// A write that is not answered by then has failed; it is safe to make it again.
const PATIENCE: Duration = Duration::from_secs(10);

/// One write.
#[derive(Debug, Clone)]
pub enum Act {
    /// Apply the object, in this version if one is given.
    Apply {
        /// The object.
        object: Value,
        /// The version it was decided for.
        resource_version: Option<String>,
    },
    /// A JSON patch, guarded by a test of its own.
    Patch(Value),
    /// Put our items of lists in the place of those that keep this object from being applied; the next apply then succeeds.
    Repair(Value),
    /// These annotations and nothing else, in this version.
    Annotate {
        /// The annotations.
        annotations: BTreeMap<String, String>,
        /// The version it was decided for.
        resource_version: String,
    },
}

/// What the server answered.
#[derive(Debug, Clone)]
pub struct Acted {
    /// The object's metadata after it.
    pub live: Live,
    /// The fields that are ours after it.
    pub fields: FieldSet,
    /// When our entry last changed.
    pub time: String,
}

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object was changed meanwhile: decide again.
    #[error("{0} was changed meanwhile")]
    Stale(Key),
    /// The server refuses it as it is: only another object or another right helps.
    #[error("the API server refused {key}: {words}")]
    Refused {
        /// The object.
        key: Key,
        /// The server's words.
        words: String,
    },
    /// An item of a list has the name of one of ours under another key: apply alone cannot help.
    #[error("the API server refused {key}, because somebody changed the key of a list item: {words}")]
    KeyChanged {
        /// The object.
        key: Key,
        /// The server's words.
        words: String,
    },
    /// No answer, or a passing one: try again.
    #[error("could not write {key}: {words}")]
    Passing {
        /// The object.
        key: Key,
        /// Why.
        words: String,
    },
}

/// Makes one write.
pub async fn act(client: &Client, _permit: &Permit, served: &Served, key: &Key, act: &Act) -> Result<Acted, Error> {
    let api = served.api(client, &key.namespace);
    let write = async {
        match act {
            Act::Apply { object, resource_version } => {
                let mut object = object.clone();
                if let Some(version) = resource_version {
                    object["metadata"]["resourceVersion"] = json!(version);
                }
                // By force over plain updates: that is drift.
                let params = PatchParams::apply(api::FIELD_MANAGER).force();
                api.patch_metadata(&key.name, &params, &Patch::Apply(&object)).await
            }
            Act::Patch(patch) => {
                let patch = serde_json::from_value(patch.clone()).map_err(kube::Error::SerdeError)?;
                let params = PatchParams { field_manager: Some(api::FIELD_MANAGER.into()), ..PatchParams::default() };
                api.patch_metadata(&key.name, &params, &Patch::Json::<()>(patch)).await
            }
            Act::Repair(wanted) => {
                let live = api.get(&key.name).await?;
                let live = serde_json::to_value(live).map_err(kube::Error::SerdeError)?;
                let patch = list_repair::repair(wanted, &live).unwrap_or_else(|| json!([]));
                let patch = serde_json::from_value(patch).map_err(kube::Error::SerdeError)?;
                let params = PatchParams { field_manager: Some(api::FIELD_MANAGER.into()), ..PatchParams::default() };
                api.patch_metadata(&key.name, &params, &Patch::Json::<()>(patch)).await
            }
            Act::Annotate { annotations, resource_version } => {
                let patch = json!({"metadata": {"resourceVersion": resource_version, "annotations": annotations}});
                let params = PatchParams { field_manager: Some(api::FIELD_MANAGER.into()), ..PatchParams::default() };
                api.patch_metadata(&key.name, &params, &Patch::Merge(&patch)).await
            }
        }
    };
    let answer = match tokio::time::timeout(PATIENCE, write).await {
        Ok(answer) => answer.map_err(|error| explain(error, key))?,
        Err(_) => return Err(Error::Passing { key: key.clone(), words: "no answer in time".into() }),
    };
    let live = live(answer.metadata);
    let entries = Entry::all(&live.managed_fields);
    let ours = Entry::ours(&entries, api::FIELD_MANAGER);
    let (fields, time) = ours.map(|entry| (entry.fields.clone(), entry.time.clone())).unwrap_or_default();
    Ok(Acted { live, fields, time })
}

fn explain(error: kube::Error, key: &Key) -> Error {
    let key = key.clone();
    match error {
        kube::Error::Api(status) if status.code == 409 => Error::Stale(key),
        kube::Error::Api(status) if status.code == 422 && status.message.contains("Duplicate value") => {
            Error::KeyChanged { key, words: status.message }
        }
        kube::Error::Api(status) if matches!(status.code, 400 | 403 | 404 | 405 | 413 | 415 | 422) => {
            Error::Refused { key, words: status.message }
        }
        kube::Error::Api(status) => Error::Passing { key, words: status.message },
        other => Error::Passing { key, words: other.to_string() },
    }
}
