//! Budgets, secondary limits and answers that cost nothing.

use super::{Lab, request};
use crate::{Fault, FaultEffect, Method, Setup};
use serde_json::Value;
use std::time::Duration;

fn remaining(lab: &mut Lab) -> String {
    let response = lab.get("/orgs/acme/actions/runners");
    format!("{} {}", response.status, response.header("x-ratelimit-remaining").unwrap())
}

#[test]
fn a_budget_is_used_up_and_comes_back_with_its_window() {
    let mut lab = Lab::with(|setup| setup.limits.core = 3);
    for expected in ["200 2", "200 1", "200 0", "403 0"] {
        assert_eq!(remaining(&mut lab), expected);
    }
    let response = lab.get("/orgs/acme/actions/runners");
    assert!(response.at("/message").as_str().unwrap().starts_with("API rate limit exceeded for user ID 1."));
    assert_eq!(response.header("x-ratelimit-reset"), Some("1790003600"));
    assert_eq!(response.header("retry-after"), None);
    assert_eq!(lab.get("/rate_limit").at("/resources/core/remaining"), 0, "asking for it costs nothing");
    assert_eq!(lab.state.refused_by_limits(), 2);
    let mut other = lab.state.installation_token();
    std::mem::swap(&mut other, &mut lab.token);
    assert_eq!(remaining(&mut lab), "200 2", "another client has a budget of its own");
    lab.token = Setup::TOKEN.to_owned();
    lab.now += Duration::from_secs(3600);
    assert_eq!(remaining(&mut lab), "200 2");
    lab.state.exhaust_budgets();
    assert_eq!(remaining(&mut lab), "403 0");
}

#[test]
fn an_answer_that_is_known_costs_nothing() {
    let mut lab = Lab::new();
    let first = lab.get("/orgs/acme/actions/runners");
    let tag = first.header("etag").unwrap().to_owned();
    let ask = |lab: &mut Lab| {
        let mut asked = request("GET /orgs/acme/actions/runners");
        asked.if_none_match = Some(tag.clone());
        lab.handle(asked).answer().unwrap()
    };
    for _ in 0..5 {
        let known = ask(&mut lab);
        assert_eq!((known.status, known.body.as_ref()), (304, None));
        assert_eq!(known.header("x-ratelimit-remaining"), Some("4999"));
    }
    lab.jit("vm-1", &["pve"]);
    assert_eq!(ask(&mut lab).status, 200);
}

#[test]
fn writes_use_up_the_points_of_a_minute() {
    let mut lab = Lab::new();
    let line = "POST /orgs/acme/actions/runners/registration-token";
    for _ in 0..180 {
        assert_eq!(lab.send(line, Value::Null).status, 201);
    }
    lab.pass(15_500);
    let response = lab.send(line, Value::Null);
    assert_eq!((response.status, response.header("retry-after")), (403, Some("45")));
    assert!(response.at("/message").as_str().unwrap().contains("secondary rate limit"));
    assert_eq!(response.header("x-ratelimit-remaining"), Some("4820"), "the budget is far from empty");
    lab.state.limits.secondary_status = 429;
    assert_eq!(lab.send(line, Value::Null).status, 429);
    lab.pass(44_500);
    assert_eq!(lab.send(line, Value::Null).status, 201);
}

#[test]
fn a_secondary_limit_can_be_injected() {
    let mut lab = Lab::new();
    lab.state.inject(Fault::once(Method::Get, "/actions/runners", FaultEffect::SecondaryLimit(7)));
    let response = lab.get("/orgs/acme/actions/runners");
    assert_eq!((response.status, response.header("retry-after")), (403, Some("7")));
    assert_eq!(lab.get("/orgs/acme/actions/runners").status, 200);
}
