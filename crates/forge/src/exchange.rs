//! What is reported of every request to a CI platform, so that somebody else can count and time it.

use std::sync::Arc;
use std::time::Duration;
use tracing::Span;
use tracing::field::Empty;

/// The target of the spans of requests: that of all spans of traces.
pub const TRACE_TARGET: &str = "traces";

/// One request and how it ended. It names no repository and no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// The HTTP method.
    pub method: &'static str,
    /// The path with placeholders, such as `/orgs/{org}/actions/runners`.
    pub path: &'static str,
    /// How it ended.
    pub status: Status,
    /// How long it took, without waiting for its turn.
    pub duration: Duration,
    /// How many requests the platform says are left in this hour.
    pub remaining: Option<u64>,
}

/// The class of an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// 2xx.
    Success,
    /// 3xx.
    Redirect,
    /// 4xx.
    Refused,
    /// 5xx.
    ServerError,
    /// There was no answer.
    Unanswered,
}

impl Status {
    /// The class of a status code.
    pub fn of(code: u16) -> Status {
        match code {
            200..=299 => Status::Success,
            300..=399 => Status::Redirect,
            400..=499 => Status::Refused,
            _ => Status::ServerError,
        }
    }

    /// The name in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Status::Success => "2xx",
            Status::Redirect => "3xx",
            Status::Refused => "4xx",
            Status::ServerError => "5xx",
            Status::Unanswered => "none",
        }
    }
}

/// What every exchange is reported to.
pub type Report = Arc<dyn Fn(&Exchange) + Send + Sync>;

/// The span of one request, below the current one. It has no name, no value and no text of the server; the names of its fields are
/// those of OpenTelemetry.
pub(crate) fn span(method: &'static str, path: &'static str, server: &str) -> Span {
    tracing::info_span!(
        target: TRACE_TARGET,
        "request",
        otel.name = %format_args!("{method} {path}"),
        otel.kind = "client",
        http.request.method = method,
        http.response.status_code = Empty,
        url.template = path,
        server.address = server,
        "error.type" = Empty,
    )
}

/// Records how a request ended: with this code, or without an answer.
pub(crate) fn record(span: &Span, code: Option<u16>) {
    match code {
        Some(code) => {
            span.record("http.response.status_code", code);
            if code >= 400 {
                span.record("error.type", code.to_string());
            }
        }
        None => {
            span.record("error.type", "no answer");
        }
    }
}
