//! Limits of the platform: never exceeded, and pauses are kept.

use super::{Github, app, ask, connect, jit, person, settings, start, wanted};
use crate::settings::Settings;
use fleet::forge::{Answer, Ask, Failure, RunnerId};
use jiff::Timestamp;
use playground::github::{Fault, FaultEffect, GithubStandIn, Limits, Method};
use std::sync::Arc;
use std::time::Duration;

fn list() -> Ask {
    Ask::ListRunners { name: None }
}

/// Nothing waits for a limit: it fails at once.
fn hurried(stand_in: &GithubStandIn) -> Settings {
    let mut settings = settings(stand_in, "acme", person(stand_in));
    (settings.limits.wait, settings.limits.bulk_wait) = (Duration::ZERO, Duration::ZERO);
    settings
}

fn until(answer: Result<Answer, Failure>) -> Timestamp {
    match answer {
        Err(Failure::RateLimited { until, .. }) => until,
        other => panic!("{other:?}"),
    }
}

async fn pass(moment: Timestamp) {
    let left = Duration::try_from(moment.duration_since(Timestamp::now())).unwrap_or_default();
    tokio::time::sleep(left).await;
}

#[tokio::test]
async fn lists_stop_before_the_budget_is_used_up_and_removals_go_on() {
    let window = Duration::from_secs(6);
    let stand_in = start(|options| options.setup.limits = Limits { core: 50, window, ..Limits::default() });
    let github = connect(&hurried(&stand_in));
    let (mut number, limited) = (
        0,
        loop {
            // A list that changes each time.
            let found =
                ask(&github, Ask::ListRunners { name: Some(format!("vm-{}", stand_in.requests().len())) }).await;
            if found.is_err() {
                break found;
            }
        },
    );
    let moment = until(limited);
    assert!(moment > Timestamp::now() && moment < Timestamp::now() + Duration::from_secs(9), "{moment}");
    let used = stand_in.requests().len();
    assert!((45..50).contains(&used), "{used}");
    let failed = loop {
        match ask(&github, Ask::JitConfig(wanted(&format!("vm-{number}")))).await {
            Ok(_) => number += 1,
            failed => break failed,
        }
    };
    assert!(number >= 1 && until(failed) == moment);
    assert_eq!(stand_in.requests().len(), 50, "to the last one");
    assert_eq!(stand_in.with(|state, _| state.refused_by_limits()), 0);
    pass(moment).await;
    jit(&github, wanted("after")).await;
    assert_eq!(stand_in.with(|state, _| state.refused_by_limits()), 0);
}

#[tokio::test]
async fn a_budget_that_others_used_up_is_noticed_by_one_request() {
    let stand_in = start(|_| {});
    let github = connect(&hurried(&stand_in));
    stand_in.with(|state, _| state.exhaust_budgets());
    for _ in 0..20 {
        let moment = until(ask(&github, list()).await);
        assert!(moment > Timestamp::now() + Duration::from_secs(3000), "{moment}");
        assert_eq!(until(ask(&github, Ask::RemoveRunner(RunnerId(7))).await), moment);
    }
    assert_eq!((stand_in.requests().len(), stand_in.with(|state, _| state.refused_by_limits())), (1, 1));
}

#[tokio::test]
async fn a_secondary_limit_is_a_pause_for_all_that_is_kept() {
    for status in [403, 429] {
        let stand_in = start(|options| options.setup.limits.secondary_status = status);
        let github = connect(&hurried(&stand_in));
        jit(&github, wanted("vm-1")).await;
        stand_in.inject(Fault::once(Method::Post, "generate-jitconfig", FaultEffect::SecondaryLimit(2)));
        stand_in.forget_requests();
        let failure = ask(&github, Ask::JitConfig(wanted("vm-2"))).await.unwrap_err();
        let Failure::RateLimited { message, until } = failure else { panic!("{failure:?}") };
        assert!(message.contains("secondary rate limit") && message.contains("registering runner vm-2"), "{message}");
        for _ in 0..20 {
            assert!(matches!(ask(&github, list()).await, Err(Failure::RateLimited { .. })));
        }
        assert_eq!(stand_in.requests().len(), 1, "{status}: nothing is sent in the pause");
        pass(until).await;
        jit(&github, wanted("vm-2")).await;
    }
}

#[tokio::test]
async fn a_list_waits_for_the_end_of_a_short_pause() {
    let stand_in = start(|_| {});
    let github = connect(&settings(&stand_in, "acme", app(&stand_in)));
    ask(&github, list()).await.unwrap();
    stand_in.inject(Fault::once(Method::Get, "/actions/runners", FaultEffect::SecondaryLimit(1)));
    assert!(matches!(ask(&github, list()).await, Err(Failure::RateLimited { .. })));
    let asked = std::time::Instant::now();
    ask(&github, list()).await.unwrap();
    assert!(asked.elapsed() >= Duration::from_secs(1));
}

/// Many at once, with a platform that allows little: what is refused is refused here, and never there.
#[tokio::test]
async fn many_requests_at_once_exceed_no_limit() {
    let stand_in = start(|options| options.setup.limits = Limits { core: 300, points: 150, ..Limits::default() });
    let mut settings = hurried(&stand_in);
    settings.limits.budget.points = 150;
    let github: Arc<Github> = Arc::new(connect(&settings));
    let mut tasks = Vec::new();
    for number in 0..200 {
        let github = github.clone();
        tasks.push(tokio::spawn(async move {
            let asked = match number % 3 {
                0 => Ask::JitConfig(wanted(&format!("vm-{number}"))),
                1 => Ask::ListRunners { name: Some(format!("vm-{number}")) },
                _ => Ask::RemoveRunner(RunnerId(1_000_000 + number)),
            };
            ask(&github, asked).await.map(|_| ())
        }));
    }
    let (mut done, mut limited) = (0, 0);
    for task in tasks {
        match task.await.unwrap() {
            Ok(()) => done += 1,
            Err(Failure::RateLimited { .. }) => limited += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert!(done >= 10 && limited >= 20, "{done} {limited}");
    assert_eq!(stand_in.with(|state, _| state.refused_by_limits()), 0);
}
