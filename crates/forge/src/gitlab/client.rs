//! One request to the REST API of GitLab and its answer, within the budget of who asks.

use crate::exchange::Report;
use crate::gate::Gates;
use crate::github::client::{read, unanswered, user_agent};
use crate::github::trouble::{Trouble, scrubbed};
use crate::gitlab::trouble::{Need, failure};
use crate::gitlab::wire::WireId;
use crate::settings::{Credentials, Limits, Settings, Tls};
use crate::transport::{self, Call, NoReply, Reply, Transport};
use bytes::Bytes;
use fleet::forge::Failure;
use fleet::forge::budget::{CORE, Left, Meter, Priority};
use fleet::forge::gitlab::{Owner, Place};
use http::Method;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Everything but unreserved characters.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The header with the token.
const PRIVATE_TOKEN: HeaderName = HeaderName::from_static("private-token");
/// The largest page of a list.
pub(crate) const PAGE: &str = "per_page=100";

/// A connection to one GitLab.
pub(crate) struct Client {
    transport: Transport,
    pub(crate) place: Place,
    /// The only authorities that certificates may come from, as PEM.
    pub(crate) authorities: Option<String>,
    token: HeaderValue,
    limits: Limits,
    /// Shared with other connections of the same login.
    gates: Arc<Gates>,
    /// What the address means, once it was looked up.
    resolved: Mutex<Option<Resolved>>,
    /// How far the clock of the server was ahead of ours, in seconds.
    clock_ahead: AtomicI64,
}

/// Whose runners, with the id that GitLab gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolved {
    Instance,
    Group(u64),
    /// With its path.
    Project(u64, String),
}

/// A request: its path has placeholders, which the parts replace in their order.
pub(crate) struct Sent {
    method: Method,
    path: &'static str,
    parts: Vec<String>,
    query: String,
    body: Option<Value>,
    priority: Priority,
}

impl Sent {
    pub(crate) fn new(method: Method, path: &'static str, parts: &[&str]) -> Sent {
        let parts = parts.iter().map(|part| utf8_percent_encode(part, ESCAPED).to_string()).collect();
        Sent { method, path, parts, query: String::new(), body: None, priority: Priority::Normal }
    }

    pub(crate) fn get(path: &'static str, parts: &[&str]) -> Sent {
        Sent::new(Method::GET, path, parts)
    }

    pub(crate) fn priority(mut self, priority: Priority) -> Sent {
        self.priority = priority;
        self
    }

    /// The whole query.
    pub(crate) fn query(mut self, query: impl Into<String>) -> Sent {
        self.query = query.into();
        self
    }

    pub(crate) fn json(mut self, body: Value) -> Sent {
        self.body = Some(body);
        self
    }
}

/// The content of an answer.
pub(crate) struct Content {
    path: &'static str,
    body: Bytes,
    /// The query of the next page. Its address is not used: it need not be that of this server.
    pub(crate) next: Option<String>,
    /// How many entries the whole list has, if that is said.
    pub(crate) total: Option<usize>,
}

impl Content {
    /// Reads it.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Trouble> {
        read(&self.body, self.path)
    }
}

impl Client {
    /// A client; what is wrong with the settings otherwise, with the remedy. Nothing is sent.
    pub(crate) fn new(settings: &Settings, gates: Arc<Gates>, report: Report) -> Result<Client, (String, String)> {
        let place = Place::read(&settings.address, settings.allows_http)?;
        let transport = Transport::new(&settings.tls, report)?;
        let Credentials::Token(token) = &settings.credentials else {
            let remedy = "give an access token with the scopes create_runner, manage_runner and read_api";
            return Err(("GitLab knows no Apps of GitHub".into(), remedy.into()));
        };
        let token = token.expose().trim();
        if token.is_empty() {
            return Err(("the access token is empty".into(), "give an access token".into()));
        }
        let mut token = HeaderValue::from_str(token).map_err(|_| {
            ("the access token cannot be sent".to_owned(), "give it without spaces and line breaks".to_owned())
        })?;
        token.set_sensitive(true);
        let (resolved, clock_ahead) = (Mutex::default(), AtomicI64::new(0));
        let authorities = match &settings.tls {
            Tls::Authorities(pem) => Some(pem.clone()),
            Tls::System => None,
        };
        Ok(Client { transport, place, authorities, token, limits: settings.limits, gates, resolved, clock_ahead })
    }

    /// The failure of what was being done.
    pub(crate) fn failure(&self, trouble: &Trouble, doing: &str, need: Need) -> Failure {
        failure(trouble, doing, need, transport::host(&self.place.api), &self.place.owner)
    }

    /// How far the clock of the server is ahead of ours, in seconds.
    pub(crate) fn clock_ahead(&self) -> i64 {
        self.clock_ahead.load(Ordering::Relaxed)
    }

    /// How many requests a window has, and how many are left.
    pub(crate) fn budget(&self) -> Option<(u64, u64)> {
        self.gates.manager.left()
    }

    /// When the window of that limit ends, if it is known.
    pub(crate) fn reset(&self) -> Option<jiff::Timestamp> {
        self.gates.manager.reset()
    }

    /// What the address means: a path with several names may be that of a project or of a group.
    pub(crate) async fn resolve(&self) -> Result<Resolved, Trouble> {
        let known = self.resolved.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        let found = match &self.place.owner {
            Owner::Instance => Resolved::Instance,
            Owner::Group(path) => Resolved::Group(self.id("/groups/{group}", path).await?),
            Owner::Project(path) => Resolved::Project(self.id("/projects/{project}", path).await?, path.clone()),
            Owner::Unclear(path) => match self.id("/projects/{project}", path).await {
                Ok(id) => Resolved::Project(id, path.clone()),
                Err(trouble) if trouble.is(404) => Resolved::Group(self.id("/groups/{group}", path).await?),
                Err(trouble) => return Err(trouble),
            },
        };
        *self.resolved.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
        Ok(found)
    }

    /// Asks for the group or project again next time: it may have been deleted and made again.
    pub(crate) fn forget(&self) {
        *self.resolved.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    async fn id(&self, path: &'static str, name: &str) -> Result<u64, Trouble> {
        let query = if path.starts_with("/groups") { "with_projects=false" } else { "" };
        let sent = Sent::get(path, &[name]).query(query).priority(Priority::Urgent);
        self.send(&sent).await?.read().map(|found: WireId| found.id)
    }

    /// Sends a request.
    pub(crate) async fn send(&self, sent: &Sent) -> Result<Content, Trouble> {
        let is_read = sent.method == Method::GET;
        let mut headers = vec![
            (ACCEPT, HeaderValue::from_static("application/json")),
            user_agent(),
            (PRIVATE_TOKEN, self.token.clone()),
        ];
        let body = sent.body.as_ref().map(|body| Bytes::from(body.to_string()));
        headers.extend(body.as_ref().map(|_| (CONTENT_TYPE, HeaderValue::from_static("application/json"))));
        let wait = if sent.priority == Priority::Bulk { self.limits.bulk_wait } else { self.limits.wait };
        let pass = self.gates.manager.enter(sent.priority, !is_read, CORE, wait).await;
        let pass = pass.map_err(|(until, why)| Trouble::Limited { message: why.to_owned(), until })?;
        let call = Call {
            method: sent.method.clone(),
            url: self.url(sent),
            path: sent.path,
            headers,
            body: body.unwrap_or_default(),
            limit: self.limits.request,
        };
        let reply = match self.transport.send(call).await {
            Ok(reply) => reply,
            Err(no_reply) => {
                if matches!(no_reply, NoReply::NotSent { .. }) {
                    pass.unsent();
                }
                return Err(unanswered(no_reply));
            }
        };
        if let Some(ahead) = reply.clock_ahead {
            self.clock_ahead.store(ahead, Ordering::Relaxed);
        }
        let refused = pass.answered(&self.meter(&reply));
        match (reply.code, refused) {
            (200..=299, _) => Ok(Content {
                path: sent.path,
                next: next(reply.header("link").unwrap_or_default()),
                total: reply.header("x-total").and_then(|text| text.trim().parse().ok()),
                body: reply.body,
            }),
            (_, Some(until)) => Err(Trouble::Limited { message: refusal(&reply).0, until }),
            _ => {
                let (message, accepted) = refusal(&reply);
                Err(Trouble::Answered { code: reply.code, message, exception: String::new(), accepted })
            }
        }
    }

    fn url(&self, sent: &Sent) -> String {
        let mut parts = sent.parts.iter();
        let fill = |segment: &str| match segment.starts_with('{') {
            true => parts.next().cloned().unwrap_or_default(),
            false => segment.to_owned(),
        };
        let path = sent.path.split('/').map(fill).collect::<Vec<_>>().join("/");
        let sign = if sent.query.is_empty() { "" } else { "?" };
        format!("{}{path}{sign}{}", self.place.api, sent.query)
    }

    fn meter(&self, reply: &Reply) -> Meter {
        let number = |name: &str| reply.header(name).and_then(|value| value.trim().parse::<u64>().ok());
        let (limit, remaining) = (number("ratelimit-limit"), number("ratelimit-remaining"));
        let reset = number("ratelimit-reset").and_then(|second| i64::try_from(second).ok());
        let local =
            |second: i64| Timestamp::from_second(second.saturating_sub(self.clock_ahead())).unwrap_or(Timestamp::MAX);
        let window = limit.zip(remaining).zip(reset);
        Meter {
            status: reply.code,
            hour: window.map(|((limit, remaining), reset)| Left { limit, remaining, reset: local(reset) }),
            // All of them count as one: what has a limit of its own says so by a refusal.
            resource: None,
            retry_after: number("retry-after").map(Duration::from_secs),
            is_secondary: false,
        }
    }
}

/// The query of the next page in a header `Link`.
fn next(link: &str) -> Option<String> {
    let link = link.split(',').find(|link| link.contains("rel=\"next\""))?;
    let url = link.split_once('<')?.1.split_once('>')?.0;
    url.split_once('?').map(|(_, query)| query.to_owned())
}

/// The text of a refusal, and the scopes that would do.
fn refusal(reply: &Reply) -> (String, Option<String>) {
    let found: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    let text = |value: &Value| match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        // What is wrong with which parameter.
        other => Some(other.to_string()),
    };
    let said = text(&found["message"]).or_else(|| text(&found["error_description"])).or_else(|| text(&found["error"]));
    let reason = || http::StatusCode::from_u16(reply.code).ok().and_then(|code| code.canonical_reason());
    let said = said.unwrap_or_else(|| reason().unwrap_or("refused").to_owned());
    (scrubbed(&said), found["scope"].as_str().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use super::next;

    #[test]
    fn the_next_page_is_the_query_of_its_link() {
        let links = "<https://other.example/x?a=1&cursor=ab>; rel=\"next\", <https://a/x>; rel=\"first\"";
        assert_eq!(next(links).as_deref(), Some("a=1&cursor=ab"));
        assert_eq!((next(""), next("<https://a/x?page=1>; rel=\"first\"")), (None, None));
    }
}
