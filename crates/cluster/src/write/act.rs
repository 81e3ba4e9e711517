//! The only writer of platform objects.

use crate::read::live::Object;
use crate::request::{Failure, METADATA, Request, WHOLE, send, send_within};
use crate::server::Server;
use crate::write::backup;
use crate::write::permit::Permit;
use change::{Effect, Key, Live, list_repair, redact};
use http::Method;
use protocol::{Backup, Served, Write, WriteError, Written};
use serde_json::{Value, json};
use std::time::Duration;

// JSON is YAML, too.
pub(crate) const APPLY: &str = "application/apply-patch+yaml";
const JSON_PATCH: &str = "application/json-patch+json";
/// All that the server says if a JSON patch cannot be applied to the object as it is.
const NOT_AS_TESTED: &str = "the server rejected our request due to an error in our request";
const MERGE_PATCH: &str = "application/merge-patch+json";
const JSON: &str = "application/json";

/// Makes one write, after its backup. Writes under the identity's field manager.
pub async fn write(server: &Server, permit: &Permit, write: Write) -> Result<Written, WriteError> {
    let Write { key, served, effect, attempt, backup } = write;
    let field_manager = server.identity.field_manager;
    let before = match backup {
        Some(Backup { config_maps, namespace }) => {
            Some(backup::take(server, permit, &config_maps, &namespace, &served, &key).await?)
        }
        None => None,
    };
    let written = act(server, permit, field_manager, &served, &key, effect, attempt).await?;
    Ok(Written { before, ..written })
}

/// Sends one effect under this field manager.
///
/// Each further attempt has more time, because an admission webhook may take up to 30 seconds.
pub async fn act(
    server: &Server,
    permit: &Permit,
    field_manager: &str,
    served: &Served,
    key: &Key,
    effect: Effect,
    attempt: u32,
) -> Result<Written, WriteError> {
    let timeout = server.timeouts.request.saturating_mul(1 << attempt.min(2));
    let (request, answer) = match prepare(effect, field_manager, served, key) {
        Prepared::Ready(request, answer) => (request, answer),
        Prepared::Repair(wanted) => (repair(server, field_manager, served, key, &wanted).await?, Expected::Object),
    };
    let sent = send_permitted(server, permit, timeout, request).await;
    let live = match (answer, sent) {
        (Expected::Object, sent) => sent.and_then(|text| read(server, &text)),
        // The answer is the deleted object, a Status, or an object whose finalizers still hold it.
        (Expected::Deleted, Ok(text)) => read(server, &text).map(|live| live.filter(|live| live.deleting.is_some())),
        (Expected::Deleted, Err(failure)) if failure.is_not_found() => Ok(None),
        (Expected::Created, Err(Failure::Answered { code: 409, message })) if message.ends_with("already exists") => {
            Ok(None)
        }
        (Expected::Created, Ok(text)) => read(server, &text),
        (Expected::Deleted | Expected::Created, Err(failure)) => Err(failure),
    };
    live.map(|live| Written { live, ..Written::default() }).map_err(|failure| explain(failure, key))
}

/// An effect as text: the tree it came from needs many times the memory and is not kept while the server answers.
enum Prepared {
    Ready(Request, Expected),
    /// The object whose apply fails; the live one has to be read first.
    Repair(String),
}

/// How an answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Object,
    Created,
    Deleted,
}

fn prepare(effect: Effect, field_manager: &str, served: &Served, key: &Key) -> Prepared {
    let object_url = served.url(&key.namespace, &key.name);
    let managed_url = format!("{object_url}?fieldManager={field_manager}");
    let kind = || key.kind.kind.clone();
    let ready = |method, url, content_type, body: Value, expected| {
        let body = body.to_string().into_bytes();
        Prepared::Ready(Request { kind: kind(), method, url, accept: METADATA, content_type, body }, expected)
    };
    match effect {
        Effect::Apply { object, force, .. } => {
            let url = apply_url(served, key, field_manager, force);
            let body = object.text().as_bytes().to_vec();
            let request =
                Request { kind: kind(), method: Method::PATCH, url, accept: METADATA, content_type: APPLY, body };
            Prepared::Ready(request, Expected::Object)
        }
        Effect::RepairLists { object, .. } => Prepared::Repair(object.text().to_owned()),
        Effect::JsonPatch { patch } => ready(Method::PATCH, managed_url, JSON_PATCH, patch, Expected::Object),
        Effect::Annotate { annotations, resource_version } => {
            let patch = json!({"metadata": {"resourceVersion": resource_version, "annotations": annotations}});
            ready(Method::PATCH, managed_url, MERGE_PATCH, patch, Expected::Object)
        }
        Effect::HandBack { patch } => ready(Method::PATCH, managed_url, MERGE_PATCH, patch, Expected::Object),
        Effect::Delete { uid, resource_version } => {
            let options = json!({
                "apiVersion": "v1",
                "kind": "DeleteOptions",
                "preconditions": {"uid": uid, "resourceVersion": resource_version},
                "propagationPolicy": "Background",
            });
            ready(Method::DELETE, object_url, JSON, options, Expected::Deleted)
        }
        Effect::Create { object } => {
            let url = format!("{}?fieldManager={field_manager}", served.url(&key.namespace, ""));
            ready(Method::POST, url, JSON, object, Expected::Created)
        }
        Effect::Replace { object } => ready(Method::PUT, managed_url, JSON, object, Expected::Object),
        Effect::ReplaceStatus { object } => {
            let url = format!("{object_url}/status?fieldManager={field_manager}&fieldValidation=Strict");
            ready(Method::PATCH, url, JSON_PATCH, status_patch(object), Expected::Object)
        }
    }
}

/// Replaces the status of an object of our own. The server spends a third less on it than on an apply, which it reads as YAML and merges.
fn status_patch(mut object: Value) -> Value {
    let mut patch = Vec::new();
    if let Some(uid) = object["metadata"]["uid"].as_str() {
        patch.push(json!({"op": "test", "path": "/metadata/uid", "value": uid}));
    }
    if let Some(version) = object["metadata"]["resourceVersion"].as_str() {
        patch.push(json!({"op": "replace", "path": "/metadata/resourceVersion", "value": version}));
    }
    patch.push(json!({"op": "add", "path": "/status", "value": object["status"].take()}));
    Value::Array(patch)
}

/// The address of an apply; an unknown field is an error.
pub(crate) fn apply_url(served: &Served, key: &Key, field_manager: &str, force: bool) -> String {
    let url = served.url(&key.namespace, &key.name);
    format!("{url}?fieldManager={field_manager}&force={force}&fieldValidation=Strict")
}

/// The patch after which an apply of `wanted` succeeds.
async fn repair(
    server: &Server,
    field_manager: &str,
    served: &Served,
    key: &Key,
    wanted: &str,
) -> Result<Request, WriteError> {
    let url = served.url(&key.namespace, &key.name);
    let text =
        send(server, Request::get(&key.kind.kind, &url, WHOLE)).await.map_err(|failure| explain(failure, key))?;
    let (live, wanted): (Value, Value) =
        (serde_json::from_str(&text).unwrap_or_default(), serde_json::from_str(wanted).unwrap_or_default());
    if ["resourceVersion", "uid"].iter().any(|field| live["metadata"][field] != wanted["metadata"][field]) {
        // The decision was about another version.
        return Err(WriteError::Stale(key.clone()));
    }
    let patch = list_repair::repair(&wanted, &live).unwrap_or_else(|| json!([]));
    let (method, url) = (Method::PATCH, format!("{url}?fieldManager={field_manager}"));
    let (kind, body) = (key.kind.kind.clone(), patch.to_string().into_bytes());
    Ok(Request { kind, method, url, accept: METADATA, content_type: JSON_PATCH, body })
}

/// The metadata in an answer; nothing if the answer is not an object.
fn read(server: &Server, text: &str) -> Result<Option<Live>, Failure> {
    let live = serde_json::from_str::<Object<'_>>(text)?.metadata.live(&server.identity);
    Ok((!live.uid.is_empty()).then_some(live))
}

/// Sends one write, if the permit is valid at this very moment.
async fn send_permitted(
    server: &Server,
    permit: &Permit,
    timeout: Duration,
    request: Request,
) -> Result<String, Failure> {
    let Some(time_to_answer) = permit.time_to_answer() else {
        return Err(Failure::Unanswered("another process may be the leader by now".into()));
    };
    send_within(timeout.min(time_to_answer), server, request).await
}

/// What a failed request means for the write. The server's message may quote values, which are redacted here for all who print it.
pub(crate) fn explain(failure: Failure, key: &Key) -> WriteError {
    let (is_refusal, shown) = (failure.is_refusal(), |message: &str| redact::message::redact(&key.kind, message));
    let key = key.clone();
    match failure {
        // Another manager applies a field of ours: the same apply without force fails again.
        Failure::Answered { code: code @ 409, message } if message.starts_with("Apply failed with") => {
            WriteError::Refused { key, code, message: shown(&message) }
        }
        Failure::Answered { code: 409, .. } => WriteError::Stale(key),
        // What a JSON patch tests is not so: the object is another one of the same name.
        Failure::Answered { code: 422, message } if message == NOT_AS_TESTED => WriteError::Stale(key),
        Failure::Answered { code: 422, message } if message.contains("Duplicate value") => {
            WriteError::KeyChanged { key, message: shown(&message) }
        }
        Failure::Answered { code, message } if is_refusal => {
            WriteError::Refused { key, code, message: shown(&message) }
        }
        // The server reports an applied object that does not fit its schema as an internal error.
        Failure::Answered { code: 500, message } if message.contains("failed to create typed patch object") => {
            WriteError::Refused { key, code: 422, message: shown(&message) }
        }
        Failure::Answered { message, .. } | Failure::Unanswered(message) => {
            WriteError::Transient { key, message: shown(&message) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Expected, Prepared, explain, prepare};
    use crate::request::Failure;
    use change::{Effect, Key, Kind, Precondition};
    use protocol::{Groups, Kinds, Served, WriteError};
    use serde_json::json;

    fn service() -> (Served, Key) {
        let core = r#"{"items":[{"metadata":{},"versions":[{"version":"v1","resources":[{"resource":"services",
            "responseKind":{"group":"","version":"v1","kind":"Service"},"scope":"Namespaced","verbs":["list"]}]}]}]}"#;
        let kind = Kind::new("v1", "Service");
        let served = Kinds::read(core, Groups::default()).unwrap().find(&kind).unwrap();
        (served, Key { kind, namespace: "n".into(), name: "x".into() })
    }

    fn request(effect: Effect) -> (String, String, Expected) {
        let (served, key) = service();
        let Prepared::Ready(request, expected) = prepare(effect, "me", &served, &key) else { panic!("a repair") };
        (format!("{} {}", request.method, request.url), String::from_utf8(request.body).unwrap(), expected)
    }

    #[test]
    fn an_apply_is_strict_guarded_and_forces_only_when_told() {
        let object = json!({"metadata": {"name": "x"}});
        let precondition = Precondition::Present { uid: "u".into(), resource_version: "7".into() };
        let (url, body, _) = request(Effect::apply(object.clone(), precondition, false));
        assert_eq!(url, "PATCH /api/v1/namespaces/n/services/x?fieldManager=me&force=false&fieldValidation=Strict");
        assert_eq!(body, r#"{"metadata":{"name":"x","resourceVersion":"7","uid":"u"}}"#);
        let (url, _, _) = request(Effect::apply(object, Precondition::None, true));
        assert!(url.contains("force=true"), "{url}");
    }

    #[test]
    fn every_write_but_a_deletion_names_its_field_manager() {
        let object = json!({});
        for (effect, wanted) in [
            (Effect::Create { object: object.clone() }, "POST /api/v1/namespaces/n/services?fieldManager=me"),
            (Effect::Replace { object: object.clone() }, "PUT /api/v1/namespaces/n/services/x?fieldManager=me"),
            (
                Effect::ReplaceStatus { object: object.clone() },
                "PATCH /api/v1/namespaces/n/services/x/status?fieldManager=me&fieldValidation=Strict",
            ),
            (Effect::JsonPatch { patch: object.clone() }, "PATCH /api/v1/namespaces/n/services/x?fieldManager=me"),
            (Effect::HandBack { patch: object }, "PATCH /api/v1/namespaces/n/services/x?fieldManager=me"),
            (
                Effect::Delete { uid: "u".into(), resource_version: "7".into() },
                "DELETE /api/v1/namespaces/n/services/x",
            ),
        ] {
            assert_eq!(request(effect).0, wanted);
        }
    }

    #[test]
    fn a_conflict_with_another_applier_is_a_refusal_and_a_newer_version_is_not() {
        let (_, key) = service();
        let explained = |code, message: &str| explain(Failure::Answered { code, message: message.into() }, &key);
        let conflict = "Apply failed with 1 conflict: conflict with \"someone\": .spec.type";
        assert!(matches!(explained(409, conflict), WriteError::Refused { code: 409, .. }));
        assert!(matches!(explained(409, "the object has been modified"), WriteError::Stale(_)));
        assert!(matches!(explained(422, super::NOT_AS_TESTED), WriteError::Stale(_)));
        assert!(matches!(explained(422, "spec.type: Invalid value"), WriteError::Refused { code: 422, .. }));
        assert!(matches!(explained(422, "Duplicate value: \"x\""), WriteError::KeyChanged { .. }));
        assert!(matches!(explained(403, "forbidden"), WriteError::Refused { code: 403, .. }));
        let untyped = "failed to create typed patch object: .spec.x: field not declared in schema";
        assert!(matches!(explained(500, untyped), WriteError::Refused { code: 422, .. }));
        assert!(matches!(explained(503, "busy"), WriteError::Transient { .. }));
        for code in [400, 422, 500] {
            let quoting = explained(code, "spec.password: Invalid value: \"hunter2\": too short");
            assert!(!quoting.to_string().contains("hunter2"), "{quoting}");
        }
    }
}
