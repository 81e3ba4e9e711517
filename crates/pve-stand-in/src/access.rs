//! Who sends a request: passwords, tickets and API tokens, and what they may do.

use crate::request::{Credentials, Method, Request};
use crate::response::Refusal;
use crate::stand_in::{Pool, StandIn};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a ticket is valid.
const TICKET_SECONDS: i64 = 7200;
/// How far in the future a ticket may be.
const AHEAD_SECONDS: i64 = 300;
/// The user who may do everything.
const ROOT: &str = "root@pam";

/// A user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) password: String,
    pub(crate) tokens: BTreeMap<String, Token>,
}

/// An API token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) secret: String,
    /// Whether it has only the privileges that both it and its user have.
    pub(crate) is_separated: bool,
}

/// An authenticated client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Caller {
    pub(crate) user: String,
    /// The name of the token, if it is one.
    pub(crate) token: Option<String>,
}

impl Caller {
    /// As it is written in the id of a task.
    pub(crate) fn subject(&self) -> String {
        match &self.token {
            Some(token) => format!("{}!{token}", self.user),
            None => self.user.clone(),
        }
    }
}

impl StandIn {
    pub(crate) fn authenticate(&self, request: &Request, now: Duration) -> Result<Caller, Refusal> {
        match &request.credentials {
            Credentials::None => Err(Refusal::unauthenticated("No ticket")),
            Credentials::Token(text) => self.token(text),
            Credentials::Ticket { ticket, csrf } => {
                let user = self.verify_ticket(ticket, now);
                let user = user.ok_or_else(|| Refusal::unauthenticated("permission denied - invalid PVE ticket"))?;
                if request.method != Method::Get
                    && !csrf.as_ref().is_some_and(|csrf| self.verify_csrf(csrf, &user, now))
                {
                    return Err(Refusal::unauthenticated("Permission denied - invalid csrf token"));
                }
                Ok(Caller { user, token: None })
            }
        }
    }

    fn token(&self, text: &str) -> Result<Caller, Refusal> {
        let refuse = |text: String| Err(Refusal::unauthenticated(text));
        let parsed = text.split_once('=').and_then(|(id, secret)| Some((id.split_once('!')?, secret)));
        let Some(((user, id), secret)) = parsed else { return refuse("unable to parse token".to_owned()) };
        let Some(known) = self.users.get(user) else { return refuse(format!("no such user ('{user}')")) };
        let Some(token) = known.tokens.get(id) else {
            return refuse(format!("no such token '{id}' for user '{user}'"));
        };
        if token.secret != secret {
            return refuse("invalid token value!".to_owned());
        }
        Ok(Caller { user: user.to_owned(), token: Some(id.to_owned()) })
    }

    /// A ticket for a password, or for a ticket that is still valid.
    pub(crate) fn log_in(&self, user: &str, password: &str, now: Duration) -> Option<String> {
        let is_password = self.users.get(user).is_some_and(|known| known.password == password && !password.is_empty());
        let is_ticket = || self.verify_ticket(password, now).as_deref() == Some(user);
        (is_password || is_ticket()).then(|| {
            let signed = format!("PVE:{user}:{:08X}", self.clock(now));
            format!("{signed}::{}", self.sign(&signed))
        })
    }

    pub(crate) fn csrf(&self, user: &str, now: Duration) -> String {
        let time = format!("{:08X}", self.clock(now));
        format!("{time}:{}", self.sign(&format!("{time}:{user}")))
    }

    fn verify_ticket(&self, ticket: &str, now: Duration) -> Option<String> {
        let (signed, signature) = ticket.split_once("::")?;
        let (user, time) = signed.strip_prefix("PVE:")?.rsplit_once(':')?;
        (self.sign(signed) == signature && self.is_recent(time, now)).then(|| user.to_owned())
    }

    fn verify_csrf(&self, csrf: &str, user: &str, now: Duration) -> bool {
        let Some((time, signature)) = csrf.split_once(':') else { return false };
        self.sign(&format!("{time}:{user}")) == signature && self.is_recent(time, now)
    }

    fn is_recent(&self, time: &str, now: Duration) -> bool {
        let age = i64::from_str_radix(time, 16).map(|time| self.clock(now) - time);
        age.is_ok_and(|age| (-AHEAD_SECONDS..TICKET_SECONDS).contains(&age))
    }

    fn sign(&self, text: &str) -> String {
        let hash = Sha256::digest(format!("{}:{text}", self.secret));
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// What a caller may do on a path.
    pub(crate) fn privileges(&self, caller: &Caller, path: &str) -> BTreeSet<&'static str> {
        crate::ALL_PRIVILEGES.into_iter().filter(|privilege| self.may(caller, path, &[privilege])).collect()
    }

    /// Whether a caller has one of the privileges on a path.
    pub(crate) fn may(&self, caller: &Caller, path: &str, any_of: &[&str]) -> bool {
        let token = caller.token.as_ref().and_then(|id| self.users.get(&caller.user)?.tokens.get(id));
        let is_separated = token.is_some_and(|token| token.is_separated);
        any_of.iter().any(|privilege| {
            (caller.user == ROOT || self.subject_may(&caller.user, path, privilege))
                && (!is_separated || self.subject_may(&caller.subject(), path, privilege))
        })
    }

    /// By the path itself, or by the pool of a VM or of a storage.
    fn subject_may(&self, subject: &str, path: &str, privilege: &str) -> bool {
        let vmid: Option<u32> = path.strip_prefix("/vms/").and_then(|id| id.parse().ok());
        let storage = path.strip_prefix("/storage/");
        let is_member = |pool: &Pool| {
            vmid.is_some_and(|vmid| pool.vms.contains(&vmid))
                || storage.is_some_and(|name| pool.storages.contains(name))
        };
        let mut pools = self.pools.iter().filter(|(_, pool)| is_member(pool));
        self.acl.allows(subject, path, privilege)
            || pools.any(|(pool, _)| self.acl.allows(subject, &format!("/pool/{pool}"), privilege))
    }

    /// Refuses unless the caller has one of the privileges.
    pub(crate) fn require(&self, caller: &Caller, path: &str, any_of: &[&str]) -> Result<(), Refusal> {
        match self.may(caller, path, any_of) {
            true => Ok(()),
            false => Err(Refusal::forbidden(&format!("{path}, {}", any_of.join("|")))),
        }
    }
}
