//! What goes wrong with requests.

use super::{Lab, request};
use crate::{Fault, FaultEffect, Method, Reply};
use serde_json::{Value, json};
use std::time::Duration;

#[test]
fn a_reply_that_is_lost_was_carried_out() {
    let mut lab = Lab::new();
    lab.state.inject(Fault::once(Method::Post, "generate-jitconfig", FaultEffect::LoseReply));
    let body = json!({"name": "vm-1", "runner_group_id": 1, "labels": ["pve"]});
    let asked = request("POST /orgs/acme/actions/runners/generate-jitconfig").json(body.clone());
    assert_eq!(lab.handle(asked.clone()), Reply::Lost);
    assert_eq!(lab.state.runners().len(), 1);
    assert_eq!(lab.handle(asked).answer().unwrap().status, 409);
}

#[test]
fn faults_happen_to_the_requests_that_they_are_meant_for() {
    let mut lab = Lab::new();
    let line = "POST /orgs/acme/actions/runners/registration-token";
    let fail = FaultEffect::Fail(502, "Server Error".to_owned());
    lab.state.inject(Fault::once(Method::Post, "registration-token", fail).after(1).times(2));
    for expected in ["201 ", "502 Server Error", "502 Server Error", "201 "] {
        assert_eq!(lab.refused(line, Value::Null), expected);
        assert_eq!(lab.get("/orgs/acme/actions/runners").status, 200);
    }
    let late = FaultEffect::FailAfter(504, "We couldn't respond to your request in time.".to_owned());
    lab.state.inject(Fault::once(Method::Post, "generate-jitconfig", late));
    let body = json!({"name": "vm-1", "runner_group_id": 1, "labels": ["pve"]});
    assert_eq!(lab.send("POST /orgs/acme/actions/runners/generate-jitconfig", body).status, 504);
    assert_eq!(lab.state.runners().len(), 1);
    lab.state.inject(Fault::once(Method::Get, "/meta", FaultEffect::Drop));
    assert_eq!(lab.handle(request("GET /meta")), Reply::Lost);
    lab.state.inject(Fault::once(Method::Get, "/meta", FaultEffect::Delay(Duration::from_secs(3))));
    assert!(
        matches!(lab.handle(request("GET /meta")), Reply::Late(response, time) if response.status == 200 && time.as_secs() == 3)
    );
    lab.state.inject(Fault::once(Method::Delete, "/runners/", FaultEffect::Repeat));
    let repeated = lab.refused("DELETE /orgs/acme/actions/runners/1", Value::Null);
    assert_eq!(repeated, "404 Not Found", "the first one deleted it");
    lab.state.inject(Fault::once(Method::Get, "/meta", FaultEffect::Drop));
    lab.state.clear_faults();
    assert_eq!(lab.get("/meta").status, 200);
}
