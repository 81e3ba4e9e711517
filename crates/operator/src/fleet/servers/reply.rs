//! Answers of both servers: short, and without what was sent.

use axum::http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use runtime::bounded::{Ended, Memory, Unread, read};
use std::time::Duration;

/// An answer.
pub(super) type Reply = Response<Full<Bytes>>;

/// An answer of one line. What is no success ends the connection: a part of the request may not have been read.
pub(super) fn text(status: StatusCode, line: &str) -> Reply {
    reply(status, "text/plain; charset=utf-8", format!("{line}\n").into_bytes())
}

/// An answer.
pub(super) fn reply(status: StatusCode, content: &'static str, body: Vec<u8>) -> Reply {
    let mut reply = Response::new(Full::new(Bytes::from(body)));
    *reply.status_mut() = status;
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !status.is_success() {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}

/// The same with the pause after which the request can be repeated.
pub(super) fn again(mut reply: Reply, seconds: u64) -> Reply {
    reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    reply
}

/// Reads what a client sends that has been refused already, if it is little: otherwise the end of the connection could overtake the answer.
pub(super) async fn discard(body: Incoming, memory: &Memory) {
    let _ = read(body, 64 << 10, Duration::from_secs(1), memory).await;
}

/// Why a body was not read: in one word, the status, and for people.
pub(super) fn unread(why: Unread) -> (&'static str, StatusCode, &'static str) {
    match why {
        Unread::TooLarge => ("too_large", StatusCode::PAYLOAD_TOO_LARGE, "the body is too large"),
        Unread::Slow => ("slow_body", StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time"),
        Unread::Broken => ("broken", StatusCode::BAD_REQUEST, "the body broke off"),
        Unread::Busy => ("busy", StatusCode::SERVICE_UNAVAILABLE, "too many requests at a time; try again"),
    }
}

/// What a connection that was passed on to the leader is counted as.
pub(super) const PASSED_ON: &str = "passed_on";

/// Why a connection was ended, in one word.
pub(super) fn ended(why: Ended) -> &'static str {
    match why {
        Ended::Evicted => "evicted",
        Ended::SlowHead => "slow_head",
        Ended::NoTls => "no_tls",
    }
}
