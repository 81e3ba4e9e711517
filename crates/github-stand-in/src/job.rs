//! Workflow runs and their jobs.

use crate::names::RepositoryName;
use std::time::Duration;

/// How a job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conclusion {
    /// All went well.
    Success,
    /// A step failed, or the runner was lost.
    Failure,
    /// Somebody cancelled it.
    Cancelled,
}

impl Conclusion {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Conclusion::Success => "success",
            Conclusion::Failure => "failure",
            Conclusion::Cancelled => "cancelled",
        }
    }

    /// Reads what the API writes.
    pub fn parse(text: &str) -> Option<Conclusion> {
        let all = [Conclusion::Success, Conclusion::Failure, Conclusion::Cancelled];
        all.into_iter().find(|conclusion| conclusion.as_str() == text)
    }

    /// As messages of scale sets write it.
    pub(crate) fn result(self) -> &'static str {
        match self {
            Conclusion::Success => "succeeded",
            Conclusion::Failure => "failed",
            Conclusion::Cancelled => "canceled",
        }
    }
}

/// A job that is to be pushed.
#[derive(Debug, Clone, PartialEq)]
pub struct JobSpec {
    /// Where.
    pub repository: RepositoryName,
    /// Its name.
    pub name: String,
    /// What a runner needs to run it.
    pub labels: Vec<String>,
    /// The only group whose runners may run it.
    pub group: Option<String>,
    /// How long it runs; if nothing is given, until [`crate::StandIn::runner_finished`].
    pub duration: Option<Duration>,
    /// How it ends by itself.
    pub conclusion: Conclusion,
}

impl JobSpec {
    /// A job of `OWNER/REPOSITORY` that ends with success when its runner is told to.
    pub fn new(repository: &str, labels: &[&str]) -> JobSpec {
        let none = RepositoryName { owner: repository.to_owned(), name: String::new() };
        JobSpec {
            repository: RepositoryName::parse(repository).unwrap_or(none),
            name: "build".to_owned(),
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            group: None,
            duration: None,
            conclusion: Conclusion::Success,
        }
    }

    /// Ends by itself after this time.
    #[must_use]
    pub fn lasting(mut self, duration: Duration) -> JobSpec {
        self.duration = Some(duration);
        self
    }

    /// Ends like this.
    #[must_use]
    pub fn ending(mut self, conclusion: Conclusion) -> JobSpec {
        self.conclusion = conclusion;
        self
    }

    /// Has this name.
    #[must_use]
    pub fn named(mut self, name: &str) -> JobSpec {
        name.clone_into(&mut self.name);
        self
    }
}

/// The runner of a job, which may be gone since.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RanOn {
    /// Its id.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// The id of its group.
    pub group: u64,
    /// The name of its group.
    pub group_name: String,
    /// When it started the job.
    pub since: Duration,
}

/// Where a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobState {
    /// It waits for a runner.
    Queued,
    /// It runs.
    InProgress(RanOn),
    /// It ended.
    Completed {
        /// How.
        conclusion: Conclusion,
        /// When.
        at: Duration,
        /// Where it ran, if it ran.
        on: Option<RanOn>,
    },
}

/// One job of one attempt of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its id; every attempt has another one.
    pub id: u64,
    /// Its run.
    pub run: u64,
    /// The attempt of the run.
    pub attempt: u64,
    /// What was pushed.
    pub spec: JobSpec,
    /// When it was queued.
    pub created: Duration,
    /// Where it is.
    pub state: JobState,
    /// The scale set that it was assigned to, and when.
    pub assigned: Option<(u64, Duration)>,
}

impl Job {
    /// Whether it waits for a runner.
    pub fn is_queued(&self) -> bool {
        self.state == JobState::Queued
    }

    /// Whether it ended.
    pub fn is_completed(&self) -> bool {
        matches!(self.state, JobState::Completed { .. })
    }

    /// Where it runs or ran.
    pub fn ran_on(&self) -> Option<&RanOn> {
        match &self.state {
            JobState::Queued => None,
            JobState::InProgress(on) => Some(on),
            JobState::Completed { on, .. } => on.as_ref(),
        }
    }

    /// How it ended.
    pub fn conclusion(&self) -> Option<Conclusion> {
        match &self.state {
            JobState::Completed { conclusion, .. } => Some(*conclusion),
            _ => None,
        }
    }

    pub(crate) fn status(&self) -> &'static str {
        match self.state {
            JobState::Queued => "queued",
            JobState::InProgress(_) => "in_progress",
            JobState::Completed { .. } => "completed",
        }
    }
}

/// One run of a workflow.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its id, the same for all attempts.
    pub id: u64,
    /// Its repository.
    pub repository: RepositoryName,
    /// Its number in the repository.
    pub number: u64,
    /// The last attempt; the first is 1.
    pub attempt: u64,
    /// When it was pushed.
    pub created: Duration,
    /// When its last attempt began.
    pub started: Duration,
}

/// What of a run is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rerun {
    /// All jobs.
    All,
    /// Those that did not succeed.
    Failed,
    /// One job.
    Job(u64),
}

/// A job that a runner started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The job.
    pub job: u64,
    /// The attempt of its run.
    pub attempt: u64,
    /// The runner.
    pub runner: u64,
    /// Its name.
    pub name: String,
    /// When.
    pub at: Duration,
}
