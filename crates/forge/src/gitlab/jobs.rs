//! Jobs that wait or run, and one job.

use crate::github::trouble::Trouble;
use crate::gitlab::client::{Client, PAGE, Resolved, Sent};
use crate::gitlab::trouble::Need;
use crate::gitlab::wire::{WireJob, WireProject};
use fleet::forge::budget::Priority;
use fleet::forge::gitlab::project;
use fleet::forge::{Answer, Failure, Job, JobId, Jobs, RepositoryName};
use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet};

/// Projects that are read at once; the budget decides about requests.
const AT_ONCE: usize = 8;
/// Jobs that wait for a runner or have one, by the key of the last one: numbers of pages shift while jobs come and go.
const OPEN: &str = "scope[]=pending&scope[]=running&pagination=keyset&order_by=id&sort=desc";

/// Lists the jobs of projects that have not ended. What cannot be read is named: that jobs are not listed does not say that there are none.
pub(crate) async fn list(client: &Client, repositories: Option<&BTreeSet<RepositoryName>>) -> Result<Answer, Failure> {
    let projects = match repositories {
        Some(named) => named.clone(),
        None => {
            let found = visible(client).await;
            found.map_err(|trouble| client.failure(&trouble, "listing projects", Need::Read))?
        }
    };
    let reading = projects.into_iter().map(|project| async move {
        let jobs = of(client, &project).await;
        (project, jobs)
    });
    let results: Vec<_> = futures::stream::iter(reading).buffer_unordered(AT_ONCE).collect().await;
    let (mut found, mut first, total) = (Jobs::default(), None, results.len());
    for (project, result) in results {
        match result {
            Ok(jobs) => {
                found.jobs.extend(jobs);
                found.read.insert(project);
            }
            Err(trouble) => {
                let failure = client.failure(&trouble, &format!("listing jobs of {project}"), Need::Read);
                found.unread.insert(project, failure.to_string());
                first.get_or_insert(failure);
            }
        }
    }
    match first {
        Some(failure) if found.unread.len() == total => Err(failure),
        _ => Ok(Answer::Jobs(found)),
    }
}

/// The projects that the credentials see in the scope.
async fn visible(client: &Client) -> Result<BTreeSet<RepositoryName>, Trouble> {
    let sent = match client.resolve().await? {
        Resolved::Project(_, path) => return Ok(project(&path).into_iter().collect()),
        Resolved::Group(id) => {
            let query = format!("include_subgroups=true&archived=false&simple=true&order_by=id&{PAGE}");
            Sent::get("/groups/{group}/projects", &[&id.to_string()]).query(query)
        }
        Resolved::Instance => {
            let query = format!("archived=false&simple=true&pagination=keyset&order_by=id&{PAGE}");
            Sent::get("/projects", &[]).query(query)
        }
    };
    let (mut found, mut sent) = (BTreeSet::new(), sent.priority(Priority::Bulk));
    loop {
        let content = client.send(&sent).await?;
        found.extend(content.read::<Vec<WireProject>>()?.iter().filter_map(WireProject::name));
        match content.next {
            Some(next) => sent = sent.query(next),
            None => return Ok(found),
        }
    }
}

/// The jobs of a project that have not ended.
async fn of(client: &Client, name: &RepositoryName) -> Result<BTreeMap<JobId, Job>, Trouble> {
    let (mut jobs, path) = (BTreeMap::new(), name.to_string());
    let mut sent =
        Sent::get("/projects/{project}/jobs", &[&path]).query(format!("{OPEN}&{PAGE}")).priority(Priority::Bulk);
    loop {
        let content = client.send(&sent).await?;
        jobs.extend(content.read::<Vec<WireJob>>()?.into_iter().map(|job| job.job(name)).map(|job| (job.id, job)));
        match content.next {
            Some(next) => sent = sent.query(next),
            None => return Ok(jobs),
        }
    }
}

/// Reads one job.
pub(crate) async fn read(client: &Client, name: &RepositoryName, id: JobId) -> Result<Answer, Failure> {
    let fail = |trouble: &Trouble| client.failure(trouble, &format!("reading job {} of {name}", id.0), Need::Read);
    let path = name.to_string();
    let sent = Sent::get("/projects/{project}/jobs/{job}", &[&path, &id.0.to_string()]);
    match client.send(&sent).await {
        Ok(content) => {
            let job: WireJob = content.read().map_err(|trouble| fail(&trouble))?;
            Ok(Answer::Job(Some(Box::new(job.job(name)))))
        }
        // A project that is not seen any more answers the same.
        Err(trouble) if trouble.is(404) => {
            let seen = client.send(&Sent::get("/projects/{project}", &[&path])).await;
            seen.map(|_| Answer::Job(None)).map_err(|trouble| fail(&trouble))
        }
        Err(trouble) => Err(fail(&trouble)),
    }
}
