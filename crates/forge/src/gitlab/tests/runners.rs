//! Runners: registered for one job, listed in pages, and never removed while they have a job.

use super::{ask, connect, group, jit, mended_by, runners, settings, start, token_of, wanted};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fleet::forge::{Answer, Ask, Failure, RunnerId, ScaleSetAsk, ScaleSetId};
use playground::gitlab::{Fault, FaultEffect, Method, Setup};
use serde_json::Value;

#[tokio::test]
async fn a_runner_is_registered_listed_busy_and_removed() {
    for says_busy in [true, false] {
        let stand_in = start(|setup| setup.says_busy = says_busy);
        let gitlab = group(&stand_in);
        let found = jit(&gitlab, "vm-1", &["pve"]).await;
        let registered = stand_in.with(|state, _| state.runners()[&found.runner.0].clone());
        assert_eq!((registered.tags, registered.runs_untagged), (["pve".to_owned()].into(), false));
        let files: Value = serde_json::from_slice(&STANDARD.decode(found.config.expose()).unwrap()).unwrap();
        let settings = String::from_utf8(STANDARD.decode(files[".credentials"].as_str().unwrap()).unwrap()).unwrap();
        assert!(settings.contains(&registered.token) && settings.contains(&stand_in.address), "{settings}");
        assert!(!format!("{found:?}").contains(found.config.expose()));
        let listed = runners(&gitlab, None).await;
        let runner = &listed.runners[&found.runner];
        assert_eq!((runner.name.as_str(), runner.is_online, runner.is_busy), ("vm-1", false, false));
        assert!(listed.is_complete);
        let job = stand_in.with(|state, now| {
            let job = state.push_job("acme/shop", &["pve"], now);
            assert_eq!(state.runner_asks(&registered.token, now), Some(job));
            job
        });
        let runner = runners(&gitlab, Some("vm-1")).await.runners.remove(&found.runner).unwrap();
        assert_eq!((runner.is_online, runner.is_busy), (true, true), "{says_busy}");
        stand_in.forget_requests();
        assert_eq!(ask(&gitlab, Ask::RemoveRunner(found.runner)).await, Err(Failure::StillBusy(found.runner)));
        assert_eq!((stand_in.count(Method::Delete, ""), stand_in.count(Method::Put, "")), (0, 0), "it is not touched");
        stand_in.with(|state, _| state.set_status(job, "canceling"));
        assert_eq!(ask(&gitlab, Ask::RemoveRunner(found.runner)).await, Err(Failure::StillBusy(found.runner)));
        stand_in.with(|state, now| state.finish(job, "success", now));
        assert_eq!(ask(&gitlab, Ask::RemoveRunner(found.runner)).await, Ok(Answer::Done));
        assert!(runners(&gitlab, None).await.runners.is_empty());
        assert_eq!(ask(&gitlab, Ask::RemoveRunner(found.runner)).await, Ok(Answer::Done), "it is gone");
    }
}

/// GitLab deletes a runner with a job without a question.
#[tokio::test]
async fn a_runner_that_gets_a_job_right_before_it_is_paused_is_not_removed() {
    for says_busy in [true, false] {
        let stand_in = start(|setup| setup.says_busy = says_busy);
        let gitlab = group(&stand_in);
        let found = jit(&gitlab, "vm-1", &["pve"]).await;
        stand_in.with(|state, now| state.push_job("acme/shop", &["pve"], now));
        stand_in.inject(Fault::once(Method::Put, "/runners/", FaultEffect::RunnerAsks(found.runner.0)));
        assert_eq!(ask(&gitlab, Ask::RemoveRunner(found.runner)).await, Err(Failure::StillBusy(found.runner)));
        assert!(stand_in.with(|state, _| state.is_busy(found.runner.0)), "{says_busy}");
        assert_eq!(stand_in.count(Method::Delete, "/runners/"), 0);
    }
    // Once it is paused, it gets none.
    let stand_in = start(|_| {});
    let gitlab = group(&stand_in);
    let found = jit(&gitlab, "vm-1", &["pve"]).await;
    stand_in.with(|state, now| state.push_job("acme/shop", &["pve"], now));
    stand_in.inject(Fault::once(Method::Delete, "/runners/", FaultEffect::RunnerAsks(found.runner.0)));
    assert_eq!(ask(&gitlab, Ask::RemoveRunner(found.runner)).await, Ok(Answer::Done));
    assert!(stand_in.with(|state, _| state.jobs().values().all(|job| job.status == "pending")));
}

/// Jobs of a runner are listed only where the credentials see their projects.
#[tokio::test]
async fn what_a_runner_says_of_itself_is_enough_to_keep_it() {
    let stand_in = start(|_| {});
    let admin = connect(&settings(&stand_in, "", Setup::ADMIN_TOKEN));
    let found = jit(&admin, "vm-1", &["pve"]).await;
    let token = token_of(&stand_in, found.runner);
    stand_in.with(|state, now| {
        state.push_job("other/secret", &["pve"], now);
        state.runner_asks(&token, now).unwrap();
    });
    stand_in.inject(Fault::once(Method::Get, "/jobs", FaultEffect::Fail(500, "500 Internal Server Error".into())));
    assert_eq!(ask(&admin, Ask::RemoveRunner(found.runner)).await, Err(Failure::StillBusy(found.runner)));
}

#[tokio::test]
async fn a_runner_that_cannot_be_seen_any_more_is_not_gone() {
    let stand_in = start(|_| {});
    let gitlab = group(&stand_in);
    let found = jit(&gitlab, "vm-1", &["pve"]).await;
    stand_in.with(|state, _| state.set_role(Setup::TOKEN, "acme", 0));
    mended_by(ask(&gitlab, Ask::RemoveRunner(found.runner)).await);
    mended_by(ask(&gitlab, Ask::RemoveRunner(RunnerId(999_999))).await);
    assert_eq!(stand_in.with(|state, _| state.runners().len()), 1);
}

#[tokio::test]
async fn a_lost_answer_leaves_a_runner_that_is_found_by_its_name() {
    let stand_in = start(|_| {});
    let gitlab = group(&stand_in);
    stand_in.inject(Fault::once(Method::Post, "/user/runners", FaultEffect::LoseReply));
    let failure = ask(&gitlab, Ask::JitConfig(wanted("vm-1", &["pve"]))).await.unwrap_err();
    assert!(matches!(failure, Failure::Transient(_)), "{failure:?}");
    jit(&gitlab, "vm-2", &["pve"]).await;
    assert_eq!(ask(&gitlab, Ask::JitConfig(wanted("vm-1", &["pve"]))).await, Err(Failure::Exists("vm-1".into())));
    let left = runners(&gitlab, Some("vm-1")).await.runners.into_keys().next().unwrap();
    assert_eq!(ask(&gitlab, Ask::RemoveRunner(left)).await, Ok(Answer::Done));
    assert_ne!(jit(&gitlab, "vm-1", &["pve"]).await.runner, left);
    assert_eq!(stand_in.with(|state, _| state.runners().len()), 2);
    // A request that never arrived leaves none.
    stand_in.inject(Fault::once(Method::Post, "/user/runners", FaultEffect::Drop));
    ask(&gitlab, Ask::JitConfig(wanted("vm-3", &["pve"]))).await.unwrap_err();
    jit(&gitlab, "vm-3", &["pve"]).await;
}

#[tokio::test]
async fn a_list_is_read_in_pages_to_its_end() {
    let stand_in = start(|_| {});
    let gitlab = group(&stand_in);
    for number in 0..101 {
        jit(&gitlab, &format!("vm-{number}"), &["pve"]).await;
    }
    stand_in.forget_requests();
    let listed = runners(&gitlab, None).await;
    assert_eq!((listed.runners.len(), listed.is_complete), (101, true));
    assert_eq!(stand_in.count(Method::Get, "/runners"), 2);
    assert_eq!(runners(&gitlab, Some("vm-100")).await.runners.len(), 1);
}

#[tokio::test]
async fn jobs_without_tags_go_to_runners_that_want_them() {
    let stand_in = start(|_| {});
    let gitlab = group(&stand_in);
    let found = jit(&gitlab, "vm-1", &["untagged"]).await;
    let runner = stand_in.with(|state, _| state.runners()[&found.runner.0].clone());
    assert!(runner.runs_untagged && runner.tags.is_empty());
}

#[tokio::test]
async fn what_gitlab_does_not_have_is_refused_for_good() {
    let stand_in = start(|_| {});
    let gitlab = group(&stand_in);
    let mut grouped = wanted("vm-1", &["pve"]);
    grouped.group = Some("vms".into());
    assert!(mended_by(ask(&gitlab, Ask::JitConfig(grouped)).await).contains("no runner groups"));
    for asked in [Ask::RunnerVersions, Ask::ScaleSet(ScaleSetAsk::Delete(ScaleSetId(1)))] {
        let failure = ask(&gitlab, asked).await.unwrap_err();
        assert!(matches!(&failure, Failure::Permanent(text) if text.starts_with("GitLab has no ")), "{failure:?}");
    }
    let many: Vec<String> = (0..51).map(|number| format!("tag-{number}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let failure = ask(&gitlab, Ask::JitConfig(wanted("vm-1", &many))).await.unwrap_err();
    assert!(matches!(failure, Failure::Permanent(_)), "{failure:?}");
    assert!(stand_in.requests().is_empty(), "nothing is asked");
}
