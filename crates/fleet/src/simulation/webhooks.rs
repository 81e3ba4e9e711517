//! Webhooks that did not arrive are delivered again, so that jobs run although nobody polls for them.

use super::hub::LABEL;
use super::site::Site;
use crate::forge::Failure;
use crate::notice::Notice;
use serde_json::{Value, json};

/// A pool that hears of jobs by webhooks alone.
fn site(sources: &Value) -> Site {
    let mut site = Site::new(9);
    site.webhooks = true;
    let secrets = json!([{"name": "hook", "key": "secret"}]);
    site.pool_of("linux", &json!({"sources": sources, "webhookSecrets": secrets}), &json!({}));
    site.run_for(5);
    site
}

fn connected(site: &Site) -> (Value, String) {
    let all = site.status()["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|condition| condition["type"] == "Connected").unwrap_or_default();
    (found["status"].clone(), found["message"].as_str().unwrap_or_default().to_owned())
}

/// Three jobs while nothing arrives, and then a while in which it does.
fn lose_webhooks(site: &mut Site) {
    site.run_for(60);
    site.is_unreachable = true;
    for _ in 0..3 {
        site.push(LABEL);
    }
    site.run_for(60);
    site.is_unreachable = false;
    site.run_for(900);
}

#[test]
fn with_polls_off_jobs_whose_webhooks_were_lost_run_after_a_redelivery() {
    let mut site = site(&json!(["Webhook"]));
    lose_webhooks(&mut site);
    assert_eq!(site.left(), [""; 0], "{}", site.status());
    assert_eq!(site.hub.deliveries.asked.values().copied().collect::<Vec<_>>(), [1, 1, 1], "each is asked for once");
    let asked: u64 = site
        .notices
        .iter()
        .filter_map(|notice| match notice {
            Notice::WebhooksRedelivered { asked, .. } => Some(*asked),
            _ => None,
        })
        .sum();
    assert_eq!(asked, 3);
    assert!(connected(&site).1.ends_with("webhooks that could not be delivered are delivered again"));
    assert!(site.hub.deliveries.requests < 25, "{} requests in 17 minutes", site.hub.deliveries.requests);
}

#[test]
fn without_a_webhook_of_ours_nothing_is_delivered_again_and_polls_find_the_jobs() {
    let refused = Failure::Configuration {
        message: "looking for the webhook: Resource not accessible by integration (403)".into(),
        remedy: "grant Webhooks: read and write".into(),
    };
    for hook in [Ok(None), Err(refused)] {
        let mut only = site(&json!(["Webhook"]));
        only.hub.deliveries.hook = hook.clone();
        only.crash();
        lose_webhooks(&mut only);
        assert!(only.hub.deliveries.asked.is_empty());
        assert_eq!(only.hub.jobs.values().filter(|job| job.is_done).count(), 0, "nobody has heard of them");
        let (status, message) = connected(&only);
        assert_eq!(status, "True", "{message}");
        assert!(message.contains("are not delivered again") && only.hub.deliveries.requests <= 4, "{message}");
        let mut both = site(&json!(["Webhook", "Poll"]));
        both.hub.deliveries.hook = hook;
        both.crash();
        lose_webhooks(&mut both);
        assert_eq!(both.left(), [""; 0]);
    }
}

#[test]
fn an_event_is_asked_for_at_most_four_times_also_by_several_processes() {
    let mut site = site(&json!(["Webhook"]));
    site.is_unreachable = true;
    for _ in 0..3 {
        site.push(LABEL);
    }
    for _ in 0..6 {
        site.run_for(500);
        site.crash();
    }
    site.run_for(3_600);
    let asked: Vec<usize> = site.hub.deliveries.asked.values().copied().collect();
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|count| (2..=4).contains(count)), "{asked:?}");
    let quiet = site.hub.deliveries.asked.clone();
    site.run_for(7_200);
    assert_eq!(site.hub.deliveries.asked, quiet, "it ends");
}
