//! One exchange over HTTP: connection, time limit, report, and the breaker of each host.

use crate::exchange::{self, Exchange, Report, Status};
use crate::settings::Tls;
use crate::tls;
use bytes::Bytes;
use fleet::forge::breaker::Breaker;
use http::header::{DATE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A host that takes longer to accept a connection is unreachable.
const CONNECT: Duration = Duration::from_secs(10);
/// Load balancers close a connection without a request after a minute.
const IDLE: Duration = Duration::from_secs(45);
/// No answer that we ask for is larger: a page has a hundred entries.
const LARGEST_ANSWER: usize = 16 << 20;

/// Connections to the hosts of one CI platform.
pub(crate) struct Transport {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    report: Report,
    breakers: Mutex<BTreeMap<String, Breaker>>,
}

/// One request.
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) url: String,
    /// The path with placeholders, for reports.
    pub(crate) path: &'static str,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Bytes,
    /// For the whole exchange.
    pub(crate) limit: Duration,
}

/// One answer.
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// How far the clock of the server is ahead of ours, in seconds, if it says what it shows.
    pub(crate) clock_ahead: Option<i64>,
}

impl Reply {
    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// It was not sent, because the host does not answer.
    NotSent { host: String, until: Timestamp },
    /// It may have been carried out.
    Unanswered(String),
    /// A person has to change something: what is wrong and the remedy.
    Settings(String, String),
}

impl Transport {
    /// What is wrong with the settings otherwise, with the remedy. Nothing is sent.
    pub(crate) fn new(tls: &Tls, report: Report) -> Result<Transport, (String, String)> {
        let mut connector = HttpConnector::new();
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        let tls = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls::config(tls)?).https_or_http();
        // HTTP/1.1: a poll that is given up takes its connection with it, so that the next one has a new one.
        let http = legacy::Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(tls.enable_http1().wrap_connector(connector));
        Ok(Transport { http, report, breakers: Mutex::default() })
    }

    /// Sends a request, and reports how it ended.
    pub(crate) async fn send(&self, call: Call) -> Result<Reply, NoReply> {
        let (method, path, limit) = (name(&call.method), call.path, call.limit);
        let host = host(&call.url).to_owned();
        let mut admitted = Admitted::new(self, &host)?;
        let request = request(call)?;
        let start = Instant::now();
        let span = exchange::span(method, path, &host);
        let answer = match timeout(limit, self.answer(request)).await {
            Ok(answer) => answer,
            Err(_) => Err(NoReply::Unanswered(format!("no answer within {:.0} s", limit.as_secs_f64().ceil()))),
        };
        let code = answer.as_ref().ok().map(|reply| reply.code);
        let remaining = answer.as_ref().ok().and_then(|reply| {
            let said = reply.header("x-ratelimit-remaining").or_else(|| reply.header("ratelimit-remaining"));
            said?.parse().ok()
        });
        exchange::record(&span, code);
        let status = code.map_or(Status::Unanswered, Status::of);
        (self.report)(&Exchange { method, path, status, duration: start.elapsed(), remaining });
        admitted.end(code.is_some_and(|code| code < 500));
        answer
    }

    async fn answer(&self, request: Request<Full<Bytes>>) -> Result<Reply, NoReply> {
        let response = match self.http.request(request).await {
            Ok(response) => response,
            Err(error) => {
                return Err(match tls::explain(&error) {
                    Some((message, remedy)) => NoReply::Settings(message, remedy),
                    None => NoReply::Unanswered(chain(&error)),
                });
            }
        };
        let (parts, body) = response.into_parts();
        let clock_ahead = clock(&parts.headers).map(|date| date - Timestamp::now().as_second());
        let body = Limited::new(body, LARGEST_ANSWER).collect().await;
        let body = body.map_err(|error| NoReply::Unanswered(format!("the answer broke off: {error}")))?;
        Ok(Reply { code: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes(), clock_ahead })
    }

    fn with<T>(&self, host: &str, action: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut breakers = self.breakers.lock().unwrap_or_else(PoisonError::into_inner);
        action(breakers.entry(host.to_owned()).or_default())
    }
}

/// A request that the breaker let through; one that is dropped says nothing about its host.
struct Admitted<'a> {
    transport: &'a Transport,
    host: &'a str,
    is_over: bool,
}

impl<'a> Admitted<'a> {
    fn new(transport: &'a Transport, host: &'a str) -> Result<Admitted<'a>, NoReply> {
        let admitted = transport.with(host, |breaker| breaker.admit(Timestamp::now()));
        admitted.map_err(|until| NoReply::NotSent { host: host.to_owned(), until })?;
        Ok(Admitted { transport, host, is_over: false })
    }

    fn end(&mut self, is_answered: bool) {
        self.is_over = true;
        self.transport.with(self.host, |breaker| match is_answered {
            true => breaker.answered(),
            false => breaker.failed(Timestamp::now()),
        });
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.transport.with(self.host, Breaker::cancelled);
        }
    }
}

fn request(call: Call) -> Result<Request<Full<Bytes>>, NoReply> {
    let mut builder = Request::builder().method(call.method).uri(&call.url);
    for (name, value) in call.headers {
        builder = builder.header(name, value);
    }
    let path = call.path;
    let request = builder.body(Full::new(call.body));
    request.map_err(|error| NoReply::Unanswered(format!("the request for {path} cannot be made: {error}")))
}

fn name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        _ => "DELETE",
    }
}

/// The host of an address, with its port.
pub(crate) fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split(['/', '?']).next().unwrap_or_default()
}

fn clock(headers: &HeaderMap) -> Option<i64> {
    let date = headers.get(DATE)?.to_str().ok()?;
    Some(rfc2822::parse(date).ok()?.timestamp().as_second())
}

/// An error with its causes, each text once.
fn chain(error: &dyn std::error::Error) -> String {
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
