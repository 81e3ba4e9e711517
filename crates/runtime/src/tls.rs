//! The certificate that connections over TLS are accepted with; it follows its files.

use anyhow::Context;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;
use tokio_rustls::TlsAcceptor;

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub struct Source {
    /// What it is the certificate of, such as `the metrics`.
    pub of: &'static str,
    /// These files; they are read again when they change.
    pub files: Option<Files>,
    /// Without files, and until there are any, a new one for these names, which nobody has signed.
    pub names: Vec<String>,
}

/// The files of a certificate.
#[derive(Debug, Clone)]
pub struct Files {
    /// The certificate chain in PEM.
    pub certificate: PathBuf,
    /// The private key in PEM.
    pub key: PathBuf,
}

/// The certificate in use.
pub struct Certificate {
    source: Source,
    /// When its files were written.
    written: Option<[SystemTime; 2]>,
    acceptor: TlsAcceptor,
}

impl Certificate {
    /// An error if it cannot be used.
    pub fn load(source: Source) -> anyhow::Result<Certificate> {
        let written = written(&source);
        if let (Some(files), None) = (&source.files, written) {
            let file = files.certificate.display();
            tracing::warn!("the certificate of {} is self-signed until {file} and its key exist", source.of);
        }
        Ok(Certificate { acceptor: acceptor(&source, written.is_some())?, source, written })
    }

    /// What accepts the next connection. Files that cannot be used leave the last certificate in use.
    pub fn acceptor(&mut self) -> TlsAcceptor {
        let written = written(&self.source);
        if written.is_some() && written != self.written {
            self.written = written;
            match acceptor(&self.source, true) {
                Ok(acceptor) => {
                    self.acceptor = acceptor;
                    tracing::info!("the certificate of {} has changed", self.source.of);
                }
                Err(error) => tracing::warn!("the last certificate of {} stays in use: {error:#}", self.source.of),
            }
        }
        self.acceptor.clone()
    }
}

fn written(source: &Source) -> Option<[SystemTime; 2]> {
    let Files { certificate, key } = source.files.as_ref()?;
    let of = |path: &PathBuf| std::fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    Some([of(certificate)?, of(key)?])
}

fn acceptor(source: &Source, has_files: bool) -> anyhow::Result<TlsAcceptor> {
    let (chain, key) = match &source.files {
        Some(Files { certificate, key }) if has_files => {
            let failed = |path: &PathBuf| format!("could not read {}", path.display());
            let chain = CertificateDer::pem_file_iter(certificate).with_context(|| failed(certificate))?;
            let chain = chain.collect::<Result<Vec<_>, _>>().with_context(|| failed(certificate))?;
            (chain, PrivateKeyDer::from_pem_file(key).with_context(|| failed(key))?)
        }
        _ => {
            let made =
                rcgen::generate_simple_self_signed(source.names.clone()).context("could not make a certificate")?;
            (vec![made.cert.der().clone()], PrivateKeyDer::from(made.signing_key))
        }
    };
    let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key);
    let config = config.context("the certificate and its key cannot be used; give a chain and a key that fit")?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
