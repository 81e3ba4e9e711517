//! The few fields of a `workflow_job` event that are needed. Everything else is skipped without being kept.

use super::job::{Facts, JobKey, Repository, State};
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The most labels of a job that are taken, and the longest text.
const MOST_LABELS: usize = 100;
const LONGEST: usize = 256;

#[derive(Deserialize)]
struct Event {
    workflow_job: Job,
    repository: RepositoryName,
}

#[derive(Deserialize)]
struct RepositoryName {
    full_name: String,
}

#[derive(Deserialize)]
struct Job {
    id: u64,
    run_id: u64,
    #[serde(default)]
    run_attempt: Option<u32>,
    status: String,
    #[serde(default)]
    conclusion: Option<String>,
    #[serde(default)]
    created_at: Option<Timestamp>,
    #[serde(default)]
    started_at: Option<Timestamp>,
    #[serde(default)]
    completed_at: Option<Timestamp>,
    #[serde(default)]
    name: String,
    #[serde(default)]
    labels: Vec<String>,
    #[serde(default)]
    runner_name: Option<String>,
    #[serde(default)]
    runner_group_name: Option<String>,
}

/// Reads an event: the job, and when that happened. JSON that is nested too deeply is an error of the parser.
pub(super) fn read(body: &[u8]) -> Result<(Facts, Option<Timestamp>), String> {
    let event: Event = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let job = event.workflow_job;
    let repository = Repository::read(&cut(event.repository.full_name))
        .ok_or_else(|| "repository.full_name is not OWNER/NAME".to_owned())?;
    // The action of an event may be `queued` while the job still waits for an approval: the status says what the job needs.
    let state =
        State::read(&job.status).ok_or_else(|| format!("workflow_job.status {:?} is not known", cut(job.status)))?;
    let has_started = state >= State::InProgress;
    let happened = match state {
        State::Waiting | State::Queued => job.created_at,
        State::InProgress => job.started_at,
        State::Completed => job.completed_at,
    };
    let facts = Facts {
        key: JobKey::Job { id: job.id, attempt: job.run_attempt.unwrap_or(1) },
        repository,
        run: job.run_id,
        name: cut(job.name),
        labels: job
            .labels
            .into_iter()
            .take(MOST_LABELS)
            .map(|label| cut(label.to_lowercase()))
            .collect::<BTreeSet<_>>(),
        // Queued jobs may name the runner and the group of an earlier attempt.
        group: job.runner_group_name.filter(|group| has_started && !group.is_empty()).map(cut),
        state,
        runner: job.runner_name.filter(|name| has_started && !name.is_empty()).map(cut),
        conclusion: job.conclusion.filter(|_| state == State::Completed).map(cut),
        created: job.created_at,
        // A job that was not started has the time of its creation here.
        started: job.started_at.filter(|_| state == State::InProgress),
        completed: job.completed_at.filter(|_| state == State::Completed),
    };
    Ok((facts, happened.or(job.started_at).or(job.created_at)))
}

/// At most so many characters.
fn cut(text: String) -> String {
    if text.len() <= LONGEST { text } else { text.chars().take(LONGEST).collect() }
}
