//! Limits, pauses, and servers that fail: the same budget and the same breaker as for GitHub.

use super::{ask, connect, group, jit, settings, start, wanted};
use crate::exchange::{Exchange, Status};
use crate::gitlab::Gitlab;
use crate::settings::Settings;
use fleet::forge::{Answer, Ask, Class, Failure, RunnerId};
use jiff::Timestamp;
use playground::gitlab::{Fault, FaultEffect, GitlabStandIn, Method, Setup};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Nothing waits for a limit: it fails at once.
fn hurried(stand_in: &GitlabStandIn) -> Settings {
    let mut settings = settings(stand_in, "acme", Setup::TOKEN);
    (settings.limits.wait, settings.limits.bulk_wait) = (Duration::ZERO, Duration::ZERO);
    settings
}

fn list() -> Ask {
    Ask::ListRunners { name: None }
}

fn until(answer: Result<Answer, Failure>) -> Timestamp {
    match answer {
        Err(Failure::RateLimited { until, .. }) => until,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn lists_stop_before_the_budget_is_used_up_and_no_request_is_refused() {
    let stand_in = start(|setup| setup.limits.requests = 50);
    let gitlab = connect(&hurried(&stand_in));
    let limited = loop {
        let found = ask(&gitlab, list()).await;
        if found.is_err() {
            break found;
        }
    };
    let moment = until(limited);
    assert!(moment > Timestamp::now() && moment < Timestamp::now() + Duration::from_secs(65), "{moment}");
    let used = stand_in.requests().len();
    assert!((40..50).contains(&used), "{used}");
    jit(&gitlab, "vm-1", &["pve"]).await;
    assert_eq!(stand_in.with(|state, _| state.refused_by_limits()), 0);
}

#[tokio::test]
async fn a_pause_that_is_asked_for_is_kept_by_all_and_ends() {
    let stand_in = start(|_| {});
    let gitlab = connect(&hurried(&stand_in));
    jit(&gitlab, "vm-1", &["pve"]).await;
    stand_in.inject(Fault::once(Method::Post, "/user/runners", FaultEffect::RetryLater(2)));
    stand_in.forget_requests();
    let moment = until(ask(&gitlab, Ask::JitConfig(wanted("vm-2", &["pve"]))).await);
    for _ in 0..20 {
        until(ask(&gitlab, list()).await);
        until(ask(&gitlab, Ask::RemoveRunner(RunnerId(7))).await);
    }
    assert_eq!(stand_in.requests().len(), 1, "nothing is sent in the pause");
    let left = Duration::try_from(moment.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(left).await;
    jit(&gitlab, "vm-2", &["pve"]).await;
    assert_eq!(stand_in.with(|state, _| state.runners().len()), 2, "what was refused was not carried out");
}

#[tokio::test]
async fn a_server_that_fails_is_left_alone_and_every_request_is_reported_without_names() {
    let stand_in = start(|_| {});
    let reported: Arc<Mutex<Vec<Exchange>>> = Arc::default();
    let report = reported.clone();
    let settings = settings(&stand_in, "acme", Setup::TOKEN);
    let gitlab = Gitlab::new(&settings, Arc::new(move |exchange| report.lock().unwrap().push(*exchange))).unwrap();
    jit(&gitlab, "vm-1", &["pve"]).await;
    stand_in.inject(Fault::once(Method::Get, "/runners", FaultEffect::Fail(502, "Bad Gateway".into())).times(100));
    let mut last = String::new();
    for _ in 0..30 {
        let failure = ask(&gitlab, list()).await.unwrap_err();
        assert_eq!(failure.class(), Class::Transient, "{failure:?}");
        last = failure.to_string();
    }
    assert!(last.contains("failed several times in a row"), "{last}");
    assert!(stand_in.count(Method::Get, "/runners") < 15);
    let reported = reported.lock().unwrap();
    let new = reported.iter().find(|exchange| exchange.method == "POST").unwrap();
    assert_eq!((new.path, new.status), ("/user/runners", Status::Success));
    assert!(new.remaining.is_some_and(|left| left < 2000));
    assert!(reported.iter().any(|exchange| exchange.path == "/groups/{group}/runners"));
}

#[tokio::test]
async fn an_answer_that_never_comes_is_no_refusal() {
    let stand_in = start(|_| {});
    let mut settings = settings(&stand_in, "acme", Setup::TOKEN);
    settings.limits.request = Duration::from_secs(2);
    let gitlab = connect(&settings);
    ask(&gitlab, list()).await.unwrap();
    stand_in.inject(Fault::once(Method::Get, "/runners", FaultEffect::Delay(Duration::from_secs(20))));
    let failure = ask(&gitlab, list()).await.unwrap_err();
    assert!(matches!(&failure, Failure::Transient(text) if text.contains("no answer within")), "{failure:?}");
}

/// Whatever answer of a removal is lost, repeating it removes the runner, and only once it has no job.
#[tokio::test]
async fn a_removal_that_broke_off_anywhere_is_completed() {
    for (method, part) in [(Method::Get, "/runners/"), (Method::Put, "/runners/"), (Method::Delete, "/runners/")] {
        let stand_in = start(|_| {});
        let gitlab = group(&stand_in);
        let found = jit(&gitlab, "vm-1", &["pve"]).await;
        stand_in.inject(Fault::once(method, part, FaultEffect::LoseReply));
        let failure = ask(&gitlab, Ask::RemoveRunner(found.runner)).await.unwrap_err();
        assert_eq!(failure.class(), Class::Transient, "{method:?}");
        assert_eq!(ask(&gitlab, Ask::RemoveRunner(found.runner)).await, Ok(Answer::Done), "{method:?}");
        assert!(stand_in.with(|state, _| state.runners().is_empty()));
    }
}
