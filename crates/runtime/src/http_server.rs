//! Accepts connections and answers their requests, in HTTP/1, over TLS where there is a certificate.

use crate::tls::Certificate;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use std::collections::VecDeque;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_rustls::TlsAcceptor;

/// A client that takes longer for its hello, its request and reading the answer is given up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// One more client ends the oldest connection: nobody can keep others out by holding connections.
const CONNECTIONS: usize = 64;
/// After a failure to accept, such as too many open files.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// A connection, encrypted or not.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Answers until the process ends, one request for each connection.
pub(crate) async fn serve(
    listener: TcpListener,
    mut certificate: Option<Certificate>,
    routes: Router,
    patience: Duration,
) {
    let mut open = VecDeque::<AbortHandle>::new();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        open.retain(|connection| !connection.is_finished());
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let acceptor = certificate.as_mut().map(Certificate::acceptor);
        let answer = answer(stream, acceptor, routes.clone());
        // A client that is late or went away is not our failure.
        open.push_back(tokio::spawn(tokio::time::timeout(patience, answer)).abort_handle());
    }
}

async fn answer(stream: TcpStream, acceptor: Option<TlsAcceptor>, routes: Router) {
    if let Ok(stream) = handshake(stream, acceptor).await {
        let connection = http1::Builder::new()
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
        let _ = connection.await;
    }
}

/// One type for both kinds of connections, so that the code that answers is there once.
pub(crate) async fn handshake(stream: TcpStream, acceptor: Option<TlsAcceptor>) -> io::Result<Box<dyn Stream>> {
    Ok(match acceptor {
        Some(acceptor) => Box::new(acceptor.accept(stream).await?),
        None => Box::new(stream),
    })
}

#[cfg(test)]
mod tests {
    use super::{CONNECTIONS, PATIENCE, serve};
    use axum::Router;
    use axum::routing::get;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    #[tokio::test]
    async fn clients_that_hold_connections_keep_nobody_out() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, None, Router::new().route("/", get(async || "here\n")), PATIENCE));
        let mut holders = Vec::new();
        for _ in 0..2 * CONNECTIONS {
            let mut holder = TcpStream::connect(address).await.unwrap();
            holder.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
            holders.push(holder);
        }
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("here\n"), "{answer}");
        // The connection that was opened first is closed.
        assert_eq!(holders[0].read(&mut [0; 1]).await.unwrap_or_default(), 0);
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(
            listener,
            None,
            Router::new().route("/", get(async || "here\n".repeat(4_000_000))),
            Duration::from_millis(50),
        ));
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        // The answer has no room in the buffers, so the connection stays open until the server gives it up, and refuses what comes.
        while client.write_all(b"x").await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut answer = Vec::new();
        let ended = client.read_to_end(&mut answer).await;
        assert!(ended.is_err() || answer.len() < 20_000_000, "it was answered in full");
    }
}
