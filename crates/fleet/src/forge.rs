//! What the fleet asks of a CI platform, and what it answers. A client carries requests out; nothing here touches the world.

pub mod address;
pub mod breaker;
pub mod budget;
pub mod gitlab;
pub mod listener;
mod platform;

use jiff::Timestamp;
pub use platform::Platform;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A connection to a CI platform: namespace and name of the object that has its address and its credentials.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForgeKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// One request to one CI platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The connection.
    pub forge: ForgeKey,
    /// The address that was decided for, such as `https://github.com/acme`: at another one are other runners.
    pub address: String,
    /// What to do.
    pub ask: Ask,
}

/// `OWNER/NAME` of a repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryName {
    /// The organisation or the user.
    pub owner: String,
    /// The name.
    pub name: String,
}

impl RepositoryName {
    /// Reads `OWNER/NAME`.
    pub fn parse(text: &str) -> Option<RepositoryName> {
        let (owner, name) = text.split_once('/')?;
        let is_name = |part: &str| !part.is_empty() && !part.contains('/');
        (is_name(owner) && is_name(name)).then(|| RepositoryName { owner: owner.into(), name: name.into() })
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// Whose runners they are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// Those of all organisations of an enterprise.
    Enterprise(String),
    /// Those of all repositories of an organisation.
    Organization(String),
    /// Those of one repository.
    Repository(RepositoryName),
}

/// What a CI platform is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Log in, and find out what the credentials allow.
    Check,
    /// Which versions of the runner program are offered.
    RunnerVersions,
    /// Register a runner for one job, and get the configuration that its machine starts it with.
    JitConfig(RunnerWanted),
    /// List all runners of the scope, whosever they are, or the one with this name.
    ListRunners {
        /// Only the runner with this name: one request instead of many.
        name: Option<String>,
    },
    /// Remove a runner. It is refused with [`Failure::StillBusy`] while the runner has a job; [`Answer::Done`] also if there is none.
    RemoveRunner(RunnerId),
    /// List the jobs that wait for a runner or run, of these repositories or of all that the credentials can see in the scope.
    ListJobs {
        /// The repositories that a pool covers.
        repositories: Option<BTreeSet<RepositoryName>>,
    },
    /// Read one job.
    Job {
        /// Its repository.
        repository: RepositoryName,
        /// Its id.
        id: JobId,
    },
    /// Find the webhook whose events are sent to this address; without one, that of the App if its address ends like ours.
    FindHook {
        /// The address.
        address: Option<String>,
    },
    /// List the deliveries of a webhook since a moment.
    Deliveries {
        /// The webhook.
        hook: Hook,
        /// The moment.
        since: Timestamp,
    },
    /// Have a webhook delivered again.
    Redeliver {
        /// The webhook.
        hook: Hook,
        /// The id of the delivery.
        delivery: u64,
    },
    /// Something of a scale set.
    ScaleSet(ScaleSetAsk),
}

/// What is asked of the service that scale sets have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScaleSetAsk {
    /// Find a scale set by its name.
    Find {
        /// Its name.
        name: String,
        /// The name of its runner group; the default one if none is given.
        group: Option<String>,
    },
    /// Find a scale set by its name, or create it. An existing one keeps its labels, which cannot be changed: compare them.
    Ensure(ScaleSetWanted),
    /// Read a scale set.
    Read(ScaleSetId),
    /// Delete a scale set; [`Answer::Done`] also if there is none.
    Delete(ScaleSetId),
    /// Open the only session of a scale set; [`Failure::Taken`] while another listener has one.
    Open {
        /// The scale set.
        set: ScaleSetId,
        /// The name of this listener, for people.
        owner: String,
    },
    /// Wait for the next message.
    Poll {
        /// The session.
        session: SessionId,
        /// The last message that was received; 0 at first.
        last: u64,
        /// How many runners there can be at most, by what hypervisors really have left.
        capacity: u32,
    },
    /// Delete a message, which otherwise comes again.
    Acknowledge {
        /// The session.
        session: SessionId,
        /// The message.
        message: u64,
    },
    /// Take jobs that were offered.
    Acquire {
        /// The session.
        session: SessionId,
        /// Ids of requests for runners, from [`ScaleSetEvent::request`].
        requests: Vec<u64>,
    },
    /// End a session, so that another listener need not wait for its expiry.
    Close(SessionId),
    /// Register a runner of a scale set for one job.
    JitConfig {
        /// The scale set.
        set: ScaleSetId,
        /// The name of the runner.
        name: String,
    },
    /// Remove a runner of a scale set, as [`Ask::RemoveRunner`] does, at no cost of the request budget.
    RemoveRunner(RunnerId),
}

/// The id of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunnerId(pub u64);

/// The id of a job. A job that is run again has another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct JobId(pub u64);

/// The id of a scale set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScaleSetId(pub u64);

/// The id of a session of a scale set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId(pub String);

/// What the address ends with at which webhooks of GitHub arrive.
pub const WEBHOOK_PATH: &str = "/webhooks/github";
/// The path where the fleet receives those of GitLab.
pub const GITLAB_WEBHOOK_PATH: &str = "/webhooks/gitlab";

/// A webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hook {
    /// That of the App.
    App,
    /// One of the scope, by its id.
    Scope(u64),
}

/// A runner that is to be registered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerWanted {
    /// Its name, of at most 64 characters; unique in its scope.
    pub name: String,
    /// All its labels: none is added, not even `self-hosted`.
    pub labels: BTreeSet<String>,
    /// The name of its runner group; the default one if none is given.
    pub group: Option<String>,
}

/// A scale set as it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleSetWanted {
    /// Its name.
    pub name: String,
    /// The name of its runner group; the default one if none is given.
    pub group: Option<String>,
    /// Its labels; its name is one if none is given.
    pub labels: BTreeSet<String>,
}

/// A successful answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To [`Ask::Check`].
    Checked(Box<Checked>),
    /// To [`Ask::RunnerVersions`].
    RunnerVersions(Vec<RunnerDownload>),
    /// To [`Ask::JitConfig`] and [`ScaleSetAsk::JitConfig`].
    JitConfig(JitConfig),
    /// To [`Ask::ListRunners`].
    Runners(Runners),
    /// To [`Ask::ListJobs`].
    Jobs(Jobs),
    /// To [`Ask::Job`]: nothing if there is surely no such job.
    Job(Option<Box<Job>>),
    /// To [`Ask::Job`]: the credentials see the scope, and not the repository.
    NoRepository,
    /// To [`Ask::FindHook`]: nothing if there is none.
    Hook(Option<Hook>),
    /// To [`Ask::Deliveries`], the newest first.
    Deliveries(Vec<Delivery>),
    /// To [`ScaleSetAsk::Find`], [`ScaleSetAsk::Ensure`] and [`ScaleSetAsk::Read`].
    ScaleSet(Option<Box<ScaleSet>>),
    /// To [`ScaleSetAsk::Open`].
    Session(Session),
    /// To [`ScaleSetAsk::Poll`]: nothing if there was no message for as long as the platform waits.
    Message(Option<Box<Message>>),
    /// To [`ScaleSetAsk::Acquire`]: those that this scale set has now.
    Acquired(Vec<u64>),
    /// To everything else: it is done.
    Done,
}

/// What a platform is, and what the credentials allow.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// Its version; nothing for a service without one.
    pub version: Option<String>,
    /// Whom the credentials belong to, such as `installation 51 of App 42` or `a personal access token`.
    pub login: String,
    /// Permissions that are missing, each with where it is granted.
    pub missing: Vec<String>,
    /// How far the clock of the platform is ahead of ours, in seconds.
    pub clock_ahead: i64,
    /// How many requests the credentials may make in an hour, and how many are left; nothing if there is no limit.
    pub budget: Option<(u64, u64)>,
    /// When that hour ends, if it is known.
    pub reset: Option<Timestamp>,
    /// The only authorities that the certificate of its server may come from, as PEM; nothing if those of the system may.
    pub authorities: Option<String>,
}

/// A runner program that is offered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerDownload {
    /// Its version, such as `2.329.0`.
    pub version: String,
    /// `linux`, `win` or `osx`.
    pub os: String,
    /// `x64`, `arm64` or `arm`.
    pub architecture: String,
    /// Where it is.
    pub url: String,
    /// Its SHA-256 checksum in hexadecimal digits, if the platform says it.
    pub sha256: Option<String>,
}

/// The configuration of one runner for one job. Whoever has it can take a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JitConfig {
    /// The runner, which exists from now on and is offline.
    pub runner: RunnerId,
    /// What its machine starts it with.
    pub config: Hidden,
}

/// A text that is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Hidden(String);

impl Hidden {
    /// The text, for whoever sends it on.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Hidden {
    fn from(text: String) -> Hidden {
        Hidden(text)
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Runners.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Runners {
    /// The runners, by id.
    pub runners: BTreeMap<RunnerId, Runner>,
    /// Whether all are here: while runners come and go, pages of a list overlap. Only then a runner that is not here is gone, and one that
    /// was registered a moment ago may still be missing.
    pub is_complete: bool,
}

/// A runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runner {
    /// Its name.
    pub name: String,
    /// Whether it is connected.
    pub is_online: bool,
    /// Whether it has a job. A machine that died keeps its runner busy for minutes.
    pub is_busy: bool,
    /// Its labels.
    pub labels: BTreeSet<String>,
}

/// Jobs that wait or run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Jobs {
    /// The jobs, by id.
    pub jobs: BTreeMap<JobId, Job>,
    /// The repositories whose jobs were read: only of these nothing else is open.
    pub read: BTreeSet<RepositoryName>,
    /// Repositories whose jobs could not be read, and why. Nothing is known of their jobs.
    pub unread: BTreeMap<RepositoryName, String>,
}

/// One attempt of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The run that it belongs to.
    pub run: u64,
    /// The attempt of that run, from 1.
    pub attempt: u64,
    /// Its repository.
    pub repository: RepositoryName,
    /// Its name.
    pub name: String,
    /// What a runner needs to run it.
    pub labels: BTreeSet<String>,
    /// How far it is.
    pub status: JobStatus,
    /// Which runner has it or had it.
    pub runner: Option<(RunnerId, String)>,
    /// When it was created; unknown on servers that do not say it.
    pub created: Option<Timestamp>,
}

/// How far a job is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobStatus {
    /// It waits for a runner.
    Queued,
    /// It waits for something else: an approval, another job, a concurrency group.
    Waiting,
    /// A runner has it.
    InProgress,
    /// It has ended: `success`, `failure`, `cancelled`, `skipped` ...
    Completed(String),
}

/// One delivery of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// Its id; a redelivery has another one.
    pub id: u64,
    /// The id of the event, which a redelivery keeps.
    pub guid: String,
    /// When it was sent.
    pub at: Timestamp,
    /// The event and its action, such as `workflow_job` and `queued`.
    pub event: (String, Option<String>),
    /// Whether the receiver accepted it.
    pub is_accepted: bool,
    /// Whether it is a redelivery.
    pub is_redelivery: bool,
}

/// A scale set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleSet {
    /// Its id.
    pub id: ScaleSetId,
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeSet<String>,
    /// How it stands, if the service says it.
    pub statistics: Option<Statistics>,
    /// Whether this request has created it.
    pub is_new: bool,
}

/// A session of a scale set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: SessionId,
    /// How the scale set stands: the first thing to act on.
    pub statistics: Statistics,
}

/// How a scale set stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Jobs that could be acquired.
    pub available: u64,
    /// Jobs that were acquired and wait for a runner.
    pub acquired: u64,
    /// Jobs that were assigned and have not ended: how many runners are wanted.
    pub assigned: u64,
    /// Jobs that run.
    pub running: u64,
    /// Runners.
    pub registered: u64,
    /// Runners with a job.
    pub busy: u64,
    /// Runners that wait for one.
    pub idle: u64,
}

/// A message to a listener. It comes again until it is acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: u64,
    /// What happened.
    pub events: Vec<ScaleSetEvent>,
    /// How the scale set stands; it counts more than the events, which may be lost.
    pub statistics: Statistics,
}

/// What happened to a job of a scale set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleSetEvent {
    /// What happened.
    pub kind: ScaleSetEventKind,
    /// The id of the request for a runner.
    pub request: u64,
    /// The repository of the job.
    pub repository: RepositoryName,
    /// The name of the job.
    pub name: String,
    /// The run.
    pub run: u64,
    /// The labels that it asks for.
    pub labels: BTreeSet<String>,
}

/// What happened to a job of a scale set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScaleSetEventKind {
    /// It can be acquired.
    Available,
    /// It is assigned to the scale set.
    Assigned,
    /// A runner has it.
    Started(RunnerId, String),
    /// It has ended: `succeeded`, `failed`, `canceled`; with its runner, if it had one.
    Completed(String, Option<(RunnerId, String)>),
}

/// Why something was not done, or may not have been done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// There may be an answer next time; it may have been carried out all the same. No answer, or an error of the server.
    Transient(String),
    /// It was refused and will be refused again, whatever is waited for: only another request helps.
    Permanent(String),
    /// A person has to change something: credentials, a permission, a name, a certificate. With the remedy.
    Configuration {
        /// What is wrong.
        message: String,
        /// What to do.
        remedy: String,
    },
    /// The budget of requests is used up, or the platform asks for a pause. Nothing is sent before that moment.
    RateLimited {
        /// Which limit.
        message: String,
        /// When to ask again.
        until: Timestamp,
    },
    /// There is a runner with this name. If an answer was lost, it is ours: find it by its name, remove it, and ask again.
    Exists(String),
    /// The runner has a job: it was not removed.
    StillBusy(RunnerId),
    /// Another listener has the session of the scale set; it ends by itself when that one stops asking.
    Taken(String),
    /// The session is over: open another one. Messages that were not acknowledged are in its statistics.
    SessionLost(String),
}

/// The class of a failure, for metrics and back-off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// It is worth another try.
    Transient,
    /// It is not.
    Permanent,
    /// A person has to act.
    Configuration,
    /// It is too early.
    RateLimited,
}

impl Class {
    /// The name in metrics.
    pub fn label(self) -> &'static str {
        match self {
            Class::Transient => "transient",
            Class::Permanent => "permanent",
            Class::Configuration => "configuration",
            Class::RateLimited => "rate-limited",
        }
    }
}

impl Failure {
    /// Its class.
    pub fn class(&self) -> Class {
        match self {
            Failure::Transient(_)
            | Failure::Exists(_)
            | Failure::StillBusy(_)
            | Failure::Taken(_)
            | Failure::SessionLost(_) => Class::Transient,
            Failure::Permanent(_) => Class::Permanent,
            Failure::Configuration { .. } => Class::Configuration,
            Failure::RateLimited { .. } => Class::RateLimited,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Transient(message)
            | Failure::Permanent(message)
            | Failure::Taken(message)
            | Failure::SessionLost(message) => f.write_str(message),
            Failure::Configuration { message, remedy } => write!(f, "{message}; {remedy}"),
            Failure::RateLimited { message, until } => write!(f, "{message}; nothing is asked before {until}"),
            Failure::Exists(name) => write!(f, "there is a runner {name} already"),
            Failure::StillBusy(id) => write!(f, "runner {} still has a job", id.0),
        }
    }
}

#[cfg(test)]
mod tests;
