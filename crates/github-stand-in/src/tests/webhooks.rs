//! What hooks are told, and what goes wrong with it.

use super::{Lab, actions};
use crate::{Conclusion, JobSpec, Scope, WebhookChaos, WebhookEffect, WebhookFault};
use ring::hmac;
use serde_json::{Value, json};
use std::time::Duration;

fn job() -> JobSpec {
    JobSpec::new("acme/shop", &["pve"]).lasting(Duration::from_secs(30))
}

fn hooked() -> Lab {
    hooked_with(false)
}

fn hooked_with(has_short_payloads: bool) -> Lab {
    let mut lab = Lab::with(|setup| setup.has_short_payloads = has_short_payloads);
    lab.state.add_hook(Some(Scope::Organization("acme".to_owned())), "https://hook.example/a", Some("secret"));
    lab
}

#[test]
fn a_hook_is_told_when_a_job_is_queued_starts_and_ends() {
    let mut lab = hooked();
    lab.state.push_job(&job(), lab.now);
    assert_eq!(actions(&lab.pass(999)), [""; 0]);
    let sent = lab.pass(1);
    assert_eq!(actions(&sent), ["queued build"]);
    let header = |name: &str| sent[0].headers.iter().find(|(found, _)| *found == name).unwrap().1.clone();
    assert_eq!(header("x-github-event"), "workflow_job");
    let signature = header("x-hub-signature-256");
    let key = hmac::Key::new(hmac::HMAC_SHA256, b"secret");
    let digits: String = hmac::sign(&key, &sent[0].body).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(signature, format!("sha256={digits}"));
    lab.online("vm-1", &["pve"]);
    assert_eq!(actions(&lab.pass(2000)), ["in_progress build"]);
    let ended = lab.pass(31_000);
    assert_eq!(actions(&ended), ["completed build"]);
    let body: Value = serde_json::from_slice(&ended[0].body).unwrap();
    assert_eq!(body["workflow_job"]["runner_name"], "vm-1");
    assert_eq!(body["workflow_job"]["conclusion"], "success");
    assert!(body["installation"].is_null());
}

#[test]
fn only_hooks_that_cover_the_repository_and_want_the_event_are_told() {
    let mut lab = Lab::new();
    let repository = |name: &str| Some(Scope::Repository(crate::RepositoryName::parse(name).unwrap()));
    lab.state.add_hook(repository("acme/site"), "https://hook.example/site", None);
    lab.state.add_hook(None, "https://hook.example/app", Some("s"));
    let body = json!({"config": {"url": "https://hook.example/push"}, "events": ["push"]});
    assert_eq!(lab.send("POST /repos/acme/shop/hooks", body).status, 201);
    let ping = lab.pass(1000);
    assert_eq!(ping.len(), 1, "a new hook gets a ping");
    lab.state.push_job(&job(), lab.now);
    let sent = lab.pass(1000);
    assert_eq!(sent.iter().map(|sent| sent.url.as_str()).collect::<Vec<_>>(), ["https://hook.example/app"]);
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!(body["installation"]["id"], crate::Setup::INSTALLATION);
}

#[test]
fn webhooks_are_lost_late_duplicated_reordered_and_forgotten_on_demand() {
    let check = |effect: WebhookEffect, expected: [&[&str]; 3]| {
        let mut lab = hooked();
        lab.state.inject_webhook(WebhookFault::once("queued", effect));
        lab.state.push_job(&job().named("a"), lab.now);
        lab.pass(10);
        lab.state.push_job(&job().named("b"), lab.now);
        let seen = [lab.pass(1000), lab.pass(2000), lab.pass(10_000)].map(|sent| actions(&sent));
        assert_eq!(seen, expected.map(<[&str]>::to_vec), "{effect:?}");
        lab.state.deliveries().len()
    };
    let (a, b) = ("queued a", "queued b");
    assert_eq!(check(WebhookEffect::Lose, [&[b], &[], &[]]), 2);
    assert_eq!(check(WebhookEffect::Forget, [&[b], &[], &[]]), 1);
    assert_eq!(check(WebhookEffect::Delay(Duration::from_secs(5)), [&[b], &[], &[a]]), 2);
    assert_eq!(check(WebhookEffect::Duplicate, [&[a, a, b], &[], &[]]), 2);
    assert_eq!(check(WebhookEffect::Swap, [&[b, a], &[], &[]]), 2);
    let mut lab = hooked();
    lab.state.inject_webhook(WebhookFault::once("queued", WebhookEffect::Swap));
    lab.state.push_job(&job(), lab.now);
    assert_eq!(actions(&lab.pass(10_000)), ["queued build"], "there is no next one");
}

#[test]
fn short_payloads_have_what_matters_to_runners() {
    let body = |has_short_payloads: bool| {
        let mut lab = hooked_with(has_short_payloads);
        lab.state.push_job(&job(), lab.now);
        serde_json::from_slice::<Value>(&lab.pass(1000)[0].body).unwrap()
    };
    let (long, short) = (body(false), body(true));
    for pointer in
        ["/action", "/workflow_job", "/repository/full_name", "/repository/owner/login", "/organization/login"]
    {
        assert!(short.pointer(pointer).is_some(), "{pointer}");
        assert_eq!(short.pointer(pointer), long.pointer(pointer), "{pointer}");
    }
    assert!(short.to_string().len() * 4 < long.to_string().len());
}

#[test]
fn a_duplicate_has_the_delivery_id_of_its_original() {
    let mut lab = hooked();
    lab.state.inject_webhook(WebhookFault::once("queued", WebhookEffect::Duplicate));
    lab.state.push_job(&job(), lab.now);
    let sent = lab.pass(1000);
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
}

#[test]
fn a_lost_webhook_is_listed_as_failed_and_can_be_redelivered() {
    let mut lab = hooked();
    let hook = lab.get("/orgs/acme/hooks").at("/0/id").as_u64().unwrap();
    lab.state.inject_webhook(WebhookFault::once("queued", WebhookEffect::Lose));
    for name in ["a", "b", "c"] {
        lab.state.push_job(&job().named(name), lab.now);
    }
    let base = format!("/orgs/acme/hooks/{hook}/deliveries");
    assert_eq!(lab.get(&base).body, Some(json!([])), "they are on their way");
    let sent = lab.pass(1000);
    assert_eq!(lab.get(&base).body.unwrap().as_array().unwrap().len(), 1, "only what became of the lost one is known");
    for sent in sent {
        lab.state.delivered(sent.id, Some(202));
    }
    let page = lab.get(&format!("{base}?per_page=2"));
    assert_eq!(page.at("/0/status_code"), 202);
    let link = page.header("link").unwrap();
    let next = link.split(['<', '>']).nth(1).unwrap().strip_prefix("https://github.example").unwrap().to_owned();
    let rest = lab.get(&next);
    assert_eq!((rest.at("/0/status_code"), rest.at("/0/status")), (&502.into(), &"failed to connect to host".into()));
    assert_eq!(rest.header("link"), None);
    let failed = lab.get(&format!("{base}?status=failure"));
    assert_eq!(failed.body.as_ref().unwrap().as_array().unwrap().len(), 1);
    let id = failed.at("/0/id").as_u64().unwrap();
    let details = lab.get(&format!("{base}/{id}"));
    assert_eq!(details.at("/request/payload/workflow_job/name"), "a");
    assert_eq!(lab.send(&format!("POST {base}/{id}/attempts"), Value::Null).status, 202);
    let sent = lab.pass(1000);
    assert_eq!(actions(&sent), ["queued a"]);
    lab.state.delivered(sent[0].id, Some(200));
    let newest = lab.get(&base);
    assert_eq!((newest.at("/0/redelivery"), newest.at("/0/guid")), (&true.into(), failed.at("/0/guid")));
    assert_ne!(newest.at("/0/id"), &json!(id));
    assert_eq!(lab.send(&format!("POST {base}/7/attempts"), Value::Null).status, 404);
}

#[test]
fn webhooks_go_wrong_by_chance_as_often_as_they_are_told_to() {
    let mut lab = hooked_with(true);
    lab.state.chaos = WebhookChaos {
        lost: 20,
        duplicated: 10,
        late: 10,
        late_by: Duration::from_secs(60),
        ..WebhookChaos::default()
    };
    for _ in 0..1000 {
        lab.state.push_job(&job(), lab.now);
    }
    let in_time = lab.pass(1000).len();
    let late = lab.pass(60_000).len();
    let expected = 1000 - 200 + 100 - 100;
    assert!((expected - 60..expected + 60).contains(&in_time), "{in_time}");
    assert!((60..140).contains(&late), "{late}");
}

#[test]
fn a_hook_is_made_changed_and_deleted() {
    let mut lab = Lab::new();
    let body =
        json!({"name": "web", "config": {"url": "https://hook.example", "secret": "s"}, "events": ["workflow_job"]});
    let made = lab.send("POST /orgs/acme/hooks", body.clone());
    assert_eq!(made.at("/config/secret"), "********");
    assert_eq!(lab.send("POST /orgs/acme/hooks", body).status, 422);
    let line = format!("/orgs/acme/hooks/{}", made.at("/id"));
    lab.pass(1000);
    assert_eq!(lab.send(&format!("PATCH {line}"), json!({"active": false})).at("/active"), false);
    lab.state.push_job(&job().ending(Conclusion::Failure), lab.now);
    assert!(lab.pass(10_000).is_empty());
    assert_eq!(lab.send(&format!("DELETE {line}"), Value::Null).status, 204);
    assert_eq!(lab.get(&line).status, 404);
}
