//! What the proxy answers itself, and the headers that it does not hand on.

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::fmt;

/// The proxy ends a connection in the middle, on purpose or because the server did.
#[derive(Debug)]
pub(super) struct HungUp;

impl fmt::Display for HungUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy hung up")
    }
}

impl std::error::Error for HungUp {}

/// What a client reads: a text or a stream.
pub(super) type Body = UnsyncBoxBody<Bytes, HungUp>;

/// A body that is known already.
pub(super) fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A failure in Kubernetes' words.
pub(super) fn failure(code: u16, retry_after: Option<u32>) -> Response<Bytes> {
    let retry_after = retry_after.or((code == 429).then_some(1));
    let mut answer = Response::new(Bytes::from(status(code, retry_after).to_string()));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        answer.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    answer
}

/// A line of a watch that says that its version is too old.
pub(super) fn gone_event() -> Bytes {
    Bytes::from(format!("{}\n", json!({"type": "ERROR", "object": status(410, None)})))
}

fn status(code: u16, retry_after: Option<u32>) -> Value {
    let reason = match code {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        405 => "MethodNotAllowed",
        409 => "Conflict",
        410 => "Expired",
        413 => "RequestEntityTooLarge",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    let details = retry_after.map(|seconds| json!({"retryAfterSeconds": seconds})).unwrap_or_else(|| json!({}));
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": format!("the plan of the fault proxy says {code} {reason}").trim_end(),
        "reason": reason, "details": details, "code": code,
    })
}

/// The headers of a request as the server gets them.
pub(super) fn forwarded(mut headers: HeaderMap, host: &HeaderValue) -> HeaderMap {
    strip(&mut headers);
    headers.insert(HOST, host.clone());
    // Plain JSON, whatever the client would rather have: events are told apart, and versions are read. Clients decode what the
    // answer says it is.
    headers.remove(ACCEPT_ENCODING);
    if let Some(accept) = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()) {
        let plain = ["application/vnd.kubernetes.protobuf", "application/cbor"]
            .into_iter()
            .fold(accept.to_owned(), |accept, binary| accept.replace(binary, "application/json"));
        if let Ok(plain) = HeaderValue::from_str(&plain) {
            headers.insert(ACCEPT, plain);
        }
    }
    headers
}

/// Takes away what is about one connection and not about the message.
pub(super) fn strip(headers: &mut HeaderMap) {
    for name in [CONNECTION, TRANSFER_ENCODING, TE, UPGRADE] {
        headers.remove(name);
    }
    for name in ["keep-alive", "proxy-connection"] {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::{failure, forwarded, gone_event};
    use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HOST};
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn a_failure_is_a_status_that_kubernetes_clients_read() {
        let answer = failure(429, None);
        assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].to_str().unwrap()), (429, "1"));
        let status: kube::core::Status = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
        assert!(!failure(503, None).headers().contains_key("retry-after"));
        assert!(gone_event().ends_with(b"\n"));
    }

    #[test]
    fn the_server_is_asked_for_json() {
        let mut headers = HeaderMap::new();
        let wanted = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        headers.insert(ACCEPT, HeaderValue::from_static(wanted));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        let headers = forwarded(headers, &HeaderValue::from_static("server:1"));
        assert_eq!(headers[ACCEPT], "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
        assert_eq!((headers.len(), &headers[HOST]), (2, &HeaderValue::from_static("server:1")));
    }
}
