//! Receives requests over HTTPS and sends what the stand-in answers.

use super::{Line, Shared};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, DATE, PRAGMA, SERVER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use pve_stand_in as pve;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

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
    let read = pve::Request::from_http(parts.method.as_str(), target, &headers, &body);
    let (reply, path, at, clock) = shared.with(|state, now| {
        let (reply, path) = match read {
            Ok(request) => (state.handle(&request, now), request.path),
            Err(response) => (pve::Reply::Answer(response), parts.uri.path().to_owned()),
        };
        (reply, path, now, state.clock(now))
    });
    let mut line = Line { at, method: parts.method.to_string(), path, status: None };
    let (response, delay) = match reply {
        pve::Reply::Answer(response) => (response, Duration::ZERO),
        pve::Reply::Late(response, delay) => (response, delay),
        pve::Reply::Lost => {
            shared.records.add(line);
            return Err(ConnectionClosed);
        }
    };
    line.status = Some(response.status);
    shared.records.add(line);
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    Ok(http_response(&response, clock))
}

fn http_response(answer: &pve::Response, clock: i64) -> Response<Full<Bytes>> {
    let body = answer.body.as_ref().map(ToString::to_string).unwrap_or_default();
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Ok(reason) = ReasonPhrase::try_from(answer.reason.as_bytes()) {
        response.extensions_mut().insert(reason);
    }
    let headers = response.headers_mut();
    if answer.body.is_some() {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json;charset=UTF-8"));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=0"));
    headers.insert(PRAGMA, HeaderValue::from_static("no-cache"));
    headers.insert(SERVER, HeaderValue::from_static("pve-api-daemon/3.0"));
    // The clock of the cluster may be wrong on purpose.
    let date = Timestamp::from_second(clock).map(|time| time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
    if let Some(date) = date.ok().and_then(|date| HeaderValue::from_str(&date).ok()) {
        headers.insert(DATE, date);
    }
    response
}
