//! Servers that fail, answer late or not at all.

use super::{app, ask, connect, organization, person, runners, settings, start, wanted};
use fleet::forge::{Ask, Failure};
use playground::github::{Fault, FaultEffect, Method};
use std::time::{Duration, Instant};

fn transient(failure: Failure) -> String {
    match failure {
        Failure::Transient(message) => message,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn errors_and_lost_answers_are_transient_and_nothing_is_repeated() {
    let stand_in = start(|_| {});
    let github = organization(&stand_in);
    runners(&github, None).await;
    for (effect, expected) in [
        (FaultEffect::Fail(502, "Server Error".into()), "Server Error (502)"),
        (FaultEffect::FailAfter(500, "Oops".into()), "Oops (500)"),
        (FaultEffect::Drop, ""),
        (FaultEffect::LoseReply, ""),
    ] {
        stand_in.forget_requests();
        stand_in.inject(Fault::once(Method::Delete, "/actions/runners/7", effect.clone()));
        let failure = ask(&github, Ask::RemoveRunner(fleet::forge::RunnerId(7))).await.unwrap_err();
        let message = transient(failure);
        assert!(message.contains("removing runner 7 at 127.0.0.1") && message.contains(expected), "{message}");
        assert_eq!(stand_in.count(Method::Delete, ""), 1, "{effect:?}");
    }
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_given_up_in_time() {
    let stand_in = start(|_| {});
    let mut settings = settings(&stand_in, "acme", person(&stand_in));
    settings.limits.request = Duration::from_millis(500);
    let github = connect(&settings);
    runners(&github, None).await;
    stand_in.inject(Fault::once(Method::Get, "/actions/runners", FaultEffect::Delay(Duration::from_secs(30))));
    let started = Instant::now();
    let message = transient(ask(&github, Ask::ListRunners { name: None }).await.unwrap_err());
    assert!(message.contains("no answer within 1 s") && started.elapsed() < Duration::from_secs(5), "{message}");
    runners(&github, None).await;
}

#[tokio::test]
async fn a_host_that_fails_again_and_again_is_left_alone_for_a_while() {
    let stand_in = start(|_| {});
    let github = organization(&stand_in);
    runners(&github, None).await;
    stand_in
        .inject(Fault::once(Method::Get, "/actions/runners", FaultEffect::Fail(503, "Unavailable".into())).times(5));
    stand_in.forget_requests();
    for _ in 0..5 {
        transient(ask(&github, Ask::ListRunners { name: None }).await.unwrap_err());
    }
    let closed = Instant::now();
    for _ in 0..100 {
        let message = transient(ask(&github, Ask::JitConfig(wanted("vm-1"))).await.unwrap_err());
        assert!(message.contains("failed several times in a row and is not asked before"), "{message}");
    }
    assert_eq!(stand_in.requests().len(), 5, "a hundred requests were not sent");
    tokio::time::sleep(Duration::from_secs(5).saturating_sub(closed.elapsed())).await;
    runners(&github, None).await;
    runners(&github, None).await;
}

/// The token of an installation is asked for again after a failure, and by one request at a time.
#[tokio::test]
async fn a_login_that_fails_is_tried_again_by_the_next_request() {
    let stand_in = start(|_| {});
    let github = connect(&settings(&stand_in, "acme", app(&stand_in)));
    stand_in.inject(Fault::once(Method::Post, "access_tokens", FaultEffect::Fail(502, "Server Error".into())));
    transient(ask(&github, Ask::ListRunners { name: None }).await.unwrap_err());
    runners(&github, None).await;
    assert_eq!((stand_in.count(Method::Post, "access_tokens"), stand_in.count(Method::Get, "/installation")), (2, 1));
}

#[tokio::test]
async fn connections_that_are_closed_are_opened_again() {
    let stand_in = start(|_| {});
    let github = organization(&stand_in);
    runners(&github, None).await;
    for _ in 0..5 {
        stand_in.close_connections();
        // The server closes at some moment from now on: at most one request meets that, which is transient.
        let mut failures = 0;
        for _ in 0..20 {
            if let Err(failure) = ask(&github, Ask::ListRunners { name: None }).await {
                transient(failure);
                failures += 1;
            }
        }
        assert!(failures <= 1, "{failures}");
    }
}

/// A server that has gone answers nobody, and is not asked in a loop.
#[tokio::test]
async fn a_server_that_is_gone_is_transient() {
    let stand_in = start(|_| {});
    let github = connect(&settings(&stand_in, "acme", person(&stand_in)));
    drop(stand_in);
    for _ in 0..20 {
        transient(ask(&github, Ask::ListRunners { name: None }).await.unwrap_err());
    }
}
