//! Runners: registered, listed in pages, removed, and their versions.

use super::{a_moment, ask, connect, jit, mended_by, observed, organization, person, runners, settings, start, wanted};
use crate::exchange::Status;
use fleet::forge::{Answer, Ask, Failure, RunnerId};
use playground::github::{Fault, FaultEffect, JobSpec, Method, RunnerGroup, Scope};
use std::time::Duration;

#[tokio::test]
async fn a_runner_is_registered_listed_busy_and_removed() {
    let stand_in = start(|_| {});
    let (github, reported) = observed(&settings(&stand_in, "acme", super::app(&stand_in)));
    let found = jit(&github, wanted("vm-1")).await;
    let listed = runners(&github, None).await;
    let runner = &listed.runners[&found.runner];
    assert_eq!((runner.name.as_str(), runner.is_online, runner.is_busy), ("vm-1", false, false));
    assert_eq!(runner.labels, ["pve".to_owned(), "self-hosted".to_owned()].into());
    assert!(!format!("{found:?}").contains(found.config.expose()));
    // The configuration starts a runner, which gets a job and cannot be removed any more.
    stand_in.with(|state, now| {
        state.runner_online(found.config.expose(), now).unwrap();
        state.push_job(&JobSpec::new("acme/shop", &["pve"]), now);
    });
    while !runners(&github, Some("VM-1")).await.runners[&found.runner].is_busy {
        a_moment().await;
    }
    assert_eq!(ask(&github, Ask::RemoveRunner(found.runner)).await, Err(Failure::StillBusy(found.runner)));
    stand_in.with(|state, now| state.runner_finished(found.runner.0, playground::github::Conclusion::Success, now));
    while !runners(&github, None).await.runners.is_empty() {
        a_moment().await;
    }
    assert_eq!(ask(&github, Ask::RemoveRunner(found.runner)).await, Ok(Answer::Done), "it is gone");
    let reported = reported.lock().unwrap();
    let removal = reported.iter().find(|exchange| exchange.method == "DELETE").unwrap();
    assert_eq!((removal.path, removal.status), ("/{scope}/actions/runners/{runner}", Status::Refused));
    assert!(removal.remaining.is_some_and(|left| left < 5000));
}

#[tokio::test]
async fn a_lost_answer_leaves_a_runner_that_is_found_by_its_name() {
    let stand_in = start(|_| {});
    let github = organization(&stand_in);
    stand_in.inject(Fault::once(Method::Post, "generate-jitconfig", FaultEffect::LoseReply));
    let failure = ask(&github, Ask::JitConfig(wanted("vm-1"))).await.unwrap_err();
    assert!(matches!(failure, Failure::Transient(_)), "{failure:?}");
    assert_eq!(ask(&github, Ask::JitConfig(wanted("vm-1"))).await, Err(Failure::Exists("vm-1".into())));
    let left = runners(&github, Some("vm-1")).await.runners.into_keys().next().unwrap();
    assert_eq!(ask(&github, Ask::RemoveRunner(left)).await, Ok(Answer::Done));
    assert_ne!(jit(&github, wanted("vm-1")).await.runner, left);
    assert_eq!(stand_in.count(Method::Post, "generate-jitconfig"), 3, "nothing is repeated by itself");
}

#[tokio::test]
async fn a_list_is_read_in_pages_and_costs_nothing_while_it_stays_the_same() {
    let stand_in = start(|_| {});
    let github = connect(&settings(&stand_in, "acme", person(&stand_in)));
    for number in 0..101 {
        jit(&github, wanted(&format!("vm-{number}"))).await;
    }
    stand_in.forget_requests();
    let used = || stand_in.with(|state, _| state.budgets()["user ID 1"]);
    let before = used();
    let listed = runners(&github, None).await;
    assert_eq!((listed.runners.len(), listed.is_complete), (101, true));
    assert_eq!((stand_in.count(Method::Get, "/runners"), used() - before), (2, 2));
    for _ in 0..5 {
        assert_eq!(runners(&github, None).await, listed);
    }
    assert_eq!((stand_in.count(Method::Get, "/runners"), used() - before), (12, 2), "ten answers cost nothing");
}

#[tokio::test]
async fn groups_are_found_by_name_also_when_they_were_made_again() {
    let stand_in = start(|_| {});
    let scope = Scope::Organization("acme".into());
    let group = || RunnerGroup { id: 0, name: "Vms".into(), repositories: None, allows_public: false };
    let first = stand_in.with(|state, _| state.add_group(&scope, group()));
    let github = organization(&stand_in);
    let in_group = |name: &str, group: &str| {
        let mut wanted = wanted(name);
        wanted.group = Some(group.to_owned());
        wanted
    };
    let of = |id: RunnerId| stand_in.with(|state, _| state.runners()[&id.0].group);
    let found = jit(&github, in_group("vm-1", "vms")).await;
    assert_eq!(of(found.runner), first);
    jit(&github, in_group("vm-2", "vms")).await;
    assert_eq!(stand_in.count(Method::Get, "runner-groups"), 1);
    let said = mended_by(ask(&github, Ask::JitConfig(in_group("vm-3", "other"))).await);
    assert!(said.contains("has no runner group other; create it, or name one of these: Default, Vms"), "{said}");
    let path = format!("/orgs/acme/actions/runner-groups/{first}");
    stand_in.with(|state, now| {
        let deletion = github_stand_in::Request::new(Method::Delete, &path).token(github_stand_in::Setup::TOKEN);
        state.handle(&deletion, now);
    });
    let second = stand_in.with(|state, _| state.add_group(&scope, group()));
    let found = jit(&github, in_group("vm-4", "vms")).await;
    assert_eq!(of(found.runner), second);
    let repository = connect(&settings(&stand_in, "acme/shop", person(&stand_in)));
    let said = mended_by(ask(&repository, Ask::JitConfig(in_group("vm-5", "vms"))).await);
    assert!(said.contains("only organisations and enterprises have groups"), "{said}");
}

#[tokio::test]
async fn what_github_refuses_for_good_is_said_in_its_words() {
    let stand_in = start(|_| {});
    let github = organization(&stand_in);
    let failure = ask(&github, Ask::JitConfig(wanted(&"x".repeat(65)))).await.unwrap_err();
    assert!(matches!(&failure, Failure::Permanent(text) if text.contains("64 characters")), "{failure:?}");
}

#[tokio::test]
async fn versions_of_the_runner_have_addresses_and_checksums() {
    let stand_in = start(|_| {});
    let found = match ask(&organization(&stand_in), Ask::RunnerVersions).await {
        Ok(Answer::RunnerVersions(found)) => found,
        other => panic!("{other:?}"),
    };
    assert_eq!(found.len(), 2);
    assert_eq!(
        (found[0].version.as_str(), found[0].os.as_str(), found[0].architecture.as_str()),
        ("2.329.0", "linux", "x64")
    );
    assert!(found[0].url.starts_with("https://") && found[0].sha256.as_ref().is_some_and(|sum| sum.len() == 64));
}

/// A guest that downloads from an enterprise server trusts it by the same authorities.
#[tokio::test]
async fn a_check_says_which_authorities_the_server_is_trusted_by() {
    let stand_in = start(|_| {});
    let Ok(Answer::Checked(checked)) = ask(&organization(&stand_in), Ask::Check).await else { panic!("not checked") };
    assert_eq!(checked.authorities.as_deref(), Some(stand_in.ca_pem.as_str()));
}

/// GitHub shows a new runner late.
#[tokio::test]
async fn a_runner_that_is_not_shown_yet_is_no_error() {
    let stand_in = start(|options| options.setup.timing.list_lag = Duration::from_millis(300));
    let github = organization(&stand_in);
    let found = jit(&github, wanted("vm-1")).await;
    assert!(runners(&github, None).await.runners.is_empty());
    while !runners(&github, None).await.runners.contains_key(&found.runner) {
        a_moment().await;
    }
}
