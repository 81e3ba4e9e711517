//! Connections to the real API server: one for each client connection, closed together with it.

use super::response::ConnectionClosed;
use crate::certificates::Certificates;
use crate::user_error::UserError;
use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::task::AbortHandle;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// The API server's address and TLS settings.
pub(super) struct Server {
    address: SocketAddr,
    connector: TlsConnector,
    /// The Host header of forwarded requests.
    pub(super) host: HeaderValue,
}

/// Sets up TLS for both sides. Clients see the server's own certificate, which is valid for 127.0.0.1 on any port, so they
/// cannot tell the proxy from the server.
pub(super) fn tls(address: &str, certificates: &Certificates) -> Result<(Server, TlsAcceptor), UserError> {
    let unusable = |error: &dyn std::error::Error| {
        UserError::new("the fault proxy cannot use the playground's certificates", "start the playground again")
            .with_detail(error.to_string())
    };
    let host = address.trim_start_matches("https://");
    let address: SocketAddr = host.parse().map_err(|error| unusable(&error))?;
    let host = HeaderValue::from_str(host).map_err(|error| unusable(&error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_file(&certificates.authority).map_err(|error| unusable(&error))?;
    roots.add(authority).map_err(|error| unusable(&error))?;
    let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let chain = vec![CertificateDer::from_pem_file(&certificates.server.public).map_err(|error| unusable(&error))?];
    let key = PrivateKeyDer::from_pem_file(&certificates.server.private).map_err(|error| unusable(&error))?;
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| unusable(&error))?;
    // HTTP/1.1 has one request at a time per connection, so requests can be counted in order.
    client.alpn_protocols = vec![b"http/1.1".to_vec()];
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok((Server { address, connector: Arc::new(client).into(), host }, Arc::new(server).into()))
}

/// A connection to the server, opened when it is needed.
pub(super) struct Upstream {
    server: Arc<Server>,
    open: Option<(SendRequest<Full<Bytes>>, Driver)>,
}

/// Aborts the task that drives a connection.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Upstream {
    pub(super) fn to(server: Arc<Server>) -> Upstream {
        Upstream { server, open: None }
    }

    /// Sends a request; it is retried only if nothing of it was sent.
    pub(super) async fn send(
        &mut self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, ConnectionClosed> {
        if let Some((sender, _)) = &mut self.open
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(response),
                Err(mut error) => request = error.take_message().ok_or(ConnectionClosed)?,
            }
        }
        let (sender, _) = self.open.insert(connect(&self.server).await.map_err(|_| ConnectionClosed)?);
        sender.send_request(request).await.map_err(|_| ConnectionClosed)
    }
}

async fn connect(server: &Server) -> std::io::Result<(SendRequest<Full<Bytes>>, Driver)> {
    let stream = TcpStream::connect(server.address).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::IpAddress(server.address.ip().into());
    let stream = server.connector.connect(name, stream).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
    let driver = tokio::spawn(connection);
    Ok((sender, Driver(driver.abort_handle())))
}
