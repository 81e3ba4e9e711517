//! Jobs that wait or run.

use super::{a_moment, app, ask, connect, jit, mended_by, organization, person, repository, settings, start, wanted};
use fleet::forge::{Answer, Ask, Failure, JobId, JobStatus, Jobs};
use playground::github::{Fault, FaultEffect, JobSpec, Method, Rerun};

async fn jobs(github: &super::Github, repositories: Option<&[&str]>) -> Jobs {
    let repositories = repositories.map(|names| names.iter().map(|name| repository(name)).collect());
    match ask(github, Ask::ListJobs { repositories }).await {
        Ok(Answer::Jobs(found)) => found,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn queued_and_running_jobs_of_all_repositories_are_found_by_attempt() {
    let stand_in = start(|_| {});
    let (first, matrix) = stand_in.with(|state, now| {
        let first = state.push_job(&JobSpec::new("acme/shop", &["self-hosted", "pve"]), now);
        // More jobs than a page has.
        let specs: Vec<JobSpec> = (0..130)
            .map(|number| {
                let mut spec = JobSpec::new("acme/site", &["gpu"]);
                spec.name = format!("job {number:03}");
                spec
            })
            .collect();
        (first, state.push_run(&specs, now))
    });
    for credentials in [app(&stand_in), person(&stand_in)] {
        let github = connect(&settings(&stand_in, "acme", credentials));
        let found = jobs(&github, None).await;
        assert_eq!((found.jobs.len(), found.unread.len()), (131, 0));
        let job = &found.jobs[&JobId(first)];
        assert_eq!((&job.status, job.attempt, job.repository.to_string()), (&JobStatus::Queued, 1, "acme/shop".into()));
        assert_eq!(job.labels, ["pve".to_owned(), "self-hosted".to_owned()].into());
        let one = jobs(&github, Some(&["acme/shop"])).await;
        assert_eq!((one.jobs.len(), one.read), (1, [repository("acme/shop")].into()), "only that was read");
        assert_eq!(found.jobs.values().filter(|job| job.run == matrix).count(), 130);
    }
    let github = organization(&stand_in);
    let runner = jit(&github, wanted("vm-1")).await;
    stand_in.with(|state, now| state.runner_online(runner.config.expose(), now).unwrap());
    let running = loop {
        let job = jobs(&github, Some(&["acme/shop"])).await.jobs.remove(&JobId(first)).unwrap();
        if job.status == JobStatus::InProgress {
            break job;
        }
        a_moment().await;
    };
    assert_eq!(running.runner, Some((runner.runner, "vm-1".into())));
    stand_in.with(|state, now| state.runner_finished(runner.runner.0, playground::github::Conclusion::Failure, now));
    assert!(jobs(&github, Some(&["acme/shop"])).await.jobs.is_empty());
    let again = stand_in.with(|state, now| state.rerun(running.run, Rerun::All, now));
    let found = jobs(&github, Some(&["acme/shop"])).await.jobs;
    assert_eq!(found[&JobId(again[0])].attempt, 2, "a re-run is another job");
}

#[tokio::test]
async fn reading_an_unchanged_queue_again_costs_nothing() {
    let stand_in = start(|_| {});
    stand_in.with(|state, now| state.push_job(&JobSpec::new("acme/shop", &["pve"]), now));
    let github = organization(&stand_in);
    let found = jobs(&github, None).await;
    let used = || stand_in.with(|state, _| state.budgets()["installation ID 51000001"]);
    let (before, requests) = (used(), stand_in.requests().len());
    for _ in 0..10 {
        assert_eq!(jobs(&github, None).await, found);
    }
    assert_eq!(
        (used(), stand_in.requests().len() - requests),
        (before, 80),
        "8 requests each: repositories, 6 lists, 1 run"
    );
}

#[tokio::test]
async fn one_repository_that_cannot_be_read_hides_no_other() {
    let stand_in = start(|_| {});
    stand_in.with(|state, now| state.push_job(&JobSpec::new("acme/shop", &["pve"]), now));
    let github = organization(&stand_in);
    stand_in.inject(Fault::once(
        Method::Get,
        "/repos/acme/docs/actions/runs",
        FaultEffect::Fail(502, "Server Error".into()),
    ));
    let found = jobs(&github, None).await;
    assert_eq!((found.jobs.len(), found.unread.len()), (1, 1));
    assert!(found.read.contains(&repository("acme/shop")) && !found.read.contains(&repository("acme/docs")));
    assert!(found.unread[&repository("acme/docs")].contains("Server Error (502)"), "{found:?}");
    let none = Ask::ListJobs { repositories: Some([repository("acme/nowhere")].into()) };
    let said = mended_by(ask(&github, none).await);
    assert!(said.contains("listing jobs of acme/nowhere"), "{said}");
    let enterprise = connect(&settings(&stand_in, "enterprises/acme-corp", person(&stand_in)));
    let said = mended_by(ask(&enterprise, Ask::ListJobs { repositories: None }).await);
    assert!(said.contains("name the repositories"), "{said}");
    assert_eq!(jobs(&enterprise, Some(&["acme/shop"])).await.jobs.len(), 1);
}

#[tokio::test]
async fn one_job_is_read_and_one_that_is_not_there_is_told_from_one_that_is_not_seen() {
    let stand_in = start(|_| {});
    let id = stand_in.with(|state, now| state.push_job(&JobSpec::new("acme/shop", &["pve"]), now));
    let github = organization(&stand_in);
    let of = |name: &str, id: u64| Ask::Job { repository: repository(name), id: JobId(id) };
    match ask(&github, of("acme/shop", id)).await {
        Ok(Answer::Job(Some(job))) => assert_eq!((job.id, job.status), (JobId(id), JobStatus::Queued)),
        other => panic!("{other:?}"),
    }
    assert_eq!(ask(&github, of("acme/shop", 7)).await, Ok(Answer::Job(None)));
    assert_eq!(ask(&github, of("acme/nowhere", id)).await, Ok(Answer::NoRepository));
    // One that was transferred is at another address.
    let moved = FaultEffect::Fail(301, "Moved Permanently".into());
    stand_in.inject(Fault::once(Method::Get, "/repos/acme/shop", moved).times(2));
    assert_eq!(ask(&github, of("acme/shop", id)).await, Ok(Answer::NoRepository));
    // Whoever does not see the scope knows nothing of its repositories.
    stand_in.inject(Fault::once(Method::Get, "/orgs/acme/actions/runners", FaultEffect::Fail(404, "Not Found".into())));
    let failure = ask(&github, of("acme/nowhere", id)).await.unwrap_err();
    assert!(matches!(failure, Failure::Configuration { .. }), "{failure:?}");
}
