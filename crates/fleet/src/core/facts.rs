//! What CI platforms answer, in the words of jobs.

use crate::forge::{self, JobStatus, RepositoryName, RunnerId};
use crate::jobs::job::{Facts, JobKey, Repository, State};
use crate::jobs::runners::Seen;

pub(super) fn repository(name: &RepositoryName) -> Repository {
    Repository::new(&name.owner, &name.name)
}

pub(super) fn repository_name(repository: &Repository) -> RepositoryName {
    RepositoryName { owner: repository.owner.clone(), name: repository.name.clone() }
}

pub(super) fn seen((id, runner): (&RunnerId, &forge::Runner)) -> Seen {
    Seen { id: id.0, name: runner.name.clone(), is_online: runner.is_online, is_busy: runner.is_busy }
}

/// What a job of the REST API says.
pub(super) fn facts(job: &forge::Job) -> Option<Facts> {
    let (state, conclusion) = match &job.status {
        JobStatus::Queued => (State::Queued, None),
        JobStatus::Waiting => (State::Waiting, None),
        JobStatus::InProgress => (State::InProgress, None),
        JobStatus::Completed(conclusion) => (State::Completed, Some(conclusion.clone())),
    };
    Some(Facts {
        key: JobKey::Job { id: job.id.0, attempt: u32::try_from(job.attempt).ok()? },
        repository: repository(&job.repository),
        run: job.run,
        name: job.name.clone(),
        labels: job.labels.iter().map(|label| label.to_lowercase()).collect(),
        group: None,
        state,
        runner: job.runner.as_ref().map(|(_, name)| name.clone()).filter(|name| !name.is_empty()),
        conclusion,
        created: job.created,
        started: None,
        completed: None,
    })
}
