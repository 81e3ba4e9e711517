//! The proxy's own responses, and the headers it does not forward.

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

/// The proxy closes a connection before the response is complete, on purpose or because the server did.
#[derive(Debug)]
pub(super) struct ConnectionClosed;

impl fmt::Display for ConnectionClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy closed the connection")
    }
}

impl std::error::Error for ConnectionClosed {}

/// A response body: fixed or streamed.
pub(super) type Body = UnsyncBoxBody<Bytes, ConnectionClosed>;

/// A fixed body.
pub(super) fn full(bytes: Bytes) -> Body {
    Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// An error response with a Kubernetes Status.
pub(super) fn status_response(code: u16, retry_after: Option<u32>) -> Response<Bytes> {
    let retry_after = retry_after.or((code == 429).then_some(1));
    let mut response = Response::new(Bytes::from(status(code, retry_after).to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// The watch event that reports an expired resourceVersion.
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
        "message": format!("injected by the fault proxy: {code} {reason}").trim_end(),
        "reason": reason, "details": details, "code": code,
    })
}

/// The request headers to send to the server.
pub(super) fn forwarded(mut headers: HeaderMap, host: &HeaderValue) -> HeaderMap {
    strip(&mut headers);
    headers.insert(HOST, host.clone());
    // Always uncompressed JSON, so that events can be split and versions read; clients decode by the response's Content-Type.
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

/// Removes the hop-by-hop headers.
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
    use super::{forwarded, gone_event, status_response};
    use http::header::{ACCEPT, ACCEPT_ENCODING, CONNECTION, HOST};
    use http::{HeaderMap, HeaderValue};

    #[test]
    fn an_error_response_is_a_status_that_kubernetes_clients_read() {
        let response = status_response(429, None);
        assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (429, "1"));
        let status: kube::core::Status = serde_json::from_slice(response.body()).unwrap();
        assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
        assert!(!status_response(503, None).headers().contains_key("retry-after"));
        assert!(gone_event().ends_with(b"\n"));
    }

    #[test]
    fn the_accept_header_requests_json() {
        let mut headers = HeaderMap::new();
        let accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        let headers = forwarded(headers, &HeaderValue::from_static("server:1"));
        assert_eq!(headers[ACCEPT], "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json");
        assert_eq!((headers.len(), &headers[HOST]), (2, &HeaderValue::from_static("server:1")));
    }
}
