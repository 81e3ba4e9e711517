//! Requests as traces show them: never a body, a query, an annotation or a message of the server.

use crate::request::Request;
use crate::write::act::APPLY;
use http::{Method, StatusCode};
use tracing::Span;
use tracing::field::Empty;

/// The target of all spans: who collects traces takes these and no others.
pub const TARGET: &str = "traces";

/// The span of one request, below the current one. The names of its fields are those of OpenTelemetry.
pub(crate) fn span(request: &Request) -> Span {
    let Subject { verb, path, namespace, name } = subject(request);
    let kind = Some(request.kind.as_str()).filter(|kind| !kind.is_empty());
    tracing::info_span!(
        target: TARGET,
        "request",
        otel.name = %format_args!("{verb} {}", kind.unwrap_or(path)),
        otel.kind = "client",
        http.request.method = request.method.as_str(),
        http.response.status_code = Empty,
        url.path = path,
        k8s.object.kind = kind,
        k8s.object.name = name,
        k8s.namespace.name = namespace,
        "error.type" = Empty,
    )
}

/// Records the status of the answer.
pub(crate) fn answered(span: &Span, status: StatusCode) {
    span.record("http.response.status_code", status.as_u16());
    if status.is_client_error() || status.is_server_error() {
        span.record("error.type", status.as_str());
    }
}

/// Records that there was no answer.
pub(crate) fn failed(span: &Span, why: &'static str) {
    span.record("error.type", why);
}

/// What a request does, and to which object.
#[derive(Debug, PartialEq, Eq)]
struct Subject<'a> {
    verb: &'static str,
    path: &'a str,
    namespace: Option<&'a str>,
    name: Option<&'a str>,
}

fn subject(request: &Request) -> Subject<'_> {
    let (path, query) = request.url.split_once('?').unwrap_or((&request.url, ""));
    let mut parts = path.split('/').skip(1);
    // The group and the version: api/v1 or apis/GROUP/VERSION.
    let prefix = if parts.next() == Some("apis") { 2 } else { 1 };
    let parts: Vec<&str> = parts.skip(prefix).collect();
    let (namespace, name) = match parts[..] {
        ["namespaces", namespace, _, name, ..] => (Some(namespace), Some(name)),
        ["namespaces", namespace, _] => (Some(namespace), None),
        [_, name, ..] => (None, Some(name)),
        _ => (None, None),
    };
    let is_list = name.is_none() && !request.kind.is_empty();
    let verb = match request.method {
        Method::GET if is_list => "list",
        Method::GET => "get",
        Method::PATCH if query.contains("dryRun=All") => "dry-run",
        Method::PATCH if request.content_type == APPLY => "apply",
        Method::PATCH => "patch",
        Method::POST => "create",
        Method::PUT => "replace",
        _ => "delete",
    };
    Subject { verb, path, namespace, name }
}

#[cfg(test)]
mod tests {
    use super::{Subject, subject};
    use crate::request::Request;
    use crate::write::act::APPLY;
    use http::Method;

    #[test]
    fn a_request_is_described_by_its_verb_and_its_object() {
        for (method, content_type, url, expected) in [
            (Method::PATCH, APPLY, "/api/v1/namespaces/n/configmaps/c?force=true", ("apply", Some("n"), Some("c"))),
            (Method::PATCH, APPLY, "/apis/g/v1/things/t?dryRun=All", ("dry-run", None, Some("t"))),
            (Method::PATCH, "", "/apis/g/v1/things/t/status", ("patch", None, Some("t"))),
            (Method::GET, "", "/apis/g/v1/things/t", ("get", None, Some("t"))),
            (Method::GET, "", "/apis/g/v1/things?limit=100", ("list", None, None)),
            (Method::GET, "", "/api/v1/namespaces/n/pods?watch=true", ("list", Some("n"), None)),
            (Method::GET, "", "/api/v1/namespaces/n", ("get", None, Some("n"))),
            (Method::POST, "", "/apis/events.k8s.io/v1/namespaces/n/events", ("create", Some("n"), None)),
            (Method::PUT, "", "/api/v1/namespaces/n/configmaps/c", ("replace", Some("n"), Some("c"))),
            (Method::DELETE, "", "/api/v1/namespaces/n/configmaps/c", ("delete", Some("n"), Some("c"))),
        ] {
            let request = Request { method, content_type, ..Request::get("Kind", url, "") };
            let Subject { verb, namespace, name, .. } = subject(&request);
            assert_eq!((verb, namespace, name), expected, "{url}");
        }
        let discovery = Request::get("", "/apis", "");
        assert_eq!(subject(&discovery), Subject { verb: "get", path: "/apis", namespace: None, name: None });
    }
}
