//! Lets time pass in the stand-in, and sends the webhooks that it wants to be sent.

use super::Shared;
use crate::user_error::UserError;
use bytes::Bytes;
use github_stand_in::Delivery;
use http::header::HOST;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How long a receiver may take to answer; GitHub waits no longer either.
const ANSWER_TIME: Duration = Duration::from_secs(10);
/// How long nothing happens at most before it is looked again.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// Sends webhooks.
#[derive(Clone)]
pub(super) struct Sender {
    connector: TlsConnector,
}

impl Sender {
    /// Trusts these authorities.
    pub(super) fn new(authorities: &str) -> Result<Sender, UserError> {
        let failed = |text: String| {
            UserError::new("the authorities of webhook receivers cannot be used", "give certificates in PEM")
                .with_detail(text)
        };
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(authorities.as_bytes()) {
            let certificate = certificate.map_err(|error| failed(error.to_string()))?;
            roots.add(certificate).map_err(|error| failed(error.to_string()))?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Sender { connector: Arc::new(config).into() })
    }

    /// Sends one; returns the code of the answer, or nothing if there is none.
    async fn send(&self, delivery: &Delivery) -> Option<u16> {
        tokio::time::timeout(ANSWER_TIME, self.attempt(delivery)).await.ok()?.ok()
    }

    async fn attempt(&self, delivery: &Delivery) -> io::Result<u16> {
        let uri: Uri = delivery.url.parse().map_err(io::Error::other)?;
        let host = uri.host().unwrap_or_default().to_owned();
        let is_https = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if is_https { 443 } else { 80 });
        let stream = TcpStream::connect((host.trim_matches(['[', ']']), port)).await?;
        stream.set_nodelay(true)?;
        if is_https {
            let name = ServerName::try_from(host).map_err(io::Error::other)?;
            let stream = self.connector.connect(name, stream).await?;
            exchange(TokioIo::new(stream), &uri, delivery).await
        } else {
            exchange(TokioIo::new(stream), &uri, delivery).await
        }
    }
}

async fn exchange(
    stream: impl Read + Write + Unpin + Send + 'static,
    uri: &Uri,
    delivery: &Delivery,
) -> io::Result<u16> {
    let (mut client, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let mut request = Request::post(target).header(HOST, uri.authority().map_or("", |authority| authority.as_str()));
    for (name, value) in &delivery.headers {
        request = request.header(*name, value);
    }
    let request = request.body(Full::new(Bytes::from(delivery.body.clone()))).map_err(io::Error::other)?;
    let response = client.send_request(request).await.map_err(io::Error::other)?;
    let status = response.status().as_u16();
    response.into_body().collect().await.map_err(io::Error::other)?;
    Ok(status)
}

/// Lets time pass and sends webhooks forever, those of the same moment in their order.
pub(super) async fn send_all(shared: Arc<Shared>, sender: Sender) {
    let mut changed = shared.changed.subscribe();
    loop {
        changed.mark_unchanged();
        let (deliveries, next) = shared.look(|state, now| {
            let deliveries = state.tick(now);
            (deliveries, state.next_change().map_or(LONGEST_SLEEP, |next| next.saturating_sub(now)))
        });
        shared.pulse.send_modify(|number| *number += 1);
        if !deliveries.is_empty() {
            let (shared, sender) = (Arc::clone(&shared), sender.clone());
            tokio::spawn(async move {
                for delivery in deliveries {
                    let status = sender.send(&delivery).await;
                    shared.look(|state, _| state.delivered(delivery.id, status));
                }
            });
        }
        tokio::select! {
            _ = changed.changed() => {}
            () = tokio::time::sleep(next.min(LONGEST_SLEEP)) => {}
        }
    }
}
