//! What the tests of both servers need: a border, what was counted, and requests over plain connections.

use crate::fleet::border::Border;
use crate::fleet::servers::Count;
use fleet::inbox::Received;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What was counted.
#[derive(Clone, Default)]
pub(super) struct Counted(Arc<Mutex<BTreeMap<(&'static str, &'static str), u64>>>);

impl Counted {
    pub(super) fn count(&self) -> Count {
        let counts = self.0.clone();
        Arc::new(move |server, result| *counts.lock().unwrap().entry((server, result)).or_default() += 1)
    }

    pub(super) fn of(&self, server: &'static str, result: &'static str) -> u64 {
        self.0.lock().unwrap().get(&(server, result)).copied().unwrap_or_default()
    }

    /// Waits until something was counted so often.
    pub(super) async fn until(&self, server: &'static str, result: &'static str, least: u64) {
        let counted = async {
            while self.of(server, result) < least {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = tokio::time::timeout(Duration::from_secs(60), counted).await;
        found
            .unwrap_or_else(|_| panic!("{server} {result} is not counted {least} times: {:?}", self.0.lock().unwrap()));
    }
}

/// A port of this machine.
pub(super) async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

pub(super) async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.unwrap()
}

/// Sends a request as it is, and reads until the server ends the connection.
pub(super) async fn exchange(mut stream: impl AsyncRead + AsyncWrite + Unpin, request: &[u8]) -> String {
    // A server that has already refused the request reads no more of it.
    let _ = stream.write_all(request).await;
    let mut answer = Vec::new();
    let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await.unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The status of an answer.
pub(super) fn status(answer: &str) -> u16 {
    answer.get(9..12).and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("no answer: {answer:?}"))
}

/// Takes what waits at a border, until nothing more does for a moment.
pub(super) async fn received(border: &Border) -> Vec<Received> {
    let mut all = Vec::new();
    while let Ok(more) = tokio::time::timeout(Duration::from_millis(50), border.receive()).await {
        all.extend(more);
    }
    all
}
