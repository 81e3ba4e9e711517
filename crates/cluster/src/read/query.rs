//! Answers a template's query. A failed request is never "absent".

use crate::request::{Request, WHOLE, send_opt};
use crate::server::Server;
use catalog::{Answer, Query};
use protocol::Served;
use serde_json::Value;

/// Asks the API server; a failure is `Unknown`. `served` is the kind that the query names.
pub async fn answer(server: &Server, served: &Served, query: &Query) -> Answer {
    let (namespace, name) = match query {
        Query::Object { namespace, name, .. } => (namespace.as_str(), name.as_str()),
        Query::Crd { name } => ("", name.as_str()),
        Query::List { .. } => ("", ""),
    };
    let text = match send_opt(server, Request::get(&served.kind().kind, &served.url(namespace, name), WHOLE)).await {
        Ok(Some(text)) => text,
        Ok(None) => return Answer::Absent,
        Err(_) => return Answer::Unknown,
    };
    if matches!(query, Query::Crd { .. }) {
        return catalog::crd::read(&text).map_or(Answer::Unknown, Answer::Found);
    }
    let Ok(mut found) = serde_json::from_str::<Value>(&text) else { return Answer::Unknown };
    if !matches!(query, Query::List { .. }) {
        return Answer::Found(without_managed_fields(found));
    }
    let Value::Array(mut items) = found["items"].take() else { return Answer::Unknown };
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    items.sort_by_key(name);
    Answer::Found(items.into_iter().map(without_managed_fields).collect())
}

/// No template reads managedFields, and answers are kept in memory.
fn without_managed_fields(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
