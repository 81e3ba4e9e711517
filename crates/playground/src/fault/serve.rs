//! Receives requests, injects the faults of the plan and forwards everything else.

use super::Shared;
use super::active_plan::PendingFault;
use super::list_cache;
use super::plan::Fault;
use super::record::Recording;
use super::request_info::RequestInfo;
use super::resource_version;
use super::response::{self, Body, ConnectionClosed, full, status_response};
use super::upstream::Upstream;
use super::watch_stream::{self, WatchStream};
use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
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

/// Serves one client until it disconnects or is killed.
async fn connection(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let mut kills = shared.active_plan.kills();
    let upstream = Arc::new(Mutex::new(Upstream::to(Arc::clone(&shared.server))));
    let serving = async {
        stream.set_nodelay(true)?;
        let stream = TokioIo::new(acceptor.accept(stream).await?);
        let service = service_fn(|request| {
            let (shared, upstream) = (Arc::clone(&shared), Arc::clone(&upstream));
            // A connection has one request at a time, so the lock is never contended.
            async move { serve(&shared, &mut *upstream.lock().await, request).await }
        });
        http1::Builder::new().serve_connection(stream, service).await.map_err(std::io::Error::other)
    };
    tokio::select! {
        // A client that disconnects early is not an error.
        _ = serving => {}
        _ = kills.changed() => {}
    }
}

/// Handles one request.
async fn serve(
    shared: &Arc<Shared>,
    upstream: &mut Upstream,
    request: Request<Incoming>,
) -> Result<Response<Body>, ConnectionClosed> {
    let (parts, body) = request.into_parts();
    let info = RequestInfo::of(&parts.method, &parts.uri);
    let body = body.collect().await.map_err(|_| ConnectionClosed)?.to_bytes();
    let recording = shared.records.begin(&info, &body);
    let (pending, generation) = shared.active_plan.due(&info);
    let headers = response::forwarded(parts.headers, &shared.server.host);
    let key = list_cache::key(&info, &headers);

    if let Some(pending) = &pending {
        match &pending.fault {
            Fault::KillBefore {} if fires(shared, pending, &recording) => return kill(shared, recording).await,
            Fault::Block {} if fires(shared, pending, &recording) => return never_respond(recording).await,
            Fault::Reset {} if fires(shared, pending, &recording) => return Err(ConnectionClosed),
            Fault::Status { code, retry_after } if fires(shared, pending, &recording) => {
                return Ok(respond(status_response(*code, *retry_after), &recording));
            }
            Fault::ExpiredContinue {} if fires(shared, pending, &recording) => {
                return Ok(respond(status_response(410, None), &recording));
            }
            Fault::Stale {} => {
                if let Some(first) = shared.list_cache.first(&key)
                    && fires(shared, pending, &recording)
                {
                    return Ok(respond(first, &recording));
                }
            }
            Fault::Delay { ms } if fires(shared, pending, &recording) => {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
            }
            _ => {}
        }
    }

    let mut request = Request::new(Full::new(body));
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (parts.method, parts.uri, headers);
    let (mut parts, body) = upstream.send(request).await?.into_parts();
    response::strip(&mut parts.headers);
    recording.update(|line| line.status = Some(parts.status.as_u16()));
    let response_fault = pending.as_ref().filter(|pending| pending.fault.applies_to_response());
    if info.verb == "watch" && parts.status.is_success() {
        // The body may never end; it is enough that the server has begun to respond.
        if let Some(pending) = response_fault
            && fires(shared, pending, &recording)
        {
            let response = Response::from_parts(parts, Bytes::new());
            return inject_into_response(&pending.fault, response, shared, recording).await;
        }
        parts.headers.remove(CONTENT_LENGTH);
        let watch = WatchStream::new(Arc::clone(shared), info, recording, body, (pending, generation));
        return Ok(Response::from_parts(parts, watch_stream::body(watch)));
    }
    let body = body.collect().await.map_err(|_| ConnectionClosed)?.to_bytes();
    let response = Response::from_parts(parts, body);
    recording.update(|line| line.resource_version_out = resource_version::of_object(response.body()));
    if info.verb == "list" && response.status().is_success() {
        shared.list_cache.store(key, &response);
    }
    match response_fault {
        Some(pending) if fires(shared, pending, &recording) => {
            inject_into_response(&pending.fault, response, shared, recording).await
        }
        _ => Ok(respond(response, &recording)),
    }
}

/// Applies a fault to the server's response.
async fn inject_into_response(
    fault: &Fault,
    response: Response<Bytes>,
    shared: &Shared,
    recording: Recording,
) -> Result<Response<Body>, ConnectionClosed> {
    match fault {
        Fault::KillAfterCommit {} => kill(shared, recording).await,
        Fault::BlindTimeout { close: true } => Err(ConnectionClosed),
        Fault::Truncate {} => Ok(truncated(response, &recording)),
        _ => never_respond(recording).await,
    }
}

/// Whether the fault is injected now; if so, it is recorded before its effect can be observed.
fn fires(shared: &Shared, pending: &PendingFault, recording: &Recording) -> bool {
    let fires = shared.active_plan.fire(pending, recording.seq());
    if fires {
        recording.update(|line| line.fault = Some(pending.fault.name()));
    }
    fires
}

/// Kills the program under test; `connection` is notified and closes this connection.
async fn kill(shared: &Shared, recording: Recording) -> Result<Response<Body>, ConnectionClosed> {
    drop(recording);
    shared.active_plan.kill();
    std::future::pending().await
}

/// Keeps the connection open without a response; the record is finished now.
async fn never_respond(recording: Recording) -> Result<Response<Body>, ConnectionClosed> {
    drop(recording);
    std::future::pending().await
}

fn respond(response: Response<Bytes>, recording: &Recording) -> Response<Body> {
    recording.update(|line| {
        line.status = Some(response.status().as_u16());
        line.bytes_out = response.body().len() as u64;
    });
    response.map(full)
}

/// Keeps the Content-Length of the whole body and sends half of it.
fn truncated(mut response: Response<Bytes>, recording: &Recording) -> Response<Body> {
    let length = response.body().len();
    response.headers_mut().insert(CONTENT_LENGTH, length.into());
    recording.update(|line| line.bytes_out = length as u64 / 2);
    response.map(|body| watch_stream::truncated(body.slice(..length / 2)))
}
