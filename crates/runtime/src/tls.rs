//! Accepts connections over TLS, with a certificate that follows its files.

use anyhow::Context;
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A client that takes longer to say hello is given up.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// More clients wait until others are done.
const HANDSHAKES_AT_A_TIME: usize = 16;
/// After a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_secs(1);

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum Source {
    /// These files; they are read again when they change.
    Files {
        /// The certificate chain in PEM.
        certificate: PathBuf,
        /// The private key in PEM.
        key: PathBuf,
    },
    /// A new one for these names, which nobody has signed.
    SelfSigned(Vec<String>),
}

/// The certificate in use.
struct Certificate {
    source: Source,
    /// When its files were written.
    written: Option<[SystemTime; 2]>,
    acceptor: TlsAcceptor,
}

impl Certificate {
    fn load(source: Source) -> anyhow::Result<Certificate> {
        let written = written(&source);
        Ok(Certificate { acceptor: acceptor(&source)?, source, written })
    }

    /// What accepts the next connection. Files that cannot be used leave the last certificate in use.
    fn acceptor(&mut self) -> TlsAcceptor {
        let written = written(&self.source);
        if written != self.written {
            self.written = written;
            match acceptor(&self.source) {
                Ok(acceptor) => {
                    self.acceptor = acceptor;
                    tracing::info!("the certificate of the metrics has changed");
                }
                Err(error) => tracing::warn!("the last certificate of the metrics stays in use: {error:#}"),
            }
        }
        self.acceptor.clone()
    }
}

fn written(source: &Source) -> Option<[SystemTime; 2]> {
    let Source::Files { certificate, key } = source else { return None };
    let of = |path: &PathBuf| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    Some([of(certificate)?, of(key)?])
}

fn acceptor(source: &Source) -> anyhow::Result<TlsAcceptor> {
    let (chain, key) = match source {
        Source::Files { certificate, key } => {
            let failed = |path: &PathBuf| format!("could not read {}", path.display());
            let chain = CertificateDer::pem_file_iter(certificate).with_context(|| failed(certificate))?;
            let chain = chain.collect::<Result<Vec<_>, _>>().with_context(|| failed(certificate))?;
            (chain, PrivateKeyDer::from_pem_file(key).with_context(|| failed(key))?)
        }
        Source::SelfSigned(names) => {
            let made = rcgen::generate_simple_self_signed(names.clone()).context("could not make a certificate")?;
            (vec![made.cert.der().clone()], PrivateKeyDer::from(made.signing_key))
        }
    };
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let config = config.context("the certificate and its key cannot be used; give a chain and a key that fit")?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Connections over TLS.
pub(crate) struct TlsListener {
    connections: mpsc::Receiver<(TlsStream<TcpStream>, SocketAddr)>,
    address: SocketAddr,
}

impl TlsListener {
    /// Starts to accept. A certificate that cannot be used is an error at once.
    pub(crate) fn start(listener: TcpListener, source: Source) -> anyhow::Result<TlsListener> {
        let (mut certificate, address) = (Certificate::load(source)?, listener.local_addr()?);
        let (sender, connections) = mpsc::channel(1);
        let room = Arc::new(Semaphore::new(HANDSHAKES_AT_A_TIME));
        tokio::spawn(async move {
            while !sender.is_closed() {
                let Ok(permit) = room.clone().acquire_owned().await else { return };
                let Ok((stream, peer)) = listener.accept().await else {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                let (acceptor, sender) = (certificate.acceptor(), sender.clone());
                tokio::spawn(async move {
                    if let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await {
                        let _ = sender.send((stream, peer)).await;
                    }
                    drop(permit);
                });
            }
        });
        Ok(TlsListener { connections, address })
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        match self.connections.recv().await {
            Some(connection) => connection,
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}
