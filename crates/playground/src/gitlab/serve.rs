//! Receives requests over HTTPS and sends what the stand-in answers.

use super::{Line, Shared};
use bytes::Bytes;
use gitlab_stand_in as gitlab;
use http::header::{CONTENT_TYPE, DATE, HeaderName, SERVER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::Value;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

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

/// Serves one client until it disconnects, which is no error.
async fn connection(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let stream = TokioIo::new(acceptor.accept(stream).await?);
    let service = service_fn(|request| {
        let shared = Arc::clone(&shared);
        async move { serve(&shared, request).await }
    });
    http1::Builder::new().serve_connection(stream, service).await.map_err(io::Error::other)
}

/// Handles one request. An error closes the connection without an answer, on purpose or because the client did.
async fn serve(shared: &Shared, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let headers: Vec<(&str, &str)> =
        parts.headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect();
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    let read = gitlab::Request::from_http(parts.method.as_str(), target, &headers, &body);
    let (reply, path, at, clock) = shared.with(|state, now| {
        let (reply, path) = match read {
            Ok(request) => (state.handle(&request, now), request.shown()),
            Err(response) => (gitlab::Reply::Answer(response), parts.uri.path().to_owned()),
        };
        (reply, path, now, state.clock(now))
    });
    let mut line = Line { at, method: parts.method.to_string(), path, status: None };
    let (response, delay) = match reply {
        gitlab::Reply::Answer(response) => (response, Duration::ZERO),
        gitlab::Reply::Late(response, delay) => (response, delay),
        gitlab::Reply::Lost => {
            shared.records.add(line);
            return Err(io::Error::other("lost"));
        }
    };
    line.status = Some(response.status);
    shared.records.add(line);
    tokio::time::sleep(delay).await;
    Ok(http_response(response, clock))
}

fn http_response(answer: gitlab::Response, clock: i64) -> Response<Full<Bytes>> {
    let (kind, body) = match answer.body {
        None => (None, String::new()),
        Some(Value::String(text)) => (Some("text/plain"), text),
        Some(value) => (Some("application/json"), value.to_string()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Some(kind) = kind {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    headers.insert(SERVER, HeaderValue::from_static("nginx"));
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
