//! Tests of the stand-in: what a client has to know.

use crate::{Fault, FaultEffect, Method, Reply, Request, Response, Setup, StandIn};
use serde_json::Value;
use std::time::Duration;

struct Lab(StandIn);

impl Lab {
    fn new() -> Lab {
        Lab(StandIn::new(&Setup::group()))
    }

    fn ask(&mut self, token: &str, line: &str, body: &str) -> Response {
        let (method, target) = line.split_once(' ').unwrap();
        let headers = [("private-token", token), ("content-type", "application/json")];
        let request = Request::from_http(method, &format!("/api/v4{target}"), &headers, body.as_bytes()).unwrap();
        match self.0.handle(&request, Duration::from_secs(1)) {
            Reply::Answer(response) => response,
            other => panic!("{other:?}"),
        }
    }

    fn register(&mut self, body: &str) -> (u64, String) {
        let answer = self.ask(Setup::TOKEN, "POST /user/runners", body);
        assert_eq!(answer.status, 201, "{answer:?}");
        let body = answer.body.unwrap();
        (body["id"].as_u64().unwrap(), body["token"].as_str().unwrap().to_owned())
    }
}

const OF_GROUP: &str = r#"{"runner_type": "group_type", "group_id": 10, "tag_list": ["pve"], "run_untagged": false}"#;

#[test]
fn a_runner_gets_the_jobs_of_its_group_that_have_its_tags() {
    let mut lab = Lab::new();
    let (id, token) = lab.register(OF_GROUP);
    assert!(token.starts_with("glrt-"));
    let now = Duration::from_secs(2);
    lab.0.push_job("other/secret", &["pve"], now);
    lab.0.push_job("acme/shop", &[], now);
    lab.0.push_job("acme/shop", &["pve", "gpu"], now);
    assert_eq!(lab.0.runner_asks(&token, now), None);
    let job = lab.0.push_job("acme/lab/robot", &["pve"], now);
    assert_eq!(lab.0.runner_asks(&token, now), Some(job));
    assert!(lab.0.is_busy(id));
    lab.ask(Setup::TOKEN, &format!("PUT /runners/{id}"), r#"{"paused": true}"#);
    lab.0.push_job("acme/shop", &["pve"], now);
    assert_eq!(lab.0.runner_asks(&token, now), None, "a paused runner gets none");
    assert_eq!(lab.ask(Setup::TOKEN, &format!("DELETE /runners/{id}"), "").status, 204, "busy or not");
    let again = lab.0.retry(job, now).unwrap();
    assert_ne!(again, job);
}

#[test]
fn scopes_and_roles_are_needed() {
    let mut lab = Lab::new();
    let refused = lab.ask(Setup::READER_TOKEN, "POST /user/runners", OF_GROUP);
    assert_eq!((refused.status, &refused.body.unwrap()["scope"]), (403, &Value::from("api create_runner")));
    assert_eq!(lab.ask(Setup::READER_TOKEN, "GET /groups/acme/runners", "").status, 403);
    assert_eq!(lab.ask(Setup::READER_TOKEN, "GET /groups/other", "").status, 404);
    assert_eq!(lab.ask("wrong", "GET /version", "").status, 401);
    assert_eq!(lab.ask(Setup::TOKEN, "POST /user/runners", r#"{"runner_type": "instance_type"}"#).status, 403);
    assert_eq!(lab.ask(Setup::TOKEN, "GET /runners/all", "").status, 403);
    assert_eq!(lab.ask(Setup::ADMIN_TOKEN, "GET /runners/all", "").status, 200);
    let without = r#"{"runner_type": "group_type", "group_id": 10, "run_untagged": false}"#;
    assert_eq!(lab.ask(Setup::TOKEN, "POST /user/runners", without).status, 400);
}

#[test]
fn pages_have_links_to_the_next_one() {
    let mut lab = Lab::new();
    for _ in 0..3 {
        lab.register(OF_GROUP);
        lab.0.push_job("acme/shop", &["pve"], Duration::ZERO);
    }
    let first = lab.ask(Setup::TOKEN, "GET /groups/acme/runners?per_page=2", "");
    assert_eq!((first.header("x-total"), first.header("x-next-page")), (Some("3"), Some("2")));
    let line = "GET /projects/acme%2Fshop/jobs?scope[]=pending&scope[]=running&pagination=keyset&per_page=2";
    let first = lab.ask(Setup::TOKEN, line, "");
    let link = first.header("link").unwrap();
    let target = link.strip_prefix("<https://gitlab.example/api/v4").unwrap().split_once('>').unwrap().0;
    let second = lab.ask(Setup::TOKEN, &format!("GET {target}"), "");
    let ids = |response: &Response| {
        let body = response.body.clone().unwrap();
        body.as_array().unwrap().iter().map(|job| job["id"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let mut all = ids(&first);
    all.extend(ids(&second));
    assert_eq!(all, lab.0.jobs().keys().rev().copied().collect::<Vec<_>>());
    assert_eq!(second.header("link"), None);
}

#[test]
fn limits_and_faults_happen() {
    let mut lab = Lab::new();
    lab.0.set_limit(2);
    let left: Vec<Option<String>> = (0..3)
        .map(|_| lab.ask(Setup::TOKEN, "GET /version", ""))
        .map(|answer| answer.header("retry-after").map(str::to_owned))
        .collect();
    assert_eq!(left, [None, None, Some("61".to_owned())]);
    assert_eq!(lab.0.refused_by_limits(), 1);
    lab.0.inject(Fault::once(Method::Get, "/version", FaultEffect::Drop).after(1));
    lab.ask(Setup::ADMIN_TOKEN, "GET /version", "");
    let request = Request::from_http("GET", "/api/v4/version", &[("private-token", Setup::ADMIN_TOKEN)], b"").unwrap();
    assert_eq!(lab.0.handle(&request, Duration::ZERO), Reply::Lost);
}

#[test]
fn a_runner_asks_for_its_job_and_ends_it_with_the_tokens_that_only_it_has() {
    let mut lab = Lab::new();
    let (id, token) = lab.register(OF_GROUP);
    let request = |token: &str| format!(r#"{{"token": "{token}"}}"#);
    assert_eq!(lab.ask("", "POST /jobs/request", &request("glrt-other")).status, 403);
    assert_eq!(lab.ask("", "POST /jobs/request", &request(&token)).status, 204, "there is none");
    let job = lab.0.push_job("acme/shop", &["pve"], Duration::ZERO);
    let given = lab.ask("", "POST /jobs/request", &request(&token));
    let body = given.body.unwrap();
    assert_eq!((given.status, body["id"].as_u64()), (201, Some(job)));
    assert!(lab.0.is_busy(id));
    assert_eq!(lab.ask("", &format!("PUT /jobs/{job}"), r#"{"token": "x", "state": "success"}"#).status, 403);
    let ended = format!(r#"{{"token": {}, "state": "success"}}"#, body["token"]);
    assert_eq!(lab.ask("", &format!("PUT /jobs/{job}"), &ended).status, 200);
    assert_eq!(lab.0.jobs()[&job].status, "success");
    let said: Vec<String> = lab.0.take_events().iter().map(|event| event["build_status"].to_string()).collect();
    assert_eq!(said, ["\"pending\"", "\"running\"", "\"success\""]);
    assert!(lab.0.take_events().is_empty());
}
