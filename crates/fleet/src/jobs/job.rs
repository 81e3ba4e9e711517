//! A job of a CI platform, and what one source says about it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Which job. A job that is run again has another attempt, and on GitHub also another id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum JobKey {
    /// As webhooks and the REST API name it.
    Job {
        /// The id of the job.
        id: u64,
        /// The attempt of its run; the first is 1.
        attempt: u32,
    },
    /// As the messages of a scale set name it. They carry no id of the REST API.
    Request {
        /// The id of the scale set.
        scale_set: u64,
        /// The id of the request for a runner.
        id: u64,
    },
}

impl JobKey {
    /// Its name in commands: the id of the job, or `SCALESET/REQUEST`.
    pub fn short(&self) -> String {
        match self {
            JobKey::Job { id, .. } => id.to_string(),
            JobKey::Request { scale_set, id } => format!("{scale_set}/{id}"),
        }
    }

    /// The attempt of its run; 1 where nobody says it.
    pub fn attempt(&self) -> u32 {
        match self {
            JobKey::Job { attempt, .. } => *attempt,
            JobKey::Request { .. } => 1,
        }
    }
}

impl fmt::Display for JobKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JobKey::Job { id, attempt: 1 } => write!(f, "{id}"),
            JobKey::Job { id, attempt } => write!(f, "{id} (attempt {attempt})"),
            JobKey::Request { scale_set, id } => write!(f, "request {id} of scale set {scale_set}"),
        }
    }
}

/// A repository. Names differ in more than case, so that they are kept in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Repository {
    /// The organisation or the user; on GitLab the group with the groups above it.
    pub owner: String,
    /// The name.
    pub name: String,
}

impl Repository {
    /// From both parts.
    pub fn new(owner: &str, name: &str) -> Repository {
        Repository { owner: owner.to_lowercase(), name: name.to_lowercase() }
    }

    /// From `OWNER/NAME`.
    pub fn read(text: &str) -> Option<Repository> {
        let (owner, name) = text.split_once('/')?;
        (!owner.is_empty() && !name.is_empty() && !name.contains('/')).then(|| Repository::new(owner, name))
    }
}

impl Repository {
    /// Whether it belongs to an organisation, a user or a group, or to a group below that. Owners on GitHub have no parts.
    pub fn is_of(&self, owner: &str) -> bool {
        is_below(&self.owner, owner)
    }
}

/// Whether an owner is another one or a group below it.
pub(super) fn is_below(one: &str, owner: &str) -> bool {
    one.strip_prefix(owner).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// How far a job is. It never goes back: what seems to is an event that is late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum State {
    /// It needs no runner yet: an approval, a concurrency group or an offer to a scale set is before that.
    Waiting,
    /// It needs a runner.
    Queued,
    /// A runner has started it.
    InProgress,
    /// It has ended.
    Completed,
}

impl State {
    /// What GitHub calls it.
    pub fn name(self) -> &'static str {
        match self {
            State::Waiting => "waiting",
            State::Queued => "queued",
            State::InProgress => "in progress",
            State::Completed => "completed",
        }
    }

    /// From the `status` of a job of GitHub.
    pub fn read(status: &str) -> Option<State> {
        match status {
            "waiting" | "pending" | "requested" => Some(State::Waiting),
            "queued" => Some(State::Queued),
            "in_progress" => Some(State::InProgress),
            "completed" => Some(State::Completed),
            _ => None,
        }
    }
}

/// Where an observation comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Source {
    /// A webhook.
    Webhook,
    /// A message of a scale set.
    ScaleSet,
    /// A list of the jobs of a repository, or the job itself, from the REST API.
    Poll,
}

impl Source {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Source::Webhook => "a webhook",
            Source::ScaleSet => "a message of the scale set",
            Source::Poll => "a poll",
        }
    }
}

/// What is known of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    /// Which job.
    pub key: JobKey,
    /// Its repository.
    pub repository: Repository,
    /// The id of its run.
    pub run: u64,
    /// Its name in the run.
    pub name: String,
    /// What it asks of a runner, in lower case.
    pub labels: BTreeSet<String>,
    /// The runner group that it asks for, or ran in, if that is known.
    pub group: Option<String>,
    /// How far it is.
    pub state: State,
    /// The runner that has started it.
    pub runner: Option<String>,
    /// How it ended.
    pub conclusion: Option<String>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// When a runner started it.
    pub started: Option<Timestamp>,
    /// When it ended.
    pub completed: Option<Timestamp>,
}

impl Facts {
    /// Takes what another source says. The order of several makes no difference, nor does a repetition.
    pub fn join(&mut self, other: &Facts) {
        self.runner = larger(self.runner.take(), &other.runner);
        self.state = self.state.max(other.state);
        self.conclusion = larger(self.conclusion.take(), &other.conclusion);
        self.group = larger(self.group.take(), &other.group);
        self.created = earlier(self.created, other.created);
        self.started = earlier(self.started, other.started);
        self.completed = earlier(self.completed, other.completed);
        self.run = self.run.max(other.run);
        if other.name > self.name {
            self.name.clone_from(&other.name);
        }
        if other.repository > self.repository {
            self.repository = other.repository.clone();
        }
        self.labels.extend(other.labels.iter().cloned());
    }
}

fn larger(one: Option<String>, other: &Option<String>) -> Option<String> {
    one.max(other.clone())
}

fn earlier(one: Option<Timestamp>, other: Option<Timestamp>) -> Option<Timestamp> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// What a source says about a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The source.
    pub source: Source,
    /// When it was true: for an event, when it happened; for a poll, when it was asked.
    pub at: Timestamp,
    /// The job.
    pub facts: Facts,
}
