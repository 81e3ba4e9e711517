//! Tests of webhooks: signatures, limits, repetitions, and the shapes that GitHub publishes.

use super::{Checked, Delivery, LARGEST, MAX_AGE, REMEMBERED, Receiver, Refusal, Verdict, check};
use crate::jobs::hmac::hmac;
use crate::jobs::job::{JobKey, Repository, Source, State};
use jiff::Timestamp;
use serde_json::{Value, json};

const NOW: &str = "2026-11-15T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A signature, the secrets, and why it is refused.
type Case = (Option<String>, &'static [&'static [u8]], Refusal);

fn sign(secret: &[u8], body: &[u8]) -> String {
    let digits: String = hmac(secret, body).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={digits}")
}

fn event(id: u64, status: &str, created: &str) -> Value {
    json!({
        "action": status,
        "workflow_job": {
            "id": id, "run_id": 7, "run_attempt": 2, "status": status, "conclusion": null, "name": "build",
            "created_at": created, "started_at": created, "completed_at": null,
            "labels": ["Self-Hosted", "PVE"], "runner_id": null, "runner_name": null, "steps": [{"name": "x"}],
        },
        "repository": {"full_name": "Acme/Shop", "id": 1},
        "organization": {"login": "Acme"},
    })
}

fn checked(id: &str, body: &[u8]) -> Checked {
    let signature = sign(b"new", body);
    let delivery = Delivery { event: Some("workflow_job"), id: Some(id), signature: Some(&signature), body };
    check(&delivery, &[b"old", b"new"], now())
}

fn receive(receiver: &mut Receiver, id: &str, body: &[u8]) -> Verdict {
    receiver.take(&checked(id, body))
}

#[test]
fn a_genuine_event_is_an_observation() {
    let body = event(1, "queued", NOW).to_string();
    let verdict = receive(&mut Receiver::default(), "a", body.as_bytes());
    let Verdict::Accepted(observation) = &verdict else { panic!("{verdict:?}") };
    assert_eq!((observation.source, observation.at, verdict.status()), (Source::Webhook, now(), 202));
    let facts = &observation.facts;
    assert_eq!(facts.key, JobKey::Job { id: 1, attempt: 2 });
    assert_eq!((facts.state, &facts.repository), (State::Queued, &Repository::new("acme", "shop")));
    assert_eq!(facts.labels.iter().map(String::as_str).collect::<Vec<_>>(), ["pve", "self-hosted"]);
}

#[test]
fn it_is_known_which_secrets_have_signed() {
    let body = event(1, "queued", NOW).to_string();
    let signature = sign(b"new", body.as_bytes());
    let mut delivery =
        Delivery { event: Some("workflow_job"), id: Some("a"), signature: Some(&signature), body: body.as_bytes() };
    assert_eq!(check(&delivery, &[b"old", b"new", b"", b"other", b"new"], now()).signers, [1, 4]);
    delivery.signature = None;
    assert_eq!(check(&delivery, &[b"new"], now()).signers, [0; 0]);
}

#[test]
fn what_could_not_be_passed_on_is_new_when_it_is_delivered_again() {
    let (mut receiver, body) = (Receiver::default(), event(1, "queued", NOW).to_string());
    let other = event(2, "queued", NOW).to_string();
    receive(&mut receiver, "b", other.as_bytes());
    for _ in 0..2 {
        assert!(matches!(receive(&mut receiver, "a", body.as_bytes()), Verdict::Accepted(_)));
        receiver.forget(&checked("a", body.as_bytes()));
    }
    assert_eq!(receive(&mut receiver, "b", other.as_bytes()), Verdict::Ignored("repeated"));
}

#[test]
fn nothing_is_parsed_before_the_signature_is_right() {
    let good = event(1, "queued", NOW).to_string();
    let cases: [Case; 7] = [
        (None, &[b"new"], Refusal::NoSignature),
        (Some("sha256=00".into()), &[b"new"], Refusal::NoSignature),
        (Some(sign(b"new", good.as_bytes()).replace("sha256", "sha1")), &[b"new"], Refusal::NoSignature),
        (Some(sign(b"other", good.as_bytes())), &[b"new"], Refusal::WrongSignature),
        (Some(sign(b"new", b"another body")), &[b"new"], Refusal::WrongSignature),
        (Some(sign(b"", good.as_bytes())), &[b""], Refusal::NoSecret),
        (Some(sign(b"new", good.as_bytes())), &[], Refusal::NoSecret),
    ];
    for (signature, secrets, expected) in cases {
        // What is not JSON is refused for its signature too.
        for body in [good.as_bytes(), b"{"] {
            if body == b"{" && expected == Refusal::WrongSignature {
                continue;
            }
            let delivery = Delivery { event: None, id: None, signature: signature.as_deref(), body };
            let verdict = Receiver::default().take(&check(&delivery, secrets, now()));
            assert_eq!((&verdict, verdict.status()), (&Verdict::Refused(expected.clone()), 401), "{signature:?}");
        }
    }
    let mut receiver = Receiver::default();
    for secret in [b"old", b"new"] {
        let body = event(secret.len() as u64 + u64::from(secret[0]), "queued", NOW).to_string();
        let signature = sign(secret, body.as_bytes());
        let id = signature.clone();
        let delivery =
            Delivery { event: Some("workflow_job"), id: Some(&id), signature: Some(&signature), body: body.as_bytes() };
        assert_eq!(
            receiver.take(&check(&delivery, &[b"old", b"new"], now())).status(),
            202,
            "both secrets are accepted"
        );
        assert_eq!(
            Receiver::default().take(&check(&delivery, &[b"old"], now())).status(),
            [202, 401][usize::from(secret == b"new")]
        );
    }
}

#[test]
fn what_is_large_deep_or_no_event_is_refused() {
    let mut receiver = Receiver::default();
    let large = vec![b' '; LARGEST + 1];
    assert_eq!(receive(&mut receiver, "a", &large), Verdict::Refused(Refusal::TooLarge));
    let deep = format!("{{\"workflow_job\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let hidden = format!("{{\"x\": {}1{}, \"workflow_job\": 1}}", "[".repeat(100_000), "]".repeat(100_000));
    let mut bodies = vec![deep, hidden, "{}".into(), "[]".into(), "null".into(), String::new(), "\u{0}".into()];
    for (field, value) in [
        ("id", json!("1")),
        ("id", json!(-1)),
        ("id", json!(1e300)),
        ("status", json!("sleeping")),
        ("created_at", json!("yesterday")),
        ("labels", json!({"a": 1})),
    ] {
        let mut body = event(1, "queued", NOW);
        body["workflow_job"][field] = value;
        bodies.push(body.to_string());
    }
    for name in ["shop", "/", "a/b/c", ""] {
        let mut body = event(1, "queued", NOW);
        body["repository"]["full_name"] = json!(name);
        bodies.push(body.to_string());
    }
    for body in bodies {
        let verdict = receive(&mut receiver, "a", body.as_bytes());
        assert!(matches!(verdict, Verdict::Refused(Refusal::Unreadable(_))), "{verdict:?} {body:.100}");
        assert_eq!(verdict.status(), 400);
    }
}

#[test]
fn other_events_and_repetitions_change_nothing() {
    let mut receiver = Receiver::default();
    let body = event(1, "queued", NOW).to_string();
    assert_eq!(receive(&mut receiver, "a", body.as_bytes()).status(), 202);
    assert_eq!(receive(&mut receiver, "a", body.as_bytes()), Verdict::Ignored("repeated"));
    assert_eq!(receive(&mut receiver, "b", body.as_bytes()), Verdict::Ignored("repeated"), "the id is not signed");
    let signature = sign(b"new", b"{}");
    for (event, expected) in [(Some("ping"), "ping"), (Some("push"), "other_event"), (None, "no_event")] {
        let delivery = Delivery { event, id: Some("c"), signature: Some(&signature), body: b"{}" };
        assert_eq!(receiver.take(&check(&delivery, &[b"new"], now())).reason(), expected);
    }
    let delivery = Delivery { event: Some("ping"), id: None, signature: Some(&signature), body: b"{}" };
    assert_eq!(receiver.take(&check(&delivery, &[b"new"], now())), Verdict::Refused(Refusal::NoDelivery));
}

#[test]
fn old_events_are_refused_and_memory_is_bounded() {
    let mut receiver = Receiver::default();
    let at = |seconds: i64| now().checked_add(jiff::SignedDuration::from_secs(seconds)).unwrap().to_string();
    let age = i64::try_from(MAX_AGE.as_secs()).unwrap();
    for (second, expected) in [(-age - 1, "too_old"), (-age, "accepted"), (601, "in_future"), (599, "accepted")] {
        let body = event(1, "queued", &at(second)).to_string();
        assert_eq!(receive(&mut receiver, &format!("{second}"), body.as_bytes()).reason(), expected, "{second}");
    }
    for number in 0..3 * REMEMBERED as u64 {
        let body = event(number, "queued", NOW).to_string();
        receive(&mut receiver, &format!("n{number}"), body.as_bytes());
    }
    assert!(receiver.known.len() <= 2 * REMEMBERED && receiver.order.len() == receiver.known.len());
}

/// The shapes of the eight examples in `@octokit/webhooks-examples` 7.6.1, with other values.
#[test]
fn events_are_read_as_github_publishes_them() {
    let runner =
        json!({"runner_id": 5, "runner_name": "a runner", "runner_group_id": 2, "runner_group_name": "a group"});
    let cases = [
        // Neither attempt nor time of creation, as of enterprise servers.
        (json!({"run_attempt": null, "created_at": null}), "in_progress", State::InProgress, 1, true),
        (json!({"completed_at": NOW, "conclusion": "failure"}), "completed", State::Completed, 2, true),
        (json!({"completed_at": NOW, "conclusion": "success"}), "completed", State::Completed, 2, true),
        (json!({}), "in_progress", State::InProgress, 2, true),
        // A queued job that names a runner has none.
        (json!({}), "queued", State::Queued, 2, false),
        // The action `queued` of a job that waits for an approval.
        (json!({"runner_name": null, "runner_group_name": null}), "waiting", State::Waiting, 2, false),
        (json!({"runner_name": "", "runner_group_name": ""}), "pending", State::Waiting, 2, false),
    ];
    for (changes, status, state, attempt, has_runner) in cases {
        let mut body = event(1, status, NOW);
        body["action"] = json!("queued");
        for more in [&runner, &changes] {
            for (key, value) in more.as_object().unwrap() {
                body["workflow_job"][key] = value.clone();
            }
        }
        let verdict = receive(&mut Receiver::default(), "a", body.to_string().as_bytes());
        let Verdict::Accepted(observation) = verdict else { panic!("{verdict:?}") };
        let facts = observation.facts;
        assert_eq!((facts.key, facts.state), (JobKey::Job { id: 1, attempt }, state), "{status}");
        assert_eq!((facts.runner.is_some(), facts.group.is_some()), (has_runner, has_runner), "{status}");
        assert_eq!(facts.conclusion.is_some(), state == State::Completed);
    }
}
