//! Who asks, and what they may do.

use crate::app_key::PUBLIC_KEY;
use crate::call::Call;
use crate::jwt;
use crate::names::Scope;
use crate::request::{Method, Request};
use crate::response::Refusal;
use crate::route::Need;
use crate::setup::Setup;
use crate::stand_in::StandIn;
use std::time::Duration;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    Nobody,
    App,
    Installation,
    /// A person, with the scopes of the token.
    Person(Vec<String>),
    /// Somebody who registers runners here.
    Registration(Scope),
    /// A client of the actions service.
    Service(Scope),
    /// A listener of a scale set.
    Queue {
        scale_set: u64,
        session: String,
    },
}

/// A token that the stand-in handed out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) caller: Caller,
    pub(crate) expires: Duration,
}

impl Caller {
    /// Whose budget is charged, as GitHub names it.
    pub(crate) fn account(&self) -> String {
        match self {
            Caller::App => format!("app ID {}", Setup::APP_ID),
            Caller::Installation => format!("installation ID {}", Setup::INSTALLATION),
            Caller::Person(scopes) if scopes.is_empty() => "user ID 2".to_owned(),
            Caller::Person(_) => "user ID 1".to_owned(),
            _ => "127.0.0.1".to_owned(),
        }
    }
}

fn bad_credentials() -> Refusal {
    Refusal::new(401, "Bad credentials").documented("rest")
}

fn unauthorized() -> Refusal {
    Refusal::exception(
        401,
        "Services.Common.VssUnauthorizedException",
        "VS30063: You are not authorized to access this service.",
    )
}

impl StandIn {
    /// Who sends a request to a call with this need.
    pub(crate) fn authenticate(&self, request: &Request, need: Need) -> Result<Caller, Refusal> {
        let Some((scheme, token)) = request.authorization.as_deref().and_then(|value| value.split_once(' ')) else {
            return match need {
                Need::Nothing => Ok(Caller::Nobody),
                Need::Service | Need::Queue => Err(unauthorized()),
                _ => Err(Refusal::new(401, "Requires authentication")),
            };
        };
        let found = match scheme.to_lowercase().as_str() {
            "bearer" | "token" => self.bearer(token)?,
            "remoteauth" => self.handed_out(token),
            _ => None,
        };
        match (need, found) {
            (Need::Service, Some(Caller::Service(scope))) => Ok(Caller::Service(scope)),
            // Jobs are acquired with the token of the queue, and everything else of the service with its own.
            (Need::Queue, Some(queue @ Caller::Queue { .. })) => Ok(queue),
            (Need::Service | Need::Queue, _) => Err(unauthorized()),
            (Need::Registration, Some(Caller::Registration(scope))) => Ok(Caller::Registration(scope)),
            (Need::App, Some(Caller::App)) => Ok(Caller::App),
            (Need::App, Some(_)) => Err(Refusal::new(401, "A JSON web token could not be decoded").documented("rest")),
            (_, Some(caller @ (Caller::Installation | Caller::Person(_)))) => Ok(caller),
            (Need::Nothing, Some(caller)) => Ok(caller),
            _ => Err(bad_credentials()),
        }
    }

    fn bearer(&self, token: &str) -> Result<Option<Caller>, Refusal> {
        if let Some(scopes) = self.personal_tokens.get(token) {
            return Ok(Some(Caller::Person(scopes.clone())));
        }
        if let Some(caller) = self.handed_out(token) {
            return Ok(Some(caller));
        }
        let is_foreign = self.tokens.contains_key(token) || token.starts_with("gh");
        if is_foreign || token.matches('.').count() != 2 {
            return Ok(None);
        }
        let issuer = jwt::verify(token, PUBLIC_KEY.as_ref(), self.clock(self.now))?;
        match issuer == Setup::CLIENT_ID || issuer == Setup::APP_ID.to_string() {
            true => Ok(Some(Caller::App)),
            false => Err(Refusal::new(404, "Integration not found").documented("rest")),
        }
    }

    fn handed_out(&self, token: &str) -> Option<Caller> {
        self.tokens.get(token).filter(|found| found.expires > self.now).map(|found| found.caller.clone())
    }

    /// Whether who asks may use this call.
    pub(crate) fn authorize(&self, call: &Call<'_>, need: Need) -> Result<(), Refusal> {
        let Some(scope) = &call.scope else { return Ok(()) };
        let is_write = call.request.method != Method::Get;
        let (scopes, permission): (&[&str], &str) = match (need, scope) {
            (Need::Runners, Scope::Enterprise(_)) => (&["manage_runners:enterprise", "admin:enterprise"], ""),
            (Need::Runners, Scope::Organization(_)) => {
                (&["admin:org", "manage_runners:org"], "organization_self_hosted_runners")
            }
            (Need::Runners, Scope::Repository(_)) => (&["repo"], "administration"),
            (Need::Actions, _) => (&["repo"], "actions"),
            (Need::Hooks, Scope::Repository(_)) => (&["repo", "admin:repo_hook"], "repository_hooks"),
            (Need::Hooks, _) => (&["admin:org_hook"], "organization_hooks"),
            _ => return Ok(()),
        };
        match &call.caller {
            Caller::Person(found) => match found.iter().any(|scope| scopes.contains(&scope.as_str())) {
                true => Ok(()),
                false => Err(Refusal::new(403, "Resource not accessible by personal access token")),
            },
            Caller::Installation if !matches!(scope, Scope::Enterprise(_)) && !self.is_installed_in(scope) => {
                Err(Refusal::not_found())
            }
            Caller::Installation => match self.permissions.get(permission).map(String::as_str) {
                Some("write") => Ok(()),
                Some("read") if !is_write => Ok(()),
                _ => Err(Refusal::new(403, "Resource not accessible by integration")),
            },
            _ => Err(bad_credentials()),
        }
    }

    /// An enterprise, an organisation or a repository as it is really written, if it is there.
    pub(crate) fn resolve(&self, scope: &Scope) -> Option<Scope> {
        match scope {
            Scope::Enterprise(name) => {
                name.eq_ignore_ascii_case(&self.enterprise).then(|| Scope::Enterprise(self.enterprise.clone()))
            }
            Scope::Organization(_) => {
                let found = self.repositories.keys().find(|repository| scope.covers(repository))?;
                Some(Scope::Organization(found.owner.clone()))
            }
            Scope::Repository(_) => {
                let found = self.repositories.keys().find(|repository| scope.covers(repository))?;
                Some(Scope::Repository(found.clone()))
            }
        }
    }

    /// Whether the App is installed in an organisation, or in that of a repository.
    pub(crate) fn is_installed_in(&self, scope: &Scope) -> bool {
        match scope {
            Scope::Repository(name) => self.installed_in.covers(name),
            other => *other == self.installed_in,
        }
    }

    /// A new token.
    pub(crate) fn hand_out(&mut self, token: String, caller: Caller, valid: Duration) -> String {
        self.tokens.retain(|_, token| token.expires + valid > self.now);
        self.tokens.insert(token.clone(), Token { caller, expires: self.now + valid });
        token
    }
}
