//! One request to the API server and as much of the answer as is needed.

use crate::server::Server;
use http::header::{ETAG, HeaderValue, IF_NONE_MATCH};
use http::{Method, Request, StatusCode};
use kube::client::Body;
use std::time::Duration;

/// Asks for metadata alone: it carries managedFields and annotations.
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The same for a list.
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// The whole object.
pub(crate) const WHOLE: &str = "application/json";

/// Why there is no answer that helps.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// The server said no.
    #[error("{words}")]
    Answered {
        /// The HTTP status.
        code: u16,
        /// The server's words.
        words: String,
    },
    /// Nobody answered, or not in a way that can be read.
    #[error("{0}")]
    Unanswered(String),
}

impl Failure {
    /// Whether asking again cannot help: only another object or another right can.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Failure::Answered { code: 400 | 401 | 403 | 404 | 405 | 413 | 415 | 422, .. })
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Failure {
        match error {
            kube::Error::Api(status) => Failure::Answered { code: status.code, words: status.message },
            other => Failure::Unanswered(whole(&other)),
        }
    }
}

/// An error with everything that led to it, each thing once.
fn whole(error: &dyn std::error::Error) -> String {
    let (mut words, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let more = error.to_string();
        if !words.contains(&more) {
            words = format!("{words}: {more}");
        }
        cause = error.source();
    }
    words
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Unanswered(format!("the answer cannot be read: {error}"))
    }
}

/// What is sent.
pub(crate) struct Sent<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a str,
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

impl Sent<'_> {
    /// A question.
    pub(crate) fn get<'a>(url: &'a str, accept: &'static str) -> Sent<'a> {
        Sent { method: Method::GET, url, accept, content_type: "application/json", body: Vec::new() }
    }

    pub(crate) fn request(self) -> Result<Request<Vec<u8>>, Failure> {
        Request::builder()
            .method(self.method)
            .uri(self.url)
            .header("accept", self.accept)
            .header("content-type", self.content_type)
            .body(self.body)
            .map_err(|error| Failure::Unanswered(error.to_string()))
    }
}

/// Sends and waits for the whole answer.
pub(crate) async fn send(server: &Server, sent: Sent<'_>) -> Result<String, Failure> {
    send_within(server.patience.request, server, sent).await
}

/// The same with another patience.
pub(crate) async fn send_within(patience: Duration, server: &Server, sent: Sent<'_>) -> Result<String, Failure> {
    match tokio::time::timeout(patience, server.client.request_text(sent.request()?)).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(Failure::Unanswered("no answer in time".into())),
    }
}

/// The same for an answer that may be known: `None` if the server still gives it this tag, else the new one with its own.
pub(crate) async fn send_unless(
    server: &Server,
    sent: Sent<'_>,
    tag: &str,
) -> Result<Option<(String, String)>, Failure> {
    let mut request = sent.request()?;
    if let Ok(tag) = HeaderValue::from_str(tag)
        && !tag.is_empty()
    {
        request.headers_mut().insert(IF_NONE_MATCH, tag);
    }
    let ask = async {
        let response = server.client.send(request.map(Body::from)).await?;
        let (status, headers) = (response.status(), response.headers());
        let tag = headers.get(ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default().to_owned();
        let bytes = response.into_body().collect_bytes().await?;
        if status == StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if status.is_success() {
            return Ok(Some((text, tag)));
        }
        Err(Failure::Answered { code: status.as_u16(), words: text })
    };
    match tokio::time::timeout(server.patience.request, ask).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::Unanswered("no answer in time".into())),
    }
}
