//! The state of the server, and how a request changes it.

use crate::answer::{Refusal, Response};
use crate::fault::{Fault, FaultEffect, Faults, Reply};
use crate::request::Request;
use crate::setup::{Setup, TokenSetup};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A GitLab, as its API shows it.
#[derive(Debug, Clone)]
pub struct StandIn {
    pub(crate) setup: Setup,
    /// Paths of groups by id.
    pub(crate) groups: BTreeMap<u64, String>,
    pub(crate) projects: BTreeMap<u64, Project>,
    pub(crate) runners: BTreeMap<u64, Runner>,
    pub(crate) jobs: BTreeMap<u64, Job>,
    pub(crate) now: Duration,
    pub(crate) next: u64,
    /// What webhooks are to send.
    pub(crate) events: Vec<Value>,
    faults: Faults,
    /// Requests in the window of each token.
    used: BTreeMap<String, (Duration, u64)>,
    refused: u64,
}

/// A project.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Project {
    pub(crate) path: String,
    pub(crate) is_archived: bool,
}

/// Whose a runner is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// Of the whole server.
    Instance,
    /// Of a group.
    Group(u64),
    /// Of a project.
    Project(u64),
}

/// A runner.
#[derive(Debug, Clone, PartialEq)]
pub struct Runner {
    /// The token that it authenticates with.
    pub token: String,
    /// Its description.
    pub description: String,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// Whether it runs jobs without tags.
    pub runs_untagged: bool,
    /// Whether other projects cannot use it.
    pub is_locked: bool,
    /// Whether it gets no job.
    pub is_paused: bool,
    /// Whose it is.
    pub owner: Owner,
    /// When it was last heard of.
    pub contacted: Option<Duration>,
    /// When it was created.
    pub created: Duration,
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its project.
    pub project: u64,
    /// Its pipeline.
    pub pipeline: u64,
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: BTreeSet<String>,
    /// How far it is, in GitLab's words.
    pub status: String,
    /// The runner that has or had it, with its description.
    pub runner: Option<(u64, String)>,
    /// When it was created.
    pub created: Duration,
    /// When it was started.
    pub started: Option<Duration>,
    /// When it ended.
    pub finished: Option<Duration>,
}

/// Who asks.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) id: u64,
    pub(crate) token: TokenSetup,
}

impl Caller {
    /// The access level for a group or project.
    pub(crate) fn level(&self, path: &str) -> u64 {
        if self.token.is_admin {
            return 50;
        }
        let is_below =
            |above: &str| path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        let levels = self.token.roles.iter().filter(|(above, _)| is_below(above)).map(|(_, level)| *level);
        levels.max().unwrap_or(0)
    }

    /// Whether the token has one of these scopes.
    pub(crate) fn need(&self, scopes: &[&str]) -> Result<(), Refusal> {
        let has = self.token.scopes.iter().any(|scope| scopes.contains(&scope.as_str()));
        has.then_some(()).ok_or_else(|| Refusal::scope(scopes))
    }
}

impl StandIn {
    /// A server.
    pub fn new(setup: &Setup) -> StandIn {
        let groups = (10..).zip(setup.groups.iter().cloned()).collect();
        let project =
            |found: &crate::setup::ProjectSetup| Project { path: found.path.clone(), is_archived: found.is_archived };
        StandIn {
            setup: setup.clone(),
            groups,
            projects: (20..).zip(setup.projects.iter().map(project)).collect(),
            runners: BTreeMap::new(),
            jobs: BTreeMap::new(),
            now: Duration::ZERO,
            next: 100,
            events: Vec::new(),
            faults: Faults::default(),
            used: BTreeMap::new(),
            refused: 0,
        }
    }

    /// Carries out a request at a moment, which is a time since the start.
    pub fn handle(&mut self, request: &Request, now: Duration) -> Reply {
        self.now = now;
        match self.faults.take(request) {
            None => Reply::Answer(self.carry_out(request)),
            Some(FaultEffect::LoseReply) => {
                self.carry_out(request);
                Reply::Lost
            }
            Some(FaultEffect::Drop) => Reply::Lost,
            Some(FaultEffect::Delay(time)) => Reply::Late(self.carry_out(request), time),
            Some(FaultEffect::Fail(status, text)) => Reply::Answer(Refusal::new(status, &text).response()),
            Some(FaultEffect::RetryLater(seconds)) => Reply::Answer(Refusal::later(seconds).response()),
            Some(FaultEffect::RunnerAsks(runner)) => {
                if let Some(token) = self.runners.get(&runner).map(|runner| runner.token.clone()) {
                    self.runner_asks(&token, now);
                }
                Reply::Answer(self.carry_out(request))
            }
        }
    }

    fn carry_out(&mut self, request: &Request) -> Response {
        if let Some(answer) = self.of_runner(request) {
            return answer.unwrap_or_else(Refusal::response);
        }
        let Some(caller) = self.caller(request) else {
            return Refusal::new(401, "401 Unauthorized").response();
        };
        let (limits, now) = (self.setup.limits, self.now);
        let window = self.used.entry(caller.token.secret.clone()).or_insert((now, 0));
        if now >= window.0 + limits.window {
            *window = (now, 0);
        }
        let (start, used) = *window;
        let left = (start + limits.window).saturating_sub(now).as_secs() + 1;
        let mut response = if used >= limits.requests {
            self.refused += 1;
            Refusal::later(left).response()
        } else {
            window.1 += 1;
            self.dispatch(request, &caller).unwrap_or_else(Refusal::response)
        };
        let reset = self.clock(start + limits.window);
        response.headers.extend([
            ("ratelimit-limit", limits.requests.to_string()),
            ("ratelimit-name", "throttle_authenticated_api".to_owned()),
            ("ratelimit-observed", (used + 1).to_string()),
            ("ratelimit-remaining", limits.requests.saturating_sub(used + 1).to_string()),
            ("ratelimit-reset", reset.to_string()),
        ]);
        response
    }

    fn caller(&self, request: &Request) -> Option<Caller> {
        let token = request.token.as_deref()?;
        let mut known = (1..).zip(&self.setup.tokens);
        known.find(|(_, found)| found.secret == token).map(|(id, found)| Caller { id, token: found.clone() })
    }

    /// What the clock of the server shows at a moment, in seconds since 1970.
    pub fn clock(&self, at: Duration) -> i64 {
        self.setup.epoch + i64::try_from(at.as_secs()).unwrap_or_default() + self.setup.skew
    }

    /// A moment as the API writes it.
    pub(crate) fn time(&self, at: Duration) -> String {
        let second = self.setup.epoch + i64::try_from(at.as_secs()).unwrap_or_default() + self.setup.skew;
        let time = jiff::Timestamp::from_second(second).unwrap_or_default();
        time.strftime(&format!("%Y-%m-%dT%H:%M:%S.{:03}Z", at.subsec_millis())).to_string()
    }

    /// Another id.
    pub(crate) fn id(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Adds a fault.
    pub fn inject(&mut self, fault: Fault) {
        self.faults.0.push(fault);
    }

    /// All runners.
    pub fn runners(&self) -> &BTreeMap<u64, Runner> {
        &self.runners
    }

    /// All jobs.
    pub fn jobs(&self) -> &BTreeMap<u64, Job> {
        &self.jobs
    }

    /// How many requests were refused because of a limit.
    pub fn refused_by_limits(&self) -> u64 {
        self.refused
    }

    /// How many requests may be asked in a window from now on.
    pub fn set_limit(&mut self, requests: u64) {
        self.setup.limits.requests = requests;
    }

    /// Sets the role of the user of a token in a group or project; none with 0.
    pub fn set_role(&mut self, secret: &str, path: &str, level: u64) {
        for token in self.setup.tokens.iter_mut().filter(|token| token.secret == secret) {
            match level {
                0 => token.roles.remove(path),
                level => token.roles.insert(path.to_owned(), level),
            };
        }
    }

    /// Sets the scopes of a token.
    pub fn set_scopes(&mut self, secret: &str, scopes: &[&str]) {
        for token in self.setup.tokens.iter_mut().filter(|token| token.secret == secret) {
            token.scopes = scopes.iter().map(|&scope| scope.to_owned()).collect();
        }
    }

    /// Revokes a token.
    pub fn revoke(&mut self, secret: &str) {
        self.setup.tokens.retain(|token| token.secret != secret);
    }
}
