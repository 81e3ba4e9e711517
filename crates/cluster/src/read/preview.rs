//! Previews an apply: the object as it would become, by a server-side dry run.

use crate::request::{Request, WHOLE, send};
use crate::server::Server;
use crate::write::act::{APPLY, apply_url, explain};
use change::{Effect, Key, Precondition};
use http::Method;
use protocol::{Served, WriteError};
use serde_json::Value;

/// The whole object as an apply of `object` would make it. Nothing is written, so no permit is needed.
pub async fn preview(
    server: &Server,
    field_manager: &str,
    served: &Served,
    key: &Key,
    object: Value,
    precondition: &Precondition,
    force: bool,
) -> Result<Value, WriteError> {
    let answer = send(server, request(field_manager, served, key, object, precondition, force)).await;
    let read = answer.and_then(|text| Ok(serde_json::from_str(&text)?));
    read.map_err(|failure| explain(failure, key))
}

/// The same for an effect, under the identity's field manager. Only an apply is tried; any other effect makes nothing.
pub async fn effect(server: &Server, served: &Served, key: &Key, effect: Effect) -> Result<Value, WriteError> {
    let Effect::Apply { object, precondition, force } = effect else { return Ok(Value::Null) };
    let manager = server.identity.field_manager;
    preview(server, manager, served, key, object.value(), &precondition, force).await
}

fn request(
    field_manager: &str,
    served: &Served,
    key: &Key,
    mut object: Value,
    precondition: &Precondition,
    force: bool,
) -> Request {
    precondition.stamp(&mut object);
    let url = format!("{}&dryRun=All", apply_url(served, key, field_manager, force));
    Request {
        kind: key.kind.kind.clone(),
        method: Method::PATCH,
        url,
        accept: WHOLE,
        content_type: APPLY,
        body: object.to_string().into_bytes(),
    }
}
