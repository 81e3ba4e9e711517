//! The certificate of the server, and the authority that signed it.

use crate::user_error::UserError;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// A certificate for 127.0.0.1 and the name of the server.
pub(crate) struct Certificate {
    pub(crate) authority_pem: String,
    pub(crate) fingerprint: String,
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
}

fn failed(error: impl std::error::Error) -> UserError {
    UserError::new("could not create the certificates of a stand-in", "this is a bug, please report it")
        .with_detail(error.to_string())
}

impl Certificate {
    /// A certificate for a server with this name, from an authority with that one.
    pub(crate) fn create(server: &str, authority: &str) -> Result<Certificate, UserError> {
        let authority_key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, authority);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let authority_pem = params.self_signed(&authority_key).map_err(failed)?.pem();
        let issuer = Issuer::new(params, authority_key);
        let key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned(), server.to_owned()])
            .map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, server);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // Newer Python versions refuse certificates without it.
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(&key, &issuer).map_err(failed)?.der().clone();
        let digits = Sha256::digest(&certificate).iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>();
        Ok(Certificate { authority_pem, fingerprint: digits.join(":"), certificate, key: key.serialize_der() })
    }

    /// Accepts TLS connections with it.
    pub(crate) fn acceptor(&self) -> Result<TlsAcceptor, UserError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_single_cert(vec![self.certificate.clone()], key)
            .map_err(failed)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config).into())
    }
}
