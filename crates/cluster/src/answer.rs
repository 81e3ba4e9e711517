//! Answers what a template asked for. "The API failed" is never "it is absent".

use crate::kinds::Served;
use crate::request::{Failure, Sent, WHOLE, send};
use crate::server::Server;
use catalog::{Answer, Query};
use serde_json::Value;

/// Asks the API server; an answer that cannot be had is `Unknown`. `served` is the kind the question is about.
pub async fn answer(server: &Server, served: &Served, query: &Query) -> Answer {
    let (namespace, name) = match query {
        Query::Object { namespace, name, .. } => (namespace.as_str(), name.as_str()),
        Query::Crd { name } => ("", name.as_str()),
        Query::List { .. } => ("", ""),
    };
    let text = match send(server, Sent::get(&served.url(namespace, name), WHOLE)).await {
        Ok(text) => text,
        Err(Failure::Answered { code: 404, .. }) => return Answer::Absent,
        Err(_) => return Answer::Unknown,
    };
    if matches!(query, Query::Crd { .. }) {
        return catalog::crd::read(&text).map_or(Answer::Unknown, Answer::Found);
    }
    let Ok(mut found) = serde_json::from_str::<Value>(&text) else { return Answer::Unknown };
    if !matches!(query, Query::List { .. }) {
        return Answer::Found(without_bookkeeping(found));
    }
    let Value::Array(mut items) = found["items"].take() else { return Answer::Unknown };
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    items.sort_by_key(name);
    Answer::Found(items.into_iter().map(without_bookkeeping).collect())
}

/// No template looks at who owns what; it would only be kept in memory.
fn without_bookkeeping(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    object
}
