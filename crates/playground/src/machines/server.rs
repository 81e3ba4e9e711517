//! A connection of a runner to its CI platform.

use crate::user_error::UserError;
use http::header::HOST;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// A connection to a stand-in.
pub(super) struct Server {
    sender: SendRequest<Full<bytes::Bytes>>,
    host: String,
}

impl Server {
    pub(super) async fn connect(address: &str, ca: &str) -> Result<Server, UserError> {
        let failed = |error: String| {
            UserError::new(format!("nobody answers at {address:?}"), "look at the stand-in").with_detail(error)
        };
        let uri: Uri = address.parse().map_err(|error: http::uri::InvalidUri| failed(error.to_string()))?;
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(ca.as_bytes()).flatten());
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(uri.host().unwrap_or_default().to_owned());
        let name = name.map_err(|error| failed(error.to_string()))?;
        let stream = TcpStream::connect(&host).await.map_err(|error| failed(error.to_string()))?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let stream = TokioIo::new(stream.map_err(|error| failed(error.to_string()))?);
        let (sender, connection) = http1::handshake(stream).await.map_err(|error| failed(error.to_string()))?;
        tokio::spawn(connection);
        Ok(Server { sender, host })
    }

    /// Sends one request; the code and the body of its answer.
    pub(super) async fn ask(&mut self, method: Method, path: &str, body: Value) -> Result<(u16, Value), UserError> {
        let failed =
            |error: String| UserError::new("the CI platform has hung up", "look at its stand-in").with_detail(error);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(method).uri(path).header(HOST, &self.host);
        let request = request.header("content-type", "application/json").body(Full::from(body));
        let request = request.map_err(|error| failed(error.to_string()))?;
        let response = self.sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(|error| failed(error.to_string()))?.to_bytes();
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}
