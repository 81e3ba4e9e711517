//! A client of GitLab's API that others wrote accepts the stand-in unchanged.

use playground::cache::Cache;
use playground::gitlab::{GitlabStandIn, Setup};
use playground::tools::Tools;
use playground::{Progress, UserError, gitlab_clients};

#[tokio::test]
async fn python_gitlab_accepts_the_stand_in_of_gitlab() {
    let script: Result<_, UserError> =
        async { gitlab_clients::ensure(&Tools::load()?, &Cache::open()?, Progress::detect()).await }.await;
    let script = script.unwrap_or_else(|error| panic!("{error}"));
    let mut setup = Setup::group();
    setup.limits.requests = 100;
    let stand_in = GitlabStandIn::start(&setup).unwrap_or_else(|error| panic!("{error}"));
    stand_in.with(|state, now| {
        for _ in 0..5 {
            state.push_job("acme/shop", &["pve"], now);
        }
    });
    let text = gitlab_clients::run(&script, &stand_in).unwrap_or_else(|error| panic!("{error}"));
    for line in [
        "version 18.5.1-ee, fleet with create_runner,manage_runner,read_api until 2027-11-18",
        "projects acme/lab/robot,acme/shop",
        "access level 50",
        "group_type: never_contacted, tags linux,pve, listed True",
        "group_type: paused True, 0 jobs",
        "group_type: 5 open jobs, the last one pending with tags pve",
        "group_type: removed, then 404 404 Runner Not Found",
        "project_type: removed, then 404 404 Runner Not Found",
        "hidden: 404 404 Project Not Found",
        "missing: 404 404 Not Found",
        "instance: 403 403 Forbidden",
        "all: 403 403 Forbidden",
        "wrong: 401 401 Unauthorized",
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
    }
    assert!(text.contains("scope: 403 insufficient_scope"), "{text}");
    assert!(text.contains("limit: 429 "), "{text}");
    assert_eq!(stand_in.with(|state, _| state.runners().len()), 0, "{text}");
    println!("python-gitlab 8.6.0: {} requests", stand_in.requests().len());
}
