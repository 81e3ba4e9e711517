//! What a request asks for, in Kubernetes' words.

use http::{Method, Uri};

/// One request as the API server would call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    /// get, list, watch, create, update, patch, delete, deletecollection; the method where it is about no resource.
    pub(super) verb: &'static str,
    /// Without the query.
    pub(super) path: String,
    /// What follows the question mark, as it was sent.
    pub(super) query: String,
    /// The resource, if it is about one.
    resource: String,
}

impl Asked {
    pub(super) fn of(method: &Method, uri: &Uri) -> Asked {
        let (path, query) = (uri.path(), uri.query().unwrap_or_default());
        let place = place(path);
        let mut asked =
            Asked { verb: "other", path: path.to_owned(), query: query.to_owned(), resource: String::new() };
        asked.verb = match &place {
            None => plain(method),
            Some(place) => verb(method, place.named, || asked.is_on("watch")),
        };
        asked.resource = place.map(|place| place.resource.to_owned()).unwrap_or_default();
        asked
    }

    /// The value of a key of the query. What Kubernetes puts there in keys of interest needs no decoding.
    pub(super) fn parameter(&self, key: &str) -> Option<&str> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        pairs.find(|(name, value)| *name == key && !value.is_empty()).map(|(_, value)| value)
    }

    fn is_on(&self, key: &str) -> bool {
        self.parameter(key).is_some_and(|value| matches!(value, "true" | "1"))
    }

    /// Whether it changes something.
    pub(super) fn changes(&self) -> bool {
        let writes = matches!(self.verb, "create" | "update" | "patch" | "delete" | "deletecollection");
        writes && self.parameter("dryRun").is_none()
    }

    /// Events and leases come when they like: they are not counted among the writes of a program unless asked for.
    pub(super) fn is_small_talk(&self) -> bool {
        matches!(self.resource.as_str(), "events" | "leases")
    }
}

/// Where in the API a path is.
struct Place<'a> {
    resource: &'a str,
    named: bool,
}

fn place(path: &str) -> Option<Place<'_>> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let rest = match parts.as_slice() {
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] if !rest.is_empty() => rest,
        _ => return None,
    };
    // A namespace is a resource and a place of others: what follows its name is either its own part or another resource.
    let rest = match rest {
        ["namespaces", _, "status" | "finalize", ..] | ["namespaces", _] => rest,
        ["namespaces", _, inner @ ..] => inner,
        _ => rest,
    };
    rest.first().map(|resource| Place { resource, named: rest.len() > 1 })
}

fn verb(method: &Method, named: bool, watches: impl Fn() -> bool) -> &'static str {
    match *method {
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD if watches() => "watch",
        Method::GET | Method::HEAD => "list",
        Method::POST => "create",
        Method::PUT => "update",
        Method::PATCH => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => "other",
    }
}

fn plain(method: &Method) -> &'static str {
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
pub(super) fn asked(method: &str, uri: &str) -> Asked {
    Asked::of(&method.parse().unwrap(), &uri.parse().unwrap())
}

#[cfg(test)]
mod tests {
    use super::asked;

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
            assert_eq!(asked(method, uri).verb, verb, "{method} {uri}");
        }
    }

    #[test]
    fn a_dry_run_changes_nothing_and_events_are_small_talk() {
        assert!(asked("PATCH", "/api/v1/nodes/a?fieldManager=m").changes());
        assert!(asked("PATCH", "/api/v1/nodes/a?dryRun=&fieldManager=m").changes());
        assert!(!asked("PATCH", "/api/v1/nodes/a?dryRun=All").changes());
        assert!(!asked("GET", "/api/v1/nodes/a").changes());
        assert!(asked("POST", "/apis/events.k8s.io/v1/namespaces/a/events").is_small_talk());
        assert!(!asked("POST", "/api/v1/namespaces/events/configmaps").is_small_talk());
        assert_eq!(asked("GET", "/api/v1/nodes?a=1&resourceVersion=7").parameter("resourceVersion"), Some("7"));
        assert_eq!(asked("GET", "/api/v1/nodes?resourceVersion=").parameter("resourceVersion"), None);
    }
}
