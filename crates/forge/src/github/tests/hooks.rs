//! Deliveries of webhooks, and once more.

use super::{a_moment, app, ask, connect, mended_by, person, settings, start};
use crate::github::Github;
use fleet::forge::{Answer, Ask, Delivery, Hook};
use jiff::Timestamp;
use playground::github::{GithubStandIn, JobSpec, Method, Scope};
use std::time::Duration;

/// Nobody listens there, so that deliveries fail.
const RECEIVER: &str = "http://127.0.0.1:1/";

async fn deliveries(github: &Github, hook: Hook, since: Timestamp) -> Vec<Delivery> {
    match ask(github, Ask::Deliveries { hook, since }).await {
        Ok(Answer::Deliveries(found)) => found,
        other => panic!("{other:?}"),
    }
}

/// Jobs whose webhooks were sent in vain.
async fn failed(stand_in: &GithubStandIn, count: usize) {
    let before = stand_in.with(|state, _| state.deliveries().len());
    stand_in.with(|state, now| {
        for _ in 0..count {
            state.push_job(&JobSpec::new("acme/shop", &["pve"]), now);
        }
    });
    while stand_in.with(|state, _| state.deliveries().values().filter(|record| record.is_done).count() < before + count)
    {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn failed_deliveries_are_listed_since_a_moment_and_delivered_again() {
    let stand_in = start(|_| {});
    let scope = Scope::Organization("acme".into());
    let (of_app, of_scope) = stand_in.with(|state, _| {
        (state.add_hook(None, RECEIVER, Some("hush")), state.add_hook(Some(scope), RECEIVER, Some("hush")))
    });
    assert_ne!(of_app, of_scope);
    failed(&stand_in, 2).await;
    let github = connect(&settings(&stand_in, "acme", app(&stand_in)));
    let long_ago = Timestamp::now() - Duration::from_secs(3600);
    for hook in [Hook::App, Hook::Scope(of_scope)] {
        let found = deliveries(&github, hook, long_ago).await;
        assert_eq!(found.len(), 2, "{hook:?} {found:?}");
        assert!(found[0].id > found[1].id && !found[0].is_accepted && !found[0].is_redelivery, "{found:?}");
        assert_eq!(found[0].event, ("workflow_job".into(), Some("queued".into())));
        assert!(deliveries(&github, hook, Timestamp::now() + Duration::from_secs(60)).await.is_empty());
        assert_eq!(ask(&github, Ask::Redeliver { hook, delivery: found[0].id }).await, Ok(Answer::Done));
        let again = loop {
            let again = deliveries(&github, hook, long_ago).await;
            if again.len() == 3 {
                break again;
            }
            a_moment().await;
        };
        assert!(again[0].is_redelivery && again[0].guid == found[0].guid, "{again:?}");
    }
    let person = connect(&settings(&stand_in, "acme", person(&stand_in)));
    assert_eq!(deliveries(&person, Hook::Scope(of_scope), long_ago).await.len(), 3);
    let said = mended_by(ask(&person, Ask::Deliveries { hook: Hook::App, since: long_ago }).await);
    assert!(said.contains("give the credentials of a GitHub App"), "{said}");
}

#[tokio::test]
async fn deliveries_are_read_page_by_page_only_as_far_as_needed() {
    let stand_in = start(|_| {});
    stand_in.with(|state, _| state.add_hook(None, RECEIVER, None));
    failed(&stand_in, 130).await;
    // Moments are whole seconds, and a delivery of the second before may be listed.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let since = Timestamp::now();
    failed(&stand_in, 3).await;
    let github = connect(&settings(&stand_in, "acme", app(&stand_in)));
    assert_eq!(deliveries(&github, Hook::App, since - Duration::from_secs(3600)).await.len(), 133);
    stand_in.forget_requests();
    let found = deliveries(&github, Hook::App, since).await;
    assert_eq!((found.len(), stand_in.count(Method::Get, "/deliveries")), (3, 1));
}

#[tokio::test]
async fn the_webhook_that_is_sent_to_an_address_is_found_and_no_other() {
    const OURS: &str = "https://fleet.example/webhooks/github";
    let stand_in = start(|_| {});
    let scope = Scope::Organization("acme".into());
    let of_scope = stand_in.with(|state, _| {
        for number in 0..120 {
            state.add_hook(Some(scope.clone()), &format!("https://other.example/{number}"), None);
        }
        state.add_hook(Some(scope.clone()), OURS, None)
    });
    let find = |address: Option<&str>| Ask::FindHook { address: address.map(str::to_owned) };
    let (of_app, person) = (
        connect(&settings(&stand_in, "acme", app(&stand_in))),
        connect(&settings(&stand_in, "acme", person(&stand_in))),
    );
    assert_eq!(ask(&of_app, find(None)).await, Ok(Answer::Hook(None)), "the App has none");
    for address in [OURS, "https://Fleet.example/webhooks/github/"] {
        assert_eq!(ask(&person, find(Some(address))).await, Ok(Answer::Hook(Some(Hook::Scope(of_scope)))));
    }
    assert_eq!(ask(&person, find(None)).await, Ok(Answer::Hook(None)), "it may be the webhook of somebody else");
    assert_eq!(ask(&person, find(Some("https://other.example/no"))).await, Ok(Answer::Hook(None)));
    stand_in.with(|state, _| state.add_hook(None, OURS, None));
    for address in [None, Some(OURS)] {
        assert_eq!(ask(&of_app, find(address)).await, Ok(Answer::Hook(Some(Hook::App))));
    }
    let elsewhere = ask(&of_app, find(Some("https://else.example/webhooks/github"))).await;
    assert_ne!(elsewhere, Ok(Answer::Hook(Some(Hook::App))), "the App's is another one");
}
