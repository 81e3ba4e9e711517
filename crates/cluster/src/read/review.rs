//! Asks the API server who somebody is, and what they may do. A review stores nothing.

use crate::request::{Failure, Request, WHOLE, send};
use crate::server::Server;
use http::Method;
use serde_json::{Value, json};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

/// Something that an account may or may not do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Right {
    /// The API group.
    pub group: String,
    /// The resource, perhaps with a subresource: `pods/status`.
    pub resource: String,
    /// The verb.
    pub verb: String,
    /// The namespace; empty is all of them.
    pub namespace: String,
    /// The name; empty is all of them.
    pub name: String,
}

/// What the bearer of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bearer {
    /// It is no valid token.
    Unauthenticated,
    /// They may not.
    Denied,
    /// They may.
    Allowed,
}

/// The user as whom our requests are made; every user may ask.
pub async fn user(server: &Server) -> Result<String, Failure> {
    let status = review(server, AUTHENTICATION, "SelfSubjectReview", Value::Null).await?;
    let name = status["userInfo"]["username"].as_str().filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| Failure::Unanswered("the answer names no user".to_owned()))
}

/// Whether a user has a right; without one, whoever asks.
pub async fn has_right(server: &Server, user: Option<&str>, right: &Right) -> Result<bool, Failure> {
    let (resource, subresource) = right.resource.split_once('/').unwrap_or((&right.resource, ""));
    let (kind, mut spec) = match user {
        None => ("SelfSubjectAccessReview", json!({})),
        Some(user) => ("SubjectAccessReview", json!({"user": user, "groups": groups(user)})),
    };
    spec["resourceAttributes"] = json!({
        "group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb,
        "namespace": right.namespace, "name": right.name,
    });
    Ok(review(server, AUTHORIZATION, kind, spec).await?["allowed"] == true)
}

/// The groups of a service account.
fn groups(user: &str) -> Vec<String> {
    let namespace = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split(':').next());
    let of_accounts =
        namespace.map(|namespace| ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
    of_accounts.into_iter().flatten().chain(["system:authenticated".to_owned()]).collect()
}

/// Whether the bearer of a token may get a path that is no resource, such as `/metrics`.
pub async fn may_get(server: &Server, token: &str, path: &str) -> Result<Bearer, Failure> {
    let status = review(server, AUTHENTICATION, "TokenReview", json!({"token": token})).await?;
    if status["authenticated"] != true {
        return Ok(Bearer::Unauthenticated);
    }
    let user = &status["user"];
    let mut spec = json!({
        "user": user["username"], "uid": user["uid"], "groups": user["groups"], "extra": user["extra"],
        "nonResourceAttributes": {"path": path, "verb": "get"},
    });
    if let Some(spec) = spec.as_object_mut() {
        spec.retain(|_, value| !value.is_null());
    }
    let status = review(server, AUTHORIZATION, "SubjectAccessReview", spec).await?;
    Ok(if status["allowed"] == true { Bearer::Allowed } else { Bearer::Denied })
}

/// The status of a review; without a spec it has none.
async fn review(server: &Server, group: &str, kind: &str, spec: Value) -> Result<Value, Failure> {
    let url = format!("/apis/{group}/v1/{}s", kind.to_lowercase());
    let mut object = json!({"apiVersion": format!("{group}/v1"), "kind": kind});
    if !spec.is_null() {
        object["spec"] = spec;
    }
    let (method, body) = (Method::POST, object.to_string().into_bytes());
    let answer =
        send(server, Request { kind: kind.to_owned(), method, url, accept: WHOLE, content_type: WHOLE, body }).await?;
    let mut answer: Value = serde_json::from_str(&answer)?;
    Ok(answer["status"].take())
}
