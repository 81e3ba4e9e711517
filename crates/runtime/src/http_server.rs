//! Accepts connections and answers their requests, in HTTP/1, over TLS where there is a certificate.

use crate::tls::Certificate;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// A client that takes longer for its hello, or for the head of a request, is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// More clients wait until others are done.
const CONNECTIONS: usize = 64;
/// After a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_secs(1);

/// A connection, encrypted or not.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Answers until the process ends.
pub(crate) async fn serve(listener: TcpListener, mut certificate: Option<Certificate>, routes: Router) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    while let Ok(permit) = room.clone().acquire_owned().await {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let acceptor = certificate.as_mut().map(Certificate::acceptor);
        let routes = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, greet(stream, acceptor)).await {
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
                // A client that went away is not our failure.
                let _ = http.serve_connection(TokioIo::new(stream), routes).await;
            }
            drop(permit);
        });
    }
}

/// One type for both kinds of connections, so that the code that answers is there once.
async fn greet(stream: TcpStream, acceptor: Option<TlsAcceptor>) -> io::Result<Box<dyn Stream>> {
    Ok(match acceptor {
        Some(acceptor) => Box::new(acceptor.accept(stream).await?),
        None => Box::new(stream),
    })
}
