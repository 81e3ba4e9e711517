//! Asks the API server about itself, and whether an account may do something. Nothing is stored by these requests.

use crate::request::{Failure, Request, WHOLE, send};
use crate::server::Server;
use http::Method;
use http::header::DATE;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};

/// What the API server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its version, such as `v1.36.3`.
    pub version: String,
    /// Its clock, in seconds.
    pub clock: Option<Timestamp>,
}

/// Asks for the version and the clock of the API server.
pub async fn about(server: &Server) -> Result<About, Failure> {
    let request = Request::get("/version", WHOLE).into_http()?;
    let answer = async {
        let response = server.client.send(request.map(Body::from)).await?;
        let clock = response.headers().get(DATE).and_then(|date| date.to_str().ok()).and_then(read_date);
        let bytes = response.into_body().collect_bytes().await?;
        let answer: Value = serde_json::from_slice(&bytes)?;
        Ok(About { version: answer["gitVersion"].as_str().unwrap_or("unknown").to_owned(), clock })
    };
    match tokio::time::timeout(server.timeouts.request, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::timeout()),
    }
}

fn read_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

/// One thing that an account may or may not do.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Access {
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

/// The user as whom the requests are made.
pub async fn user(server: &Server) -> Result<String, Failure> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let answer = post(server, "/apis/authentication.k8s.io/v1/selfsubjectreviews", &review).await?;
    Ok(answer["status"]["userInfo"]["username"].as_str().unwrap_or_default().to_owned())
}

/// Whether a user may do something; without one, whoever asks.
pub async fn is_allowed(server: &Server, user: Option<&str>, access: &Access) -> Result<bool, Failure> {
    let (resource, subresource) = access.resource.split_once('/').unwrap_or((&access.resource, ""));
    let attributes = json!({
        "group": access.group, "resource": resource, "subresource": subresource, "verb": access.verb,
        "namespace": access.namespace, "name": access.name,
    });
    let (kind, mut spec) = match user {
        None => ("SelfSubjectAccessReview", json!({})),
        Some(user) => ("SubjectAccessReview", json!({"user": user, "groups": groups(user)})),
    };
    spec["resourceAttributes"] = attributes;
    let review = json!({"apiVersion": "authorization.k8s.io/v1", "kind": kind, "spec": spec});
    let url = format!("/apis/authorization.k8s.io/v1/{}s", kind.to_lowercase());
    Ok(post(server, &url, &review).await?["status"]["allowed"] == json!(true))
}

/// The groups of a service account.
fn groups(user: &str) -> Vec<String> {
    let namespace = user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split(':').next());
    let of_accounts =
        namespace.map(|namespace| ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]);
    of_accounts.into_iter().flatten().chain(["system:authenticated".to_owned()]).collect()
}

async fn post(server: &Server, url: &str, review: &Value) -> Result<Value, Failure> {
    let (url, body) = (url.to_owned(), review.to_string().into_bytes());
    let request = Request { method: Method::POST, url, accept: WHOLE, content_type: WHOLE, body };
    Ok(serde_json::from_str(&send(server, request).await?)?)
}

#[cfg(test)]
mod tests {
    use super::read_date;

    #[test]
    fn the_date_of_an_answer_is_read() {
        let date = read_date("Tue, 17 Nov 2026 13:05:13 GMT");
        assert_eq!(date.map(|date| date.to_string()).as_deref(), Some("2026-11-17T13:05:13Z"));
        assert_eq!(read_date("yesterday"), None);
    }
}
