//! One request to the REST API of GitHub and its answer, within the budget of who asks.

use crate::exchange::Report;
use crate::gate::{Gate, Gates};
use crate::github::login::{App, Granted, Login};
use crate::github::tags::{Known, Tags};
use crate::github::trouble::{Context, Need, Trouble, scrubbed};
use crate::settings::{Limits, Settings, Tls};
use crate::transport::{self, Call, NoReply, Reply, Transport};
use bytes::Bytes;
use fleet::forge::Failure;
use fleet::forge::address::Address;
use fleet::forge::budget::{CORE, Left, Meter, Priority};
use http::Method;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderName, HeaderValue, IF_NONE_MATCH, USER_AGENT};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Everything but unreserved characters.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The version of the REST API.
const API_VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-github-api-version"), HeaderValue::from_static("2022-11-28"));
/// A page of a list has so many entries.
pub(crate) const PAGE: usize = 100;
/// A clock that differs by more is worth another try.
const SAME_CLOCK: i64 = 5;

/// A connection to one GitHub.
pub(crate) struct Client {
    pub(crate) transport: Transport,
    pub(crate) address: Address,
    pub(crate) login: Login,
    pub(crate) limits: Limits,
    /// The only authorities that certificates may come from, as PEM.
    pub(crate) authorities: Option<String>,
    /// Shared with other connections of the same login.
    gates: Arc<Gates>,
    /// What requests to a path count as, where that is not the core.
    resources: Mutex<BTreeMap<&'static str, String>>,
    tags: Mutex<Tags>,
    /// How far the clock of the server was ahead of ours, in seconds.
    clock_ahead: AtomicI64,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    /// The App itself.
    App,
    /// The installation of the App, or a person.
    Manager,
}

/// A request: its path has placeholders, which the parts replace in their order; `{scope}` is whose runners it is about.
pub(crate) struct Sent {
    method: Method,
    path: &'static str,
    target: Vec<String>,
    query: Vec<(&'static str, String)>,
    body: Option<Value>,
    who: Who,
    priority: Priority,
}

impl Sent {
    pub(crate) fn new(method: Method, path: &'static str, parts: &[&str]) -> Sent {
        let target = parts.iter().map(|part| utf8_percent_encode(part, ESCAPED).to_string()).collect();
        Sent { method, path, target, query: Vec::new(), body: None, who: Who::Manager, priority: Priority::Normal }
    }

    pub(crate) fn get(path: &'static str, parts: &[&str]) -> Sent {
        Sent::new(Method::GET, path, parts)
    }

    /// A page of a list.
    pub(crate) fn list(path: &'static str, parts: &[&str]) -> Sent {
        Sent::get(path, parts).priority(Priority::Bulk).query("per_page", PAGE.to_string())
    }

    pub(crate) fn priority(mut self, priority: Priority) -> Sent {
        self.priority = priority;
        self
    }

    pub(crate) fn query(mut self, name: &'static str, value: impl Into<String>) -> Sent {
        self.query.retain(|(known, _)| *known != name);
        self.query.push((name, value.into()));
        self
    }

    pub(crate) fn json(mut self, body: Value) -> Sent {
        self.body = Some(body);
        self
    }

    pub(crate) fn by(mut self, who: Who) -> Sent {
        self.who = who;
        self
    }
}

/// The content of an answer.
pub(crate) struct Content {
    path: &'static str,
    pub(crate) body: Bytes,
    link: Option<String>,
}

impl Content {
    /// Reads it.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Trouble> {
        read(&self.body, self.path)
    }

    /// Whether there is a page after it.
    pub(crate) fn has_next(&self) -> bool {
        self.next_query().is_some()
    }

    /// A parameter of the address of the page after it. The address itself is not used: it need not be that of this server.
    pub(crate) fn next(&self, name: &str) -> Option<String> {
        let query = self.next_query()?;
        let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
        Some(percent_encoding::percent_decode_str(value).decode_utf8_lossy().into_owned())
    }

    fn next_query(&self) -> Option<&str> {
        let link = self.link.as_deref()?.split(',').find(|link| link.contains("rel=\"next\""))?;
        let url = link.split_once('<')?.1.split_once('>')?.0;
        Some(url.split_once('?').map_or("", |(_, query)| query))
    }
}

/// Reads JSON, which may begin with a byte order mark.
pub(crate) fn read<T: DeserializeOwned>(body: &[u8], path: &'static str) -> Result<T, Trouble> {
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    serde_json::from_slice(body).map_err(|error| Trouble::Misread { path, why: error.to_string() })
}

#[derive(Default, Deserialize)]
struct Refusal {
    #[serde(default)]
    message: Option<String>,
    #[serde(default, rename = "typeName")]
    exception: Option<String>,
}

impl Client {
    /// A client; what is wrong with the settings otherwise. Nothing is sent.
    pub(crate) fn new(settings: &Settings, gates: Arc<Gates>, report: Report) -> Result<Client, Trouble> {
        let wrong = |(message, remedy)| Trouble::Settings { message, remedy };
        let address = Address::github(&settings.address, settings.allows_http).map_err(wrong)?;
        let transport = Transport::new(&settings.tls, report).map_err(wrong)?;
        let login = Login::new(&settings.credentials, &address.scope)?;
        let (resources, tags, clock_ahead) = (Mutex::default(), Mutex::default(), AtomicI64::new(0));
        let authorities = match &settings.tls {
            Tls::System => None,
            Tls::Authorities(pem) => Some(pem.clone()),
        };
        let limits = settings.limits;
        Ok(Client { transport, address, login, limits, authorities, gates, resources, tags, clock_ahead })
    }

    /// For messages.
    pub(crate) fn context(&self) -> Context<'_> {
        let host = transport::host(&self.address.api);
        Context { host, scope: &self.address.scope, is_app: matches!(self.login, Login::App(_)) }
    }

    /// The failure of what was being done.
    pub(crate) fn failure(&self, trouble: &Trouble, doing: &str, need: Need) -> Failure {
        trouble.failure(doing, need, &self.context())
    }

    /// How far the clock of the server is ahead of ours, in seconds.
    pub(crate) fn clock_ahead(&self) -> i64 {
        self.clock_ahead.load(Ordering::Relaxed)
    }

    /// A moment of the server, in seconds since 1970, by our clock.
    pub(crate) fn local(&self, second: i64) -> Timestamp {
        Timestamp::from_second(second.saturating_sub(self.clock_ahead())).unwrap_or(Timestamp::MAX)
    }

    /// How many requests an hour has, and how many are left.
    pub(crate) fn budget(&self) -> Option<(u64, u64)> {
        self.gate(Who::Manager).left()
    }

    /// When that hour ends.
    pub(crate) fn reset(&self) -> Option<jiff::Timestamp> {
        self.gate(Who::Manager).reset()
    }

    fn gate(&self, who: Who) -> &Gate {
        match who {
            Who::App => &self.gates.app,
            Who::Manager => &self.gates.manager,
        }
    }

    /// Sends a request. A token that is refused is renewed once: a refused login did nothing.
    pub(crate) async fn send(&self, sent: &Sent) -> Result<Content, Trouble> {
        let app = match (&self.login, sent.who) {
            (Login::App(app), Who::App) => return self.as_app(app, sent).await,
            (Login::App(app), Who::Manager) => app,
            (Login::Person(_), Who::App) => {
                return Err(Trouble::Settings {
                    message: "only an App can ask for this".into(),
                    remedy:
                        "give the credentials of a GitHub App, or name a webhook of the organisation or the repository"
                            .into(),
                });
            }
            (Login::Person(header), Who::Manager) => return self.exchange(sent, Who::Manager, header.clone()).await,
        };
        let granted = app.granted(self, None).await?;
        match self.exchange(sent, Who::Manager, granted.header.clone()).await {
            Err(trouble) if trouble.is(401) => {
                let granted = app.granted(self, Some(&granted)).await?;
                self.exchange(sent, Who::Manager, granted.header.clone()).await
            }
            Err(trouble) => {
                // A token keeps the permissions that it was made with: what is granted now is in the next one.
                if trouble.is(403) {
                    app.forget(&granted).await;
                }
                Err(trouble)
            }
            answer => answer,
        }
    }

    /// The token of the installation, if it is an App.
    pub(crate) async fn granted(&self) -> Result<Option<Arc<Granted>>, Trouble> {
        match &self.login {
            Login::App(app) => app.granted(self, None).await.map(Some),
            Login::Person(_) => Ok(None),
        }
    }

    /// Sends a request as the App itself. If the clock of the server is another one than was thought, it is sent again with that one.
    pub(crate) async fn as_app(&self, app: &App, sent: &Sent) -> Result<Content, Trouble> {
        let ahead = self.clock_ahead();
        let header = |ahead: i64| app.header(Timestamp::now().as_second() + ahead);
        match self.exchange(sent, Who::App, header(ahead)?).await {
            Err(trouble) if trouble.is(401) && (self.clock_ahead() - ahead).abs() > SAME_CLOCK => {
                self.exchange(sent, Who::App, header(self.clock_ahead())?).await
            }
            answer => answer,
        }
    }

    async fn exchange(&self, sent: &Sent, who: Who, authorization: HeaderValue) -> Result<Content, Trouble> {
        let url = format!("{}{}", self.address.api, self.target(sent));
        let is_read = sent.method == Method::GET;
        let known = self.tags(|tags| tags.get(&url)).filter(|_| is_read);
        let mut headers = vec![
            (ACCEPT, HeaderValue::from_static("application/vnd.github+json")),
            API_VERSION,
            user_agent(),
            (AUTHORIZATION, authorization),
        ];
        headers.extend(known.as_ref().map(|known| (IF_NONE_MATCH, known.tag.clone())));
        let body = sent.body.as_ref().map(|body| Bytes::from(body.to_string()));
        headers.extend(body.as_ref().map(|_| (CONTENT_TYPE, HeaderValue::from_static("application/json"))));
        let wait = if sent.priority == Priority::Bulk { self.limits.bulk_wait } else { self.limits.wait };
        let resource = self.resources(|known| known.get(sent.path).cloned()).unwrap_or_else(|| CORE.to_owned());
        let pass = self.gate(who).enter(sent.priority, !is_read, &resource, wait).await;
        let pass = pass.map_err(|(until, why)| Trouble::Limited { message: why.to_owned(), until })?;
        let (method, path, limit) = (sent.method.clone(), sent.path, self.limits.request);
        let call = Call { method, url: url.clone(), path, headers, body: body.unwrap_or_default(), limit };
        let reply = match self.transport.send(call).await {
            Ok(reply) => reply,
            Err(no_reply) => {
                if matches!(no_reply, NoReply::NotSent { .. }) {
                    pass.unsent();
                }
                return Err(unanswered(no_reply));
            }
        };
        self.note_clock(&reply);
        let meter = self.meter(&reply);
        if let Some(counted) = meter.resource.clone().filter(|counted| *counted != resource) {
            self.resources(|known| known.insert(path, counted));
        }
        let refused = pass.answered(&meter);
        match (reply.code, known, refused) {
            (304, Some(known), _) => Ok(Content { path, body: known.body.clone(), link: known.link.clone() }),
            (200..=299, ..) => {
                let link = reply.header("link").map(str::to_owned);
                if let Some(tag) = reply.headers.get(ETAG).filter(|_| is_read) {
                    let known = Known { tag: tag.clone(), body: reply.body.clone(), link: link.clone() };
                    self.tags(|tags| tags.put(&url, known));
                }
                Ok(Content { path, body: reply.body, link })
            }
            (_, _, Some(until)) => Err(Trouble::Limited { message: refusal(&reply).0, until }),
            _ => Err(refused_by(&reply)),
        }
    }

    pub(crate) fn note_clock(&self, reply: &Reply) {
        if let Some(ahead) = reply.clock_ahead {
            self.clock_ahead.store(ahead, Ordering::Relaxed);
        }
    }

    fn meter(&self, reply: &Reply) -> Meter {
        let number = |name: &str| reply.header(name).and_then(|value| value.trim().parse::<u64>().ok());
        let (limit, remaining) = (number("x-ratelimit-limit"), number("x-ratelimit-remaining"));
        let reset = number("x-ratelimit-reset").and_then(|second| i64::try_from(second).ok());
        let hour = limit.zip(remaining).zip(reset);
        let said = if reply.code >= 400 { refusal(reply).0.to_lowercase() } else { String::new() };
        Meter {
            status: reply.code,
            hour: hour.map(|((limit, remaining), reset)| Left { limit, remaining, reset: self.local(reset) }),
            resource: reply.header("x-ratelimit-resource").map(str::to_owned),
            retry_after: number("retry-after").map(Duration::from_secs),
            is_secondary: said.contains("secondary rate limit") || said.contains("abuse detection"),
        }
    }

    fn target(&self, sent: &Sent) -> String {
        let scope = self.address.scope.api_path();
        let mut parts = sent.target.iter();
        let mut target = String::new();
        for segment in sent.path.split('/').skip(1) {
            match segment {
                "{scope}" => target.push_str(&scope),
                placeholder if placeholder.starts_with('{') => {
                    target.push('/');
                    target.push_str(parts.next().map_or("", String::as_str));
                }
                fixed => {
                    target.push('/');
                    target.push_str(fixed);
                }
            }
        }
        with_query(&target, &sent.query)
    }

    fn resources<T>(&self, action: impl FnOnce(&mut BTreeMap<&'static str, String>) -> T) -> T {
        action(&mut self.resources.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn tags<T>(&self, action: impl FnOnce(&mut Tags) -> T) -> T {
        action(&mut self.tags.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// An address with parameters, which may have some already.
pub(crate) fn with_query(url: &str, query: &[(&'static str, String)]) -> String {
    let mut url = url.to_owned();
    for (name, value) in query {
        let sign = if url.contains('?') { '&' } else { '?' };
        url = format!("{url}{sign}{name}={}", utf8_percent_encode(value, ESCAPED));
    }
    url
}

pub(crate) fn user_agent() -> (HeaderName, HeaderValue) {
    (USER_AGENT, HeaderValue::from_static(concat!("virtpilot/", env!("CARGO_PKG_VERSION"))))
}

pub(crate) fn unanswered(no_reply: NoReply) -> Trouble {
    match no_reply {
        NoReply::NotSent { host, until } => {
            Trouble::Unanswered(format!("{host} failed several times in a row and is not asked before {until}"))
        }
        NoReply::Unanswered(message) => Trouble::Unanswered(message),
        NoReply::Settings(message, remedy) => Trouble::Settings { message, remedy },
    }
}

/// The refusal in an answer.
pub(crate) fn refused_by(reply: &Reply) -> Trouble {
    let (message, exception) = refusal(reply);
    let accepted = reply.header("x-accepted-github-permissions").or_else(|| reply.header("x-accepted-oauth-scopes"));
    let accepted = accepted.filter(|accepted| !accepted.trim().is_empty()).map(str::to_owned);
    Trouble::Answered { code: reply.code, message, exception, accepted }
}

/// The text of a refusal, and the name of its exception.
fn refusal(reply: &Reply) -> (String, String) {
    let found: Refusal = read(&reply.body, "").unwrap_or_default();
    let reason = || http::StatusCode::from_u16(reply.code).ok().and_then(|code| code.canonical_reason());
    let message = found.message.filter(|message| !message.is_empty());
    let message = message.unwrap_or_else(|| reason().unwrap_or("refused").to_owned());
    (scrubbed(&message), found.exception.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Content, with_query};
    use bytes::Bytes;

    #[test]
    fn the_next_page_is_read_from_the_link() {
        let content = |link: &str| Content { path: "", body: Bytes::new(), link: Some(link.to_owned()) };
        let both = content("<https://a/x?per_page=2&page=3>; rel=\"next\", <https://a/x?page=9>; rel=\"last\"");
        assert_eq!((both.has_next(), both.next("page").as_deref(), both.next("cursor")), (true, Some("3"), None));
        assert_eq!(content("<https://a/x?cursor=v1_7%2B8>; rel=\"next\"").next("cursor").as_deref(), Some("v1_7+8"));
        for last in ["<https://a/x?page=1>; rel=\"first\"", "", "rel=\"next\""] {
            assert!(!content(last).has_next(), "{last}");
        }
    }

    #[test]
    fn values_cannot_leave_their_place() {
        assert_eq!(with_query("https://a/x", &[("name", "a&b=c d".into())]), "https://a/x?name=a%26b%3Dc%20d");
        assert_eq!(with_query("https://a/x?y=1", &[("n", "2".into())]), "https://a/x?y=1&n=2");
    }
}
