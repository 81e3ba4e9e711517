//! The only writer of platform objects.

use crate::kinds::Served;
use crate::live::Object;
use crate::permit::Permit;
use crate::request::{Failure, METADATA, Sent, WHOLE, send, send_within};
use crate::server::Server;

use api::FIELD_MANAGER;
use change::{Key, Live, list_repair};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

// JSON is YAML, too.
const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON: &str = "application/json";
/// The name under which a person's rollback writes: what it changes is not ours.
const ROLLBACK: &str = "virtpilot-rollback";

/// One write.
#[derive(Debug, Clone)]
pub enum Act {
    /// Apply this object, as text: many wait at a time, and as trees they would need many times the memory.
    Apply(String),
    /// A JSON patch, guarded by a test of its own.
    Patch(Value),
    /// Put our items of lists in the place of those that keep this object from being applied; the next apply then succeeds.
    Repair(String),
    /// These annotations and nothing else, in this version.
    Annotate {
        /// The annotations.
        annotations: BTreeMap<String, String>,
        /// The version it was decided for.
        resource_version: String,
    },
    /// Let go of the object: a merge patch that names identity and version, from [`change::handback`].
    HandBack(Value),
    /// Delete exactly this object in exactly this version; what depends on it goes in the background.
    Delete {
        /// Its identity.
        uid: String,
        /// The version it was decided for.
        resource_version: String,
    },
    /// Create this object; one that exists already is left as it is.
    Create(Value),
    /// Put this whole object in the place of the one there is, in the version it names.
    Replace(Value),
}

/// What has to be so for an apply to be made; else it is [`Error::Stale`].
#[derive(Debug, Clone, Copy)]
pub enum Guard<'a> {
    /// Nothing.
    None,
    /// The object does not exist: it is created and nothing else.
    Absent,
    /// It is this one, in this version: it is never created.
    Present(&'a Live),
}

/// No object has it: on one that exists it is a conflict, and on one that does not the server pays no attention to it.
const NO_VERSION: &str = "1";

impl Act {
    /// Applies an object.
    pub fn apply(mut object: Value, guard: Guard<'_>) -> Act {
        let metadata = &mut object["metadata"];
        match guard {
            Guard::None => {}
            Guard::Absent => metadata["resourceVersion"] = json!(NO_VERSION),
            Guard::Present(live) => {
                metadata["resourceVersion"] = json!(live.resource_version);
                metadata["uid"] = json!(live.uid);
            }
        }
        Act::Apply(object.to_string())
    }
}

/// What the server answered.
#[derive(Debug, Clone)]
pub struct Acted {
    /// The object's metadata after it. None if it is gone, and if it had been there before it was to be created.
    pub live: Option<Live>,
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
        /// The HTTP status.
        code: u16,
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
    /// There is no copy of what it was before: it is left as it is.
    #[error("could not back up {key}: {words}")]
    NoBackup {
        /// The object.
        key: Key,
        /// Why.
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

/// Makes one write. After each try that failed the next is given more time: an admission webhook may need up to 30 seconds.
pub async fn act(
    server: &Server,
    permit: &Permit,
    served: &Served,
    key: &Key,
    act: Act,
    tries: u32,
) -> Result<Acted, Error> {
    let url = served.url(&key.namespace, &key.name);
    let ours = format!("{url}?fieldManager={FIELD_MANAGER}");
    let patience = server.patience.request.saturating_mul(1 << tries.min(2));
    let write = async |method: Method, url: &str, content_type, body: String| {
        let sent = Sent { method, url, accept: METADATA, content_type, body: body.into_bytes() };
        write(server, permit, patience, sent).await
    };
    let answer = match act {
        // By force over plain updates: that is drift.
        Act::Apply(object) => {
            let url = format!("{ours}&force=true&fieldValidation=Strict");
            write(Method::PATCH, &url, APPLY, object).await
        }
        Act::Patch(patch) => write(Method::PATCH, &ours, JSON_PATCH, patch.to_string()).await,
        Act::Repair(wanted) => match send(server, Sent::get(&url, WHOLE)).await {
            Ok(text) => {
                let (live, wanted): (Value, Value) = (
                    serde_json::from_str(&text).unwrap_or_default(),
                    serde_json::from_str(&wanted).unwrap_or_default(),
                );
                if ["resourceVersion", "uid"].iter().any(|key| live["metadata"][key] != wanted["metadata"][key]) {
                    // It was decided about another one.
                    return Err(Error::Stale(key.clone()));
                }
                let patch = list_repair::repair(&wanted, &live).unwrap_or_else(|| json!([]));
                write(Method::PATCH, &ours, JSON_PATCH, patch.to_string()).await
            }
            Err(failure) => Err(failure),
        },
        Act::Annotate { annotations, resource_version } => {
            let patch = json!({"metadata": {"resourceVersion": resource_version, "annotations": annotations}});
            write(Method::PATCH, &ours, MERGE_PATCH, patch.to_string()).await
        }
        Act::HandBack(patch) => write(Method::PATCH, &ours, MERGE_PATCH, patch.to_string()).await,
        Act::Delete { uid, resource_version } => {
            let options = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": uid, "resourceVersion": resource_version},
                "propagationPolicy": "Background",
            });
            let deleted = write(Method::DELETE, &url, JSON, options.to_string()).await;
            return match deleted {
                // The server answers with the object as it was, with a Status, or with the object that others have to let go first.
                Ok(text) => read(&text).map(|live| Acted { live: live.filter(|live| live.deleting.is_some()) }),
                Err(Failure::Answered { code: 404, .. }) => Ok(Acted { live: None }),
                Err(failure) => Err(failure),
            }
            .map_err(|failure| explain(failure, key));
        }
        Act::Create(object) => {
            let url = format!("{}?fieldManager={FIELD_MANAGER}", served.url(&key.namespace, ""));
            let created = write(Method::POST, &url, JSON, object.to_string()).await;
            if matches!(&created, Err(Failure::Answered { code: 409, words }) if words.ends_with("already exists")) {
                return Ok(Acted { live: None });
            }
            created
        }
        Act::Replace(object) => {
            write(Method::PUT, &format!("{url}?fieldManager={ROLLBACK}"), JSON, object.to_string()).await
        }
    };
    let live = answer.and_then(|text| read(&text)).map_err(|failure| explain(failure, key))?;
    Ok(Acted { live })
}

/// The metadata in an answer; what is no object has none.
fn read(text: &str) -> Result<Option<Live>, Failure> {
    let live = serde_json::from_str::<Object<'_>>(text)?.metadata.live();
    Ok((!live.uid.is_empty()).then_some(live))
}

/// Sends one write, if it may still be made at this very moment.
async fn write(server: &Server, permit: &Permit, patience: Duration, sent: Sent<'_>) -> Result<String, Failure> {
    if !permit.holds() {
        return Err(Failure::Unanswered("another process may be the leader by now".into()));
    }
    send_within(patience, server, sent).await
}

fn explain(failure: Failure, key: &Key) -> Error {
    let (key, refusal) = (key.clone(), failure.is_refusal());
    match failure {
        Failure::Answered { code: 409, .. } => Error::Stale(key),
        Failure::Answered { code: 422, words } if words.contains("Duplicate value") => Error::KeyChanged { key, words },
        Failure::Answered { code, words } if refusal => Error::Refused { key, code, words },
        // For a server an object that does not fit its schema is an error of its own, when it is applied.
        Failure::Answered { code: 500, words } if words.contains("failed to create typed patch object") => {
            Error::Refused { key, code: 422, words }
        }
        Failure::Answered { words, .. } | Failure::Unanswered(words) => Error::Passing { key, words },
    }
}
