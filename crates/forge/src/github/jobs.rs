//! Jobs that wait or run, and one job.

use crate::github::client::{Client, Sent};
use crate::github::login::Login;
use crate::github::trouble::{Need, Trouble};
use crate::github::wire::{JobPage, RepositoryPage, RunPage, WireJob, WireRepository};
use fleet::forge::{Answer, Failure, Job, JobId, JobStatus, Jobs, RepositoryName, Scope};
use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};

/// Repositories that are read at once; the budget decides about requests.
const AT_ONCE: usize = 8;
/// Runs that may have jobs without a runner.
const STATUSES: [&str; 2] = ["queued", "in_progress"];

/// Lists the jobs of repositories that have not ended. What cannot be read is named: that jobs are not listed does not say that there are none.
pub(crate) async fn list(client: &Client, repositories: Option<&BTreeSet<RepositoryName>>) -> Result<Answer, Failure> {
    let repositories = match (repositories, &client.address.scope) {
        (Some(named), _) => named.clone(),
        (None, Scope::Repository(name)) => [name.clone()].into(),
        (None, Scope::Organization(name)) => {
            let doing = format!("listing the repositories of {name}");
            let found = visible(client, name).await;
            found.map_err(|trouble| client.failure(&trouble, &doing, Need::Metadata))?
        }
        (None, Scope::Enterprise(name)) => {
            return Err(Failure::Configuration {
                message: format!("the repositories of the enterprise {name} cannot be listed"),
                remedy: "name the repositories of the pool".into(),
            });
        }
    };
    let reading = repositories.into_iter().map(|repository| async move {
        let jobs = of(client, &repository).await;
        (repository, jobs)
    });
    let results: Vec<_> = futures::stream::iter(reading).buffer_unordered(AT_ONCE).collect().await;
    let (mut found, mut first, total) = (Jobs::default(), None, results.len());
    for (repository, result) in results {
        match result {
            Ok(jobs) => {
                found.jobs.extend(jobs);
                found.read.insert(repository);
            }
            Err(trouble) => {
                let failure = client.failure(&trouble, &format!("listing jobs of {repository}"), Need::Actions);
                found.unread.insert(repository, failure.to_string());
                first.get_or_insert(failure);
            }
        }
    }
    match first {
        Some(failure) if found.unread.len() == total => Err(failure),
        _ => Ok(Answer::Jobs(found)),
    }
}

/// The repositories that the credentials see in an organisation.
async fn visible(client: &Client, organization: &str) -> Result<BTreeSet<RepositoryName>, Trouble> {
    let mut found = BTreeSet::new();
    for page in 1.. {
        let is_app = matches!(client.login, Login::App(_));
        let sent = match is_app {
            true => Sent::list("/installation/repositories", &[]),
            false => Sent::list("/orgs/{org}/repos", &[organization]),
        };
        let content = client.send(&sent.query("page", page.to_string())).await?;
        let repositories: Vec<WireRepository> = match is_app {
            true => content.read::<RepositoryPage>()?.repositories,
            false => content.read()?,
        };
        let names = repositories.iter().filter_map(WireRepository::name);
        found.extend(names.filter(|name| client.address.scope.covers(name)));
        if !content.has_next() {
            break;
        }
    }
    Ok(found)
}

/// The jobs of a repository that have not ended.
async fn of(client: &Client, repository: &RepositoryName) -> Result<BTreeMap<JobId, Job>, Trouble> {
    let RepositoryName { owner, name } = repository;
    let mut runs = BTreeSet::new();
    for status in STATUSES {
        for page in 1.. {
            let sent = Sent::list("/repos/{owner}/{repo}/actions/runs", &[owner, name]).query("status", status);
            let content = client.send(&sent.query("page", page.to_string())).await?;
            let found: RunPage = content.read()?;
            runs.extend(found.workflow_runs.into_iter().map(|run| (run.id, run.run_attempt)));
            if !content.has_next() {
                break;
            }
        }
    }
    let mut jobs = BTreeMap::new();
    for (run, attempt) in runs {
        for page in 1.. {
            let path = "/repos/{owner}/{repo}/actions/runs/{run}/attempts/{attempt}/jobs";
            let sent = Sent::list(path, &[owner, name, &run.to_string(), &attempt.to_string()]);
            let content = client.send(&sent.query("page", page.to_string())).await?;
            let found: JobPage = content.read()?;
            let found = found.jobs.into_iter().map(|job| job.job(repository));
            let open = found.filter(|job| !matches!(job.status, JobStatus::Completed(_)));
            jobs.extend(open.map(|job| (job.id, job)));
            if !content.has_next() {
                break;
            }
        }
    }
    Ok(jobs)
}

/// Reads one job.
pub(crate) async fn read(client: &Client, repository: &RepositoryName, id: JobId) -> Result<Answer, Failure> {
    let fail =
        |trouble: &Trouble| client.failure(trouble, &format!("reading job {} of {repository}", id.0), Need::Actions);
    let RepositoryName { owner, name } = repository;
    let sent = Sent::get("/repos/{owner}/{repo}/actions/jobs/{job}", &[owner, name, &id.0.to_string()]);
    match client.send(&sent).await {
        Ok(content) => {
            let job: WireJob = content.read().map_err(|trouble| fail(&trouble))?;
            Ok(Answer::Job(Some(Box::new(job.job(repository)))))
        }
        // A repository that is not seen any more answers the same; one that was transferred or renamed, with another address.
        Err(trouble) if is_elsewhere(&trouble) => {
            let seen = client.send(&Sent::get("/repos/{owner}/{repo}", &[owner, name])).await;
            match seen {
                Ok(_) if trouble.is(404) => Ok(Answer::Job(None)),
                Err(trouble) if is_elsewhere(&trouble) => {
                    // Without its scope, nothing is known of its repositories.
                    let scope = Sent::get("/{scope}/actions/runners", &[]).query("per_page", "1");
                    client.send(&scope).await.map(|_| Answer::NoRepository).map_err(|trouble| fail(&trouble))
                }
                Ok(_) => Err(fail(&trouble)),
                Err(trouble) => Err(fail(&trouble)),
            }
        }
        Err(trouble) => Err(fail(&trouble)),
    }
}

/// Whether nothing is at an address, or not any more.
fn is_elsewhere(trouble: &Trouble) -> bool {
    [301, 404].into_iter().any(|code| trouble.is(code))
}
