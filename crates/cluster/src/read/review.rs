//! Asks the API server who the bearer of a token is, and what they may do. A review stores nothing.

use crate::request::{Failure, Request, WHOLE, send};
use crate::server::Server;
use http::Method;
use serde_json::{Value, json};

/// What the bearer of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is no valid token.
    Unauthenticated,
    /// They may not.
    Denied,
    /// They may.
    Allowed,
}

/// Whether the bearer of a token may get a path that is no resource, such as `/metrics`.
pub async fn may_get(server: &Server, token: &str, path: &str) -> Result<Access, Failure> {
    let status = review(server, "authentication.k8s.io", "TokenReview", json!({"token": token})).await?;
    if status["authenticated"] != true {
        return Ok(Access::Unauthenticated);
    }
    let user = &status["user"];
    let mut spec = json!({
        "user": user["username"], "uid": user["uid"], "groups": user["groups"], "extra": user["extra"],
        "nonResourceAttributes": {"path": path, "verb": "get"},
    });
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    let status = review(server, "authorization.k8s.io", "SubjectAccessReview", spec).await?;
    Ok(if status["allowed"] == true { Access::Allowed } else { Access::Denied })
}

/// The status of a review.
async fn review(server: &Server, group: &str, kind: &str, spec: Value) -> Result<Value, Failure> {
    let url = format!("/apis/{group}/v1/{}s", kind.to_lowercase());
    let object = json!({"apiVersion": format!("{group}/v1"), "kind": kind, "spec": spec});
    let (method, body) = (Method::POST, object.to_string().into_bytes());
    let answer = send(server, Request { method, url, accept: WHOLE, content_type: WHOLE, body }).await?;
    let mut answer: Value = serde_json::from_str(&answer)?;
    Ok(answer["status"].take())
}
