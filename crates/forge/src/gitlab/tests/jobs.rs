//! Jobs: of a group, a project or a server, in pages, and one of them.

use super::{ask, connect, group, jit, mended_by, repository, settings, start, token_of};
use crate::gitlab::Gitlab;
use fleet::forge::{Answer, Ask, Job, JobId, JobStatus, Jobs};
use playground::gitlab::{Fault, FaultEffect, Method, Setup};
use std::collections::BTreeSet;

async fn list(gitlab: &Gitlab, named: Option<&[&str]>) -> Jobs {
    let repositories = named.map(|named| named.iter().map(|path| repository(path)).collect::<BTreeSet<_>>());
    match ask(gitlab, Ask::ListJobs { repositories }).await {
        Ok(Answer::Jobs(found)) => found,
        other => panic!("{other:?}"),
    }
}

async fn read(gitlab: &Gitlab, path: &str, id: u64) -> Option<Box<Job>> {
    match ask(gitlab, Ask::Job { repository: repository(path), id: JobId(id) }).await {
        Ok(Answer::Job(found)) => found,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_open_jobs_of_a_group_are_listed_with_those_of_its_subgroups() {
    let stand_in = start(|_| {});
    let gitlab = group(&stand_in);
    let found = jit(&gitlab, "vm-1", &["pve"]).await;
    let token = token_of(&stand_in, found.runner);
    let (running, queued, ended, foreign) = stand_in.with(|state, now| {
        let running = state.push_job("acme/lab/robot", &["pve"], now);
        assert_eq!(state.runner_asks(&token, now), Some(running));
        let queued = state.push_job("acme/shop", &[], now);
        let ended = state.push_job("acme/shop", &["pve"], now);
        state.finish(ended, "failed", now);
        let waiting = state.push_job("acme/shop", &["pve"], now);
        state.set_status(waiting, "manual");
        (running, queued, ended, state.push_job("other/secret", &["pve"], now))
    });
    let listed = list(&gitlab, None).await;
    assert_eq!(listed.jobs.keys().map(|id| id.0).collect::<Vec<_>>(), [running, queued]);
    assert!(listed.unread.is_empty() && !listed.jobs.contains_key(&JobId(foreign)));
    let job = &listed.jobs[&JobId(running)];
    assert_eq!((job.repository.to_string().as_str(), &job.status), ("acme/lab/robot", &JobStatus::InProgress));
    assert_eq!(job.runner, Some((found.runner, "vm-1".to_owned())));
    assert_eq!((job.attempt, job.labels.clone()), (1, ["pve".to_owned()].into()));
    assert!(job.created.is_some() && job.run != 0);
    assert_eq!(listed.jobs[&JobId(queued)].labels, ["untagged".to_owned()].into());
    let job = read(&gitlab, "acme/shop", ended).await.unwrap();
    assert_eq!(job.status, JobStatus::Completed("failure".into()));
    let again = stand_in.with(|state, now| state.retry(ended, now)).unwrap();
    assert_eq!(read(&gitlab, "acme/shop", again).await.unwrap().status, JobStatus::Queued, "a retry is another job");
    assert_eq!(read(&gitlab, "acme/shop", ended).await.unwrap().status, JobStatus::Completed("failure".into()));
}

#[tokio::test]
async fn jobs_are_read_by_key_to_the_last_page() {
    let stand_in = start(|_| {});
    let pushed: BTreeSet<u64> =
        stand_in.with(|state, now| (0..230).map(|_| state.push_job("acme/shop", &["pve"], now)).collect());
    for path in ["acme", "acme/shop"] {
        let gitlab = connect(&settings(&stand_in, path, Setup::TOKEN));
        stand_in.forget_requests();
        let listed = list(&gitlab, None).await;
        assert_eq!(listed.jobs.keys().map(|id| id.0).collect::<BTreeSet<_>>(), pushed, "{path}");
        assert_eq!(stand_in.count(Method::Get, "/projects/acme/shop/jobs"), 3);
    }
    let admin = connect(&settings(&stand_in, "", Setup::ADMIN_TOKEN));
    stand_in.with(|state, now| state.push_job("other/secret", &["pve"], now));
    assert_eq!(list(&admin, None).await.jobs.len(), 231);
}

#[tokio::test]
async fn what_cannot_be_read_is_named_and_nothing_is_known_of_it() {
    let stand_in = start(|_| {});
    let gitlab = group(&stand_in);
    let job = stand_in.with(|state, now| state.push_job("acme/shop", &["pve"], now));
    let listed = list(&gitlab, Some(&["acme/shop", "other/secret"])).await;
    assert_eq!(listed.jobs.keys().map(|id| id.0).collect::<Vec<_>>(), [job]);
    assert!(listed.unread[&repository("other/secret")].contains("404 Project Not Found"), "{:?}", listed.unread);
    let only = Some([repository("other/secret")].into());
    mended_by(ask(&gitlab, Ask::ListJobs { repositories: only }).await);
    assert_eq!(read(&gitlab, "acme/shop", 999_999).await, None, "surely none");
    mended_by(ask(&gitlab, Ask::Job { repository: repository("other/secret"), id: JobId(1) }).await);
    stand_in.inject(Fault::once(Method::Get, "/jobs", FaultEffect::Fail(502, "Bad Gateway".into())));
    let failure = ask(&gitlab, Ask::Job { repository: repository("acme/shop"), id: JobId(job) }).await.unwrap_err();
    assert_eq!(failure.class(), fleet::forge::Class::Transient, "{failure:?}");
}
