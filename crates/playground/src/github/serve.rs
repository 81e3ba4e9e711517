//! Receives requests over HTTPS and sends what the stand-in answers; polls for messages wait for one.

use super::{Line, Shared};
use bytes::Bytes;
use github_stand_in as github;
use http::header::{CONTENT_TYPE, DATE, HeaderName, SERVER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// What answers of the actions service start with.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The connection is closed without an answer, on purpose or because the client did.
#[derive(Debug)]
struct ConnectionClosed;

impl fmt::Display for ConnectionClosed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the stand-in closed the connection")
    }
}

impl std::error::Error for ConnectionClosed {}

/// Accepts connections forever.
pub(super) async fn listen(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, acceptor.clone(), Arc::clone(&shared)));
            }
            // Most likely too many open files: some will be closed soon.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves one client until it disconnects.
async fn connection(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let mut closing = shared.closing.subscribe();
    let serving = async {
        stream.set_nodelay(true)?;
        let stream = TokioIo::new(acceptor.accept(stream).await?);
        let service = service_fn(|request| {
            let shared = Arc::clone(&shared);
            async move { serve(&shared, request).await }
        });
        http1::Builder::new().serve_connection(stream, service).await.map_err(std::io::Error::other)
    };
    tokio::select! {
        // A client that disconnects early is not an error.
        _ = serving => {}
        _ = closing.changed() => {}
    }
}

/// Handles one request.
async fn serve(shared: &Shared, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, ConnectionClosed> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| ConnectionClosed)?.to_bytes();
    let headers: Vec<(&str, &str)> =
        parts.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let read = github::Request::from_http(parts.method.as_str(), target, &headers, &body);
    let (reply, path, at) = shared.with(|state, now| match read {
        Ok(request) => (state.handle(&request, now), request.path, now),
        Err(response) => (github::Reply::Answer(response), parts.uri.path().to_owned(), now),
    });
    let mut line = Line { at, method: parts.method.to_string(), path, status: None };
    let (response, delay) = match reply {
        github::Reply::Answer(response) => (response, Duration::ZERO),
        github::Reply::Late(response, delay) => (response, delay),
        github::Reply::Wait(poll) => (wait(shared, &poll).await, Duration::ZERO),
        github::Reply::Lost => {
            shared.records.add(line);
            return Err(ConnectionClosed);
        }
    };
    line.status = Some(response.status);
    shared.records.add(line);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    let clock = shared.look(|state, now| state.clock(now));
    Ok(http_response(response, clock))
}

/// Waits for the answer to a poll.
async fn wait(shared: &Shared, poll: &github::Poll) -> github::Response {
    let mut pulse = shared.pulse.subscribe();
    loop {
        pulse.mark_unchanged();
        let (answer, left) = shared.look(|state, now| (state.poll(poll, now), poll.until.saturating_sub(now)));
        if let Some(answer) = answer {
            return answer;
        }
        tokio::select! {
            _ = pulse.changed() => {}
            () = tokio::time::sleep(left) => {}
        }
    }
}

fn http_response(answer: github::Response, clock: i64) -> Response<Full<Bytes>> {
    let mut body = Vec::new();
    if answer.has_mark {
        body.extend_from_slice(BYTE_ORDER_MARK);
    }
    let has_body = answer.body.is_some();
    if let Some(value) = answer.body {
        body.extend_from_slice(value.to_string().as_bytes());
    }
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if has_body {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json; charset=utf-8"));
    }
    headers.insert(SERVER, HeaderValue::from_static("github.com"));
    for (name, value) in answer.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    // The clock of the server may be wrong on purpose.
    let date = Timestamp::from_second(clock).map(|time| time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    if let Some(date) = date.ok().and_then(|date| HeaderValue::from_str(&date).ok()) {
        headers.insert(DATE, date);
    }
    response
}
