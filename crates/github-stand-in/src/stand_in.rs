//! The state of a GitHub, and how requests and time change it.

use crate::access::Token;
use crate::call::{Call, scope_of};
use crate::chaos::{WebhookChaos, WebhookFault};
use crate::fault::{FaultEffect, Faults, Reply};
use crate::happening::Happening;
use crate::hash::{hex, sha256};
use crate::hook::{Delivery, DeliveryRecord, Hook};
use crate::job::{Execution, Job, Run};
use crate::limit::{self, Budget, Limits};
use crate::names::{RepositoryName, Scope};
use crate::random::Random;
use crate::request::{Method, Request};
use crate::response::{Answer, Refusal, Response};
use crate::route::{Need, Route};
use crate::runner::{Runner, RunnerGroup};
use crate::service::ScaleSet;
use crate::setup::{Assignment, RepositorySetup, Setup, Style};
use crate::table::ROUTES;
use crate::timing::Timing;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// A GitHub, as its API shows it.
#[derive(Debug, Clone)]
pub struct StandIn {
    /// How long everything takes.
    pub timing: Timing,
    /// How much a client may ask.
    pub limits: Limits,
    /// What happens to webhooks by chance.
    pub chaos: WebhookChaos,
    /// How much the clock of the server is ahead, in seconds.
    pub skew: i64,
    /// What the installation of the App may do.
    pub permissions: BTreeMap<String, String>,
    /// The oldest runner that gets jobs.
    pub minimum_runner: String,
    pub(crate) address: String,
    pub(crate) style: Style,
    pub(crate) assignment: Assignment,
    pub(crate) epoch: i64,
    pub(crate) random: Random,
    pub(crate) secret: String,
    pub(crate) enterprise: String,
    /// The organisation that the App is installed in.
    pub(crate) installed_in: Scope,
    pub(crate) repositories: BTreeMap<RepositoryName, RepositorySetup>,
    pub(crate) personal_tokens: BTreeMap<String, Vec<String>>,
    pub(crate) tokens: BTreeMap<String, Token>,
    pub(crate) budgets: BTreeMap<String, Budget>,
    pub(crate) refused_by_limits: u64,
    pub(crate) groups: BTreeMap<(Scope, u64), RunnerGroup>,
    pub(crate) runners: BTreeMap<u64, Runner>,
    pub(crate) runs: BTreeMap<u64, Run>,
    pub(crate) jobs: BTreeMap<u64, Job>,
    pub(crate) executions: Vec<Execution>,
    pub(crate) hooks: BTreeMap<u64, Hook>,
    pub(crate) deliveries: BTreeMap<u64, DeliveryRecord>,
    pub(crate) outbox: Vec<Delivery>,
    /// Deliveries that are sent after the next one of their hook.
    pub(crate) held_back: Vec<Delivery>,
    pub(crate) webhook_faults: Vec<WebhookFault>,
    pub(crate) scale_sets: BTreeMap<u64, ScaleSet>,
    pub(crate) faults: Faults,
    pub(crate) now: Duration,
    /// When jobs are given to runners next, if that was planned last.
    pub(crate) assignment_planned: Option<Duration>,
    pub(crate) has_short_payloads: bool,
    queue: BTreeMap<(Duration, u64), Happening>,
    numbers: BTreeMap<&'static str, u64>,
}

impl StandIn {
    /// A GitHub.
    pub fn new(setup: &Setup) -> StandIn {
        let mut random = Random::new(setup.seed);
        let secret = random.uuid();
        let mut groups = BTreeMap::new();
        let organizations = setup.repositories.iter().map(|found| Scope::Organization(found.name.owner.clone()));
        for scope in organizations.chain([Scope::Enterprise(setup.enterprise.clone())]) {
            groups.insert((scope, 1), RunnerGroup::default_group());
        }
        StandIn {
            timing: setup.timing,
            limits: setup.limits,
            chaos: WebhookChaos::default(),
            skew: 0,
            permissions: setup.permissions.clone(),
            minimum_runner: setup.minimum_runner.clone(),
            address: setup.address.clone(),
            style: setup.style,
            assignment: setup.assignment,
            epoch: setup.epoch,
            random,
            secret,
            enterprise: setup.enterprise.clone(),
            installed_in: Scope::Organization(
                setup.repositories.first().map(|first| first.name.owner.clone()).unwrap_or_default(),
            ),
            repositories: setup.repositories.iter().map(|found| (found.name.clone(), found.clone())).collect(),
            personal_tokens: setup.personal_tokens.clone(),
            tokens: BTreeMap::new(),
            budgets: BTreeMap::new(),
            refused_by_limits: 0,
            groups,
            runners: BTreeMap::new(),
            runs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            executions: Vec::new(),
            hooks: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            outbox: Vec::new(),
            held_back: Vec::new(),
            webhook_faults: Vec::new(),
            scale_sets: BTreeMap::new(),
            faults: Faults::default(),
            now: Duration::ZERO,
            assignment_planned: None,
            has_short_payloads: setup.has_short_payloads,
            queue: BTreeMap::new(),
            numbers: BTreeMap::new(),
        }
    }

    /// Carries out a request at a moment, which is a time since the start and never goes back.
    pub fn handle(&mut self, request: &Request, now: Duration) -> Reply {
        self.advance(now);
        match self.faults.take(request) {
            None => self.carry_out(request),
            Some(FaultEffect::LoseReply) => {
                self.carry_out(request);
                Reply::Lost
            }
            Some(FaultEffect::Drop) => Reply::Lost,
            Some(FaultEffect::Delay(time)) => match self.carry_out(request) {
                Reply::Answer(response) => Reply::Late(response, time),
                other => other,
            },
            Some(FaultEffect::Repeat) => {
                self.carry_out(request);
                self.carry_out(request)
            }
            Some(FaultEffect::Fail(status, text)) => Reply::Answer(Refusal::new(status, text).response("rest")),
            Some(FaultEffect::FailAfter(status, text)) => {
                self.carry_out(request);
                Reply::Answer(Refusal::new(status, text).response("rest"))
            }
            Some(FaultEffect::SecondaryLimit(seconds)) => {
                self.refused_by_limits += 1;
                let refusal = limit::secondary(self.limits.secondary_status, seconds.to_string());
                Reply::Answer(refusal.response("rest"))
            }
        }
    }

    /// Lets everything happen that is due at this moment or before, and returns the webhooks that are to be sent now.
    pub fn tick(&mut self, now: Duration) -> Vec<Delivery> {
        self.advance(now);
        std::mem::take(&mut self.outbox)
    }

    /// Lets everything happen that is due at this moment or before.
    pub(crate) fn advance(&mut self, now: Duration) {
        while let Some((&(at, number), _)) = self.queue.first_key_value() {
            if at > now {
                break;
            }
            self.now = self.now.max(at);
            if let Some(happening) = self.queue.remove(&(at, number)) {
                self.happen(happening, at);
            }
        }
        self.now = self.now.max(now);
    }

    /// When something happens next, if nothing is asked until then.
    pub fn next_change(&self) -> Option<Duration> {
        match self.outbox.is_empty() {
            true => self.queue.first_key_value().map(|((at, _), _)| *at),
            false => Some(self.now),
        }
    }

    /// The time that was given last.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// What the clock of the server shows, in seconds since 1970.
    pub fn clock(&self, now: Duration) -> i64 {
        self.epoch + i64::try_from(now.as_secs()).unwrap_or(i64::MAX >> 1) + self.skew
    }

    /// A moment as the API writes it.
    pub(crate) fn date(&self, at: Duration) -> String {
        Timestamp::from_second(self.clock(at)).map(|time| time.to_string()).unwrap_or_default()
    }

    pub(crate) fn schedule(&mut self, at: Duration, happening: Happening) {
        let number = self.number("happening", 1);
        self.queue.insert((at, number), happening);
    }

    /// Does not send a delivery at the moment that was planned.
    pub(crate) fn unschedule_delivery(&mut self, id: u64) {
        self.queue.retain(|_, happening| !matches!(happening, Happening::Send(delivery) if delivery.id == id));
    }

    /// The next number of a kind, from the first one on.
    pub(crate) fn number(&mut self, of: &'static str, first: u64) -> u64 {
        let next = self.numbers.entry(of).or_insert(first);
        *next += 1;
        *next - 1
    }

    /// The address of the REST API.
    pub(crate) fn api(&self) -> String {
        match self.style {
            Style::Enterprise => format!("{}/api/v3", self.address),
            Style::Cloud => self.address.clone(),
        }
    }

    fn carry_out(&mut self, request: &Request) -> Reply {
        let found = ROUTES.iter().find_map(|route| Some((route, route.matches(request.method, &request.path)?)));
        let Some((route, in_path)) = found else {
            return Reply::Answer(Refusal::not_found().response("rest"));
        };
        let caller = match self.authenticate(request, route.need) {
            Ok(caller) => caller,
            Err(refusal) => return Reply::Answer(self.refuse(refusal, route)),
        };
        let account = caller.account();
        let scope = scope_of(&in_path);
        let resolved = scope.as_ref().and_then(|scope| self.resolve(scope));
        let is_missing = scope.is_some() && resolved.is_none();
        let call = Call { request, in_path, caller, now: self.now, api: self.api(), scope: resolved };
        let is_counted = route.is_rest() && route.path != "/rate_limit";
        let (limits, now) = (self.limits, self.now);
        let budget = self.budgets.entry(account.clone()).or_default();
        if is_counted && let Err(refusal) = budget.charge(&limits, request.method, &account, now) {
            self.refused_by_limits += 1;
            let response = self.refuse(refusal, route);
            return Reply::Answer(self.with_budget(response, &account));
        }
        let result = match is_missing {
            true => Err(Refusal::not_found()),
            false => self.authorize(&call, route.need).and_then(|()| (route.run)(self, &call)),
        };
        let response = match result {
            Ok(Answer { poll: Some(poll), .. }) => return Reply::Wait(poll),
            Ok(answer) => self.answer(answer, request, route, &account),
            Err(refusal) => self.refuse(refusal, route),
        };
        Reply::Answer(if route.is_rest() { self.with_budget(response, &account) } else { response })
    }

    fn refuse(&mut self, refusal: Refusal, route: &Route) -> Response {
        let version = if self.style == Style::Enterprise { "enterprise-server@3.21/" } else { "" };
        let mut response = refusal.response(&format!("{version}{}", route.documentation));
        response.headers.push(("x-github-request-id", self.random.text(20).to_uppercase()));
        response
    }

    fn answer(&mut self, answer: Answer, request: &Request, route: &Route, account: &str) -> Response {
        let mut response = Response::new(answer.status, answer.body);
        response.headers = answer.headers;
        response.headers.push(("x-github-request-id", self.random.text(20).to_uppercase()));
        if !route.is_rest() {
            response.has_mark = route.need == Need::Service && response.body.is_some();
            return response;
        }
        response.headers.push(("x-github-media-type", "github.v3; format=json".to_owned()));
        if request.method != Method::Get || response.status != 200 {
            return response;
        }
        let text = response.body.as_ref().map(ToString::to_string).unwrap_or_default();
        let tag = format!("W/\"{}\"", hex(&sha256(text.as_bytes())));
        let is_known =
            request.if_none_match.as_deref().is_some_and(|known| known.trim_start_matches("W/") == &tag[2..]);
        response.headers.push(("etag", tag));
        if is_known {
            response.status = 304;
            response.body = None;
            if let Some(budget) = self.budgets.get_mut(account) {
                budget.refund();
            }
        }
        response
    }

    /// Adds what is left of the budget.
    fn with_budget(&mut self, mut response: Response, account: &str) -> Response {
        let budget = self.budgets.entry(account.to_owned()).or_default();
        budget.roll(&self.limits, self.now);
        let (used, reset) = (budget.used, budget.reset(&self.limits));
        let headers = [
            ("x-ratelimit-limit", self.limits.core.to_string()),
            ("x-ratelimit-remaining", self.limits.core.saturating_sub(used).to_string()),
            ("x-ratelimit-used", used.to_string()),
            ("x-ratelimit-reset", self.clock(reset).to_string()),
            ("x-ratelimit-resource", "core".to_owned()),
        ];
        response.headers.extend(headers);
        response
    }
}
