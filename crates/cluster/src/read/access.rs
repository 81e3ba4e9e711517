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

/// Whether a user may do something.
pub async fn is_allowed(server: &Server, user: &str, access: &Access) -> Result<bool, Failure> {
    let (resource, subresource) = access.resource.split_once('/').unwrap_or((&access.resource, ""));
    let groups = match user.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split(':').next()) {
        Some(namespace) => {
            json!(["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"])
        }
        None => json!(["system:authenticated"]),
    };
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {"user": user, "groups": groups, "resourceAttributes": {
            "group": access.group, "resource": resource, "subresource": subresource, "verb": access.verb,
            "namespace": access.namespace, "name": access.name,
        }},
    });
    let url = "/apis/authorization.k8s.io/v1/subjectaccessreviews".to_owned();
    let body = review.to_string().into_bytes();
    let request = Request { method: Method::POST, url, accept: WHOLE, content_type: WHOLE, body };
    let answer: Value = serde_json::from_str(&send(server, request).await?)?;
    Ok(answer["status"]["allowed"] == json!(true))
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
