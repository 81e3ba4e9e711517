//! Logging in: as an App and as a person, with clocks that differ, tokens that end, and credentials that are not enough.

use super::{app, ask, connect, jit, mended_by, organization, person, runners, settings, start, wanted};
use crate::settings::{Credentials, Tls};
use fleet::forge::{Answer, Ask, RunnerId};
use playground::github::{Method, Setup};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn an_app_finds_its_installation_and_keeps_its_token() {
    let stand_in = start(|_| {});
    let github = Arc::new(organization(&stand_in));
    // Many at once, before there is a token.
    let asked: Vec<_> = (0..10)
        .map(|_| {
            let github = github.clone();
            tokio::spawn(async move { runners(&github, None).await })
        })
        .collect();
    for task in asked {
        assert!(task.await.unwrap().is_complete);
    }
    assert_eq!((stand_in.count(Method::Get, "/installation"), stand_in.count(Method::Post, "access_tokens")), (1, 1));
    match ask(&github, Ask::Check).await {
        Ok(Answer::Checked(checked)) => {
            assert_eq!(checked.login, format!("installation {} of the App {}", Setup::INSTALLATION, Setup::CLIENT_ID));
            assert_eq!((checked.version.as_deref(), checked.missing.len()), (Some("3.21.0"), 0));
            let (limit, left) = checked.budget.unwrap();
            assert!(limit == 5000 && left > 4900 && checked.clock_ahead.abs() < 3);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn every_scope_has_its_own_paths() {
    let stand_in = start(|_| {});
    for (path, credentials, expected) in [
        ("acme/shop", app(&stand_in), "/repos/acme/shop/actions/runners/generate-jitconfig"),
        ("acme/shop", person(&stand_in), "/repos/acme/shop/actions/runners/generate-jitconfig"),
        ("acme", person(&stand_in), "/orgs/acme/actions/runners/generate-jitconfig"),
        ("enterprises/acme-corp", person(&stand_in), "/enterprises/acme-corp/actions/runners/generate-jitconfig"),
    ] {
        let github = connect(&settings(&stand_in, path, credentials));
        stand_in.forget_requests();
        let found = jit(&github, wanted("vm-1")).await;
        assert_eq!(stand_in.count(Method::Post, expected), 1, "{path}");
        assert_eq!(runners(&github, None).await.runners.keys().collect::<Vec<_>>(), [&found.runner], "{path}");
        assert_eq!(ask(&github, Ask::RemoveRunner(found.runner)).await, Ok(Answer::Done), "{path}");
    }
    assert!(stand_in.with(|state, _| state.runners().is_empty()));
    let mut given = settings(&stand_in, "acme", app(&stand_in));
    let Credentials::App { installation, .. } = &mut given.credentials else { panic!() };
    *installation = Some(Setup::INSTALLATION);
    stand_in.forget_requests();
    runners(&connect(&given), None).await;
    assert_eq!(stand_in.count(Method::Get, "/installation"), 0, "what is given is not looked up");
}

#[tokio::test]
async fn clocks_that_differ_by_hours_do_not_matter() {
    for skew in [-7200, -300, 50, 300, 7200] {
        let stand_in = start(|_| {});
        stand_in.with(|state, _| state.skew = skew);
        let github = organization(&stand_in);
        assert!(runners(&github, None).await.is_complete, "{skew}");
        let tokens = stand_in.count(Method::Post, "access_tokens");
        runners(&github, None).await;
        assert_eq!(stand_in.count(Method::Post, "access_tokens"), tokens, "{skew}: the token is used again");
        match ask(&github, Ask::Check).await {
            Ok(Answer::Checked(checked)) => assert!((checked.clock_ahead - skew).abs() < 3, "{skew} {checked:?}"),
            other => panic!("{skew}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_token_is_renewed_before_its_end_and_when_it_is_refused() {
    let stand_in = start(|options| options.setup.timing.token = Duration::from_secs(4));
    let github = organization(&stand_in);
    let end = std::time::Instant::now() + Duration::from_secs(7);
    while std::time::Instant::now() < end {
        runners(&github, None).await;
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let refused = stand_in.requests().iter().filter(|line| line.status == Some(401)).count();
    let renewed = stand_in.count(Method::Post, "access_tokens");
    assert_eq!(refused, 0, "it is renewed in time");
    assert!((2..=4).contains(&renewed), "{renewed}");
    // A token that ends before its time, as by a change of the permissions of the App.
    let ended = start(|options| options.setup.timing.token = Duration::from_secs(3600));
    let github = organization(&ended);
    runners(&github, None).await;
    ended.inject(playground::github::Fault::once(
        Method::Get,
        "/actions/runners",
        playground::github::FaultEffect::Fail(401, "Bad credentials".into()),
    ));
    assert!(runners(&github, None).await.is_complete);
    assert_eq!(ended.count(Method::Post, "access_tokens"), 2);
}

#[tokio::test]
async fn credentials_that_are_not_enough_are_said_with_the_remedy() {
    let stand_in = start(|_| {});
    let list = || Ask::ListRunners { name: None };
    let with = |path: &str, credentials: Credentials| connect(&settings(&stand_in, path, credentials));
    let wrong_token = with("acme", Credentials::Token("ghp_wrong".into()));
    let said = mended_by(ask(&wrong_token, list()).await);
    assert!(said.contains("Bad credentials (401); renew the personal access token"), "{said}");
    assert!(!said.contains("ghp_wrong") && said.contains("127.0.0.1"), "{said}");

    let weak = with("acme", Credentials::Token(Setup::WEAK_TOKEN.into()));
    let said = mended_by(ask(&weak, list()).await);
    assert!(said.contains("use a personal access token with the scope admin:org"), "{said}");
    match ask(&weak, Ask::Check).await {
        Ok(Answer::Checked(checked)) => assert!(checked.missing[0].contains("admin:org"), "{checked:?}"),
        other => panic!("{other:?}"),
    }

    let mut other_app = app(&stand_in);
    let Credentials::App { id, .. } = &mut other_app else { panic!() };
    *id = "1".into();
    let said = mended_by(ask(&with("acme", other_app), list()).await);
    assert!(said.contains("check the id of the App"), "{said}");

    let said = mended_by(ask(&with("elsewhere", app(&stand_in)), list()).await);
    assert!(said.contains("is not installed in the organisation elsewhere; install the App there"), "{said}");
    let said = mended_by(ask(&with("elsewhere", person(&stand_in)), list()).await);
    assert!(said.contains("check the name of the organisation elsewhere"), "{said}");

    stand_in.with(|state, _| state.permissions.remove("organization_self_hosted_runners"));
    stand_in.with(|state, _| state.permissions.remove("actions"));
    let github = with("acme", app(&stand_in));
    let said = mended_by(ask(&github, list()).await);
    assert!(
        said.contains("grant the App the organisation permission \"Self-hosted runners\": read and write"),
        "{said}"
    );
    match ask(&github, Ask::Check).await {
        Ok(Answer::Checked(checked)) => {
            assert_eq!(checked.missing.len(), 2, "{checked:?}");
            assert!(checked.missing[1].contains("\"Actions\": read"), "{checked:?}");
        }
        other => panic!("{other:?}"),
    }
    // What is granted is used at once: a token keeps the permissions that it was made with.
    mended_by(ask(&github, list()).await);
    stand_in.forget_requests();
    let grant = |name: &str| stand_in.with(|state, _| state.permissions.insert(name.to_owned(), "write".into()));
    grant("organization_self_hosted_runners");
    ask(&github, list()).await.unwrap();
    assert_eq!(stand_in.count(Method::Post, "access_tokens"), 1);
}

/// What is not seen any more is not gone: its machine may still run a job.
#[tokio::test]
async fn a_runner_that_cannot_be_seen_is_not_removed() {
    let stand_in = start(|_| {});
    let github = connect(&settings(&stand_in, "elsewhere", person(&stand_in)));
    let said = mended_by(ask(&github, Ask::RemoveRunner(RunnerId(7))).await);
    assert!(said.contains("removing runner 7") && said.contains("organisation elsewhere"), "{said}");
}

#[tokio::test]
async fn a_certificate_of_another_authority_is_refused() {
    let (stand_in, other) = (start(|_| {}), start(|_| {}));
    let mut settings = settings(&stand_in, "acme", person(&stand_in));
    settings.tls = Tls::Authorities(other.ca_pem.clone());
    let said = mended_by(ask(&connect(&settings), Ask::ListRunners { name: None }).await);
    assert!(said.contains("not signed by a trusted CA") && said.contains("give the CA that signed it"), "{said}");
    assert!(stand_in.requests().is_empty());
}
