//! One request to the API of Proxmox VE and its answer.

use crate::exchange::{self, Exchange, Report, Status};
use crate::gate::{Gate, Silent};
use crate::proxmox::login::{Login, Ticket};
use crate::proxmox::roster::Roster;
use crate::proxmox::tls;
use crate::proxmox::trouble::Trouble;
use crate::settings::{Limits, Scope, Settings};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, DATE, HeaderValue};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Body;
use hyper::ext::ReasonPhrase;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A node that takes longer to accept a connection is unreachable.
const CONNECT: Duration = Duration::from_secs(10);
/// The server closes a connection after five seconds without a request.
const IDLE: Duration = Duration::from_secs(4);
/// No answer that we ask for is larger: 20,000 machines are 12 MB.
const LARGEST_ANSWER: usize = 64 << 20;
/// Everything but unreserved characters.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A connection to one Proxmox VE.
pub(crate) struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    base: String,
    login: Login,
    pub(crate) limits: Limits,
    /// What the `HypervisorCluster` names.
    pub(crate) scope: Scope,
    gate: Arc<Gate>,
    /// The machines of the cluster.
    pub(crate) roster: Roster,
    report: Report,
    /// How far the clock of the server was ahead of ours, in seconds.
    clock_ahead: AtomicI64,
}

/// A request: its path has placeholders, which the parts replace in their order.
pub(crate) struct Call<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) parts: &'a [&'a str],
    pub(crate) content: Content,
}

/// What is sent with a request.
pub(crate) enum Content {
    /// Parameters: of a GET or DELETE in its URL, otherwise in a form.
    Parameters(Vec<(&'static str, String)>),
    /// A file for a storage.
    Upload {
        /// Its name.
        file: String,
        /// Its content.
        bytes: Vec<u8>,
    },
}

#[derive(Deserialize)]
struct Envelope<T> {
    data: T,
}

#[derive(Deserialize)]
struct Refusal {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    errors: BTreeMap<String, serde_json::Value>,
}

impl Client {
    /// A client; what is wrong with the settings otherwise. Nothing is sent.
    pub(crate) fn new(settings: &Settings, gate: Arc<Gate>, report: Report) -> Result<Client, Trouble> {
        let base = base(&settings.endpoint, settings.allows_http)?;
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        let tls = tls::config(&settings.tls).map_err(|(message, remedy)| Trouble::Settings { message, remedy })?;
        let tls = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        // Proxmox VE has no HTTP/2, and HTTP/1.1 carries the texts of errors.
        let http = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(tls.enable_http1().wrap_connector(connector));
        let login = Login::new(settings.credentials.clone())?;
        let (limits, scope, clock_ahead) = (settings.limits, settings.scope.clone(), AtomicI64::new(0));
        Ok(Client { http, base, login, limits, scope, gate, roster: Roster::default(), report, clock_ahead })
    }

    /// How far the clock of the server was ahead of ours at its last answer, in seconds.
    pub(crate) fn clock_ahead(&self) -> i64 {
        self.clock_ahead.load(Ordering::Relaxed)
    }

    /// The host of its address.
    fn host(&self) -> &str {
        let rest = self.base.split_once("://").map_or("", |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }

    /// Whom the credentials belong to, without the name of a token.
    pub(crate) fn user(&self) -> &str {
        self.login.user()
    }

    /// Reads.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &'static str, parts: &[&str]) -> Result<T, Trouble> {
        self.send(Call { method: Method::GET, path, parts, content: Content::Parameters(Vec::new()) }).await
    }

    /// Sends a request and returns what its answer has as `data`.
    pub(crate) async fn send<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, Trouble> {
        let path = call.path;
        parsed(path, &self.read(call).await?)
    }

    /// Sends a request and returns the text of its answer. A ticket that is refused is renewed once: a refused login did nothing.
    pub(crate) async fn read(&self, call: Call<'_>) -> Result<Vec<u8>, Trouble> {
        let mut refused = None;
        loop {
            let ticket = self.login.ticket(self, refused.as_ref()).await?;
            match self.exchange(&call, ticket.as_deref()).await {
                Err(Trouble::Answered { code: 401, .. }) if ticket.is_some() && refused.is_none() => refused = ticket,
                answer => return answer,
            }
        }
    }

    /// One exchange, in its turn and in time.
    pub(crate) async fn exchange(&self, call: &Call<'_>, ticket: Option<&Ticket>) -> Result<Vec<u8>, Trouble> {
        let request = self.request(call, ticket)?;
        let limit = match call.content {
            Content::Upload { .. } => self.limits.upload,
            Content::Parameters(_) => self.limits.request,
        };
        let node = call.parts.first().filter(|_| call.path.starts_with("/nodes/{node}")).copied();
        let permit = self.gate.enter(node, self.limits.request).await.map_err(|Silent| {
            let node = node.unwrap_or_default();
            Trouble::Unanswered(format!("node {node} leaves requests without an answer, and this one was not sent"))
        })?;
        let start = Instant::now();
        let span = exchange::span(name(&call.method), call.path, self.host());
        let answer = timeout(limit, self.answer(request)).await;
        // What is about a node is passed on to it by the one that is asked, which says with these codes that it does not answer.
        permit.ended(!matches!(answer, Err(_) | Ok(Ok((595 | 596, ..)))));
        let answer =
            answer.unwrap_or_else(|_| Err(Trouble::Unanswered(format!("no answer within {} s", limit.as_secs()))));
        let status = match &answer {
            Ok((code, ..)) => Status::of(*code),
            Err(_) => Status::Unanswered,
        };
        exchange::record(&span, answer.as_ref().ok().map(|(code, ..)| *code));
        (self.report)(&Exchange { method: name(&call.method), path: call.path, status, duration: start.elapsed() });
        let (code, reason, body) = answer?;
        if status == Status::Success {
            return Ok(body);
        }
        let message = match node {
            Some(node) if matches!(code, 595 | 596) => format!("node {node}: {}", refusal(&reason, &body)),
            _ => refusal(&reason, &body),
        };
        Err(Trouble::Answered { code, message })
    }

    /// Code, reason and body of the answer.
    async fn answer(&self, request: Request<Full<Bytes>>) -> Result<(u16, String, Vec<u8>), Trouble> {
        let response = match self.http.request(request).await {
            Ok(response) => response,
            Err(error) => {
                return Err(match tls::explain(&error) {
                    Some((message, remedy)) => Trouble::Settings { message, remedy },
                    None => Trouble::Unanswered(chain(&error)),
                });
            }
        };
        self.note_clock(response.headers());
        let code = response.status();
        let reason = match response.extensions().get::<ReasonPhrase>() {
            Some(reason) => String::from_utf8_lossy(reason.as_bytes()).into_owned(),
            None => code.canonical_reason().unwrap_or_default().to_owned(),
        };
        let mut body = Limited::new(response.into_body(), LARGEST_ANSWER);
        // Collected in one place, because a list of thousands of machines is there once then.
        let mut bytes = Vec::with_capacity(usize::try_from(body.size_hint().lower()).unwrap_or_default());
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| Trouble::Unanswered(format!("the answer broke off: {error}")))?;
            bytes.extend_from_slice(frame.data_ref().map_or(&[], Bytes::as_ref));
        }
        Ok((code.as_u16(), reason, bytes))
    }

    fn request(&self, call: &Call<'_>, ticket: Option<&Ticket>) -> Result<Request<Full<Bytes>>, Trouble> {
        let mut url = format!("{}{}", self.base, filled(call.path, call.parts));
        let is_read = call.method == Method::GET || call.method == Method::DELETE;
        let mut builder = Request::builder().method(call.method.clone());
        let body = match &call.content {
            Content::Parameters(parameters) if is_read => {
                if !parameters.is_empty() {
                    url = format!("{url}?{}", form(parameters));
                }
                Bytes::new()
            }
            Content::Parameters(parameters) => {
                builder = builder.header(CONTENT_TYPE, "application/x-www-form-urlencoded");
                form(parameters).into()
            }
            Content::Upload { file, bytes } => {
                let boundary = "virtpilot-8e0c6f1d5b9a4c2f";
                builder = builder.header(CONTENT_TYPE, format!("multipart/form-data; boundary={boundary}"));
                multipart(boundary, file, bytes).into()
            }
        };
        if let Some(token) = self.login.token() {
            builder = builder.header(AUTHORIZATION, token);
        }
        if let Some(ticket) = ticket {
            builder = builder.header(COOKIE, ticket.cookie.clone());
            if call.method != Method::GET {
                builder = builder.header("CSRFPreventionToken", ticket.prevention.clone());
            }
        }
        let request = builder.uri(&url).body(Full::new(body));
        request.map_err(|error| Trouble::Unanswered(format!("the request for {} cannot be made: {error}", call.path)))
    }

    fn note_clock(&self, headers: &HeaderMap<HeaderValue>) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok()).and_then(|date| rfc2822::parse(date).ok());
        if let Some(date) = date {
            self.clock_ahead.store(date.timestamp().as_second() - Timestamp::now().as_second(), Ordering::Relaxed);
        }
    }
}

/// What an answer has as `data`.
pub(crate) fn parsed<T: DeserializeOwned>(path: &'static str, body: &[u8]) -> Result<T, Trouble> {
    let parsed = serde_json::from_slice::<Envelope<T>>(body).map(|envelope| envelope.data);
    parsed.map_err(|error| Trouble::Misread { path, why: error.to_string() })
}

fn name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        _ => "DELETE",
    }
}

/// Where the API begins.
fn base(endpoint: &str, allows_http: bool) -> Result<String, Trouble> {
    let wrong = |message: String| {
        let remedy = "use an endpoint such as https://pve.example.com:8006".to_owned();
        Trouble::Settings { message, remedy }
    };
    let plain = endpoint.trim().trim_end_matches('/').trim_end_matches("/api2/json");
    let uri: http::Uri = plain.parse().map_err(|error| wrong(format!("{endpoint:?} is no address: {error}")))?;
    let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
    match uri.scheme_str() {
        _ if uri.host().is_none_or(str::is_empty) || has_user || uri.query().is_some() => {
            Err(wrong("the endpoint is no plain https:// address".to_owned()))
        }
        Some("https") => Ok(format!("{plain}/api2/json")),
        Some("http") if allows_http => Ok(format!("{plain}/api2/json")),
        Some("http") => Err(wrong(format!("{endpoint} would send credentials in clear text"))),
        _ => Err(wrong(format!("{endpoint} is no address with https://"))),
    }
}

fn filled(path: &str, parts: &[&str]) -> String {
    let mut parts = parts.iter();
    let fill = |segment: &str| match segment.starts_with('{') {
        true => utf8_percent_encode(parts.next().copied().unwrap_or_default(), ESCAPED).to_string(),
        false => segment.to_owned(),
    };
    path.split('/').map(fill).collect::<Vec<_>>().join("/")
}

fn form(parameters: &[(&'static str, String)]) -> String {
    let pair = |(name, value): &(&str, String)| format!("{name}={}", utf8_percent_encode(value, ESCAPED));
    parameters.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// The server wants the kind of content before the file.
fn multipart(boundary: &str, file: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"content\"\r\n\r\niso\r\n--{boundary}\r\nContent-Disposition: form-data; \
         name=\"filename\"; filename=\"{file}\"\r\nContent-Type: application/octet-stream\r\n\r\n"
    );
    [head.as_bytes(), bytes, format!("\r\n--{boundary}--\r\n").as_bytes()].concat()
}

/// The text of an error: the reason phrase, the message if it says more, and what is wrong with which parameter.
fn refusal(reason: &str, body: &[u8]) -> String {
    let parsed = serde_json::from_slice::<Refusal>(body).ok();
    let mut text = reason.trim().to_owned();
    let Some(Refusal { message, errors }) = parsed else { return text };
    if let Some(message) = message.map(|message| message.trim().to_owned()).filter(|message| !text.contains(message)) {
        // Older versions cut the reason phrase at the first line.
        text = if message.starts_with(&text) { message } else { format!("{text}: {message}") };
    }
    for (parameter, problem) in errors {
        let problem = problem.as_str().map_or_else(|| problem.to_string(), |problem| problem.trim().to_owned());
        text = format!("{text} {parameter}: {problem}");
    }
    text
}

/// An error with its causes, each text once.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let (mut message, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        let more = error.to_string();
        if !message.contains(&more) {
            message = format!("{message}: {more}");
        }
        cause = error.source();
    }
    message
}

#[cfg(test)]
mod tests {
    use super::{base, filled, form, refusal};

    #[test]
    fn endpoints_are_https_unless_allowed_otherwise() {
        for (endpoint, expected) in [
            ("https://pve:8006", "https://pve:8006/api2/json"),
            ("https://pve:8006/", "https://pve:8006/api2/json"),
            ("https://pve:8006/api2/json/", "https://pve:8006/api2/json"),
            ("https://[::1]:8006", "https://[::1]:8006/api2/json"),
        ] {
            assert_eq!(base(endpoint, false).ok(), Some(expected.to_owned()), "{endpoint}");
        }
        for endpoint in ["http://pve:8006", "pve:8006", "ftp://pve", "https://", "", "https://a:b@pve", "https://pve?x"]
        {
            assert!(base(endpoint, false).is_err(), "{endpoint}");
        }
        assert!(base("http://pve:8006", true).is_ok());
    }

    #[test]
    fn names_and_values_cannot_leave_their_place() {
        let path =
            filled("/nodes/{node}/storage/{storage}/content/{volume}", &["a/../b", "local", "local:iso/x y.iso"]);
        assert_eq!(path, "/nodes/a%2F..%2Fb/storage/local/content/local%3Aiso%2Fx%20y.iso");
        assert_eq!(
            form(&[("name", "a&b=c".into()), ("description", "x\ny+z".into())]),
            "name=a%26b%3Dc&description=x%0Ay%2Bz"
        );
    }

    #[test]
    fn the_text_of_an_error_has_reason_message_and_parameters() {
        let body = br#"{"data":null,"errors":{"newid":"VM 105 already exists\n"}}"#;
        assert_eq!(
            refusal("Parameter verification failed.", body),
            "Parameter verification failed. newid: VM 105 already exists"
        );
        assert_eq!(refusal("no such VM ('105')", b"{\"data\":null}"), "no such VM ('105')");
        assert_eq!(refusal("cut off", b"{\"data\":null,\"message\":\"cut off\\nmore\\n\"}"), "cut off\nmore");
        assert_eq!(refusal("Bad Gateway", b"<html>"), "Bad Gateway");
    }
}
