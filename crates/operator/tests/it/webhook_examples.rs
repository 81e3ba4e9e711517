//! The webhooks that GitHub publishes as examples, as the receiver reads them.

use fleet::jobs::webhook::{Delivery, Receiver, Verdict, check};
use fleet::jobs::{JobKey, State};
use jiff::Timestamp;
use playground::cache::Cache;
use playground::tools::Tools;
use playground::{Progress, UserError, github_clients};
use ring::hmac;
use serde_json::Value;
use std::collections::BTreeSet;

const SECRET: &[u8] = b"it is a secret to everybody";

/// What becomes of a genuine webhook that arrives at this time.
fn receive(event: &str, id: &str, payload: &Value, now: Timestamp) -> Verdict {
    let body = payload.to_string();
    let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET), body.as_bytes());
    let digits: String = code.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let signature = format!("sha256={digits}");
    let delivery = Delivery { event: Some(event), id: Some(id), signature: Some(&signature), body: body.as_bytes() };
    Receiver::default().take(&check(&delivery, &[SECRET], now))
}

#[tokio::test]
async fn the_published_examples_of_webhooks_are_read() {
    let found: Result<_, UserError> =
        async { github_clients::ensure(&Tools::load()?, &Cache::open()?, Progress::detect()).await }.await;
    let Some(examples) = found.unwrap_or_else(|error| panic!("{error}")).examples() else {
        println!(
            "examples of webhooks: NOT READ, because node or npm is not installed, and no package has them for this machine"
        );
        return;
    };
    let examples: Value = serde_json::from_slice(&std::fs::read(examples).unwrap()).unwrap();
    let (mut states, mut others) = (BTreeSet::new(), 0);
    for event in examples.as_array().unwrap() {
        let name = event["name"].as_str().unwrap();
        for (number, payload) in event["examples"].as_array().unwrap().iter().enumerate() {
            let id = format!("{name}-{number}");
            if name != "workflow_job" {
                let expected = if name == "ping" { "ping" } else { "other_event" };
                assert_eq!(receive(name, &id, payload, Timestamp::now()), Verdict::Ignored(expected), "{id}");
                others += 1;
                continue;
            }
            let job = &payload["workflow_job"];
            let last =
                ["completed_at", "started_at", "created_at"].iter().find_map(|field| job[field].as_str()).unwrap();
            let verdict = receive(name, &id, payload, last.parse().unwrap());
            let Verdict::Accepted(observation) = &verdict else { panic!("{id}: {verdict:?} {payload}") };
            let facts = &observation.facts;
            let attempt = u32::try_from(job["run_attempt"].as_u64().unwrap_or(1)).unwrap();
            assert_eq!(facts.key, JobKey::Job { id: job["id"].as_u64().unwrap(), attempt }, "{id}");
            assert_eq!(facts.run, job["run_id"].as_u64().unwrap(), "{id}");
            let repository = payload["repository"]["full_name"].as_str().unwrap().to_lowercase();
            assert_eq!(facts.repository.to_string(), repository, "{id}");
            let labels: BTreeSet<String> =
                job["labels"].as_array().unwrap().iter().map(|label| label.as_str().unwrap().to_lowercase()).collect();
            assert_eq!(facts.labels, labels, "{id}");
            let ended = job["conclusion"].as_str().filter(|_| facts.state == State::Completed);
            assert_eq!(facts.conclusion.as_deref(), ended, "{id}");
            assert_eq!(State::read(job["status"].as_str().unwrap()), Some(facts.state), "{id}");
            states.insert(facts.state);
        }
    }
    assert!(states.contains(&State::Queued) && states.contains(&State::Completed), "{states:?}");
    assert!(others > 100, "{others}");
}
