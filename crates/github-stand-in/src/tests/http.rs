//! Requests as they come over HTTP.

use crate::{Method, ROUTES, Request};
use std::collections::BTreeSet;

#[test]
fn both_kinds_of_addresses_are_understood() {
    for target in
        ["/api/v3/orgs/acme/actions/runners?name=a%20b+c&page=2", "/orgs/acme/actions/runners?name=a+b%20c&page=2"]
    {
        let request = Request::from_http("GET", target, &[("authorization", "Bearer x")], b"").unwrap();
        assert_eq!(request.path, "/orgs/acme/actions/runners");
        assert_eq!(request.query["name"], "a b c");
        assert_eq!(request.authorization.as_deref(), Some("Bearer x"));
    }
    let broken = Request::from_http("POST", "/orgs", &[], b"{").unwrap_err();
    assert_eq!((broken.status, broken.at("/message").as_str()), (400, Some("Problems parsing JSON")));
    assert_eq!(Request::from_http("TRACE", "/orgs", &[], b"").unwrap_err().status, 404);
    assert_eq!(Request::new(Method::Get, "/a%zz%4").path, "/a%zz%4");
}

#[test]
fn no_call_hides_another_one() {
    let mut seen = BTreeSet::new();
    for (at, route) in ROUTES.iter().enumerate() {
        assert!(seen.insert((route.method, route.path)), "{route:?} is there twice");
        let example = route.path.replace(['{', '}'], "");
        let first = ROUTES.iter().position(|other| other.matches(route.method, &example).is_some());
        assert_eq!(first, Some(at), "{route:?} is hidden");
    }
}
