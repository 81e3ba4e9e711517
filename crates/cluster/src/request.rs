//! One request to the API server, and its answer as text.

use crate::server::Server;
use crate::trace;
use http::header::{DATE, ETAG, HeaderValue, IF_NONE_MATCH};
use http::{Method, StatusCode};
use jiff::Timestamp;
use kube::client::Body;
use std::time::Duration;
use tracing::Span;

/// Metadata only: it carries managedFields and annotations.
pub(crate) const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/// The same for a list.
pub(crate) const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
/// The whole object.
pub(crate) const WHOLE: &str = "application/json";

/// Why a request failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Failure {
    /// The server answered with an error.
    #[error("{message}")]
    Answered {
        /// The HTTP status.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// There was no answer, or none that can be read.
    #[error("{0}")]
    Unanswered(String),
}

impl Failure {
    /// Whether the same request fails again: only another object or another permission helps.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Failure::Answered { code: 400 | 401 | 403 | 404 | 405 | 413 | 415 | 422, .. })
    }

    /// Whether the server answers that there is no such object or no such kind.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Failure::Answered { code: 404, .. })
    }

    /// Whether the server closed the connection without an error: it does that when it shuts down, and after a login that it refuses.
    pub(crate) fn is_closed_connection(&self) -> bool {
        // How HTTP/2 spells its reason NO_ERROR.
        matches!(self, Failure::Unanswered(message) if message.ends_with("not a result of an error"))
    }

    pub(crate) fn timeout() -> Failure {
        Failure::Unanswered("no answer in time".into())
    }
}

impl From<kube::Error> for Failure {
    fn from(error: kube::Error) -> Failure {
        match error {
            kube::Error::Api(status) => Failure::Answered { code: status.code, message: status.message },
            // The library's own word for it says nothing.
            kube::Error::Service(error) => Failure::Unanswered(chain(error.as_ref())),
            other => Failure::Unanswered(chain(&other)),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Failure {
        Failure::Unanswered(format!("the answer cannot be read: {error}"))
    }
}

/// An error with its causes, each text once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let (mut message, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let more = error.to_string();
        if !message.contains(&more) {
            message = format!("{message}: {more}");
        }
        cause = error.source();
    }
    message
}

/// The message of a refused request: the server's own, if it answers as an API server does.
fn refusal(status: StatusCode, text: &str) -> String {
    server_message(text).unwrap_or_else(|| format!("it answers {status}, and not as an API server does"))
}

/// The message of an answer that is a Status.
fn server_message(text: &str) -> Option<String> {
    let answer = serde_json::from_str::<serde_json::Value>(text).ok()?;
    let message = answer["message"].as_str()?;
    (answer["kind"] == "Status" || answer["status"] == "Failure").then(|| message.to_owned())
}

/// One request.
pub(crate) struct Request {
    /// The kind of its objects, for traces; empty if it is about none.
    pub(crate) kind: String,
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) accept: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// A read.
    pub(crate) fn get(kind: &str, url: &str, accept: &'static str) -> Request {
        let (kind, method, content_type) = (kind.to_owned(), Method::GET, "application/json");
        Request { kind, method, url: url.to_owned(), accept, content_type, body: Vec::new() }
    }

    pub(crate) fn into_http(self) -> Result<http::Request<Vec<u8>>, Failure> {
        http::Request::builder()
            .method(self.method)
            .uri(self.url)
            .header("accept", self.accept)
            .header("content-type", self.content_type)
            .body(self.body)
            .map_err(|error| Failure::Unanswered(error.to_string()))
    }
}

/// Sends a request and waits for the whole answer.
pub(crate) async fn send(server: &Server, request: Request) -> Result<String, Failure> {
    send_within(server.timeouts.request, server, request).await
}

/// The same with another timeout.
pub(crate) async fn send_within(timeout: Duration, server: &Server, request: Request) -> Result<String, Failure> {
    let span = trace::span(&request);
    let Answer { status, text, .. } = exchange(timeout, server, request.into_http()?, span).await?;
    if status.is_client_error() || status.is_server_error() {
        let message = server_message(&text).unwrap_or_else(|| text.trim().to_owned());
        return Err(Failure::Answered { code: status.as_u16(), message });
    }
    Ok(text)
}

/// An answer, whatever its status.
struct Answer {
    status: StatusCode,
    tag: String,
    clock: Option<Timestamp>,
    text: String,
}

/// Sends a request and waits for the whole answer; the span learns how it ended.
async fn exchange(
    timeout: Duration,
    server: &Server,
    request: http::Request<Vec<u8>>,
    span: Span,
) -> Result<Answer, Failure> {
    let answer = async {
        let response = server.client.send(request.map(Body::from)).await?;
        let (status, headers) = (response.status(), response.headers());
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let (tag, clock) = (text(ETAG).unwrap_or_default().to_owned(), text(DATE).and_then(read_date));
        let bytes = response.into_body().collect_bytes().await?;
        Ok(Answer { status, tag, clock, text: String::from_utf8_lossy(&bytes).into_owned() })
    };
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(answer)) => {
            trace::answered(&span, answer.status);
            Ok(answer)
        }
        Ok(Err(failure)) => {
            trace::failed(&span, "unanswered");
            Err(failure)
        }
        Err(_) => {
            trace::failed(&span, "timeout");
            Err(Failure::timeout())
        }
    }
}

/// Reads one object or nothing, if it does not exist.
pub(crate) async fn send_opt(server: &Server, request: Request) -> Result<Option<String>, Failure> {
    match send(server, request).await {
        Ok(text) => Ok(Some(text)),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Sends a conditional request: nothing if the answer still has this tag, else the new answer and its tag.
pub(crate) async fn send_unless(
    server: &Server,
    request: Request,
    tag: &str,
) -> Result<Option<(String, String)>, Failure> {
    let span = trace::span(&request);
    let mut request = request.into_http()?;
    if let Ok(tag) = HeaderValue::from_str(tag)
        && !tag.is_empty()
    {
        request.headers_mut().insert(IF_NONE_MATCH, tag);
    }
    let Answer { status, tag, text, .. } = exchange(server.timeouts.request, server, request, span).await?;
    match status {
        StatusCode::NOT_MODIFIED => Ok(None),
        _ => Ok(Some((successful(status, text)?, tag))),
    }
}

/// Sends a request; returns the answer and the server's clock, which has whole seconds.
pub(crate) async fn send_with_clock(server: &Server, request: Request) -> Result<(String, Option<Timestamp>), Failure> {
    let span = trace::span(&request);
    let Answer { status, clock, text, .. } =
        exchange(server.timeouts.request, server, request.into_http()?, span).await?;
    Ok((successful(status, text)?, clock))
}

fn successful(status: StatusCode, text: String) -> Result<String, Failure> {
    match status.is_success() {
        true => Ok(text),
        false => Err(Failure::Answered { code: status.as_u16(), message: refusal(status, &text) }),
    }
}

fn read_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::{Failure, read_date, refusal};
    use http::StatusCode;

    #[test]
    fn the_date_of_an_answer_is_read() {
        let date = read_date("Tue, 17 Nov 2026 13:05:13 GMT");
        assert_eq!(date.map(|date| date.to_string()).as_deref(), Some("2026-11-17T13:05:13Z"));
        assert_eq!(read_date("yesterday"), None);
    }

    #[test]
    fn a_connection_that_was_closed_without_an_error_is_recognised() {
        let closed = "client error (SendRequest): http2 error: connection error received: not a result of an error";
        assert!(Failure::Unanswered(closed.into()).is_closed_connection());
        assert!(!Failure::Unanswered("connection refused".into()).is_closed_connection());
        assert!(!Failure::Answered { code: 401, message: "not a result of an error".into() }.is_closed_connection());
    }

    #[test]
    fn a_refusal_is_one_line_whatever_the_server_answers() {
        let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"Unauthorized","code":401}"#;
        assert_eq!(refusal(StatusCode::UNAUTHORIZED, status), "Unauthorized");
        let page = refusal(StatusCode::NOT_FOUND, "<html>\n<body>nothing here</body>\n</html>");
        assert_eq!(page, "it answers 404 Not Found, and not as an API server does");
    }
}
