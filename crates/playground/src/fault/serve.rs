//! Takes requests, lets go wrong what the plan says, and forwards the rest.

use super::Shared;
use super::answer::{self, Body, HungUp, failure, full};
use super::asked::Asked;
use super::in_force::Order;
use super::lists;
use super::plan::Fault;
use super::record::Recording;
use super::stream::{self, Watching};
use super::upstream::Upstream;
use super::version;
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

/// Takes connections for ever.
pub(super) async fn listen(listener: TcpListener, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                tokio::spawn(connection(stream, acceptor.clone(), Arc::clone(&shared)));
            }
            // Too many open files, most likely: some will be closed.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
}

/// Serves one client until it leaves or is killed.
async fn connection(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>) {
    let mut kills = shared.in_force.kills();
    let upstream = Arc::new(Mutex::new(Upstream::to(Arc::clone(&shared.server))));
    let serving = async {
        stream.set_nodelay(true)?;
        let stream = TokioIo::new(acceptor.accept(stream).await?);
        let service = service_fn(|request| {
            let (shared, upstream) = (Arc::clone(&shared), Arc::clone(&upstream));
            // On a connection there is one request at a time: nobody waits here.
            async move { serve(&shared, &mut *upstream.lock().await, request).await }
        });
        http1::Builder::new().serve_connection(stream, service).await.map_err(std::io::Error::other)
    };
    tokio::select! {
        // A client that leaves in the middle is nothing to tell anybody about.
        _ = serving => {}
        _ = kills.changed() => {}
    }
}

/// One request.
async fn serve(
    shared: &Arc<Shared>,
    upstream: &mut Upstream,
    request: Request<Incoming>,
) -> Result<Response<Body>, HungUp> {
    let (parts, body) = request.into_parts();
    let asked = Asked::of(&parts.method, &parts.uri);
    let body = body.collect().await.map_err(|_| HungUp)?.to_bytes();
    let recording = shared.records.begin(&asked, &body);
    let (order, generation) = shared.in_force.due(&asked);
    let headers = answer::forwarded(parts.headers, &shared.server.host);
    let key = lists::key(&asked, &headers);

    if let Some(order) = &order {
        match &order.fault {
            Fault::KillBefore {} if fires(shared, order, &recording) => return killed(shared, recording).await,
            Fault::Block {} if fires(shared, order, &recording) => return silence(recording).await,
            Fault::Reset {} if fires(shared, order, &recording) => return Err(HungUp),
            Fault::Status { code, retry_after } if fires(shared, order, &recording) => {
                return Ok(answered(failure(*code, *retry_after), &recording));
            }
            Fault::ExpiredContinue {} if fires(shared, order, &recording) => {
                return Ok(answered(failure(410, None), &recording));
            }
            Fault::Stale {} => {
                if let Some(answer) = shared.lists.first(&key)
                    && fires(shared, order, &recording)
                {
                    return Ok(answered(answer, &recording));
                }
            }
            Fault::Delay { ms } if fires(shared, order, &recording) => {
                tokio::time::sleep(Duration::from_millis(*ms)).await;
            }
            _ => {}
        }
    }

    let mut request = Request::new(Full::new(body));
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (parts.method, parts.uri, headers);
    let (mut parts, body) = upstream.send(request).await?.into_parts();
    answer::strip(&mut parts.headers);
    recording.note(|line| line.status = Some(parts.status.as_u16()));
    let spoiled = order.as_ref().filter(|order| order.fault.spoils_answer());
    if asked.verb == "watch" && parts.status.is_success() {
        // The body may have no end; that the server has begun to answer is enough.
        if let Some(order) = spoiled
            && fires(shared, order, &recording)
        {
            return spoil(&order.fault, Response::from_parts(parts, Bytes::new()), shared, recording).await;
        }
        parts.headers.remove(CONTENT_LENGTH);
        let watching = Watching::new(Arc::clone(shared), asked, recording, body, (order, generation));
        return Ok(Response::from_parts(parts, stream::body(watching)));
    }
    let body = body.collect().await.map_err(|_| HungUp)?.to_bytes();
    let answer = Response::from_parts(parts, body);
    recording.note(|line| line.resource_version_out = version::of_object(answer.body()));
    if asked.verb == "list" && answer.status().is_success() {
        shared.lists.remember(key, &answer);
    }
    match spoiled {
        Some(order) if fires(shared, order, &recording) => spoil(&order.fault, answer, shared, recording).await,
        _ => Ok(answered(answer, &recording)),
    }
}

/// What is left of an answer of the server.
async fn spoil(
    fault: &Fault,
    answer: Response<Bytes>,
    shared: &Shared,
    recording: Recording,
) -> Result<Response<Body>, HungUp> {
    match fault {
        Fault::KillAfterCommit {} => killed(shared, recording).await,
        Fault::BlindTimeout { close: true } => Err(HungUp),
        Fault::Truncate {} => Ok(torn(answer, &recording)),
        _ => silence(recording).await,
    }
}

/// Whether the fault comes true now; if so, it is written down before anybody can notice it.
fn fires(shared: &Shared, order: &Order, recording: &Recording) -> bool {
    let fires = shared.in_force.fire(order, recording.seq());
    if fires {
        recording.note(|line| line.fault = Some(order.fault.name()));
    }
    fires
}

/// The program dies, and with it this connection: `connection` ends when it hears of the kill.
async fn killed(shared: &Shared, recording: Recording) -> Result<Response<Body>, HungUp> {
    drop(recording);
    shared.in_force.kill();
    std::future::pending().await
}

/// Nothing is said until the client leaves; what there is to know about the request is known now.
async fn silence(recording: Recording) -> Result<Response<Body>, HungUp> {
    drop(recording);
    std::future::pending().await
}

fn answered(answer: Response<Bytes>, recording: &Recording) -> Response<Body> {
    recording.note(|line| {
        line.status = Some(answer.status().as_u16());
        line.bytes_out = answer.body().len() as u64;
    });
    answer.map(full)
}

/// All that is said of the body holds, but half of it is missing.
fn torn(mut answer: Response<Bytes>, recording: &Recording) -> Response<Body> {
    let length = answer.body().len();
    answer.headers_mut().insert(CONTENT_LENGTH, length.into());
    recording.note(|line| line.bytes_out = length as u64 / 2);
    answer.map(|body| stream::torn(body.slice(..length / 2)))
}
