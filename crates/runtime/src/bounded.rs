//! A server for strangers: connections, times and sizes are bounded, whoever connects and whatever they send.

use crate::http_server::{PAUSE, handshake};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// What a server gives to strangers at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// So many connections at a time; one more ends the oldest one that waits for its client, or else the oldest.
    pub connections: usize,
    /// So much time for the handshake of TLS, and for the head of each request.
    pub head: Duration,
    /// The longest life of a connection.
    pub life: Duration,
}

/// Who does not accept a connection by then is not there.
const CONNECT: Duration = Duration::from_secs(3);
/// The buffer of a connection, and so the longest head of a request.
const BUFFER: usize = 16 * 1024;

/// What answers requests.
pub trait Service: Send + Sync + 'static {
    /// Answers one request, within a time of its own.
    fn answer(&self, peer: IpAddr, request: Request<Incoming>) -> impl Future<Output = Response<Full<Bytes>>> + Send;

    /// Where connections of a peer are passed on to, byte for byte; nothing if they are answered here.
    fn elsewhere(&self, peer: IpAddr) -> impl Future<Output = Option<SocketAddr>> + Send {
        let _ = peer;
        async { None }
    }

    /// A connection was passed on.
    fn passed_on(&self) {}

    /// A connection was ended before it had an answer.
    fn ended(&self, why: Ended);
}

/// Why a connection was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// There were too many.
    Evicted,
    /// The handshake or the head of a request took too long.
    SlowHead,
    /// The handshake of TLS failed, or there is no certificate yet.
    NoTls,
}

/// What the next connection is accepted with.
pub enum Tls {
    /// Without encryption.
    Off,
    /// With this certificate.
    With(TlsAcceptor),
    /// It is refused: there is no certificate yet.
    NotYet,
}

/// Answers until the process ends.
pub async fn serve<S: Service>(
    listener: TcpListener,
    mut tls: impl FnMut() -> Tls + Send,
    limits: Limits,
    service: Arc<S>,
) {
    let mut open = Vec::<Open>::new();
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let tls = tls();
        if open.len() >= limits.connections {
            open.retain(|connection| !connection.handle.is_finished());
        }
        if open.len() >= limits.connections {
            let waiting = open.iter().position(|connection| !connection.is_answering.load(Ordering::Relaxed));
            // In the order in which they came.
            open.remove(waiting.unwrap_or_default()).handle.abort();
            service.ended(Ended::Evicted);
        }
        let is_answering = Arc::new(AtomicBool::new(false));
        let connection = converse(stream, peer.ip(), tls, limits, service.clone(), is_answering.clone());
        let handle = tokio::spawn(tokio::time::timeout(limits.life, connection)).abort_handle();
        open.push(Open { handle, is_answering });
    }
}

/// A connection.
struct Open {
    handle: AbortHandle,
    is_answering: Arc<AtomicBool>,
}

async fn converse<S: Service>(
    stream: TcpStream,
    peer: IpAddr,
    tls: Tls,
    limits: Limits,
    service: Arc<S>,
    is_answering: Arc<AtomicBool>,
) {
    // Answers are small, and nobody shall wait for their last packet.
    let _ = stream.set_nodelay(true);
    let stream = match pass_on(stream, peer, &*service).await {
        Some(stream) => stream,
        None => return,
    };
    let acceptor = match tls {
        Tls::Off => None,
        Tls::With(acceptor) => Some(acceptor),
        Tls::NotYet => return service.ended(Ended::NoTls),
    };
    let stream = match tokio::time::timeout(limits.head, handshake(stream, acceptor)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(_)) => return service.ended(Ended::NoTls),
        Err(_) => return service.ended(Ended::SlowHead),
    };
    let was_answered = Arc::new(AtomicBool::new(false));
    let answer = service_fn(|request| {
        let (service, is_answering, was_answered) = (service.clone(), is_answering.clone(), was_answered.clone());
        async move {
            is_answering.store(true, Ordering::Relaxed);
            let answer = service.answer(peer, request).await;
            was_answered.store(true, Ordering::Relaxed);
            is_answering.store(false, Ordering::Relaxed);
            Ok::<_, Infallible>(answer)
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.head)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(stream), answer);
    let ended = connection.await;
    // Who has been answered and says nothing more is not slow.
    if ended.is_err_and(|error| error.is_timeout()) && !was_answered.load(Ordering::Relaxed) {
        service.ended(Ended::SlowHead);
    }
}

/// Passes a connection on until one of both sides ends it. It comes back if it is to be answered here, or nobody answers there.
async fn pass_on<S: Service>(mut stream: TcpStream, peer: IpAddr, service: &S) -> Option<TcpStream> {
    let connect = async { TcpStream::connect(service.elsewhere(peer).await?).await.ok() };
    let Ok(Some(mut other)) = tokio::time::timeout(CONNECT, connect).await else { return Some(stream) };
    let _ = other.set_nodelay(true);
    service.passed_on();
    let _ = tokio::io::copy_bidirectional(&mut stream, &mut other).await;
    None
}

/// How much of bodies may be in memory at a time, of all connections together.
#[derive(Debug, Clone)]
pub struct Memory(Arc<Semaphore>);

/// The unit in which memory is counted.
const UNIT: usize = 1024;

impl Memory {
    /// So many bytes, counted in units of a KiB.
    pub fn new(bytes: usize) -> Memory {
        Memory(Arc::new(Semaphore::new(bytes / UNIT)))
    }
}

/// A body in memory.
#[derive(Debug)]
pub struct Held {
    /// The body.
    pub bytes: Vec<u8>,
    /// Given back with it.
    _memory: Option<OwnedSemaphorePermit>,
}

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// It is larger than it may be.
    TooLarge,
    /// It took too long.
    Slow,
    /// The client went away, or sent no HTTP.
    Broken,
    /// The bodies of others fill the memory.
    Busy,
}

/// Reads a body of at most so many bytes. Memory is taken as the body arrives: what a client only announces costs nothing.
pub async fn read(mut body: Incoming, most: usize, within: Duration, memory: &Memory) -> Result<Held, Unread> {
    if body.size_hint().lower() > u64::try_from(most).unwrap_or(u64::MAX) {
        return Err(Unread::TooLarge);
    }
    let reading = async {
        let (mut bytes, mut taken): (Vec<u8>, Option<OwnedSemaphorePermit>) = (Vec::new(), None);
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else { return Err(Unread::Broken) };
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > most {
                return Err(Unread::TooLarge);
            }
            let wanted = (bytes.len() + data.len()).div_ceil(UNIT);
            let more = wanted.saturating_sub(taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
            let more = memory.0.clone().try_acquire_many_owned(u32::try_from(more).unwrap_or(u32::MAX));
            let more = more.map_err(|_| Unread::Busy)?;
            match &mut taken {
                Some(taken) => taken.merge(more),
                None => taken = Some(more),
            }
            bytes.extend_from_slice(&data);
        }
        Ok(Held { bytes, _memory: taken })
    };
    tokio::time::timeout(within, reading).await.unwrap_or(Err(Unread::Slow))
}
