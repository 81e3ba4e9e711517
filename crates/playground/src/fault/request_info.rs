//! Classifies an HTTP request as the API server does: verb, path and resource.

use http::{Method, Uri};

/// One request, with its Kubernetes verb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestInfo {
    /// get, list, watch, create, update, patch, delete, deletecollection; the HTTP method for a non-resource path.
    pub(super) verb: &'static str,
    /// The path without the query.
    pub(super) path: String,
    /// The query string as it was sent.
    pub(super) query: String,
    /// The resource; empty for a non-resource path.
    resource: String,
}

impl RequestInfo {
    pub(super) fn of(method: &Method, uri: &Uri) -> RequestInfo {
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        let target = resource_path(path);
        let mut request =
            RequestInfo { verb: "other", path: path.to_owned(), query: query.to_owned(), resource: String::new() };
        request.verb = match &target {
            None => non_resource_verb(method),
            Some(target) => resource_verb(method, target.has_name, || request.is_true("watch")),
        };
        request.resource = target.map(|target| target.resource.to_owned()).unwrap_or_default();
        request
    }

    /// The value of a query parameter, without URL decoding: none of those used here need it.
    pub(super) fn parameter(&self, key: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, value)| *name == key && !value.is_empty()).map(|(_, value)| value)
    }

    fn is_true(&self, key: &str) -> bool {
        self.parameter(key).is_some_and(|value| matches!(value, "true" | "1"))
    }

    /// Whether it changes something; a dry run does not.
    pub(super) fn is_write(&self) -> bool {
        let mutates = matches!(self.verb, "create" | "update" | "patch" | "delete" | "deletecollection");
        mutates && self.parameter("dryRun").is_none()
    }

    /// Events, Leases and the operator's report depend on timing, so `write` matches them only if a rule names them.
    pub(super) fn depends_on_timing(&self) -> bool {
        matches!(self.resource.as_str(), "events" | "leases") || self.path.ends_with(api::STATUS)
    }
}

/// The resource that a path addresses.
struct ResourcePath<'a> {
    resource: &'a str,
    has_name: bool,
}

fn resource_path(path: &str) -> Option<ResourcePath<'_>> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] if !rest.is_empty() => rest,
        _ => return None,
    };
    // What follows a namespace's name is either its own subresource or a resource inside the namespace.
    let rest = match rest {
        ["namespaces", _, "status" | "finalize", ..] | ["namespaces", _] => rest,
        ["namespaces", _, inner @ ..] => inner,
        _ => rest,
    };
    rest.first().map(|resource| ResourcePath { resource, has_name: rest.len() > 1 })
}

fn resource_verb(method: &Method, has_name: bool, is_watch: impl Fn() -> bool) -> &'static str {
    match *method {
        Method::GET | Method::HEAD if has_name => "get",
        Method::GET | Method::HEAD if is_watch() => "watch",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if has_name => "delete",
        Method::DELETE => "deletecollection",
        _ => "other",
    }
}

fn non_resource_verb(method: &Method) -> &'static str {
    match *method {
        Method::GET => "get",
        Method::HEAD => "head",
        Method::POST => "post",
        Method::PUT => "put",
        Method::PATCH => "patch",
        Method::DELETE => "delete",
        _ => "other",
    }
}

#[cfg(test)]
pub(super) fn request_info(method: &str, uri: &str) -> RequestInfo {
    RequestInfo::of(&method.parse().unwrap(), &uri.parse().unwrap())
}

#[cfg(test)]
mod tests {
    use super::request_info;

    #[test]
    fn a_request_has_the_verb_that_kubernetes_gives_it() {
        for (method, uri, verb) in [
            ("GET", "/version", "get"),
            ("GET", "/apis", "get"),
            ("GET", "/apis/apps/v1", "get"),
            ("GET", "/api/v1/nodes", "list"),
            ("GET", "/api/v1/nodes?limit=3", "list"),
            ("GET", "/api/v1/nodes?watch=true", "watch"),
            ("GET", "/api/v1/nodes?watch=false", "list"),
            ("GET", "/api/v1/nodes/a", "get"),
            ("GET", "/api/v1/namespaces", "list"),
            ("GET", "/api/v1/namespaces?watch=1", "watch"),
            ("GET", "/api/v1/namespaces/a", "get"),
            ("GET", "/api/v1/namespaces/a/status", "get"),
            ("GET", "/api/v1/namespaces/a/configmaps", "list"),
            ("GET", "/api/v1/namespaces/a/configmaps/b", "get"),
            ("GET", "/apis/g.io/v1/namespaces/a/things?watch=true&resourceVersion=3", "watch"),
            ("POST", "/api/v1/namespaces/a/configmaps", "create"),
            ("PUT", "/api/v1/namespaces/a/configmaps/b", "update"),
            ("PATCH", "/apis/g.io/v1/things/b/status", "patch"),
            ("DELETE", "/api/v1/namespaces/a/configmaps/b", "delete"),
            ("DELETE", "/api/v1/namespaces/a/configmaps", "deletecollection"),
            ("POST", "/somewhere", "post"),
        ] {
            assert_eq!(request_info(method, uri).verb, verb, "{method} {uri}");
        }
    }

    #[test]
    fn a_dry_run_is_not_a_write_and_events_are_recognised() {
        assert!(request_info("PATCH", "/api/v1/nodes/a?fieldManager=m").is_write());
        assert!(request_info("PATCH", "/api/v1/nodes/a?dryRun=&fieldManager=m").is_write());
        assert!(!request_info("PATCH", "/api/v1/nodes/a?dryRun=All").is_write());
        assert!(!request_info("GET", "/api/v1/nodes/a").is_write());
        assert!(request_info("POST", "/apis/events.k8s.io/v1/namespaces/a/events").depends_on_timing());
        assert!(!request_info("POST", "/api/v1/namespaces/events/configmaps").depends_on_timing());
        assert_eq!(request_info("GET", "/api/v1/nodes?a=1&resourceVersion=7").parameter("resourceVersion"), Some("7"));
        assert_eq!(request_info("GET", "/api/v1/nodes?resourceVersion=").parameter("resourceVersion"), None);
    }
}
